/* SPDX-License-Identifier: BSD-3-Clause */
/* The soak's loop: keeps all lanes busy until all operations are done, then looks for leftovers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/progress.h"
#include "lane.h"
#include "soak.h"
#include "verify.h"
#include "wait.h"

enum { POLL_MAX = 16, REPORTS = 10 };
#define SILENCE_NS 100000000ull

struct soak {
	struct session s;
	struct options o;
	struct lane *lanes; /* qps x 2 */
	uint32_t count;
	uint64_t posted, random;
	struct progress progress;
};

static struct lane *lane_of(struct soak *k, uint64_t wr_id, unsigned direction)
{
	return &k->lanes[(wr_id >> 40) * 2 + direction];
}

/* Takes what one side's two CQs hold. How many completions, or -1. */
static int poll_side(struct soak *k, unsigned side)
{
	struct softhca_wc wc[POLL_MAX];
	int received = softhca_poll_cq(k->s.side[side].recv_cq, POLL_MAX, wc), sent;

	for (int i = 0; i < received; i++)
		if (lane_received(lane_of(k, wc[i].wr_id, !side), &wc[i]))
			return -1;
	sent = softhca_poll_cq(k->s.side[side].send_cq, POLL_MAX, wc);
	for (int i = 0; i < sent; i++)
		if (lane_completed(lane_of(k, wc[i].wr_id, side), &wc[i]))
			return -1;
	return received < 0 || sent < 0 ? session_fail("poll CQ", EIO) : received + sent;
}

static int post_all(struct soak *k)
{
	int total = 0;

	for (uint32_t i = 0; i < k->count && k->posted < k->o.soak_operations; i++) {
		uint64_t left = k->o.soak_operations - k->posted;
		unsigned n = 1 + (unsigned)(verify_mix(k->random++) % LANE_WINDOW);
		int done = lane_post(&k->lanes[i], left < n ? (unsigned)left : n, &k->random);

		if (done < 0)
			return -1;
		k->posted += (unsigned)done;
		total += done;
	}
	return total;
}

static uint64_t completed(const struct soak *k)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < k->count; i++)
		sum += k->lanes[i].completed;
	return sum;
}

static bool finished(const struct soak *k)
{
	for (uint32_t i = 0; i < k->count; i++)
		if (k->lanes[i].completed != k->lanes[i].posted ||
		    k->lanes[i].received != k->lanes[i].takers)
			return false;
	return k->posted == k->o.soak_operations;
}

static double megabytes(const struct soak *k)
{
	double sum = 0;

	for (uint32_t i = 0; i < k->count; i++)
		sum += (double)k->lanes[i].bytes;
	return sum * 1e-6;
}

static void report_progress(struct soak *k, unsigned *reported)
{
	uint64_t done = completed(k), now = now_ns();

	if (progress_is_due(&k->progress, now))
		progress_write(&k->progress, now, (double)done, k->o.soak_operations,
			       megabytes(k) * 1e9 / (double)(now - k->progress.begin_ns), "MB/s");
	if (done * REPORTS / k->o.soak_operations <= *reported)
		return;
	*reported = (unsigned)(done * REPORTS / k->o.soak_operations);
	progress_clear(&k->progress);
	printf("soak: %llu of %u operations, %.0f MB, %.1f s\n", (unsigned long long)done,
	       k->o.soak_operations, megabytes(k),
	       (double)(now_ns() - k->progress.begin_ns) * 1e-9);
	fflush(stdout);
}

static void report_stuck(const struct soak *k)
{
	for (uint32_t i = 0; i < k->count; i++) {
		const struct lane *l = &k->lanes[i];

		fprintf(stderr,
			"soak: QP %u, direction %u: %llu posted, %llu completed; receives: "
			"%llu due, %llu seen\n",
			l->qp, l->direction, (unsigned long long)l->posted,
			(unsigned long long)l->completed, (unsigned long long)l->takers,
			(unsigned long long)l->received);
	}
}

static int run(struct soak *k)
{
	struct waiter w;
	unsigned reported = 0;

	wait_begin(&w, &k->s, "soak");
	while (!finished(k)) {
		int posted = post_all(k);
		int a = posted < 0 ? -1 : poll_side(k, 0);
		int b = a < 0 ? -1 : poll_side(k, 1);

		if (b < 0)
			return -1;
		if (a + b > 0)
			report_progress(k, &reported);
		if (wait_turn(&w, posted + a + b)) {
			report_stuck(k);
			return -1;
		}
	}
	return 0;
}

/* Nothing more may come: a completion now is one too many. */
static int listen_to_silence(struct soak *k)
{
	uint64_t until = now_ns() + SILENCE_NS;
	struct softhca_wc wc;

	while (now_ns() < until)
		for (unsigned i = 0; i < 2; i++)
			if (softhca_poll_cq(k->s.side[i].send_cq, 1, &wc) ||
			    softhca_poll_cq(k->s.side[i].recv_cq, 1, &wc)) {
				fprintf(stderr, "soak: one completion too many\n");
				return -1;
			}
	for (uint32_t i = 0; i < k->count; i++)
		if (lane_check_words(&k->lanes[i]))
			return -1;
	return 0;
}

static int prepare(struct soak *k)
{
	k->count = 2 * k->o.qps;
	k->lanes = calloc(k->count, sizeof(*k->lanes));
	if (!k->lanes)
		return session_fail("memory", ENOMEM);
	for (uint32_t i = 0; i < k->count; i++) {
		lane_init(&k->lanes[i], &k->s, i / 2, i % 2);
		if (lane_post_receives(&k->lanes[i]))
			return -1;
	}
	return 0;
}

/* The first completion seen in error may be one that was flushed, for another's sake. */
static void report_causes(const struct soak *k)
{
	struct softhca_wc wc;

	for (unsigned i = 0; i < 4; i++) {
		const struct side *side = &k->s.side[i / 2];

		while (softhca_poll_cq(i % 2 ? side->recv_cq : side->send_cq, 1, &wc) == 1)
			if (wc.status != SOFTHCA_WC_SUCCESS && wc.status != SOFTHCA_WC_WR_FLUSH_ERR)
				fprintf(stderr,
					"soak: QP %llu, side %u: a %s failed, too: %s (vendor "
					"0x%x)\n",
					(unsigned long long)(wc.wr_id >> 40), i / 2,
					i % 2 ? "receive" : "request",
					softhca_wc_status_str(wc.status), wc.vendor_err);
	}
}

static void report_verdict(const struct soak *k, int error)
{
	printf("soak: %s: %llu operations (", error ? "FAILED" : "passed",
	       (unsigned long long)completed(k));
	for (unsigned i = 0; i < KIND_COUNT; i++) {
		uint64_t sum = 0;

		for (uint32_t j = 0; j < k->count && k->lanes; j++)
			sum += k->lanes[j].per_kind[i];
		printf("%s%s %llu", i ? ", " : "", kinds[i].name, (unsigned long long)sum);
	}
	printf("), %.0f MB, %.1f s, seed %llu\n", megabytes(k),
	       (double)(now_ns() - k->progress.begin_ns) * 1e-9, (unsigned long long)k->o.seed);
}

int soak_main(const struct options *o)
{
	struct soak k = {.o = *o, .random = verify_mix(o->seed)};
	int error;

	printf("soak: %u operations on %u queue pairs, seed %llu\n", o->soak_operations, o->qps,
	       (unsigned long long)o->seed);
	progress_begin(&k.progress, now_ns());
	k.o.service = SOFTHCA_QP_RC;
	k.o.tx_depth = k.o.rx_depth = LANE_WINDOW;
	k.o.inline_bytes = 0;
	error = session_open(&k.s, &k.o, LANE_AREA_BYTES) || prepare(&k);
	if (!error && run(&k)) {
		report_causes(&k);
		error = 1;
	}
	progress_clear(&k.progress);
	error = error || listen_to_silence(&k);
	report_verdict(&k, error);
	session_close(&k.s);
	free(k.lanes);
	return error ? -1 : 0;
}
