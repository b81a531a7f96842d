/*
 * slipway-launch: the work of local sandboxes that Node cannot do.
 *
 *   run     starts a sandbox (run.c)
 *   layer   copies, merges, measures and removes layers (layer*.c)
 *   serve   forks a process for each request of these (serve.c)
 *
 * `run` and `layer` drop root first: everything they touch afterwards was written by untrusted code.
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <string.h>

int command_main(int argc, char **argv)
{
	if (argc > 0 && !strcmp(argv[0], "run"))
		return run_main(argc - 1, argv + 1);
	if (argc > 0 && !strcmp(argv[0], "layer"))
		return layer_main(argc - 1, argv + 1);
	usage("expected 'run' or 'layer'");
}

int main(int argc, char **argv)
{
	/* What errors begin with, whatever the file is called. */
	program_invocation_short_name = "slipway-launch";
	if (argc > 1 && !strcmp(argv[1], "serve"))
		return serve_main(argc - 2, argv + 2);
	return command_main(argc - 1, argv + 1);
}
