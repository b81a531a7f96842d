/* Tries to raise each limit above what it came with. */
#include "report.h"
#include <stdlib.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void) {
    static const struct { const char *name; int resource; } limits[] = {
        {"processes", RLIMIT_NPROC}, {"file size", RLIMIT_FSIZE}, {"open files", RLIMIT_NOFILE},
        {"locked memory", RLIMIT_MEMLOCK}, {"message queues", RLIMIT_MSGQUEUE}, {"pending signals", RLIMIT_SIGPENDING},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        getrlimit(limits[i].resource, &limit);
        limit.rlim_cur = ++limit.rlim_max;
        report(limits[i].name, setrlimit(limits[i].resource, &limit));
    }
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    report("being spared when memory runs out", fd < 0 ? -1 : write(fd, "499", 3));
    return 0;
}
