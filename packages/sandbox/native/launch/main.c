/*
 * slipway-launch: what Slipway's local sandboxes need to have done outside Node.
 *
 *   run     starts a sandbox (run.c)
 *   layer   works on the file trees that sandboxes are stacked from (layer*.c)
 *   serve   forks a process for each of these, as often as it is asked to (serve.c)
 *
 * `run` and `layer` begin by giving up root: everything they touch afterwards was written by untrusted code.
 */
#include "common.h"

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
	if (argc > 1 && !strcmp(argv[1], "serve"))
		return serve_main(argc - 2, argv + 2);
	return command_main(argc - 1, argv + 1);
}
