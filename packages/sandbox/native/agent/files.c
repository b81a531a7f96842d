#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OUT_ROOM = 256 << 10, SEARCH_MEMORY = 256 << 20, LINGER_MS = 5000 };

static unsigned char out[OUT_ROOM];
static size_t out_used;

void out_flush(void) {
    if (!write_all(CONNECTION_FD, out, out_used)) _exit(0);
    out_used = 0;
}

static unsigned char *out_frame(unsigned char type, size_t length) {
    if (out_used + FRAME_HEADER + length > sizeof out) out_flush();
    unsigned char *at = out + out_used;
    put_header(at, type, length);
    out_used += FRAME_HEADER + length;
    return at + FRAME_HEADER;
}

void out_bytes(unsigned char type, const void *payload, size_t length) {
    unsigned char *at = out_frame(type, length);
    if (length > 0) memcpy(at, payload, length);
}

static char type_letter(mode_t mode) { return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o'; }

void out_entry(const struct stat *info, const char *path, const char *target) {
    size_t path_length = strlen(path) + 1, target_length = strlen(target) + 1;
    unsigned char *at = out_frame('n', 21 + path_length + target_length);
    at[0] = (unsigned char)type_letter(info->st_mode);
    put_u32(at + 1, info->st_mode & 07777);
    put_u64(at + 5, (uint64_t)info->st_size);
    put_u64(at + 13, (uint64_t)((int64_t)info->st_mtim.tv_sec * 1000 + info->st_mtim.tv_nsec / 1000000));
    memcpy(at + 21, path, path_length);
    memcpy(at + 21 + path_length, target, target_length);
}

void fail(int error, const char *what) {
    out_flush();
    send_failure(CONNECTION_FD, error, what);
    _exit(0);
}

void fail_sending(struct reader *reader, int error, const char *what) {
    out_flush();
    send_failure(CONNECTION_FD, error, what);
    struct timeval patience = {.tv_sec = LINGER_MS / 1000};
    setsockopt(CONNECTION_FD, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (fill(reader) > 0) reader->start = reader->end = 0;
    _exit(0);
}

void succeed(const void *payload, size_t length) {
    out_bytes('K', payload, length);
    out_flush();
    _exit(0);
}

void check_host(void) {
    char byte;
    if (recv(CONNECTION_FD, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) _exit(0);
}

const char *path_field(const struct request *request, char key) {
    const char *path = field(request, key);
    if (!path || path[0] != '/') fail(EINVAL, "expected an absolute path");
    if (strlen(path) >= 4096) fail(ENAMETOOLONG, "path");
    return path;
}

mode_t mode_field(const struct request *request, mode_t otherwise) {
    const char *text = field(request, 'm');
    return text ? (mode_t)strtoul(text, NULL, 8) & 07777 : otherwise;
}

static _Noreturn void handle_stat(const struct request *request) {
    const char *path = path_field(request, 'p');
    int fd = open_path(path, O_PATH | (field(request, 'f') ? 0 : O_NOFOLLOW));
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) fail(errno, "stat");
    out_entry(&info, path, S_ISLNK(info.st_mode) ? link_target(fd, "") : "");
    out_flush();
    _exit(0);
}

static _Noreturn void handle_mkdir(const struct request *request) {
    if (make_directories(path_field(request, 'p'), mode_field(request, 0755)) < 0) fail(errno, "mkdir");
    succeed(NULL, 0);
}

static void limit_resources(void) {
    if (options.file_bytes) setrlimit(RLIMIT_FSIZE, &(struct rlimit){options.file_bytes, options.file_bytes});
    /* For EFBIG instead of a death without an answer. */
    signal(SIGXFSZ, SIG_IGN);
    /* A regular expression can take any amount of memory. */
    setrlimit(RLIMIT_DATA, &(struct rlimit){SEARCH_MEMORY, SEARCH_MEMORY});
}

void handle_file_operation(struct reader *reader, const struct request *request) {
    limit_resources();
    switch (request->op) {
    case 'r': handle_read(request);
    case 'w': handle_write(reader, request);
    case 't': handle_stat(request);
    case 'l': handle_list(request);
    case 'k': handle_mkdir(request);
    case 'v': handle_move(request);
    case 'd': handle_remove(request);
    case 'g': handle_search(request);
    case 'n': handle_watch(request);
    case 'U': handle_upload(reader, request);
    case 'D': handle_download(request);
    default: fail(EINVAL, "unknown operation");
    }
}
