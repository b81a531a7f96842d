/* Takes as much as it gets of something that the kernel counts by user, says so, and keeps it. */
#include "report.h"
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 2000000, BATCH = 253 };

static long instances(void) {
    long count = 0;
    while (count < 5000 && inotify_init1(0) >= 0) count++;
    return count;
}

static long watches(void) {
    enum { DIRECTORIES = 4000 };
    char path[64];
    long count = 0;
    mkdir("/tmp/hog", 0755);
    for (int fd; (fd = inotify_init1(0)) >= 0;)
        for (int i = 0; i < DIRECTORIES; i++, count++) {
            snprintf(path, sizeof path, "/tmp/hog/%d", i);
            mkdir(path, 0755);
            if (inotify_add_watch(fd, path, IN_MODIFY) < 0) return count;
        }
    return count;
}

/* Descriptors inside messages that nobody reads. */
static long in_flight(void) {
    long count = 0;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (int pair[2]; count < MOST && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) == 0;) {
        union {
            char space[CMSG_SPACE(BATCH * sizeof(int))];
            struct cmsghdr align;
        } control;
        for (long before = -1; before != count;) {
            before = count;
            struct iovec part = {"x", 1};
            struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(BATCH * sizeof(int))};
            for (int i = 0; i < BATCH; i++) memcpy(CMSG_DATA(header) + i * sizeof(int), &pair[0], sizeof(int));
            if (sendmsg(pair[0], &message, 0) > 0) count += BATCH;
            else if (errno == ETOOMANYREFS) return count;
        }
    }
    return count;
}

static long locked(void) {
    long count = 0;
    while (count < 100000 && mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) != MAP_FAILED) count++;
    return count;
}

static long timers(void) {
    long count = 0;
    timer_t timer;
    while (count < 200000 && timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0) count++;
    return count;
}

static long files(void) {
    long count = 0;
    while (count < 200000 && open("/dev/null", O_RDONLY) >= 0) count++;
    return count;
}

int main(int ignored, char **arguments) {
    static const struct { const char *name; long (*take)(void); } kinds[] = {
        {"instances", instances}, {"watches", watches}, {"in_flight", in_flight}, {"locked", locked}, {"timers", timers}, {"files", files},
    };
    (void)ignored;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(arguments[1], kinds[i].name)) continue;
        printf("%s: %ld\nready\n", kinds[i].name, kinds[i].take());
        fflush(stdout);
        for (;;) pause();
    }
    return 99;
}
