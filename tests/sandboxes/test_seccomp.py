"""The system-call filter: what the program decides, and what it does in a real box."""

from __future__ import annotations

import asyncio
import errno
import platform
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from practicum.records.task import MIB, Limits
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec, CommandResult
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.provider import open_provider
from practicum.sandboxes.seccomp import seccomp_filter
from practicum.sandboxes.syscalls import ALLOWED, JUDGED, MACHINES, REFUSED, RULES, numbers

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


class Filter:
    """Runs the program for one machine as the kernel would; `longest` is the most instructions it took."""

    def __init__(self, machine: str, *, namespaces: bool = False) -> None:
        program = seccomp_filter(machine, namespaces=namespaces)
        assert program is not None
        self.machine = machine
        self.steps = list(struct.iter_unpack("=HBBI", program))
        self.longest = 0

    def call(self, name: str, arg0: int = 0, arg1: int = 0) -> int:
        return self.number(numbers(ALLOWED | REFUSED | JUDGED, self.machine)[name], arg0, arg1)

    def number(self, number: int, arg0: int = 0, arg1: int = 0, arch: int | None = None) -> int:
        data = struct.pack("=IIQQQQQQQ", number, arch or AUDIT[self.machine], 0, arg0, arg1, 0, 0, 0, 0)
        accumulator = at = taken = 0
        while True:
            code, if_true, if_false, value = self.steps[at]
            at, taken = at + 1, taken + 1
            if code == 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            elif code == 0x06:
                self.longest = max(self.longest, taken)
                return int(value)
            else:
                holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}
                at += if_true if holds[code] else if_false


@pytest.mark.parametrize("machine", MACHINES)
def test_only_what_is_listed_runs(machine: str) -> None:
    """Of all numbers there can be, exactly the listed ones run; known ones are refused, unknown ones missing."""
    program = Filter(machine)
    allowed, refused, judged = (set(numbers(calls, machine).values()) for calls in (ALLOWED, REFUSED, JUDGED))
    assert len(allowed | refused | judged) == len(allowed) + len(refused) + len(judged)
    edges = (1 << 16, (1 << 30) - 1)
    for number in [*range(1024), *edges]:
        if number not in judged:
            expected = ALLOW if number in allowed else EPERM if number in refused else ENOSYS
            assert program.number(number) == expected, number
    foreign = [0x40000003, 0xC000003E if machine == "aarch64" else 0xC00000B7]  # 32-bit calls, another machine
    assert [program.number(0, arch=arch) for arch in foreign] == [KILL, KILL]
    x32 = {program.number(1 << 30 | number) for number in (0, 1, 101, 512, 547)}
    assert x32 == ({EPERM} if machine == "x86_64" else {ENOSYS})
    assert program.longest <= 16  # whatever the number: it is found by bisection


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_are_judged(machine: str) -> None:
    """Calls that both ordinary programs and attacks need are told apart by their arguments."""
    program = Filter(machine)
    assert program.call("clone", 0x1200011) == ALLOW  # fork
    assert program.call("clone", 0x3D0F00) == ALLOW  # a thread
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert program.call("clone", flag | 17) == EPERM, hex(flag)
    assert program.call("clone3") == ENOSYS
    assert [program.call("socket", family) for family in (1, 2, 10)] == [ALLOW] * 3
    assert {program.call("socket", family) for family in (0, 3, 16, 17, 30, 38, 40, 44)} == {EPERM}
    assert [program.call("socketpair", family) for family in (1, 2, 30)] == [ALLOW, EPERM, EPERM]
    assert [program.call("ioctl", 0, request) for request in (0x5401, 0x5412, 0x541C)] == [ALLOW, EPERM, EPERM]
    assert program.call("ioctl", 0, 1 << 32 | 0x5412) == EPERM  # the kernel reads the low half only
    assert [program.call("personality", kind) for kind in (0, 0xFFFFFFFF, 0x40000)] == [ALLOW, ALLOW, EPERM]
    for call in ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"):
        assert [program.call(call, pid) for pid in (0, 1, 2, 1 << 32 | 1)] == [ALLOW, EPERM, ALLOW, EPERM], call
    # of itself or another process; not of the first, of a group, or of all processes of a user
    for call, process in (("setpriority", 0), ("ioprio_set", 1)):
        assert [program.call(call, process, who) for who in (0, 1, 2)] == [ALLOW, EPERM, ALLOW], call
        assert {program.call(call, kind, who) for kind in {0, 1, 2, 3} - {process} for who in (0, 1, 2)} == {EPERM}
    assert {rule.call for rule in RULES} | {"clone3"} == set(JUDGED)


@pytest.mark.parametrize("machine", MACHINES)
def test_namespaces_can_be_left_open(machine: str) -> None:
    """The weakened filter of the audit lets namespaces be made, and nothing else more than the ordinary one."""
    plain, weak = Filter(machine), Filter(machine, namespaces=True)
    assert weak.call("unshare", 1 << 28) == weak.call("clone", 1 << 28) == ALLOW
    table = numbers(ALLOWED | REFUSED | JUDGED, machine)
    same = set(table) - {"unshare", "clone"}
    assert {name for name in same if weak.call(name, 99, 0x5412) != plain.call(name, 99, 0x5412)} == set()


def test_numbers_are_those_of_the_headers() -> None:
    """Where the kernel's headers are installed, every name in the tables has the number that they give it."""
    machine = platform.machine()
    found = [path for path in Path("/usr/include").glob("**/asm*/unistd*.h") if _is_for(machine, path)]
    if not found:
        pytest.skip("no kernel headers are installed")
    text = "\n".join(path.read_text() for path in found)
    pattern = r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s"
    headers = {name: int(number) for name, number in re.findall(pattern, text)}
    table = numbers(ALLOWED | REFUSED | JUDGED, machine)
    common = table.keys() & headers.keys()
    assert len(common) > 250
    assert {name: (table[name], headers[name]) for name in common if table[name] != headers[name]} == {}


def _is_for(machine: str, path: Path) -> bool:
    return path.name == "unistd_64.h" if machine == "x86_64" else "asm-generic" in path.parts


def test_unknown_machine_has_no_program() -> None:
    """A machine for which no program was written gets none, which the provider turns into an error."""
    assert seccomp_filter("riscv64") is None


# These are open to unprivileged processes by default, so that EPERM can only come from the filter.
PROBE = """
import ctypes, errno, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
column = 0 if platform.machine() == "x86_64" else 1
calls = {"keyctl": ((250, 219), (0, -3, 0)), "add_key": ((248, 217), (b"user", b"x", b"y", 1, -3)),
         "io_uring_setup": ((425, 425), (1, ctypes.create_string_buffer(256))),
         "ptrace": ((101, 117), (0, 0, 0, 0)), "personality": ((135, 92), (0x40000,)),
         "process_vm_readv": ((310, 270), (1, 0, 0, 0, 0, 0)), "unshare": ((272, 97), (0x10000000,)),
         "mq_open": ((240, 180), (b"queue", 0o100 | 2, 0o600, 0)),
         "clone3": ((435, 435), (0, 0)), "mount": ((165, 40), (b"none", b"/tmp", b"tmpfs", 0, 0)),
         "not_known": ((511, 511), (0,))}
for name, (numbers, args) in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(numbers[column], *args)
    print(name, errno.errorcode.get(ctypes.get_errno(), result))
for name in ("AF_NETLINK", "AF_PACKET", "AF_VSOCK"):
    try:
        socket.socket(getattr(socket, name), socket.SOCK_DGRAM).close()
        print(name, "opened")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
import threading
thread = threading.Thread(target=print, args=("thread", "runs")); thread.start(); thread.join()
"""


def in_a_box(cache: LayerCache, files: dict[str, str], commands: list[str]) -> dict[str, CommandResult]:
    """What each shell command did in one box that holds `files`."""

    async def run() -> dict[str, CommandResult]:
        limits = replace(Limits(), disk_bytes=256 * MIB, memory_bytes=2048 * MIB, pids=200, cpus=2.0)
        spec = BoxSpec("seccomp", files={name: File(text.encode()) for name, text in files.items()}, limits=limits)
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider, provider.create(spec) as box:
            return {command: await box.run(["sh", "-c", command], timeout_s=60) for command in commands}

    return asyncio.run(run())


def test_filter_works_in_a_box(cache: LayerCache) -> None:
    """Calls that any process may make are refused in a box, while threads and sockets of the box work."""
    (result,) = in_a_box(cache, {"probe.py": PROBE}, ["python3 probe.py"]).values()
    assert result.exit_code == 0, result
    found = dict(line.split() for line in result.stdout.decode().splitlines())
    assert found.pop("thread") == "runs"
    assert found.pop("clone3") == found.pop("not_known") == "ENOSYS"
    assert set(found.values()) == {"EPERM"}, found


PYTHON = """
import asyncio, multiprocessing, os, select, signal, socket, sqlite3, subprocess, tempfile, threading, mmap, fcntl
from concurrent.futures import ProcessPoolExecutor

async def talk():
    server = await asyncio.start_server(lambda r, w: (w.write(b"hello"), w.close()), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b"hello"
    writer.close()
    server.close()
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    assert (await child.communicate(b"data"))[0] == b"data"

def main():
    asyncio.run(talk())
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-3]) == [3]
    database = sqlite3.connect("data.db")
    database.executescript("pragma journal_mode=wal; create table t(x); insert into t values (1);")
    assert database.execute("select x from t").fetchone() == (1,)
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, 4096)
        fcntl.flock(file, fcntl.LOCK_EX)
        mmap.mmap(file.fileno(), 4096)[0] = 1
    os.close(os.memfd_create("x"))
    os.close(os.eventfd(0)) if hasattr(os, "eventfd") else None
    select.epoll().close()
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    assert signal.sigtimedwait([signal.SIGALRM], 5) is not None
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.setxattr("data.db", "user.x", b"y")
    os.sendfile(os.open(os.devnull, os.O_WRONLY), os.open("data.db", os.O_RDONLY), 0, 10)
    print("works")

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    main()
"""
FILES = {
    "everything.py": PYTHON,
    "test_it.py": "def test_it(tmp_path):\n    assert not list(tmp_path.iterdir())\n",
    "main.c": '#include <stdio.h>\nint main(void) { puts("works"); }\n',
    "main.go": 'package main\nimport "fmt"\nfunc main() { c := make(chan string); go func() { c <- "works" }()\n'
    "fmt.Println(<-c) }\n",
    "Main.java": 'class Main { public static void main(String[] a) { System.out.println("works"); } }\n',
    "main.rs": 'fn main() { std::thread::spawn(|| println!("works")).join().unwrap(); }\n',
    "Makefile": "all:\n\t@echo works\n",
    "main.js": "const {execFile} = require('child_process'); const fs = require('fs');\n"
    "fs.promises.writeFile('js.txt', 'works').then(() => execFile('cat', ['js.txt'], (e, out) => "
    "process.stdout.write(out)));\n",
}
# Each prints "works". One that is not in the box is left out, except python and the shell.
TOOLS = {
    "python3": "python3 everything.py",
    "sh": "(sleep 0.01; echo works) | cat & wait",
    "git": "export HOME=$PWD; git init -q r && cd r && echo works > f && git add f && "
    "git -c user.name=a -c user.email=a@b commit -qm m && git clone -q . ../c && cat ../c/f",
    "make": "make -j2",
    "gcc": "gcc -O1 main.c -o main && ./main",
    "node": "node main.js",
    "go": "HOME=$PWD GOFLAGS=-p=2 go run main.go",
    "javac": "javac Main.java && java -Xmx200m -cp . Main",
    "rustc": "rustc main.rs -o rust && ./rust",
    "perl": """perl -e 'open(my $f, "-|", "echo works"); print <$f>'""",
    "busybox": "busybox sh -c 'busybox echo works | busybox cat'",
    "initdb": "initdb -D data -A trust >log && pg_ctl -D data -o '-k /tmp -h \"\"' -w start >>log && "
    "psql -h /tmp -d postgres -tAc \"select 'works'\" && pg_ctl -D data -m fast -w stop >>log",
}
# The places of Debian's postgres and of a JDK that keeps its settings beside it (Debian's are in the host's /etc).
FIND = """for d in /usr/lib/postgresql/*/bin /usr/lib/jvm/*/bin; do
    case $d in *jvm*) cat $d/../conf/security/java.security >/dev/null 2>&1 || continue; esac
    PATH=$d:$PATH
done; command -v TOOL >/dev/null || { echo absent; exit; }
"""
PYTEST = "python3 -m pytest -q -p no:cacheprovider test_it.py | grep -q '1 passed' && echo works"


@pytest.mark.slow
def test_ordinary_programs_work(cache: LayerCache) -> None:
    """Whatever of the usual tools a box of this host holds works under the filter as it does outside."""
    commands = {tool: FIND.replace("TOOL", tool) + command for tool, command in TOOLS.items()} | {"pytest": PYTEST}
    results = in_a_box(cache, FILES, list(commands.values()))
    said = {tool: results[command].stdout.decode().strip() for tool, command in commands.items()}
    absent = {tool for tool, text in said.items() if text == "absent"}
    assert not absent & {"python3", "sh", "pytest"}
    failed = {tool: results[commands[tool]] for tool, text in said.items() if text != "works" and tool not in absent}
    assert failed == {}
