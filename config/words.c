/* SPDX-License-Identifier: BSD-3-Clause */
/* See words.h. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "words.h"

int refuse(struct reason *why, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why->text, sizeof(why->text), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

bool name_is_valid(const char *name)
{
	if (!isalpha((unsigned char)*name))
		return false;
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && *name != '-' && *name != '_')
			return false;
	}
	return true;
}

bool next_word(const char **list, char word[SETTING_WORD_BYTES])
{
	const char *from = *list + strspn(*list, " \t,");
	size_t length = strcspn(from, ",");

	*list = from + length;
	while (length && isspace((unsigned char)from[length - 1]))
		length--;
	if (length >= SETTING_WORD_BYTES)
		length = SETTING_WORD_BYTES - 1; /* longer than anything accepted */
	memcpy(word, from, length);
	word[length] = '\0';
	return length > 0;
}

int parse_choice(const char *value, const char *words, uint32_t *number, struct reason *why)
{
	const char *word = words;
	size_t length = strlen(value);

	for (*number = 0; word; ++*number) {
		size_t word_length = strcspn(word, "|");

		if (word_length == length && memcmp(word, value, length) == 0)
			return 0;
		word = word[word_length] ? word + word_length + 1 : NULL;
	}
	return refuse(why, "'%.60s' is none of %s", value, words);
}

int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct reason *why)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return refuse(why, "'%.60s' is not a number", text);
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*end)
		return refuse(why, "'%.60s' is not a number", text);
	if (errno || *out < min || *out > max)
		return refuse(why, "%.60s is out of range %llu..%llu", text,
			      (unsigned long long)min, (unsigned long long)max);
	return 0;
}
