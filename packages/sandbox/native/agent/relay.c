#include "relay.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

void relay_open(struct relay *relay, int a, int b) {
    relay->fd[0] = a;
    relay->fd[1] = b;
    for (int i = 0; i < 2; i++) {
        fcntl(relay->fd[i], F_SETFL, O_NONBLOCK);
        relay->flow[i].start = relay->flow[i].end = 0;
        relay->flow[i].at_end = relay->flow[i].shut = false;
    }
}

void relay_close(struct relay *relay) {
    close(relay->fd[0]);
    close(relay->fd[1]);
}

void relay_poll(const struct relay *relay, struct pollfd fds[2]) {
    for (int i = 0; i < 2; i++) {
        const struct flow *from = &relay->flow[i], *to = &relay->flow[1 - i];
        short events = 0;
        if (!from->at_end && from->start == from->end) events |= POLLIN;
        if (to->start < to->end) events |= POLLOUT;
        /* Leaves out a side that has to wait: poll reports a hang-up even unasked. */
        fds[i] = (struct pollfd){.fd = events ? relay->fd[i] : -1, .events = events};
    }
}

static bool push(struct relay *relay, int from) {
    struct flow *flow = &relay->flow[from];
    while (flow->start < flow->end) {
        ssize_t sent = send(relay->fd[1 - from], flow->data + flow->start, flow->end - flow->start, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) return true;
        if (sent < 0) return false;
        flow->start += (size_t)sent;
    }
    flow->start = flow->end = 0;
    if (flow->at_end && !flow->shut) {
        shutdown(relay->fd[1 - from], SHUT_WR);
        flow->shut = true;
    }
    return true;
}

static bool pull(struct relay *relay, int from) {
    struct flow *flow = &relay->flow[from];
    if (flow->at_end || flow->start < flow->end) return true;
    ssize_t got = recv(relay->fd[from], flow->data, sizeof flow->data, 0);
    if (got < 0) return errno == EAGAIN;
    flow->end = (size_t)got;
    flow->at_end = got == 0;
    return push(relay, from);
}

bool relay_work(struct relay *relay, const struct pollfd fds[2]) {
    bool alive = true;
    for (int i = 0; i < 2 && alive; i++) {
        if (fds[i].revents & (POLLOUT | POLLERR)) alive = push(relay, 1 - i);
        if (alive && fds[i].revents & (POLLIN | POLLHUP | POLLERR)) alive = pull(relay, i);
    }
    if (alive && !(relay->flow[0].shut && relay->flow[1].shut)) return true;
    relay_close(relay);
    return false;
}
