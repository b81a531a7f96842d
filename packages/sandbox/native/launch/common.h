#ifndef SLIPWAY_LAUNCH_COMMON_H
#define SLIPWAY_LAUNCH_COMMON_H

#include <err.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Exit codes: 0 done, 1 a step failed, 2 wrong arguments. Both failures print one line on stderr, fail() with the errno. */
#define fail(...) err(1, __VA_ARGS__)
#define usage(...) errx(2, __VA_ARGS__)

/* The value that follows the option at argv[*at]; moves *at onto it. */
char *option_value(int argc, char **argv, int *at);
unsigned long long option_number(int argc, char **argv, int *at);

/*
 * Whose rights the program works with. Started as root it becomes this uid and gid for good, without supplementary
 * groups; neither may be 0. Started as an ordinary user it stays that user and ignores them.
 */
struct identity {
	uid_t uid;
	gid_t gid;
};
/* Takes --uid and --gid; true when argv[*at] was one of them. */
bool identity_option(struct identity *identity, int argc, char **argv, int *at);

/*
 * Becomes the identity, and root of a new user namespace: the process gets root's rights on the files of the uids that
 * are mapped, and on no others. Started as an ordinary user, that is its own uid as 0. Started as root, also the uid
 * and gid after the identity's, as SECOND_ID. `flags` are further CLONE_NEW* namespaces.
 */
enum { SECOND_ID = 1000 };
void enter_user_namespace(const struct identity *identity, int flags);

/*
 * A descriptor of a new user namespace below the process's own, with the same two uids and gids. Nothing in it can make
 * another one.
 */
int make_inner_user_namespace(void);

/* Splits a text of arguments that each end with a NUL. Ends the list with NULL. */
char **split_arguments(char *text, size_t length, int *argc);

void *allocate(size_t size);
int open_directory(const char *path);
void write_file(const char *path, const char *text);

/* `run` or `layer`, by argv[0]. */
int command_main(int argc, char **argv);
int run_main(int argc, char **argv);
int layer_main(int argc, char **argv);
int serve_main(int argc, char **argv);

#endif
