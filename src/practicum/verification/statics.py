"""Static checks of changed files.

Owns: `Security` (rules of our own, by parsing on the host), `Tool` (a checker of the layer, run in a box).
Invariant: only problems that a change brings count, never those that were there; no code of the candidate runs; a tool
that the layer does not have gives no signal. Must not know: rewards.
"""

from __future__ import annotations

import ast
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence

from practicum.errors import SandboxError, SubmissionError
from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.records.verdict import Missing, Signal, Submission, Verdict
from practicum.sandboxes.contract import BoxSpec, SandboxProvider
from practicum.verification.submission import judged_files

_CALLS = frozenset(
    [
        *("eval", "exec", "os.system", "os.popen", "pickle.loads", "pickle.load", "marshal.loads", "marshal.load"),
        *("shelve.open", "tempfile.mktemp", "yaml.unsafe_load", "ctypes.CDLL", "sys.settrace", "sys.setprofile"),
        *("os._exit", "gc.get_objects", "sys._getframe", "inspect.stack", "inspect.currentframe"),
    ]
)
_SHELL = frozenset(
    ["subprocess.run", "subprocess.call", "subprocess.Popen", "subprocess.check_output", "subprocess.check_call"]
)
_TOOL_S = 60.0
_NO_PYTHON = Missing("no Python file was changed")
STYLE = (
    "python3",
    "-I",
    "-m",
    "ruff",
    "check",
    "--isolated",
    "--no-cache",
    "--output-format",
    "concise",
    "--exit-zero",
)
TYPES = (
    "python3",
    "-I",
    "-m",
    "mypy",
    "--config-file=",
    "--no-incremental",
    "--ignore-missing-imports",
    "--no-error-summary",
)


def _score(before: Mapping[str, int], after: Mapping[str, int]) -> float:
    """1 where nothing came, and less for each problem that did."""
    new = sum(max(0, count - before.get(kind, 0)) for kind, count in after.items())
    return 1.0 / (1.0 + new)


class Security:
    """Calls that run text as code, give away the shell or read what belongs to the caller."""

    name = "security"
    version = ""

    async def signal(self, task: Task, submission: Submission, verdict: Verdict) -> Signal | Missing:
        """1 for a change that brings no such call; missing where no Python file was changed."""
        before, after, seen = Counter[str](), Counter[str](), False
        for change in submission.changes:
            if change.path.endswith(".py"):
                seen = True
                before += risky_calls(task.files[change.path].data) if change.path in task.files else Counter[str]()
                after += risky_calls(change.file.data) if change.file is not None else Counter[str]()
        return Signal(self.name, _score(before, after)) if seen else _NO_PYTHON


def risky_calls(source: bytes) -> Counter[str]:
    """How often each risky call stands in `source`; a source that does not parse counts as one."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return Counter(["does not parse"])
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {name.asname: name.name for name in node.names if name.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            aliases |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
    found = Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            head, dot, rest = ast.unparse(node.func).partition(".")
            name = aliases.get(head, head) + dot + rest
            shell = any(
                keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
                for keyword in node.keywords
            )
            if name in _CALLS or (name in _SHELL and shell):
                found[name] += 1
    return found


class Tool:
    """A checker that prints one line a problem, `path:…`, run over the changed Python files before and after."""

    version = ""  # it is the layer's

    def __init__(self, provider: SandboxProvider, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._provider = provider
        self._command = tuple(command)

    async def signal(self, task: Task, submission: Submission, verdict: Verdict) -> Signal | Missing:
        """1 for a change that brings no problem; missing without the tool, its box, or a changed Python file."""
        paths = [change.path for change in submission.changes if change.path.endswith(".py")]
        if not paths:
            return _NO_PYTHON
        try:
            before = await self._problems(task, task.files, paths)
            after = await self._problems(task, judged_files(task, submission), paths)
        except (SandboxError, SubmissionError, TimeoutError) as error:
            return Missing(f"the checker could not be run ({type(error).__name__})")
        if before is None or after is None:
            return Missing("the layer has no such checker, or it came to no end")
        return Signal(self.name, _score(before, after))

    async def _problems(self, task: Task, tree: Tree, paths: list[str]) -> Counter[str] | None:
        """Lines by path of `tree`, or None where the tool did not run."""
        paths = [path for path in paths if path in tree]
        if not paths:
            return Counter()
        spec = BoxSpec(f"check-{uuid.uuid4().hex[:12]}", task.layer, task.workspace, tree, limits=task.limits)
        async with self._provider.create(spec) as box:
            done = await box.run([*self._command, "--", *paths], timeout_s=_TOOL_S)
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        problems = Counter(line.partition(":")[0] for line in lines if line.partition(":")[0] in paths)
        if done.timed_out or done.exit_code not in (0, 1) or (done.exit_code == 1 and not problems):
            return None  # 1 with no problem: there is no such module
        return problems
