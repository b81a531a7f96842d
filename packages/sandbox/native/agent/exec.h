/* The parts of an exec's handler: exec.c runs it, peer.c keeps its connections. */
#pragma once
#include "agent.h"
#include <poll.h>

enum { MAX_PEERS = 16, PIPE_DEFAULT = 64 << 10 };

/* A connection of the host. Peer 0 started the exec and gets its output; the others control it. */
struct peer {
    int fd;
    struct reader reader;
    unsigned char *own_memory; /* the reader's, but for peer 0 */
    bool paused;     /* standard input is full: its next frame waits */
    bool at_end;     /* the host sends no more */
    bool closing;    /* closed when all is sent */
    bool awaits_end; /* gets its K when the tree is gone */
    unsigned char *queue;
    size_t queued, queue_start, queue_room;
};
void peers_init(struct peer *peers, struct reader first);
/* Takes the connections that pid 1 has routed here. */
void peers_accept(struct peer *peers);
struct pollfd peer_poll(const struct peer *peer);
void peer_work(struct peer *peer, short events);
/* Sends what the connection takes now, queues the rest. */
void peer_send(struct peer *peer, const unsigned char *data, size_t length);
/* Closes it when all is sent. */
void peer_finish(struct peer *peer);
void peer_done(struct peer *peer);
void peer_fail(struct peer *peer, int error, const char *message);
void peer_close(struct peer *peer);

struct exec {
    struct slot *slot;
    struct command command;
    struct log log;
    struct peer peers[MAX_PEERS];
    enum end_reason reason; /* EXITED until something else ends it */
    bool ended, childless, exit_sent;
    bool wide[2];
    int withheld; /* rounds of killing that found all dead and could not reap all */
    int status;
    int64_t duration_ms;
    int64_t timeout_ms; /* on the awake clock; 0: none */
    int64_t kill_at_ms, drain_until_ms, drain_limit_ms;
    bool input_ending;
    size_t input_start, input_end;
    unsigned char input[2 * MAX_FRAME + 1];
};
