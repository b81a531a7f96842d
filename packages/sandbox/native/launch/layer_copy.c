/*
 * An incremental copy. The manifest of a copy holds the inode, ctime and size of each source file. A file that still
 * has the same was not written since: it becomes a hard link to the previous copy.
 *
 * The manifest leaves out files that could change without a new ctime: those whose ctime is within the clock's step,
 * and those that a process maps for shared writing (the caller names their inodes), because the kernel does not track
 * writes to dirty pages.
 */
#define _GNU_SOURCE
#include "common.h"
#include "layer.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A record of a manifest; its path follows, with a NUL. Only the machine that wrote it reads it. */
struct record {
	uint64_t inode, size;
	int64_t seconds;
	uint32_t nanoseconds, path_bytes;
};

static const char signature[8] = "slipman1";
enum { CLOCK_STEP_NS = 20 * 1000 * 1000, MOST_PATH = 1 << 20 };

struct manifest {
	char *bytes;
	size_t length;
	/* Open addressing by the path's hash; offsets into bytes, 0 for none. */
	size_t *slots, size;
};

struct copy {
	const struct copy_request *request;
	struct manifest previous;
	FILE *manifest;
	struct timespec start;
	int to_root;
	/* Files with several names: the path of the first. */
	struct inode_table linked;
	char path[MOST_PATH];
	size_t path_length;
};

static size_t hash_path(const char *path)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static const char *path_of(const struct manifest *manifest, size_t offset)
{
	return manifest->bytes + offset + sizeof(struct record);
}

static size_t *slot_of(const struct manifest *manifest, const char *path)
{
	size_t at = hash_path(path) & (manifest->size - 1);

	while (manifest->slots[at] && strcmp(path_of(manifest, manifest->slots[at]), path))
		at = (at + 1) & (manifest->size - 1);
	return &manifest->slots[at];
}

static void index_manifest(struct manifest *manifest)
{
	struct record record;

	for (manifest->size = 1024; manifest->size * sizeof(struct record) < manifest->length; manifest->size *= 2)
		;
	manifest->size *= 2;
	manifest->slots = allocate(manifest->size * sizeof *manifest->slots);
	for (size_t at = sizeof signature; at < manifest->length; at += sizeof record + record.path_bytes) {
		if (manifest->length - at < sizeof record)
			usage("the manifest is cut off");
		memcpy(&record, manifest->bytes + at, sizeof record);
		if (manifest->length - at - sizeof record < record.path_bytes || !record.path_bytes || manifest->bytes[at + sizeof record + record.path_bytes - 1])
			usage("the manifest is damaged");
		*slot_of(manifest, path_of(manifest, at)) = at;
	}
}

static void read_manifest(struct manifest *manifest, const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	size_t got = 0;
	ssize_t step;

	if (fd < 0 || fstat(fd, &status))
		fail("open %s", path);
	manifest->length = status.st_size;
	manifest->bytes = allocate(manifest->length);
	while (got < manifest->length && (step = read(fd, manifest->bytes + got, manifest->length - got)) > 0)
		got += step;
	if (got != manifest->length || got < sizeof signature || memcmp(manifest->bytes, signature, sizeof signature))
		usage("%s is no manifest", path);
	close(fd);
	index_manifest(manifest);
}

static struct record record_of(const struct copy *copy, const struct stat *status)
{
	return (struct record){
		.inode = status->st_ino,
		.size = status->st_size,
		.seconds = status->st_ctim.tv_sec,
		.nanoseconds = status->st_ctim.tv_nsec,
		.path_bytes = copy->path_length + 1,
	};
}

static bool is_unchanged(const struct copy *copy, const struct stat *status)
{
	struct record now = record_of(copy, status), then;
	size_t offset;

	if (!copy->previous.size || !(offset = *slot_of(&copy->previous, copy->path)))
		return false;
	memcpy(&then, copy->previous.bytes + offset, sizeof then);
	return !memcmp(&now, &then, sizeof now);
}

static bool may_change_unseen(struct copy *copy, const struct stat *status)
{
	int64_t age_ns = (int64_t)(copy->start.tv_sec - status->st_ctim.tv_sec) * 1000000000 + copy->start.tv_nsec - status->st_ctim.tv_nsec;

	if (age_ns < CLOCK_STEP_NS)
		return true;
	for (int i = 0; i < copy->request->changing_count; i++)
		if (copy->request->changing[i] == status->st_ino)
			return true;
	return false;
}

static void remember(struct copy *copy, const struct stat *status)
{
	struct record record = record_of(copy, status);

	if (may_change_unseen(copy, status))
		return;
	if (fwrite(&record, sizeof record, 1, copy->manifest) != 1 || fwrite(copy->path, record.path_bytes, 1, copy->manifest) != 1)
		fail("write the manifest");
}

/* True when another name of the file has been copied already, and is now linked. */
static bool link_other_name(struct copy *copy, int to, const char *name, const struct stat *status)
{
	const char *first;
	char *path;

	if (status->st_nlink < 2)
		return false;
	path = strdup(copy->path);
	if (!path)
		fail("allocate memory");
	first = inode_table_add(&copy->linked, status->st_ino, path);
	if (!first)
		return false;
	free(path);
	/* With too many links, or too long a path, it becomes a separate file. */
	return !linkat(copy->to_root, first, to, name, 0);
}

static void copy_entry(struct copy *copy, int from, int to, int previous, const char *name, const struct stat *status)
{
	if (!S_ISREG(status->st_mode)) {
		copy_node(from, to, name, status);
		return;
	}
	if (!link_other_name(copy, to, name, status) &&
	    !(previous >= 0 && is_unchanged(copy, status) && !linkat(previous, name, to, name, 0)))
		copy_node(from, to, name, status);
	remember(copy, status);
}

/* Appends a name to the path; returns the length to go back to. */
static size_t enter(struct copy *copy, const char *name)
{
	size_t before = copy->path_length;
	int added = snprintf(copy->path + before, MOST_PATH - before, "%s%s", before ? "/" : "", name);

	if (added >= (int)(MOST_PATH - before))
		usage("a path is too long");
	copy->path_length += added;
	return before;
}

static void leave(struct copy *copy, size_t before)
{
	copy->path_length = before;
	copy->path[before] = '\0';
}

/* `previous` is the same directory in the previous copy, or -1. */
static void copy_directory(struct copy *copy, int from, int to, int previous, int depth)
{
	struct walk walk = walk_open(from, ".");
	const char *name;

	check_depth(depth);
	while ((name = walk_next(&walk))) {
		size_t before = enter(copy, name);
		struct stat status;

		if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW))
			fail("look at %s", name);
		if (S_ISDIR(status.st_mode)) {
			int source = open_child_directory(from, name), target = make_child_directory(to, name);
			int earlier = previous < 0 ? -1 : openat(previous, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			copy_directory(copy, source, target, earlier, depth + 1);
			copy_directory_attributes(source, target, &status);
			close(source);
			close(target);
			if (earlier >= 0)
				close(earlier);
		} else {
			copy_entry(copy, from, to, previous, name, &status);
		}
		leave(copy, before);
	}
	walk_close(&walk);
}

void layer_copy(const struct copy_request *request)
{
	static struct copy copy;
	int from = open_directory(request->from), previous = request->previous ? open_directory(request->previous) : -1;
	struct stat status;

	copy.request = request;
	clock_gettime(CLOCK_REALTIME, &copy.start);
	if (request->previous_manifest)
		read_manifest(&copy.previous, request->previous_manifest);
	copy.manifest = fopen(request->manifest, "wxe");
	if (!copy.manifest || fwrite(signature, sizeof signature, 1, copy.manifest) != 1)
		fail("make %s", request->manifest);
	copy.to_root = make_child_directory(AT_FDCWD, request->to);
	if (fstat(from, &status))
		fail("look at %s", request->from);
	copy_directory(&copy, from, copy.to_root, previous, 0);
	copy_directory_attributes(from, copy.to_root, &status);
	if (fclose(copy.manifest))
		fail("write the manifest");
}
