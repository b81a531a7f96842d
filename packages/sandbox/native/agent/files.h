/*
 * The file operations. Each runs in a handler of its own that holds no descriptor but its connection, with the rights of
 * the sandbox's user and inside its mounts: a path can be made to lead anywhere in the sandbox, and nowhere else.
 */
#pragma once
#include "agent.h"
#include <sys/stat.h>

enum { MAX_DEPTH = 512, PATH_ROOM = 64 << 10, TEMPORARY_NAME = 32 };

/* files.c: answers; each ends the handler. */
_Noreturn void fail(int error, const char *what);
/* For an operation that is being sent content: takes what is still on its way, so that the host reads the answer. */
_Noreturn void fail_sending(struct reader *reader, int error, const char *what);
_Noreturn void succeed(const void *payload, size_t length);
/* Ends the handler when the host has gone. */
void check_host(void);
const char *path_field(const struct request *request, char key);
mode_t mode_field(const struct request *request, mode_t otherwise);

/* Frames to the host, gathered. */
void out_bytes(unsigned char type, const void *payload, size_t length);
void out_entry(const struct stat *info, const char *path, const char *target);
void out_flush(void);

/* paths.c */
int open_path(const char *path, int flags);
/* Below a directory, through no link. */
int open_beneath(int directory, const char *path, int flags);
/* Makes what is missing of a directory; its O_PATH descriptor, or -1. */
int make_directories(const char *path, mode_t mode);
/* The directory that holds the path's last name, made when `create`; -1 and errno. */
int open_parent(const char *path, bool create, const char **name);
void temporary_name(char name[TEMPORARY_NAME]);
bool is_temporary(const char *name);
/* A link's target in memory of this function; "" when it is none. */
const char *link_target(int directory, const char *name);

/* walk.c */
struct visit {
    int directory;
    const char *name, *path;
    struct stat info;
};
typedef void (*visitor)(const struct visit *visit, void *context);
/* Every entry below, a directory before what is in it; paths start with `base`. `depth` 0: no limit. */
void walk(int directory, const char *base, unsigned depth, visitor visitor, void *context);
_Noreturn void handle_list(const struct request *request);
_Noreturn void handle_download(const struct request *request);

/* content.c, upload.c, move.c, search.c, watch.c */
_Noreturn void handle_read(const struct request *request);
_Noreturn void handle_write(struct reader *reader, const struct request *request);
_Noreturn void handle_upload(struct reader *reader, const struct request *request);
_Noreturn void handle_move(const struct request *request);
_Noreturn void handle_remove(const struct request *request);
_Noreturn void handle_search(const struct request *request);
_Noreturn void handle_watch(const struct request *request);
/* 0 or an errno. */
int remove_tree(int directory, const char *name, unsigned depth);
