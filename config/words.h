/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_WORDS_H
#define CONFIG_WORDS_H
/* Words and numbers in values of settings, and why one is refused. Pure. */
#include <stdbool.h>
#include <stdint.h>

enum { SETTING_WORD_BYTES = 64 }; /* of a list */

/* Why something was refused; without the file name, which the caller knows. */
struct reason {
	char text[256];
	unsigned line; /* only set by config_check's functions; 0: none */
};

/* Always returns -EINVAL, so that a parser can end with it. */
int refuse(struct reason *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* May it name an HCA or a prefix? A letter first, then letters, digits, - and _. */
bool name_is_valid(const char *name);

/* Takes the next word of a list separated by commas, without spaces around it; one that is too
 * long, longer than anything accepted, is cut off. False at the end. */
bool next_word(const char **list, char word[SETTING_WORD_BYTES]);

/* Finds a word in a list like none|dcqcn: *number is its position. 0; -EINVAL with *why. */
int parse_choice(const char *value, const char *words, uint32_t *number, struct reason *why);

/* Parses a decimal number. 0; -EINVAL with *why. */
int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct reason *why);

#endif
