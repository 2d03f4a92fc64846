/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMANDS_H
#define COMMANDS_H
/* The tables of commands.def, and what is made from them: help, suggestions, completion. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "view.h"

enum option_id {
#define OPTION(name, letter, argument, field, text) OPTION_##name,
#include "commands.def"
	OPTION_COUNT,
};

/* What every command takes. */
#define OPTIONS_COMMON                                                                             \
	(1u << OPTION_socket | 1u << OPTION_hca | 1u << OPTION_json | 1u << OPTION_help |          \
	 1u << OPTION_version)

/* What an option stores in its field of struct request. */
enum option_kind {
	KIND_NONE,
	KIND_FLAG,    /* bool: true */
	KIND_TEXT,    /* const char *: the argument */
	KIND_COUNT,   /* unsigned: a number above 0 */
	KIND_BYTES,   /* unsigned long long: a number above 0, maybe with K, M or G */
	KIND_SECONDS, /* double; without an argument 1 */
};

struct option_info {
	const char *name;
	char letter;	      /* 0: none */
	const char *argument; /* NULL: takes none */
	enum option_kind kind;
	size_t field;	  /* offset in struct request; KIND_NONE: unused */
	const char *text; /* "": says itself */
};
extern const struct option_info option_infos[OPTION_COUNT];

enum daemon_need { DAEMON_NEEDED, DAEMON_WELCOME, DAEMON_UNUSED };

struct command {
	const char *name, *operands;
	uint32_t options; /* bits of enum option_id, the common ones included */
	enum daemon_need daemon;
	const char *text;
	int (*view)(struct connection *c, const struct request *r);
};

extern const struct command commands[];
extern const unsigned command_count;

/* Words accepted in place of a command that are not in the table. */
enum { OTHER_WORDS = 2 };
extern const char *const other_words[OTHER_WORDS];

/* The command of that name; NULL: none. */
const struct command *command_find(const char *name);

/* Prints the help: of that command, or of all if NULL. */
void help_print(FILE *out, const struct command *command);

/* Prints "unknown command 'stats', did you mean 'status'?" to stderr, or the same for an option
 * (with its dashes). Returns EXIT_CODE_USAGE. */
int refuse_command(const char *name);
int refuse_option(const char *name);

/* Prints "unknown setting 'los', did you mean 'loss'?" with the nearest of these names. Returns
 * EXIT_CODE_USAGE. */
int refuse_setting(const char *name, const char *const *names, unsigned count);

/* EXIT_CODE_OK if that is a stage, or a module that its stage polls; else prints why not, and the
 * nearest name. */
int refuse_module(const char *name);

/* The same for a name that is neither an HCA nor a channel, with the nearest channel. */
int refuse_channel(const char *name);

/* `softhca complete WORD...`: prints what the last word may become, a line each. Asks a daemon for
 * the names of its HCAs if there is one. Exit code. */
int complete(int count, char **words);

#endif
