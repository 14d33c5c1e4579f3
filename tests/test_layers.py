"""The rules of the house, as tests: floors, sizes, docstrings, where torch and print may stand."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "practicum"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text("utf-8")) for path in SOURCES}
MODELS_LIVE_IN = ("training/", "weights/", "policies/local/")


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def test_floors() -> None:
    """A module imports only from floors below its own, and no external contract is broken."""
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [tool, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_torch_only_where_models_live() -> None:
    """torch costs seconds to import, so only training, weights and the local engine name it."""
    found = [
        name_of(path)
        for path, tree in TREES.items()
        if not name_of(path).startswith(MODELS_LIVE_IN)
        and any(name.split(".")[0] == "torch" for name in imported(tree))
    ]
    assert found == []


def test_no_relative_imports() -> None:
    """Imports are absolute, so that the floor check sees them; programs copied into a box have no package there."""
    found = [
        name_of(path)
        for path, tree in TREES.items()
        if "/inside/" not in name_of(path)
        and any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    ]
    assert found == []


def explains(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef, limit: int) -> bool:
    return f"Longer than {limit} lines" in (ast.get_docstring(node) or "")


def test_size_of_files() -> None:
    """A file stays within 300 lines, or its docstring says "Longer than 300 lines" and why."""
    found = [
        f"{name_of(path)} ({length})"
        for path, tree in TREES.items()
        if (length := len(path.read_text("utf-8").splitlines())) > 300 and not explains(tree, 300)
    ]
    assert found == []


def test_size_of_functions() -> None:
    """A function stays within 60 lines, or its docstring says "Longer than 60 lines" and why."""
    found = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path, tree in TREES.items()
        for node in functions(tree)
        if (node.end_lineno or node.lineno) - node.lineno + 1 > 60 and not explains(node, 60)
    ]
    assert found == []


def test_module_docstrings() -> None:
    """Every module's first lines say what it owns."""
    assert [name_of(path) for path, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_print_only_where_people_are_spoken_to() -> None:
    """Only the command line prints, and programs inside a box, whose stdout their host reads."""
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path, tree in TREES.items()
        if not name_of(path).startswith("cli/") and "/inside/" not in name_of(path)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert found == []


def test_no_swallowed_exceptions() -> None:
    """A broad `except` does something about what it caught."""
    broad = {"Exception", "BaseException"}
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in broad))
        and all(isinstance(statement, (ast.Pass, ast.Continue)) for statement in node.body)
    ]
    assert found == []


def test_tests_say_what_must_hold() -> None:
    """Every test carries one sentence that says what must hold."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in functions(ast.parse(path.read_text("utf-8")))
        if node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert silent == []
