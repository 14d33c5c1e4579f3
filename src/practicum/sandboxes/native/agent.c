// The loop of a box's first process: one request, one answer, until the host hangs up.
//
// Requests start with an operation, answers with `ok`, `path` (a refusal), `errno` (the kernel's), `exec` (a command that
// could not be started) or `fault`. Numbers are decimal text. As first process of its namespace it cannot be
// signalled from inside, and it is not dumpable, so that its memory and its pipes cannot be opened by other processes
// of the box. A native program without a library was chosen over an interpreter: it starts in a fraction of a
// millisecond, holds some tens of KiB, and needs nothing of the box's file system.
#include "agent.h"

void wire_fill(struct wire *w) {
    buffer_reserve(&w->incoming, 1 << 16);
    i64 got = SYS3(SYS_read, w->source, w->incoming.data + w->incoming.length, w->incoming.capacity - w->incoming.length);
    if (got == -EINTR) return;
    if (got <= 0) quit(0);
    w->incoming.length += (usize)got;
}

int wire_frame(struct wire *w, struct buffer *body) {
    struct buffer *in = &w->incoming;
    if (in->length < 4) return 0;
    usize size = read_u32(in->data);
    if (in->length < 4 + size) {
        buffer_reserve(in, 4 + size - in->length);
        return 0;
    }
    body->length = 0;
    buffer_reserve(body, size + 1);
    memcpy(body->data, in->data + 4, size);
    body->length = size;
    buffer_drop(in, 4 + size);
    if (in->length == 0 && in->capacity > (1 << 17)) buffer_free(in);
    return 1;
}

void wire_send(struct wire *w, struct buffer *frame) {
    frame_end(frame);
    if (write_all(w->sink, frame->data, frame->length) < 0) quit(0);
    if (frame->capacity > (1 << 17)) buffer_free(frame);
}

static void refuse(struct buffer *out, i64 result) {
    frame_begin(out);
    if (result > REFUSED_PATH) {
        frame_text(out, "errno");
        frame_number(out, -result);
        return;
    }
    frame_text(out, "path");
    frame_text(out, result == REFUSED_PATH      ? "the path is not absolute and plain"
                    : result == REFUSED_DEPTH   ? "the path is too deep"
                    : result == REFUSED_KIND    ? "it is not a plain file"
                    : result == REFUSED_SIZE    ? "it is too large"
                                                : "it holds too many entries");
}

static void fault(struct buffer *out, const char *text) {
    frame_begin(out);
    frame_text(out, "fault");
    frame_text(out, text);
}

static i64 write_files(struct field *fields, usize count) {
    i64 result = 0;
    for (usize i = 0; i + 2 < count && result == 0; i += 3)
        result = write_file(fields[i], (u32)parse_number(fields[i + 1]), fields[i + 2]);
    return result;
}

static void answer(struct wire *w, int children, struct field *fields, usize count, struct buffer *out) {
    const char *operation = (char *)fields[0].data;
    i64 result = 0;
    frame_begin(out);
    int warm = equal(operation, "copy");
    if ((warm || equal(operation, "run")) && count > 8) {
        run_command(w, children, fields + 1, count - 1, out, warm);
        return;
    }
    if (equal(operation, "procs")) {
        frame_text(out, "ok");
        list_processes(out);
        return;
    }
    frame_text(out, "ok");
    if (equal(operation, "read") && count == 3) result = read_file(fields[1], parse_number(fields[2]), out);
    else if (equal(operation, "list") && count == 3) result = list_tree(fields[1], parse_number(fields[2]), out);
    else if (equal(operation, "write")) result = write_files(fields + 1, count - 1);
    else if (equal(operation, "quiet")) result = quiet();
    else if (equal(operation, "tepid")) result = warm_ping();
    else if (equal(operation, "pristine")) result = pristine();
    else if (equal(operation, "warm") && count > 8) result = warm_start(fields + 1, count - 1);
    else if (!equal(operation, "ping")) {
        fault(out, "unknown operation");
        return;
    }
    if (result < 0) refuse(out, result);
}

static int take_places(struct wire *w) {
    w->source = set_cloexec_above(0, 200);
    w->sink = set_cloexec_above(1, 200);
    SYS3(SYS_close_range, 3, 199, 0);
    u64 child = 1ul << (SIGCHLD - 1);
    SYS4(SYS_rt_sigprocmask, 2, &child, NULL, 8);
    struct { void *handler; u64 flags; void *restorer; u64 mask; } ignore = {.handler = (void *)1};
    SYS4(SYS_rt_sigaction, SIGPIPE, &ignore, NULL, 8);
    SYS5(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    return set_cloexec_above((int)SYS4(SYS_signalfd4, -1, &child, 8, O_NONBLOCK | O_CLOEXEC), 200);
}

int agent_main(void) {
    struct wire w = {0};
    struct buffer body = {0}, fields = {0}, out = {0};
    int children = take_places(&w);
    remember();
    frame_begin(&out);
    frame_text(&out, "ok");
    frame_text(&out, "hello");
    wire_send(&w, &out);
    i64 null = SYS4(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    for (int target = 0; target < 3; target++)
        if (null >= 0 && null != target) SYS3(SYS_dup3, null, target, 0);
    SYS3(SYS_close_range, 3, 199, 0);
    for (;;) {
        struct rusage ignored = {0};
        if (!wire_frame(&w, &body)) {
            wire_fill(&w);
            continue;
        }
        reap(&ignored);
        usize count = split_fields(body.data, body.length, &fields);
        if (count == 0) quit(71);
        struct field *all = (struct field *)fields.data;
        if (equal((char *)all[0].data, "cancel")) continue; // the command ended before the cancellation came
        answer(&w, children, all, count, &out);
        if (body.capacity > (1 << 17)) buffer_free(&body);
        wire_send(&w, &out);
    }
}
