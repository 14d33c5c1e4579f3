"""The scripts that a person runs first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ["quickstart.sh", "test.sh", "scripts/setup.sh", ".ci/run"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with what the set-up reads, and nothing installed."""
    names = ["scripts/setup.sh", "quickstart.sh", "pyproject.toml", "constraints.txt", "requirements/bwrap.txt"]
    native = ROOT / "src/practicum/sandboxes/native"
    for name in (*names, "hatch_build.py", *(str(path.relative_to(ROOT)) for path in native.glob("*.[ch]"))):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return tmp_path


def bash(script: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_syntax(name: str) -> None:
    """bash can parse every script."""
    assert bash(f"bash -n {name}", ROOT).returncode == 0


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck() -> None:
    """shellcheck has nothing to say about the scripts."""
    done = bash(f"shellcheck -x {' '.join(SCRIPTS)}", ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["quickstart.sh", "test.sh", ".ci/run"])
def test_executable(name: str) -> None:
    """A fresh clone can run the scripts as they are."""
    assert os.access(ROOT / name, os.X_OK)


def test_old_python_is_refused(clone: Path) -> None:
    """With only an old python the set-up stops at once, with one message and the line that fixes it."""
    tools = clone / "bin"
    tools.mkdir()
    for name in ("python3", "python3.13", "python3.12", "python3.11"):
        (tools / name).write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'Python 3.9.2'\nexit 1\n")
        (tools / name).chmod(0o755)
    done = bash("./quickstart.sh", clone, PATH=f"{tools}:{os.environ['PATH']}", PYTHON="")
    assert done.returncode == 2
    assert "needs python 3.11 or newer; found Python 3.9.2" in done.stderr
    assert "fix: sudo apt-get install" in done.stderr
    assert not (clone / ".venv").exists()


def test_nothing_is_installed_twice(clone: Path) -> None:
    """Packages are installed again exactly when the project's own files say something new."""
    script = f"""
        . scripts/setup.sh
        venv={clone}/venv; python={sys.executable}
        mkdir -p "$venv"
        uv_install() {{ echo "install $1"; }}
        install_packages train; install_packages train
        echo '# changed' >> constraints.txt
        install_packages train
        echo '// changed' >> src/practicum/sandboxes/native/hub.c
        install_packages train
    """
    done = bash(script, clone)
    assert done.stdout.splitlines() == ["install .[train]"] * 3, done.stderr
    assert "up to date" in done.stderr


def test_failed_step_stops(clone: Path) -> None:
    """A step that fails ends the script, so that nothing runs on a half-made set-up."""
    done = bash(". scripts/setup.sh; step one false; echo reached", clone)
    assert done.returncode == 1
    assert "reached" not in done.stdout


def test_settings_of_pip_reach_uv(clone: Path) -> None:
    """uv is told where pip would look, and whether a torch build for this python lies there."""
    wheels = clone / "wheels"
    wheels.mkdir()
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    script = f"""
        . scripts/setup.sh
        python={sys.executable}
        uv_settings; echo "$UV_FIND_LINKS $UV_DEFAULT_INDEX"
        torch_wheel_at_hand && echo early
        touch {wheels}/torch-2.13.0+cpu-{tag}-{tag}-linux_x86_64.whl
        torch_wheel_at_hand && echo found
    """
    env = {
        "PIP_FIND_LINKS": f"/one {wheels}",
        "PIP_INDEX_URL": "file:///index",
        "UV_FIND_LINKS": "",
        "UV_DEFAULT_INDEX": "",
    }
    done = bash(script, clone, **env)
    assert done.stdout.splitlines() == [f"/one,{wheels} file:///index", "found"], done.stderr
