/*
 * Processes by descent. A handler is a child subreaper, so whatever its command starts, even a daemon, stays below
 * it. /proc is the only list of processes that a hostile one cannot leave.
 */
#include "agent.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STOP_ROUNDS = 64, KILL_ROUNDS = 16, PAUSE_NS = 500000, SWEEP_MS = 10000, MAX_DEPTH = 4096 };

enum place { UNKNOWN, BELOW, ELSEWHERE };
struct process {
    pid_t pid, parent;
    bool alive;
    enum place place;
};
struct processes {
    struct process *list;
    size_t count, room;
};

/* Fields 3, 4 and 20 of /proc/PID/stat. They follow the last ')': the name before them may hold anything. */
static bool read_stat(int proc, const char *name, struct process *process) {
    char path[32], text[512];
    snprintf(path, sizeof path, "%.20s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) return false;
    text[got] = 0;
    const char *after = strrchr(text, ')');
    char state;
    int parent, threads;
    if (!after || sscanf(after + 1, " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d", &state, &parent, &threads) != 3) return false;
    process->parent = parent;
    /* A process whose first thread has ended looks like a zombie while other threads run. */
    process->alive = (state != 'Z' && state != 'X') || threads > 1;
    return true;
}

static int by_pid(const void *a, const void *b) {
    return ((const struct process *)a)->pid - ((const struct process *)b)->pid;
}

static struct process *find(const struct processes *set, pid_t pid) {
    if (set->count == 0) return NULL;
    return bsearch(&(struct process){.pid = pid}, set->list, set->count, sizeof *set->list, by_pid);
}

static bool scan(struct processes *found) {
    found->count = 0;
    DIR *proc = opendir("/proc");
    if (!proc) return false;
    for (struct dirent *entry; (entry = readdir(proc));) {
        pid_t pid = atoi(entry->d_name);
        if (pid <= 1) continue;
        if (found->count == found->room) {
            size_t room = found->room ? found->room * 2 : 256;
            struct process *list = realloc(found->list, room * sizeof *list);
            if (!list) break;
            found->list = list;
            found->room = room;
        }
        struct process process = {.pid = pid};
        if (read_stat(dirfd(proc), entry->d_name, &process)) found->list[found->count++] = process;
    }
    closedir(proc);
    if (found->count > 0) qsort(found->list, found->count, sizeof *found->list, by_pid);
    return true;
}

/* All below the caller or, for the agent's sweeper, all below the agent and below no handler. */
struct scope {
    pid_t root;
    bool strays;
};

static bool is_spared(const struct scope *scope, pid_t pid) {
    if (!scope->strays) return false;
    if (pid == atomic_load(&shared->forwarder) || pid == getpid()) return true;
    unsigned used = atomic_load(&shared->slots_used);
    for (unsigned i = 0; i < used; i++)
        if (atomic_load(&shared->slots[i].pid) == pid) return true;
    return false;
}

static enum place place_of(const struct processes *found, struct process *process, const struct scope *scope, int depth) {
    if (process->place != UNKNOWN) return process->place;
    struct process *parent = NULL;
    if (is_spared(scope, process->pid) || depth > MAX_DEPTH) process->place = ELSEWHERE;
    else if (process->parent == scope->root) process->place = BELOW;
    else if (!(parent = find(found, process->parent))) process->place = ELSEWHERE;
    else process->place = place_of(found, parent, scope, depth + 1);
    return process->place;
}

/* Finds the living processes of the scope. */
static bool scan_scope(struct processes *found, const struct scope *scope) {
    unsigned forks = atomic_load(&shared->fork_count);
    if (!scan(found)) return false;
    for (size_t i = 0; i < found->count; i++) place_of(found, &found->list[i], scope, 0);
    /* A handler that pid 1 forked meanwhile may be in the list, but in no slot yet. */
    if (scope->strays && (forks % 2 != 0 || atomic_load(&shared->fork_count) != forks)) return false;
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++)
        if (found->list[i].place == BELOW && found->list[i].alive) found->list[kept++] = found->list[i];
    found->count = kept;
    return true;
}

static void signal_all(const struct processes *found, int signal) {
    for (size_t i = 0; i < found->count; i++) kill(found->list[i].pid, signal);
}

static void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL); }

/* Stops all, round after round, until a round finds no new process: a stopped fork bomb does not fork. */
static void freeze(const struct scope *scope) {
    struct processes before = {0}, found = {0};
    for (int round = 0; round < STOP_ROUNDS; round++) {
        if (!scan_scope(&found, scope)) continue;
        signal_all(&found, SIGSTOP);
        bool fresh = false;
        for (size_t i = 0; i < found.count && !fresh; i++) fresh = !find(&before, found.list[i].pid);
        if (!fresh) break;
        struct processes swapped = before;
        before = found;
        found = swapped;
    }
    free(before.list);
    free(found.list);
}

/* True when none is left alive. */
static bool end_scope(const struct scope *scope) {
    freeze(scope);
    struct processes found = {0};
    bool gone = false;
    for (int round = 0; round < KILL_ROUNDS && !gone; round++) {
        bool seen = scan_scope(&found, scope);
        gone = seen && found.count == 0;
        if (seen) signal_all(&found, SIGKILL);
        if (!gone) pause_briefly();
    }
    free(found.list);
    return gone;
}

void signal_tree(int signal) {
    struct processes found = {0};
    if (scan_scope(&found, &(struct scope){.root = getpid()})) signal_all(&found, signal);
    free(found.list);
}

void stop_tree(void) { freeze(&(struct scope){.root = getpid()}); }

bool kill_tree(void) { return end_scope(&(struct scope){.root = getpid()}); }

void sweep_strays(void) {
    int64_t end = now_ms() + SWEEP_MS;
    while (!end_scope(&(struct scope){.root = agent_pid, .strays = true}) && now_ms() < end) {}
    _exit(0);
}
