"""One small project: a template with names, a layout and a bug, as text.

Owns: `Bug`, `Project`, the pools of module and package names, drawing a project, renaming one.
Invariant: a project's broken and repaired sources differ in one line; a renaming gives a project that could have
been drawn, of the same template, bug and layout.
Must not know: cases, tests, splits, disks.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from typing import Literal

from practicum.tasks.quickstart.templates import LOCALS_ITEM, LOCALS_TOTAL, TEMPLATES, Template

Layout = Literal["module", "package", "pair"]
LAYOUTS: tuple[Layout, ...] = ("module", "package", "pair")
MODULES = ("core", "stats", "helpers", "metrics", "tools", "rules")
PACKAGES = ("shop", "lab", "fleet", "ledger")
_SITE = re.compile(r"\[\[(.+?)\]\](?!\])")


@dataclass(frozen=True, slots=True)
class Bug:
    """The marked place number `site` of a template, with `wrong` where `right` belongs."""

    site: int
    right: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Project:
    """`names` are those of the template's `{f}`, parameters and locals; `neighbour` is text above the function."""

    template: Template
    bug: Bug
    names: tuple[tuple[str, str], ...]
    layout: Layout
    module: str
    package: str
    neighbour: str

    @property
    def function(self) -> str:
        return dict(self.names)["f"]

    @property
    def path(self) -> str:
        return f"{self.package}/{self.module}.py" if self.package else f"{self.module}.py"

    @property
    def import_name(self) -> str:
        return f"{self.package}.{self.module}" if self.package else self.module

    @property
    def combination(self) -> str:
        """What must not occur in two splits: template, bug and names."""
        words = "-".join(name for _, name in sorted(self.names))
        return f"{self.template.name}/{self.bug.site}:{self.bug.wrong.strip()}/{words}"

    def source(self, *, broken: bool) -> str:
        """The whole module."""
        return self.neighbour + _render(self.template, dict(self.names), self.bug if broken else None)

    def edit(self) -> dict[str, str | int]:
        """The one-line repair: in line `line` of `path`, `old` becomes `new`."""
        pairs = zip(self.source(broken=True).splitlines(), self.source(broken=False).splitlines(), strict=True)
        line = next(number for number, (left, right) in enumerate(pairs, start=1) if left != right)
        return {"path": self.path, "line": line, "old": self.bug.wrong, "new": self.bug.right}

    def renamed(self, rng: random.Random) -> Project:
        """The same project under other names, drawn anew."""
        names = tuple(_names(self.template, rng).items())
        package = rng.choice(PACKAGES) if self.package else ""
        return replace(self, names=names, module=rng.choice(MODULES), package=package)

    def renaming(self, other: Project) -> dict[str, str]:
        """What each word of this project is called in `other`, which was renamed from it."""
        words = {old: new for (_, old), (_, new) in zip(self.names, other.names, strict=True)}
        words[self.module] = other.module
        return words | ({self.package: other.package} if self.package else {})


def bugs_of(template: Template) -> list[Bug]:
    """One bug for each marked place."""
    sites = [match.group(1).split("|") for match in _SITE.finditer(template.source)]
    return [Bug(number, right, wrong) for number, (right, wrong) in enumerate(sites)]


def draw(template: Template, bug: Bug, rng: random.Random) -> Project:
    """A project with random names and layout."""
    layout = rng.choice(LAYOUTS)
    neighbour = ""
    if layout == "pair":
        # A neighbour without the bug's text, so that the text to repair is unique in the file.
        others = [t for t in TEMPLATES if t.name != template.name and bug.wrong not in _SITE.sub(r"\1", t.source)]
        other = rng.choice(others)
        neighbour = _render(other, _names(other, rng) | {"f": "helper"}, None) + "\n\n"
    package = rng.choice(PACKAGES) if layout == "package" else ""
    names = tuple(_names(template, rng).items())
    return Project(template, bug, names, layout, rng.choice(MODULES), package, neighbour)


def _render(template: Template, names: dict[str, str], bug: Bug | None) -> str:
    count = -1

    def choose(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        right, wrong = match.group(1).split("|")
        return wrong if bug and bug.site == count else right

    text = _SITE.sub(choose, template.source)
    return re.sub(r"\{([fabctv])\}", lambda match: names[match.group(1)], text)


def _names(template: Template, rng: random.Random) -> dict[str, str]:
    names = {"f": rng.choice(template.functions)}
    pools = [*zip("abc", template.parameters, strict=False), ("t", LOCALS_TOTAL), ("v", LOCALS_ITEM)]
    for key, pool in pools:
        names[key] = rng.choice([name for name in pool if name not in names.values()])
    return names
