#include "handlers.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS = 10000, RESPAWN_MS = 100 };

/* What only pid 1 knows of a handler. shared->slots has the rest. */
struct handler {
    unsigned char op;
    int route;
    int64_t start_by_ms;
};
static struct handler handlers[MAX_HANDLERS];
static int64_t last_use_ms;
static pid_t sweeper;
static int64_t forward_at_ms, sweep_at_ms; /* 0: not wanted */

static bool is_exec(unsigned char op) { return op == 'X' || op == 'B'; }
static bool counts(unsigned char op) { return op != 'B' && op != 'n'; }

/* Forks every child of pid 1, so that the sweeper can tell a new one from a stray. */
static pid_t fork_counted(_Atomic pid_t *record) {
    atomic_fetch_add(&shared->fork_count, 1);
    pid_t pid = fork();
    if (pid > 0) *record = pid;
    if (pid != 0) atomic_fetch_add(&shared->fork_count, 1);
    return pid;
}

/* With a copy of another operation's descriptor here, its host would never see it close. */
static void keep_only(int connection, int route) {
    dup3(connection, CONNECTION_FD, O_CLOEXEC);
    if (route >= 0) dup3(route, ROUTE_FD, O_CLOEXEC);
    close_range(route >= 0 ? ROUTE_FD + 1 : CONNECTION_FD + 1, ~0U, 0);
    close(LISTEN_FD);
    close(READY_FD);
}

static _Noreturn void handle(unsigned char op, int connection, int route, struct slot *slot) {
    /* Through high numbers: either may have the number that the other gets. */
    int high_connection = fcntl(connection, F_DUPFD_CLOEXEC, 16), high_route = route < 0 ? -1 : fcntl(route, F_DUPFD_CLOEXEC, 16);
    keep_only(high_connection, high_route);
    die_with(agent_pid);
    struct timeval patience = {.tv_sec = 10};
    setsockopt(CONNECTION_FD, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct reader reader;
    struct request request;
    reader_for_request(&reader, CONNECTION_FD);
    if (!read_request(&reader, &request)) {
        atomic_store(&slot->finished, true);
        send_failure(CONNECTION_FD, EBADMSG, "malformed request");
        _exit(0);
    }
    if (is_exec(op)) handle_exec(&reader, &request, slot);
    close(LOGS_FD);
    patience.tv_sec = 0;
    setsockopt(CONNECTION_FD, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    signal(SIGCHLD, SIG_DFL);
    if (options.drops) {
        drop_rights();
        die_with(agent_pid);
        /* What the agent goes by is no longer this handler's to write. */
        munmap(shared, sizeof *shared);
    }
    if (op == 'P') handle_port(&request);
    handle_file_operation(&reader, &request);
}

static int free_slot(void) {
    for (int i = 0; i < MAX_HANDLERS; i++)
        if (shared->slots[i].pid == 0) return i;
    return -1;
}

bool handler_start(unsigned char op, int connection) {
    int index = free_slot(), route[2] = {-1, -1};
    if (index < 0) return false;
    if (is_exec(op) && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, route) != 0) return false;
    struct slot *slot = &shared->slots[index];
    memset(slot, 0, sizeof *slot);
    if (atomic_load(&shared->slots_used) <= (unsigned)index) atomic_store(&shared->slots_used, (unsigned)index + 1);
    pid_t pid = fork_counted(&slot->pid);
    if (pid == 0) handle(op, connection, route[1], slot);
    if (route[1] >= 0) close(route[1]);
    if (pid < 0) {
        if (route[0] >= 0) close(route[0]);
        return false;
    }
    handlers[index] = (struct handler){.op = op, .route = route[0], .start_by_ms = is_exec(op) ? now_ms() + START_MS : 0};
    if (counts(op)) last_use_ms = now_ms();
    return true;
}

int handler_route(const char *id, int connection) {
    unsigned used = atomic_load(&shared->slots_used);
    for (unsigned i = 0; i < used; i++) {
        const struct slot *slot = &shared->slots[i];
        if (slot->pid == 0 || !is_exec(handlers[i].op) || !atomic_load(&slot->named) || strcmp(slot->id, id) != 0) continue;
        struct iovec part = {"c", 1};
        union {
            char space[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control = {{0}};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &connection, sizeof connection);
        if (sendmsg(handlers[i].route, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 0;
        return errno == ECONNREFUSED || errno == ECONNRESET || errno == EPIPE ? ESRCH : EAGAIN;
    }
    return ESRCH;
}

unsigned handlers_in_use(int64_t *last_ms) {
    unsigned used = atomic_load(&shared->slots_used), in_use = 0;
    for (unsigned i = 0; i < used; i++) {
        const struct slot *slot = &shared->slots[i];
        if (slot->pid == 0 || !counts(handlers[i].op)) continue;
        int64_t idle_since = atomic_load(&slot->idle_since_ms);
        if (idle_since == 0) in_use++;
        else if (idle_since > last_use_ms) last_use_ms = idle_since;
    }
    if (in_use > 0) last_use_ms = now_ms();
    *last_ms = last_use_ms;
    return in_use;
}

/* A killed handler leaves processes without bounds, and perhaps a log without an exit. */
static void mourn(const struct slot *slot) {
    if (atomic_load(&slot->named) && !atomic_load(&slot->finished)) log_lost(slot);
    sweep_at_ms = now_ms();
}

static void forget(unsigned index, int status) {
    struct slot *slot = &shared->slots[index];
    int64_t idle_since = atomic_load(&slot->idle_since_ms), now = now_ms();
    if (counts(handlers[index].op)) last_use_ms = idle_since ? (idle_since > last_use_ms ? idle_since : last_use_ms) : now;
    if (is_exec(handlers[index].op)) {
        if (!WIFEXITED(status)) mourn(slot);
        close(handlers[index].route);
    }
    atomic_store(&slot->pid, 0);
}

static void on_end(pid_t pid, int status) {
    if (pid == shared->forwarder) {
        shared->forwarder = 0;
        forward_at_ms = now_ms() + RESPAWN_MS;
        return;
    }
    if (pid == sweeper) {
        sweeper = 0;
        if (status != 0) sweep_at_ms = now_ms() + RESPAWN_MS;
        return;
    }
    unsigned used = atomic_load(&shared->slots_used);
    for (unsigned i = 0; i < used; i++)
        if (shared->slots[i].pid == pid) {
            forget(i, status);
            return;
        }
}

static void start_forwarder(void) {
    pid_t pid = fork_counted(&shared->forwarder);
    if (pid == 0) {
        signal(SIGCHLD, SIG_DFL);
        die_with(agent_pid);
        run_forwarder();
    }
    forward_at_ms = pid > 0 ? 0 : now_ms() + RESPAWN_MS;
}

static void start_sweeper(void) {
    _Atomic pid_t record = 0;
    pid_t pid = fork_counted(&record);
    if (pid == 0) {
        close_range(LISTEN_FD, ~0U, 0);
        die_with(agent_pid);
        sweep_strays();
    }
    sweeper = record;
    sweep_at_ms = pid > 0 ? 0 : now_ms() + RESPAWN_MS;
}

void handlers_open(void) {
    last_use_ms = now_ms();
    if (!options.egress) return;
    forwarder_listen();
    start_forwarder();
}

void handlers_reap(bool asleep) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        /* Hostile code may stop a handler to escape its timeout. */
        if (!WIFSTOPPED(status)) on_end(pid, status);
        else if (!asleep) kill(pid, SIGCONT);
    }
    int64_t now = now_ms();
    unsigned used = atomic_load(&shared->slots_used);
    for (unsigned i = 0; i < used; i++) {
        struct handler *handler = &handlers[i];
        if (shared->slots[i].pid == 0) continue;
        /* Hostile code may keep a handler from running, for instance by its priority, and so from ending the command. */
        int64_t end_by_ms = atomic_load(&shared->slots[i].end_by_ms);
        if (end_by_ms && awake_ms() >= end_by_ms) {
            atomic_store(&shared->slots[i].end_by_ms, 0);
            kill(shared->slots[i].pid, SIGKILL);
        }
        if (handler->start_by_ms == 0) continue;
        if (atomic_load(&shared->slots[i].started)) handler->start_by_ms = 0;
        else if (asleep) handler->start_by_ms = now + START_MS;
        /* Its child was stopped between vfork and execve, which the handler cannot see. */
        else if (now >= handler->start_by_ms) kill(shared->slots[i].pid, SIGKILL);
    }
    if (asleep) return;
    if (forward_at_ms && now >= forward_at_ms) start_forwarder();
    if (sweep_at_ms && now >= sweep_at_ms && sweeper == 0) start_sweeper();
}

int64_t handlers_deadline_ms(bool asleep) {
    int64_t next = INT64_MAX;
    if (asleep) return next;
    unsigned used = atomic_load(&shared->slots_used);
    int64_t behind_ms = now_ms() - awake_ms();
    for (unsigned i = 0; i < used; i++) {
        if (shared->slots[i].pid == 0) continue;
        if (handlers[i].start_by_ms && !atomic_load(&shared->slots[i].started) && handlers[i].start_by_ms < next)
            next = handlers[i].start_by_ms;
        int64_t end_by_ms = atomic_load(&shared->slots[i].end_by_ms);
        if (end_by_ms && end_by_ms + behind_ms < next) next = end_by_ms + behind_ms;
    }
    if (forward_at_ms && forward_at_ms < next) next = forward_at_ms;
    if (sweep_at_ms && sweeper == 0 && sweep_at_ms < next) next = sweep_at_ms;
    return next;
}
