#define _GNU_SOURCE
#include "tree.h"
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
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

bool is_whiteout(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && status->st_rdev == makedev(0, 0);
}

#define OVERLAY "user.overlay."

bool is_opaque(int directory)
{
	char value;

	return fgetxattr(directory, OVERLAY "opaque", &value, 1) == 1 && value == 'y';
}

void make_opaque(int directory)
{
	if (fsetxattr(directory, OVERLAY "opaque", "y", 1, 0))
		fail("make a directory opaque");
}

/* What overlayfs notes about an upper layer and its own lower ones: wrong for a copy. */
static bool is_bookkeeping(const char *name)
{
	static const char *const names[] = { OVERLAY "origin", OVERLAY "impure", OVERLAY "nlink", OVERLAY "uuid" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void copy_attributes(int from, int to)
{
	static char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
	ssize_t length = flistxattr(from, names, sizeof names), size;

	for (char *name = names; name < names + length; name += strlen(name) + 1) {
		if (strncmp(name, "user.", 5) || is_bookkeeping(name))
			continue;
		size = fgetxattr(from, name, value, sizeof value);
		if (size < 0 || fsetxattr(to, name, value, size, 0))
			fail("copy attribute %s", name);
	}
}

static void set_mode_and_times(int fd, const struct stat *status)
{
	const struct timespec times[] = { status->st_atim, status->st_mtim };

	if (fchmod(fd, status->st_mode & 07777) || futimens(fd, times))
		fail("set mode and times");
}

static void write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);

		if (written < 0)
			fail("write a file");
		bytes += written;
		length -= written;
	}
}

/* Copies from the files' current offsets. */
static void copy_range(int from, int to, off_t length)
{
	static char buffer[128 * 1024];
	static bool unsupported;

	while (length > 0 && !unsupported) {
		ssize_t copied = copy_file_range(from, NULL, to, NULL, length, 0);

		if (copied == 0)
			return;
		if (copied < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
			fail("copy a file");
		if (copied < 0)
			unsupported = true;
		else
			length -= copied;
	}
	while (length > 0) {
		ssize_t got = read(from, buffer, length < (off_t)sizeof buffer ? length : (off_t)sizeof buffer);

		if (got < 0)
			fail("read a file");
		if (got == 0)
			return;
		write_all(to, buffer, got);
		length -= got;
	}
}

/* Holes stay holes: a tree must not take more disk as a copy than it was allowed to. */
static void copy_sparse(int from, int to, off_t size)
{
	off_t data, hole = 0;

	while ((data = lseek(from, hole, SEEK_DATA)) >= 0 && data < size) {
		hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0 || lseek(from, data, SEEK_SET) < 0 || lseek(to, data, SEEK_SET) < 0)
			fail("copy a sparse file");
		copy_range(from, to, hole - data);
	}
	if (ftruncate(to, size))
		fail("set a file's length");
}

static void copy_content(int from, int to, const struct stat *status)
{
	static bool no_clone;

	if (status->st_size == 0)
		return;
	if (!no_clone) {
		if (!ioctl(to, FICLONE, from))
			return;
		no_clone = true;
	}
	if (status->st_blocks * 512 < status->st_size)
		copy_sparse(from, to, status->st_size);
	else
		copy_range(from, to, status->st_size);
}

static void copy_file(int from_parent, int to_parent, const char *name)
{
	int from = openat(from_parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), to;
	struct stat status;

	if (from < 0 || fstat(from, &status))
		fail("open %s", name);
	if (!S_ISREG(status.st_mode))
		usage("%s changed while it was copied", name);
	to = openat(to_parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		fail("make %s", name);
	copy_content(from, to, &status);
	copy_attributes(from, to);
	set_mode_and_times(to, &status);
	close(from);
	close(to);
}

static void copy_symlink(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(from, name, target, sizeof target - 1);

	if (length < 0)
		fail("read link %s", name);
	target[length] = '\0';
	if (symlinkat(target, to, name))
		fail("make link %s", name);
}

void copy_node(int from, int to, const char *name, const struct stat *status)
{
	const struct timespec times[] = { status->st_atim, status->st_mtim };

	if (S_ISREG(status->st_mode)) {
		copy_file(from, to, name);
		return;
	}
	if (S_ISLNK(status->st_mode))
		copy_symlink(from, to, name);
	else if (mknodat(to, name, status->st_mode, status->st_rdev))
		fail("make %s", name);
	if (utimensat(to, name, times, AT_SYMLINK_NOFOLLOW))
		fail("set times of %s", name);
}

void copy_directory_attributes(int from, int to, const struct stat *status)
{
	copy_attributes(from, to);
	set_mode_and_times(to, status);
}

/* Directories below this depth are first moved up to the top, so that any depth is removed with few descriptors. */
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
	/* Directories that were moved up may have been missed by the reading of the top. */
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

static struct inode_slot *find_slot(const struct inode_table *table, uint64_t inode)
{
	size_t at = (inode * UINT64_C(0x9e3779b97f4a7c15)) & (table->size - 1);

	while (table->slots[at].text && table->slots[at].inode != inode)
		at = (at + 1) & (table->size - 1);
	return &table->slots[at];
}

static void grow(struct inode_table *table)
{
	struct inode_table larger = { .size = table->size ? table->size * 2 : 1024, .count = table->count };

	larger.slots = allocate(larger.size * sizeof *larger.slots);
	for (size_t i = 0; i < table->size; i++)
		if (table->slots[i].text)
			*find_slot(&larger, table->slots[i].inode) = table->slots[i];
	free(table->slots);
	*table = larger;
}

const char *inode_table_add(struct inode_table *table, uint64_t inode, const char *text)
{
	struct inode_slot *slot;

	if (2 * table->count >= table->size)
		grow(table);
	slot = find_slot(table, inode);
	if (slot->text)
		return slot->text;
	*slot = (struct inode_slot){ inode, text };
	table->count++;
	return NULL;
}
