/* Reads and writes one file. */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READ_CHUNK = 128 << 10 };

/* 0, or the errno for anything but a regular file. */
static int refusal(mode_t mode) { return S_ISREG(mode) ? 0 : S_ISDIR(mode) ? EISDIR : ENOTSUP; }

void handle_read(const struct request *request) {
    int fd = open_path(path_field(request, 'p'), O_RDONLY);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) fail(errno, "open");
    if (refusal(info.st_mode)) fail(refusal(info.st_mode), "not a regular file");
    uint64_t offset = number_field(request, 'o', 0), left = number_field(request, 'n', UINT64_MAX);
    if (offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0) fail(errno, "offset");
    if (!send_frame(CONNECTION_FD, 'K', NULL, 0)) _exit(0);
    static unsigned char frame[FRAME_HEADER + READ_CHUNK];
    while (left > 0) {
        ssize_t got = read(fd, frame + FRAME_HEADER, left < READ_CHUNK ? (size_t)left : READ_CHUNK);
        if (got < 0) fail(errno, "read");
        if (got == 0) break;
        put_header(frame, 'd', (size_t)got);
        if (!write_all(CONNECTION_FD, frame, FRAME_HEADER + (size_t)got)) _exit(0);
        left -= (uint64_t)got;
    }
    send_frame(CONNECTION_FD, 'c', NULL, 0);
    _exit(0);
}

/* Writes the content as it arrives: 0, an errno, or -1 when the host has disconnected. */
static int receive(struct reader *reader, int fd, uint64_t *bytes) {
    struct frame frame;
    while (next_frame(reader, &frame)) {
        if (frame.type == 'c') return 0;
        if (frame.type != 'i') return EBADMSG;
        if (!write_all(fd, frame.payload, frame.length)) return errno;
        *bytes += frame.length;
    }
    return -1;
}

void handle_write(struct reader *reader, const struct request *request) {
    const char *name;
    int parent = open_parent(path_field(request, 'p'), true, &name);
    if (parent < 0) fail_sending(reader, errno, "directory");
    struct stat old;
    bool exists = fstatat(parent, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    /* A link is replaced, not followed. */
    if (exists && !S_ISLNK(old.st_mode) && refusal(old.st_mode)) fail_sending(reader, refusal(old.st_mode), "not a regular file");
    mode_t mode = mode_field(request, exists && S_ISREG(old.st_mode) ? old.st_mode & 07777 : 0644);
    char temporary[TEMPORARY_NAME];
    temporary_name(temporary);
    int fd = openat(parent, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) fail_sending(reader, errno, "create");
    uint64_t bytes = 0;
    int error = receive(reader, fd, &bytes);
    if (!error && fchmod(fd, mode) != 0) error = errno;
    /* Before the answer: a file that is open for writing cannot be executed. */
    if (close(fd) != 0 && !error) error = errno;
    if (!error && renameat(parent, temporary, parent, name) != 0) error = errno;
    if (error) unlinkat(parent, temporary, 0);
    if (error > 0) fail_sending(reader, error, "write");
    unsigned char payload[8];
    put_u64(payload, bytes);
    if (error == 0) succeed(payload, sizeof payload);
    _exit(0);
}
