// Memory, text and numbers, and the wire's frames. No library below it.
#pragma once
#include "system.h"

void *memcpy(void *to, const void *from, usize count);
void *memmove(void *to, const void *from, usize count);
void *memset(void *to, int value, usize count);
int memcmp(const void *a, const void *b, usize count);
usize strlen(const char *text);
int equal(const char *a, const char *b);

// A region that grows. Its pages go back to the kernel by `buffer_free`.
struct buffer { u8 *data; usize length, capacity; };
void buffer_reserve(struct buffer *b, usize extra);
void buffer_add(struct buffer *b, const void *data, usize count);
void buffer_drop(struct buffer *b, usize count); // from the front
void buffer_free(struct buffer *b);

// One field of a frame.
struct field { u8 *data; u32 length; };
i64 parse_number(struct field f);
usize format_number(char *to, i64 value); // length; `to` holds 21 bytes and is ended by NUL

// A frame: 4-byte little-endian length, then fields of 4-byte length and bytes.
void frame_begin(struct buffer *out);
void frame_field(struct buffer *out, const void *data, usize count);
void frame_text(struct buffer *out, const char *text);
void frame_number(struct buffer *out, i64 value);
void frame_end(struct buffer *out);
u32 read_u32(const u8 *at);
// Fields of a frame's body into `fields` (an array of struct field); their number, 0 where the lengths do not add up.
// Each field is ended by a NUL for those who read it as text, so `body` needs one byte more than `length`.
usize split_fields(u8 *body, usize length, struct buffer *fields);

i64 now_us(void);
void pause_us(i64 microseconds);
void quit(int code) __attribute__((noreturn));
i64 write_all(int fd, const void *data, usize count); // 0 or a negative errno
int set_cloexec_above(int fd, int least); // duplicate at `least` or above, closed by exec
i64 fork_process(void);
