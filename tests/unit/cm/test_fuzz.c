/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forged and altered MADs arrive at busy connection managers (cm_forge.c): repetitions, mutations,
 * messages about others' connections, noise. No crash, malformed ones are only counted, all others
 * at most end connections; nothing is left in the end.
 */
#include "cm_world_priv.h"
#include "pipeline/machine.h"

static void run(const struct world_config *config, unsigned int seeds)
{
	struct world_config c = *config;
	struct world_result r;
	unsigned int i;

	for (i = 0; i < seeds; i++, c.seed++) {
		world_run(&c, &r);
		print_message("%s, seed %llu: %u forged, %u and %u established, %u REJs, malformed "
			      "%llu, stray %llu, duplicate %llu, stale %llu, full %llu\n",
			      c.name, (unsigned long long)c.seed, r.forged, r.established[0],
			      r.established[1], r.sent[CM_REJ],
			      (unsigned long long)r.counters[0].mad_malformed,
			      (unsigned long long)r.counters[0].mad_stray,
			      (unsigned long long)r.counters[0].duplicate,
			      (unsigned long long)r.counters[0].stale,
			      (unsigned long long)r.counters[0].dropped_full);
		assert_true(r.forged > c.attempts);
		assert_true(r.established[0] > 0 && r.established[1] > 0);
		assert_true(r.counters[0].mad_malformed && r.counters[1].mad_malformed);
		assert_true(r.counters[0].mad_stray && r.counters[1].mad_stray);
		assert_true(r.counters[0].duplicate && r.counters[1].duplicate);
	}
}

TEST(fuzz__among_the_kind)
{
	const struct world_config config = {.name = "forged, kind",
					    .seed = 100,
					    .attempts = 2000,
					    .at_once = 40,
					    .loss = {50, 50},
					    .resolutions = 100,
					    .kind = true,
					    .forged = 500};

	run(&config, 3);
}

TEST(fuzz__among_the_unkind)
{
	const struct world_config config = {.name = "forged, unkind",
					    .seed = 200,
					    .attempts = 2000,
					    .at_once = 40,
					    .loss = {50, 50},
					    .duplicated = 50,
					    .late = 10,
					    .resolutions = 100,
					    .forged = 500};

	run(&config, 3);
}

/* Mostly forgers: what they make fills the little room that there is. */
TEST(fuzz__flood)
{
	const struct world_config config = {.name = "forged, flood",
					    .seed = 300,
					    .attempts = 300,
					    .at_once = 20,
					    .loss = {50, 50},
					    .resolutions = 100,
					    .qpns_again = true,
					    .forged = 900,
					    .limits = {.connections = 64, .unanswered = 8}};

	run(&config, 3);
}
