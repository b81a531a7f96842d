/* Starts a command: its terminal or pipes, its limits, its own session. */
#include "agent.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

static char **strings_of(const struct request *request, char key) {
    size_t count = 0;
    for (const char *value = NULL; (value = next_field(request, key, value));) count++;
    char **list = calloc(count + 1, sizeof *list);
    if (!list) return NULL;
    size_t i = 0;
    for (const char *value = NULL; (value = next_field(request, key, value));) list[i++] = (char *)value;
    return list;
}

bool command_parse(struct command *command, const struct request *request) {
    *command = (struct command){
        .argv = strings_of(request, 'a'),
        .env = strings_of(request, 'e'),
        .cwd = field(request, 'd'),
        .stdin_open = field(request, 's') != NULL,
        .input = -1,
        .output = {-1, -1},
    };
    const char *size = field(request, 'p');
    command->tty = size != NULL;
    if (size && sscanf(size, "%hux%hu", &command->columns, &command->rows) != 2) return false;
    return command->argv && command->env && command->argv[0] && command->cwd && command->cwd[0] == '/';
}

void command_resize(const struct command *command, uint16_t columns, uint16_t rows) {
    ioctl(command->input, TIOCSWINSZ, &(struct winsize){.ws_col = columns, .ws_row = rows});
}

/* The child's three descriptors. */
struct ends {
    int in, out, err;
};

static int open_terminal(struct command *command, struct ends *child) {
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return errno;
    /* By descriptor: a path to the terminal could lead elsewhere. */
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) return errno;
    command->input = command->output[0] = master;
    command_resize(command, command->columns, command->rows);
    *child = (struct ends){slave, slave, slave};
    return 0;
}

static int open_pipes(struct command *command, struct ends *child) {
    int in[2], out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return errno;
    command->output[0] = out[0];
    command->output[1] = err[0];
    *child = (struct ends){-1, out[1], err[1]};
    if (command->stdin_open) {
        if (pipe2(in, O_CLOEXEC) != 0) return errno;
        fcntl(in[1], F_SETFL, O_NONBLOCK);
        command->input = in[1];
        child->in = in[0];
    } else if ((child->in = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) return errno;
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    return 0;
}

static void limit(int resource, uint64_t most) {
    struct rlimit limits = {.rlim_cur = most, .rlim_max = most};
    setrlimit((__rlimit_resource_t)resource, &limits);
}

static void allow_processes(uint64_t most) {
    struct rlimit limits = {.rlim_cur = most, .rlim_max = options.processes + HANDLER_RESERVE};
    setrlimit(RLIMIT_NPROC, &limits);
}

struct failure {
    volatile int error;
    const char *volatile what;
    pid_t handler;
};

/*
 * Runs in the vfork child, with the handler's memory but its own descriptors, signal handlers and limits. Closes
 * every other descriptor before it looks up a path: a link to /proc/self/fd/4 then leads nowhere.
 */
static _Noreturn void become(const struct command *command, struct ends child, struct failure *failure) {
    die_with(failure->handler);
    setsid();
    if (command->tty) ioctl(child.in, TIOCSCTTY, 0);
    /* The sources are above 2: 0, 1 and 2 were open when they were made. */
    dup2(child.in, 0);
    dup2(child.out, 1);
    dup2(child.err, 2);
    close_range(3, ~0U, 0);
    limit(RLIMIT_NPROC, options.processes);
    if (options.file_bytes) limit(RLIMIT_FSIZE, options.file_bytes);
    if (options.data_bytes) limit(RLIMIT_DATA, options.data_bytes);
    setrlimit(RLIMIT_NOFILE, &options.open_files);
    drop_rights();
    /* Again: a change of user takes it away. */
    die_with(failure->handler);
    failure->what = "working directory";
    if (chdir(command->cwd) == 0) {
        signal(SIGCHLD, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        failure->what = "program";
        execvp(command->argv[0], command->argv);
    }
    failure->error = errno;
    _exit(127);
}

/* Separate, so that the child cannot change the caller's registers. */
static __attribute__((noinline)) pid_t spawn(const struct command *command, struct ends child, struct failure *failure) {
    pid_t pid = vfork();
    if (pid == 0) become(command, child, failure);
    return pid;
}

int command_start(struct command *command, const char **what) {
    struct ends child;
    *what = command->tty ? "terminal" : "pipes";
    int error = command->tty ? open_terminal(command, &child) : open_pipes(command, &child);
    if (error) return error;
    if (child.in == child.out || command->stdin_open) give_to_user(child.in);
    give_to_user(child.out);
    give_to_user(child.err);
    environ = command->env;
    struct failure failure = {.handler = getpid()};
    /* The processes reserved for handlers start no command. */
    allow_processes(options.processes);
    /* vfork returns when execve has succeeded or the child is gone, and copies no memory. */
    pid_t pid = spawn(command, child, &failure);
    error = errno;
    allow_processes(options.processes + HANDLER_RESERVE);
    *what = failure.what ? failure.what : "process";
    if (pid < 0) return error;
    close(child.in);
    if (child.out != child.in) close(child.out);
    if (child.err != child.out) close(child.err);
    command->pid = pid;
    return failure.error;
}
