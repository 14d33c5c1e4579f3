// What OCI runtimes need beside them: `hold` on the host, `become` as the first program of a box.
//
// `hold` keeps to a box what bubblewrap's monitor is: the process that lives as long as the box does. It adopts what the
// runtime leaves running, so that the runtime, a large program, need not stay. `become` turns the root of a user
// namespace, to which alone such a runtime can map an ordinary user, into another user of a namespace below that,
// where nothing is held any more and no further namespace can be made.
#include "agent.h"

#if defined(__x86_64__)
enum { CALL_pread64 = 17, CALL_capset = 126, CALL_getuid = 102, CALL_getgid = 104 };
#else
enum { CALL_pread64 = 67, CALL_capset = 91, CALL_getuid = 174, CALL_getgid = 176 };
#endif
enum { PR_SET_CHILD_SUBREAPER = 36, PR_CAPBSET_DROP = 24, PR_SET_SECCOMP = 22, SECCOMP_MODE_FILTER = 2, REMOUNT = 32 };
enum { CAPABILITY_VERSION_3 = 0x20080522, FILTER_FD = 9, FILTER_IN_BOX = 3, MOST_INSTRUCTIONS = 4096 };

static void fail(const char *what, i64 result) {
    char number[21];
    usize length = format_number(number, -result);
    write_all(2, what, strlen(what));
    write_all(2, " was refused: errno ", 20);
    write_all(2, number, length);
    write_all(2, "\n", 1);
    quit(98);
}

static void set_id_map(const char *path, const char *text) {
    i64 fd = SYS4(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    i64 result = fd < 0 ? fd : write_all((int)fd, text, strlen(text));
    if (result < 0) fail(path, result);
    SYS1(SYS_close, fd);
}

// Enters a user namespace in which the caller's one user and one group have the numbers given.
static void enter_user_namespace(u64 more, i64 uid, i64 uid_before, i64 gid, i64 gid_before) {
    i64 ids[2][2] = {{uid, uid_before}, {gid, gid_before}};
    i64 result = SYS1(SYS_unshare, CLONE_NEWUSER | more);
    if (result < 0) fail("a user namespace", result);
    set_id_map("/proc/self/setgroups", "deny");
    for (int i = 0; i < 2; i++) {
        char map[64];
        usize n = format_number(map, ids[i][0]);
        map[n++] = ' ';
        n += format_number(map + n, ids[i][1]);
        memcpy(map + n, " 1", 3);
        set_id_map(i == 0 ? "/proc/self/uid_map" : "/proc/self/gid_map", map);
    }
}

// Makes a folder a mount on which set-user-id programs and devices are nothing. A runtime has no words to ask that of a
// box's root, and cannot undo it, since it is of a namespace above its own.
static void close_root(const char *folder) {
    i64 uid = SYS0(CALL_getuid), gid = SYS0(CALL_getgid);
    enter_user_namespace(CLONE_NEWNS, uid, uid, gid, gid);
    i64 result = SYS5(SYS_mount, folder, folder, NULL, MS_BIND, NULL);
    u64 flags = MS_BIND | REMOUNT | MS_NOSUID | MS_NODEV;
    if (result >= 0) result = SYS5(SYS_mount, NULL, folder, NULL, flags, NULL);
    if (result < 0) fail("the root of the box", result);
}

// argv: box hold ROOT PROGRAM ARGUMENT… Runs the program with the filter as descriptor 3 and the folder ROOT closed to
// privileges (`-` for none), and ends when all that it left has ended: with the program's code if that is not 0.
int hold_main(char **argv) {
    static char *nothing[1];
    i64 result = SYS5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (result < 0) fail("adopting", result);
    i64 pid = fork_process();
    if (pid < 0) fail("a process", pid);
    if (pid == 0) {
        SYS3(SYS_dup3, FILTER_FD, FILTER_IN_BOX, 0);
        SYS1(SYS_close, FILTER_FD);
        if (!equal(argv[0], "-")) close_root(argv[0]);
        SYS3(SYS_execve, argv[1], argv + 1, nothing);
        fail(argv[1], -ENOENT);
    }
    SYS3(SYS_close_range, 0, ~0u, 0); // the wire's ends must close when the box's do
    int code = 0;
    for (;;) {
        i32 status = 0;
        i64 ended = SYS4(SYS_wait4, -1, &status, 0, NULL);
        if (ended == -ECHILD) quit(code);
        if (ended == pid) code = status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
    }
}

static void drop_capabilities(void) {
    struct { u32 version; i32 pid; } head = {CAPABILITY_VERSION_3, 0};
    u32 none[6] = {0};
    for (int capability = 0; SYS5(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0) >= 0; capability++) {}
    i64 result = SYS2(CALL_capset, &head, none);
    if (result < 0) fail("dropping capabilities", result);
}

// By position, since other boxes read the same open file.
static void install_filter(int fd) {
    static struct { u16 code; u8 if_true, if_false; u32 value; } program[MOST_INSTRUCTIONS];
    struct { u16 count; void *program; } filter = {0, program};
    usize size = 0;
    i64 got;
    while ((got = SYS4(CALL_pread64, fd, (u8 *)program + size, sizeof program - size, size)) > 0) size += (usize)got;
    SYS1(SYS_close, fd);
    if (got < 0 || size == 0 || size == sizeof program) fail("reading the filter", got);
    filter.count = (u16)(size / sizeof program[0]);
    i64 result = SYS5(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
    if (result < 0) fail("the filter", result);
}

// argv: box become UID FILTER PROGRAM ARGUMENT… where FILTER is a descriptor, or `-` for none. Of the environment,
// HOME is left out, which the runtime adds to what it is told.
int become_main(char **argv, char **env) {
    usize kept = 0;
    for (char **e = env; *e; e++)
        if (strlen(*e) < 5 || memcmp(*e, "HOME=", 5) != 0) env[kept++] = *e;
    env[kept] = NULL;
    i64 uid = parse_number((struct field){(u8 *)argv[0], (u32)strlen(argv[0])});
    enter_user_namespace(0, uid, 0, uid, 0);
    drop_capabilities();
    if (!equal(argv[1], "-")) install_filter((int)parse_number((struct field){(u8 *)argv[1], (u32)strlen(argv[1])}));
    SYS3(SYS_execve, argv[2], argv + 2, env);
    fail(argv[2], -ENOENT);
    return 1;
}
