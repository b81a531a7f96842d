/* Walks a tree by descriptors: does not follow a directory that becomes a link meanwhile. */
#include "files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct walker {
    visitor visitor;
    void *context;
    unsigned depth;
    char path[PATH_ROOM];
};

static void walk_into(struct walker *walker, int directory, size_t length, unsigned level);

static void visit_entry(struct walker *walker, int directory, const char *name, size_t length, unsigned level) {
    size_t name_length = strlen(name);
    bool separated = length == 0 || walker->path[length - 1] == '/';
    if (length + name_length + 2 > sizeof walker->path) return;
    struct visit visit = {.directory = directory, .name = name, .path = walker->path};
    /* Deleted since it was listed. */
    if (fstatat(directory, name, &visit.info, AT_SYMLINK_NOFOLLOW) != 0) return;
    size_t end = length;
    if (!separated) walker->path[end++] = '/';
    memcpy(walker->path + end, name, name_length + 1);
    walker->visitor(&visit, walker->context);
    if (!S_ISDIR(visit.info.st_mode) || (walker->depth && level >= walker->depth)) return;
    if (level >= MAX_DEPTH) fail(ENAMETOOLONG, "the tree is too deep");
    int inner = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner >= 0) walk_into(walker, inner, end + name_length, level + 1);
}

/* Closes the descriptor. */
static void walk_into(struct walker *walker, int directory, size_t length, unsigned level) {
    DIR *stream = fdopendir(directory);
    if (!stream) {
        close(directory);
        return;
    }
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        visit_entry(walker, dirfd(stream), entry->d_name, length, level);
        walker->path[length] = 0;
    }
    closedir(stream);
}

void walk(int directory, const char *base, unsigned depth, visitor visitor, void *context) {
    static struct walker walker;
    walker.visitor = visitor;
    walker.context = context;
    walker.depth = depth;
    strcpy(walker.path, base);
    walk_into(&walker, directory, strlen(base), 1);
}

static const char *target_of(const struct visit *visit) {
    return S_ISLNK(visit->info.st_mode) ? link_target(visit->directory, visit->name) : "";
}

static void list_entry(const struct visit *visit, void *context) {
    (void)context;
    out_entry(&visit->info, visit->path, target_of(visit));
}

void handle_list(const struct request *request) {
    const char *path = path_field(request, 'p');
    int fd = open_path(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) fail(errno, "open");
    walk(fd, path, (unsigned)number_field(request, 'd', 1), list_entry, NULL);
    succeed(NULL, 0);
}

static void download_file(int fd) {
    static unsigned char data[128 << 10];
    for (ssize_t got; (got = read(fd, data, sizeof data)) != 0;) {
        if (got < 0) fail(errno, "read");
        out_bytes('d', data, (size_t)got);
    }
}

static void download_entry(const struct visit *visit, void *context) {
    (void)context;
    mode_t mode = visit->info.st_mode;
    if (!(S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode))) return;
    if (!S_ISREG(mode)) {
        out_entry(&visit->info, visit->path, target_of(visit));
        return;
    }
    int fd = openat(visit->directory, visit->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 && (errno == ENOENT || errno == ELOOP)) return;
    if (fd < 0 || fstat(fd, &info) != 0) fail(errno, visit->path);
    if (S_ISREG(info.st_mode)) {
        out_entry(&info, visit->path, "");
        download_file(fd);
    }
    close(fd);
}

void handle_download(const struct request *request) {
    int fd = open_path(path_field(request, 'p'), O_RDONLY | O_DIRECTORY);
    if (fd < 0) fail(errno, "open");
    walk(fd, "", 0, download_entry, NULL);
    succeed(NULL, 0);
}
