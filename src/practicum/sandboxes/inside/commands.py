"""Commands of the box: from argv to exit code, captured output and usage.

Invariant: when a result is given, the command's process group is dead; output held in memory is bounded; a
process that left the group and kept the pipe delays the result by no more than `GRACE_S`.
Must not know: files, what the host does with the result.
"""

import _signal  # type: ignore[import-not-found]  # the C half of `signal`, without its enums: 3 ms less
import errno
import posix
import resource
import select
import time

from .wire import CHUNK, Wire

GRACE_S = 0.2


class Capture:
    """Head and tail of a stream within `cap` bytes."""

    def __init__(self, cap: int) -> None:
        self.half = cap // 2
        self.cap = cap
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.cap - self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > self.half + CHUNK * 4:
            del self.tail[: len(self.tail) - self.half]

    def result(self) -> "tuple[bytes, bool]":
        if self.total <= self.cap:
            return bytes(self.head + self.tail), False
        mark = b"\n[practicum: %d bytes in all, the middle left out]\n" % self.total
        keep = self.half - len(mark)
        if keep < 0:  # no room for the mark
            mark, keep = b"", self.half
        return bytes(self.head + mark + self.tail[len(self.tail) - keep :]), True


def find_program(name: bytes, env: "dict[bytes, bytes]") -> bytes:
    if b"/" in name:
        return name
    for folder in env.get(b"PATH", b"/usr/bin:/bin").split(b":"):
        full = (folder or b".") + b"/" + name
        if posix.access(full, posix.X_OK):
            return full
    return name


def become(argv: "list[bytes]", env: "dict[bytes, bytes]", cwd: bytes, streams: "list[int]", limits: bytes) -> None:
    """In the child: own session, the three streams, limits, then the program. Does not return on success."""
    posix.setsid()
    for target, source in enumerate(streams):
        posix.dup2(source, target)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    for item in limits.split():
        name, value = item.split(b"=")
        which = getattr(resource, "RLIMIT_" + name.decode())
        most = int(value)
        hard = resource.getrlimit(which)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(which, (most, most))
    posix.chdir(cwd)
    posix.execve(find_program(argv[0], env), argv, env)


def spawn(argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, streams: list[int], limits: bytes) -> int:
    """Fork and exec; the pid, or an OSError of the child."""
    told, tell = posix.pipe()
    try:
        pid = posix.fork()
        if pid == 0:
            try:
                become(argv, env, cwd, streams, limits)
            except OSError as error:
                posix.write(tell, b"%d" % (error.errno or 0))
            finally:
                posix._exit(127)
        posix.close(tell)
        tell = -1
        answer = posix.read(told, 16)
        if answer:
            posix.waitpid(pid, 0)
            raise OSError(int(answer), posix.strerror(int(answer)))
        sacrifice(pid)
        return pid
    finally:
        posix.close(told)
        if tell >= 0:
            posix.close(tell)


def sacrifice(pid: int) -> None:
    """Let the kernel kill the command rather than this process when memory is short.

    Not before its exec, since a copy of this process may not open the file; what the command forked until then is
    left out. The command can undo it, too. Both cost it its own box.
    """
    try:
        fd = posix.open(b"/proc/%d/oom_score_adj" % pid, posix.O_WRONLY | posix.O_CLOEXEC)
        try:
            posix.write(fd, b"1000")
        finally:
            posix.close(fd)
    except OSError:  # it has ended already, or its executable is unreadable
        return


class Command:
    """One command from start to result."""

    def __init__(self, wire: Wire, wake: int, timeout_s: float, cap: int) -> None:
        self.wire = wire
        self.wake = wake
        self.captures: dict[int, Capture] = {}
        self.order = [Capture(cap), Capture(cap)]
        self.pending = memoryview(b"")
        self.poll = select.poll()
        self.start = time.monotonic()
        self.deadline = self.start + timeout_s
        self.timed_out = False
        self.dead = False
        self.end = 0.0

    def run(
        self, argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, stdin: bytes | None, limits: bytes
    ) -> list[bytes]:
        """The fields of the answer."""
        mine: list[int] = []
        theirs: list[int] = []
        try:
            if stdin is None:
                theirs.append(posix.open(b"/dev/null", posix.O_RDONLY | posix.O_CLOEXEC))
            else:
                theirs_in, mine_in = posix.pipe()
                theirs.append(theirs_in)
                mine.append(mine_in)
                posix.set_blocking(mine_in, False)
                self.pending = memoryview(stdin)
                self.poll.register(mine_in, select.POLLOUT)
            for capture in self.order:
                ours, other = posix.pipe()
                mine.append(ours)
                theirs.append(other)
                self.captures[ours] = capture
                self.poll.register(ours, select.POLLIN)
            pid = spawn(argv, env, cwd, theirs, limits)
            while theirs:
                posix.close(theirs.pop())
            self.poll.register(self.wire.source, select.POLLIN)
            self.poll.register(self.wake, select.POLLIN)
            while not self.finished():
                self.step(pid, mine)
            return self.report(pid)
        except OSError as error:
            text = f"practicum: cannot run {argv[0]!r} in {cwd!r}: {error.strerror}\n".encode()
            code = b"127" if error.errno == errno.ENOENT else b"126"
            return [b"ok", code, b"0", b"0", b"0", b"0", b"0", b"", text]
        finally:
            for fd in mine + theirs:
                posix.close(fd)

    def finished(self) -> bool:
        return self.dead and (not self.captures or time.monotonic() >= self.end + GRACE_S)

    def step(self, pid: int, mine: "list[int]") -> None:
        """Wait for one round of events."""
        now = time.monotonic()
        until = self.end + GRACE_S if self.dead else self.deadline
        if self.timed_out and not self.dead:
            until = now + 0.1
        for fd, _ in self.poll.poll(max(0, int((until - now) * 1000) + 1)):
            if fd == self.wake:
                posix.read(fd, 4096)
            elif fd == self.wire.source:
                self.wire.fill()
                if self.wire.frame() == [b"cancel"]:
                    self.deadline = 0.0
            elif fd in self.captures:
                data = posix.read(fd, CHUNK)
                if data:
                    self.captures[fd].add(data)
                else:
                    self.drop(fd, mine)
                    del self.captures[fd]
            else:
                self.feed(fd, mine)
        self.look(pid)
        if not self.dead and time.monotonic() >= self.deadline:
            self.timed_out = True
            kill_group(pid)

    def feed(self, fd: int, mine: "list[int]") -> None:
        try:
            self.pending = self.pending[posix.write(fd, self.pending[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # the command closed its input, which is its right
            self.pending = memoryview(b"")
        if not self.pending:
            self.drop(fd, mine)

    def drop(self, fd: int, mine: "list[int]") -> None:
        self.poll.unregister(fd)
        mine.remove(fd)
        posix.close(fd)

    def look(self, pid: int) -> None:
        """Reap orphans; notice the end of the command, but keep its number taken until the group is killed."""
        flags = posix.WEXITED | posix.WNOHANG | posix.WNOWAIT
        while not self.dead:
            gone = posix.waitid(posix.P_ALL, 0, flags)
            if gone is None:
                return
            if gone.si_pid == pid:
                self.dead = True
                self.end = time.monotonic()
                kill_group(pid)
            else:
                posix.waitpid(gone.si_pid, posix.WNOHANG)

    def report(self, pid: int) -> "list[bytes]":
        _, status, usage = posix.wait4(pid, 0)
        cpu = usage.ru_utime + usage.ru_stime
        peak = usage.ru_maxrss
        for _ in range(20):
            extra, extra_peak = reap()
            cpu += extra
            peak = max(peak, extra_peak)
            if not kill_group(pid):
                break
            time.sleep(0.002)
        code = posix.WEXITSTATUS(status) if posix.WIFEXITED(status) else 128 + posix.WTERMSIG(status)
        (out, cut_out), (err, cut_err) = (capture.result() for capture in self.order)
        numbers = (
            124 if self.timed_out else code,
            int(self.timed_out),
            int(cut_out or cut_err),
            int((self.end - self.start) * 1e6),
            int(cpu * 1e6),
            peak * 1024,
        )
        return [b"ok", *(b"%d" % n for n in numbers), out, err]


def kill_group(pid: int) -> bool:
    """Kill the process group; False when there is none."""
    try:
        posix.killpg(pid, _signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def reap() -> "tuple[float, int]":
    """Collect ended orphans: their cpu seconds and largest peak memory in KiB."""
    cpu, peak = 0.0, 0
    while True:
        try:
            pid, _, usage = posix.wait4(-1, posix.WNOHANG)
        except ChildProcessError:
            return cpu, peak
        if pid == 0:
            return cpu, peak
        cpu += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss)
