#ifndef SLIPWAY_LAUNCH_LAYER_H
#define SLIPWAY_LAUNCH_LAYER_H

#include <stdint.h>

struct copy_request {
	const char *from, *to, *previous, *previous_manifest, *manifest;
	/* Inodes whose content can change without a new ctime: see layer_copy.c. */
	uint64_t *changing;
	int changing_count;
};

void layer_copy(const struct copy_request *request);
void layer_flatten(const char *to, char **layers, int count);
uint64_t layer_measure(const char *path, uint64_t most);

#endif
