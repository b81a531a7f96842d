#define _GNU_SOURCE
#include "tree.h"
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

struct walk walk_open(int parent, const char *name)
{
	struct walk walk = { .fd = open_child_directory(parent, name) };

	walk.directory = fdopendir(walk.fd);
	if (!walk.directory)
		fail("read directory %s", name);
	return walk;
}

const char *walk_next(struct walk *walk)
{
	struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(walk->directory);
		if (!entry && errno)
			fail("read a directory");
	} while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	return entry ? entry->d_name : NULL;
}

void walk_close(struct walk *walk)
{
	closedir(walk->directory);
}

void check_depth(int depth)
{
	if (depth > MOST_DEPTH)
		usage("the tree is nested deeper than %d directories", MOST_DEPTH);
}

int open_child_directory(int parent, const char *name)
{
	int fd = openat(parent, name, DIRECTORY_FLAGS);

	if (fd < 0)
		fail("open directory %s", name);
	return fd;
}

int make_child_directory(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700))
		fail("make directory %s", name);
	return open_child_directory(parent, name);
}

bool is_opaque(int directory)
{
	char value;

	return fgetxattr(directory, OVERLAY_ATTRIBUTE "opaque", &value, 1) == 1 && value == 'y';
}

void make_opaque(int directory)
{
	if (fsetxattr(directory, OVERLAY_ATTRIBUTE "opaque", "y", 1, 0))
		fail("make a directory opaque");
}

/* Deeper directories are first moved up to the top, so that removal needs few descriptors at any depth. */
enum { REMOVE_DEPTH = 64 };

static void remove_content(int top, struct walk *walk, dev_t device, int depth)
{
	static unsigned long moved;
	const char *name;

	while ((name = walk_next(walk))) {
		char hoisted[64];
		struct stat status;
		struct walk child;

		if (!unlinkat(walk->fd, name, 0) || errno == ENOENT)
			continue;
		if (errno != EISDIR)
			fail("remove %s", name);
		if (fstatat(walk->fd, name, &status, AT_SYMLINK_NOFOLLOW))
			fail("look at %s", name);
		if (status.st_dev != device)
			usage("%s is on another file system", name);
		if (depth >= REMOVE_DEPTH) {
			snprintf(hoisted, sizeof hoisted, ".slipway-removed-%d-%lu", getpid(), moved++);
			if (renameat(walk->fd, name, top, hoisted))
				fail("move %s up", name);
			continue;
		}
		child = walk_open(walk->fd, name);
		remove_content(top, &child, device, depth + 1);
		walk_close(&child);
		if (unlinkat(walk->fd, name, AT_REMOVEDIR))
			fail("remove directory %s", name);
	}
}

void remove_at(int parent, const char *name)
{
	struct stat status;
	bool again = true;

	if (!unlinkat(parent, name, 0) || errno == ENOENT)
		return;
	if (errno != EISDIR)
		fail("remove %s", name);
	/* The reading of the top may have missed directories that were moved up. */
	while (again) {
		struct walk walk = walk_open(parent, name);

		if (fstat(walk.fd, &status))
			fail("look at %s", name);
		remove_content(walk.fd, &walk, status.st_dev, 0);
		walk_close(&walk);
		again = unlinkat(parent, name, AT_REMOVEDIR) != 0;
		if (again && errno != ENOTEMPTY)
			fail("remove directory %s", name);
	}
}
