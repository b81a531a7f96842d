/* The handler of one exec: moves its bytes, writes its log, keeps its timeout, ends its tree. */
#include "exec.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DRAIN_SILENCE_MS = 250, DRAIN_MOST_MS = 5000, TIMEOUT_GRACE_MS = 2000, KILL_AGAIN_MS = 20, WITHHELD_MOST = 25, OUTPUT_CHUNK = 128 << 10, WIDE_PIPE = 1 << 20 };

static void begin_ending(struct exec *exec, enum end_reason reason, int64_t grace_ms);

static bool peer_is_slow(const struct exec *exec) { return exec->peers[0].fd >= 0 && exec->peers[0].queued > 0; }

static void close_output(struct exec *exec, int stream) {
    /* A terminal's descriptor is closed as its input. */
    if (exec->command.output[stream] != exec->command.input) close(exec->command.output[stream]);
    exec->command.output[stream] = -1;
}

static void read_output(struct exec *exec, int stream) {
    static unsigned char frame[FRAME_HEADER + OUTPUT_CHUNK];
    int fd = exec->command.output[stream];
    ssize_t got = read(fd, frame + FRAME_HEADER, OUTPUT_CHUNK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        close_output(exec, stream);
        return;
    }
    if (exec->exit_sent) return;
    atomic_fetch_add_explicit(&exec->slot->output_bytes[stream], (uint64_t)got, memory_order_relaxed);
    put_header(frame, stream ? 'e' : 'o', (size_t)got);
    log_output(&exec->log, frame, FRAME_HEADER + (size_t)got);
    /* After the log has it: as soon as its pipe has room the command may go on, and kill this handler. */
    if (got == PIPE_DEFAULT && !exec->wide[stream]) {
        exec->wide[stream] = true;
        fcntl(fd, F_SETPIPE_SZ, WIDE_PIPE);
    }
    peer_send(&exec->peers[0], frame, FRAME_HEADER + (size_t)got);
    if (exec->ended) exec->drain_until_ms = now_ms() + DRAIN_SILENCE_MS;
}

static void note_end(struct exec *exec, int status) {
    exec->ended = true;
    exec->status = status;
    exec->duration_ms = awake_ms() - atomic_load(&exec->slot->start_ms);
    atomic_store(&exec->slot->end_by_ms, 0);
}

static void reap(struct exec *exec) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        /* A command can make its handler its tracer: then this is a stop, not an end. */
        if (!WIFEXITED(status) && !WIFSIGNALED(status)) {
            ptrace(PTRACE_DETACH, pid, NULL, NULL);
            continue;
        }
        /* Once: another process may get its pid. */
        if (pid != exec->command.pid || exec->ended) continue;
        note_end(exec, status);
        exec->drain_until_ms = now_ms() + DRAIN_SILENCE_MS;
        exec->drain_limit_ms = now_ms() + DRAIN_MOST_MS;
    }
    exec->childless = pid < 0 && errno == ECHILD;
}

/* All are dead, but a process of another exec traces one, which hides its end. pid 1 reaps it. */
static void end_unseen(struct exec *exec) {
    exec->childless = true;
    if (exec->ended) return;
    note_end(exec, SIGKILL);
    exec->drain_until_ms = exec->drain_limit_ms = now_ms();
}

static bool output_waits(const struct exec *exec) {
    struct pollfd fds[2];
    for (int stream = 0; stream < 2; stream++) fds[stream] = (struct pollfd){.fd = exec->command.output[stream], .events = POLLIN};
    return poll(fds, 2, 0) > 0;
}

static bool is_drained(struct exec *exec) {
    if (exec->command.output[0] < 0 && exec->command.output[1] < 0) return true;
    int64_t now = now_ms();
    if (peer_is_slow(exec)) {
        exec->drain_until_ms = now + DRAIN_SILENCE_MS;
        exec->drain_limit_ms = now + DRAIN_MOST_MS;
    }
    if (now >= exec->drain_limit_ms) return true;
    /* A handler that was not scheduled for a while has not seen silence. */
    return now >= exec->drain_until_ms && !output_waits(exec);
}

static void send_exit(struct exec *exec) {
    enum end_reason reason = exec->reason;
    if (reason == EXITED && WIFSIGNALED(exec->status)) reason = SIGNALED;
    unsigned char frame[FRAME_HEADER + EXIT_PAYLOAD];
    exit_frame(frame, reason == EXITED ? WEXITSTATUS(exec->status) : -1, WIFSIGNALED(exec->status) ? WTERMSIG(exec->status) : 0, reason,
               (uint64_t)exec->duration_ms, exec->slot);
    /* First: whoever sees the exit must see that the exec no longer counts as use. */
    atomic_store(&exec->slot->idle_since_ms, now_ms());
    log_exit(&exec->log, frame);
    peer_send(&exec->peers[0], frame, sizeof frame);
    exec->exit_sent = true;
    peer_finish(&exec->peers[0]);
}

static void write_input(struct exec *exec) {
    while (exec->input_start < exec->input_end) {
        ssize_t wrote = write(exec->command.input, exec->input + exec->input_start, exec->input_end - exec->input_start);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0 && errno == EAGAIN) return;
        if (wrote < 0) exec->input_start = exec->input_end;
        else exec->input_start += (size_t)wrote;
    }
    exec->input_start = exec->input_end = 0;
    if (exec->input_ending && !exec->command.tty) {
        close(exec->command.input);
        exec->command.input = -1;
    }
}

/* False when there is no room yet. */
static bool take_input(struct exec *exec, const struct frame *frame) {
    if (exec->command.input < 0 || exec->input_ending || exec->exit_sent) return true;
    size_t waiting = exec->input_end - exec->input_start;
    if (waiting > 0 && waiting + frame->length > MAX_FRAME) return false;
    memmove(exec->input, exec->input + exec->input_start, waiting);
    memcpy(exec->input + waiting, frame->payload, frame->length);
    exec->input_start = 0;
    exec->input_end = waiting + frame->length;
    write_input(exec);
    return true;
}

static void end_input(struct exec *exec) {
    if (exec->command.input < 0 || exec->input_ending) return;
    if (exec->command.tty && exec->input_end < sizeof exec->input) exec->input[exec->input_end++] = 4; /* what a person types for end of file */
    else if (!exec->command.tty) exec->input_ending = true;
    write_input(exec);
}

static void send_signal(struct exec *exec, struct peer *peer, const struct frame *frame) {
    int signal = frame->payload[0];
    if (exec->ended && !frame->payload[1]) {
        peer_fail(peer, ESRCH, "the command has ended");
        return;
    }
    if (frame->payload[1]) signal_tree(signal);
    else kill(exec->command.pid, signal);
    peer_done(peer);
}

/* False when the frame has to wait. A malformed frame closes the peer. */
static bool take(struct exec *exec, struct peer *peer, const struct frame *frame) {
    if (frame->type == 'i') return take_input(exec, frame);
    if (frame->type == 'c') end_input(exec);
    else if (frame->type == 's' && frame->length == 2 && frame->payload[0] > 0 && frame->payload[0] <= 64) send_signal(exec, peer, frame);
    else if (frame->type == 'w' && frame->length == 4) {
        if (exec->command.tty) {
            command_resize(&exec->command, get_u16(frame->payload), get_u16(frame->payload + 2));
            peer_done(peer);
        } else peer_fail(peer, ENOTTY, "the command has no terminal");
    } else if (frame->type == 'k' && frame->length == 4) {
        peer->awaits_end = true;
        begin_ending(exec, KILLED, get_u32(frame->payload));
    } else peer_close(peer);
    return true;
}

static void serve(struct exec *exec, struct peer *peer) {
    struct frame frame;
    while (peer->fd >= 0) {
        size_t before = peer->reader.start;
        int taken = take_frame(&peer->reader, &frame);
        if (taken < 0) peer_close(peer);
        if (taken <= 0) break;
        if (!take(exec, peer, &frame)) {
            peer->reader.start = before;
            peer->paused = true;
            return;
        }
    }
    peer->paused = false;
    if (peer->fd >= 0 && peer->at_end) peer_close(peer);
}

static void begin_ending(struct exec *exec, enum end_reason reason, int64_t grace_ms) {
    if (!exec->ended && exec->reason == EXITED) exec->reason = reason;
    int64_t kill_at = now_ms() + grace_ms;
    if (exec->kill_at_ms && exec->kill_at_ms <= kill_at) return;
    exec->kill_at_ms = kill_at;
    if (grace_ms == 0) return;
    signal_tree(SIGTERM);
    signal_tree(SIGCONT);
}

static int64_t sooner(int64_t a, int64_t b) { return b != 0 && b < a ? b : a; }

/* Does what is due; returns the ms until more is, or -1. */
static int run_timers(struct exec *exec) {
    int64_t now = now_ms();
    if (!exec->ended && exec->timeout_ms && awake_ms() >= exec->timeout_ms) {
        exec->timeout_ms = 0;
        begin_ending(exec, TIMED_OUT, TIMEOUT_GRACE_MS);
    }
    if (exec->kill_at_ms && now >= exec->kill_at_ms && !exec->childless) {
        bool dead = kill_tree();
        reap(exec);
        if (dead && !exec->childless && ++exec->withheld == WITHHELD_MOST) end_unseen(exec);
        exec->kill_at_ms = exec->childless ? 0 : now_ms() + KILL_AGAIN_MS;
    }
    int64_t next = INT64_MAX;
    if (!exec->ended && exec->timeout_ms) next = sooner(next, now + exec->timeout_ms - awake_ms());
    next = sooner(next, exec->kill_at_ms);
    if (exec->ended && !exec->exit_sent) next = sooner(sooner(next, exec->drain_until_ms), exec->drain_limit_ms);
    if (next == INT64_MAX) return -1;
    int64_t wait = next - now_ms();
    return wait < 0 ? 0 : wait > 1 << 30 ? 1 << 30 : (int)wait;
}

static void wait_and_serve(struct exec *exec, int wait_ms) {
    struct pollfd fds[4 + MAX_PEERS];
    bool reading = !peer_is_slow(exec);
    for (int stream = 0; stream < 2; stream++) fds[stream] = (struct pollfd){.fd = reading ? exec->command.output[stream] : -1, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = exec->input_start < exec->input_end ? exec->command.input : -1, .events = POLLOUT};
    fds[3] = (struct pollfd){.fd = ROUTE_FD, .events = POLLIN};
    for (int i = 0; i < MAX_PEERS; i++) fds[4 + i] = peer_poll(&exec->peers[i]);
    struct timespec wait = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L};
    sigset_t none;
    sigemptyset(&none);
    if (ppoll(fds, 4 + MAX_PEERS, wait_ms < 0 ? NULL : &wait, &none) < 0) return;
    for (int stream = 0; stream < 2; stream++)
        if (fds[stream].revents && !peer_is_slow(exec)) read_output(exec, stream);
    bool roomier = fds[2].revents != 0;
    if (roomier) write_input(exec);
    for (int i = 0; i < MAX_PEERS; i++) {
        struct peer *peer = &exec->peers[i];
        if (peer->fd < 0) continue;
        if (fds[4 + i].fd == peer->fd && fds[4 + i].revents) peer_work(peer, fds[4 + i].revents);
        if (peer->fd >= 0 && (!peer->paused || roomier)) serve(exec, peer);
    }
    if (fds[3].revents) peers_accept(exec->peers);
}

static _Noreturn void run(struct exec *exec) {
    for (;;) {
        if (!exec->childless) reap(exec);
        if (exec->ended && !exec->exit_sent && is_drained(exec)) send_exit(exec);
        int wait_ms = run_timers(exec);
        /* Who waits for the tree's end need not wait for a slow reader of output. */
        for (int i = 0; exec->childless && i < MAX_PEERS; i++)
            if (exec->peers[i].fd >= 0 && exec->peers[i].awaits_end) peer_done(&exec->peers[i]);
        if (exec->childless && exec->exit_sent && !peer_is_slow(exec)) _exit(0);
        wait_and_serve(exec, wait_ms);
    }
}

void handle_exec(struct reader *reader, const struct request *request, struct slot *slot) {
    static struct exec exec;
    exec.slot = slot;
    peers_init(exec.peers, *reader);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const char *what = "exec";
    int error = command_parse(&exec.command, request) ? log_create(&exec.log, request, slot) : EINVAL;
    if (!error && (error = command_start(&exec.command, &what))) log_discard(&exec.log);
    atomic_store(&slot->started, true);
    if (error) {
        send_failure(CONNECTION_FD, error, what);
        _exit(0);
    }
    int64_t now = awake_ms();
    atomic_store(&slot->start_ms, now);
    uint64_t timeout_ms = number_field(request, 't', 0);
    if (timeout_ms) {
        exec.timeout_ms = now + (int64_t)timeout_ms;
        atomic_store(&slot->end_by_ms, exec.timeout_ms + (int64_t)options.overdue_ms);
    }
    peer_done(&exec.peers[0]);
    serve(&exec, &exec.peers[0]);
    run(&exec);
}
