#include "agent.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t agent_pid;

/* The plain system calls: a command's child shares its handler's memory, with what the C library keeps in it. */
void drop_rights(void) {
    if (!options.drops) return;
    /* A user namespace may forbid it, which is fine where there are no groups. */
    if (syscall(SYS_setgroups, 0, NULL) != 0 && syscall(SYS_getgroups, 0, NULL) != 0) _exit(70);
    if (syscall(SYS_setresgid, options.gid, options.gid, options.gid) != 0) _exit(70);
    if (syscall(SYS_setresuid, options.uid, options.uid, options.uid) != 0) _exit(70);
    /* The change of user makes the process what a machine-wide setting says, and forgets the parent's death. */
    prctl(PR_SET_DUMPABLE, 0);
    /* No program with its owner's rights, such as sudo, is a way back. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_setresuid, 0, 0, 0) == 0) _exit(70);
}

void give_to_user(int fd) {
    if (options.drops) (void)!fchown(fd, options.uid, options.gid);
}

void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(70);
}
