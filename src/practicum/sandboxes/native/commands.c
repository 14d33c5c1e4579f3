// Commands of the box: from argv to exit code, captured output and usage.
//
// When a result is given, the command's process group is dead; output held in memory is bounded; a process that left
// the group and kept the pipe delays the result by no more than GRACE_US.
#include "agent.h"

enum { GRACE_US = 200000, CHUNK = 1 << 16, SLACK = 1 << 18 };
enum { WHERE, TIMEOUT_US, CAP, LIMITS, HAS_STDIN, STDIN, ARGC, FIXED };

// Head and tail of a stream within `cap` bytes.
struct capture { int fd; usize cap; u64 total; struct buffer head, tail; };

struct command {
    struct wire *wire;
    int children, stdin_fd;           // signalfd of SIGCHLD; our end of the command's input, or -1
    struct capture streams[2];
    struct field input;               // what is still to be fed
    i64 pid, start, deadline, end;
    int dead, timed_out;
    struct rusage usage;
};

static void capture_add(struct capture *c, const u8 *data, usize count) {
    c->total += count;
    usize half = c->cap / 2, room = c->cap - half - c->head.length;
    usize first = count < room ? count : room;
    buffer_add(&c->head, data, first);
    buffer_add(&c->tail, data + first, count - first);
    if (c->tail.length > half + SLACK) buffer_drop(&c->tail, c->tail.length - half);
}

// As one field of the answer; 1 if the middle is missing.
static int capture_result(struct capture *c, struct buffer *out) {
    usize half = c->cap / 2, keep = c->tail.length < half ? c->tail.length : half;
    if (c->total <= c->cap) {
        keep = c->tail.length;
    }
    struct buffer text = {0};
    buffer_add(&text, c->head.data, c->head.length);
    if (c->total > c->cap) {
        char mark[80] = "\n[practicum: ";
        usize n = strlen(mark);
        n += format_number(mark + n, (i64)c->total);
        const char *rest = " bytes in all, the middle left out]\n";
        memcpy(mark + n, rest, strlen(rest));
        n += strlen(rest);
        if (n <= keep) {
            buffer_add(&text, mark, n);
            keep -= n;
        }
    }
    buffer_add(&text, c->tail.data + c->tail.length - keep, keep);
    frame_field(out, text.data, text.length);
    buffer_free(&text);
    return c->total > c->cap;
}

void reap(struct rusage *into) {
    struct rusage usage;
    while (SYS4(SYS_wait4, -1, NULL, WNOHANG, &usage) > 0) {
        into->user_us += usage.user_s * 1000000 + usage.user_us;
        into->system_us += usage.system_s * 1000000 + usage.system_us;
        if (usage.maxrss_kib > into->maxrss_kib) into->maxrss_kib = usage.maxrss_kib;
    }
}

static int kill_group(i64 pid) { return SYS2(SYS_kill, -pid, SIGKILL) == 0; }

static void set_limits(char *text) {
    for (char *at = text; *at;) {
        struct field name = {(u8 *)at, 0}, value;
        while (at[name.length] != '=') name.length++;
        at += name.length + 1;
        value = (struct field){(u8 *)at, 0};
        while (at[value.length] && at[value.length] != ' ') value.length++;
        at += value.length;
        while (*at == ' ') at++;
        struct rlimit now, limit = {(u64)parse_number(value), 0};
        i64 which = parse_number(name);
        SYS4(SYS_prlimit64, 0, which, NULL, &now);
        if (limit.soft > now.hard) limit.soft = now.hard;
        limit.hard = limit.soft;
        SYS4(SYS_prlimit64, 0, which, &limit, NULL);
    }
}

static i64 execute(char **argv, char **env) {
    const char *name = argv[0];
    usize length = strlen(name);
    for (usize i = 0; i < length; i++)
        if (name[i] == '/') return SYS3(SYS_execve, name, argv, env);
    const char *path = "/usr/bin:/bin";
    for (char **e = env; *e; e++)
        if (memcmp(*e, "PATH=", strlen(*e) < 5 ? strlen(*e) : 5) == 0 && strlen(*e) >= 5) path = *e + 5;
    i64 result = -ENOENT;
    while (*path) {
        usize size = 0;
        while (path[size] && path[size] != ':') size++;
        struct buffer full = {0};
        buffer_add(&full, size ? path : ".", size ? size : 1);
        buffer_add(&full, "/", 1);
        buffer_add(&full, name, length + 1);
        i64 tried = SYS3(SYS_execve, full.data, argv, env);
        if (tried != -ENOENT && tried != -ENOTDIR && (tried != -EACCES || result == -ENOENT)) result = tried;
        if (result != -ENOENT && result != -EACCES) return result;
        buffer_free(&full);
        path += size + (path[size] == ':');
    }
    return result;
}

// In the child: own session, its descriptors (0, 1 and so on), limits, then the program. Returns the error.
static i64 become(struct field *fields, usize count, const int *fds, usize fd_count) {
    i64 argc = parse_number(fields[ARGC]);
    struct buffer pointers = {0};
    for (usize i = FIXED; i <= count; i++) {
        char *text = i < count ? (char *)fields[i].data : NULL;
        if (i == FIXED + (usize)argc) buffer_add(&pointers, &(char *){NULL}, sizeof(char *));
        buffer_add(&pointers, &text, sizeof text);
    }
    char **argv = (char **)pointers.data;
    SYS0(SYS_setsid);
    for (usize target = 0; target < fd_count; target++) SYS3(SYS_dup3, fds[target], target, 0);
    u64 none = 0;
    struct { void *handler; u64 flags; void *restorer; u64 mask; } standard = {0};
    SYS4(SYS_rt_sigaction, SIGPIPE, &standard, NULL, 8);
    SYS4(SYS_rt_sigprocmask, 2, &none, NULL, 8);
    set_limits((char *)fields[LIMITS].data);
    i64 result = SYS1(SYS_chdir, fields[WHERE].data);
    return result < 0 ? result : execute(argv, argv + argc + 1);
}

// Let the kernel kill the command rather than this process when memory is short. Not before its exec, since a copy of
// this process may not open the file; what the command forked until then is left out. The command can undo it, too.
// Both cost it its own box.
static void sacrifice(i64 pid) {
    char path[48] = "/proc/";
    format_number(path + 6, pid);
    memcpy(path + strlen(path), "/oom_score_adj", 15);
    i64 fd = SYS4(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return; // it has ended already, or its executable is unreadable
    SYS3(SYS_write, fd, "1000", 4);
    SYS1(SYS_close, fd);
}

i64 spawn_process(struct field *fields, usize count, const int *fds, usize fd_count) {
    int told[2];
    i64 error = SYS2(SYS_pipe2, told, O_CLOEXEC);
    if (error < 0) return error;
    i64 pid = fork_process();
    if (pid == 0) {
        error = become(fields, count, fds, fd_count);
        SYS3(SYS_write, told[1], &error, sizeof error);
        quit(127);
    }
    SYS1(SYS_close, told[1]);
    i64 got = 0;
    if (pid > 0) {
        do got = SYS3(SYS_read, told[0], &error, sizeof error);
        while (got == -EINTR);
        if (got == sizeof error) SYS4(SYS_wait4, pid, NULL, 0, NULL);
        else sacrifice(pid);
    }
    SYS1(SYS_close, told[0]);
    return pid < 0 ? pid : got == sizeof error ? error : pid;
}

// Reaps orphans and notices the command's end, but keeps its number taken until the group is killed.
static void look(struct command *c) {
    u64 drain[16];
    while (SYS3(SYS_read, c->children, drain, sizeof drain) > 0) {}
    while (!c->dead) {
        i32 info[32] = {0};
        if (SYS5(SYS_waitid, P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT, NULL) < 0 || info[4] == 0) return;
        if (info[4] == c->pid) {
            c->dead = 1;
            c->end = now_us();
            kill_group(c->pid);
        } else {
            struct rusage usage;
            SYS4(SYS_wait4, info[4], NULL, WNOHANG, &usage);
            c->usage.user_us += usage.user_s * 1000000 + usage.user_us;
            c->usage.system_us += usage.system_s * 1000000 + usage.system_us;
        }
    }
}

static void close_fd(int *fd) {
    if (*fd >= 0) SYS1(SYS_close, *fd);
    *fd = -1;
}

static void feed(struct command *c) {
    if (c->input.length) {
        i64 done = SYS3(SYS_write, c->stdin_fd, c->input.data, c->input.length > CHUNK ? CHUNK : c->input.length);
        if (done == -EAGAIN) return;
        if (done < 0) c->input.length = 0; // the command closed its input, which is its right
        else c->input = (struct field){c->input.data + done, c->input.length - (u32)done};
    }
    if (!c->input.length) close_fd(&c->stdin_fd);
}

static void take(struct capture *stream) {
    static u8 data[CHUNK];
    i64 got = SYS3(SYS_read, stream->fd, data, CHUNK);
    if (got > 0) capture_add(stream, data, (usize)got);
    else if (got != -EAGAIN && got != -EINTR) close_fd(&stream->fd);
}

// Waits for one round of events.
static void step(struct command *c) {
    i64 now = now_us(), until = c->dead ? c->end + GRACE_US : c->timed_out ? now + 100000 : c->deadline;
    i64 left = until > now ? until - now : 0;
    struct timespec wait = {left / 1000000, left % 1000000 * 1000};
    struct pollfd polled[5] = {{c->wire->source, POLLIN, 0}, {c->children, POLLIN, 0}, {c->stdin_fd, POLLOUT, 0},
                               {c->streams[0].fd, POLLIN, 0}, {c->streams[1].fd, POLLIN, 0}};
    SYS5(SYS_ppoll, polled, 5, &wait, NULL, 8);
    if (polled[0].revents) {
        struct buffer body = {0};
        wire_fill(c->wire);
        if (wire_frame(c->wire, &body)) c->deadline = 0; // only a cancellation comes while a command runs
        buffer_free(&body);
    }
    if (polled[2].revents) feed(c);
    for (int i = 0; i < 2; i++)
        if (polled[3 + i].revents) take(&c->streams[i]);
    look(c);
    if (!c->dead && now_us() >= c->deadline) {
        c->timed_out = 1;
        kill_group(c->pid);
    }
}

static void report(struct command *c, struct buffer *out) {
    int status = 0;
    struct rusage usage;
    SYS4(SYS_wait4, c->pid, &status, 0, &usage);
    c->usage.user_us += usage.user_s * 1000000 + usage.user_us;
    c->usage.system_us += usage.system_s * 1000000 + usage.system_us;
    if (usage.maxrss_kib > c->usage.maxrss_kib) c->usage.maxrss_kib = usage.maxrss_kib;
    for (int i = 0; i < 20; i++) {
        reap(&c->usage);
        if (!kill_group(c->pid)) break;
        pause_us(2000);
    }
    int code = status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
    struct buffer streams = {0};
    int cut = capture_result(&c->streams[0], &streams);
    cut |= capture_result(&c->streams[1], &streams);
    frame_text(out, "ok");
    frame_number(out, c->timed_out ? 124 : code);
    frame_number(out, c->timed_out);
    frame_number(out, cut);
    frame_number(out, c->end - c->start);
    frame_number(out, c->usage.user_us + c->usage.system_us);
    frame_number(out, c->usage.maxrss_kib * 1024);
    buffer_add(out, streams.data, streams.length);
    buffer_free(&streams);
}

void run_command(struct wire *w, int children, struct field *fields, usize count, struct buffer *out, int warm) {
    struct command c = {.wire = w, .children = children, .stdin_fd = -1, .start = now_us()};
    int theirs[3] = {-1, -1, -1}, pair[2];
    i64 failed = 0, cap = parse_number(fields[CAP]);
    c.deadline = c.start + parse_number(fields[TIMEOUT_US]);
    for (int i = 0; i < 2; i++) c.streams[i] = (struct capture){.fd = -1, .cap = (usize)cap};
    if (fields[HAS_STDIN].data[0] == '0') {
        theirs[0] = (int)SYS4(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
        if (theirs[0] < 0) failed = theirs[0];
    } else if ((failed = SYS2(SYS_pipe2, pair, O_CLOEXEC)) == 0) {
        theirs[0] = pair[0];
        c.stdin_fd = pair[1];
        c.input = fields[STDIN];
        SYS3(SYS_fcntl, c.stdin_fd, 4, O_NONBLOCK); // F_SETFL
    }
    for (int i = 0; i < 2 && failed == 0; i++)
        if ((failed = SYS2(SYS_pipe2, pair, O_CLOEXEC)) == 0) {
            c.streams[i].fd = pair[0];
            theirs[i + 1] = pair[1];
        }
    if (failed == 0) {
        c.pid = warm ? warm_copy(fields, count, theirs) : spawn_process(fields, count, theirs, 3);
        failed = c.pid < 0 ? c.pid : 0;
    }
    for (int i = 0; i < 3; i++) close_fd(&theirs[i]);
    if (failed == 0) {
        look(&c);
        while (!(c.dead && ((c.streams[0].fd < 0 && c.streams[1].fd < 0) || now_us() >= c.end + GRACE_US))) step(&c);
        report(&c, out);
    } else {
        frame_text(out, "exec");
        frame_number(out, -failed);
    }
    close_fd(&c.stdin_fd);
    for (int i = 0; i < 2; i++) {
        close_fd(&c.streams[i].fd);
        buffer_free(&c.streams[i].head);
        buffer_free(&c.streams[i].tail);
    }
}
