/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OPTIONS_H
#define OPTIONS_H
/* The command line of softhcad, and the configuration that it asks for. */
#include "config/config.h"

enum { OPTIONS_SETS_MAX = 256 };

/* As given; the texts are those of argv. */
struct options {
	const char *file, *socket; /* NULL: not given */
	const char *set[OPTIONS_SETS_MAX];
	unsigned sets;
	bool check, verbose, no_sandbox;
};

/* Exit codes of softhcad. */
enum { EXIT_CODE_OK = 0, EXIT_CODE_FAILURE = 1, EXIT_CODE_USAGE = 2 };

/* What to do after reading the options. */
enum options_outcome {
	OPTIONS_RUN,	/* they and both configurations are complete */
	OPTIONS_DONE,	/* everything requested has been printed: exit 0 */
	OPTIONS_FAILED, /* the machine lacks something, which has been printed: exit 1 */
	OPTIONS_USAGE,	/* refused, the reason has been printed: exit 2 */
};

/* Reads the command line and the configuration that it names, as written into *written and checked
 * into *config. Prints to stdout and stderr. */
enum options_outcome options_read(int argc, char **argv, struct options *o, struct config *written,
				  struct config *config);

/* The configuration that it names: the file as it is now, with the other options; in place of
 * addresses that are missing, those of the interface. Not checked. 0; -errno with *error. */
int options_config(const struct options *o, struct config *written, struct config_error *error);
/* Where errors without a line come from. */
const char *options_origin(const struct options *o);

#endif
