#ifndef SLIPWAY_LAUNCH_TREE_H
#define SLIPWAY_LAUNCH_TREE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Untrusted code wrote the trees. They are walked by descriptors, one directory at a time, without following links;
 * no path into them is longer than one name.
 */

/* Deeper than any path can name. Deeper trees are refused. */
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

#define OVERLAY_ATTRIBUTE "user.overlay."
bool is_opaque(int directory);
void make_opaque(int directory);

/* Copies `name`, which is not a directory, with its owner, mode, times and extended attributes. */
void copy_node(int from, int to, const char *name, const struct stat *status);
/* Copies owner, mode, times and extended attributes of a directory. Call after its content is in place. */
void copy_directory_attributes(int from, int to, const struct stat *status);

/* Removes whatever `name` is, if it exists. Stays on one file system. */
void remove_at(int parent, const char *name);

/* Keeps a text for each inode number. */
struct inode_table {
	struct inode_slot {
		uint64_t inode;
		const char *text;
	} *slots;
	size_t size, count;
};
/* The text of the inode. When it has none yet: keeps `text` and returns NULL. */
const char *inode_table_add(struct inode_table *table, uint64_t inode, const char *text);

#endif
