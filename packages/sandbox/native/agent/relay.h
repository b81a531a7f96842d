/* Bytes between two sockets, both ways, without blocking. */
#pragma once
#include "agent.h"
#include <poll.h>

enum { RELAY_ROOM = 64 << 10 };

struct flow {
    size_t start, end;
    bool at_end, shut;
    unsigned char data[RELAY_ROOM];
};
struct relay {
    int fd[2];
    /* flow[i] goes from fd[i] to the other. */
    struct flow flow[2];
};
void relay_open(struct relay *relay, int a, int b);
void relay_poll(const struct relay *relay, struct pollfd fds[2]);
/* False when it is over; then both descriptors are closed. */
bool relay_work(struct relay *relay, const struct pollfd fds[2]);
void relay_close(struct relay *relay);
