/* Tries to get into pid 1 and the handlers: every process that runs the agent's program. */
#include "report.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_agent(const char *pid) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t got = read(fd, name, sizeof name - 1);
    close(fd);
    return got > 0 && strncmp(name, "slipway-agent", 13) == 0;
}

static void open_file(const char *pid, const char *file, int flags) {
    char path[300], name[400];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, file);
    snprintf(name, sizeof name, "%s %s", flags == O_WRONLY ? "write" : "read", file);
    char byte;
    int fd = open(path, flags);
    report(name, fd < 0 ? -1 : flags == O_WRONLY ? 0 : read(fd, &byte, 1));
    if (fd >= 0) close(fd);
}

int main(void) {
    static const char *const secret[] = {"mem", "environ", "maps", "smaps", "pagemap", "auxv", "fd/3", "fd/4", "fd/6", "fd/7", "root/etc/passwd", "cwd/etc/passwd", "exe", "syscall", "stack", "personality", "map_files/x"};
    DIR *proc = opendir("/proc");
    int agents = 0;
    char byte, path[300];
    for (struct dirent *entry; (entry = readdir(proc));) {
        int pid = atoi(entry->d_name);
        if (pid <= 0 || !is_agent(entry->d_name)) continue;
        agents++;
        for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) open_file(entry->d_name, secret[i], O_RDONLY);
        open_file(entry->d_name, "mem", O_WRONLY);
        open_file(entry->d_name, "fd/4", O_WRONLY);
        report("attach", ptrace(PTRACE_ATTACH, pid, 0, 0));
        report("seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
        struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
        report("process_vm_readv", process_vm_readv(pid, &local, 1, &remote, 1, 0));
        report("process_vm_writev", process_vm_writev(pid, &local, 1, &remote, 1, 0));
        long pidfd = syscall(SYS_pidfd_open, pid, 0);
        for (int fd = 0; fd < 16; fd++) {
            snprintf(path, sizeof path, "pidfd_getfd %d", fd);
            report(path, syscall(SYS_pidfd_getfd, pidfd, fd, 0));
        }
    }
    printf("agents: %d\n", agents);
    /* Answered with success; the kernel keeps them from pid 1. */
    kill(1, SIGKILL);
    kill(1, SIGSTOP);
    kill(1, SIGTERM);
    kill(1, SIGSEGV);
    puts("over: over");
    return 0;
}
