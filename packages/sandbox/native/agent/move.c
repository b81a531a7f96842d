/* Moves and removes. Copies and renames where the file system refuses a move between its layers. */
#include "files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int copy_any(int from, const char *name, int to, const char *copy, unsigned depth);

static int copy_bytes(int from, int to) {
    static unsigned char data[128 << 10];
    for (;;) {
        ssize_t got = read(from, data, sizeof data);
        if (got < 0) return errno;
        if (got == 0) return 0;
        if (!write_all(to, data, (size_t)got)) return errno;
    }
}

static int copy_file(int from, const char *name, int to, const char *copy) {
    int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (source < 0) return errno;
    struct stat info;
    int target = -1, error = fstat(source, &info) == 0 ? 0 : errno;
    if (!error && !S_ISREG(info.st_mode)) error = ENOTSUP;
    if (!error && (target = openat(to, copy, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0) error = errno;
    if (!error) error = copy_bytes(source, target);
    if (!error && fchmod(target, info.st_mode & 07777) != 0) error = errno;
    if (!error) futimens(target, (struct timespec[]){info.st_atim, info.st_mtim});
    if (target >= 0) close(target);
    close(source);
    return error;
}

static int copy_directory(int from, const char *name, int to, const char *copy, unsigned depth) {
    if (depth >= MAX_DEPTH) return ENAMETOOLONG;
    int source = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0) return errno;
    DIR *stream = fdopendir(source);
    struct stat info;
    int target = -1, error = stream && fstat(source, &info) == 0 ? 0 : errno;
    if (!error && mkdirat(to, copy, 0700) != 0) error = errno;
    if (!error && (target = openat(to, copy, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) error = errno;
    for (struct dirent *entry; !error && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) error = copy_any(source, entry->d_name, target, entry->d_name, depth + 1);
    if (!error && fchmod(target, info.st_mode & 07777) != 0) error = errno;
    if (!error) futimens(target, (struct timespec[]){info.st_atim, info.st_mtim});
    if (target >= 0) close(target);
    if (stream) closedir(stream);
    return error;
}

static int copy_any(int from, const char *name, int to, const char *copy, unsigned depth) {
    struct stat info;
    if (fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return errno;
    check_host();
    if (S_ISDIR(info.st_mode)) return copy_directory(from, name, to, copy, depth);
    if (S_ISLNK(info.st_mode)) return symlinkat(link_target(from, name), to, copy) == 0 ? 0 : errno;
    return copy_file(from, name, to, copy);
}

static int empty_directory(int directory, const char *name, unsigned depth) {
    if (depth >= MAX_DEPTH) return ENAMETOOLONG;
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno;
    DIR *stream = fdopendir(fd);
    if (!stream) return errno;
    int error = 0;
    for (struct dirent *entry; !error && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) error = remove_tree(fd, entry->d_name, depth + 1);
    closedir(stream);
    return error;
}

int remove_tree(int directory, const char *name, unsigned depth) {
    if (unlinkat(directory, name, 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    /* Something may create entries meanwhile. */
    for (int attempt = 0; attempt < 8; attempt++) {
        if (unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
        if (errno != ENOTEMPTY && errno != EEXIST) return errno;
        int error = empty_directory(directory, name, depth);
        if (error) return error;
    }
    return ENOTEMPTY;
}

void handle_remove(const struct request *request) {
    const char *name;
    int parent = open_parent(path_field(request, 'p'), false, &name);
    if (parent < 0) fail(errno == EISDIR ? EBUSY : errno, "remove");
    struct stat info;
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) fail(errno, "remove");
    int error = 0;
    if (field(request, 'r')) error = remove_tree(parent, name, 0);
    else if (unlinkat(parent, name, S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0) != 0) error = errno;
    if (error) fail(error, "remove");
    succeed(NULL, 0);
}

static int copy_and_remove(int from, const char *name, int to, const char *target, unsigned flags) {
    char temporary[TEMPORARY_NAME];
    temporary_name(temporary);
    int error = copy_any(from, name, to, temporary, 0);
    if (!error && renameat2(to, temporary, to, target, flags) != 0) error = errno;
    if (error) {
        remove_tree(to, temporary, 0);
        return error;
    }
    return remove_tree(from, name, 0);
}

static bool is_inside(const char *path, const char *directory) {
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == 0);
}

void handle_move(const struct request *request) {
    const char *from_path = path_field(request, 'p'), *to_path = path_field(request, 'q'), *from_name, *to_name;
    if (is_inside(to_path, from_path)) fail(EINVAL, "a directory cannot be moved into itself");
    int from = open_parent(from_path, false, &from_name);
    if (from < 0) fail(errno == EISDIR ? EBUSY : errno, "from");
    struct stat info;
    if (fstatat(from, from_name, &info, AT_SYMLINK_NOFOLLOW) != 0) fail(errno, "from");
    int to = open_parent(to_path, true, &to_name);
    if (to < 0) fail(errno == EISDIR ? EBUSY : errno, "to");
    unsigned flags = field(request, 'f') ? 0 : RENAME_NOREPLACE;
    int error = renameat2(from, from_name, to, to_name, flags) == 0 ? 0 : errno;
    if (error == EXDEV && flags && faccessat(to, to_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) error = EEXIST;
    if (error == EXDEV) error = copy_and_remove(from, from_name, to, to_name, flags);
    if (error) fail(error, "move");
    succeed(NULL, 0);
}
