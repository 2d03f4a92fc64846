/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 24-bit counters pass 2^24 while requests are under way: the PSN, set by MODIFY; the MSN and
 * the SSN with the LSN, which always begin at 0 and 1, set in the contexts. With and without
 * credits, over a good wire and a bad one, from each place just below the wrap.
 */
#include "rig.h"
#include "traffic.h"

enum { BELOW = 20, WRAP = 0x1000000 };

/* Both sides of QP 0 have `done` messages behind them, in both directions. */
static void set_counters(struct sim *s, uint32_t done)
{
	for (int n = 0; n < 2; n++) {
		struct qp *q = sim_context(s, n, 0);

		q->ee.msn = done;
		q->rtc.ssn = (done + 1) & 0xffffff;
		q->rtc.lsn = q->rrc.credit_msn = done;
		q->rrc.credits = (q->rrc.credits & ~0xffffffu) | done;
	}
}

/* Eight operations of every kind in each direction, 14 PSNs at least. */
static void add_all(struct traffic *t, int node)
{
	static const uint8_t kinds[] = {USER_SEND,	USER_RDMA_READ, USER_RDMA_WRITE,
					USER_ATOMIC_FA, USER_SEND_IMM,	USER_RDMA_WRITE_IMM,
					USER_ATOMIC_CS, USER_RDMA_WRITE};

	for (unsigned i = 0; i < TRAFFIC_OPS; i++)
		traffic_add(t, node, 0, kinds[i], i == 1 || i == 2 ? 3000 : 700 + i);
}

static struct sim *sims[2]; /* without credits and with; made when first wanted */

static void wrap(uint32_t below_psn, uint32_t below_msn, bool credits, bool bad_wire)
{
	static struct traffic t;
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.memory_bytes = TRAFFIC_MEMORY;
	p.no_credits = !credits;
	p.psn = below_psn ? WRAP - below_psn : 5;
	p.seed = below_psn * 100 + below_msn + 1;
	if (!sims[credits])
		sims[credits] = sim_create(&p);
	sim_reset(sims[credits], &p);
	if (below_msn)
		set_counters(sims[credits], WRAP - below_msn);
	if (bad_wire)
		sims[credits]->faults = (struct sim_faults){.loss_ppm = 100000,
							    .duplicate_ppm = 50000,
							    .reorder_ppm = 50000,
							    .most_lost = 7};
	traffic_begin(&t, sims[credits], "PSN %u, MSN %u below 2^24, credits %d, bad wire %d",
		      below_psn, below_msn, credits, bad_wire);
	for (int n = 0; n < 2; n++)
		add_all(&t, n);
	assert_true(traffic_run(&t));
	for (int n = 0; n < 2; n++) {
		const struct qp *q = sim_context(sims[credits], n, 0);

		assert_int_equal(q->ee.expected_psn, q->rtc.next_psn);
		assert_int_equal(q->ee.msn,
				 below_msn ? (WRAP - below_msn + TRAFFIC_OPS) % WRAP : TRAFFIC_OPS);
		assert_int_equal(q->rtc.ssn, (q->ee.msn + 1) % WRAP);
		assert_int_equal(q->rtc.next_psn >> 24, 0);
	}
}

static void wraps(bool psn, bool msn)
{
	for (uint32_t below = 1; below <= BELOW; below++)
		for (unsigned how = 0; how < 4; how++)
			wrap(psn ? below : 0, msn ? 1 + below % TRAFFIC_OPS : 0, how & 1, how >> 1);
}

TEST(c9_066__psn_wraps_between_two_hcas)
{
	wraps(true, false);
}

TEST(wrap__msn_and_ssn)
{
	wraps(false, true);
}

TEST(wrap__all_of_them)
{
	wraps(true, true);
}

static int end(void **state)
{
	for (int i = 0; i < 2; i++)
		if (sims[i])
			sim_destroy(sims[i]);
	return 0;
}

TEST_GROUP(.teardown = end);
