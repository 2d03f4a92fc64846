/* SPDX-License-Identifier: BSD-3-Clause */
/* The value of log_level. Pure: no files, no logging. */
#include <string.h>
#include "log_levels.h"

/* The number of a word, or -1. */
static int number_of(const char *word, const char *const *words, int count)
{
	int i = 0;

	while (i < count && strcmp(words[i], word) != 0)
		i++;
	return i < count ? i : -1;
}

/* "LEVEL" or "MODULE=LEVEL". 0; -EINVAL with *why. */
static int parse_level(char *word, struct log_levels *levels, struct reason *why)
{
#define WORD(name) " " #name
	char *equals = strchr(word, '=');
	const char *name = equals ? equals + 1 : word;
	int level = number_of(name, log_level_names, LEVEL_COUNT), module;

	if (level < 0)
		return refuse(why, "'%s' is none of error|warning|notice|info|debug", name);
	if (!equals) {
		levels->all = (uint8_t)level;
		return 0;
	}
	*equals = '\0';
	module = number_of(word, log_module_names, LOG_MODULE_COUNT);
	if (module < 0)
		return refuse(why, "'%s' is none of the modules" LOG_MODULES(WORD), word);
	levels->module[module] = (uint8_t)(level + 1);
	return 0;
#undef WORD
}

int parse_log_levels(const char *value, struct log_levels *levels, struct reason *why)
{
	struct log_levels parsed = {.all = LEVEL_INFO};
	char word[SETTING_WORD_BYTES];

	while (next_word(&value, word)) {
		int ret = parse_level(word, &parsed, why);

		if (ret)
			return ret;
	}
	*levels = parsed;
	return 0;
}
