// A process of the box that is kept warm: what it has loaded, its copies need not load again.
//
// It is started once with a socket as descriptor 3, and says a byte when it is ready. For each command it is sent one
// message: the frame of the request, with the three streams as descriptors. It answers with the number of a copy of
// itself that has become a child of this process, as every orphan does; from then on the copy is a command like others.
// A frame of one field asks only for any answer.
// What it must do to be safe from what runs beside it (not be dumpable, notice changed limits) is its own affair.
#include "agent.h"

enum { START_US = 60000000, COPY_US = 10000000 };
static i64 pid;
static int line = -1;

i64 warm_pid(void) { return pid; }

static void end(void) {
    if (line >= 0) SYS1(SYS_close, line);
    if (pid > 0) SYS2(SYS_kill, pid, SIGKILL);
    pid = 0;
    line = -1;
}

// Reads a message; its length, or an error where none comes in time.
static i64 listen_for(void *to, usize most, i64 patience_us) {
    i64 deadline = now_us() + patience_us;
    for (;;) {
        i64 left = deadline - now_us();
        if (left <= 0) return -EAGAIN;
        struct timespec wait = {left / 1000000, left % 1000000 * 1000};
        struct pollfd polled = {line, POLLIN, 0};
        i64 ready = SYS5(SYS_ppoll, &polled, 1, &wait, NULL, 8);
        if (ready == -EINTR) continue;
        if (ready <= 0) continue;
        return SYS3(SYS_read, line, to, most);
    }
}

i64 warm_start(struct field *fields, usize count) {
    int pair[2];
    i64 result = SYS4(SYS_socketpair, 1, 5 | O_CLOEXEC, 0, pair); // AF_UNIX, SOCK_SEQPACKET
    if (result < 0) return result;
    i64 null = SYS4(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    int fds[4] = {(int)null, (int)null, (int)null, pair[1]};
    end();
    line = set_cloexec_above(pair[0], 200);
    result = spawn_process(fields, count, fds, 4);
    for (int i = 0; i < 2; i++) SYS1(SYS_close, pair[i]);
    if (null >= 0) SYS1(SYS_close, null);
    char byte;
    if (result > 0) {
        pid = result;
        result = listen_for(&byte, 1, START_US);
        if (result == 0) result = -ESRCH; // it ended instead
    }
    if (result < 0) end();
    return result < 0 ? result : 0;
}

i64 warm_ping(void) {
    struct buffer frame = {0};
    if (line < 0) return -ESRCH;
    frame_begin(&frame);
    frame_text(&frame, "ping");
    frame_end(&frame);
    i64 result = SYS3(SYS_write, line, frame.data, frame.length);
    buffer_free(&frame);
    char answer[8];
    if (result >= 0) result = listen_for(answer, sizeof answer, COPY_US);
    if (result > 0) return 0;
    end();
    return -ESRCH;
}

i64 warm_copy(struct field *fields, usize count, const int *streams) {
    struct buffer frame = {0};
    if (line < 0) return -ESRCH;
    frame_begin(&frame);
    for (usize i = 0; i < count; i++) {
        if (i == 5) frame_field(&frame, "", 0); // its standard input, which goes by descriptor
        else frame_field(&frame, fields[i].data, fields[i].length);
    }
    frame_end(&frame);
    struct { struct cmsghdr head; i32 fds[4]; } control = {{28, 1, 1}, {streams[0], streams[1], streams[2], 0}};
    struct iovec part = {frame.data, frame.length};
    struct msghdr m = {.iov = &part, .iov_length = 1, .control = &control, .control_length = sizeof control};
    i64 result = SYS3(SYS_sendmsg, line, &m, 0x4000); // MSG_NOSIGNAL
    buffer_free(&frame);
    i32 copy = 0;
    if (result >= 0) result = listen_for(&copy, sizeof copy, COPY_US);
    if (result == sizeof copy && copy > 1) return copy;
    end();
    return -ESRCH;
}
