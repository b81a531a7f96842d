/* Maps a file with a long path very often: /proc shows each map with the path. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 18, NAME = 200, MAPS = 60000 };

int main(void) {
    char name[NAME + 1] = "";
    memset(name, 'd', NAME);
    for (int i = 0; i < DEPTH; i++)
        if ((mkdir(name, 0755), chdir(name)) != 0) return 99;
    int fd = open("file", O_RDWR | O_CREAT, 0644), count = 0;
    if (ftruncate(fd, 8192) != 0) return 98;
    /* Neighbours that differ are not merged into one map. */
    while (count < MAPS && mmap(NULL, 4096, count % 2 ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED) count++;
    printf("%d ready\n", count);
    fflush(stdout);
    for (;;) pause();
}
