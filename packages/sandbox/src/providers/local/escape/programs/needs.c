/* What an honest program asks for: a few of each. */
#include "report.h"
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    timer_t timer;
    int notify = inotify_init1(0), pair[2];
    report("instances", notify);
    report("watches", inotify_add_watch(notify, "/tmp", IN_MODIFY));
    report("locked", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) == MAP_FAILED ? -1 : 0);
    report("timers", timer_create(CLOCK_MONOTONIC, NULL, &timer));
    report("files", open("/dev/null", O_RDONLY));
    report("in_flight", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    return 0;
}
