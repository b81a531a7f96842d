#define _GNU_SOURCE
#include "common.h"
#include "layer.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void apply_directory(int from, int to, int depth);

/*
 * The directory of this name in the lower tree, or a new empty one where there is none or the higher one hides it. A
 * new directory in place of something else stays opaque: that hid the layers below, too.
 */
static int directory_under(int to, const char *name, bool hides)
{
	struct stat status;
	bool present = !fstatat(to, name, &status, AT_SYMLINK_NOFOLLOW);
	int fd;

	if (!present && errno != ENOENT)
		fail("look at %s", name);
	if (present && S_ISDIR(status.st_mode) && !hides)
		return open_child_directory(to, name);
	remove_at(to, name);
	fd = make_child_directory(to, name);
	if (hides || present)
		make_opaque(fd);
	return fd;
}

static void apply_entry(int from, int to, const char *name, int depth)
{
	struct stat status;
	int source, target;

	if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW))
		fail("look at %s", name);
	if (!S_ISDIR(status.st_mode)) {
		remove_at(to, name);
		if (!linkat(from, name, to, name, 0))
			return;
		if (errno != EMLINK)
			fail("link %s", name);
		copy_node(from, to, name, &status);
		return;
	}
	source = open_child_directory(from, name);
	target = directory_under(to, name, is_opaque(source));
	apply_directory(source, target, depth + 1);
	copy_directory_attributes(source, target, &status);
	close(source);
	close(target);
}

static void apply_directory(int from, int to, int depth)
{
	struct walk walk = walk_open(from, ".");
	const char *name;

	check_depth(depth);
	while ((name = walk_next(&walk)))
		apply_entry(from, to, name, depth);
	walk_close(&walk);
}

void layer_flatten(const char *path, char **layers, int count)
{
	int to = make_child_directory(AT_FDCWD, path);

	for (int i = 0; i < count; i++) {
		int from = open_directory(layers[i]);
		struct stat status;

		if (fstat(from, &status))
			fail("look at %s", layers[i]);
		apply_directory(from, to, 0);
		copy_directory_attributes(from, to, &status);
		close(from);
	}
	close(to);
}
