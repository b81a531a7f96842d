#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BENEATH = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
static const char temporary_prefix[] = ".slipway-";

static int resolve(int directory, const char *path, int flags, uint64_t rules) {
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = rules};
    /* EAGAIN: a rename elsewhere raced with the resolution of `..`. */
    for (int attempt = 0; attempt < 64; attempt++) {
        int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN) return fd;
    }
    return -1;
}

int open_path(const char *path, int flags) {
    /* Opening a device or a pipe must not block the handler, nor give it a terminal. */
    int quiet = flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY;
    return resolve(AT_FDCWD, path, flags | quiet, RESOLVE_NO_MAGICLINKS);
}

int open_beneath(int directory, const char *path, int flags) { return resolve(directory, path, flags, BENEATH); }

/* One name below an opened directory; the mode is for one that is made. */
static int enter(int directory, const char *name, mode_t mode, uint64_t rules) {
    int fd = resolve(directory, name, O_PATH | O_DIRECTORY, rules);
    if (fd >= 0 || errno != ENOENT) return fd;
    if (mkdirat(directory, name, mode) != 0 && errno != EEXIST) return -1;
    return resolve(directory, name, O_PATH | O_DIRECTORY, rules);
}

/* Makes what is missing of a path below `fd`, which it closes. The last directory gets the mode. */
static int make_below(int fd, const char *path, mode_t mode, uint64_t rules) {
    char *copy = strdup(path), *rest = NULL;
    for (char *name = copy ? strtok_r(copy, "/", &rest) : NULL; name && fd >= 0;) {
        char *next = strtok_r(NULL, "/", &rest);
        int inner = enter(fd, name, next ? 0755 : mode, rules);
        int error = errno;
        close(fd);
        errno = error;
        fd = inner;
        name = next;
    }
    free(copy);
    return fd;
}

int make_directories(const char *path, mode_t mode) {
    int fd = open_path(path, O_PATH | O_DIRECTORY);
    if (fd >= 0 || errno != ENOENT) return fd;
    return make_below(open_path("/", O_PATH | O_DIRECTORY), path, mode, RESOLVE_NO_MAGICLINKS);
}

int make_beneath(int directory, const char *path) { return make_below(dup(directory), path, 0755, BENEATH); }

int open_parent(const char *path, bool create, const char **name) {
    static char parent[4096];
    const char *slash = strrchr(path, '/');
    *name = slash + 1;
    if (**name == 0 || !strcmp(*name, ".") || !strcmp(*name, "..")) {
        errno = **name == 0 && slash == path ? EISDIR : EINVAL;
        return -1;
    }
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    memcpy(parent, path, length);
    parent[length] = 0;
    return create ? make_directories(parent, 0755) : open_path(parent, O_PATH | O_DIRECTORY);
}

void temporary_name(char name[TEMPORARY_NAME]) {
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random) abort();
    snprintf(name, TEMPORARY_NAME, "%s%016llx", temporary_prefix, (unsigned long long)random);
}

bool is_temporary(const char *name) { return strncmp(name, temporary_prefix, sizeof temporary_prefix - 1) == 0; }

const char *link_target(int directory, const char *name) {
    static char target[4097];
    ssize_t length = readlinkat(directory, name, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = 0;
    return target;
}
