"""What a project says about itself: parsed, never run.

Owns: `Metadata`, `read_metadata`.
Invariant: `setup.py` is read as text only; what it computes is not known.
Must not know: trees beyond the files it is given, licences' texts.
"""

from __future__ import annotations

import ast
import configparser
import email.parser
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from practicum.errors import TaskError
from practicum.records.tree import Tree

_VERSION = re.compile(r"^_*version_*\s*(?::\s*\w+\s*)?=\s*['\"](\d[^'\"]*)['\"]", re.MULTILINE)
_FILES = ("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "PKG-INFO", "setup.py")


@dataclass(frozen=True, slots=True)
class Metadata:
    """`licence` as stated, `classifiers` in full; `testpaths` and `python_files` of pytest's configuration.

    `requires` are the run-time requirements, `extras` those by name of an extra, group or environment. `generated` are
    files that the project's build writes its version into.
    """

    name: str = ""
    version: str = ""
    licence: str = ""
    classifiers: tuple[str, ...] = ()
    testpaths: tuple[str, ...] = ()
    python_files: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] | None = None
    generated: tuple[str, ...] = ()


def read_metadata(tree: Tree) -> Metadata:
    """The metadata in the files at the top of `tree`; what is not stated is empty.

    Raises `TaskError` naming the file for one that does not parse.
    """
    texts = {name: _text(tree, name) for name in _FILES if name in tree}
    pyproject = _toml(texts.get("pyproject.toml", ""))
    setup = _ini(texts.get("setup.cfg", ""), "setup.cfg")
    called = _called(texts.get("setup.py", ""))
    info = email.parser.Parser().parsestr(texts.get("PKG-INFO", ""), headersonly=True)
    project = _table(pyproject, "project")
    licence = project.get("license", "")
    if isinstance(licence, dict):
        licence = licence.get("text", "")
    declared = setup["metadata"] if setup.has_section("metadata") else {}
    pytests = _pytest_options(texts, pyproject, setup)
    return Metadata(
        name=str(project.get("name") or declared.get("name", "") or info.get("Name", "") or called.get("name", "")),
        version=_version(project, info, declared, called, tree),
        licence=str(
            licence
            or info.get("License-Expression", "")
            or info.get("License", "")
            or declared.get("license", "")
            or called.get("license", "")
        ),
        classifiers=(
            *_strings(project.get("classifiers")),
            *info.get_all("Classifier", []),
            *_lines(declared, "classifiers"),
        )
        or tuple(_strings(called.get("classifiers"))),
        testpaths=tuple(_words(pytests.get("testpaths"))),
        python_files=tuple(_words(pytests.get("python_files"))),
        requires=_requires(project, setup, called),
        extras=_extras(pyproject, setup, called) | _tox(_ini(texts.get("tox.ini", ""), "tox.ini")),
        generated=_generated(pyproject),
    )


def _text(tree: Tree, name: str) -> str:
    return tree[name].data.decode("utf-8", "replace")


def _table(document: Mapping[str, Any], *names: str) -> dict[str, Any]:
    found: Any = document
    for name in names:
        found = found.get(name, {}) if isinstance(found, Mapping) else {}
    return dict(found) if isinstance(found, Mapping) else {}


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TaskError(f"pyproject.toml does not parse: {error}") from None


def _ini(text: str, name: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise TaskError(f"{name} does not parse: {error.message}") from None
    return parser


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, (list, tuple)) else []


def _words(value: Any) -> list[str]:
    return shlex.split(value) if isinstance(value, str) else _strings(value)


def _lines(section: Mapping[str, Any], key: str) -> list[str]:
    return [line.strip() for line in str(section.get(key) or "").splitlines() if line.strip()]


def _pytest_options(
    texts: Mapping[str, str], pyproject: Mapping[str, Any], setup: configparser.RawConfigParser
) -> Mapping[str, Any]:
    """The options of the first configuration that pytest would use."""
    if "pytest.ini" in texts:
        ini = _ini(texts["pytest.ini"], "pytest.ini")
        return dict(ini["pytest"]) if ini.has_section("pytest") else {}
    if found := _table(pyproject, "tool", "pytest", "ini_options"):
        return found
    if "tox.ini" in texts:
        tox = _ini(texts["tox.ini"], "tox.ini")
        if tox.has_section("pytest"):
            return dict(tox["pytest"])
    return dict(setup["tool:pytest"]) if setup.has_section("tool:pytest") else {}


def _version(project: Mapping[str, Any], info: Any, declared: Mapping[str, Any], called: Mapping[str, Any],
             tree: Tree) -> str:  # fmt: skip
    stated = project.get("version") or info.get("Version") or declared.get("version") or called.get("version")
    if isinstance(stated, str) and re.match(r"v?\d", stated):
        return stated
    for path in sorted(tree, key=lambda name: (name.count("/"), name)):
        named = path.endswith(("__init__.py", "version.py", "_version.py", "__version__.py")) and path.count("/") <= 2
        if named and (found := _VERSION.search(_text(tree, path))):
            return found[1]
    return ""


def _tox(tox: configparser.RawConfigParser) -> dict[str, tuple[str, ...]]:
    """What environments of tox install, without what says for which of them."""
    return {
        name: tuple(re.sub(r"^[\w{},.! -]+:\s*", "", line) for line in _lines(tox[name], "deps"))
        for name in tox.sections()
        if name.startswith("testenv") and tox.has_option(name, "deps")
    }


def _generated(pyproject: Mapping[str, Any]) -> tuple[str, ...]:
    scm, hatch = (
        _table(pyproject, "tool", "setuptools_scm"),
        _table(pyproject, "tool", "hatch", "build", "hooks", "vcs"),
    )
    found = (scm.get("write_to"), scm.get("version_file"), hatch.get("version-file"))
    return tuple(path for path in found if isinstance(path, str) and path.endswith(".py"))


def _called(text: str) -> dict[str, Any]:
    """Literal keyword arguments of a call of `setup` in `setup.py`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "setup":
            for keyword in node.keywords:
                try:
                    found[str(keyword.arg)] = ast.literal_eval(keyword.value)
                except (ValueError, TypeError, SyntaxError):
                    continue  # computed: not known
    return found


def _requires(project: Mapping[str, Any], setup: configparser.RawConfigParser, called: Mapping[str, Any]
              ) -> tuple[str, ...]:  # fmt: skip
    if "dependencies" in project:
        return tuple(_strings(project["dependencies"]))
    if setup.has_option("options", "install_requires"):
        return tuple(_lines(setup["options"], "install_requires"))
    value = called.get("install_requires", ())
    return tuple(_lines({"v": value}, "v") if isinstance(value, str) else _strings(value))


def _extras(pyproject: Mapping[str, Any], setup: configparser.RawConfigParser, called: Mapping[str, Any]
            ) -> dict[str, tuple[str, ...]]:  # fmt: skip
    found: dict[str, tuple[str, ...]] = {}
    tables = (called.get("extras_require"), _table(pyproject, "project", "optional-dependencies"),
              _table(pyproject, "dependency-groups"))  # fmt: skip
    if setup.has_section("options.extras_require"):
        section = setup["options.extras_require"]
        found |= {name: tuple(_lines(section, name)) for name in section}
    for table in tables:
        if isinstance(table, dict):
            found |= {str(name): tuple(_strings(value)) for name, value in table.items()}
    return found
