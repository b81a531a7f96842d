#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

char *option_value(int argc, char **argv, int *at)
{
	if (*at + 1 >= argc)
		usage("%s needs a value", argv[*at]);
	return argv[++*at];
}

unsigned long long option_number(int argc, char **argv, int *at)
{
	const char *name = argv[*at], *value = option_value(argc, argv, at);
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno)
		usage("%s needs a number, not '%s'", name, value);
	return number;
}

bool identity_option(struct identity *identity, int argc, char **argv, int *at)
{
	if (!strcmp(argv[*at], "--uid"))
		identity->uid = option_number(argc, argv, at);
	else if (!strcmp(argv[*at], "--gid"))
		identity->gid = option_number(argc, argv, at);
	else
		return false;
	return true;
}

void become(const struct identity *identity)
{
	if (geteuid() != 0) {
		if (getuid() != geteuid() || getgid() != getegid())
			usage("does not run set-user-id");
		return;
	}
	if (identity->uid == 0 || identity->gid == 0)
		usage("started as root, it needs --uid and --gid other than 0");
	if (setgroups(0, NULL))
		fail("drop supplementary groups");
	if (setresgid(identity->gid, identity->gid, identity->gid))
		fail("become gid %u", identity->gid);
	if (setresuid(identity->uid, identity->uid, identity->uid))
		fail("become uid %u", identity->uid);
	if (setresuid(-1, 0, -1) == 0)
		usage("root's rights came back after they were dropped");
	/* The change of uid made /proc/self root's, and with it uid_map. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		fail("become dumpable");
}

void enter_user_namespace(int flags)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[32];

	if (uid == 0)
		usage("refuses to work as root");
	if (unshare(CLONE_NEWUSER | flags))
		fail("make a user namespace");
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
}

char **split_arguments(char *text, size_t length, int *argc)
{
	char **argv = allocate((length + 2) * sizeof *argv);

	*argc = 0;
	for (char *at = text; at < text + length; at += strlen(at) + 1)
		argv[(*argc)++] = at;
	return argv;
}

void *allocate(size_t size)
{
	void *memory = calloc(1, size ? size : 1);

	if (!memory)
		fail("allocate memory");
	return memory;
}

int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		fail("open %s", path);
	return fd;
}

void write_file(const char *path, const char *text)
{
	size_t length = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fail("open %s", path);
	if (write(fd, text, length) != (ssize_t)length)
		fail("write %s to %s", text, path);
	close(fd);
}
