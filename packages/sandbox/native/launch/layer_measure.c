#define _GNU_SOURCE
#include "common.h"
#include "layer.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct measure {
	uint64_t bytes, most;
	dev_t device;
	struct inode_table seen;
};

/* An empty file counts as this: file systems run out of inodes, too. */
enum { MIN_BLOCKS = 8 };

static void add(struct measure *measure, const struct stat *status)
{
	if (S_ISDIR(status->st_mode) || status->st_nlink == 1 || !inode_table_add(&measure->seen, status->st_ino, ""))
		measure->bytes += status->st_blocks > MIN_BLOCKS ? (uint64_t)status->st_blocks * 512 : MIN_BLOCKS * 512;
}

/* The tree may change meanwhile: what is gone counts as nothing. */
static void measure_directory(struct measure *measure, struct walk *walk, int depth)
{
	const char *name;

	/* Too deep to look at counts as endless, so that nothing can hide there. */
	if (depth > MOST_DEPTH)
		measure->bytes = UINT64_MAX;
	while (measure->bytes <= measure->most && measure->bytes != UINT64_MAX && (name = walk_next(walk))) {
		struct stat status;
		struct walk child;

		if (fstatat(walk->fd, name, &status, AT_SYMLINK_NOFOLLOW)) {
			if (errno == ENOENT)
				continue;
			fail("look at %s", name);
		}
		if (status.st_dev != measure->device)
			continue;
		add(measure, &status);
		if (!S_ISDIR(status.st_mode))
			continue;
		child.fd = openat(walk->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child.fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
			continue;
		if (child.fd < 0 || !(child.directory = fdopendir(child.fd)))
			fail("open directory %s", name);
		measure_directory(measure, &child, depth + 1);
		walk_close(&child);
	}
}

uint64_t layer_measure(const char *path, uint64_t most)
{
	struct measure measure = { .most = most };
	struct walk walk = walk_open(AT_FDCWD, path);
	struct stat status;

	if (fstat(walk.fd, &status))
		fail("look at %s", path);
	measure.device = status.st_dev;
	add(&measure, &status);
	measure_directory(&measure, &walk, 0);
	walk_close(&walk);
	return measure.bytes;
}
