/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole HCA is made, refused, polled, counted and unmade. */
#include "engine_fixture.h"

static struct hca_config sound(void)
{
	struct hca_config c = fx->h->config;

	strcpy(c.name, "other");
	return c;
}

static void refused(const struct hca_config *c)
{
	struct hca *h = NULL;

	assert_int_equal(hca_create(c, &h), -EINVAL);
	assert_null(h);
}

#define REFUSED(member, value)                                                                     \
	do {                                                                                       \
		struct hca_config c = sound();                                                     \
		c.member = value;                                                                  \
		refused(&c);                                                                       \
	} while (0)

TEST(hca_create__refuses_what_is_not_valid)
{
	REFUSED(engines, 0);
	REFUSED(engines, ENGINES_MAX + 1);
	REFUSED(qps, 0);
	REFUSED(qps, 100);
	REFUSED(qps, 1u << (QPN_INDEX_BITS_MAX + 1));
	REFUSED(cqs, 3);
	REFUSED(mpts, 1u << (KEY_INDEX_BITS_MAX + 1));
	REFUSED(packets, NULL);
	REFUSED(descriptors, NULL);
	REFUSED(link, NULL);
	REFUSED(gid_count, GID_TABLE_MAX + 1);
	REFUSED(settings.swpb_elements, 0);
	REFUSED(settings.rpb_elements, 0);
	REFUSED(settings.reb_elements, SGE_MAX - 1);
	REFUSED(settings.timer_tick_ns, 0);
	REFUSED(settings.timer_tick_ns, 16000);
	REFUSED(settings.timer_slots, 0);
	REFUSED(settings.pipeline_depth, 0);
	REFUSED(settings.ack_interval, 0);
	REFUSED(settings.quantum_bytes, 0);
}

/* Several beside each other, of several engines, again and again: nothing stays behind. */
TEST(hca_create__and_destroy)
{
	for (unsigned round = 0; round < 3; round++) {
		struct hca_config c = sound();
		struct hca *h;

		c.engines = 1 + round;
		assert_int_equal(hca_create(&c, &h), 0);
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(hca_poll(h, FX_START_NS + i * 1000), 0);
		for (unsigned k = 0; k < c.engines; k++) {
			assert_int_equal(h->engines[k].index, k);
			assert_int_equal(h->engines[k].now_ns, FX_START_NS + 9000);
			for (unsigned s = 0; s < STAGE_COUNT; s++) {
				assert_int_equal(h->engines[k].stage[s].polls, 10);
				assert_int_equal(h->engines[k].stage[s].busy_polls, 0);
			}
			assert_int_equal(hca_client_engine(h, c.engines + k), k);
		}
		hca_destroy(h);
		assert_int_equal(rte_mempool_in_use_count(fx->descriptors), 0);
	}
}

TEST(hca_create__name_in_use)
{
	struct hca_config c = sound();
	struct hca *h = NULL;

	strcpy(c.name, fx->h->config.name);
	assert_true(hca_create(&c, &h) < 0);
	assert_null(h);
	hca_poll(fx->h, FX_START_NS); /* the first one is as it was */
}

TEST(hca_counter__sums_stages_and_control)
{
	for (unsigned s = 0; s < STAGE_COUNT; s++)
		count_n(stage_counters(fx->e, s), COUNTER_events, 1u << s);
	count_n(&fx->h->counters, COUNTER_events, 100);
	assert_int_equal(hca_counter(fx->h, COUNTER_events), 100 + (1u << STAGE_COUNT) - 1);
}

TEST(hca_poll_stage__counts_polls)
{
	struct stage *s = &fx->e->stage[STAGE_SEGMENTATION];

	hca_poll_stage(fx->e, STAGE_SEGMENTATION);
	assert_int_equal(s->polls, 1);
	assert_int_equal(s->busy_polls, 0);
	fx_put(CHANNEL_DP_RTC, fx_request(0, USER_SEND, 8, 0));
	assert_true(hca_poll_stage(fx->e, STAGE_SEGMENTATION) > 0);
	assert_int_equal(s->polls, 2);
	assert_int_equal(s->busy_polls, 1);
}

static unsigned left_by_execution(void)
{
	fx_put(CHANNEL_DP_RTC, fx_request(0, USER_SEND, 8, 0));
	hca_poll_stage(fx->e, STAGE_SEGMENTATION);
	hca_poll_stage(fx->e, STAGE_RESPONDER_EXEC);
	return fx_ring_count(CHANNEL_RPG_TXA);
}

/* What was generated since the transmitter's own poll leaves in the same round, if that poll found
 * nothing, and if no other lcore may be transmitting. */
TEST(hca_poll_stage__execution_transmits_on_one_lcore)
{
	assert_int_equal(left_by_execution(), 1);
	hca_poll_stage(fx->e, STAGE_HEADER_PARSE);
	hca_engine_on_one_lcore(fx->h, 0);
	assert_int_equal(left_by_execution(), 1);
	hca_poll_stage(fx->e, STAGE_HEADER_PARSE);
	hca_poll_stage(fx->e, STAGE_HEADER_PARSE);
	assert_int_equal(left_by_execution(), 0);
}
