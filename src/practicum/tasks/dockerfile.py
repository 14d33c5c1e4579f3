"""The part of a Dockerfile that can be honoured without a Docker daemon.

Owns: `read_dockerfile`, `layer_of_image`, which instructions are honoured.
Invariant: an instruction is either honoured in full or refused by name and line; nothing is skipped, and nothing is
made before all has been read.
Must not know: boxes or how layers are made.

FROM takes `python` and images of that name and age, which are this machine's own layer, or any name that an image was
imported by. RUN has no network. A lock that was copied is installed by `RUN pip install -r FILE`. COPY of `workspace/`
says where the agent's files are laid when a box starts; they are not part of the layer.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from practicum.errors import TaskError
from practicum.records.recipe import Copy, Env, Recipe, Requirements, Run, Step, User, Workdir, read_lock
from practicum.records.tree import File, Tree
from practicum.tasks.dockercontext import chosen
from practicum.tasks.dockerwords import Instruction, Unset, instructions, words

_FIX = "use FROM, RUN, COPY, ENV, WORKDIR, USER and ARG only"
_INSTEAD = {
    "ADD": "use COPY, with what it would fetch or unpack put beside the Dockerfile",
    "HEALTHCHECK": "remove it: a box runs one command at a time and no service",
    **dict.fromkeys(("CMD", "ENTRYPOINT"), "remove it: a box runs what it is asked to, and nothing by itself"),
    "EXPOSE": "remove it: boxes have no network",
    "VOLUME": "remove it: what is written in a box is gone with it",
    **dict.fromkeys(("LABEL", "MAINTAINER"), "remove it, or write it as a comment"),
    "SHELL": 'remove it, and write RUN ["bash", "-c", "…"] where another shell is needed',
    "ONBUILD": "write the instruction itself",
    "STOPSIGNAL": "remove it: boxes end at once",
}
_PYTHON_3 = re.compile(r"(?:docker\.io/)?(?:library/)?python(?::3(?:\.(\d+)(?:\.\d+)?)?(?:-(?:slim|[a-z]+))*)?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:[/:@][A-Za-z0-9_][A-Za-z0-9._-]*)*")
_NAME_FIX = "letters, digits, '.', '_' and '-', with '/', ':' or '@' between: python, org/tool:1.2"
_USERS = {"root": "root", "0": "root", "agent": "agent", "1000": "agent"}
_PIP = re.compile(r"(?:python3? -m )?pip3? install (.*)")
_PIP_OPTIONS = re.compile(
    r"--no-cache-dir|--require-hashes|--no-deps|--only-binary(?:=:all:)?|:all:|--no-input|--upgrade|-U|--quiet|-q"
    r"|--disable-pip-version-check|--root-user-action=\w+|--break-system-packages|--no-compile"
)


@dataclass(frozen=True, slots=True)
class Image:
    """What a Dockerfile says: the layer it makes, its last WORKDIR, where the workspace is copied.

    `used` are the paths beside the Dockerfile that it copies.
    """

    layer: str | Recipe
    workdir: str | None
    copied_to: str | None
    used: frozenset[str] = frozenset()


def layer_of_image(image: str, where: str) -> str:
    """The layer that stands for `image`: `python`, or one that was imported by that name. `TaskError` for no name."""
    found = _PYTHON_3.fullmatch(image)
    if found is not None and (found[1] is None or int(found[1]) >= 11):
        return "python"
    if not _NAME.fullmatch(image):
        raise TaskError(f"{where}: {image!r} is no name of an image", fix=_NAME_FIX)
    return image


def read_dockerfile(text: str, where: str, context: Tree | None = None) -> Image:
    """What the Dockerfile `text` makes; `context` are the files beside it, as COPY names them.

    Raises `TaskError` with file, line and instruction for what cannot be honoured.
    """
    reader = _Reader(text, where, context or {})
    for instruction in instructions(text, where):
        reader.take(instruction)
    return reader.image()


@dataclass(slots=True)
class _Reader:
    """The state of reading: what is known so far."""

    text: str
    where: str
    context: Tree
    base: str | None = None
    steps: list[Step] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    args: dict[str, str | None] = field(default_factory=dict)
    first_args: dict[str, str | None] = field(default_factory=dict)  # before FROM, where they are known to it alone
    workdir: str | None = None
    copied_to: str | None = None
    used: set[str] = field(default_factory=set)
    copied: dict[str, File] = field(default_factory=dict)
    here: str = ""

    def take(self, given: Instruction) -> None:
        self.here = f"{self.where} line {given.line}"
        honoured = {
            "FROM": self._from,
            "RUN": self._run,
            "COPY": self._copy,
            "ENV": self._env,
            "WORKDIR": self._workdir,
            "USER": self._user,
            "ARG": self._arg,
        }
        if given.name not in honoured:
            raise self._refuse(given, fix=_INSTEAD.get(given.name, _FIX))
        if self.base is None and given.name not in ("FROM", "ARG"):
            raise self._refuse(given, "cannot be honoured: there is no FROM above it")
        try:
            honoured[given.name](given)
        except Unset as error:
            raise self._refuse(
                given, f"uses ${error}, which no ARG or ENV above gives a value", fix="give it one: ARG NAME=value"
            ) from None
        except ValueError as error:
            raise self._refuse(given, f"cannot be read: {error}") from None

    def _refuse(self, given: Instruction, why: str = "cannot be honoured here", *, fix: str = _FIX) -> TaskError:
        first = given.text if len(given.text) < 200 else f"{given.text[:200]}…"
        return TaskError(f"{self.here}: the instruction `{first}` {why}", fix=fix)

    def _lookup(self, name: str) -> str | None:
        value = self.env.get(name, self.args.get(name))
        if value is not None and re.search(r"\$\{", value.replace("$$", "")):
            raise Unset(name)  # known only where the layer below is
        return None if value is None else value.replace("$$", "$")

    def _words(self, given: Instruction) -> list[str]:
        return words(given.rest, self._lookup)

    def _from(self, given: Instruction) -> None:
        if self.base is not None:
            raise self._refuse(given, "begins a second stage", fix="make the image of one stage")
        found = words(given.rest, self.first_args.get)
        if len(found) == 3 and found[1].upper() == "AS":
            found = found[:1]
        if len(found) != 1 or found[0].startswith("-"):
            raise self._refuse(given)
        self.base = layer_of_image(found[0], self.here)

    def _arg(self, given: Instruction) -> None:
        for word in words(given.rest, self.first_args.get if self.base is None else self._lookup):
            name, equals, value = word.partition("=")
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise self._refuse(given)
            if self.base is None:
                self.first_args[name] = value if equals else None
            else:
                self.args[name] = value.replace("$", "$$") if equals else self.first_args.get(name)

    def _env(self, given: Instruction) -> None:
        def lookup(name: str) -> str | None:
            return self.env.get(name, self.args.get(name))

        if re.match(r"[A-Za-z_][A-Za-z0-9_]*\s+[^=\s]|[A-Za-z_][A-Za-z0-9_]*\s+\S+", given.rest):
            name, _, value = re.sub(r"\s+", " ", given.rest, count=1).partition(" ")
            pairs = [(name, " ".join(words(value, lookup, late=True)))]
        else:
            split = [word.partition("=") for word in words(given.rest, lookup, late=True)]
            if not split or not all(equals and re.fullmatch(r"[A-Za-z_]\w*", name) for name, equals, _ in split):
                raise self._refuse(given)
            pairs = [(name, value) for name, _, value in split]
        self.env |= dict(pairs)
        self.steps.append(Env(tuple(pairs)))

    def _workdir(self, given: Instruction) -> None:
        found = self._words(given)
        if len(found) != 1:
            raise self._refuse(given)
        self.workdir = self._absolute(found[0])
        self.steps.append(Workdir(self.workdir))

    def _absolute(self, path: str) -> str:
        return "/" + posixpath.normpath(posixpath.join(self.workdir or "/", path)).lstrip("/")

    def _user(self, given: Instruction) -> None:
        found = self._words(given)
        user, _, group = found[0].partition(":") if len(found) == 1 else ("", "", "")
        if user not in _USERS or (group and _USERS.get(group) != _USERS[user]):
            raise self._refuse(given, fix="a box has two users: USER root and USER agent (uid 1000)")
        self.steps.append(User(_USERS[user]))

    def _run(self, given: Instruction) -> None:
        if self.copied_to is not None:
            raise self._refuse(
                given,
                "stands after the COPY of the workspace, which is laid when a box starts",
                fix="copy the workspace last; what RUN needs, copy by itself from another folder",
            )
        if re.match(r"--[a-z]+", given.rest):
            raise self._refuse(given, "has an option that cannot be honoured here", fix="write RUN without options")
        if lock := self._lock(given):
            self.steps.append(lock)
            return
        command = tuple(_listed(given.rest) or ("/bin/sh", "-c", _script(given)))
        args = tuple((name, value.replace("$$", "$")) for name, value in self.args.items() if value is not None)
        self.steps.append(Run(command, args, f"{self.here}: `{given.text}`"))

    def _lock(self, given: Instruction) -> Requirements | None:
        """`pip install -r FILE` of a file that was copied: a lock, which is installed without running anything."""
        found = _PIP.fullmatch(" ".join(given.rest.split()))
        if found is None or self.base != "python":
            return None
        options, _, file = re.sub(r"(^| )(-r|--requirement)[ =]?", r"\1-r ", found[1]).partition("-r ")
        name, _, more = file.partition(" ")
        copied = self.copied.get(self._absolute(name)) if name else None
        if copied is None or not all(_PIP_OPTIONS.fullmatch(word) for word in (options + more).split()):
            return None
        where = f"{self.here}: {name}"
        return Requirements(read_lock(copied.data.decode("utf-8", "replace"), where), where)

    def _copy(self, given: Instruction) -> None:
        if given.document:
            raise self._refuse(given, "holds a here-document", fix="put the file beside the Dockerfile and copy that")
        found = _listed(given.rest) or self._words(given)
        mode = None
        while found and found[0].startswith("--"):
            option = re.fullmatch(r"--chmod=0?([0-7]{3})", found.pop(0))
            if option is None:
                raise self._refuse(given, "has an option that cannot be honoured here", fix="use --chmod only")
            mode = int(option[1], 8)
        if len(found) < 2:
            raise self._refuse(given)
        *sources, target = found
        if len(sources) == 1 and mode is None and _is_workspace(sources[0]):
            if self.copied_to is not None:
                raise self._refuse(given, "copies the workspace a second time")
            self.copied_to = self._absolute(target)
            return
        self._copy_files(given, sources, target, mode)

    def _copy_files(self, given: Instruction, sources: list[str], target: str, mode: int | None) -> None:
        files: dict[str, File] = {}
        single = True
        for source in sources:
            taken, several = chosen(self.context, source)
            single = single and len(sources) == 1 and not several
            for name, path in taken.items():
                file = self.context[path]
                files[name] = File(file.data, (0o755 if mode & 0o111 else 0o644) if mode is not None else file.mode)
                self.used.add(path)
        alone = single and not target.endswith("/") and target not in (".", "..")
        place = self._absolute(target)
        if any(place == own or place.startswith(own + "/") for own in ("/proc", "/dev", "/sys", "/tmp")):
            raise self._refuse(
                given,
                f"copies to {place}, which is empty in each box",
                fix="copy it to another folder, such as /opt",
            )
        self.steps.append(Copy(files, place, alone, f"{self.here}: `{given.text}`"))
        for name, file in files.items():
            self.copied[place if alone else posixpath.join(place, name)] = file

    def image(self) -> Image:
        if self.base is None:
            raise TaskError(f"{self.where}: there is no FROM", fix=_FIX)
        if self.copied_to is not None and self.workdir is not None and self.copied_to != self.workdir:
            raise TaskError(
                f"{self.where}: the workspace is copied to {self.copied_to} but WORKDIR ends as {self.workdir}",
                fix="let both be the same",
            )
        used = frozenset(self.used)
        if all(isinstance(step, Workdir) for step in self.steps):  # the box makes its own folder
            return Image(self.base, self.workdir, self.copied_to, used)
        context: Mapping[str, File] = {name: self.context[name] for name in sorted(used)}
        return Image(Recipe(self.base, tuple(self.steps), self.text, context), self.workdir, self.copied_to, used)


def _listed(rest: str) -> list[str] | None:
    """The words of the JSON form; None for the other form, which may begin with a bracket as well."""
    try:
        found = json.loads(rest) if rest.startswith("[") else None
    except ValueError:
        return None
    return found if isinstance(found, list) and found and all(isinstance(word, str) for word in found) else None


def _script(given: Instruction) -> str:
    """What the shell is given. A RUN that is nothing but a here-document is that document."""
    if not given.document:
        return given.rest
    alone = re.fullmatch(r"<<-?(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1", given.rest)
    if alone is None:
        return f"{given.rest}\n{given.document}"
    if given.document.startswith("#!"):
        raise ValueError("a script with an interpreter of its own is not known here")
    lines = given.document.splitlines(keepends=True)[:-1]
    return "".join(line.lstrip("\t") if "<<-" in given.rest else line for line in lines)


def _is_workspace(source: str) -> bool:
    return source.removeprefix("./").rstrip("/") in ("workspace", "workspace/.")
