/*
 * The way out: relays TCP listeners inside to the egress proxy's unix socket. One child of pid 1 serves all
 * connections, so they use no processes reserved for handlers. Pid 1 holds the listeners: they exist before the first
 * command, and no program can take their ports while the child is gone.
 */
#include "relay.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PROXY_PORT = 3128, MAX_LISTENERS = 65, MAX_RELAYS = 256, GREETING = 512, HEAD = 8192 };

struct listener {
    int fd;
    const char *target; /* HOST:PORT to CONNECT to; NULL: the program inside talks to the proxy itself */
};
struct tunnel {
    struct relay relay;
    bool greeting; /* waits for the proxy's answer to CONNECT */
    bool unread;   /* waits for the program's request to the proxy */
};
static struct listener listeners[MAX_LISTENERS];
static int listener_count;
static struct tunnel *tunnels[MAX_RELAYS];
static int tunnel_count;

static void listen_on(uint16_t port, const char *target) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 128) != 0) {
        close(fd);
        return;
    }
    listeners[listener_count++] = (struct listener){fd, target};
}

static int connect_egress(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(options.egress) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, options.egress);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static void open_tunnel(int inside, const char *target) {
    int outside = connect_egress();
    struct tunnel *tunnel = outside < 0 ? NULL : malloc(sizeof *tunnel);
    if (!tunnel) {
        close(inside);
        if (outside >= 0) close(outside);
        return;
    }
    relay_open(&tunnel->relay, inside, outside);
    tunnel->greeting = target != NULL;
    tunnel->unread = target == NULL;
    if (target) {
        char text[GREETING];
        int length = snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);
        (void)!send(outside, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    tunnels[tunnel_count++] = tunnel;
}

static void accept_from(const struct listener *listener) {
    while (tunnel_count < MAX_RELAYS) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return;
        open_tunnel(fd, listener->target);
    }
}

/* Takes the proxy's answer off the stream. False when it refused or closed. */
static bool greet(struct tunnel *tunnel) {
    struct flow *flow = &tunnel->relay.flow[1];
    ssize_t got = recv(tunnel->relay.fd[1], flow->data + flow->end, sizeof flow->data - flow->end, 0);
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    flow->end += (size_t)got;
    const unsigned char *end = memmem(flow->data, flow->end, "\r\n\r\n", 4);
    if (!end) return flow->end < GREETING * 8;
    if (flow->end < 12 || memcmp(flow->data + 8, " 200", 4) != 0) return false;
    flow->start = (size_t)(end - flow->data) + 4;
    tunnel->greeting = false;
    return true;
}

/* The port of a text "[::1]:PORT" that ends before one of `stops`; 0 for any other text. */
static uint16_t own_port(const char *text, const char *stops, const char **end) {
    static const char own[] = "[::1]:";
    if (strncmp(text, own, sizeof own - 1) != 0) return 0;
    const char *digits = text + sizeof own - 1;
    size_t count = strspn(digits, "0123456789");
    *end = digits + count;
    if (count == 0 || count > 5 || !**end || !strchr(stops, **end)) return 0;
    unsigned long port = strtoul(digits, NULL, 10);
    return port > 65535 ? 0 : (uint16_t)port;
}

/* The timeout is for a server that does not accept; any other takes or refuses a connection at once. */
static int connect_own(uint16_t port) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct timeval patience = {.tv_usec = 100000};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/*
 * Some programs look for ::1 in NO_PROXY only with brackets, which others do not accept there, so they ask the proxy
 * for the sandbox's own ::1. This connects them to it, when somebody listens. A request that arrives in parts, or
 * that names it in another form, goes to the proxy.
 */
static bool turn_back(struct tunnel *tunnel) {
    static const char scheme[] = " http://", established[] = "HTTP/1.1 200 OK\r\n\r\n";
    char head[HEAD + 1];
    ssize_t got = recv(tunnel->relay.fd[0], head, HEAD, MSG_PEEK);
    head[got > 0 ? got : 0] = 0;
    size_t method = strspn(head, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    bool connects = strncmp(head, "CONNECT ", 8) == 0;
    if (!connects && strncmp(head + method, scheme, sizeof scheme - 1) != 0) return false;
    const char *end = NULL;
    uint16_t port = connects ? own_port(head + 8, " ", &end) : own_port(head + method + sizeof scheme - 1, "/", &end);
    if (connects && port) end = strstr(end, "\r\n\r\n");
    int fd = port && end ? connect_own(port) : -1;
    if (fd < 0) return false;
    (void)!recv(tunnel->relay.fd[0], head, (size_t)(end - head) + (connects ? 4 : 0), 0);
    close(tunnel->relay.fd[1]);
    relay_open(&tunnel->relay, tunnel->relay.fd[0], fd);
    struct flow *flow = &tunnel->relay.flow[connects ? 1 : 0];
    flow->end = connects ? sizeof established - 1 : method + 1;
    memcpy(flow->data, connects ? established : head, flow->end);
    return true;
}

static bool work(struct tunnel *tunnel, struct pollfd fds[2]) {
    if (tunnel->unread && fds[0].revents) {
        tunnel->unread = false;
        if (turn_back(tunnel)) return true;
    }
    if (!tunnel->greeting) return relay_work(&tunnel->relay, fds);
    if (!fds[1].revents || greet(tunnel)) return true;
    relay_close(&tunnel->relay);
    return false;
}

void forwarder_listen(void) {
    listen_on(PROXY_PORT, NULL);
    for (int i = 0; i < options.forward_count; i++) {
        const char *equals = strchr(options.forwards[i], '=');
        if (equals) listen_on((uint16_t)atoi(options.forwards[i]), equals + 1);
    }
}

/* Closes pid 1's other descriptors. Listeners were opened in order, so their numbers rise. */
static void keep_listeners(void) {
    unsigned from = LISTEN_FD;
    for (int i = 0; i < listener_count; i++) {
        close_range(from, (unsigned)listeners[i].fd - 1, 0);
        from = (unsigned)listeners[i].fd + 1;
    }
    close_range(from, ~0U, 0);
}

void run_forwarder(void) {
    static struct pollfd fds[MAX_LISTENERS + 2 * MAX_RELAYS];
    keep_listeners();
    for (;;) {
        for (int i = 0; i < listener_count; i++)
            fds[i] = (struct pollfd){.fd = tunnel_count < MAX_RELAYS ? listeners[i].fd : -1, .events = POLLIN};
        for (int i = 0; i < tunnel_count; i++) {
            struct pollfd *pair = &fds[listener_count + 2 * i];
            relay_poll(&tunnels[i]->relay, pair);
            if (tunnels[i]->greeting) {
                pair[0].fd = -1;
                pair[1] = (struct pollfd){.fd = tunnels[i]->relay.fd[1], .events = POLLIN};
            }
        }
        if (poll(fds, (nfds_t)(listener_count + 2 * tunnel_count), -1) <= 0) continue;
        int kept = 0, polled = tunnel_count;
        for (int i = 0; i < polled; i++) {
            if (work(tunnels[i], &fds[listener_count + 2 * i])) tunnels[kept++] = tunnels[i];
            else free(tunnels[i]);
        }
        tunnel_count = kept;
        for (int i = 0; i < listener_count; i++)
            if (fds[i].revents) accept_from(&listeners[i]);
    }
}
