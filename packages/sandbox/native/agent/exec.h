/* An exec's handler: exec.c runs it, peer.c serves its connections. */
#pragma once
#include "agent.h"
#include <poll.h>

enum { MAX_PEERS = 16, PIPE_DEFAULT = 64 << 10 };

/* A connection from the host. Peer 0 started the exec and gets its output; the others control it. */
struct peer {
    int fd;
    struct reader reader;
    unsigned char *own_memory; /* the reader's; NULL for peer 0 */
    bool paused;     /* its next frame waits for room in standard input */
    bool at_end;     /* the host sends no more */
    bool closing;    /* close when all is sent */
    bool awaits_end; /* send K when the tree is gone */
    unsigned char *queue;
    size_t queued, queue_start, queue_room;
};
void peers_init(struct peer *peers, struct reader first);
/* Accepts the connections that pid 1 hands over. */
void peers_accept(struct peer *peers);
struct pollfd peer_poll(const struct peer *peer);
void peer_work(struct peer *peer, short events);
/* Sends what the connection takes now and queues the rest. */
void peer_send(struct peer *peer, const unsigned char *data, size_t length);
/* Closes the connection when all is sent. */
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
    int withheld; /* rounds of killing that left dead children unreaped */
    int status;
    int64_t duration_ms;
    int64_t timeout_ms; /* on the awake clock; 0: none */
    int64_t kill_at_ms, drain_until_ms, drain_limit_ms;
    bool input_ending;
    size_t input_start, input_end;
    unsigned char input[2 * MAX_FRAME + 1];
};
