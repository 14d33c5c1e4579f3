"""Charts are well-formed, stay inside their frame and carry no one's markup."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as st

from practicum.pipeline.charts import WIDE, Point, Series, interval_chart, line_chart

values = st.floats(-1e6, 1e6)
points = st.builds(Point, st.integers(0, 500), values)


@given(st.lists(points, max_size=8), st.booleans())
def test_line_chart_is_well_formed(given_points: list[Point], shares: bool) -> None:
    """Any finite points give well-formed SVG whose marks lie inside the drawing; none give nothing."""
    svg = line_chart([Series("train", tuple(given_points))], label="x", shares=shares)
    if not given_points:
        assert svg == ""
        return
    for circle in ElementTree.fromstring(svg).iter("circle"):
        assert 0 <= float(circle.attrib["cx"]) <= WIDE[0]
        assert 0 <= float(circle.attrib["cy"]) <= WIDE[1]


def test_text_is_escaped() -> None:
    """Names and labels cannot end an element or an attribute."""
    evil = '"><script>\0'
    svg = line_chart([Series(evil, (Point(1, 0.5),))], label=evil) + interval_chart(
        [(evil, 0.5, None, None, "a")], label=evil
    )
    assert "<script>" not in svg
    assert "&lt;script&gt;␀" in svg


def test_higher_is_drawn_higher() -> None:
    """On the y axis more is up, and x grows to the right."""
    svg = line_chart([Series("s", (Point(0, 0.1), Point(10, 0.9)))], label="x", shares=True)
    low, high = ElementTree.fromstring(svg).iter("circle")
    assert float(high.attrib["cy"]) < float(low.attrib["cy"])
    assert float(high.attrib["cx"]) > float(low.attrib["cx"])


def test_interval_chart_spans_its_interval() -> None:
    """The whisker runs from low to high around the dot, and what is off the scale is held at its edge."""
    svg = interval_chart([("after", 0.5, 0.25, 0.75, "a"), ("odd", 2.0, None, None, "b")], label="x")
    root = ElementTree.fromstring(svg)
    [whisker] = [line for line in root.iter("line") if "whisker" in line.attrib["class"]]
    after, odd = root.iter("circle")
    assert float(whisker.attrib["x1"]) < float(after.attrib["cx"]) < float(whisker.attrib["x2"])
    assert float(odd.attrib["cx"]) <= WIDE[0]
