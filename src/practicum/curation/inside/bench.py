"""Runs a project's suite as the judge's driver of suites would, and says what each test did and which lines it ran.

Invariant: process, options, path and order of files are those of the judge's driver, which is used for it; nothing is
added but a plugin that listens and, where asked for, coverage.
Must not know: what the findings are for.

Lies beside the judge's drivers and is spoken to like them. Job (marshal, on stdin): what `suites` takes, where `run`
may be None for all tests, and workspace, order (seed, `reversed`, or None), explain, keep_going, coverage
(folder or None). Output, a JSON line each: `"ready"`, then `{"how", "status", "reports", "output", "s"}`; `reports`
holds JSON lines: `["ids", [id]]`, `["start", id]`, `["test", id, phase, outcome, seconds, message]`,
`["collect", id, message]`, `["covered", base64 of zlib of JSON {path: {id: [line]}}]`, `["end", status]`.
"""

from __future__ import annotations

import base64
import json
import marshal
import os
import random
import sys
import time
import zlib

sys.path.insert(0, __file__.rpartition("/")[0])

import suites  # type: ignore[import-not-found]

del sys.path[0], sys.modules["suites"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MESSAGE_CHARS = 4000


class Plugin(suites.Listener):  # type: ignore[misc]
    """Selects the ids to run and reports what happens; what is not plainly passed is said not to be."""

    def __init__(self, sink: int, job: dict[str, Any], tracer: Any) -> None:
        self.sink = sink
        self.run = None if job["run"] is None else frozenset(job["run"])
        self.order = job["order"]
        self.tracer = tracer
        self.keep_going = job["keep_going"]

    def pytest_configure(self, config: Any) -> None:
        super().pytest_configure(config)
        config.option.tbstyle = "line"  # finding the source of each frame takes longer than most tests
        config.option.continue_on_collection_errors = self.keep_going

    def tell(self, *fields: Any) -> None:
        suites.write_all(self.sink, json.dumps(fields).encode() + b"\n")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.tell("collect", report.nodeid, message_of(report))

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.run is not None:
            items[:] = [item for item in items if item.nodeid in self.run]
        if self.order == "reversed":
            items.reverse()
        elif self.order is not None:
            random.Random(self.order).shuffle(items)
        self.tell("ids", [item.nodeid for item in items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tell("start", nodeid)
        if self.tracer is not None:
            self.tracer.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "skipped" if outcome == "skipped" else "failed"
        message = message_of(report) if outcome == "failed" else ""
        if outcome == "failed" and report.outcome == "passed":
            message = "it is expected to fail, and passed"
        self.tell("test", report.nodeid, report.when, outcome, report.duration, message)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.tell("end", int(exitstatus))


def message_of(report: Any) -> str:
    """What went wrong, without where."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr or "")
    if crash is None:  # a file that was not collected: a traceback, whose last lines begin with E
        text = "\n".join(line[1:].strip() for line in text.splitlines() if line.startswith("E ")) or text
    return text if len(text) <= MESSAGE_CHARS else f"{text[:MESSAGE_CHARS]}…"


def start_coverage(job: dict[str, Any]) -> Any:
    """A tracer of the workspace's lines, or None. Loaded before the workspace can be imported."""
    if job["coverage"] is None:
        return None
    sys.path.append(job["coverage"])
    import coverage

    sys.path.remove(job["coverage"])
    tracer = coverage.Coverage(
        data_file=None, config_file=False, include=[f"{job['workspace']}/*"], branch=False, messages=False
    )
    tracer.start()
    return tracer


def covered(tracer: Any, workspace: str) -> str:
    tracer.stop()
    data = tracer.get_data()
    found: dict[str, dict[str, list[int]]] = {}
    for path in sorted(data.measured_files()):
        by_test = found[path.removeprefix(f"{workspace}/")] = {}
        for line, contexts in sorted(data.contexts_by_lineno(path).items()):
            for context in contexts:
                by_test.setdefault(context, []).append(line)
    return base64.b64encode(zlib.compress(json.dumps(found).encode())).decode()


def child(job: dict[str, Any], sink: int, output: int) -> None:
    """The test process, as that of the judge."""
    suites.seal(False)
    os.setsid()
    null = os.open("/dev/null", os.O_RDONLY)
    for target, source in enumerate((null, output, output)):
        os.dup2(source, target)
    kept = os.dup2(sink, 3)
    os.closerange(4, 1024)
    suites.bound(job)
    tracer = start_coverage(job)
    sys.path += job["roots"]
    further = ("--assert", "rewrite") if job["explain"] else ()
    plugin = Plugin(kept, job, tracer)
    status = suites.run_with(job, plugin, further)
    if tracer is not None:
        plugin.tell("covered", covered(tracer, job["workspace"]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def prepare(*arguments: str) -> None:
    """Do once, in the warm process, what each run would do anew."""
    suites.prepare(*arguments)


def main() -> None:
    suites.seal(True)
    job = marshal.loads(sys.stdin.buffer.read())
    __import__(job["kind"])
    suites.write_all(1, b'"ready"\n')
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
    how, status, told, tail = suites.watch(pid, reports, output, job)
    took = time.monotonic() - start
    fields = {"how": how, "status": status, "reports": told.decode("utf-8", "replace"), "s": round(took, 4)}
    suites.write_all(1, json.dumps(fields | {"output": tail.decode("utf-8", "replace")}).encode() + b"\n")


if __name__ == "__main__":
    main()
