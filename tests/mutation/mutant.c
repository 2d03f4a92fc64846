/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads from the environment which mutant lives, which test of the program is to run and for how
 * much time of the processor, and writes down which answers each point gave. See mutant.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "mutant.h"

unsigned mutant_alive = MUTANT_NONE;
unsigned char *mutant_answers;

/* cmocka's, in programs that have it. */
void cmocka_set_test_filter(const char *pattern) __attribute__((weak));

static const char *record;

static void limit(int what, rlim_t most)
{
	setrlimit(what, &(struct rlimit){most, most});
}

__attribute__((constructor)) static void mutant_begin(void)
{
	const char *alive = getenv("MUTANT_ALIVE"), *test = getenv("MUTANT_TEST");
	const char *seconds = getenv("MUTANT_SECONDS");

	record = getenv("MUTANT_RECORD");
	if (alive)
		mutant_alive = (unsigned)atoi(alive);
	if (record)
		mutant_answers = calloc(1, MUTANT_POINTS);
	if (test && cmocka_set_test_filter)
		cmocka_set_test_filter(test);
	if (seconds)
		limit(RLIMIT_CPU, (rlim_t)atoi(seconds)); /* one that loops for ever is ended */
	limit(RLIMIT_CORE, 0);
}

__attribute__((destructor)) static void mutant_end(void)
{
	FILE *f = record ? fopen(record, "w") : NULL;

	if (!f)
		return;
	fwrite(mutant_answers, 1, MUTANT_POINTS, f);
	fclose(f);
}
