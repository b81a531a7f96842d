/* Who the program is, and the users of its namespaces. */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Gives up root's rights for good. */
static void become(const struct identity *identity)
{
	if (setgroups(0, NULL))
		fail("drop supplementary groups");
	if (setresgid(identity->gid, identity->gid, identity->gid))
		fail("become gid %u", identity->gid);
	if (setresuid(identity->uid, identity->uid, identity->uid))
		fail("become uid %u", identity->uid);
	if (setresuid(-1, 0, -1) == 0)
		usage("root's rights came back after they were dropped");
}

static void unshare_user(int flags)
{
	if (unshare(CLONE_NEWUSER | flags))
		fail("make a user namespace");
}

/* `process`: its directory in /proc. */
static void write_map(int process, const char *name, const char *map)
{
	int fd = openat(process, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fail("open %s", name);
	if (dprintf(fd, "%s", map) < 0)
		fail("map users by %s", name);
	close(fd);
}

static void write_pair(int process, const char *name, unsigned first, unsigned second)
{
	char map[64];

	snprintf(map, sizeof map, "0 %u 1\n%u %u 1\n", first, SECOND_ID, second);
	write_map(process, name, map);
}

/* A process that ends when it has mapped the users of the one that made it, once told to. */
struct mapper {
	pid_t pid;
	int go;
};

/* It takes the right to become another user to map one, and of root's rights only that. */
static void keep_mapping_rights(const struct identity *identity)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	unsigned mapping = 1U << CAP_SETUID | 1U << CAP_SETGID;
	struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = { { .effective = mapping, .permitted = mapping } };

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
		fail("keep the rights to map users");
	become(identity);
	if (syscall(SYS_capset, &header, rights))
		fail("keep only the rights to map users");
}

static struct mapper start_mapper(const struct identity *identity)
{
	int process = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC), ends[2];
	struct mapper mapper;
	char byte;

	if (process < 0 || pipe2(ends, O_CLOEXEC))
		fail("start the mapper");
	mapper = (struct mapper){ .pid = fork(), .go = ends[1] };
	if (mapper.pid < 0)
		fail("start the mapper");
	if (mapper.pid == 0) {
		close(ends[1]);
		keep_mapping_rights(identity);
		if (read(ends[0], &byte, 1) != 1)
			_exit(1);
		write_pair(process, "uid_map", identity->uid, identity->uid + 1);
		write_pair(process, "gid_map", identity->gid, identity->gid + 1);
		_exit(0);
	}
	close(ends[0]);
	close(process);
	return mapper;
}

static void wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			fail("wait for the mapped users");
	/* It has said why. */
	if (status)
		exit(1);
}

static void map_own_user(uid_t uid, gid_t gid)
{
	char map[32];

	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
}

void enter_user_namespace(const struct identity *identity, int flags)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct mapper mapper;

	if (uid != 0) {
		if (getuid() != uid || getgid() != gid)
			usage("does not run set-user-id");
		unshare_user(flags);
		map_own_user(uid, gid);
		return;
	}
	if (identity->uid == 0 || identity->gid == 0)
		usage("started as root, it needs --uid and --gid other than 0");
	mapper = start_mapper(identity);
	become(identity);
	/* The change of uid made /proc/self root's. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		fail("become dumpable");
	unshare_user(flags);
	if (write(mapper.go, "", 1) != 1)
		fail("tell the mapper");
	close(mapper.go);
	wait_for(mapper.pid);
}

int make_inner_user_namespace(void)
{
	char path[32], byte;
	int ends[2], process, namespace;
	pid_t member;

	if (pipe2(ends, O_CLOEXEC))
		fail("make a pipe");
	member = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (member < 0)
		fail("make the sandbox's user namespace");
	if (member == 0) {
		close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		write_file("/proc/sys/user/max_user_namespaces", "0");
		_exit(0);
	}
	close(ends[0]);
	snprintf(path, sizeof path, "/proc/%d", member);
	process = open_directory(path);
	write_pair(process, "uid_map", 0, SECOND_ID);
	write_pair(process, "gid_map", 0, SECOND_ID);
	namespace = openat(process, "ns/user", O_RDONLY | O_CLOEXEC);
	if (namespace < 0)
		fail("open the sandbox's user namespace");
	close(ends[1]);
	close(process);
	wait_for(member);
	return namespace;
}
