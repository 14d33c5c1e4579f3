// Files of the box: read, write and list, without ever following a link.
//
// Each component of a path is opened on its own and refused where it is a link; sizes, entries and depth are bounded,
// whatever the box holds. Failures are the kernel's error numbers, or one of the refusals of agent.h.
#include "agent.h"

enum { MOST_ENTRIES = 20000, MOST_DEPTH = 200, CHUNK = 1 << 20 };
enum { OPEN_FOLDER = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
       OPEN_FILE = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

// Ends the component at `at` by a NUL; the next one, or NULL after the last. `at` has no leading slash.
static char *cut(char *at) {
    while (*at && *at != '/') at++;
    if (!*at) return NULL;
    *at++ = 0;
    while (*at == '/') at++;
    return *at ? at : NULL;
}

// Checks that a path is absolute and plain, and gives its first component ("" for the root) by `first`.
static i64 check_path(struct field path, char **first) {
    char *text = (char *)path.data;
    if (path.length == 0 || text[0] != '/' || strlen(text) != path.length) return REFUSED_PATH;
    usize depth = 0;
    for (usize i = 0, start = 0; i <= path.length; i++)
        if (text[i] == '/' || text[i] == 0) {
            usize size = i - start;
            if (size == 2 && text[start] == '.' && text[start + 1] == '.') return REFUSED_PATH;
            if (size == 1 && text[start] == '.') return REFUSED_PATH;
            depth += size > 0;
            start = i + 1;
        }
    if (depth > MOST_DEPTH) return REFUSED_DEPTH;
    while (*text == '/') text++;
    *first = text;
    return 0;
}

// The folder that holds the last component of a path: a descriptor, and the component by `name` ("." for the root).
static i64 open_parent(char *first, int make, char **name) {
    i64 folder = SYS4(SYS_openat, AT_FDCWD, "/", OPEN_FOLDER, 0);
    char *part = *first ? first : ".";
    for (char *next = cut(part); folder >= 0 && next; part = next, next = cut(part)) {
        i64 inner = SYS4(SYS_openat, folder, part, OPEN_FOLDER, 0);
        if (inner == -ENOENT && make) {
            i64 made = SYS3(SYS_mkdirat, folder, part, 0755);
            inner = made < 0 && made != -EEXIST ? made : SYS4(SYS_openat, folder, part, OPEN_FOLDER, 0);
        }
        SYS1(SYS_close, folder);
        folder = inner;
    }
    *name = part;
    return folder;
}

// Appends the content of a plain file as a field of the answer; its permission bits by `mode`.
static i64 read_regular(i64 folder, const char *name, i64 most, u32 *mode, struct buffer *out) {
    i64 fd = SYS4(SYS_openat, folder, name, OPEN_FILE, 0);
    if (fd < 0) return fd;
    struct statx status;
    i64 result = SYS5(SYS_statx, fd, "", AT_EMPTY_PATH, 0x7ff, &status);
    usize start = out->length;
    if (result == 0 && (status.mode & S_FORMAT) != S_REGULAR) result = REFUSED_KIND;
    if (result == 0 && (i64)status.size > most) result = REFUSED_SIZE;
    if (result == 0) {
        buffer_reserve(out, status.size + 8);
        buffer_add(out, "\0\0\0\0", 4);
        i64 done = 1;
        while (done > 0) {
            i64 room = most + 1 - (i64)(out->length - start - 4);
            if (room <= 0) break;
            buffer_reserve(out, room < CHUNK ? (usize)room : CHUNK);
            done = SYS3(SYS_read, fd, out->data + out->length, room < CHUNK ? room : CHUNK);
            if (done > 0) out->length += (usize)done;
        }
        usize size = out->length - start - 4;
        if (done < 0) result = done;
        else if ((i64)size > most) result = REFUSED_SIZE;
        for (int i = 0; i < 4; i++) out->data[start + (usize)i] = (u8)(size >> 8 * i);
        *mode = status.mode & 0777;
    }
    if (result < 0) out->length = start;
    SYS1(SYS_close, fd);
    return result;
}

i64 read_file(struct field path, i64 most, struct buffer *out) {
    char *first, *name;
    i64 result = check_path(path, &first);
    if (result < 0) return result;
    i64 folder = open_parent(first, 0, &name);
    if (folder < 0) return folder;
    u32 mode;
    result = read_regular(folder, name, most, &mode, out);
    SYS1(SYS_close, folder);
    return result;
}

// Written beside it and renamed, so that nothing is half-written.
i64 write_file(struct field path, u32 mode, struct field data) {
    char *first, *name, temporary[40] = ".practicum-";
    i64 result = check_path(path, &first);
    if (result < 0) return result;
    if (!*first) return -EISDIR;
    i64 folder = open_parent(first, 1, &name);
    if (folder < 0) return folder;
    format_number(temporary + strlen(temporary), now_us());
    i64 fd = SYS4(SYS_openat, folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    result = fd;
    if (fd >= 0) {
        result = write_all((int)fd, data.data, data.length);
        if (result == 0) result = SYS2(SYS_fchmod, fd, mode & 0777);
        SYS1(SYS_close, fd);
        if (result == 0) result = SYS4(SYS_renameat, folder, temporary, folder, name);
        if (result < 0) SYS3(SYS_unlinkat, folder, temporary, 0);
    }
    SYS1(SYS_close, folder);
    return result < 0 ? result : 0;
}

struct listing {
    i64 room;                 // bytes of content that may still come
    usize entries, count;     // seen in all; files so far
    struct buffer files, odd; // fields of the answer
};

static const char *kind_name(u32 kind) {
    return kind == S_LINK ? "link" : kind == S_PIPE ? "pipe" : kind == S_SOCKET ? "socket" : "device";
}

static void note(struct listing *all, struct buffer *path, const char *kind) {
    frame_field(&all->odd, path->data, path->length);
    frame_text(&all->odd, kind);
}

// One file of a folder. `path` is where it is below the root of the listing.
static i64 list_file(struct listing *all, i64 folder, const char *name, struct buffer *path) {
    u32 mode = 0;
    usize start = all->files.length, at = start + 4 + path->length;
    frame_field(&all->files, path->data, path->length);
    buffer_add(&all->files, "\3\0\0\0" "000", 7); // the mode, three octal digits, filled in below
    i64 result = read_regular(folder, name, all->room, &mode, &all->files);
    if (result < 0) all->files.length = start;
    if (result == -EACCES) {
        note(all, path, "unreadable");
        return 0;
    }
    if (result < 0) return result;
    for (int i = 0; i < 3; i++) all->files.data[at + 4 + (usize)i] = (u8)('0' + (mode >> (6 - 3 * i) & 7));
    all->room -= (i64)read_u32(all->files.data + at + 7);
    all->count++;
    return 0;
}

static i64 list_folder(struct listing *all, i64 folder, struct buffer *path, usize depth);

// One entry of the folder that `path` names; `path` is as before afterwards.
static i64 list_entry(struct listing *all, i64 folder, struct buffer *path, usize depth, const char *name) {
    struct statx status;
    i64 result = SYS5(SYS_statx, folder, name, AT_SYMLINK_NOFOLLOW, 0x7ff, &status);
    if (result < 0) return result == -ENOENT ? 0 : result;
    usize before = path->length;
    if (before) buffer_add(path, "/", 1);
    buffer_add(path, name, strlen(name));
    u32 kind = status.mode & S_FORMAT;
    if (kind == S_REGULAR) {
        result = list_file(all, folder, name, path);
    } else if (kind != S_FOLDER) {
        note(all, path, kind_name(kind));
    } else if (depth == MOST_DEPTH) {
        result = REFUSED_DEPTH;
    } else {
        i64 inner = SYS4(SYS_openat, folder, name, OPEN_FOLDER, 0);
        result = inner < 0 ? inner : list_folder(all, inner, path, depth + 1);
        if (inner >= 0) SYS1(SYS_close, inner);
    }
    path->length = before;
    return result;
}

// The names in a folder, each ended by NUL; the entries count.
static i64 read_names(struct listing *all, i64 entries, struct buffer *names) {
    static u8 chunk[32768] __attribute__((aligned(8)));
    i64 got;
    while ((got = SYS3(SYS_getdents64, entries, chunk, sizeof chunk)) > 0)
        for (i64 at = 0; at < got;) {
            struct dirent64 *entry = (struct dirent64 *)(chunk + at);
            at += entry->length;
            if (equal(entry->name, ".") || equal(entry->name, "..")) continue;
            if (++all->entries > MOST_ENTRIES) return REFUSED_ENTRIES;
            buffer_add(names, entry->name, strlen(entry->name) + 1);
        }
    return got;
}

// Everything below an open folder, each level from the one above it.
static i64 list_folder(struct listing *all, i64 folder, struct buffer *path, usize depth) {
    struct buffer names = {0};
    i64 entries = SYS4(SYS_openat, folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (entries == -EACCES && path->length) {
        note(all, path, "unreadable");
        return 0;
    }
    if (entries < 0) return entries;
    i64 result = read_names(all, entries, &names);
    SYS1(SYS_close, entries);
    for (usize at = 0; at < names.length && result >= 0;) {
        result = list_entry(all, folder, path, depth, (char *)names.data + at);
        at += strlen((char *)names.data + at) + 1;
    }
    buffer_free(&names);
    return result;
}

i64 list_tree(struct field path, i64 most, struct buffer *out) {
    char *first, *name;
    i64 result = check_path(path, &first);
    if (result < 0) return result;
    struct listing all = {.room = most};
    struct buffer inner = {0};
    i64 parent = open_parent(first, 0, &name);
    i64 folder = parent < 0 ? parent : SYS4(SYS_openat, parent, name, OPEN_FOLDER, 0);
    if (parent >= 0) SYS1(SYS_close, parent);
    result = folder;
    if (folder >= 0) {
        result = list_folder(&all, folder, &inner, 0);
        SYS1(SYS_close, folder);
    }
    if (result >= 0) {
        frame_number(out, (i64)all.count);
        buffer_add(out, all.files.data, all.files.length);
        buffer_add(out, all.odd.data, all.odd.length);
        result = 0;
    }
    buffer_free(&all.files);
    buffer_free(&all.odd);
    buffer_free(&inner);
    return result;
}
