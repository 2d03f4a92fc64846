/* SPDX-License-Identifier: BSD-3-Clause */
/* What a word of the command line may become, for shells; see commands.h. */
#include <string.h>
#include "columns.h"
#include "commands.h"
#include "pipeline/topology.h"
#include "settings.h"
#include "target.h"
#include "top.h"

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

/* others: also the words that are not in the table. */
static void offer_commands(const char *begun, bool others)
{
	for (unsigned i = 0; i < command_count; i++)
		offer("", commands[i].name, begun);
	for (unsigned i = 0; others && i < OTHER_WORDS; i++)
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

/* The command line up to the word that is completed. */
struct typed {
	int count;
	char **words;
	const char *begun; /* the last word */
};

/* The argument of that option, if it was given; else NULL. */
static const char *given(const struct typed *t, const char *option)
{
	for (int i = 0; i + 1 < t->count; i++) {
		if (strcmp(t->words[i], option) == 0)
			return t->words[i + 1];
	}
	return NULL;
}

/* False: no daemon answers. */
static bool reach(const struct typed *t, struct connection *c)
{
	const struct request r = {.socket = given(t, "--socket")};

	return target_connect(&r, c) == 0;
}

static void offer_hcas(const struct typed *t)
{
	static struct connection c;
	json_t *status, *port;
	const char *hca;

	if (!reach(t, &c))
		return;
	status = connection_ask(&c, "status", NULL);
	json_object_foreach(json_object_get(status, "ports"), hca, port)
	{
		offer("", hca, t->begun);
	}
	json_decref(status);
	connection_close(&c);
}

static void offer_qps_of(struct connection *c, const char *hca, const char *begun)
{
	json_t *answer = qps_ask(c, hca), *qp;
	const char *qpn;

	json_object_foreach(json_object_get(answer, "qps"), qpn, qp)
	{
		offer("", qpn, begun);
	}
	json_decref(answer);
}

static void offer_qps(const struct typed *t)
{
	const char *hca = given(t, "--hca");
	static struct connection c;
	json_t *status, *port;

	if (!reach(t, &c))
		return;
	status = connection_ask(&c, "status", NULL);
	if (hca)
		offer_qps_of(&c, hca, t->begun);
	else
		json_object_foreach(json_object_get(status, "ports"), hca, port)
		{
			offer_qps_of(&c, hca, t->begun);
		}
	json_decref(status);
	connection_close(&c);
}

static void offer_pids(const struct typed *t)
{
	static struct connection c;
	json_t *clients, *one;
	const char *id;
	char pid[16];

	if (!reach(t, &c))
		return;
	clients = clients_ask(&c);
	json_object_foreach(json_object_get(clients, "clients"), id, one)
	{
		snprintf(pid, sizeof(pid), "%llu", number_of(one, "pid"));
		offer("", pid, t->begun);
	}
	json_decref(clients);
	connection_close(&c);
}

/* The names of the settings that can change. */
static void offer_settings(const struct typed *t)
{
	static struct settings all;
	char name[2 * sizeof(all.setting[0].key)];

	if (settings_open(given(t, "--socket"), &all))
		return;
	for (unsigned i = 0; i < all.count; i++) {
		snprintf(name, sizeof(name), "%s.%s", all.setting[i].section, all.setting[i].key);
		if (all.setting[i].runtime)
			offer("", name, t->begun);
	}
	settings_close(&all);
}

/* The words that the setting accepts, as its unit lists them. */
static void offer_values(const char *setting, const char *begun)
{
	static const struct named_text units[] = {
#define SETTING(scope, key, kind, field, unit, def, min, max, change, doc) {key, unit},
#include "settings.def"
	};
	const char *dot = strrchr(setting, '.'), *key = dot ? dot + 1 : setting;
	char words[CELL_BYTES], *rest = NULL;

	for (unsigned i = 0; i < COUNT_OF(units); i++) {
		if (strcmp(units[i].name, key) != 0 || !strchr(units[i].text, '|'))
			continue;
		snprintf(words, sizeof(words), "%s", units[i].text);
		for (char *w = strtok_r(words, "|", &rest); w; w = strtok_r(NULL, "|", &rest))
			offer("", w, begun);
	}
}

/* A word behind "HCA.", if that has been typed, or by itself. */
static void offer_part(const struct typed *t, const char *part)
{
	const char *dot = strrchr(t->begun, '.');
	char hca[HCA_NAME_BYTES + 1] = "";

	if (dot)
		snprintf(hca, sizeof(hca), "%.*s", (int)(dot - t->begun) + 1, t->begun);
	offer(hca, part, t->begun);
}

/* The modules that can be paused: not those that other modules call. */
static void offer_modules(const struct typed *t)
{
	for (unsigned i = 0; i < STAGE_COUNT; i++)
		offer_part(t, stage_infos[i].name);
	for (unsigned i = 0; i < MODULE_COUNT; i++) {
		if (module_caller(i) == MODULE_COUNT)
			offer_part(t, module_infos[i].name);
	}
}

static void offer_captured(const struct typed *t)
{
	if (!strchr(t->begun, '.'))
		offer_hcas(t);
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		offer_part(t, channel_infos[i].name);
}

static void offer_words(const char *const *words, unsigned count, const char *begun)
{
	for (unsigned i = 0; i < count; i++)
		offer("", words[i], begun);
}

static void offer_argument(const struct option_info *option, const struct typed *t)
{
	static const char *const states[] = {QP_STATE_NAMES};

	switch ((enum option_id)(option - option_infos)) {
	case OPTION_hca:
		offer_hcas(t);
		break;
	case OPTION_qp:
		offer_qps(t);
		break;
	case OPTION_pid:
		offer_pids(t);
		break;
	case OPTION_state:
		offer_words(states, COUNT_OF(states), t->begun);
		break;
	case OPTION_sort:
		offer_words(top_sorts, SORT_COUNT, t->begun);
		break;
	default: /* a number or a file */
		break;
	}
}

static void offer_operand(const struct command *command, const struct typed *t)
{
	const char *before = t->words[t->count - 2];
	bool first = strcmp(before, command->name) == 0 || before[0] == '-';

	if (strcmp(command->name, "help") == 0)
		offer_commands(t->begun, false);
	else if (strcmp(command->operands, "HCA") == 0)
		offer_hcas(t);
	else if (strcmp(command->name, "capture") == 0)
		offer_captured(t);
	else if (strstr(command->operands, "MODULE"))
		offer_modules(t);
	else if (strstr(command->operands, "QPN"))
		offer_qps(t);
	else if (strcmp(command->name, "set") == 0 && first)
		offer_settings(t);
	else if (strcmp(command->name, "set") == 0)
		offer_values(before, t->begun);
}

int complete(int count, char **words)
{
	static const char *const run_options[] = {"--verbose", "--socket", "--libdir", "--help"};
	const struct typed t = {count, words, count ? words[count - 1] : ""};
	const struct command *command = NULL;
	const struct option_info *awaiting;
	bool run = false, shown = false;

	for (int i = 0; i + 1 < count && !command && !run; i++) {
		if (i && awaits_argument(words[i - 1], NULL))
			continue;
		command = command_find(words[i]);
		run = !shown && strcmp(words[i], "run") == 0;
		shown |= strcmp(words[i], "show") == 0;
	}
	awaiting = count > 1 ? awaits_argument(words[count - 2], command) : NULL;
	if (run)
		offer_words(run_options, COUNT_OF(run_options), t.begun);
	else if (awaiting)
		offer_argument(awaiting, &t);
	else if (t.begun[0] == '-')
		offer_options(command, t.begun);
	else if (!command)
		offer_commands(t.begun, !shown);
	else
		offer_operand(command, &t);
	return EXIT_CODE_OK;
}
