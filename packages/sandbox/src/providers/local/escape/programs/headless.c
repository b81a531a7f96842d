/* Lives on in its second thread when the first has ended: /proc then shows it as a zombie. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *live(void *nothing) {
    usleep(100000);
    if (write(1, "ready\n", 6) != 6) return nothing;
    for (;;) pause();
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, live, NULL) != 0) return 99;
    pthread_exit(NULL);
}
