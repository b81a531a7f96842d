#include "agent.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LENGTH_PREFIX = 4, REQUEST_SPACE = LENGTH_PREFIX + MAX_REQUEST + 2 * (FRAME_HEADER + MAX_FRAME) };

/* Pages that no request touches cost nothing. */
static unsigned char request_space[REQUEST_SPACE];

void reader_for_request(struct reader *reader, int fd) {
    *reader = (struct reader){.fd = fd, .data = request_space, .capacity = sizeof request_space};
}

static bool fill_until(struct reader *reader, size_t wanted) {
    while (reader->end - reader->start < wanted) {
        ssize_t got = fill(reader);
        if (got <= 0) return false;
    }
    return true;
}

bool read_request(struct reader *reader, struct request *request) {
    if (!fill_until(reader, LENGTH_PREFIX)) return false;
    size_t length = get_u32(reader->data);
    if (length == 0 || length > MAX_REQUEST || !fill_until(reader, LENGTH_PREFIX + length)) return false;
    const unsigned char *body = reader->data + LENGTH_PREFIX;
    if (length > 1 && body[length - 1] != 0) return false;
    *request = (struct request){.op = body[0], .fields = (const char *)body + 1, .length = length - 1};
    /* The request stays in place; the rest of the buffer is for frames. */
    size_t used = LENGTH_PREFIX + length;
    reader->data += used;
    reader->capacity -= used;
    reader->end -= used;
    reader->start = 0;
    return true;
}

const char *next_field(const struct request *request, char key, const char *previous) {
    const char *at = previous ? previous + strlen(previous) + 1 : request->fields;
    const char *end = request->fields + request->length;
    while (at < end) {
        if (*at == key) return at + 1;
        at += strlen(at) + 1;
    }
    return NULL;
}

const char *field(const struct request *request, char key) { return next_field(request, key, NULL); }

uint64_t number_field(const struct request *request, char key, uint64_t otherwise) {
    const char *text = field(request, key);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

ssize_t fill(struct reader *reader) {
    if (reader->start == reader->end) reader->start = reader->end = 0;
    else if (reader->capacity - reader->end < FRAME_HEADER + MAX_FRAME && reader->start > 0) {
        memmove(reader->data, reader->data + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    ssize_t got;
    do got = read(reader->fd, reader->data + reader->end, reader->capacity - reader->end);
    while (got < 0 && errno == EINTR);
    if (got > 0) reader->end += (size_t)got;
    return got;
}

int take_frame(struct reader *reader, struct frame *frame) {
    size_t available = reader->end - reader->start;
    if (available < FRAME_HEADER) return 0;
    const unsigned char *at = reader->data + reader->start;
    size_t length = get_u32(at + 1);
    if (length > MAX_FRAME) return -1;
    if (available < FRAME_HEADER + length) return 0;
    *frame = (struct frame){.type = at[0], .payload = at + FRAME_HEADER, .length = length};
    reader->start += FRAME_HEADER + length;
    return 1;
}

bool next_frame(struct reader *reader, struct frame *frame) {
    for (;;) {
        int taken = take_frame(reader, frame);
        if (taken != 0) return taken > 0;
        if (fill(reader) <= 0) return false;
    }
}

void put_u16(unsigned char *at, uint16_t value) {
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
}

void put_u32(unsigned char *at, uint32_t value) {
    put_u16(at, (uint16_t)value);
    put_u16(at + 2, (uint16_t)(value >> 16));
}

void put_u64(unsigned char *at, uint64_t value) {
    put_u32(at, (uint32_t)value);
    put_u32(at + 4, (uint32_t)(value >> 32));
}

uint16_t get_u16(const unsigned char *at) { return (uint16_t)(at[0] | at[1] << 8); }

uint32_t get_u32(const unsigned char *at) { return get_u16(at) | (uint32_t)get_u16(at + 2) << 16; }

void put_header(unsigned char *at, unsigned char type, size_t length) {
    at[0] = type;
    put_u32(at + 1, (uint32_t)length);
}

size_t failure_frame(unsigned char *frame, size_t room, int error, const char *message) {
    const char *name = strerrorname_np(error);
    if (!name) name = "EIO";
    size_t name_length = strlen(name) + 1, message_length = strnlen(message, room - FRAME_HEADER - name_length);
    put_header(frame, 'F', name_length + message_length);
    memcpy(frame + FRAME_HEADER, name, name_length);
    memcpy(frame + FRAME_HEADER + name_length, message, message_length);
    return FRAME_HEADER + name_length + message_length;
}

bool write_all(int fd, const void *data, size_t length) {
    const unsigned char *at = data;
    while (length > 0) {
        ssize_t wrote = write(fd, at, length);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return false;
        at += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

bool send_frame(int fd, unsigned char type, const void *payload, size_t length) {
    unsigned char header[FRAME_HEADER];
    put_header(header, type, length);
    struct iovec parts[2] = {{header, sizeof header}, {(void *)payload, length}};
    ssize_t wrote;
    do wrote = writev(fd, parts, 2);
    while (wrote < 0 && errno == EINTR);
    if (wrote < 0) return false;
    size_t done = (size_t)wrote;
    if (done < sizeof header) {
        if (!write_all(fd, header + done, sizeof header - done)) return false;
        done = sizeof header;
    }
    done -= sizeof header;
    return write_all(fd, (const unsigned char *)payload + done, length - done);
}

void send_failure(int fd, int error, const char *message) {
    unsigned char frame[FAILURE_ROOM];
    write_all(fd, frame, failure_frame(frame, sizeof frame, error, message));
}

void reply_failure(int fd, int error, const char *message) {
    unsigned char frame[FAILURE_ROOM];
    (void)!send(fd, frame, failure_frame(frame, sizeof frame, error, message), MSG_DONTWAIT | MSG_NOSIGNAL);
}
