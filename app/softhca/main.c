/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca, the command-line tool: queries a running softhcad over its control socket. Loads no DPDK
 * library. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "run.h"
#include "target.h"
#include "watch.h"

/* Behind the letters of short options. */
enum { LONG_OPTIONS = 256, SECONDS_MAX = 3600, WORDS_MAX = 128 };

/* The command line, as read. */
struct line {
	struct request r;
	uint32_t options; /* bits of those given */
	const char *words[WORDS_MAX];
	unsigned word_count;
	int program; /* where a program to be run begins: index of "run"; 0: none */
};

static int refuse(const char *what, const char *name)
{
	fprintf(stderr,
		"softhca: %s%s\nusage: softhca [OPTION]... COMMAND [OPTION]...; "
		"'softhca help' lists them\n",
		what, name);
	return EXIT_CODE_USAGE;
}

static int read_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end || !(*seconds > 0 && *seconds <= SECONDS_MAX))
		return refuse("not a number of seconds: ", text);
	return EXIT_CODE_OK;
}

static int read_count(const char *text, unsigned *count)
{
	char *end;

	*count = strtoul(text, &end, 10);
	if (*count == 0 || *end || text[0] == '-')
		return refuse("not a number above 0: ", text);
	return EXIT_CODE_OK;
}

/* "4096", "100K", "20M", "3G" */
static int read_size(const char *text, unsigned long long *bytes)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	*bytes = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	for (int i = 0; unit && i <= unit - units && *bytes <= ULLONG_MAX >> 10; i++)
		*bytes <<= 10;
	if (*bytes == 0 || (*end && (!unit || end[1])) || text[0] == '-')
		return refuse("not a number of bytes: ", text);
	return EXIT_CODE_OK;
}

/* Stores the option in its field. Exit code. */
static int apply_option(enum option_id id, const char *argument, struct request *r)
{
	void *field = (char *)r + option_infos[id].field;

	switch (option_infos[id].kind) {
	case KIND_NONE:
		break;
	case KIND_FLAG:
		*(bool *)field = true;
		break;
	case KIND_TEXT:
		*(const char **)field = argument;
		break;
	case KIND_COUNT:
		return read_count(argument, field);
	case KIND_BYTES:
		return read_size(argument, field);
	case KIND_SECONDS:
		return read_seconds(argument ? argument : "1", field);
	}
	return EXIT_CODE_OK;
}

/* The option that getopt_long() found; for a letter, preferably one that the command takes. */
static enum option_id option_of(int got, const struct command *command)
{
	if (got >= LONG_OPTIONS)
		return got - LONG_OPTIONS;
	for (int i = 0; command && i < OPTION_COUNT; i++) {
		if (option_infos[i].letter == got && command->options & 1u << i)
			return i;
	}
	for (int i = 0; i < OPTION_COUNT; i++) {
		if (option_infos[i].letter == got)
			return i;
	}
	return OPTION_COUNT;
}

/* For getopt_long(): the tables of options, each word in its place, no messages. */
static void describe_options(const struct command *command, char letters[3 + 3 * OPTION_COUNT],
			     struct option names[OPTION_COUNT + 1])
{
	strcpy(letters, "-:");
	for (int i = 0; i < OPTION_COUNT; i++) {
		const struct option_info *o = &option_infos[i];
		bool takes = o->argument, may = takes && o->argument[0] == '[';
		bool has = o->letter && option_of(o->letter, command) == (enum option_id)i;
		const char letter[4] = {has ? o->letter : 0, has && takes ? ':' : 0, may ? ':' : 0};

		names[i] = (struct option){o->name,
					   may	   ? optional_argument
					   : takes ? required_argument
						   : no_argument,
					   NULL, LONG_OPTIONS + i};
		strcat(letters, letter);
	}
	names[OPTION_COUNT] = (struct option){0};
}

static int add_word(struct line *l, const char *word)
{
	if (l->word_count == 1 && strcmp(l->words[0], "show") == 0)
		l->word_count = 0; /* as in "show runtime" */
	if (l->word_count == WORDS_MAX)
		return refuse("unexpected argument ", word);
	l->words[l->word_count++] = word;
	return EXIT_CODE_OK;
}

/* The command, before the letters in front of it are known for certain. NULL: none. */
static const struct command *find_command(int argc, char **argv)
{
	char letters[3 + 3 * OPTION_COUNT];
	struct option names[OPTION_COUNT + 1];
	int got;

	describe_options(NULL, letters, names);
	while ((got = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		if (got == 1 && strcmp(optarg, "show") != 0)
			break;
	}
	optind = 0; /* getopt begins anew */
	return got == 1 ? command_find(optarg) : NULL;
}

/* Reads the command line, up to the program if one is to be run. Exit code. */
static int main_read_line(int argc, char **argv, struct line *l)
{
	const struct command *command = find_command(argc, argv);
	char letters[3 + 3 * OPTION_COUNT];
	struct option names[OPTION_COUNT + 1];
	int code = EXIT_CODE_OK, got;

	describe_options(command, letters, names);
	while (!code && (got = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		if (got == '?')
			return refuse_option(argv[optind - 1]);
		if (got == ':')
			return refuse("missing the argument of ", argv[optind - 1]);
		if (got != 1) {
			enum option_id id = option_of(got, command);

			l->options |= 1u << id;
			code = apply_option(id, optarg, &l->r);
		} else if (l->word_count == 0 && strcmp(optarg, "run") == 0) {
			l->program = optind - 1;
			return EXIT_CODE_OK;
		} else {
			code = add_word(l, optarg);
		}
	}
	for (; !code && optind < argc; optind++) /* behind "--" */
		code = add_word(l, argv[optind]);
	return code;
}

/* Of "[NAME [VALUE]]": 2; of "NAME VALUE...": as many as there may be. */
static unsigned operand_count(const struct command *command)
{
	unsigned n = command->operands[0] ? 1 : 0;

	if (strstr(command->operands, "..."))
		return WORDS_MAX;
	for (const char *at = command->operands; *at; at++)
		n += *at == ' ';
	return n;
}

/* Refuses operands and options that the command does not take. Exit code. */
static int check_line(const struct command *command, const struct line *l)
{
	unsigned words = 1 + operand_count(command);

	if (l->word_count > words)
		return refuse("unexpected argument ", l->words[words]);
	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		if (!(l->options & ~command->options & 1u << i))
			continue;
		fprintf(stderr,
			"softhca: '%s' takes no --%s; 'softhca help %s' lists its options\n",
			command->name, option_infos[i].name, command->name);
		return EXIT_CODE_USAGE;
	}
	return EXIT_CODE_OK;
}

/* Does --hca name one? Exit code. */
static int check_hca(struct connection *c, const char *hca)
{
	json_t *status = hca ? connection_ask(c, "status", NULL) : NULL;
	bool there = !hca || json_object_get(json_object_get(status, "ports"), hca);

	if (status && !there)
		print_no_hca(hca, -1);
	json_decref(status);
	return there ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}

static int run_command(const struct command *command, const struct request *r)
{
	static struct connection connection;
	int ret, code;

	if (command->daemon == DAEMON_UNUSED)
		return command->view(NULL, r);
	ret = target_connect(r, &connection);
	if (ret && command->daemon == DAEMON_WELCOME && !r->json)
		return command->view(NULL, r);
	if (ret)
		return target_missing(r, ret);
	code = check_hca(&connection, r->hca);
	if (!code)
		code = r->watch_s > 0 ? watch_run(command, &connection, r)
				      : command->view(&connection, r);
	connection_close(&connection);
	return code;
}

static int execute(struct line *l)
{
	const struct command *command = NULL;
	int code;

	if (l->options & 1u << OPTION_version) {
		printf("softhca %s\n", SOFTHCA_VERSION);
		return EXIT_CODE_OK;
	}
	if (l->word_count) {
		command = command_find(l->words[0]);
		if (!command && strcmp(l->words[0], "show") == 0)
			return refuse("show what?", "");
		if (!command)
			return refuse_command(l->words[0]);
	}
	if (l->options & 1u << OPTION_help) {
		help_print(stdout, command);
		return EXIT_CODE_OK;
	}
	if (!command)
		return refuse("missing command", "");
	code = check_line(command, l);
	if (code)
		return code;
	l->r.object = l->word_count > 1 ? l->words[1] : NULL;
	l->r.value = l->word_count > 2 ? l->words[2] : NULL;
	l->r.values = &l->words[2];
	l->r.value_count = l->word_count > 2 ? l->word_count - 2 : 0;
	return run_command(command, &l->r);
}

int main(int argc, char **argv)
{
	struct line line = {.r = {.interval_s = 1, .buffer_bytes = 256 << 20}};
	int code;

	if (argc > 1 && strcmp(argv[1], "complete") == 0)
		return complete(argc - 2, argv + 2);
	code = main_read_line(argc, argv, &line);
	if (code)
		return code;
	if (!line.program)
		return execute(&line);
	if (line.r.socket)
		setenv("SOFTHCA_SOCKET", line.r.socket, 1);
	optind = 0; /* getopt begins anew */
	return run_program(argc - line.program, argv + line.program);
}
