/* The agent of a sandbox, mostly its pid 1. ../PROTOCOL.md is the contract; this header is the map of its parts. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
    LISTEN_FD = 3,
    LOGS_FD = 4,
    READY_FD = 5,
    /* In a handler: its connection, and, for an exec, the socket over which pid 1 hands it control connections. */
    CONNECTION_FD = 6,
    ROUTE_FD = 7,
};

enum {
    MAX_REQUEST = 2 << 20,
    MAX_FRAME = 256 << 10,
    FRAME_HEADER = 5,
    EXIT_PAYLOAD = 4 + 4 + 1 + 8 + 8 + 8,
    FAILURE_ROOM = 512,
    ID_SIZE = 64,
    MAX_HANDLERS = 4096,
    HANDLER_RESERVE = 32,
    FILE_RESERVE = 1024,
};

struct options {
    uint64_t processes, file_bytes, data_bytes;
    uint64_t overdue_ms; /* a handler whose command outlives its timeout by this is killed */
    /* Started as root: commands, file operations and ports run as this user. Handlers of execs stay root. */
    bool drops;
    uid_t uid;
    gid_t gid;
    const char *egress;
    const char *const *forwards;
    int forward_count;
    struct rlimit open_files; /* for commands; pid 1 and handlers have more */
};
extern struct options options;

/* shared.c: what handlers tell pid 1, in memory that survives them. */
struct slot {
    _Atomic pid_t pid;
    atomic_bool named;      /* id is set: the exec can be routed to, and has a log */
    atomic_bool started;    /* execve succeeded or failed, and the host was told */
    atomic_bool finished;   /* pid 1 need not end the log */
    _Atomic int64_t idle_since_ms; /* 0: counts as use */
    _Atomic int64_t start_ms;
    _Atomic int64_t end_by_ms; /* on the awake clock; 0: no timeout, or the command has ended */
    _Atomic uint64_t log_bytes; /* length of the log up to its last whole batch of frames */
    _Atomic uint64_t output_bytes[2];
    char id[ID_SIZE];
};
struct shared {
    /* Odd while pid 1 forks: a child may exist that no slot names yet. */
    atomic_uint fork_count;
    /* How far awake_ms is behind now_ms. When negative, the clock is stopped at the opposite of this. */
    _Atomic int64_t awake_clock;
    _Atomic pid_t forwarder;
    atomic_uint slots_used; /* slots from here on were never used */
    struct slot slots[MAX_HANDLERS];
};
extern struct shared *shared;
void shared_open(void);
int64_t now_ms(void);
/* A clock that stops while the sandbox sleeps. Only pid 1 stops and continues it. */
int64_t awake_ms(void);
void awake_clock_stop(void);
void awake_clock_go_on(void);
bool awake_clock_stands(void);

/* rights.c: whose rights a process has, and with whom it dies. */
extern pid_t agent_pid;
/* Gives up root for good when the options name a user. Exits when it cannot. */
void drop_rights(void);
/* Gives the user what a command gets as its standard streams: it may open them again by their path. */
void give_to_user(int fd);
/* SIGKILL at the parent's death. Exits when the parent is gone already. */
void die_with(pid_t parent);

/* wire.c: requests and frames. */
struct request {
    unsigned char op;
    const char *fields;
    size_t length;
};
/* Buffers a connection. After the request, `data` holds only frames. */
struct reader {
    int fd;
    unsigned char *data;
    size_t capacity, start, end;
};
struct frame {
    unsigned char type;
    const unsigned char *payload;
    size_t length;
};
void reader_for_request(struct reader *reader, int fd);
bool read_request(struct reader *reader, struct request *request);
const char *field(const struct request *request, char key);
/* The next field with the key, after `previous` (NULL: the first). */
const char *next_field(const struct request *request, char key, const char *previous);
uint64_t number_field(const struct request *request, char key, uint64_t otherwise);
/* 1: a frame; 0: part of it is missing; -1: malformed. */
int take_frame(struct reader *reader, struct frame *frame);
/* Reads into the free room; the result of read(2). */
ssize_t fill(struct reader *reader);
/* Blocks. False at the end of the connection or on a malformed frame. */
bool next_frame(struct reader *reader, struct frame *frame);

void put_u16(unsigned char *at, uint16_t value);
void put_u32(unsigned char *at, uint32_t value);
void put_u64(unsigned char *at, uint64_t value);
uint16_t get_u16(const unsigned char *at);
uint32_t get_u32(const unsigned char *at);
void put_header(unsigned char *at, unsigned char type, size_t length);
/* A whole frame: the name of the errno, NUL, the message. Returns its length. */
size_t failure_frame(unsigned char *frame, size_t room, int error, const char *message);
bool write_all(int fd, const void *data, size_t length);
bool send_frame(int fd, unsigned char type, const void *payload, size_t length);
void send_failure(int fd, int error, const char *message);
/* For pid 1: never blocks, ignores errors. */
void reply_failure(int fd, int error, const char *message);

/* exec.c, command.c, log.c: one exec. */
_Noreturn void handle_exec(struct reader *reader, const struct request *request, struct slot *slot);
struct command {
    char **argv, **env;
    const char *cwd;
    bool stdin_open, tty;
    uint16_t columns, rows;
    /* The handler's ends; -1: none. A terminal is both `output[0]` and `input`. */
    int input, output[2];
    pid_t pid;
};
bool command_parse(struct command *command, const struct request *request);
/* 0, or an errno; `*what` names what failed. */
int command_start(struct command *command, const char **what);
void command_resize(const struct command *command, uint16_t columns, uint16_t rows);

enum end_reason { EXITED, SIGNALED, TIMED_OUT, KILLED, LOST };
struct log {
    int fd;
    uint64_t limit;
    bool cut; /* the limit cut it: only the exit follows */
    struct slot *slot;
};
int log_create(struct log *log, const struct request *request, struct slot *slot);
void log_discard(struct log *log);
/* Whole frames, with their headers. */
void log_output(struct log *log, const unsigned char *frames, size_t length);
void log_exit(struct log *log, const unsigned char *frame);
/* A whole frame of FRAME_HEADER + EXIT_PAYLOAD bytes. */
void exit_frame(unsigned char *at, int code, int signal, enum end_reason reason, uint64_t duration_ms, const struct slot *slot);
/* For pid 1: ends the log of a killed handler. */
void log_lost(const struct slot *slot);

/* tree.c: processes by descent. */
/* Signals every living descendant of the caller once. */
void signal_tree(int signal);
/* Stops all descendants, round after round, until no new one appears. */
void stop_tree(void);
/* As stop_tree, and then kills them; bounded. True when none is left alive. */
bool kill_tree(void);
/* For a child of the agent: ends the processes below the agent that are no handler or forwarder, nor below one. */
_Noreturn void sweep_strays(void);

/* relay.c, port.c, forward.c: bytes between sockets. */
_Noreturn void handle_port(const struct request *request);
void forwarder_listen(void);
_Noreturn void run_forwarder(void);

/* Answers a file operation and exits. */
_Noreturn void handle_file_operation(struct reader *reader, const struct request *request);
