/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OPTIONS_H
#define OPTIONS_H
/* The command line of softhcad. */
#include "config/config.h"

/* Exit codes of softhcad. */
enum { EXIT_CODE_OK = 0, EXIT_CODE_FAILURE = 1, EXIT_CODE_USAGE = 2 };

/* What to do after reading the options. */
enum options_outcome {
	OPTIONS_RUN,   /* *config is complete and checked */
	OPTIONS_DONE,  /* everything requested has been printed: exit 0 */
	OPTIONS_USAGE, /* refused, the reason has been printed: exit 2 */
};

/* Reads the command line and the configuration that it names into *config. *no_sandbox: as the command
 * line says. Prints to stdout and stderr. */
enum options_outcome options_read(int argc, char **argv, struct config *config, bool *no_sandbox);

#endif
