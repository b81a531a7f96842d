/* Swaps a directory and a link to another place, as fast as it can. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count != 3) return 99;
    const char *directory = arguments[1], *target = arguments[2];
    char link[512];
    snprintf(link, sizeof link, "%s.link", directory);
    mkdir(directory, 0755);
    if (symlink(target, link) != 0) return 98;
    if (write(1, "ready\n", 6) != 6) return 97;
    for (;;) renameat2(AT_FDCWD, directory, AT_FDCWD, link, RENAME_EXCHANGE);
}
