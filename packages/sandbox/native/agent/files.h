/*
 * The file operations. Each runs in its own handler, inside the sandbox's mounts, with the rights of the sandbox's
 * user and no descriptor but its connection: a path may lead anywhere in the sandbox, but not out of it.
 */
#pragma once
#include "agent.h"
#include <sys/stat.h>

enum { MAX_DEPTH = 512, PATH_ROOM = 64 << 10, TEMPORARY_NAME = 32 };

/* files.c: answers; each ends the handler. */
_Noreturn void fail(int error, const char *what);
/* While the host sends content: reads what is still on its way, so that the host reads the answer. */
_Noreturn void fail_sending(struct reader *reader, int error, const char *what);
_Noreturn void succeed(const void *payload, size_t length);
/* Exits when the host has disconnected. */
void check_host(void);
const char *path_field(const struct request *request, char key);
mode_t mode_field(const struct request *request, mode_t otherwise);

/* Buffered frames to the host. */
void out_bytes(unsigned char type, const void *payload, size_t length);
void out_entry(const struct stat *info, const char *path, const char *target);
void out_flush(void);

/* paths.c */
int open_path(const char *path, int flags);
/* Opens below a directory, through no link. */
int open_beneath(int directory, const char *path, int flags);
/* Makes missing directories; an O_PATH descriptor of the last, or -1. */
int make_directories(const char *path, mode_t mode);
/* Makes what is missing of a path below a directory, through no link; its O_PATH descriptor, or -1. */
int make_beneath(int directory, const char *path);
/* The directory that holds the path's last name, made when `create`; or -1. */
int open_parent(const char *path, bool create, const char **name);
void temporary_name(char name[TEMPORARY_NAME]);
bool is_temporary(const char *name);
/* A link's target, in a static buffer; "" for anything else. */
const char *link_target(int directory, const char *name);

/* walk.c */
struct visit {
    int directory;
    const char *name, *path;
    struct stat info;
};
typedef void (*visitor)(const struct visit *visit, void *context);
/* Visits every entry below, parents first. Paths start with `base`. `depth` 0: no limit. */
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
