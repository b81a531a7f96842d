/*
 * slipway-launch: what Slipway's local sandboxes need to have done outside Node.
 *
 *   run     starts a sandbox (run.c)
 *   layer   works on the file trees that sandboxes are stacked from (layer*.c)
 *
 * Both begin by giving up root: everything they touch afterwards was written by untrusted code.
 */
#include "common.h"

#include <string.h>

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "run"))
		return run_main(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], "layer"))
		return layer_main(argc - 2, argv + 2);
	usage("expected 'run' or 'layer'");
}
