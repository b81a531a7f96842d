/* Takes and touches memory up to the given number of MiB; says what it got when it gets no more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int count, char **arguments) {
    long most = count > 1 ? atol(arguments[1]) : 0, got = 0;
    for (; got < most; got++) {
        void *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) break;
        memset(memory, 1, 1 << 20);
    }
    printf("%ld\n", got);
    return got < most ? 42 : 0;
}
