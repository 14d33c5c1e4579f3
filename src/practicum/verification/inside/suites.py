"""Driver of frozen pytest and unittest suites.

Invariant: the framework is loaded, and says where it comes from, before the workspace is importable; each outcome
leaves the test process over a pipe of its own as it happens, and only the ids to run are run. Nothing from the
workspace configures the run: no conftest, ini file, plugin or start-up file of it is looked for.
The submission shares an interpreter with the tests, so code written to that end can change the framework, or the
pipe's content. What it cannot know is which of the answers that the tests ask about is right (`sentinels`): neither
this process nor its child nor any file in the box holds it.
Must not know: which ids decide, which alternative of an assertion is its author's.

Job (marshal, on stdin): kind, tests (folder), files, run (ids), checks (name of the module that tests import), roots,
timeout_s, max_bytes, ini, conftest, and perhaps cpu_s (of the test process). Output, a JSON line each: `"ready"`, then
`{"how", "status", "reports", "output", "s"}`; `reports` is the pipe's content: `[id, phase, outcome]`, and
`[id, "asked", [[tag, held, passed, total, why]]]` before the phase in which it was asked.
"""

from __future__ import annotations

import marshal
import os
import resource
import select
import sys
import time

sys.path.insert(0, __file__.rpartition("/")[0])

from candidate import CHUNK, seal, write_all  # type: ignore[import-not-found]
from checks import Check, Checks  # type: ignore[import-not-found]
from intact import changes, fingerprint  # type: ignore[import-not-found]
from values import encode  # type: ignore[import-not-found]

del sys.path[0]
for own in ("candidate", "checks", "intact", "values"):
    del sys.modules[own]  # the names are the workspace's

TYPE_CHECKING = False  # `typing` itself would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

OUTPUT_BYTES = 8192
# Plugins of pytest's own that a frozen suite has no use for; each costs at every start.
UNUSED = (
    *("cacheprovider", "debugging", "doctest", "faulthandler", "junitxml", "nose"),
    *("pastebin", "setuponly", "setupplan", "stepwise", "threadexception", "unraisableexception"),
)
PASSED, FAILED = "passed", "failed"


class Reporter:
    """Writes one line per finished phase, after what was asked in it."""

    def __init__(self, sink: int, checks: Checks) -> None:
        self.sink = sink
        self.checks = checks

    def tell(self, name: str, phase: str, outcome: str) -> None:
        asked = self.checks.taken()
        text = f'[{encode(name)},"asked",{encode(asked, 1 << 22)}]\n' if asked else ""
        write_all(self.sink, f"{text}[{encode(name)},{encode(phase)},{encode(outcome)}]\n".encode())


class Listener:
    """What every plugin that is given to a run has in common."""

    def pytest_configure(self, config: Any) -> None:
        config.option.trace = config.option.usepdb = False  # asked for by unittest's classes; their plugin is left out


class PytestPlugin(Listener):
    """Selects the ids to run (None: all) and reports their phases; a skip, xfail or xpass is not a pass."""

    def __init__(self, reporter: Reporter, run: list[str] | None) -> None:
        self.reporter = reporter
        self.run = None if run is None else frozenset(run)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if self.run is None or item.nodeid in self.run]

    def pytest_runtest_logreport(self, report: Any) -> None:
        plain = report.outcome == PASSED and not hasattr(report, "wasxfail")
        self.reporter.tell(report.nodeid, report.when, PASSED if plain else FAILED)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.reporter.tell("", "end", str(int(exitstatus)))


def options(ini: str, folder: str, *, conftest: bool) -> list[str]:
    """Those of pytest.

    Assertions are not rewritten: why one failed is what `checks` says. Nor is output captured, which would take files
    of its own at each start. Tracebacks are Python's: for pytest's, each frame's file is parsed, which takes longer
    than most tests.
    """
    return [
        *("-c", ini, "--rootdir", folder, "--confcutdir", folder, "--import-mode", "prepend"),
        *(part for plugin in UNUSED for part in ("-p", f"no:{plugin}")),
        *("-q", "-s", "--assert", "plain", "--tb", "native", "--color", "no"),
        *(() if conftest else ("--noconftest",)),
    ]


def prepare(kind: str, ini: str, folder: str) -> None:
    """Do once, in the warm process, what each run would do anew. Nothing of a submission is there yet."""
    intact[kind] = fingerprint(kind, OWN)
    if kind == "pytest":
        from _pytest.config import _prepareconfig

        prepared[ini, folder] = _prepareconfig([*options(ini, folder, conftest=False), folder])


prepared: dict[tuple[str, str], Any] = {}
intact: dict[str, dict[str, tuple[int, int]]] = {}  # the framework as it was before it was prepared


def run_pytest(job: dict[str, Any], reporter: Reporter) -> int:
    return run_with(job, PytestPlugin(reporter, job["run"]))


def run_with(job: dict[str, Any], plugin: Any, further: tuple[str, ...] = ()) -> int:
    """One run, as every run of a suite is made, with options besides."""
    import pytest

    folder, ini = job["tests"], job["ini"]
    files = [f"{folder}/{name}" for name in job["files"]]
    config = None if job["conftest"] or further else prepared.get((ini, folder))
    if config is None:
        return int(pytest.main([*options(ini, folder, conftest=job["conftest"]), *further, *files], plugins=[plugin]))
    config.args = config.option.file_or_dir = files
    config.pluginmanager.register(plugin)
    try:
        return int(config.hook.pytest_cmdline_main(config=config))
    except pytest.UsageError as error:
        sys.stderr.write(f"{error}\n")
        return int(pytest.ExitCode.USAGE_ERROR)
    finally:
        config._ensure_unconfigure()


def run_unittest(job: dict[str, Any], reporter: Reporter) -> int:
    import unittest

    class Result(unittest.TextTestResult):
        """Reports successes; whatever else a test does, it leaves no success."""

        def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802  unittest's name
            super().addSuccess(test)
            reporter.tell(test.id(), "call", PASSED)

        def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
            super().stopTest(test)
            reporter.tell(test.id(), "teardown", PASSED)

    sys.path.insert(0, job["tests"])
    wanted = frozenset(job["run"])
    suite = unittest.TestSuite()
    for name in job["files"]:
        todo: list[Any] = [unittest.defaultTestLoader.loadTestsFromName(name.removesuffix(".py").replace("/", "."))]
        while todo:
            test = todo.pop(0)
            if isinstance(test, unittest.TestSuite):
                todo[:0] = list(test)
            elif test.id() in wanted:
                suite.addTest(test)
    result = unittest.TextTestRunner(
        stream=sys.stderr,
        resultclass=Result,  # type: ignore[arg-type]
        verbosity=0,
    ).run(suite)
    status = 0 if result.wasSuccessful() else 1
    reporter.tell("", "end", str(status))
    return status


OWN = (Check, Checks, Reporter)


def failures(kind: str) -> tuple[type[BaseException], ...]:
    """What the framework raises, beside AssertionError, where an assertion fails."""
    if kind == "unittest":
        return ()
    import pytest

    return (pytest.fail.Exception,)


def bound(job: dict[str, Any]) -> None:
    """Have this process ended by SIGKILL once it has used as many seconds of a processor as the job allows."""
    if job.get("cpu_s"):
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        most = job["cpu_s"] if hard == resource.RLIM_INFINITY else min(job["cpu_s"], hard)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def child(job: dict[str, Any], sink: int, output: int) -> None:
    """The test process."""
    seal(False)
    os.setsid()
    null = os.open("/dev/null", os.O_RDONLY)
    for target, source in enumerate((null, output, output)):
        os.dup2(source, target)
    kept = os.dup2(sink, 3)
    os.closerange(4, 1024)
    bound(job)
    checks = sys.modules[job["checks"]] = Checks(failures(job["kind"]))
    run = run_pytest if job["kind"] == "pytest" else run_unittest
    reporter = Reporter(kept, checks)
    before = intact.get(job["kind"]) or fingerprint(job["kind"], OWN)
    sys.path += job["roots"]
    status = run(job, reporter)
    changed = changes(before, fingerprint(job["kind"], OWN))
    if changed:
        reporter.tell("", "changed", changed)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def watch(pid: int, reports: int, output: int, job: dict[str, Any]) -> tuple[str, int, bytes, bytes]:
    """Read both pipes until the test process ends, the time is over or it reports too much; then end it."""
    how, told, tail = "ended", bytearray(), bytearray()
    poll = select.poll()
    poll.register(reports, select.POLLIN)
    poll.register(output, select.POLLIN)
    handle = os.pidfd_open(pid)
    poll.register(handle, select.POLLIN)
    end = time.monotonic() + job["timeout_s"]
    over = False
    while True:
        left = end - time.monotonic()
        if left <= 0:
            how = "timeout"
            break
        ready = dict(poll.poll(0 if over else left * 1000))
        got = False
        for fd, kept in ((reports, told), (output, tail)):
            if fd in ready:
                part = os.read(fd, CHUNK)
                got = got or bool(part)
                kept += part
                if not part:
                    poll.unregister(fd)
        del tail[:-OUTPUT_BYTES]
        if len(told) > job["max_bytes"]:
            how = "flood"
            break
        if over and not got:  # it has ended, and what it wrote has been read
            break
        over = over or handle in ready
    try:
        os.killpg(pid, 9)
    except ProcessLookupError:
        os.kill(pid, 9)
    return how, os.waitpid(pid, 0)[1], bytes(told), bytes(tail)


def main() -> None:
    seal(True)
    job = marshal.loads(sys.stdin.buffer.read())
    __import__(job["kind"])
    write_all(1, b'"ready"\n')
    start = time.monotonic()
    reports, sink = os.pipe()
    output, source = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child(job, sink, source)
        except BaseException:  # noqa: BLE001  the parent must see an exit status, whatever happened
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        finally:
            os._exit(70)
    os.close(sink)
    os.close(source)
    how, status, told, tail = watch(pid, reports, output, job)
    took = time.monotonic() - start
    texts = [encode(data.decode("latin-1"), 1 << 30) for data in (told, tail)]
    fields = f'"how":{encode(how)},"status":{status},"reports":{texts[0]},"output":{texts[1]},"s":{took:.4f}'
    write_all(1, f"{{{fields}}}\n".encode())


if __name__ == "__main__":
    main()
