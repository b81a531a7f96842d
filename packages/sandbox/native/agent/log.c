/* The log of an exec: its handler writes it, pid 1 ends it when the handler is killed, the host reads it. */
#include "agent.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool id_is_plain(const char *id) {
    size_t length = strlen(id);
    return length > 0 && length < ID_SIZE && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

/* Whole frames or nothing: cuts off what a full disk took in part. */
static bool append(struct log *log, const unsigned char *frames, size_t length) {
    uint64_t before = atomic_load_explicit(&log->slot->log_bytes, memory_order_relaxed);
    if (!write_all(log->fd, frames, length)) {
        (void)!ftruncate(log->fd, (off_t)before);
        return false;
    }
    atomic_store(&log->slot->log_bytes, before + length);
    return true;
}

static bool append_start(struct log *log, const struct request *request) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t length = 9;
    for (const char *arg = NULL; (arg = next_field(request, 'a', arg));) length += strlen(arg) + 1;
    unsigned char *frame = malloc(FRAME_HEADER + length);
    if (!frame) return false;
    put_header(frame, 'a', length);
    put_u64(frame + FRAME_HEADER, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
    frame[FRAME_HEADER + 8] = request->op == 'B';
    unsigned char *at = frame + FRAME_HEADER + 9;
    for (const char *arg = NULL; (arg = next_field(request, 'a', arg)); at += strlen(arg) + 1) memcpy(at, arg, strlen(arg) + 1);
    bool done = append(log, frame, FRAME_HEADER + length);
    free(frame);
    return done;
}

int log_create(struct log *log, const struct request *request, struct slot *slot) {
    const char *id = field(request, 'i');
    *log = (struct log){.fd = -1, .limit = number_field(request, 'l', 0), .slot = slot};
    if (!id || !id_is_plain(id)) return EINVAL;
    log->fd = openat(LOGS_FD, id, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (log->fd < 0) return errno;
    strcpy(slot->id, id);
    atomic_store(&slot->named, true);
    if (append_start(log, request)) return 0;
    log_discard(log);
    return ENOSPC;
}

void log_discard(struct log *log) {
    unlinkat(LOGS_FD, log->slot->id, 0);
    atomic_store(&log->slot->finished, true);
}

void log_output(struct log *log, const unsigned char *frames, size_t length) {
    if (log->cut) return;
    uint64_t used = atomic_load_explicit(&log->slot->log_bytes, memory_order_relaxed);
    if (used + length <= log->limit && append(log, frames, length)) return;
    log->cut = true;
    unsigned char mark[FRAME_HEADER];
    put_header(mark, 't', 0);
    append(log, mark, sizeof mark);
}

void log_exit(struct log *log, const unsigned char *frame) {
    append(log, frame, FRAME_HEADER + EXIT_PAYLOAD);
    atomic_store(&log->slot->finished, true);
}

void exit_frame(unsigned char *at, int code, int signal, enum end_reason reason, uint64_t duration_ms, const struct slot *slot) {
    put_header(at, 'x', EXIT_PAYLOAD);
    at += FRAME_HEADER;
    put_u32(at, (uint32_t)code);
    put_u32(at + 4, (uint32_t)signal);
    at[8] = (unsigned char)reason;
    put_u64(at + 9, duration_ms);
    put_u64(at + 17, atomic_load(&slot->output_bytes[0]));
    put_u64(at + 25, atomic_load(&slot->output_bytes[1]));
}

/* Where the whole frames end: after those that the handler counted, and those it wrote without counting them. */
static off_t end_of_frames(int fd, off_t vouched) {
    struct stat info;
    if (fstat(fd, &info) != 0) return vouched;
    off_t end = vouched;
    for (;;) {
        unsigned char header[FRAME_HEADER];
        if (pread(fd, header, sizeof header, end) != sizeof header) return end;
        off_t next = end + FRAME_HEADER + get_u32(header + 1);
        if (next > info.st_size) return end;
        end = next;
    }
}

void log_lost(const struct slot *slot) {
    int fd = openat(LOGS_FD, slot->id, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    off_t end = end_of_frames(fd, (off_t)atomic_load(&slot->log_bytes));
    unsigned char frame[FRAME_HEADER + EXIT_PAYLOAD];
    int64_t started = atomic_load(&slot->start_ms);
    exit_frame(frame, -1, 0, LOST, started ? (uint64_t)(awake_ms() - started) : 0, slot);
    if (ftruncate(fd, end) == 0) (void)!pwrite(fd, frame, sizeof frame, end);
    close(fd);
}
