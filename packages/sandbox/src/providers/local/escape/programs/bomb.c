/* Multiplies as far as it gets: by processes, or by threads. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static void *multiply(void *nothing) {
    pthread_t thread;
    for (;;)
        if (pthread_create(&thread, NULL, multiply, nothing) != 0) usleep(1000);
    return nothing;
}

int main(int count, char **arguments) {
    if (write(1, "ready\n", 6) != 6) return 99;
    if (count > 1 && !strcmp(arguments[1], "threads")) multiply(NULL);
    setsid();
    for (;;)
        if (fork() == 0) setsid();
}
