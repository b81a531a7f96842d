/* Watches a tree, or one name in a directory: a file that is replaced stays watched. */
#include "files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Over the handler's life: the kernel does not reuse their numbers. */
enum { MAX_WATCHES = 1 << 20 };
static const uint32_t interesting =
    IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

static int notify;
static bool recursive;
static const char *only_name; /* the one file to watch; NULL: the whole directory */
static char **paths; /* by watch descriptor */
static int path_room;

static void report(char change, const char *path) {
    static unsigned char payload[PATH_ROOM + 1];
    size_t length = strlen(path);
    payload[0] = (unsigned char)change;
    memcpy(payload + 1, path, length);
    out_bytes('v', payload, 1 + length);
}

static bool join(char room[PATH_ROOM], const char *directory, const char *name) {
    return snprintf(room, PATH_ROOM, "%s%s%s", directory, directory[strlen(directory) - 1] == '/' ? "" : "/", name) < PATH_ROOM;
}

/* By descriptor: the path may lead elsewhere by now. */
static int add_watch(int fd, const char *path) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int watch = inotify_add_watch(notify, link, interesting);
    if (watch < 0) return errno;
    if (watch >= MAX_WATCHES) return ENOSPC;
    if (watch >= path_room) {
        int room = watch * 2 + 64;
        char **grown = realloc(paths, (size_t)room * sizeof *paths);
        if (!grown) return ENOMEM;
        memset(grown + path_room, 0, (size_t)(room - path_room) * sizeof *paths);
        paths = grown;
        path_room = room;
    }
    free(paths[watch]);
    paths[watch] = strdup(path);
    return paths[watch] ? 0 : ENOMEM;
}

/* Watches a directory and what is below. Reports the entries of a new one, which may be older than its watch. */
static void watch_below(int parent, const char *name, const char *path, bool is_new, unsigned depth) {
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || depth >= MAX_DEPTH) {
        if (fd >= 0) close(fd);
        return;
    }
    int error = add_watch(fd, path);
    if (error == ENOSPC || error == ENOMEM) fail(EOVERFLOW, "too many directories to watch");
    DIR *stream = fdopendir(fd);
    if (!stream) {
        close(fd);
        return;
    }
    char *inner = malloc(PATH_ROOM);
    for (struct dirent *entry; inner && (entry = readdir(stream));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || is_temporary(entry->d_name)) continue;
        if (!join(inner, path, entry->d_name)) continue;
        if (is_new) report('c', inner);
        if (recursive) watch_below(fd, entry->d_name, inner, is_new, depth + 1);
    }
    free(inner);
    closedir(stream);
}

static void take_event(const struct inotify_event *event) {
    static char path[PATH_ROOM];
    if (event->mask & IN_Q_OVERFLOW) fail(EOVERFLOW, "changes came faster than they were read");
    const char *directory = event->wd >= 0 && event->wd < path_room ? paths[event->wd] : NULL;
    if (!directory) return;
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) {
        if (event->wd == 1 && !only_name) report('r', directory);
        return;
    }
    if (event->mask & IN_IGNORED) {
        free(paths[event->wd]);
        paths[event->wd] = NULL;
    }
    if (event->len == 0) return;
    if (is_temporary(event->name) || (only_name && strcmp(only_name, event->name) != 0)) return;
    if (!join(path, directory, event->name)) return;
    if (event->mask & (IN_DELETE | IN_MOVED_FROM)) report('r', path);
    else if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
        report('c', path);
        if (recursive && event->mask & IN_ISDIR) {
            char *copy = strdup(path);
            int parent = copy ? open_path(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW) : -1;
            if (parent >= 0) watch_below(parent, event->name, copy, true, 1);
            if (parent >= 0) close(parent);
            free(copy);
        }
    } else report('m', path);
}

static void open_watches(const char *path) {
    int fd = open_path(path, O_PATH);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) fail(errno, "watch");
    if (S_ISDIR(info.st_mode)) {
        int directory = open_path(path, O_RDONLY | O_DIRECTORY);
        if (directory < 0) fail(errno, "watch");
        watch_below(directory, ".", path, false, 0);
        return;
    }
    const char *slash = strrchr(path, '/');
    char *parent = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int directory = parent ? open_path(parent, O_RDONLY | O_DIRECTORY) : -1;
    only_name = slash + 1;
    recursive = false;
    if (directory < 0 || add_watch(directory, parent) != 0) fail(errno, "watch");
}

void handle_watch(const struct request *request) {
    const char *path = path_field(request, 'p');
    recursive = field(request, 'r') != NULL;
    notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (notify < 0) fail(errno, "watch");
    open_watches(path);
    if (!paths) fail(ENOSPC, "no watch is left");
    out_bytes('K', NULL, 0);
    out_flush();
    static char events[64 << 10] __attribute__((aligned(8)));
    struct pollfd fds[2] = {{.fd = CONNECTION_FD, .events = POLLIN}, {.fd = notify, .events = POLLIN}};
    while (poll(fds, 2, -1) > 0 && !fds[0].revents) {
        ssize_t got = read(notify, events, sizeof events);
        for (char *at = events; got > 0 && at < events + got;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            take_event(event);
            at += sizeof *event + event->len;
        }
        out_flush();
    }
    _exit(0);
}
