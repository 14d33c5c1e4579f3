"""The probes as a whole: ids, groups, proofs, and that docs/security.md speaks of all of them."""

from __future__ import annotations

import re
from pathlib import Path

from practicum.sandboxes.audit.inside.registry import PROBES
from practicum.sandboxes.audit.proofs import all_proofs, proofs_for
from practicum.sandboxes.audit.run import Report  # noqa: F401  importing it declares all probes

SECURITY = Path(__file__).parents[3] / "docs" / "security.md"


def test_there_are_many_and_their_ids_have_no_gap() -> None:
    """P01 to the last, at least sixty, in at least ten groups; each says what it tries, expects and is for."""
    numbers = sorted(int(id[1:]) for id in PROBES)
    assert numbers == list(range(1, len(PROBES) + 1))
    assert len(PROBES) >= 60
    assert len({probe.group for probe in PROBES.values()}) >= 10
    assert all(probe.tries and probe.expected and probe.threat for probe in PROBES.values())


def test_every_probe_is_proven_or_named_as_not() -> None:
    """A proof names only probes that exist; what no proof covers has a reason that is more than the default."""
    ids = list(PROBES)
    assert {id for proof in all_proofs() for id in proof.should_fire} <= set(ids)
    proofs, unproven = proofs_for({"addresses": ["192.0.2.2"]}, ids)
    covered = {id for proof in proofs for id in proof.should_fire}
    assert covered | unproven.keys() == set(ids)
    assert not covered & unproven.keys()
    assert len(covered) >= 100
    assert "there is no switch for its control" not in unproven.values()


def test_a_host_without_a_network_proves_less() -> None:
    """Where there is nothing to be reached, the probes of routes are named as not proven."""
    _, unproven = proofs_for({"addresses": []}, list(PROBES))
    assert {"P52", "P53", "P54"} <= unproven.keys()


def test_the_threat_table_names_every_probe() -> None:
    """Each probe stands in the row of its threat, and no row names a probe that does not exist or is for another."""
    rows: dict[str, set[str]] = {}
    for line in SECURITY.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) >= 4 and cells[1]:
            rows.setdefault(cells[1], set()).update(_ids(line))
    for probe in PROBES.values():
        assert probe.id in rows.get(probe.threat, set()), f"{probe.id} is missing under {probe.threat!r}"
    named = {(id, threat) for threat, ids in rows.items() for id in ids}
    assert named == {(probe.id, probe.threat) for probe in PROBES.values()}


def _ids(line: str) -> set[str]:
    """`P03` and, for ranges, `P03–P05`."""
    found: set[str] = set()
    for first, last in re.findall(r"\bP(\d+)(?:–P(\d+))?", line):
        found |= {f"P{number:02d}" for number in range(int(first), int(last or first) + 1)}
    return found
