// Holds files that no directory shows, in the way and as many times 4 MiB as told; with a third argument as an untraceable process.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SIZE = 4 << 20 };
static const char *way;
static int count;

static int hidden_file(void) {
    if (!strcmp(way, "nameless"))
        return open("/workspace", O_TMPFILE | O_RDWR, 0600);
    int file = open("/workspace/hidden", O_CREAT | O_EXCL | O_RDWR, 0600);
    unlink("/workspace/hidden");
    return file;
}

static void *hold(void *unused) {
    if (!strcmp(way, "thread"))
        unshare(CLONE_FILES);
    char *content = malloc(SIZE);
    memset(content, 'x', SIZE);
    for (int i = 0; i < count; i++) {
        int file = hidden_file();
        if (file < 0 || write(file, content, SIZE) != SIZE)
            exit(1);
        if (strcmp(way, "mapped") && strcmp(way, "headless"))
            continue;
        if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED || close(file))
            exit(1);
    }
    puts("ready");
    fflush(stdout);
    pause();
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    way = argv[1];
    count = atoi(argv[2]);
    if (argc > 3)
        prctl(PR_SET_DUMPABLE, 0);
    pthread_t thread;
    if (strcmp(way, "thread") && strcmp(way, "headless"))
        hold(NULL);
    pthread_create(&thread, NULL, hold, NULL);
    // What is left is a process whose first thread has ended.
    pthread_exit(NULL);
}
