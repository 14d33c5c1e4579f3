// What this program asks of the kernel, without a C library: system calls, their numbers and structures.
//
// A box's first process should start in a fraction of a millisecond and hold a few pages, whatever is installed in
// the box; hence no library. x86_64 and aarch64; calls that exist on both only.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long u64;
typedef long i64;
typedef unsigned long usize;
#define NULL ((void *)0)

#if defined(__x86_64__)
enum { SYS_symlinkat = 266, SYS_getpriority = 140,
       SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_mmap = 9, SYS_munmap = 11, SYS_rt_sigaction = 13,
       SYS_rt_sigprocmask = 14, SYS_mremap = 25, SYS_shmctl = 31, SYS_getpid = 39, SYS_clone = 56, SYS_execve = 59,
       SYS_exit_group = 231, SYS_wait4 = 61, SYS_kill = 62, SYS_semctl = 66, SYS_msgctl = 71, SYS_fcntl = 72,
       SYS_chdir = 80, SYS_fchmod = 91, SYS_setsid = 112, SYS_setgroups = 116, SYS_setresuid = 117,
       SYS_setresgid = 119, SYS_prctl = 157, SYS_mount = 165, SYS_umount2 = 166, SYS_getdents64 = 217,
       SYS_clock_gettime = 228, SYS_waitid = 247, SYS_openat = 257, SYS_mkdirat = 258, SYS_unlinkat = 263,
       SYS_renameat = 264, SYS_ppoll = 271, SYS_unshare = 272, SYS_signalfd4 = 289, SYS_dup3 = 292, SYS_pipe2 = 293,
       SYS_prlimit64 = 302, SYS_sendmsg = 46, SYS_recvmsg = 47, SYS_socketpair = 53, SYS_statx = 332, SYS_pidfd_open = 434,
       SYS_close_range = 436, SYS_nanosleep = 35, SYS_fchmodat = 268, SYS_setns = 308, SYS_open_tree = 428, SYS_move_mount = 429,
       SYS_mount_setattr = 442 };
enum { O_DIRECTORY = 0200000, O_NOFOLLOW = 0400000 };
#elif defined(__aarch64__)
enum { SYS_symlinkat = 36, SYS_getpriority = 141,
       SYS_read = 63, SYS_write = 64, SYS_close = 57, SYS_mmap = 222, SYS_munmap = 215, SYS_rt_sigaction = 134,
       SYS_rt_sigprocmask = 135, SYS_mremap = 216, SYS_shmctl = 195, SYS_getpid = 172, SYS_clone = 220,
       SYS_execve = 221, SYS_exit_group = 94, SYS_wait4 = 260, SYS_kill = 129, SYS_semctl = 191, SYS_msgctl = 187,
       SYS_fcntl = 25, SYS_chdir = 49, SYS_fchmod = 52, SYS_setsid = 157, SYS_setgroups = 159, SYS_setresuid = 147,
       SYS_setresgid = 149, SYS_prctl = 167, SYS_mount = 40, SYS_umount2 = 39, SYS_getdents64 = 61,
       SYS_clock_gettime = 113, SYS_waitid = 95, SYS_openat = 56, SYS_mkdirat = 34, SYS_unlinkat = 35,
       SYS_renameat = 38, SYS_ppoll = 73, SYS_unshare = 97, SYS_signalfd4 = 74, SYS_dup3 = 24, SYS_pipe2 = 59,
       SYS_prlimit64 = 261, SYS_sendmsg = 211, SYS_recvmsg = 212, SYS_socketpair = 199, SYS_statx = 291, SYS_pidfd_open = 434,
       SYS_close_range = 436, SYS_nanosleep = 101, SYS_fchmodat = 53, SYS_setns = 268, SYS_open_tree = 428, SYS_move_mount = 429,
       SYS_mount_setattr = 442 };
enum { O_DIRECTORY = 040000, O_NOFOLLOW = 0100000 };
#else
#error "this architecture has not been written for"
#endif

i64 syscall6(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f);
#define SYS0(n) syscall6(n, 0, 0, 0, 0, 0, 0)
#define SYS1(n, a) syscall6(n, (i64)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b) syscall6(n, (i64)(a), (i64)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c) syscall6(n, (i64)(a), (i64)(b), (i64)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) syscall6(n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), 0, 0)
#define SYS5(n, a, b, c, d, e) syscall6(n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), (i64)(e), 0)
#define SYS6(n, a, b, c, d, e, f) syscall6(n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), (i64)(e), (i64)(f))

enum { EPERM = 1, ENOENT = 2, EINTR = 4, E2BIG = 7, EAGAIN = 11, ENOMEM = 12, EACCES = 13, EEXIST = 17, ENOTDIR = 20,
       EISDIR = 21, EINVAL = 22, ESRCH = 3, ECHILD = 10, EADDRINUSE = 98 };
enum { O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0100, O_EXCL = 0200, O_NONBLOCK = 04000,
       O_CLOEXEC = 02000000, O_PATH = 010000000 };
enum { AT_FDCWD = -100, AT_SYMLINK_NOFOLLOW = 0x100, AT_EMPTY_PATH = 0x1000, AT_REMOVEDIR = 0x200 };
enum { S_FORMAT = 0170000, S_REGULAR = 0100000, S_FOLDER = 0040000, S_LINK = 0120000, S_PIPE = 0010000,
       S_SOCKET = 0140000 };
enum { POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16 };
enum { SIGKILL = 9, SIGPIPE = 13, SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19, SIGXFSZ = 25 };
enum { WNOHANG = 1, WEXITED = 4, WNOWAIT = 0x1000000, P_ALL = 0 };
enum { MS_NOSUID = 2, MS_NODEV = 4, MS_BIND = 4096, MS_REC = 16384, MS_READONLY = 1, MS_REMOUNT = 32, MS_PRIVATE = 1 << 18, MS_SHARED = 1 << 20,
       MNT_DETACH = 2 };
enum { CLONE_NEWNS = 0x20000, CLONE_NEWUSER = 0x10000000 };
enum { PR_SET_PDEATHSIG = 1, PR_SET_DUMPABLE = 4, PR_SET_NO_NEW_PRIVS = 38 };

struct pollfd { i32 fd; u16 events; u16 revents; };
struct timespec { i64 seconds; i64 nanoseconds; };
struct rlimit { u64 soft; u64 hard; };
struct rusage { i64 user_s, user_us, system_s, system_us, maxrss_kib, rest[13]; };
struct statx_time { i64 seconds; u32 nanoseconds; i32 reserved; };
struct statx { u32 mask, blksize; u64 attributes; u32 nlink, uid, gid; u16 mode, spare; u64 ino, size, blocks,
               attributes_mask; struct statx_time times[4]; u32 numbers[4]; u64 spares[14]; };
struct dirent64 { u64 ino; i64 offset; u16 length; u8 type; char name[]; };
struct iovec { void *base; usize length; };
struct msghdr { void *name; u32 name_length; struct iovec *iov; usize iov_length; void *control;
                usize control_length; i32 flags; };
struct cmsghdr { usize length; i32 level; i32 type; };
