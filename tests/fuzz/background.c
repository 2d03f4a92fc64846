/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of libFuzzer's counters say nothing about an input: fuzz.h. */
#include "fuzz.h"

/* Begin and end of the counters of all objects, from the linker; NULL without libFuzzer. The compiler's own counting and checks
 * stay away from them. */
extern uint8_t counters[] __asm__("__start___sancov_cntrs")
	__attribute__((weak, visibility("hidden")));
extern uint8_t counters_end[] __asm__("__stop___sancov_cntrs")
	__attribute__((weak, visibility("hidden")));

static uint8_t *news; /* for each counter: 0xff, or 0 where it belongs to the background */

FUZZ_PLAIN void fuzz_background(void)
{
	size_t n = (size_t)(counters_end - counters);

	if (!news) {
		news = malloc(n + 1);
		REQUIRE(news);
		memset(news, 0xff, n);
	}
	for (size_t i = 0; i < n; i++)
		news[i] = counters[i] ? 0 : news[i];
}

FUZZ_PLAIN void fuzz_hide_background(void)
{
	const uint8_t *mask = news;
	size_t n = (size_t)(counters_end - counters);

	for (size_t i = 0; i < n; i++)
		counters[i] &= mask[i];
}
