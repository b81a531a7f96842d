/* Traces another exec's command without ever waiting for it: its end is then withheld from its parent. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count != 2) return 99;
    if (ptrace(PTRACE_SEIZE, atoi(arguments[1]), 0, 0) != 0) {
        perror("seize");
        return 98;
    }
    if (write(1, "ready\n", 6) != 6) return 97;
    for (;;) pause();
}
