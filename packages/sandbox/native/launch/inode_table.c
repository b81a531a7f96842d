#define _GNU_SOURCE
#include "common.h"
#include "tree.h"

#include <stdlib.h>

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
