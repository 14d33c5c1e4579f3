"""Driver of plain cases: each in a fresh child that returns data; nothing is compared here.

Invariant: neither this process nor a child of it ever holds an expected value; a child's pipe is its own. A child
may look into this process: it finds inputs there, and to forge another's answer it would have to know it.
Must not know: case ids, expected values, which case matters.

Job (marshal, on stdin): entry, roots, cases `[(args, kwargs)]`, case_s, cpu_s, deadline_s, max_chars. Output, a JSON
line each: `"ready"`, then `{"case", "how", "status", "text", "s"}` in the order of the job, then `"end"`.
"""

from __future__ import annotations

import marshal
import posix
import sys
import time

sys.path.insert(0, __file__.rpartition("/")[0])

from candidate import (  # type: ignore[import-not-found]
    CHUNK,
    answer,
    collect,
    enter,
    load,
    look_ahead,
    raised,
    seal,
    write_all,
)
from values import encode  # type: ignore[import-not-found]

del sys.path[0], sys.modules["candidate"], sys.modules["values"]  # the names are the workspace's

TYPE_CHECKING = False  # `typing` itself would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any


def read_all() -> bytes:
    parts = []
    while part := posix.read(0, CHUNK):
        parts.append(part)
    return b"".join(parts)


def run_case(job: dict[str, Any], case: tuple[tuple[Any, ...], dict[str, Any]], wall_s: float) -> str:
    source, sink = posix.pipe()
    start = time.monotonic()
    pid = posix.fork()
    if pid == 0:
        try:
            enter((sink,), job["cpu_s"])
            try:
                function = load(*job["entry"], job["roots"])
                text = answer(function, *case, job["max_chars"])
            except BaseException as error:  # noqa: BLE001  whatever it is, it is the answer
                text = raised(error)
            write_all(sink, text)
        finally:
            posix._exit(0)
    posix.close(sink)
    how, data, status = collect(pid, source, wall_s, 2 * job["max_chars"])
    text, took = encode(data.decode("latin-1"), 1 << 30), time.monotonic() - start
    return f'"how":{encode(how)},"status":{status},"text":{text},"s":{took:.4f}'


def main() -> None:
    seal(True)
    job = marshal.loads(read_all())
    write_all(1, b'"ready"\n')
    look_ahead(job["entry"][0], job["roots"])
    deadline = time.monotonic() + job["deadline_s"]
    for number, case in enumerate(job["cases"]):
        wall_s = min(job["case_s"], deadline - time.monotonic())
        if wall_s <= 0:
            break
        write_all(1, f'{{"case":{number},{run_case(job, case, wall_s)}}}\n'.encode())
    write_all(1, b'"end"\n')


if __name__ == "__main__":
    main()
