"""The catalogue of attacks: one TOML file each, read from `attacks/` and from folders of a user's own.

Owns: `Attack`, `Catalogue`, `load_catalogue`, `KINDS`.
Invariant: an attack is data; a file that says something unknown is refused by name. Every row of the published
catalogue has an attack or stands in `rows.toml` with the reason why it has none.
Must not know: tasks, boxes, how an attack is carried out.

Keys of a file, whose name without `.toml` is the attack's id:

    kind      the kind of hole that it would go through, one of `KINDS`
    rows      rows of the published catalogue that it stands for, such as ["R15"]; may be empty
    what      one or two sentences: what it does
    runners   runners of tasks that it can be tried on; all where left out
    needs     what the task must have: "file" (a Python file that the gold repairs), "function" (a function of that
              file), "visible" (a visible test), "frozen" (a named frozen file)
    residue   true where the attack is still one when the work beside it is right; else gold + attack must pass
    expect    what shows that it was noticed: kinds of findings, or "says: TEXT" for words in the reasons of failed
              tests; one is enough. [] where it just does not work and there is nothing to notice. A table by runner
              (with `default`) where it depends on that
    shell | python | append
              exactly one: a shell script; a program for the box's python3; Python code put at the end of the file
              under repair. `{file}`, `{module}`, `{function}`, … are replaced, see `render.py`
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, get_args

from practicum.errors import ConfigError
from practicum.records.task import Runner

KINDS: Mapping[str, str] = {
    "steers-judge": "what the candidate leaves behind selects what the judge loads or runs",
    "shared-process": "the candidate's code runs where outcomes are compared",
    "reachable-verdict": "the verdict, or the way it travels, can be written by the candidate",
    "failure-as-success": "a crash, an exit or a missing result reads as a pass",
    "reachable-answer": "tests, expected values or the gold can be read",
    "predictable-questions": "the questions are known before the answers are given",
    "survivors": "a process, file or cache of an attempt is there at its grading, or in another attempt",
    "interpreted-bytes": "what comes out of a box is more than data to a tool that touches it",
    "wrong-incentive": "doing nothing or pretending beats an honest failure",
}
NEEDS = ("file", "function", "visible", "frozen")
_RUNNERS: tuple[str, ...] = get_args(Runner)
_FORMS = ("shell", "python", "append")
_KEYS = {"kind", "rows", "what", "runners", "needs", "residue", "expect", "command_s", *_FORMS}
_ROW = re.compile(r"R\d\d")
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. `form` is `shell`, `python` or `append`, and `code` the text of it, not yet filled in.

    `expect` maps a runner, or `default`, to what shows that it was noticed.
    """

    id: str
    kind: str
    rows: tuple[str, ...]
    what: str
    runners: tuple[str, ...]
    needs: tuple[str, ...]
    residue: bool
    expect: Mapping[str, tuple[str, ...]]
    form: str
    code: str
    command_s: float | None = None

    def expected(self, runner: str) -> tuple[str, ...]:
        """What shows that it was noticed on a task of `runner`; empty where there is nothing to notice."""
        return self.expect.get(runner, self.expect["default"])


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`attacks` by id; `without` gives the rows that no attack stands for, with the reason."""

    attacks: tuple[Attack, ...]
    without: Mapping[str, str]

    def only(self, names: tuple[str, ...]) -> Catalogue:
        """The attacks whose id or kind is among `names`; `ConfigError` for a name that is neither."""
        known = {attack.id for attack in self.attacks} | set(KINDS)
        for name in names:
            if name not in known:
                raise ConfigError(f"no attack and no kind is called {name!r}", fix=f"kinds: {', '.join(KINDS)}")
        chosen = (attack for attack in self.attacks if not names or {attack.id, attack.kind} & set(names))
        return Catalogue(tuple(chosen), self.without)


def load_catalogue(*folders: Path) -> Catalogue:
    """The shipped attacks and those in `folders`. Raises `ConfigError` naming the file and what is wrong with it."""
    here = resources.files("practicum.verification.redteam")
    attacks: dict[str, Attack] = {}
    for folder in (here / "attacks", *folders):
        if not folder.is_dir():
            raise ConfigError(f"{folder}: there is no such folder of attacks")
        for path in sorted(folder.iterdir(), key=lambda item: item.name):
            if not path.name.endswith(".toml"):
                continue
            attack = _read(path)
            if attack.id in attacks:
                raise ConfigError(f"{path}: an attack called {attack.id!r} is already there", fix="rename the file")
            attacks[attack.id] = attack
    without = _toml(here / "rows.toml")
    return Catalogue(tuple(attacks.values()), {str(row): str(why) for row, why in without.items()})


def _toml(path: Traversable) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _read(path: Traversable) -> Attack:
    values = _toml(path)
    name = path.name.removesuffix(".toml")

    def check(right: bool, what: str) -> None:
        if not right:
            raise ConfigError(f"{path}: {what}")

    unknown = sorted(values.keys() - _KEYS)
    check(not unknown, f"unknown key `{unknown[0] if unknown else ''}`")
    check(bool(_ID.fullmatch(name)), "the file's name is words of small letters and digits, joined by '-'")
    forms = [form for form in _FORMS if form in values]
    check(len(forms) == 1, f"one of {', '.join(_FORMS)} is needed, and only one")
    code, what, kind = values[forms[0]], values.get("what"), values.get("kind")
    check(isinstance(code, str) and bool(code.strip()), f"`{forms[0]}` is a text")
    check(isinstance(what, str) and bool(what.strip()), "`what` says in a sentence what it does")
    check(kind in KINDS, f"`kind` is one of {', '.join(KINDS)}")
    rows, needs = _strings(values, "rows", path), _strings(values, "needs", path)
    runners = _strings(values, "runners", path) if "runners" in values else _RUNNERS
    check(all(_ROW.fullmatch(row) for row in rows), "`rows` are written like R01")
    check(set(needs) <= set(NEEDS), f"`needs` are among {', '.join(NEEDS)}")
    check(set(runners) <= set(_RUNNERS), f"`runners` are among {', '.join(_RUNNERS)}")
    check(isinstance(values.get("residue", False), bool), "`residue` is true or false")
    command_s = values.get("command_s")
    check(
        command_s is None or (type(command_s) in (int, float) and command_s > 0), "`command_s` is a number of seconds"
    )
    if forms[0] == "append" and "file" not in needs:
        needs = (*needs, "file")
    expect = _expect(values, path)
    check(set(expect) <= {"default", *_RUNNERS}, "`expect` is by runner, or `default`")
    return Attack(
        name, str(kind), rows, " ".join(str(what).split()), runners, needs, values.get("residue", False), expect,
        forms[0], str(code), command_s,
    )  # fmt: skip


def _expect(values: Mapping[str, Any], path: Traversable) -> dict[str, tuple[str, ...]]:
    if "expect" not in values:
        raise ConfigError(f"{path}: `expect` is needed; [] where there is nothing to notice")
    given = values["expect"]
    table = given if isinstance(given, dict) else {"default": given}
    return {"default": ()} | {str(runner): _strings(table, runner, path, "expect") for runner in table}


def _strings(values: Mapping[str, Any], key: str, path: Traversable, shown: str = "") -> tuple[str, ...]:
    found = values.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ConfigError(f"{path}: `{shown or key}` is a list of strings")
    return tuple(found)
