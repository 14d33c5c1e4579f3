"""The benchmark measures what it says, compares like with like, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from practicum.errors import SandboxError
from practicum.sandboxes.bench.baselines import Baseline
from practicum.sandboxes.bench.meter import Meter, open_meter
from practicum.sandboxes.bench.report import TARGETS, document, text
from practicum.sandboxes.bench.run import Figures, Sizes, bench
from practicum.sandboxes.layers import LayerCache

SMALL = Sizes(turns=2, boxes=2, slow=1, commands=5, leases=3, snapshots=1, files=200, alive=5)
BURN = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"


def here() -> tuple[str, tuple[int, int]]:
    """This process's groups, and the limit that benchmarks raise."""
    return Path("/proc/self/cgroup").read_text(), resource.getrlimit(resource.RLIMIT_NOFILE)


def leftovers() -> list[str]:
    name = f"practicum-bench-{os.getpid()}"
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    found += [str(path) for path in Path(tempfile.gettempdir()).glob(f"{name}*")]
    return found + [str(place) for place in Path("/sys/fs/cgroup").glob(f"**/{name}*")]


@pytest.mark.parametrize("stacks", [True, False])
def test_a_small_benchmark(cache: LayerCache, stacks: bool) -> None:
    """Each figure has as many samples as asked for; ratios are of the medians beside them; nothing is left."""
    before = here()
    done: list[str] = []
    figures = asyncio.run(bench(SMALL, done.append, limits_by="cgroup-or-rlimit", cache=cache, stacks=stacks))
    found = document(figures)
    assert here() == before
    assert leftovers() == []
    assert list((cache.state / "owners").iterdir()) == []
    assert len(done) == 5
    samples = {"create": 4, "create_cpu": 2, "bwrap": 4, "floor": 4, "command": 5, "subprocess": 5, "lease": 3}
    samples |= {"snapshot": 1, "fork": 3, "reset": 1}
    assert found["samples"].items() >= samples.items()
    ratio = found["cpu_ms"]["create"] / found["cpu_ms"]["bwrap"]
    assert found["ratios"]["create_cpu_vs_bwrap"] == pytest.approx(ratio, rel=0.01)
    assert 0.3 < ratio < 30
    assert found["alive"]["boxes"] == 5
    assert found["alive"]["kill_to_empty_s"] > 0
    for tool in ("runc", "podman"):
        assert (found["ratios"][f"create_cpu_vs_{tool}"] is None) == (tool in found["missing"])
    argv = found["baseline_argv"]["bwrap"]
    assert {"--unshare-net", "--seccomp", "--disable-userns"} <= set(argv)
    assert argv[-1] == "/usr/bin/true"
    assert "lease of a warm box" in text(found)


def test_all_cpu_is_counted() -> None:
    """What a child has burnt is counted, by control group as well as by what the kernel says of processes."""
    with open_meter() as meter:
        by_processes = Meter("getrusage", "", lambda folder: 0.0)
        for each in (meter, by_processes):
            before = each.seconds()
            subprocess.run([sys.executable, "-c", BURN], check=True)
            assert 0.19 < each.seconds() - before < 2.0, each.by


def test_a_long_lived_child_is_counted_by_its_pid() -> None:
    """Without control groups, what a child that still runs has used is counted once it is named."""
    code = f"{BURN}\nprint('burnt', flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        meter = Meter("getrusage", "", lambda folder: 0.0)
        child.stdout.readline()
        before = meter.seconds()
        meter.include(child.pid, [])
        assert meter.seconds() - before > 0.15
        child.stdin.write(b"\n")


def test_a_baseline_that_fails_says_why() -> None:
    """A tool that does not do its work is an error with its words, never a fast sample."""
    with pytest.raises(SandboxError, match="tool ended with 3: no luck"):
        Baseline("tool", ("/bin/sh", "-c", "echo no luck >&2; exit 3"), {}).run()
    with pytest.raises(SandboxError, match="tool: "):
        Baseline("tool", ("/no/such/tool",), {}).run()


def figures_with(**medians: float) -> Figures:
    figures = Figures("a counter", "bubblewrap", [], 0.0)
    for name, value in medians.items():
        figures.add(name, value - 0.01, value, value + 5.0)
    figures.alive = {"boxes": 500, "added_memory_mb": 300.0, "kill_to_empty_s": 0.5, "created_s": 4.0}
    return figures


def test_figures_stand_beside_their_targets() -> None:
    """Ratios are ours by theirs; each target is met or not by its own figure, and what is missing is neither."""
    usual = {"bwrap_cpu": 5.0, "command": 1.4, "subprocess": 1.0, "subprocess_captured": 1.0, "lease": 1.0}
    usual |= {"fork": 4.0, "snapshot": 1.0, "floor_cpu": 0.5, "create": 7.0, "floor": 0.5, "bwrap": 5.0, "runc": 40.0}
    found = document(figures_with(create_cpu=6.0, runc_cpu=30.0, reset=9.0, **usual))
    assert found["ratios"]["create_cpu_vs_bwrap"] == 1.2
    assert found["ratios"]["create_cpu_vs_runc"] == 0.2
    assert found["ratios"]["create_cpu_vs_podman"] is None
    verdicts = {name: verdict["met"] for name, verdict in found["targets"].items()}
    assert verdicts.pop("reset_p50_ms") is False
    assert verdicts.pop("ratios.create_cpu_vs_podman") is None
    assert set(verdicts.values()) == {True}
    shown = text(found)
    marks = [line.split()[0] for line in shown.splitlines()[: len(TARGETS)]]
    assert (marks.count("✓"), marks.count("✗"), marks.count("–")) == (8, 1, 1)
    assert "9.00 ms   ≤ 5 ms" in shown
