/* One line for each attempt: its name, and what the kernel said. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>

static inline void report(const char *name, long result) {
    printf("%s: %s\n", name, result < 0 ? strerrorname_np(errno) : "done");
    fflush(stdout);
}
