"""What a task keeps back: the gold and the tests, and whether a text gives them away.

Owns: `Kept`, `kept_of`, `Told`, `nothing_hidden`.
Invariant: pure; the same rules for whatever is within reach: every reading of it, whole or in parts.
Must not know: boxes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from practicum.curation.gates.leaks.bytecode import Names, names_of
from practicum.curation.gates.leaks.readings import readings
from practicum.curation.gates.leaks.shapes import Shapes, asides, code_only, shapes_of
from practicum.curation.gates.overlap import LEAST, Secret, plain, runs_of, secret_of
from practicum.curation.gates.testcode import TestCode, test_codes, test_modules
from practicum.records.task import Task
from practicum.records.verdict import Submission
from practicum.verification.submission import judged_files

ANSWER = re.compile(
    r"(?:.*[._-])?(?:solutions?|solve|gold|golden|answers?|oracle|fix|fixed|reference|correct)(?:[._-].*)?"
    r"|.*(?:\.orig|\.rej|\.patch|\.diff|\.bak|\.old|~|\.swp)",
    re.IGNORECASE,
)
_ARCHIVE = re.compile(r".*\.(?:zip|tar|tgz|tar\.\w+|whl|egg|gz|bz2|xz|7z)", re.IGNORECASE)
_PIECES, _PIECE, _TOGETHER = 4, 0.15, 0.5
_PARTED = 24  # runs of a gold that is worth taking apart; less is a line or two
_LINE, _RARE = 10, 20

Told = dict[str, str]


@dataclass(slots=True)
class Kept:
    """Secrets of one task, and what was seen of them so far.

    `answer` is what the gold says anew, `code` the same of its code alone, for the comments of files under repair.
    """

    answer: Secret
    code: Secret
    questions: Secret
    shapes: Shapes
    names: Names
    seen: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    cut_short: list[str] = field(default_factory=list)

    def told(self, where: str, data: bytes, *, name: str = "", gold_only: bool = False) -> Told | None:
        """What is given away by `data`, read in every way. `name` is that of the file, if it is one."""
        suspicious = bool(ANSWER.fullmatch(name))
        for how, text in readings(data):
            if text is None:
                self.cut_short.append(where)
                continue
            words = text.decode("utf-8", "replace")
            said = runs_of(words)
            found = self._gold(where, text, words, said, suspicious)
            found = found or (None if gold_only else self._tests(text, words, said))
            if found:
                return {**found, "how": f"{found['how']} ({how})" if how else found["how"]}
        if suspicious and _ARCHIVE.fullmatch(name):
            return {"what": "the gold", "how": "an archive whose name promises an answer"}
        return None

    def told_by_own(self, where: str, data: bytes) -> Told | None:
        """The same of a file under repair, which may hold of the gold what its code holds."""
        for how, text in readings(asides(data)):
            if text is None:
                self.cut_short.append(where)
                continue
            said = text.decode("utf-8", "replace")
            found = self.code.found_in(text) or self.shapes.found_in(said)
            if found:
                return {"what": "the gold", "how": f"{found} in comments or strings" + (f" ({how})" if how else "")}
        for how, text in readings(data):
            words = (text or b"").decode("utf-8", "replace")
            if text is not None and (found_tests := self._tests(text, words, runs_of(words))):
                return {**found_tests, "how": f"{found_tests['how']} ({how})" if how else found_tests["how"]}
        return None

    def touched(self, data: bytes) -> bool:
        """Whether a line of the gold stands in `data`: a quick look at what is long and most likely honest."""
        return any(line.encode() in data for line in self.answer.lines if len(line) >= _RARE)

    def said_in_passing(self, text: str) -> Told | None:
        """A line of the gold within a text that has no lines of its own, such as a variable."""
        lines = sorted(line for line in self.answer.lines if len(line) >= _LINE and re.search(r"\W", line.strip(" :")))
        line = next((line for line in lines if line in text), None)
        return {"what": "the gold", "how": f"the line {line!r:.120}"} if line else None

    def in_pieces(self) -> Told | None:
        """Whether a few of the texts seen give the gold away together."""
        runs = len(self.code.runs or self.answer.runs)
        if runs < _PARTED:
            return None
        left, total, taken = dict(self.seen), set[int](), list[str]()
        while left and len(taken) < _PIECES:
            best = min(left, key=lambda where: (-len(left[where] - total), where))
            more = left.pop(best) - total
            if len(more) < max(LEAST, _PIECE * runs):
                break
            total |= more
            taken.append(best)
        if len(taken) > 1 and len(total) >= _TOGETHER * runs:
            how = f"{len(total)} of {runs} runs of tokens together"
            return {"where": " and ".join(sorted(taken)), "what": "the gold", "how": how}
        return None

    def _gold(self, where: str, data: bytes, text: str, said: Set[int] | None, suspicious: bool) -> Told | None:
        if data in self.answer.files:
            return {"what": "the gold", "how": "the same file"}
        how = self.answer.lines_in(text) if suspicious else None
        if how is None:
            shared = self.answer.shared(text, said)
            self.seen[where] |= self.code.shared(text, said) if self.code.runs else shared
            how = self.answer.enough(len(shared)) or self.shapes.found_in(text)
        return {"what": "the gold", "how": how} if how else None

    def _tests(self, data: bytes, text: str, said: Set[int] | None) -> Told | None:
        same = "the same file" if data in self.questions.files else None
        how = same or self.questions.enough(len(self.questions.shared(text, said)))
        return {"what": "the frozen tests", "how": how} if how else None


def kept_of(task: Task, gold: Submission) -> Kept:
    """What the gold says beyond the files that it changes, and the tests of fail_to_pass beyond those shown."""
    changed = [change.path for change in gold.changes]
    right = judged_files(task, gold)
    made = [right[path].data for path in changed if path in right]
    kept = [*made, *(file.data for path, file in task.solution.items() if path not in changed)]
    given = [task.files[path].data for path in changed if path in task.files]
    python = [path for path in changed if path.endswith(".py") and path in right]
    right_python = [right[path].data for path in python]
    given_python = [task.files[path].data for path in python if path in task.files]
    code = secret_of(map(code_only, right_python), map(code_only, given_python))
    return Kept(
        secret_of(kept, given),
        code,
        _questions(task),
        shapes_of(right_python, given_python),
        names_of(right_python, given_python),
    )


def _questions(task: Task) -> Secret:
    check = task.verification
    given = [check.tests[name].data for name in check.visible if name in check.tests]
    if check.plain is not None:
        wanted = set(check.fail_to_pass)
        lines = check.tests[check.plain.cases].data.splitlines() if check.plain.cases in check.tests else []
        kept = [line for line in lines if any(f'"{name}"'.encode() in line for name in wanted)]
        return secret_of([b"\n".join(kept)], given)
    if check.runner == "harbor":
        return secret_of([file.data for name, file in check.tests.items() if name not in check.visible], given)
    return secret_of(list(_sources(task)), given)


def _sources(task: Task) -> Iterator[bytes]:
    """What each test of fail_to_pass says, as far as it is Python."""
    modules = test_modules(task)
    for code in test_codes(task, task.verification.fail_to_pass):
        data = task.verification.tests[code.file].data
        yield data if code.own is modules.get(code.file) else _lines_of(code, data)


def _lines_of(code: TestCode, data: bytes) -> bytes:
    marks: Iterable[int] = (mark.lineno for mark in getattr(code.own, "decorator_list", ()))
    start = min([getattr(code.own, "lineno", 1), *marks])
    return b"\n".join(data.split(b"\n")[start - 1 : getattr(code.own, "end_lineno", None)])


def nothing_hidden(task: Task) -> str | None:
    """Why the tests that decide are no secret: what is shown of them says as much as they do."""
    check = task.verification
    shown = {name: check.tests[name].data for name in check.visible if name in check.tests}
    asking = [name for name in check.files if name in check.tests and name not in check.visible]
    for name in asking:
        same = next((other for other in sorted(shown) if shown[other] == check.tests[name].data), None)
        if same is not None and check.plain is None:
            return f"{same}, which is shown, is the same as {name}"
    sources = [_flat(source) for source in _sources(task)] if check.plain is None else []
    said = " ".join(_flat(data) for data in shown.values())
    codes = test_codes(task, check.fail_to_pass)
    asked = {name.partition("[")[0] for name in check.fail_to_pass}
    if sources and said and {code.id for code in codes} == asked and all(source in said for source in sources):
        return "all tests of fail_to_pass stand in tests that are shown"
    return None


def _flat(data: bytes) -> str:
    return " ".join(re.findall(r"\w+|[^\w\s]", plain(data.decode("utf-8", "replace"))))
