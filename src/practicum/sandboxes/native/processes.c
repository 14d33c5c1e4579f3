// The other processes of the box, and what outlives them: listed, and ended.
#include "agent.h"

enum { QUIET_US = 5000000 };

static i64 number_of(const char *name) {
    struct field f = {(u8 *)name, (u32)strlen(name)};
    for (u32 i = 0; i < f.length; i++)
        if (name[i] < '0' || name[i] > '9') return 0;
    return parse_number(f);
}

void list_processes(struct buffer *out) {
    static u8 chunk[16384] __attribute__((aligned(8)));
    i64 folder = SYS4(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), got;
    if (folder < 0) return;
    while ((got = SYS3(SYS_getdents64, folder, chunk, sizeof chunk)) > 0)
        for (i64 at = 0; at < got;) {
            struct dirent64 *entry = (struct dirent64 *)(chunk + at);
            at += entry->length;
            char path[48], name[64];
            i64 pid = number_of(entry->name);
            if (pid <= 1 || pid == warm_pid()) continue;
            usize n = strlen(entry->name);
            memcpy(path, entry->name, n);
            memcpy(path + n, "/comm", 6);
            i64 fd = SYS4(SYS_openat, folder, path, O_RDONLY | O_CLOEXEC, 0);
            if (fd < 0) continue; // it ended meanwhile
            i64 length = SYS3(SYS_read, fd, name, sizeof name);
            SYS1(SYS_close, fd);
            if (length > 0) frame_field(out, name, (usize)length - (name[length - 1] == '\n'));
        }
    SYS1(SYS_close, folder);
}

// Removes the System V objects of one kind, which live as long as the namespace does. The id is the second column.
static void remove_ipc(const char *path, i64 call) {
    struct buffer text = {0};
    i64 fd = SYS4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), got = 1;
    if (fd < 0) return;
    while (got > 0) {
        buffer_reserve(&text, 4096);
        got = SYS3(SYS_read, fd, text.data + text.length, 4095);
        if (got > 0) text.length += (usize)got;
    }
    SYS1(SYS_close, fd);
    for (usize at = 0; at < text.length; at++) {
        if (text.data[at] != '\n') continue;
        usize word = 0, i = at + 1;
        struct field id = {0};
        for (; i < text.length && text.data[i] != '\n' && word < 3; i++) {
            int space = text.data[i] == ' ', first = i == at + 1 || text.data[i - 1] == ' ';
            if (!space && first) word++;
            if (word == 2 && !space) {
                if (first) id.data = text.data + i;
                id.length++;
            }
        }
        if (!id.length) continue;
        if (call == SYS_semctl) SYS4(call, parse_number(id), 0, 0, 0);
        else SYS3(call, parse_number(id), 0, 0); // IPC_RMID
    }
    buffer_free(&text);
}

// Kills every process but this one and the warm one, which are stopped meanwhile so that none is made anew; how many.
static i64 kill_others(void) {
    static u8 chunk[16384] __attribute__((aligned(8)));
    i64 folder = SYS4(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), got, found = 0;
    if (folder < 0) return folder;
    while ((got = SYS3(SYS_getdents64, folder, chunk, sizeof chunk)) > 0)
        for (i64 at = 0; at < got;) {
            struct dirent64 *entry = (struct dirent64 *)(chunk + at);
            at += entry->length;
            i64 pid = number_of(entry->name);
            if (pid > 1 && pid != warm_pid() && SYS2(SYS_kill, pid, SIGKILL) == 0) found++;
        }
    SYS1(SYS_close, folder);
    return got < 0 ? got : found;
}

enum { LIMITS = 16 };
static struct rlimit own[LIMITS];
static i64 own_priority = -1;

// What others of this user could change about this process where no filter forbids it, and its children would inherit.
static i64 changed(void) {
    i64 found = 0;
    for (int which = 0; which < LIMITS; which++) {
        struct rlimit now = {0};
        SYS4(SYS_prlimit64, 0, which, NULL, &now);
        if (own_priority >= 0 && (now.soft != own[which].soft || now.hard != own[which].hard)) found = -EPERM;
        if (own_priority < 0) own[which] = now;
    }
    i64 priority = SYS2(SYS_getpriority, 0, 0);
    if (own_priority >= 0 && priority != own_priority) found = -EPERM;
    if (own_priority < 0) own_priority = priority;
    return found;
}

void remember(void) { changed(); }

// Whether a connection outlives its processes, as ended ones do for a minute; it would hold its port.
static int ports_are_held(const char *path) {
    u8 text[4096];
    i64 fd = SYS4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), lines = 0;
    if (fd < 0) return 0;
    i64 got = SYS3(SYS_read, fd, text, sizeof text);
    SYS1(SYS_close, fd);
    for (i64 i = 0; i < got; i++) lines += text[i] == '\n';
    return lines > 1; // the first is a title
}

i64 quiet(void) {
    if (SYS0(SYS_getpid) != 1) return -EPERM; // without an own namespace, everybody would be killed
    i64 deadline = now_us() + QUIET_US, left = 1;
    struct rusage ignored = {0};
    while (left) {
        SYS2(SYS_kill, -1, warm_pid() ? SIGSTOP : SIGKILL);
        reap(&ignored);
        left = kill_others(); // those that have ended are counted until they are reaped
        if (left < 0) return left;
        if (left && now_us() > deadline) return -EAGAIN;
        if (left) pause_us(100);
    }
    if (warm_pid()) SYS2(SYS_kill, warm_pid(), SIGCONT);
    remove_ipc("/proc/sysvipc/shm", SYS_shmctl);
    remove_ipc("/proc/sysvipc/sem", SYS_semctl);
    remove_ipc("/proc/sysvipc/msg", SYS_msgctl);
    return 0;
}

i64 pristine(void) {
    i64 result = changed();
    if (result == 0 && (ports_are_held("/proc/net/tcp") || ports_are_held("/proc/net/tcp6"))) result = -EADDRINUSE;
    return result;
}
