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
void become(const struct identity *identity);

/*
 * Makes the process root of a new user namespace that maps only its own uid: it gets root's rights on that uid's files.
 * Refused as root. `flags` are further CLONE_NEW* namespaces.
 */
void enter_user_namespace(int flags);

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
