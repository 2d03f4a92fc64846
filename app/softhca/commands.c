/* SPDX-License-Identifier: BSD-3-Clause */
/* See commands.h. */
#include <stdlib.h>
#include <string.h>
#include "columns.h"
#include "commands.h"

#define KIND_OF(value)                                                                             \
	_Generic(value,                                                                            \
		bool: KIND_FLAG,                                                                   \
		const char *: KIND_TEXT,                                                           \
		unsigned: KIND_COUNT,                                                              \
		unsigned long long: KIND_BYTES,                                                    \
		double: KIND_SECONDS)
#define FIELD(name) KIND_OF(((struct request *)NULL)->name), offsetof(struct request, name)
#define NO_FIELD    KIND_NONE, 0

const struct option_info option_infos[OPTION_COUNT] = {
#define OPTION(name, letter, argument, field, text) {#name, letter, argument, field, text},
#include "commands.def"
};

const struct command commands[] = {
#define TAKES(name) 1u << OPTION_##name
#define COMMAND(name, operands, options, daemon, text)                                             \
	{#name, operands, OPTIONS_COMMON | (options), DAEMON_##daemon, text, view_##name},
#include "commands.def"
};
const unsigned command_count = COUNT_OF(commands);

const char *const other_words[OTHER_WORDS] = {"run", "show"};

const struct command *command_find(const char *name)
{
	for (unsigned i = 0; i < COUNT_OF(commands); i++) {
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* "--interval SECONDS", "--watch[=SECONDS]" */
static int long_text(const struct option_info *o, char *text, size_t bytes)
{
	if (!o->argument)
		return snprintf(text, bytes, "--%s", o->name);
	return snprintf(text, bytes, o->argument[0] == '[' ? "--%s[=%s" : "--%s %s", o->name,
			o->argument + (o->argument[0] == '['));
}

/* "-i, --interval SECONDS" */
static void option_text(const struct option_info *o, char text[CELL_BYTES])
{
	int used = o->letter ? snprintf(text, CELL_BYTES, "-%c, ", o->letter) : 0;

	long_text(o, text + used, CELL_BYTES - used);
}

static void print_options(FILE *out, uint32_t options)
{
	char text[CELL_BYTES];

	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		option_text(&option_infos[i], text);
		if (!(options & 1u << i))
			continue;
		if (option_infos[i].text[0])
			fprintf(out, "  %-24s %s\n", text, option_infos[i].text);
		else
			fprintf(out, "  %s\n", text);
	}
}

/* "status [--probe]" */
static void synopsis(const struct command *c, char text[CELL_BYTES])
{
	size_t used = snprintf(text, CELL_BYTES, "%s%s%s", c->name, c->operands[0] ? " " : "",
			       c->operands);

	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		if (!(c->options & ~OPTIONS_COMMON & 1u << i))
			continue;
		used += snprintf(text + used, CELL_BYTES - used, " [");
		used += long_text(&option_infos[i], text + used, CELL_BYTES - used);
		used += snprintf(text + used, CELL_BYTES - used, "]");
	}
}

static void print_command_help(FILE *out, const struct command *c)
{
	char text[CELL_BYTES];

	synopsis(c, text);
	fprintf(out, "usage: softhca %s\n\n%s\n\n", text, c->text);
	print_options(out, c->options);
}

void help_print(FILE *out, const struct command *command)
{
	if (command) {
		print_command_help(out, command);
		return;
	}
	fputs("usage: softhca [OPTION]... [show] COMMAND [OPTION]...\n"
	      "       softhca run [-v] [--socket PATH] [--] PROGRAM [ARGUMENT]...\n\n",
	      out);
	for (unsigned i = 0; i < COUNT_OF(commands); i++) {
		char name[CELL_BYTES];

		snprintf(name, sizeof(name), "%s %s", commands[i].name, commands[i].operands);
		fprintf(out, "  %-24s %s\n", name, commands[i].text);
	}
	fputs("  run                      runs a libibverbs program on these devices (softhca run "
	      "--help)\n\n",
	      out);
	print_options(out, UINT32_MAX);
	fputs("\nexit status: 0; 1 no daemon, or it refused; 2 usage\n", out);
}

int view_help(struct connection *c, const struct request *r)
{
	const struct command *command = r->object ? command_find(r->object) : NULL;

	if (r->object && !command)
		return refuse_command(r->object);
	help_print(stdout, command);
	return EXIT_CODE_OK;
}
