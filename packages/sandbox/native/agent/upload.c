/* Writes a tree below a directory. No entry can leave it, neither by its name nor through an old or a new link. */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct upload {
    int base;
    int file; /* receives the next bytes; -1: none */
    mode_t mode;
    uint64_t entries, bytes;
    /* The directory of the previous entry: siblings follow each other. */
    int parent;
    char parent_path[4096];
};

/* Relative, and made of plain names. */
static bool is_held(const char *path) {
    size_t length = strlen(path);
    if (length == 0 || length >= 4096) return false;
    for (const char *name = path;;) {
        size_t size = strcspn(name, "/");
        if (size == 0 || (size == 1 && name[0] == '.') || (size == 2 && name[0] == '.' && name[1] == '.')) return false;
        if (name[size] == 0) return true;
        name += size + 1;
    }
}

/* The directory that holds the entry, and the entry's name in it. */
static int parent_of(struct upload *upload, const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash) return upload->base;
    size_t length = (size_t)(slash - path);
    if (upload->parent >= 0 && strlen(upload->parent_path) == length && memcmp(upload->parent_path, path, length) == 0) return upload->parent;
    if (upload->parent >= 0) close(upload->parent);
    memcpy(upload->parent_path, path, length);
    upload->parent_path[length] = 0;
    return upload->parent = make_beneath(upload->base, upload->parent_path);
}

static int close_file(struct upload *upload) {
    if (upload->file < 0) return 0;
    int error = fchmod(upload->file, upload->mode) == 0 ? 0 : errno;
    close(upload->file);
    upload->file = -1;
    return error;
}

static int put_directory(int parent, const char *name, mode_t mode) {
    if (mkdirat(parent, name, 0755) != 0 && errno != EEXIST) return errno;
    int fd = open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
    /* An unreadable directory keeps its mode. */
    if (fd < 0) return errno == EACCES ? 0 : errno;
    int error = fchmod(fd, mode) == 0 ? 0 : errno;
    close(fd);
    return error;
}

static int open_fresh(int parent, const char *name) {
    return openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Never writes into an existing file: it may have another name too. */
static int put_file(struct upload *upload, int parent, const char *name) {
    upload->file = open_fresh(parent, name);
    if (upload->file < 0 && errno == EEXIST) {
        if (unlinkat(parent, name, 0) != 0 && errno != ENOENT) return errno;
        upload->file = open_fresh(parent, name);
    }
    return upload->file < 0 ? errno : 0;
}

static int put_link(int parent, const char *name, const char *target) {
    if (symlinkat(target, parent, name) == 0) return 0;
    if (errno != EEXIST) return errno;
    if (unlinkat(parent, name, 0) != 0 && errno != ENOENT) return errno;
    return symlinkat(target, parent, name) == 0 ? 0 : errno;
}

static int take_entry(struct upload *upload, const struct frame *frame) {
    const char *path = (const char *)frame->payload + 5;
    const char *end = (const char *)frame->payload + frame->length;
    if (frame->length < 7 || end[-1] != 0) return EBADMSG;
    const char *target = path + strlen(path) + 1;
    if (target >= end || target + strlen(target) + 1 != end) return EBADMSG;
    if (!is_held(path)) return EXDEV;
    const char *name;
    int parent = parent_of(upload, path, &name);
    if (parent < 0) return errno == ENOTDIR ? EXDEV : errno;
    upload->mode = get_u32(frame->payload + 1) & 07777;
    upload->entries++;
    switch (frame->payload[0]) {
    case 'd': return put_directory(parent, name, upload->mode);
    case 'f': return put_file(upload, parent, name);
    case 'l': return *target ? put_link(parent, name, target) : EINVAL;
    default: return EBADMSG;
    }
}

static int take(struct upload *upload, const struct frame *frame) {
    if (frame->type == 'i') {
        upload->bytes += frame->length;
        if (upload->file < 0) return EBADMSG;
        return write_all(upload->file, frame->payload, frame->length) ? 0 : errno;
    }
    int error = close_file(upload);
    if (error || frame->type == 'c') return error;
    return frame->type == 'h' ? take_entry(upload, frame) : EBADMSG;
}

void handle_upload(struct reader *reader, const struct request *request) {
    static struct upload upload = {.file = -1, .parent = -1};
    upload.base = make_directories(path_field(request, 'p'), 0755);
    if (upload.base < 0) fail_sending(reader, errno, "directory");
    struct frame frame;
    do {
        if (!next_frame(reader, &frame)) _exit(0);
        int error = take(&upload, &frame);
        /* Only a malformed entry may have a path without an end. */
        if (error) fail_sending(reader, error, frame.type == 'h' && error != EBADMSG ? (const char *)frame.payload + 5 : "upload");
    } while (frame.type != 'c');
    unsigned char payload[16];
    put_u64(payload, upload.entries);
    put_u64(payload + 8, upload.bytes);
    succeed(payload, sizeof payload);
}
