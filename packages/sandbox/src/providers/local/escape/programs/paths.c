/* Opens each path that is named on its command line for reading and for writing. */
#include "report.h"
#include <fcntl.h>
#include <unistd.h>

int main(int count, char **paths) {
    char name[512], byte;
    for (int i = 1; i < count; i++) {
        int fd = open(paths[i], O_RDONLY | O_NONBLOCK);
        snprintf(name, sizeof name, "read %s", paths[i]);
        report(name, fd < 0 ? -1 : read(fd, &byte, 1));
        if (fd >= 0) close(fd);
        fd = open(paths[i], O_WRONLY | O_NONBLOCK);
        snprintf(name, sizeof name, "write %s", paths[i]);
        report(name, fd);
        if (fd >= 0) close(fd);
    }
    return 0;
}
