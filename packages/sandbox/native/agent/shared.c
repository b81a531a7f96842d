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

int64_t awake_ms(void) {
    int64_t clock = atomic_load(&shared->awake_clock);
    return clock < 0 ? -clock : now_ms() - clock;
}

bool awake_clock_stands(void) { return atomic_load(&shared->awake_clock) < 0; }

void awake_clock_stop(void) {
    if (!awake_clock_stands()) atomic_store(&shared->awake_clock, -awake_ms());
}

void awake_clock_go_on(void) {
    if (awake_clock_stands()) atomic_store(&shared->awake_clock, now_ms() - awake_ms());
}
