#include "base.h"

i64 syscall6(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
#if defined(__x86_64__)
    register i64 r10 __asm__("r10") = d;
    register i64 r8 __asm__("r8") = e;
    register i64 r9 __asm__("r9") = f;
    i64 result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    register i64 x8 __asm__("x8") = number;
    register i64 x0 __asm__("x0") = a;
    register i64 x1 __asm__("x1") = b;
    register i64 x2 __asm__("x2") = c;
    register i64 x3 __asm__("x3") = d;
    register i64 x4 __asm__("x4") = e;
    register i64 x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

void *memcpy(void *to, const void *from, usize count) {
    u8 *t = to;
    const u8 *f = from;
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(t), "+S"(f), "+c"(count) : : "memory");
#else
    for (; count >= 8; count -= 8, t += 8, f += 8) *(u64 *)t = *(const u64 *)f;
    for (volatile usize n = count; n; n--) *t++ = *f++;
#endif
    return to;
}

void *memmove(void *to, const void *from, usize count) {
    u8 *t = to;
    const u8 *f = from;
    if (t <= f || t >= f + count) return memcpy(to, from, count);
    for (volatile usize n = count; n; n--) t[n - 1] = f[n - 1];
    return to;
}

void *memset(void *to, int value, usize count) {
    volatile u8 *t = to;
    while (count--) *t++ = (u8)value;
    return to;
}

int memcmp(const void *a, const void *b, usize count) {
    const u8 *x = a, *y = b;
    for (; count; count--, x++, y++)
        if (*x != *y) return *x - *y;
    return 0;
}

usize strlen(const char *text) {
    usize n = 0;
    while (((volatile const char *)text)[n]) n++;
    return n;
}

int equal(const char *a, const char *b) {
    usize n = strlen(a);
    return n == strlen(b) && memcmp(a, b, n) == 0;
}

void buffer_reserve(struct buffer *b, usize extra) {
    usize need = b->length + extra;
    if (need <= b->capacity) return;
    usize capacity = b->capacity ? b->capacity : 16384;
    while (capacity < need) capacity *= 2;
    i64 at = b->data ? SYS4(SYS_mremap, b->data, b->capacity, capacity, 1)
                     : SYS6(SYS_mmap, 0, capacity, 3, 0x22, -1, 0);
    if (at < 0 && at > -4096) quit(70); // no memory: the box ends, and the host says so
    b->data = (u8 *)at;
    b->capacity = capacity;
}

void buffer_add(struct buffer *b, const void *data, usize count) {
    buffer_reserve(b, count);
    memcpy(b->data + b->length, data, count);
    b->length += count;
}

void buffer_drop(struct buffer *b, usize count) {
    b->length -= count;
    memmove(b->data, b->data + count, b->length);
}

void buffer_free(struct buffer *b) {
    if (b->data) SYS2(SYS_munmap, b->data, b->capacity);
    *b = (struct buffer){0};
}

i64 parse_number(struct field f) {
    i64 value = 0;
    int negative = f.length && f.data[0] == '-';
    for (u32 i = (u32)negative; i < f.length; i++) value = value * 10 + (f.data[i] - '0');
    return negative ? -value : value;
}

usize format_number(char *to, i64 value) {
    char digits[21];
    usize n = 0, length = 0;
    u64 rest = value < 0 ? -(u64)value : (u64)value;
    do digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) to[length++] = '-';
    while (n) to[length++] = digits[--n];
    to[length] = 0;
    return length;
}

static void add_u32(struct buffer *out, usize value) {
    u8 bytes[4] = {(u8)value, (u8)(value >> 8), (u8)(value >> 16), (u8)(value >> 24)};
    buffer_add(out, bytes, 4);
}

void frame_begin(struct buffer *out) {
    out->length = 0;
    add_u32(out, 0);
}

void frame_field(struct buffer *out, const void *data, usize count) {
    add_u32(out, count);
    buffer_add(out, data, count);
}

void frame_text(struct buffer *out, const char *text) { frame_field(out, text, strlen(text)); }

void frame_number(struct buffer *out, i64 value) {
    char text[21];
    frame_field(out, text, format_number(text, value));
}

void frame_end(struct buffer *out) {
    usize size = out->length - 4;
    for (int i = 0; i < 4; i++) out->data[i] = (u8)(size >> 8 * i);
}

u32 read_u32(const u8 *at) { return at[0] | (u32)at[1] << 8 | (u32)at[2] << 16 | (u32)at[3] << 24; }

usize split_fields(u8 *body, usize length, struct buffer *fields) {
    usize count = 0, at = 0;
    fields->length = 0;
    while (at < length) {
        if (length - at < 4) return 0;
        struct field f = {body + at + 4, read_u32(body + at)};
        if (length - at - 4 < f.length) return 0;
        buffer_add(fields, &f, sizeof f);
        at += 4 + (usize)f.length;
        count++;
    }
    struct field *all = (struct field *)fields->data;
    for (usize i = 0; i < count; i++) all[i].data[all[i].length] = 0; // over the next length, which has been read
    return count;
}

i64 now_us(void) {
    struct timespec t;
    SYS2(SYS_clock_gettime, 1, &t);
    return t.seconds * 1000000 + t.nanoseconds / 1000;
}

void pause_us(i64 microseconds) {
    struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};
    SYS2(SYS_nanosleep, &t, NULL);
}

void quit(int code) {
    for (;;) SYS1(SYS_exit_group, code);
}

i64 write_all(int fd, const void *data, usize count) {
    const u8 *at = data;
    while (count) {
        i64 done = SYS3(SYS_write, fd, at, count > (1 << 20) ? (1 << 20) : count);
        if (done == -EINTR) continue;
        if (done < 0) return done;
        at += done;
        count -= (usize)done;
    }
    return 0;
}

int set_cloexec_above(int fd, int least) { return (int)SYS3(SYS_fcntl, fd, 1030, least); } // F_DUPFD_CLOEXEC

i64 fork_process(void) { return SYS5(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
