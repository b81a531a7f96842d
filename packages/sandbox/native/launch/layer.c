/*
 * slipway-launch layer [--uid N --gid N] ...
 *
 *   copy --from UPPER --to DIR --manifest FILE [--previous DIR --previous-manifest FILE] [--changing INODE...]
 *       copies UPPER to DIR, hard-links what has not changed since the previous copy, and writes a manifest
 *   flatten --to DIR LOWEST... HIGHEST
 *       merges the layers into DIR by hard links; what they delete from layers below stays deleted
 *   measure DIR [--most BYTES]
 *       prints the bytes that DIR takes on disk; stops counting past BYTES
 *   remove DIR
 *       removes DIR recursively
 *
 * All run as root of a user namespace with the sandboxes' uids: modes of their files do not matter, and other files
 * stay out of reach.
 */
#define _GNU_SOURCE
#include "layer.h"
#include "common.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static void copy_command(int argc, char **argv)
{
	struct copy_request request = { .changing = allocate(argc * sizeof(uint64_t)) };

	for (int at = 0; at < argc; at++) {
		const char *name = argv[at];

		if (!strcmp(name, "--from"))
			request.from = option_value(argc, argv, &at);
		else if (!strcmp(name, "--to"))
			request.to = option_value(argc, argv, &at);
		else if (!strcmp(name, "--manifest"))
			request.manifest = option_value(argc, argv, &at);
		else if (!strcmp(name, "--previous"))
			request.previous = option_value(argc, argv, &at);
		else if (!strcmp(name, "--previous-manifest"))
			request.previous_manifest = option_value(argc, argv, &at);
		else if (!strcmp(name, "--changing"))
			request.changing[request.changing_count++] = option_number(argc, argv, &at);
		else
			usage("unknown option %s", name);
	}
	if (!request.from || !request.to || !request.manifest || !request.previous != !request.previous_manifest)
		usage("copy needs --from, --to and --manifest, and --previous together with --previous-manifest");
	layer_copy(&request);
}

static void flatten_command(int argc, char **argv)
{
	if (argc < 3 || strcmp(argv[0], "--to"))
		usage("flatten needs --to DIR and layers");
	layer_flatten(argv[1], argv + 2, argc - 2);
}

static void measure_command(int argc, char **argv)
{
	const char *path = NULL;
	uint64_t most = UINT64_MAX;

	for (int at = 0; at < argc; at++)
		if (!strcmp(argv[at], "--most"))
			most = option_number(argc, argv, &at);
		else
			path = argv[at];
	if (!path)
		usage("measure needs a directory");
	printf("%" PRIu64 "\n", layer_measure(path, most));
	if (fflush(stdout))
		fail("print");
}

static void remove_command(int argc, char **argv)
{
	if (argc != 1)
		usage("remove needs one directory");
	remove_at(AT_FDCWD, argv[0]);
}

/* A walk holds up to three descriptors for each level of the tree. */
static void allow_open_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		fail("get the limit of open files");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files))
		fail("set the limit of open files");
}

int layer_main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(int argc, char **argv);
	} commands[] = { { "copy", copy_command }, { "flatten", flatten_command }, { "measure", measure_command }, { "remove", remove_command } };
	struct identity identity = { 0 };
	int at = 0;

	while (at < argc && identity_option(&identity, argc, argv, &at))
		at++;
	for (size_t i = 0; at < argc && i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(argv[at], commands[i].name)) {
			enter_user_namespace(&identity, 0);
			allow_open_files();
			commands[i].run(argc - at - 1, argv + at + 1);
			return 0;
		}
	usage("layer knows copy, flatten, measure and remove");
}
