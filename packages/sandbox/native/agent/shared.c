#include "agent.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

struct shared *shared;

void shared_open(void) {
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    shared = memory;
}

int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t awake_ms(void) { return now_ms() - atomic_load(&shared->asleep_ms); }
