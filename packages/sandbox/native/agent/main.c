/*
 * Accepts, routes, reaps. It never blocks, and nothing inside the sandbox can end it: it is pid 1, or has another user than
 * what it runs.
 */
#include "handlers.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 1024, FIRST_BYTES_MS = 10000, ACCEPT_AGAIN_MS = 50, SMALL_REQUEST = 4 + 1 + 1 + ID_SIZE };

struct options options = {.processes = 512, .overdue_ms = 30000};

/*
 * Accepted and not handed on: its request is incomplete, it is parked, or it was refused and still sends. Closing a
 * refused one too early would discard the refusal.
 */
struct connection {
    int fd;
    enum { ASKING, PARKED, REFUSED } state;
    int64_t deadline_ms;
};
static struct connection connections[MAX_CONNECTIONS];
static int connection_count;

static void parse_user(const char *text) {
    char after;
    if (sscanf(text, "%u:%u%c", &options.uid, &options.gid, &after) != 2 || options.uid == 0 || options.gid == 0) exit(64);
    options.drops = true;
}

static void parse_arguments(int count, char **arguments) {
    static const char *forwards[64];
    for (int i = 1; i + 1 < count; i += 2) {
        const char *name = arguments[i], *value = arguments[i + 1];
        if (!strcmp(name, "--processes")) options.processes = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--file-bytes")) options.file_bytes = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--data-bytes")) options.data_bytes = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--overdue-ms")) options.overdue_ms = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--user")) parse_user(value);
        else if (!strcmp(name, "--egress")) options.egress = value;
        else if (!strcmp(name, "--forward") && options.forward_count < 64) forwards[options.forward_count++] = value;
        else exit(64);
    }
    options.forwards = forwards;
}

static volatile sig_atomic_t ending;

static void on_child(int signal) { (void)signal; }

static void on_end(int signal) {
    (void)signal;
    ending = 1;
}

/* What pid 1 has by itself: every orphan below is its child, and all of it ends with it. */
static void prepare_below(pid_t parent) {
    struct sigaction action = {.sa_handler = on_end};
    sigaction(SIGTERM, &action, NULL);
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* Not SIGKILL: what it runs must end first. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) exit(70);
}

static void prepare(pid_t parent) {
    /* First: nothing inside may trace this process or open its descriptors. */
    if (prctl(PR_SET_DUMPABLE, 0) != 0) exit(70);
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
    for (int fd = LISTEN_FD; fd <= READY_FD; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(LISTEN_FD, F_SETFL, O_NONBLOCK);
    umask(022);
    /* The parent may have ignored some. Commands start with the defaults. */
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    struct sigaction action = {.sa_handler = on_child};
    sigaction(SIGCHLD, &action, NULL);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    agent_pid = getpid();
    if (agent_pid != 1) prepare_below(parent);
    uint64_t most = options.processes + HANDLER_RESERVE;
    setrlimit(RLIMIT_NPROC, &(struct rlimit){most, most});
    getrlimit(RLIMIT_NOFILE, &options.open_files);
    rlim_t most_files = options.open_files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){most_files, most_files});
    /* The kernel counts descriptors in flight by uid, against the sender's own limit: pid 1 needs room above that of commands. */
    rlim_t for_commands = most_files > 2 * FILE_RESERVE ? most_files - FILE_RESERVE : most_files / 2;
    if (options.open_files.rlim_cur < for_commands) for_commands = options.open_files.rlim_cur;
    options.open_files = (struct rlimit){for_commands, for_commands};
    shared_open();
}

static void answer(int fd, const unsigned char *payload, size_t length) {
    unsigned char frame[FRAME_HEADER + 32];
    put_header(frame, 'K', length);
    if (length > 0) memcpy(frame + FRAME_HEADER, payload, length);
    (void)!send(fd, frame, FRAME_HEADER + length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void answer_status(int fd) {
    unsigned char payload[12];
    int64_t last_use_ms;
    put_u32(payload, handlers_in_use(&last_use_ms));
    put_u64(payload + 4, (uint64_t)(now_ms() - last_use_ms));
    answer(fd, payload, sizeof payload);
}

static void stop_all(void) {
    awake_clock_stop();
    if (agent_pid == 1) kill(-1, SIGSTOP);
    else stop_tree();
}

static void continue_all(void) {
    awake_clock_go_on();
    if (agent_pid == 1) kill(-1, SIGCONT);
    else signal_tree(SIGCONT);
}

enum outcome { WAIT, DONE, PARK, REFUSE };

/* Answers an operation in pid 1. Its request is small and read at once. */
static enum outcome serve_inline(int fd, unsigned char op, size_t request_length) {
    char request[SMALL_REQUEST];
    if (request_length > sizeof request) return DONE;
    ssize_t got = recv(fd, request, request_length, MSG_PEEK | MSG_DONTWAIT);
    if (got < (ssize_t)request_length) return got == 0 ? DONE : WAIT;
    (void)!recv(fd, request, request_length, MSG_DONTWAIT);
    if (op == 'W') return PARK;
    if (op == 'Q') answer_status(fd);
    else if (op == 'C') {
        struct request parsed = {.op = op, .fields = request + 5, .length = request_length - 5};
        const char *id = request_length > 5 && request[request_length - 1] == 0 ? field(&parsed, 'i') : NULL;
        int error = id ? handler_route(id, fd) : EINVAL;
        if (error) reply_failure(fd, error, "no such exec runs");
        if (error) return REFUSE;
    } else {
        if (op == 'Z') stop_all();
        else if (op == 'Y') continue_all();
        else if (op == 'S') awake_clock_stop();
        else awake_clock_go_on();
        answer(fd, NULL, 0);
    }
    return DONE;
}

static enum outcome serve(int fd) {
    unsigned char head[5];
    ssize_t got = recv(fd, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
    if (got < (ssize_t)sizeof head) return got == 0 || (got < 0 && errno != EAGAIN) ? DONE : WAIT;
    unsigned char op = head[4];
    if (strchr("WQZYSGC", op) && op) return serve_inline(fd, op, 4 + (size_t)get_u32(head));
    bool known = op != 0 && strchr("XBPrwtlkvdgnUD", op);
    if (known && handler_start(op, fd)) return DONE;
    if (known) reply_failure(fd, EAGAIN, "no process left for the operation");
    else reply_failure(fd, EINVAL, "unknown operation");
    shutdown(fd, SHUT_WR);
    return REFUSE;
}

static int state_after(enum outcome outcome) { return outcome == PARK ? PARKED : outcome == REFUSE ? REFUSED : ASKING; }

static enum outcome discard(int fd) {
    static char scrap[64 << 10];
    ssize_t got = recv(fd, scrap, sizeof scrap, MSG_DONTWAIT);
    return got > 0 || (got < 0 && errno == EAGAIN) ? WAIT : DONE;
}

static void accept_all(int64_t *accept_after_ms) {
    while (connection_count < MAX_CONNECTIONS) {
        int fd = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) *accept_after_ms = now_ms() + ACCEPT_AGAIN_MS;
            return;
        }
        enum outcome outcome = serve(fd);
        if (outcome == DONE) close(fd);
        else connections[connection_count++] = (struct connection){fd, state_after(outcome), now_ms() + FIRST_BYTES_MS};
    }
}

static void work_connections(const struct pollfd *fds) {
    int64_t now = now_ms();
    int kept = 0;
    for (int i = 0; i < connection_count; i++) {
        struct connection *connection = &connections[i];
        bool gone = connection->state != PARKED && now >= connection->deadline_ms;
        if (fds[i].revents && connection->state == PARKED) gone = true;
        else if (fds[i].revents) {
            bool refused = connection->state == REFUSED;
            enum outcome outcome = refused ? discard(connection->fd) : serve(connection->fd);
            if (!refused) connection->state = state_after(outcome);
            gone = gone || outcome == DONE;
        }
        if (gone) close(connection->fd);
        else connections[kept++] = *connection;
    }
    connection_count = kept;
}

static int64_t next_deadline_ms(int64_t accept_after_ms) {
    int64_t next = handlers_deadline_ms(awake_clock_stands());
    for (int i = 0; i < connection_count; i++)
        if (connections[i].state != PARKED && connections[i].deadline_ms < next) next = connections[i].deadline_ms;
    return accept_after_ms && accept_after_ms < next ? accept_after_ms : next;
}

static _Noreturn void run(void) {
    static struct pollfd fds[1 + MAX_CONNECTIONS];
    int64_t accept_after_ms = 0;
    sigset_t none;
    sigemptyset(&none);
    for (;;) {
        int64_t now = now_ms(), next = next_deadline_ms(accept_after_ms);
        if (accept_after_ms <= now) accept_after_ms = 0;
        fds[0] = (struct pollfd){.fd = accept_after_ms || connection_count == MAX_CONNECTIONS ? -1 : LISTEN_FD, .events = POLLIN};
        for (int i = 0; i < connection_count; i++) fds[1 + i] = (struct pollfd){.fd = connections[i].fd, .events = POLLIN};
        int64_t wait_ms = next > now ? next - now : 0;
        struct timespec wait = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
        int ready = ppoll(fds, 1 + (nfds_t)connection_count, next == INT64_MAX ? NULL : &wait, &none);
        if (ending) {
            close(LISTEN_FD);
            while (!kill_tree()) {}
            exit(0);
        }
        if (ready <= 0) for (int i = 0; i <= connection_count; i++) fds[i].revents = 0;
        handlers_reap(awake_clock_stands());
        work_connections(fds + 1);
        if (fds[0].revents) accept_all(&accept_after_ms);
    }
}

int main(int count, char **arguments) {
    pid_t parent = getppid();
    parse_arguments(count, arguments);
    prepare(parent);
    handlers_open();
    (void)!write(READY_FD, "ready\n", 6);
    close(READY_FD);
    run();
}
