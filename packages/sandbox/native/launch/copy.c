/* Copies nodes of a tree. */
#define _GNU_SOURCE
#include "common.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Overlayfs notes these about an upper layer and its own lower ones: wrong for a copy. */
static bool is_bookkeeping(const char *name)
{
	static const char *const names[] = { OVERLAY_ATTRIBUTE "origin", OVERLAY_ATTRIBUTE "impure", OVERLAY_ATTRIBUTE "nlink", OVERLAY_ATTRIBUTE "uuid" };

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

/* Ids that are not mapped, as of a group that a directory above the state directory gives its files, become 0. */
static void set_owner(int parent, const char *name, const struct stat *status)
{
	uid_t uid = status->st_uid == SECOND_ID ? SECOND_ID : 0;
	gid_t gid = status->st_gid == SECOND_ID ? SECOND_ID : 0;

	if (fchownat(parent, name, uid, gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		fail("set the owner of %s", *name ? name : "a file");
}

/* The owner first: a change of owner takes set-user-id from the mode. */
static void set_attributes(int fd, const struct stat *status)
{
	const struct timespec times[] = { status->st_atim, status->st_mtim };

	set_owner(fd, "", status);
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

/* From the files' current offsets. */
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

/* Keeps holes: a copy must not take more disk than its source was allowed to. */
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
	set_attributes(to, &status);
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
	set_owner(to, name, status);
	if (utimensat(to, name, times, AT_SYMLINK_NOFOLLOW))
		fail("set times of %s", name);
}

void copy_directory_attributes(int from, int to, const struct stat *status)
{
	copy_attributes(from, to);
	set_attributes(to, status);
}
