"""The host's pressure."""

from __future__ import annotations

from pathlib import Path

from practicum.scheduling.pressure import Pressure, read_pressure

PSI = "some avg10={} avg60=1.00 avg300=2.00 total=12525548076\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


def lay(proc: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(text, "ascii")
    return proc


def test_stalls_are_read(tmp_path: Path) -> None:
    """The ten-second shares of cpu, memory and io, and the free process ids."""
    stalls = {f"pressure/{name}": PSI.format(value) for name, value in (("cpu", 15.5), ("memory", 0), ("io", 80.25))}
    proc = lay(tmp_path, {**stalls, "loadavg": "9.0 5.0 4.0 2/250 77\n", "sys/kernel/pid_max": "1000\n"})
    assert read_pressure(proc, cores=2) == Pressure(0.155, 0.0, 0.8025, 0.75, 4.5, "psi")


def test_without_stalls_the_load_is_told(tmp_path: Path) -> None:
    """Six runnable tasks on three cores: each second one waits. What nobody tells is None."""
    proc = lay(tmp_path, {"loadavg": "6.00 5.0 4.0 2/250 77\n"})
    assert read_pressure(proc, cores=3) == Pressure(0.5, None, None, None, 2.0, "loadavg")
    assert read_pressure(lay(tmp_path, {"loadavg": "0.00 5.0 4.0 2/250 77\n"}), cores=3).cpu == 0
    assert read_pressure(tmp_path / "none") == Pressure(None, None, None, None, None, "none")


def test_this_host_answers() -> None:
    """The real files are read, and every share is one."""
    pressure = read_pressure()
    shares = (pressure.cpu, pressure.memory, pressure.io, pressure.pids_free)
    assert all(share is None or 0 <= share <= 1 for share in shares)
    assert pressure.source in ("psi", "loadavg")
