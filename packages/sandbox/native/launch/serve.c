/*
 * slipway-launch serve SOCKET
 *
 * Starts launchers for a program that is slow to fork. Requests come on standard input: a length of four bytes, the
 * lowest first, then so many bytes of arguments, each with a NUL. The first argument is a name, the others are what
 * slipway-launch would be started with. For each request a process, in a session of its own, connects to SOCKET, where
 * the one that started the service listens, says "NAME PID\n" and does as it was told, with the connection as standard
 * input, output and error. When it has succeeded it says "done\n" last; `run` becomes bwrap and says no more.
 *
 * The end of standard input ends the service. What it has started goes on.
 */
#define _GNU_SOURCE
#include "common.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_REQUEST = 2 << 20 };

/* False when the input ends before: ignores a request that is cut short. */
static bool read_whole(void *to, size_t length)
{
	for (size_t have = 0; have < length;) {
		ssize_t got = read(STDIN_FILENO, (char *)to + have, length - have);

		if (got < 0)
			fail("read a request");
		if (got == 0)
			return false;
		have += got;
	}
	return true;
}

/* NULL at the end of the input. */
static char *read_request(size_t *length)
{
	uint8_t head[4];
	char *text;

	if (!read_whole(head, sizeof head))
		return NULL;
	*length = head[0] | head[1] << 8 | head[2] << 16 | (size_t)head[3] << 24;
	if (*length == 0 || *length > MOST_REQUEST)
		usage("a request has 1 to %d bytes, not %zu", MOST_REQUEST, *length);
	text = allocate(*length + 1);
	return read_whole(text, *length) ? text : NULL;
}

/* Only to the process that started the service: after its death another one may listen at the path. */
static void talk_to(const char *path, pid_t listener)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t peer_size = sizeof peer;
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connection < 0)
		fail("make a socket");
	if (snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >= (int)sizeof address.sun_path)
		usage("%s is too long", path);
	if (connect(connection, (struct sockaddr *)&address, sizeof address))
		fail("connect to %s", path);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) || peer.pid != listener)
		usage("%s belongs to another process", path);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(connection, fd) < 0)
			fail("move the connection");
	close(connection);
}

static _Noreturn void answer(const char *path, pid_t listener, char *text, size_t length)
{
	int argc;
	char **argv = split_arguments(text, length, &argc);

	signal(SIGCHLD, SIG_DFL);
	if (setsid() < 0)
		fail("make a session");
	talk_to(path, listener);
	dprintf(STDOUT_FILENO, "%s %d\n", argv[0], getpid());
	if (command_main(argc - 1, argv + 1) == 0)
		dprintf(STDOUT_FILENO, "done\n");
	exit(0);
}

int serve_main(int argc, char **argv)
{
	pid_t listener = getppid();
	char *text;
	size_t length;

	if (argc != 1)
		usage("serve needs a socket");
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0))
		fail("close descriptors");
	/* The kernel then reaps the children. */
	signal(SIGCHLD, SIG_IGN);
	while ((text = read_request(&length))) {
		pid_t child = fork();

		if (child < 0)
			fail("fork");
		if (child == 0)
			answer(argv[0], listener, text, length);
		free(text);
	}
	return 0;
}
