/* Asks the kernel for what a sandbox must not have. Harmless where it is granted: arguments are empty or wrong. */
#include "report.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void namespaces(void) {
    static const struct { const char *name; int flag; } kinds[] = {
        {"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID}, {"network", CLONE_NEWNET},
        {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}, {"time", 0x80},
    };
    char name[64];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(name, sizeof name, "unshare %s", kinds[i].name);
        report(name, unshare(kinds[i].flag));
        if (kinds[i].flag == 0x80) continue; /* clone takes it for a part of the exit signal */
        snprintf(name, sizeof name, "clone %s", kinds[i].name);
        long pid = syscall(SYS_clone, kinds[i].flag | SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) _exit(0);
        report(name, pid);
        if (pid > 0) waitpid((pid_t)pid, NULL, 0);
        /* The upper half of the argument is not the kernel's to read, nor a way around the filter. */
        snprintf(name, sizeof name, "unshare %s, upper bits set", kinds[i].name);
        report(name, syscall(SYS_unshare, (unsigned long)kinds[i].flag | 0x100000000UL));
    }
    report("setns", syscall(SYS_setns, open("/proc/self/ns/mnt", O_RDONLY), 0));
    report("clone3", syscall(SYS_clone3, NULL, 0));
}

static void mounts(void) {
    report("mount tmpfs", mount("none", "/tmp", "tmpfs", 0, ""));
    report("mount proc", mount("proc", "/tmp", "proc", 0, ""));
    report("bind mount", mount("/usr", "/tmp", NULL, MS_BIND, NULL));
    report("remount /usr for writing", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
    report("umount /proc/sys", umount2("/proc/sys", MNT_DETACH));
    report("umount /usr", umount2("/usr", MNT_DETACH));
    report("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
    report("chroot", chroot("/proc/1/root"));
    report("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
    report("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    report("move_mount", syscall(SYS_move_mount, -1, "", -1, "", 0));
    report("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0));
    report("statmount", syscall(457, NULL, NULL, 0, 0));
    report("swapon", syscall(SYS_swapon, "/tmp", 0));
    report("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", NULL, NULL, 0));
    report("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0));
}

static void subsystems(void) {
    report("bpf", syscall(SYS_bpf, 5, NULL, 0));
    report("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    report("userfaultfd", syscall(SYS_userfaultfd, 1));
    report("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
    report("add_key", syscall(SYS_add_key, "user", "name", "x", 1, KEY_SPEC_PROCESS_KEYRING));
    report("request_key", syscall(SYS_request_key, "user", "name", NULL, 0));
    report("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
    report("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    report("init_module", syscall(SYS_init_module, NULL, 0, ""));
    report("finit_module", syscall(SYS_finit_module, -1, "", 0));
    report("delete_module", syscall(SYS_delete_module, "none", 0));
    report("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
    report("syslog", syscall(SYS_syslog, 3, NULL, 0));
    report("acct", syscall(SYS_acct, "/tmp/none"));
    report("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL));
    report("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
    report("sethostname", sethostname("x", 1));
    report("clock_settime", clock_settime(CLOCK_REALTIME, &(struct timespec){1, 0}));
    report("a call that does not exist yet", syscall(900));
#ifdef __x86_64__
    report("iopl", syscall(SYS_iopl, 3));
    report("ioperm", syscall(SYS_ioperm, 0x80, 1, 1));
    report("modify_ldt", syscall(SYS_modify_ldt, 0, NULL, 0));
    report("an x32 call", syscall(0x40000000 + SYS_getpid));
#endif
}

static void sockets(void) {
    report("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    report("packet socket", socket(AF_PACKET, SOCK_RAW, 0));
    report("raw socket", socket(AF_INET, SOCK_RAW, 1));
    report("ping socket", socket(AF_INET, SOCK_DGRAM, 1));
    report("raw IPv6 socket", socket(AF_INET6, SOCK_RAW, 58));
    report("kernel crypto socket", socket(AF_ALG, SOCK_SEQPACKET, 0));
    report("netfilter socket", socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
    report("audit socket", socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT));
    report("bluetooth socket", socket(31, SOCK_RAW, 0));
    report("tipc socket", socket(30, SOCK_STREAM, 0));
    report("sctp socket", socket(AF_INET, SOCK_SEQPACKET, 132));
    report("rds socket", socket(21, SOCK_SEQPACKET, 0));
    report("vsock, upper bits set", syscall(SYS_socket, 0x100000000UL | AF_VSOCK, SOCK_STREAM, 0));
    report("vsock pair", socketpair(AF_VSOCK, SOCK_STREAM, 0, (int[2]){0}));
}

/* Options and requests that have the kernel load a module, or a program. */
static void socket_options(void) {
    enum { TCP = IPPROTO_TCP, UDP = IPPROTO_UDP };
    static const struct { const char *name; int level, option; } options[] = {
        {"TCP_ULP", TCP, 31}, {"TCP_REPAIR", TCP, 19}, {"TCP_MD5SIG", TCP, 14}, {"TCP_MD5SIG_EXT", TCP, 32},
        {"TCP_AO_ADD_KEY", TCP, 38}, {"a TCP option that does not exist yet", TCP, 99}, {"UDP_ENCAP", UDP, 100},
        {"SO_ATTACH_FILTER", SOL_SOCKET, SO_ATTACH_FILTER}, {"SO_ATTACH_BPF", SOL_SOCKET, SO_ATTACH_BPF},
        {"SO_ATTACH_REUSEPORT_CBPF", SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF},
        {"SO_ATTACH_REUSEPORT_EBPF", SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF},
    };
    static const struct { const char *name; unsigned long request; } requests[] = {
        {"SIOCGIFBR", SIOCGIFBR}, {"SIOCSIFBR", SIOCSIFBR}, {"SIOCBRADDBR", SIOCBRADDBR}, {"SIOCBRDELBR", SIOCBRDELBR},
        {"SIOCGIFVLAN", SIOCGIFVLAN}, {"SIOCSIFVLAN", SIOCSIFVLAN},
    };
    int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffff);
    struct sock_fprog program = {1, &all};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        int fd = options[i].level == UDP ? udp : tcp;
        const void *value = options[i].level == SOL_SOCKET ? (void *)&program : &(int){2};
        report(options[i].name, setsockopt(fd, options[i].level, options[i].option, value, sizeof program));
    }
    report("TCP_ULP, upper bits set", syscall(SYS_setsockopt, tcp, 0x100000000UL | TCP, 0x100000000UL | 31, "tls", 3));
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        report(requests[i].name, ioctl(tcp, requests[i].request, &(long[16]){0}));
}

/* What would make pid 1, which answers the host, slow or deaf. */
static void hindering_pid_1(void) {
    static const int resources[] = {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_CPU, RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_CORE};
    char name[64];
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        struct rlimit limit;
        prlimit(1, resources[i], NULL, &limit);
        snprintf(name, sizeof name, "limit %d of pid 1", resources[i]);
        report(name, prlimit(1, resources[i], &limit, NULL));
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    report("a limit of its handler", prlimit(getppid(), RLIMIT_NOFILE, &limit, NULL));
    report("a limit of pid 1, upper bits set", syscall(SYS_prlimit64, 0x100000001UL, RLIMIT_NOFILE, &limit, NULL));
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    report("CPUs of pid 1", sched_setaffinity(1, sizeof cpus, &cpus));
    report("CPUs of pid 1, upper bits set", syscall(SYS_sched_setaffinity, 0x100000001UL, sizeof cpus, &cpus));
    report("scheduling of pid 1", sched_setscheduler(1, SCHED_OTHER, &(struct sched_param){0}));
    report("scheduling parameters of pid 1", sched_setparam(1, &(struct sched_param){0}));
    struct { unsigned size, policy; unsigned long rest[5]; } attributes = {.size = 48};
    report("scheduling attributes of pid 1", syscall(SYS_sched_setattr, 1, &attributes, 0));
    report("nice value of pid 1", setpriority(PRIO_PROCESS, 1, 0));
    report("nice value of a process group", setpriority(PRIO_PGRP, 1, 0));
    report("nice value of a user", setpriority(PRIO_USER, 0, 0));
    report("I/O priority of pid 1", syscall(SYS_ioprio_set, 1, 1, 0));
    report("I/O priority of a process group", syscall(SYS_ioprio_set, 2, 1, 0));
    report("I/O priority of a user", syscall(SYS_ioprio_set, 3, getuid(), 0));
    report("core scheduling", prctl(62, 0, 0, 0, 0));
}

static void processes(void) {
    report("process_vm_readv of pid 1", syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
    report("process_vm_writev of pid 1", syscall(SYS_process_vm_writev, 1, NULL, 0, NULL, 0, 0));
    long pidfd = syscall(SYS_pidfd_open, 1, 0);
    for (int fd = 3; fd < 6; fd++) {
        char name[64];
        snprintf(name, sizeof name, "pidfd_getfd of pid 1's %d", fd);
        report(name, syscall(SYS_pidfd_getfd, pidfd, fd, 0));
    }
    report("kcmp with pid 1", syscall(SYS_kcmp, 1, getpid(), 0, 0, 0));
    report("process_madvise of pid 1", syscall(SYS_process_madvise, pidfd, NULL, 0, 21, 0));
    report("real-time scheduling", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}));
    errno = 0;
    report("a better nice value", nice(-5) == -1 && errno ? -1 : 0);
    report("another personality", syscall(SYS_personality, 0x0400000));
    unsigned size;
    report("moving its arguments in memory", prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0));
    report("a raised capability", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
    report("TIOCSTI", ioctl(0, TIOCSTI, "x"));
    report("TIOCSTI, upper bits set", syscall(SYS_ioctl, 0, 0x100000000UL | TIOCSTI, "x"));
    report("TIOCLINUX", ioctl(0, TIOCLINUX, "x"));
    report("TIOCSETD", ioctl(0, TIOCSETD, &(int){21}));
    report("TIOCSETD, upper bits set", syscall(SYS_ioctl, 0, 0x100000000UL | TIOCSETD, &(int){21}));
}

static void devices(void) {
    report("mknod of the first disk", mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)));
    report("mknod of /dev/mem", mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)));
    report("mknod of /dev/fuse", mknod("/tmp/fuse", S_IFCHR | 0600, makedev(10, 229)));
    report("mknod of an overlay whiteout", mknod("/tmp/whiteout", S_IFCHR | 0600, 0));
    report("mknod in /dev", mknod("/dev/x", S_IFREG | 0600, 0));
    mknod("/dev/shm/whiteout", S_IFCHR | 0600, 0);
    report("opening a device of its own", open("/dev/shm/whiteout", O_RDONLY));
    report("renaming to an overlay whiteout", renameat2(AT_FDCWD, "/tmp/a", AT_FDCWD, "/tmp/b", RENAME_WHITEOUT));
}

int main(void) {
    namespaces();
    mounts();
    subsystems();
    sockets();
    socket_options();
    processes();
    hindering_pid_1();
    devices();
    return 0;
}
