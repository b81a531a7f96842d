/* Finds lines. Skips files with a NUL in their first block as binary. */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <string.h>
#include <unistd.h>

enum { LINE_ROOM = 256 << 10, TEXT_MOST = 4096 };

struct search {
    const char *text;
    size_t text_length;
    bool is_regex;
    regex_t regex;
    uint64_t left;
    dev_t proc;
};

static bool matches(struct search *search, const char *line, size_t length) {
    if (!search->is_regex) return memmem(line, length, search->text, search->text_length) != NULL;
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)length};
    return regexec(&search->regex, line, 1, &range, REG_STARTEND) == 0;
}

static void report(struct search *search, const char *path, uint32_t line_number, const char *line, size_t length) {
    static unsigned char payload[PATH_ROOM + TEXT_MOST + 8];
    size_t path_length = strlen(path) + 1, text_length = length < TEXT_MOST ? length : TEXT_MOST;
    put_u32(payload, line_number);
    memcpy(payload + 4, path, path_length);
    memcpy(payload + 4 + path_length, line, text_length);
    out_bytes('m', payload, 4 + path_length + text_length);
    if (--search->left == 0) succeed(NULL, 0);
}

static void search_file(struct search *search, int fd, const char *path) {
    static char data[LINE_ROOM];
    size_t used = 0;
    uint32_t line_number = 1;
    bool first = true, in_long_line = false;
    for (;;) {
        ssize_t got = read(fd, data + used, sizeof data - used);
        if (got < 0) return;
        if (first && memchr(data, 0, (size_t)got)) return;
        first = false;
        used += (size_t)got;
        char *line = data, *end = data + used, *newline;
        while ((newline = memchr(line, '\n', (size_t)(end - line))) || (line < end && (got == 0 || (line == data && used == sizeof data)))) {
            size_t length = (size_t)((newline ? newline : end) - line);
            /* Searches only the first part of a line longer than the buffer. */
            if (!in_long_line && matches(search, line, length)) report(search, path, line_number, line, length);
            in_long_line = !newline;
            if (newline) line_number++;
            line = newline ? newline + 1 : end;
        }
        used = (size_t)(end - line);
        memmove(data, line, used);
        if (got == 0) return;
    }
}

static void search_entry(const struct visit *visit, void *context) {
    struct search *search = context;
    if (!S_ISREG(visit->info.st_mode) || visit->info.st_dev == search->proc) return;
    check_host();
    int fd = openat(visit->directory, visit->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) search_file(search, fd, visit->path);
    if (fd >= 0) close(fd);
}

void handle_search(const struct request *request) {
    static struct search search;
    const char *path = path_field(request, 'p');
    search.text = field(request, 'q');
    search.is_regex = field(request, 'x') != NULL;
    search.left = number_field(request, 'n', UINT64_MAX);
    if (!search.text || !search.text[0] || search.left == 0) fail(EINVAL, "expected a text to search");
    search.text_length = strlen(search.text);
    int error = search.is_regex ? regcomp(&search.regex, search.text, REG_EXTENDED) : 0;
    if (error) {
        char message[128];
        regerror(error, &search.regex, message, sizeof message);
        fail(error == REG_ESPACE ? E2BIG : EINVAL, message);
    }
    struct stat info;
    /* /proc is endless and holds no files. */
    if (stat("/proc/self", &info) == 0) search.proc = info.st_dev;
    int fd = open_path(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &info) != 0) fail(errno, "open");
    if (S_ISREG(info.st_mode)) search_file(&search, fd, path);
    else if (S_ISDIR(info.st_mode)) walk(fd, path, 0, search_entry, &search);
    else fail(ENOTSUP, "not a file or directory");
    succeed(NULL, 0);
}
