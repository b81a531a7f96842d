#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *option_value(int argc, char **argv, int *at)
{
	if (*at + 1 >= argc)
		usage("%s needs a value", argv[*at]);
	return argv[++*at];
}

unsigned long long option_number(int argc, char **argv, int *at)
{
	const char *name = argv[*at], *value = option_value(argc, argv, at);
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno)
		usage("%s needs a number, not '%s'", name, value);
	return number;
}

bool identity_option(struct identity *identity, int argc, char **argv, int *at)
{
	if (!strcmp(argv[*at], "--uid"))
		identity->uid = option_number(argc, argv, at);
	else if (!strcmp(argv[*at], "--gid"))
		identity->gid = option_number(argc, argv, at);
	else
		return false;
	return true;
}

char **split_arguments(char *text, size_t length, int *argc)
{
	char **argv = allocate((length + 2) * sizeof *argv);

	*argc = 0;
	for (char *at = text; at < text + length; at += strlen(at) + 1)
		argv[(*argc)++] = at;
	return argv;
}

void *allocate(size_t size)
{
	void *memory = calloc(1, size ? size : 1);

	if (!memory)
		fail("allocate memory");
	return memory;
}

int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		fail("open %s", path);
	return fd;
}

void write_file(const char *path, const char *text)
{
	size_t length = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fail("open %s", path);
	if (write(fd, text, length) != (ssize_t)length)
		fail("write %s to %s", text, path);
	close(fd);
}
