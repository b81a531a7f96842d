#define _GNU_SOURCE
#include "box.h"
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void make_directory(int at, const char *name)
{
	if (mkdirat(at, name, 0700) && errno != EEXIST)
		fail("make %s", name);
}

static const char *const box_parts[] = { "upper", "work", "execs", "egress" };
enum { BOX_PARTS = sizeof box_parts / sizeof *box_parts };

/* A restart finds everything in place. */
static int make_box(const char *path)
{
	int box;

	make_directory(AT_FDCWD, path);
	box = open_directory(path);
	for (int i = 0; i < BOX_PARTS; i++)
		make_directory(box, box_parts[i]);
	/* The sandbox sees it as its root. The box itself stays closed. */
	if (fchmodat(box, "upper", 0755, 0))
		fail("open upper to all");
	return box;
}

void remove_box(const char *path)
{
	int box = open_directory(path);

	unlinkat(box, "agent.sock", 0);
	for (int i = 0; i < BOX_PARTS; i++)
		unlinkat(box, box_parts[i], AT_REMOVEDIR);
	close(box);
	rmdir(path);
}

/* Binds a name relative to the box, which always fits into sun_path. */
static int listen_in(int box)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "agent.sock" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), back = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || back < 0)
		fail("make the agent's socket");
	if (unlinkat(box, address.sun_path, 0) && errno != ENOENT)
		fail("remove the old agent.sock");
	if (fchdir(box) || bind(fd, (struct sockaddr *)&address, sizeof address) || chmod(address.sun_path, 0600) || listen(fd, 1024) || fchdir(back))
		fail("listen on agent.sock");
	close(back);
	return fd;
}

struct box open_box(const char *path)
{
	struct box box = { .directory = make_box(path) };

	box.agent_socket = listen_in(box.directory);
	return box;
}

struct box take_spare(const char *spare_path, struct box spare, const char *path)
{
	if (!renameat2(AT_FDCWD, spare_path, AT_FDCWD, path, RENAME_NOREPLACE))
		return spare;
	if (errno != EEXIST)
		fail("move the spare box to %s", path);
	close(spare.directory);
	close(spare.agent_socket);
	remove_box(spare_path);
	return open_box(path);
}
