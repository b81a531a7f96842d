#ifndef SLIPWAY_LAUNCH_COMMON_H
#define SLIPWAY_LAUNCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Exit codes: 0 done, 1 a step failed, 2 wrong arguments. Either failure is one line on stderr. */

/* Ends the program with "slipway-launch: <step>: <errno's words>". */
_Noreturn void fail(const char *step, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void usage(const char *message, ...) __attribute__((format(printf, 1, 2)));

/* The value that follows the option at argv[*at]; moves *at onto it. */
char *option_value(int argc, char **argv, int *at);
unsigned long long option_number(int argc, char **argv, int *at);

/*
 * Who the program works as. Started as root it becomes this uid and gid for good, without supplementary groups, and
 * refuses to go on as root; started as an ordinary user it is that user already, and uid and gid are not used.
 */
struct identity {
	uid_t uid;
	gid_t gid;
};
/* Takes --uid and --gid; true when argv[*at] was one of them. */
bool identity_option(struct identity *identity, int argc, char **argv, int *at);
void become(const struct identity *identity);

/*
 * Makes the process root of a new user namespace that holds nothing but its own uid: it may then do to that uid's files
 * what root may. Refused as root. `flags` are further CLONE_NEW* namespaces.
 */
void enter_user_namespace(int flags);

/* The arguments in a text, each of which ends with a NUL; so does the text. With a NULL after the last. */
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
