/* SPDX-License-Identifier: BSD-3-Clause */
/* Which command or option may have been meant; see commands.h. */
#include <string.h>
#include "commands.h"
#include "pipeline/topology.h"

enum { WORD_MAX = 32 };

static unsigned suggest_least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many letters are to be added, left out, replaced or swapped with their neighbour to make one
 * word of the other; more than WORD_MAX for long words. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1][WORD_MAX + 1] = {{0}}, n = strlen(a), m = strlen(b);

	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX + 1;
	for (unsigned i = 0; i <= n; i++) {
		for (unsigned k = 0; k <= m; k++) {
			if (i == 0 || k == 0) {
				row[i][k] = i + k;
				continue;
			}
			row[i][k] = suggest_least(row[i - 1][k - 1] + (a[i - 1] != b[k - 1]),
						  suggest_least(row[i - 1][k], row[i][k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[i][k] = suggest_least(row[i][k], row[i - 2][k - 2] + 1);
		}
	}
	return row[n][m];
}

/* The best so far for a mistyped word. */
struct guess {
	const char *typed, *best;
	unsigned distance;
};

static void consider(struct guess *g, const char *word)
{
	bool begins = g->typed[0] && strncmp(word, g->typed, strlen(g->typed)) == 0;
	unsigned d = begins ? 1 : distance(g->typed, word);

	if (d >= g->distance || d > 1 + strlen(g->typed) / 4)
		return;
	g->best = word;
	g->distance = d;
}

static int refuse_word(const char *kind, const char *dashes, const struct guess *g)
{
	fprintf(stderr, "softhca: unknown %s '%s%s'", kind, dashes, g->typed);
	if (g->best)
		fprintf(stderr, ", did you mean '%s%s'?\n", dashes, g->best);
	else
		fputs("\n", stderr);
	fputs("usage: softhca [OPTION]... COMMAND [OPTION]...; 'softhca help' lists them\n",
	      stderr);
	return EXIT_CODE_USAGE;
}

int refuse_command(const char *name)
{
	struct guess g = {.typed = name, .distance = 3};

	for (unsigned i = 0; i < command_count; i++)
		consider(&g, commands[i].name);
	for (unsigned i = 0; i < OTHER_WORDS; i++)
		consider(&g, other_words[i]);
	return refuse_word("command", "", &g);
}

int refuse_option(const char *name)
{
	struct guess g = {.typed = name + strspn(name, "-"), .distance = 3};

	for (unsigned i = 0; i < OPTION_COUNT; i++)
		consider(&g, option_infos[i].name);
	return refuse_word("option", name[1] == '-' ? "--" : "-", &g);
}

int refuse_module(const char *name)
{
	struct guess g = {.typed = name, .distance = 3};

	for (unsigned i = 0; i < STAGE_COUNT; i++) {
		if (strcmp(name, stage_infos[i].name) == 0)
			return EXIT_CODE_OK;
		consider(&g, stage_infos[i].name);
	}
	for (unsigned i = 0; i < MODULE_COUNT; i++) {
		enum module_id caller = module_caller(i);

		if (strcmp(name, module_infos[i].name) != 0) {
			consider(&g, module_infos[i].name);
		} else if (caller != MODULE_COUNT) {
			fprintf(stderr, "softhca: %s runs when %s calls it, and stands with it\n",
				name, module_infos[caller].name);
			return EXIT_CODE_USAGE;
		} else {
			return EXIT_CODE_OK;
		}
	}
	return refuse_word("stage or module", "", &g);
}

int refuse_channel(const char *name)
{
	struct guess g = {.typed = name, .distance = 3};

	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		consider(&g, channel_infos[i].name);
	return refuse_word("HCA or channel", "", &g);
}

int refuse_setting(const char *name, const char *const *names, unsigned count)
{
	struct guess g = {.typed = name, .distance = 3};

	for (unsigned i = 0; i < count; i++)
		consider(&g, names[i]);
	return refuse_word("setting", "", &g);
}
