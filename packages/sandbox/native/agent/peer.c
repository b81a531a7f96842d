/* The host's connections to an exec's handler. None can block it. */
#include "exec.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* More than output can queue: standard input from a slow reader still arrives. */
enum { QUEUE_FULL = 512 << 10 };

void peers_init(struct peer *peers, struct reader first) {
    for (int i = 0; i < MAX_PEERS; i++) peers[i].fd = -1;
    peers[0].fd = first.fd;
    peers[0].reader = first;
    fcntl(first.fd, F_SETFL, O_NONBLOCK);
}

void peer_close(struct peer *peer) {
    close(peer->fd);
    free(peer->queue);
    free(peer->own_memory);
    *peer = (struct peer){.fd = -1};
}

static void add(struct peer *peers, int fd) {
    /* Never reuses peer 0: output goes only to who started the exec. */
    for (int i = 1; i < MAX_PEERS; i++) {
        struct peer *peer = &peers[i];
        if (peer->fd >= 0) continue;
        size_t room = 2 * (FRAME_HEADER + MAX_FRAME);
        unsigned char *memory = malloc(room);
        if (!memory) break;
        fcntl(fd, F_SETFL, O_NONBLOCK);
        *peer = (struct peer){.fd = fd, .own_memory = memory, .reader = {.fd = fd, .data = memory, .capacity = room}};
        return;
    }
    reply_failure(fd, EAGAIN, "too many control connections");
    close(fd);
}

void peers_accept(struct peer *peers) {
    for (;;) {
        char byte;
        union {
            char space[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control;
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        if (recvmsg(ROUTE_FD, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) return;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (!header || header->cmsg_type != SCM_RIGHTS) continue;
        int fd;
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
        add(peers, fd);
    }
}

struct pollfd peer_poll(const struct peer *peer) {
    short events = 0;
    if (!peer->paused && !peer->at_end && peer->queued < QUEUE_FULL) events |= POLLIN;
    if (peer->queued > 0) events |= POLLOUT;
    /* Leaves out a peer that has to wait: poll reports a hang-up even unasked. */
    return (struct pollfd){.fd = events ? peer->fd : -1, .events = events};
}

static void flush(struct peer *peer) {
    while (peer->queued > 0) {
        ssize_t sent = send(peer->fd, peer->queue + peer->queue_start, peer->queued, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) return;
        if (sent < 0) {
            peer_close(peer);
            return;
        }
        peer->queue_start += (size_t)sent;
        peer->queued -= (size_t)sent;
    }
    peer->queue_start = 0;
    if (peer->closing && !peer->awaits_end) peer_close(peer);
}

void peer_finish(struct peer *peer) {
    peer->closing = true;
    if (peer->fd >= 0) flush(peer);
}

void peer_work(struct peer *peer, short events) {
    if (events & (POLLERR | POLLNVAL)) {
        peer_close(peer);
        return;
    }
    if (events & POLLOUT) flush(peer);
    if (peer->fd < 0 || !(events & (POLLIN | POLLHUP)) || peer->paused || peer->at_end) return;
    ssize_t got = fill(&peer->reader);
    if (got == 0) peer->at_end = true;
    else if (got < 0 && errno != EAGAIN) peer_close(peer);
}

void peer_send(struct peer *peer, const unsigned char *data, size_t length) {
    if (peer->fd < 0) return;
    if (peer->queued == 0) {
        ssize_t sent;
        do sent = send(peer->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (sent < 0 && errno == EINTR);
        if (sent < 0 && errno != EAGAIN) {
            peer_close(peer);
            return;
        }
        if (sent > 0) {
            data += sent;
            length -= (size_t)sent;
        }
    }
    if (length == 0) return;
    size_t used = peer->queue_start + peer->queued;
    if (peer->queue_room - used < length) {
        unsigned char *queue = realloc(peer->queue, used + length);
        if (!queue) {
            peer_close(peer);
            return;
        }
        peer->queue = queue;
        peer->queue_room = used + length;
    }
    memcpy(peer->queue + used, data, length);
    peer->queued += length;
}

void peer_done(struct peer *peer) {
    unsigned char frame[FRAME_HEADER];
    put_header(frame, 'K', 0);
    peer->awaits_end = false;
    peer_send(peer, frame, sizeof frame);
}

void peer_fail(struct peer *peer, int error, const char *message) {
    unsigned char frame[FAILURE_ROOM];
    peer_send(peer, frame, failure_frame(frame, sizeof frame, error, message));
}
