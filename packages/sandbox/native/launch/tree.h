#ifndef SLIPWAY_LAUNCH_TREE_H
#define SLIPWAY_LAUNCH_TREE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Trees were written by untrusted code. They are walked by descriptors, a directory at a time, without following links;
 * nothing in them is addressed by a longer path than one name.
 */

/* Deeper than any path that can be named. Trees beyond it are refused. */
enum { MOST_DEPTH = 2048 };

struct walk {
	DIR *directory;
	int fd;
};
/* Opens a directory for reading; name "." with a descriptor of its own is fine. */
struct walk walk_open(int parent, const char *name);
/* The next entry but "." and "..", or NULL. */
const char *walk_next(struct walk *walk);
void walk_close(struct walk *walk);
void check_depth(int depth);

int make_child_directory(int parent, const char *name);
int open_child_directory(int parent, const char *name);

bool is_whiteout(const struct stat *status);
bool is_opaque(int directory);
void make_opaque(int directory);

/* Makes `name` in `to` the same as `name` in `from`, which is not a directory. Keeps mode, times and extended attributes. */
void copy_node(int from, int to, const char *name, const struct stat *status);
/* Mode, times and extended attributes of a directory, after its content is in place. */
void copy_directory_attributes(int from, int to, const struct stat *status);

/* Removes whatever `name` is. Nothing there is fine. Stays on one file system. */
void remove_at(int parent, const char *name);

/* Remembers a text for each inode number. */
struct inode_table {
	struct inode_slot {
		uint64_t inode;
		const char *text;
	} *slots;
	size_t size, count;
};
/* The text kept for the inode, after keeping `text` for it if there was none: NULL when it is new. */
const char *inode_table_add(struct inode_table *table, uint64_t inode, const char *text);

#endif
