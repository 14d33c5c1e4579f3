"""Unified diffs, plain and git's, applied exactly.

Owns: `apply_patch`. Invariant: a hunk applies at the line it names, with every context line equal, or the whole
patch is refused; paths stay inside; nothing is guessed. (The parser is our own because the libraries refuse or
accept other things than git does: a mark for a missing line end between two files, for one.) Pure.
Must not know: tasks, where trees are kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from practicum.errors import SubmissionError
from practicum.records.tree import File, Tree, check_path

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_GIT_HEADER = re.compile(
    r"(index |similarity index |dissimilarity index |rename from |rename to |old mode |new mode |new file mode |"
    r"deleted file mode )"
)
_UNSUPPORTED = (
    (re.compile(r"GIT binary patch$"), "a git binary patch"),
    (re.compile(r"Binary files? .* differ"), "a binary difference"),
    (re.compile(r"(?:new|new file|deleted file) mode (?:120|160)000$"), "a link or submodule"),
    (re.compile(r"copy (?:from|to) "), "a git copy"),
)


@dataclass(slots=True)
class _Hunk:
    """`start` and `length` in the old file; `lines` as (sign, text with its line end, line of the patch)."""

    start: int
    length: int
    lines: list[tuple[str, str, int]] = field(default_factory=list)


@dataclass(slots=True)
class _FilePatch:
    """One file's part. A name is None for /dev/null."""

    line: int
    source: str | None
    target: str | None
    mode: int | None = None
    hunks: list[_Hunk] = field(default_factory=list)


def apply_patch(tree: Tree, text: str) -> dict[str, File]:
    """`tree` with the unified diff `text` applied.

    Raises `SubmissionError` naming file and line for a path outside the tree, a mismatch, or a kind of patch that
    is not supported (binary, links, copies).
    """
    if not text.strip():
        return dict(tree)
    patches = _Parser(text).parse()
    if not patches:
        raise SubmissionError("the patch holds no file", fix="give a unified diff with --- and +++ lines")
    result = dict(tree)
    touched: set[str] = set()
    for patch in patches:
        for name in {patch.source, patch.target} - {None}:
            if name in touched:
                raise SubmissionError(f"{name}: the patch changes it twice (line {patch.line})")
            touched.add(check_path(str(name)))
        _apply_file(result, patch)
    return result


def _apply_file(result: dict[str, File], patch: _FilePatch) -> None:
    source, target = patch.source, patch.target
    if source is None:
        if target in result:
            raise SubmissionError(f"{target}: the patch adds it (line {patch.line}), but it is there")
        old = File(b"")
    elif source not in result:
        raise SubmissionError(f"{source}: the patch changes it (line {patch.line}), but there is no such file")
    else:
        old = result.pop(source)
    data = _apply_hunks(old.data, patch.hunks, target or source or "")
    if target is None:
        if data:
            raise SubmissionError(f"{source}: the patch deletes it (line {patch.line}), but leaves content")
        return
    if target in result:
        raise SubmissionError(f"{target}: the patch moves a file there (line {patch.line}), but it is taken")
    result[target] = File(data, old.mode if patch.mode is None else patch.mode)


def _apply_hunks(data: bytes, hunks: list[_Hunk], name: str) -> bytes:
    if not hunks:
        return data
    try:
        lines = re.findall(r"[^\n]*\n|[^\n]+", data.decode("utf-8"))
    except UnicodeDecodeError:
        raise SubmissionError(f"{name}: it is not text, so no patch applies") from None
    out: list[str] = []
    at = 0
    for hunk in hunks:
        start = hunk.start - (1 if hunk.length else 0)
        if start < at or start > len(lines):
            raise SubmissionError(f"{name}: the hunk at line {hunk.start} is out of order or out of range")
        out += lines[at:start]
        at = start
        for sign, value, number in hunk.lines:
            if sign != "+":
                found = lines[at] if at < len(lines) else "the end of the file"
                if at >= len(lines) or found != value:
                    raise SubmissionError(
                        f"{name} line {at + 1}: the patch (line {number}) expects {value!r}, but there is {found!r}"
                    )
                at += 1
            if sign != "-":
                out.append(value)
    out += lines[at:]
    for number, piece in enumerate(out[:-1], 1):
        if not piece.endswith("\n"):
            raise SubmissionError(f"{name} line {number}: a line without an end is not the last one")
    try:
        return "".join(out).encode("utf-8")
    except UnicodeEncodeError:
        raise SubmissionError(f"{name}: the patch holds text that is not UTF-8") from None


class _Parser:
    """Reads a patch line by line; `at` is the index of the line to be read next."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        if self.lines[-1] == "":
            self.lines.pop()
        self.at = 0

    def parse(self) -> list[_FilePatch]:
        patches: list[_FilePatch] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("diff --git "):
                patches.append(self._git_file())
            elif line.startswith("--- ") and self._next().startswith("+++ "):
                patch = _FilePatch(self.at + 1, *self._names())
                self._hunks(patch)
                patches.append(patch)
            elif line == "-- " or not (patches and line[:1] in ("+", "-", " ", "@", "\\")):
                self._refuse_unsupported(line)  # words before, between and after, such as a commit message
                self.at += 1
            else:
                raise self._error(f"{line[:60]!r} belongs to no hunk; are the hunk's line counts right?")
        return patches

    def _error(self, what: str) -> SubmissionError:
        return SubmissionError(f"patch line {self.at + 1}: {what}")

    def _next(self) -> str:
        return self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ""

    def _refuse_unsupported(self, line: str) -> None:
        for pattern, name in _UNSUPPORTED:
            if pattern.match(line):
                raise SubmissionError(f"patch line {self.at + 1}: {name} is not supported", fix="submit text files")

    def _git_file(self) -> _FilePatch:
        """A `diff --git` line, its headers, and the names and hunks below them, if any."""
        first, both = self.at + 1, self.lines[self.at].removeprefix("diff --git ")
        self.at += 1
        headers: dict[str, str] = {}
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self._refuse_unsupported(line)
            found = _GIT_HEADER.match(line)
            if found is None:
                break
            headers[found[1].strip()] = line[found.end() :]
            self.at += 1
        if self.at < len(self.lines) and self.lines[self.at].startswith("--- ") and self._next().startswith("+++ "):
            source, target = self._names()
        elif "rename from" in headers and "rename to" in headers:
            source, target = self._plain(headers["rename from"]), self._plain(headers["rename to"])
        else:
            name = both[2 : 2 + (len(both) - 5) // 2]  # "a/NAME b/NAME"
            if both != f"a/{name} b/{name}":
                raise SubmissionError(f"patch line {first}: the file's name cannot be read from {both!r}")
            source = None if "new file mode" in headers else self._plain(name)
            target = None if "deleted file mode" in headers else self._plain(name)
        mode = headers.get("new file mode", headers.get("new mode"))
        patch = _FilePatch(first, source, target, None if mode is None else 0o755 if mode.endswith("755") else 0o644)
        self._hunks(patch)
        return patch

    def _names(self) -> tuple[str | None, str | None]:
        source, target = (line[4:].partition("\t")[0] for line in self.lines[self.at : self.at + 2])
        names = tuple(None if n == "/dev/null" else self._plain(n.removeprefix(p)) for n, p in
                      ((source, "a/"), (target, "b/")))  # fmt: skip
        if names == (None, None):
            raise self._error("both names are /dev/null")
        self.at += 2
        if self.at >= len(self.lines) or not _HUNK.match(self.lines[self.at]):
            raise self._error("there is no hunk below the names")
        return names[0], names[1]

    def _plain(self, name: str) -> str:
        if name.startswith('"'):
            raise SubmissionError(
                f"patch line {self.at + 1}: the quoted name {name} is not supported", fix="git -c core.quotePath=false"
            )
        return name

    def _hunks(self, patch: _FilePatch) -> None:
        while self.at < len(self.lines):
            found = _HUNK.match(self.lines[self.at])
            if found is None:
                return
            hunk = _Hunk(int(found[1]), 1 if found[2] is None else int(found[2]))
            self._hunk(hunk, hunk.length, 1 if found[4] is None else int(found[4]))
            patch.hunks.append(hunk)

    def _hunk(self, hunk: _Hunk, old: int, new: int) -> None:
        """The lines of one hunk: exactly `old` of the old file and `new` of the new one."""
        self.at += 1
        while old > 0 or new > 0 or self._no_line_end():
            if self.at >= len(self.lines):
                raise self._error("the patch ends within a hunk")
            line = self.lines[self.at]
            sign = line[:1] or " "  # an empty context line whose blank was trimmed
            if sign == "\\":
                if not hunk.lines:
                    raise self._error("a hunk cannot start with a mark for a missing line end")
                last, value, number = hunk.lines[-1]
                hunk.lines[-1] = (last, value.removesuffix("\n"), number)
            elif sign in (" ", "+", "-"):
                old -= sign != "+"
                new -= sign != "-"
                hunk.lines.append((sign, line[1:] + "\n", self.at + 1))
            if old < 0 or new < 0 or sign not in (" ", "+", "-", "\\"):
                raise self._error(f"{line[:60]!r} does not fit its hunk's line counts")
            self.at += 1

    def _no_line_end(self) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].startswith("\\ ")
