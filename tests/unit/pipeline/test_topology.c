/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the pipeline is sane, and channels count what `softhca fifos` shows. */
#include "engine_fixture.h"

static void assert_unique(const char *a, const char *b, unsigned i, unsigned k)
{
	if (i != k && strcmp(a, b) == 0)
		fail_msg("%s stands twice in topology.def", a);
}

TEST_WITH(topology__names_are_unique, NULL, NULL)
{
	for (unsigned i = 0; i < STAGE_COUNT; i++)
		for (unsigned k = 0; k < STAGE_COUNT; k++)
			assert_unique(stage_infos[i].name, stage_infos[k].name, i, k);
	for (unsigned i = 0; i < MODULE_COUNT; i++)
		for (unsigned k = 0; k < MODULE_COUNT; k++) {
			assert_unique(module_infos[i].name, module_infos[k].name, i, k);
			assert_unique(module_infos[i].design_name, module_infos[k].design_name, i,
				      k);
		}
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		for (unsigned k = 0; k < CHANNEL_COUNT; k++)
			assert_unique(channel_infos[i].name, channel_infos[k].name, i, k);
}

TEST_WITH(topology__every_channel_has_two_ends, NULL, NULL)
{
	for (unsigned i = 0; i < CHANNEL_COUNT; i++) {
		const struct channel_info *c = &channel_infos[i];
		char name[32];

		assert_in_range(c->producer, 0, MODULE_COUNT - 1);
		assert_in_range(c->consumer, 0, MODULE_COUNT - 1);
		assert_int_not_equal(c->producer, c->consumer);
		snprintf(name, sizeof(name), "%s_%s", module_infos[c->producer].name,
			 module_infos[c->consumer].name);
		assert_string_equal(c->name, name);
		assert_int_equal((c->depth + 1) & c->depth, 0); /* wastes nothing */
		assert_true(c->depth + 1 >= 4 * BURST);
		assert_true(strlen(c->fifos) > 0 && strlen(c->full) > 0);
	}
}

TEST_WITH(topology__calls_stay_within_a_stage, NULL, NULL)
{
	for (unsigned i = 0; i < CALL_COUNT; i++) {
		const struct call_info *c = &call_infos[i];
		char name[32];

		assert_int_not_equal(c->caller, c->called);
		assert_int_equal(module_infos[c->caller].stage, module_infos[c->called].stage);
		snprintf(name, sizeof(name), "%s_%s", module_infos[c->caller].name,
			 module_infos[c->called].name);
		assert_string_equal(c->name, name);
		assert_true(strlen(c->fifos) > 0 && strlen(c->text) > 0);
	}
}

TEST_WITH(topology__every_module_has_a_stage_and_a_neighbour, NULL, NULL)
{
	unsigned modules[STAGE_COUNT] = {0};

	for (unsigned i = 0; i < MODULE_COUNT; i++) {
		unsigned neighbours = 0;

		assert_in_range(module_infos[i].stage, 0, STAGE_COUNT - 1);
		modules[module_infos[i].stage]++;
		for (unsigned k = 0; k < CHANNEL_COUNT; k++)
			neighbours +=
				channel_infos[k].producer == i || channel_infos[k].consumer == i;
		for (unsigned k = 0; k < CALL_COUNT; k++)
			neighbours += call_infos[k].caller == i || call_infos[k].called == i;
		assert_true(neighbours > 0);
	}
	for (unsigned s = 0; s < STAGE_COUNT; s++)
		assert_true(modules[s] > 0);
}

TEST(channel__counts)
{
	struct channel *c = &fx->e->channel[CHANNEL_DBP_WS];
	unsigned depth = channel_infos[CHANNEL_DBP_WS].depth;
	struct rte_mbuf *m[BURST];

	assert_int_equal(channel_take(c, m, BURST), 0);
	assert_int_equal(c->empty, 1);
	assert_int_equal(channel_room(c), depth);
	assert_int_equal(c->full, 0);
	fx_fill(CHANNEL_DBP_WS, depth - 10);
	assert_int_equal(c->put, 10);
	assert_int_equal(c->high_water, 10);
	assert_int_equal(channel_take(c, m, 4), 4);
	assert_int_equal(c->taken, 4);
	rte_pktmbuf_free_bulk(m, 4);
	fx_fill(CHANNEL_DBP_WS, 0);
	assert_int_equal(channel_room(c), 0);
	assert_int_equal(c->full, 1);
	assert_int_equal(c->high_water, depth);
	assert_int_equal(c->put, depth + 4);
	assert_int_equal(c->empty, 1);
}

TEST(channel__keeps_the_order_and_all)
{
	struct channel *c = &fx->e->channel[CHANNEL_DBP_WS];
	uint32_t in = 0, out = 0;

	for (unsigned round = 0; round < 300; round++) {
		struct rte_mbuf *m[7];
		unsigned n;

		for (unsigned i = 0; i < round % 8 && channel_room(c); i++) {
			m[0] = rte_pktmbuf_alloc(fx->descriptors);
			request_of(m[0])->imm = in++;
			channel_put_one(c, m[0]);
		}
		n = channel_take(c, m, round % 7);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(request_of(m[i])->imm, out++);
			rte_pktmbuf_free(m[i]);
		}
	}
	assert_int_equal(in, out + rte_ring_count(c->ring));
}

static void takes_what_fits(bool shared)
{
	struct channel *c = &fx->e->channel[CHANNEL_HP_EE];
	unsigned depth = channel_infos[CHANNEL_HP_EE].depth;
	struct rte_mbuf *m[5];

	assert_int_equal(c->shared, shared);
	fx_fill(CHANNEL_HP_EE, 3);
	assert_int_equal(c->high_water, depth - 3);
	rte_pktmbuf_alloc_bulk(fx->descriptors, m, 5);
	assert_int_equal(channel_try_put(c, m, 5), 3);
	assert_int_equal(c->full, 1);
	assert_int_equal(c->put, depth);
	assert_int_equal(c->high_water, depth);
	assert_int_equal(channel_room(c), 0);
	assert_int_equal(c->full, 2);
	rte_pktmbuf_free_bulk(m + 3, 2);
}

TEST(channel_try_put__takes_what_fits)
{
	takes_what_fits(false);
}

static struct fx_options two_engines = {.engines = 2};

TEST_OPTIONS(channel_try_put__takes_what_fits_of_several_engines, &two_engines)
{
	takes_what_fits(true);
}

/* The rings that an HCA has made are those that the table says. */
static void is_what_the_table_says(unsigned engines)
{
	for (unsigned i = 0; i < engines * CHANNEL_COUNT; i++) {
		const struct channel *c =
			&fx->e->peers[i / CHANNEL_COUNT].channel[i % CHANNEL_COUNT];
		bool several = engines > 1 && strstr(channel_form_text(c->id), "MP/SC");

		assert_int_equal(c->id, i % CHANNEL_COUNT);
		assert_int_equal(c->shared, several);
		assert_int_equal(c->ring->prod.sync_type,
				 several ? RTE_RING_SYNC_MT : RTE_RING_SYNC_ST);
		assert_int_equal(c->ring->cons.sync_type, RTE_RING_SYNC_ST);
		assert_int_equal(c->ring->capacity, channel_infos[c->id].depth);
		assert_true(c->in == c->ring);
	}
}

TEST(rings__are_what_the_table_says)
{
	is_what_the_table_says(1);
}

TEST_OPTIONS(rings__of_several_engines_are_what_the_table_says, &two_engines)
{
	is_what_the_table_says(2);
}

TEST_WITH(topology__says_which_ring_is_which, NULL, NULL)
{
	static const struct {
		enum channel_id id;
		enum channel_form form;
		const char *text;
	} rows[] = {
		{CHANNEL_WS_WP, FORM_WITHIN, "plain"},
		{CHANNEL_RPG_TXA, FORM_BETWEEN, "plain on one lcore, SP/SC between two"},
		{CHANNEL_HP_EE, FORM_FROM_EACH,
		 "plain on one lcore, SP/SC between two, MP/SC with several engines"},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		assert_int_equal(channel_form(rows[i].id), rows[i].form);
		assert_string_equal(channel_form_text(rows[i].id), rows[i].text);
	}
}

TEST_WITH(counters__names, NULL, NULL)
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++) {
		assert_true(strlen(counter_name(i)) > 0);
		for (unsigned k = 0; k < COUNTER_COUNT; k++)
			assert_unique(counter_name(i), counter_name(k), i, k);
	}
}
