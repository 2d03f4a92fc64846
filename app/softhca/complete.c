/* SPDX-License-Identifier: BSD-3-Clause */
/* What a word of the command line may become, for shells; see commands.h. */
#include <string.h>
#include "commands.h"
#include "pipeline/topology.h"
#include "settings.h"
#include "target.h"

static void offer(const char *dashes, const char *word, const char *begun)
{
	size_t skip = strlen(dashes);

	if (strncmp(begun, dashes, strlen(begun) < skip ? strlen(begun) : skip) == 0 &&
	    (strlen(begun) <= skip || strncmp(word, begun + skip, strlen(begun) - skip) == 0))
		printf("%s%s\n", dashes, word);
}

static void offer_options(const struct command *c, const char *begun)
{
	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		if (!c || c->options & 1u << i)
			offer("--", option_infos[i].name, begun);
	}
}

static void offer_commands(const char *begun)
{
	for (unsigned i = 0; i < command_count; i++)
		offer("", commands[i].name, begun);
	for (unsigned i = 0; i < OTHER_WORDS; i++)
		offer("", other_words[i], begun);
}

/* Is the word that option, of a command that takes it (NULL: not known yet)? */
static bool is_option(const char *word, const struct command *command, unsigned i)
{
	const struct option_info *o = &option_infos[i];

	if (word[0] != '-' || (command && !(command->options & 1u << i)))
		return false;
	if (word[1] == '-')
		return strcmp(word + 2, o->name) == 0;
	return o->letter && word[1] == o->letter && !word[2];
}

/* The option whose argument comes after that word; NULL: none. */
static const struct option_info *awaits_argument(const char *word, const struct command *command)
{
	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		const struct option_info *o = &option_infos[i];

		if (is_option(word, command, i))
			return o->argument && o->argument[0] != '[' ? o : NULL;
	}
	return NULL;
}

/* The names of the HCAs, if a daemon answers. */
static void offer_hcas(int count, char **words, const char *begun)
{
	static struct connection c;
	struct request r = {.hca = NULL};
	json_t *status, *port;
	const char *hca;

	for (int i = 0; i + 1 < count; i++) {
		if (strcmp(words[i], "--socket") == 0)
			r.socket = words[i + 1];
	}
	if (target_connect(&r, &c))
		return;
	status = connection_ask(&c, "status", NULL);
	json_object_foreach(json_object_get(status, "ports"), hca, port)
	{
		offer("", hca, begun);
	}
	json_decref(status);
	connection_close(&c);
}

/* The names of the settings that can change, if a daemon answers. */
static void offer_settings(int count, char **words, const char *begun)
{
	static struct settings all;
	const char *socket = NULL;
	char name[2 * sizeof(all.setting[0].key)];

	for (int i = 0; i + 1 < count; i++) {
		if (strcmp(words[i], "--socket") == 0)
			socket = words[i + 1];
	}
	if (settings_open(socket, &all))
		return;
	for (unsigned i = 0; i < all.count; i++) {
		snprintf(name, sizeof(name), "%s.%s", all.setting[i].section, all.setting[i].key);
		if (all.setting[i].runtime)
			offer("", name, begun);
	}
	settings_close(&all);
}

static void offer_modules(const char *begun)
{
	for (unsigned i = 0; i < STAGE_COUNT; i++)
		offer("", stage_infos[i].name, begun);
	for (unsigned i = 0; i < MODULE_COUNT; i++)
		offer("", module_infos[i].name, begun);
}

static void offer_captured(int count, char **words, const char *begun)
{
	offer_hcas(count, words, begun);
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		offer("", channel_infos[i].name, begun);
}

int complete(int count, char **words)
{
	const char *begun = count ? words[count - 1] : "";
	const struct command *command = NULL;
	const struct option_info *awaiting;

	for (int i = 0; i + 1 < count && !command; i++) {
		if (i == 0 || !awaits_argument(words[i - 1], NULL))
			command = command_find(words[i]);
	}
	awaiting = count > 1 ? awaits_argument(words[count - 2], command) : NULL;
	if (awaiting) {
		if (strcmp(awaiting->name, "hca") == 0)
			offer_hcas(count, words, begun);
		return EXIT_CODE_OK;
	}
	if (begun[0] == '-')
		offer_options(command, begun);
	else if (!command || strcmp(command->name, "help") == 0)
		offer_commands(begun);
	else if (strcmp(command->operands, "HCA") == 0)
		offer_hcas(count, words, begun);
	else if (strcmp(command->name, "capture") == 0)
		offer_captured(count, words, begun);
	else if (strstr(command->operands, "MODULE"))
		offer_modules(begun);
	else if (strcmp(command->name, "set") == 0 && strcmp(words[count - 2], "set") == 0)
		offer_settings(count, words, begun);
	return EXIT_CODE_OK;
}
