/*
 * slipway-launch run [option...] -- /path/to/bwrap argument...
 *
 *   --layers DIR        working directory; the other paths may be relative to it
 *   --lower DIR         a lower layer of the overlay, highest first; repeated
 *   --spare DIR         absolute; with --wait: a box to make ahead, which becomes BOX unless that exists
 *   --box DIR           the sandbox's host directory; makes what is missing of it, upper, work, execs and egress
 *   --mount DIR         where to mount the overlay, in a mount namespace of its own
 *   --mount-point PATH  a directory that bwrap mounts on: made in the overlay, refused when its path has a link
 *   --directory PATH    a directory to make in the overlay when missing
 *   --seccomp FILE      the filter for bwrap
 *   --second-user       makes a user namespace with uid 1000 beside 0, for bwrap's --userns 8; only when started as root
 *   --uid N --gid N     the sandbox's identity outside, when started as root
 *   --cgroup DIR        a control group to make and enter; repeated
 *   --set FILE=VALUE    written after the groups are made; repeated
 *   --wait              prints "waiting\n", then reads the rest of the arguments from standard input, each with a NUL
 *
 * Entering a control group can take the kernel many milliseconds. --wait does it ahead: the program waits in its
 * groups, unprivileged and in its namespaces, until it is told what to start. It exits when its input ends without
 * arguments. --uid, --gid, --cgroup and --set are not taken from standard input.
 *
 * Standard output is the status pipe: it carries bwrap's --info-fd JSON, then the agent's "ready\n". Standard error
 * carries one line when a step fails, and bwrap's own messages. bwrap starts with these descriptors: 0 and 1
 * /dev/null, 2 as given, 3 the listening socket BOX/agent.sock, 4 BOX/execs, 5 and 6 the status pipe (5 for the
 * agent, 6 for --info-fd), 7 the filter, 8 the user namespace, if any; with an empty environment, in its own session. No
 * other descriptor passes.
 */
#define _GNU_SOURCE
#include "box.h"
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FD_AGENT_SOCKET = 3, FD_EXECS, FD_READY, FD_INFO, FD_SECCOMP, FD_USER_NAMESPACE };

/* The kernel takes one page of mount options. */
enum { OPTIONS_SIZE = 4096 };

struct list {
	char **items;
	int count;
};

struct run {
	struct identity identity;
	char *layers, *box, *spare, *mount, *seccomp;
	struct list lowers, mount_points, directories, cgroups, sets;
	bool wait, second_user;
	char **command;
};

/* Where an option's value goes: one of these is set. */
struct option {
	const char *name;
	char **value;
	struct list *list;
	bool *flag;
};

static void append(struct list *list, int most, char *item)
{
	if (!list->items)
		list->items = allocate(most * sizeof *list->items);
	list->items[list->count++] = item;
}

/* True when argv[*at] was one of the options, which end with an empty one. */
static bool parse_option(const struct option *option, int argc, char **argv, int *at)
{
	while (option->name && strcmp(argv[*at], option->name))
		option++;
	if (!option->name)
		return false;
	if (option->flag)
		*option->flag = true;
	else if (option->list)
		append(option->list, argc, option_value(argc, argv, at));
	else
		*option->value = option_value(argc, argv, at);
	return true;
}

/* `privileged`: also takes the options that need the rights the program starts with. */
static void parse(struct run *run, int argc, char **argv, bool privileged)
{
	const struct option groups[] = { { "--cgroup", .list = &run->cgroups }, { "--set", .list = &run->sets }, { 0 } };
	const struct option options[] = {
		{ "--layers", .value = &run->layers },
		{ "--box", .value = &run->box },
		{ "--spare", .value = &run->spare },
		{ "--mount", .value = &run->mount },
		{ "--seccomp", .value = &run->seccomp },
		{ "--lower", .list = &run->lowers },
		{ "--mount-point", .list = &run->mount_points },
		{ "--directory", .list = &run->directories },
		{ "--wait", .flag = &run->wait },
		{ "--second-user", .flag = &run->second_user },
		{ 0 },
	};

	for (int at = 0; at < argc; at++) {
		if (!strcmp(argv[at], "--")) {
			run->command = argv + at + 1;
			return;
		}
		if (privileged && (identity_option(&run->identity, argc, argv, &at) || parse_option(groups, argc, argv, &at)))
			continue;
		if (!parse_option(options, argc, argv, &at))
			usage("unknown option %s", argv[at]);
	}
}

/* Reads standard input to its end. */
static void parse_input(struct run *run)
{
	enum { MOST = 1 << 20 };
	char *text = allocate(MOST + 1), **argv;
	size_t length = 0;
	ssize_t got;
	int argc;

	while ((got = read(STDIN_FILENO, text + length, MOST - length)) > 0)
		length += got;
	if (got < 0 || length == MOST)
		fail("read arguments");
	if (length == 0) {
		if (run->spare)
			remove_box(run->spare);
		exit(0);
	}
	argv = split_arguments(text, length, &argc);
	parse(run, argc, argv, false);
}

static void require_complete(const struct run *run)
{
	if (!run->layers || !run->box || !run->mount || !run->seccomp || !run->lowers.count || !run->command || !run->command[0])
		usage("run needs --layers, --lower, --box, --mount, --seccomp and a command after --");
}

static void enter_cgroups(const struct run *run)
{
	char path[4096];

	for (int i = 0; i < run->cgroups.count; i++)
		if (mkdir(run->cgroups.items[i], 0755) && errno != EEXIST)
			fail("make control group %s", run->cgroups.items[i]);
	for (int i = 0; i < run->sets.count; i++) {
		char *value = strrchr(run->sets.items[i], '=');

		if (!value)
			usage("--set needs FILE=VALUE");
		*value = '\0';
		write_file(run->sets.items[i], value + 1);
	}
	for (int i = 0; i < run->cgroups.count; i++) {
		snprintf(path, sizeof path, "%s/cgroup.procs", run->cgroups.items[i]);
		write_file(path, "0");
	}
}

static void mount_overlay(const struct run *run)
{
	char options[OPTIONS_SIZE];
	size_t length = snprintf(options, sizeof options, "userxattr,upperdir=%s/upper,workdir=%s/work,lowerdir=", run->box, run->box);

	for (int i = 0; i < run->lowers.count && length < sizeof options; i++)
		length += snprintf(options + length, sizeof options - length, "%s%s", i ? ":" : "", run->lowers.items[i]);
	if (length >= sizeof options)
		usage("%d layers are too many for one overlay; flatten them", run->lowers.count);
	if (mount("overlay", run->mount, "overlay", MS_NOSUID | MS_NODEV, options))
		fail("mount the overlay of %d layers", run->lowers.count);
}

static int open_beneath(int root, const char *path, unsigned long long resolve)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = resolve };

	return syscall(SYS_openat2, root, path, &how, sizeof how);
}

/*
 * mkdir -p inside the overlay. Its content is untrusted, and bwrap still sees the host while it mounts: a link would
 * lead it out of the overlay.
 */
static void ensure_directory(int root, const char *absolute, unsigned long long resolve)
{
	char path[4096];
	int parent = dup(root);

	if (snprintf(path, sizeof path, "%s", absolute + strspn(absolute, "/")) >= (int)sizeof path)
		usage("%s is too long", absolute);
	for (char *name = path, *slash = path; slash && *name; name = slash + 1) {
		int next;

		slash = strchr(name, '/');
		if (slash)
			*slash = '\0';
		next = open_beneath(root, path, resolve);
		if (next < 0 && errno == ENOENT && !mkdirat(parent, name, 0755))
			next = open_beneath(root, path, resolve);
		if (next < 0)
			fail("make %s in the sandbox", absolute);
		close(parent);
		parent = next;
		if (!slash)
			break;
		*slash = '/';
	}
	close(parent);
}

static void make_directories(const struct run *run)
{
	int root = open_directory(run->mount);

	for (int i = 0; i < run->mount_points.count; i++)
		ensure_directory(root, run->mount_points.items[i], RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	for (int i = 0; i < run->directories.count; i++)
		ensure_directory(root, run->directories.items[i], RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	close(root);
}

static void limit_to(int resource, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		fail("get limit %d", resource);
	if (limit.rlim_max > most)
		limit.rlim_max = most;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	if (setrlimit(resource, &limit))
		fail("set limit %d", resource);
}

/*
 * The kernel counts inotify instances and watches by uid across namespaces, and all sandboxes share one uid: each
 * gets a part, so that one cannot exhaust them.
 */
static void share_watches(void)
{
	static const char *const names[][2] = {
		{ "/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances" },
		{ "/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches" },
	};
	enum { PARTS = 4 };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[32] = "";
		int fd = open(names[i][0], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (read(fd, text, sizeof text - 1) <= 0)
			fail("read %s", names[i][0]);
		close(fd);
		snprintf(text, sizeof text, "%lu", strtoul(text, NULL, 10) / PARTS + 1);
		write_file(names[i][1], text);
	}
}

static void set_process_limits(void)
{
	/* Not 0: with 0, a core_pattern that pipes to a program of the host still runs it. */
	struct rlimit core = { 1, 1 }, files;

	if (setrlimit(RLIMIT_CORE, &core))
		fail("set the core limit");
	if (getrlimit(RLIMIT_NOFILE, &files))
		fail("get the limit of open files");
	files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
	if (setrlimit(RLIMIT_NOFILE, &files))
		fail("set the limit of open files");
	limit_to(RLIMIT_MEMLOCK, 1 << 20);
	limit_to(RLIMIT_MSGQUEUE, 64 << 10);
	limit_to(RLIMIT_SIGPENDING, 4096);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("set no_new_privs");
}

/*
 * Moves the descriptors to their fixed numbers, through high numbers that collide with none of them. `user_namespace`
 * may be -1.
 */
static void arrange_descriptors(int agent_socket, int execs, int filter, int user_namespace)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct { int from, to; } moves[] = {
		{ agent_socket, FD_AGENT_SOCKET }, { execs, FD_EXECS },   { STDOUT_FILENO, FD_READY }, { STDOUT_FILENO, FD_INFO },
		{ filter, FD_SECCOMP },		   { null, STDIN_FILENO }, { null, STDOUT_FILENO },    { user_namespace, FD_USER_NAMESPACE },
	};
	enum { COUNT = sizeof moves / sizeof *moves, HIGH = 64 };
	int count = user_namespace < 0 ? COUNT - 1 : COUNT, high[COUNT];

	for (int i = 0; i < count; i++)
		if ((high[i] = fcntl(moves[i].from, F_DUPFD_CLOEXEC, HIGH)) < 0)
			fail("move descriptor %d", moves[i].from);
	for (int i = 0; i < count; i++)
		if (dup2(high[i], moves[i].to) < 0)
			fail("move descriptor %d", moves[i].to);
	if (syscall(SYS_close_range, user_namespace < 0 ? FD_USER_NAMESPACE : FD_USER_NAMESPACE + 1, ~0U, 0))
		fail("close descriptors");
}

/* Uses the rights the program starts with, then gives them up. */
static void drop_privileges(const struct run *run)
{
	enter_cgroups(run);
	/* When the host runs out of memory, sandboxes go before the keeper. Set as root, they cannot lower it again. */
	write_file("/proc/self/oom_score_adj", "500");
	setsid();
	enter_user_namespace(&run->identity, CLONE_NEWNS);
	share_watches();
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		fail("make mounts private");
}

int run_main(int argc, char **argv)
{
	struct run run = { 0 };
	char *no_environment[] = { NULL };
	struct box box = { 0 };
	int execs, filter;

	parse(&run, argc, argv, true);
	if (!run.wait)
		require_complete(&run);
	drop_privileges(&run);
	umask(077);
	if (run.spare)
		box = open_box(run.spare);
	if (run.wait) {
		dprintf(STDOUT_FILENO, "waiting\n");
		parse_input(&run);
		require_complete(&run);
	}
	if (chdir(run.layers))
		fail("enter %s", run.layers);
	box = run.spare ? take_spare(run.spare, box, run.box) : open_box(run.box);
	execs = openat(box.directory, "execs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	filter = open(run.seccomp, O_RDONLY | O_CLOEXEC);
	if (execs < 0 || filter < 0)
		fail("open %s", execs < 0 ? "execs" : run.seccomp);
	mount_overlay(&run);
	umask(022);
	make_directories(&run);
	set_process_limits();
	arrange_descriptors(box.agent_socket, execs, filter, run.second_user ? make_inner_user_namespace() : -1);
	execve(run.command[0], run.command, no_environment);
	fail("start %s", run.command[0]);
}
