#include "relay.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(const struct sockaddr *address, socklen_t length) {
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, address, length) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* A server on "localhost" may listen on either. */
static int connect_local(uint16_t port) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = connect_to((struct sockaddr *)&four, sizeof four);
    int error = errno;
    if (fd < 0) fd = connect_to((struct sockaddr *)&six, sizeof six);
    if (fd < 0) errno = error;
    return fd;
}

void handle_port(const struct request *request) {
    uint64_t port = number_field(request, 'n', 0);
    int fd = -1;
    if (port == 0 || port > 65535) errno = EINVAL;
    else fd = connect_local((uint16_t)port);
    if (fd < 0) {
        send_failure(CONNECTION_FD, errno, "connect");
        _exit(0);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    send_frame(CONNECTION_FD, 'K', NULL, 0);
    static struct relay relay;
    relay_open(&relay, CONNECTION_FD, fd);
    for (;;) {
        struct pollfd fds[2];
        relay_poll(&relay, fds);
        if (poll(fds, 2, -1) > 0 && !relay_work(&relay, fds)) _exit(0);
    }
}
