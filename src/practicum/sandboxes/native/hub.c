// The hub: one process for each owner, which starts its boxes and mounts what they see.
//
// It lives in a user namespace of its own, as an unprivileged user, with two mount namespaces: `plain`, in which boxes
// are started, holds what the host has and stacks of layers; in the other are the disks of boxes. A box follows the
// mounts below its slots, which are folders of a shared mount of its own; so it can be given a fresh disk without being
// started anew, and starting one costs the same however many there are. All of it vanishes with the last process. It ends with its owner, and its boxes end with it. As a
// `plain` hub it enters no namespaces and only starts boxes.
#include "base.h"

enum { MESSAGE = 1 << 18, MOST_FDS = 64, MOST_SLOTS = 60, MOST_PATH = 256 };
enum { FD_IN, FD_OUT, FD_ERR, FD_FILTER, FD_JOIN };
static u8 message[MESSAGE + 1];
static const char *folder; // where the hub's own file system is mounted
static int plain = -1, disks = -1; // the mount namespaces, where there are any

static i64 write_file_at(const char *path, const char *text) {
    i64 fd = SYS4(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    i64 result = write_all((int)fd, text, strlen(text));
    SYS1(SYS_close, fd);
    return result;
}

static i64 map_itself(const char *path, i64 id) {
    char text[64];
    usize n = format_number(text, id);
    text[n++] = ' ';
    n += format_number(text + n, id);
    memcpy(text + n, " 1", 3);
    return write_file_at(path, text);
}

// Leaves the caller's identity for `uid`; the owner's end is then this process's end.
static i64 drop(i64 uid, i64 gid, i64 from) {
    i64 result = 0;
    if (from == 0) {
        if ((result = SYS2(SYS_setgroups, 0, NULL)) < 0) return result;
        if ((result = SYS3(SYS_setresgid, gid, gid, gid)) < 0) return result;
        if ((result = SYS3(SYS_setresuid, uid, uid, uid)) < 0) return result;
        if ((result = SYS5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) < 0) return result;
        SYS5(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0); // or its own maps below could not be opened
    }
    return SYS5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

static i64 own_namespace(void) { return SYS4(SYS_openat, AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC, 0); }

static i64 enter_namespaces(i64 uid, i64 gid, const char **step) {
    i64 result;
    *step = "a user and mount namespace";
    if ((result = SYS1(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS)) < 0) return result;
    *step = "its id maps";
    if ((result = write_file_at("/proc/self/setgroups", "deny")) < 0) return result;
    if ((result = map_itself("/proc/self/uid_map", uid)) < 0) return result;
    if ((result = map_itself("/proc/self/gid_map", gid)) < 0) return result;
    *step = "private mounts";
    if ((result = SYS5(SYS_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) < 0) return result;
    *step = "a file system in memory";
    if ((result = SYS5(SYS_mount, "hub", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m")) < 0) return result;
    *step = "a second mount namespace";
    if ((result = plain = (int)own_namespace()) < 0) return result;
    if ((result = SYS1(SYS_unshare, CLONE_NEWNS)) < 0) return result;
    if ((result = disks = (int)own_namespace()) < 0) return result;
    return SYS1(SYS_chdir, folder);
}

// The path of a slot below `base`; its length.
static usize slot_path(char *to, const char *base, usize slot) {
    usize n = strlen(base);
    memcpy(to, base, n);
    to[n++] = '/';
    return n + format_number(to + n, (i64)slot);
}

// Makes the shared folder `base` with `count` slots in it.
static i64 make_slots(const char *base, usize count) {
    char path[MOST_PATH];
    i64 result = SYS3(SYS_mkdirat, AT_FDCWD, base, 0755);
    if (result == 0) result = SYS5(SYS_mount, base, base, NULL, MS_BIND, NULL);
    if (result == 0) result = SYS5(SYS_mount, NULL, base, NULL, MS_SHARED, NULL);
    for (usize i = 0; i < count && result == 0; i++) {
        slot_path(path, base, i);
        result = SYS3(SYS_mkdirat, AT_FDCWD, path, 0755);
    }
    return result;
}

// A copy of a mount, read-only, that follows what is mounted below it; not yet mounted itself.
static i64 copy_mount(const char *path) {
    struct { u64 set, clear, propagation, userns; } readonly = {MS_READONLY | MS_NOSUID | MS_NODEV, 0, 0, 0};
    i64 tree = SYS3(SYS_open_tree, AT_FDCWD, path, 1 | O_CLOEXEC); // OPEN_TREE_CLONE
    if (tree < 0) return tree;
    i64 result = SYS5(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &readonly, sizeof readonly);
    if (result == 0) return tree;
    SYS1(SYS_close, tree);
    return result;
}

// In the child: a copy of the plain namespace, with the slots of the box mounted on `targets`.
static i64 take_slots(const char *base, usize count, struct field *targets) {
    i64 trees[MOST_SLOTS], result = 0;
    char path[MOST_PATH];
    for (usize i = 0; i < count; i++) {
        slot_path(path, base, i);
        if ((trees[i] = copy_mount(path)) < 0) return trees[i];
    }
    if ((result = SYS2(SYS_setns, plain, CLONE_NEWNS)) < 0) return result;
    if ((result = SYS1(SYS_unshare, CLONE_NEWNS)) < 0) return result;
    if ((result = SYS1(SYS_chdir, folder)) < 0) return result;
    for (usize i = 0; i < count && result >= 0; i++)
        result = SYS5(SYS_move_mount, trees[i], "", AT_FDCWD, targets[i].data, 4); // MOVE_MOUNT_F_EMPTY_PATH
    return result;
}

static void reply(int socket, struct buffer *out, int fd) {
    frame_end(out);
    struct { struct cmsghdr head; i32 fd; i32 pad; } control = {{20, 1, 1}, fd, 0}; // SOL_SOCKET, SCM_RIGHTS
    struct iovec part = {out->data, out->length};
    struct msghdr m = {.iov = &part, .iov_length = 1};
    if (fd >= 0) {
        m.control = &control;
        m.control_length = sizeof control;
    }
    i64 done;
    do done = SYS3(SYS_sendmsg, socket, &m, 0x4000); // MSG_NOSIGNAL
    while (done == -EINTR);
    if (done < 0) quit(0);
}

static void refuse(int socket, struct buffer *out, i64 step, i64 error) {
    frame_begin(out);
    frame_text(out, "fail");
    frame_number(out, step);
    frame_number(out, -error);
    reply(socket, out, -1);
}

// In the child: joins the control groups, takes its streams, and becomes the program that makes the box.
static void launch(const char *base, usize slots, struct field *fields, usize count, const int *fds, usize fd_count) {
    static char *pointers[4096];
    static char *nothing[1];
    u64 none = 0;
    SYS4(SYS_rt_sigprocmask, 2, &none, NULL, 8);
    for (usize i = FD_JOIN; i < fd_count; i++)
        if (write_all(fds[i], "0", 1) < 0) {
            write_all(fds[FD_ERR], "a control group could not be joined\n", 36);
            quit(96);
        }
    struct field *argv = fields + slots;
    usize argc = count - slots;
    if (slots && take_slots(base, slots, fields) < 0) {
        write_all(fds[FD_ERR], "the places of the box could not be taken\n", 41);
        quit(95);
    }
    int high[4];
    for (int i = 0; i < 4; i++) high[i] = set_cloexec_above(fds[i], 300);
    for (int i = 0; i < 3; i++) SYS3(SYS_dup3, high[i], i, 0);
    SYS3(SYS_dup3, high[FD_FILTER], 9, 0);
    SYS3(SYS_close_range, 3, 8, 0);
    SYS3(SYS_close_range, 10, ~0u, 0);
    SYS1(SYS_chdir, "/");
    for (usize i = 0; i < argc; i++) pointers[i] = (char *)argv[i].data;
    SYS3(SYS_execve, pointers[0], pointers, nothing);
    write_all(2, pointers[0], strlen(pointers[0]));
    write_all(2, " could not be executed\n", 23);
    quit(97);
}

// `fields`: a folder for slots that does not exist yet, how many, where each is to be, and the program's arguments.
static void spawn(int socket, struct field *fields, usize count, const int *fds, usize fd_count, struct buffer *out) {
    const char *base = (char *)fields[0].data;
    usize slots = (usize)parse_number(fields[1]);
    i64 pid = slots > MOST_SLOTS || slots + 3 > count || fields[0].length + 24 > MOST_PATH ? -EINVAL : slots ? make_slots(base, slots) : 0;
    if (pid == 0) pid = fork_process();
    else if (pid > 0) pid = -EINVAL;
    if (pid == 0) launch(base, slots, fields + 2, count - 2, fds, fd_count);
    i64 handle = pid < 0 ? pid : SYS2(SYS_pidfd_open, pid, 0); // not reaped before, so it is the right one
    if (handle < 0) {
        refuse(socket, out, 0, handle);
        return;
    }
    frame_begin(out);
    frame_text(out, "ok");
    frame_number(out, pid);
    reply(socket, out, (int)handle);
    SYS1(SYS_close, handle);
}

// Binds a folder read-only. The mount is made so before it is seen, since what follows it would keep it writable.
static i64 bind_readonly(const char *folder_path, const char *target) {
    i64 tree = copy_mount(folder_path);
    if (tree < 0) return tree;
    i64 result = SYS5(SYS_move_mount, tree, "", AT_FDCWD, target, 4); // MOVE_MOUNT_F_EMPTY_PATH
    SYS1(SYS_close, tree);
    return result;
}

static i64 do_step(const char *op, struct field *args) {
    char *first = (char *)args[0].data, *second = (char *)args[1].data;
    switch (op[0]) {
    case 'D': return SYS3(SYS_mkdirat, AT_FDCWD, first, 0755);
    case 'M': return SYS3(SYS_fchmodat, AT_FDCWD, first, parse_number(args[1]));
    case 'T': return SYS5(SYS_mount, "disk", first, "tmpfs", MS_NOSUID | MS_NODEV, second);
    case 'B': return SYS5(SYS_mount, first, second, NULL, MS_BIND, NULL);
    case 'F': return bind_readonly(first, second);
    case 'O': return SYS5(SYS_mount, "layers", first, "overlay", MS_NOSUID | MS_NODEV, second);
    case 'S': return SYS5(SYS_mount, NULL, first, NULL, MS_SHARED, NULL);
    case 'K': return SYS3(SYS_symlinkat, second, AT_FDCWD, first);
    case 'N': {
        i64 fd = SYS4(SYS_openat, AT_FDCWD, first, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
        return fd < 0 ? fd : SYS1(SYS_close, fd);
    }
    case 'W': // can only be read from here on
        return SYS5(SYS_mount, NULL, first, NULL, MS_REMOUNT | MS_BIND | MS_READONLY | MS_NOSUID | MS_NODEV, NULL);
    case 'U': return SYS2(SYS_umount2, first, MNT_DETACH);
    case 'R': return SYS3(SYS_unlinkat, AT_FDCWD, first, AT_REMOVEDIR);
    default: return -EINVAL;
    }
}

static i64 enter(int namespace) {
    i64 result = SYS2(SYS_setns, namespace, CLONE_NEWNS);
    return result < 0 ? result : SYS1(SYS_chdir, folder);
}

// Steps of three fields each: operation, path, and what else it needs. The first that fails is the last.
static void do_steps(int socket, struct field *fields, usize count, struct buffer *out, int in_plain) {
    i64 result = in_plain ? enter(plain) : 0;
    usize i = 0;
    for (; i + 2 < count && result >= 0; i += 3) result = do_step((char *)fields[i].data, fields + i + 1);
    if (in_plain && enter(disks) < 0) quit(72); // whatever came after would go to the wrong place
    if (result < 0) {
        refuse(socket, out, (i64)(i ? i / 3 - 1 : 0), result);
        return;
    }
    frame_begin(out);
    frame_text(out, "ok");
    reply(socket, out, -1);
}

// Unmounts, and removes the folders, in a process of its own: freeing many files takes long.
// There is no answer: whoever asked is done with them.
static void clear(struct field *fields, usize count) {
    if (fork_process() != 0) return;
    for (usize i = 0; i < count; i++) {
        SYS2(SYS_umount2, fields[i].data, MNT_DETACH);
        SYS3(SYS_unlinkat, AT_FDCWD, fields[i].data, AT_REMOVEDIR);
    }
    quit(0);
}

static i64 receive(int socket, int *fds, usize *fd_count) {
    static u8 control[256] __attribute__((aligned(8)));
    struct iovec part = {message, MESSAGE};
    struct msghdr m = {.iov = &part, .iov_length = 1, .control = control, .control_length = sizeof control};
    i64 got = SYS3(SYS_recvmsg, socket, &m, 0x40000000); // MSG_CMSG_CLOEXEC
    *fd_count = 0;
    struct cmsghdr *head = (struct cmsghdr *)control;
    if (got > 0 && m.control_length >= sizeof *head && head->level == 1 && head->type == 1) {
        *fd_count = (head->length - sizeof *head) / 4; // at most what `control` holds, which is fewer than MOST_FDS
        memcpy(fds, head + 1, *fd_count * 4);
    }
    return got;
}

static void serve(int socket, int children) {
    struct buffer fields = {0}, out = {0};
    for (;;) {
        struct pollfd polled[2] = {{socket, POLLIN, 0}, {children, POLLIN, 0}};
        SYS5(SYS_ppoll, polled, 2, NULL, NULL, 8);
        u64 drain[16];
        while (SYS3(SYS_read, children, drain, sizeof drain) > 0) {}
        while (SYS4(SYS_wait4, -1, NULL, WNOHANG, NULL) > 0) {}
        if (!polled[0].revents) continue;
        int fds[MOST_FDS];
        usize fd_count, count;
        i64 got = receive(socket, fds, &fd_count);
        if (got == -EINTR) continue;
        if (got <= 4) quit(0);
        count = split_fields(message + 4, (usize)got - 4, &fields);
        struct field *all = (struct field *)fields.data;
        if (count == 0) quit(71);
        const char *operation = (char *)all[0].data;
        if (equal(operation, "spawn") && fd_count >= FD_JOIN && count > 3 && count < 4096)
            spawn(socket, all + 1, count - 1, fds, fd_count, &out);
        else if (equal(operation, "do")) do_steps(socket, all + 1, count - 1, &out, 0);
        else if (equal(operation, "plain") && plain >= 0) do_steps(socket, all + 1, count - 1, &out, 1);
        else if (equal(operation, "clear")) clear(all + 1, count - 1);
        else refuse(socket, &out, 0, -EINVAL);
        for (usize i = 0; i < fd_count; i++) SYS1(SYS_close, fds[i]);
    }
}

// argv: box hub UID GID FROM FOLDER [plain], where FROM is the present uid. Its socket to the owner is descriptor 0.
int hub_main(int argc, char **argv) {
    if (argc != 6 && argc != 7) quit(2);
    i64 ids[3];
    for (int i = 0; i < 3; i++) ids[i] = parse_number((struct field){(u8 *)argv[2 + i], (u32)strlen(argv[2 + i])});
    struct buffer out = {0};
    const char *step = "another user";
    folder = argv[5];
    u64 child = 1ul << (SIGCHLD - 1);
    SYS4(SYS_rt_sigprocmask, 0, &child, NULL, 8);
    int children = (int)SYS4(SYS_signalfd4, -1, &child, 8, O_NONBLOCK | O_CLOEXEC);
    int socket = set_cloexec_above(0, 3);
    i64 result = drop(ids[0], ids[1], ids[2]);
    if (result == 0 && argc == 6) result = enter_namespaces(ids[0], ids[1], &step);
    SYS0(SYS_setsid); // an interrupt at the owner's terminal is the owner's to handle
    frame_begin(&out);
    frame_text(&out, result < 0 ? step : "ok");
    frame_number(&out, result < 0 ? -result : 0);
    reply(socket, &out, -1);
    if (result < 0) quit(1);
    serve(socket, children);
    return 0;
}
