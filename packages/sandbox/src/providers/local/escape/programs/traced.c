/* Makes its parent, the exec's handler, its tracer, and stops by the given signal; lives on. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count != 2 || ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) return 99;
    raise(atoi(arguments[1]));
    puts("still here");
    return 42;
}
