/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softhca-post: what posting and polling cost a program, by libsofthca and by libibverbs, in cycles
 * of the time stamp counter. All ways take turns, so that what the machine does in between meets
 * all of them. Exit code 0, 1 (failed), 2 (usage).
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../sort.h"
#include "way.h"

enum { ROUNDS = 2000, ROUNDS_MAX = 1000000 };
#define RATIO_MAX     1.05
#define SETTLE_NS     5000ull
#define SETTLE_NS_MAX 10000000ull
#define STUCK_NS      20000000000ull

/* What is measured, per request or poll: posting in each form, and ... */
enum { POLL_BURST = FORMS, POLL_EMPTY, MEASURES };

static struct way *const ways[] = {&native_list, &native_batch, &verbs_list, &verbs_batch};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static struct samples {
	double *cycles;
	size_t n, room;
} samples[WAYS][MEASURES];

/* From a burst's last byte to its last completion: more, once that was too short. */
static uint64_t settle_ns = SETTLE_NS;

int way_fail(const char *what, int error)
{
	fprintf(stderr, "softhca-post: %s: %s\n", what, strerror(error));
	return -1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void add(unsigned way, unsigned measure, double cycles)
{
	struct samples *s = &samples[way][measure];

	if (s->n < s->room)
		s->cycles[s->n++] = cycles;
}

/* ---- a turn ---- */

/* Waits until the last message of the burst has arrived, and its completion should have, too. Does
 * not poll: that is to be measured. 0 or -1. */
static int wait_for_burst(const struct way *w, uint64_t mark)
{
	const volatile uint64_t *last =
		(const volatile uint64_t *)(w->to + BURST * BYTES - sizeof(mark));
	uint64_t until = now_ns() + STUCK_NS;

	while (*last != mark) {
		if (now_ns() > until)
			return way_fail("a burst", ETIMEDOUT);
		sched_yield();
	}
	until = now_ns() + settle_ns;
	do
		sched_yield();
	while (now_ns() < until);
	return 0;
}

/* Takes the completions of the burst. A sample, if one poll takes all. 0 or -1. */
static int take_burst(unsigned way)
{
	uint64_t cycles, until;
	int done = ways[way]->poll(ways[way], BURST, &cycles), more;

	if (done == BURST)
		add(way, POLL_BURST, (double)cycles / BURST);
	else if (settle_ns < SETTLE_NS_MAX)
		settle_ns *= 2;
	for (until = now_ns() + STUCK_NS; done >= 0 && done < BURST; done += more) {
		more = ways[way]->poll(ways[way], BURST - done, &cycles);
		if (more < 0 || now_ns() > until)
			return way_fail("completions", more < 0 ? EIO : ETIMEDOUT);
	}
	return done < 0 ? way_fail("completions", EIO) : 0;
}

/* `counts`: its posting is a sample. 0 or -1. */
static int take_turn(unsigned way, enum form form, bool counts)
{
	static uint64_t mark;
	const struct way *w = ways[way];
	uint64_t cycles;

	mark++;
	memcpy(w->from + BURST * BYTES - sizeof(mark), &mark, sizeof(mark));
	if (w->post(w, form, &cycles))
		return way_fail("post", EIO);
	if (counts)
		add(way, form, (double)cycles / BURST);
	return wait_for_burst(w, mark) || take_burst(way) ? -1 : 0;
}

/*
 * The ways change places from round to round. What a way did last was long ago: meanwhile the
 * daemon may have fallen asleep, and the way's queues left the cache. So its first burst does not
 * count.
 */
static int take_round(unsigned round)
{
	for (unsigned i = 0; i < WAYS; i++) {
		unsigned way = (round + i * (round & 1 ? 1 : WAYS - 1)) % WAYS;

		if (take_turn(way, FORM_LIST, false))
			return -1;
		for (unsigned form = 0; form < FORMS; form++)
			if (take_turn(way, (enum form)form, true))
				return -1;
		add(way, POLL_EMPTY, (double)ways[way]->poll_empty(ways[way]) / EMPTY_POLLS);
	}
	return 0;
}

/* ---- the table ---- */

static const struct row {
	const char *what;
	unsigned measure, native, verbs; /* of ways[] */
} rows[] = {
	{"post, lists of 32", FORM_LIST, 0, 2},
	{"post, lists of 32, inline", FORM_LIST_INLINE, 0, 2},
	{"post, one by one", FORM_SINGLE, 0, 2},
	{"post, one by one, inline", FORM_SINGLE_INLINE, 0, 2},
	{"post, batches of 32", FORM_LIST, 1, 3},
	{"post, batches of 32, inline", FORM_LIST_INLINE, 1, 3},
	{"post, batches of one", FORM_SINGLE, 1, 3},
	{"post, batches of one, inline", FORM_SINGLE_INLINE, 1, 3},
	{"poll, 32 are there", POLL_BURST, 0, 2},
	{"poll, 32 are there", POLL_BURST, 0, 3},
	{"poll, empty", POLL_EMPTY, 0, 2},
	{"poll, empty", POLL_EMPTY, 0, 3},
};

/* Sorts the samples; none: 0. */
static double median(struct samples *s)
{
	sort_doubles(s->cycles, s->n);
	return s->n ? s->cycles[s->n / 2] : 0;
}

static int print_table(void)
{
	double at[WAYS][MEASURES];

	for (unsigned w = 0; w < WAYS; w++)
		for (unsigned m = 0; m < MEASURES; m++)
			at[w][m] = median(&samples[w][m]);
	printf("%-30s %-18s %6s   %-14s %6s   %s\n", "64-byte WRITEs, cycles of each", "libsofthca",
	       "", "libibverbs", "", "ratio");
	for (const struct row *r = rows; r < rows + sizeof(rows) / sizeof(*rows); r++) {
		const struct way *n = ways[r->native], *v = ways[r->verbs];
		double native = at[r->native][r->measure], verbs = at[r->verbs][r->measure];
		bool post = r->measure < FORMS;

		if (native <= 0 || verbs <= 0)
			return way_fail("no burst was complete when it was polled", EIO);
		printf("%-30s %-18s %6.1f   %-14s %6.1f   %.3f%s\n", r->what,
		       post ? n->post_calls : n->poll_calls, native,
		       post ? v->post_calls : v->poll_calls, verbs, verbs / native,
		       verbs / native > RATIO_MAX ? "   ABOVE 1.05" : "");
	}
	return 0;
}

/* ---- */

/* Every turn of a round ends with a poll. */
static int make_room(size_t rounds)
{
	for (unsigned w = 0; w < WAYS; w++) {
		for (unsigned m = 0; m < MEASURES; m++) {
			struct samples *s = &samples[w][m];

			s->room = m == POLL_BURST ? rounds * (1 + FORMS) : rounds;
			s->cycles = calloc(s->room, sizeof(*s->cycles));
			if (!s->cycles)
				return way_fail("memory", ENOMEM);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;
	const char *device = argc > 3 ? argv[2] : "hca0", *peer = argc > 3 ? argv[3] : "hca1";

	if (argc > 4 || argc == 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: softhca run softhca-post [ROUNDS [HCA PEER]]\n");
		return 2;
	}
	if (make_room((size_t)rounds))
		return 1;
	for (unsigned i = 0; i < WAYS; i++)
		if (ways[i]->open(ways[i], device, peer))
			return 1;
	for (unsigned r = 0; r < (unsigned)rounds; r++)
		if (take_round(r))
			return 1;
	return print_table() ? 1 : 0;
}
