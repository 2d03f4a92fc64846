/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many connects and disconnects over a wire that loses, duplicates, delays and reorders: none is
 * lost, and nothing of them is left (cm_world.h).
 */
#include "cm_world_priv.h"
#include "pipeline/machine.h"

enum { ATTEMPTS = 10000 };

static unsigned int timeouts(const struct world_result *r)
{
	return r->events[CM_EVENT_REQ_TIMEOUT] + r->events[CM_EVENT_REP_TIMEOUT] +
	       r->events[CM_EVENT_DREQ_TIMEOUT] + r->events[CM_EVENT_SIDR_TIMEOUT];
}

static void print(const struct world_config *c, const struct world_result *r)
{
	print_message(
		"%s, seed %llu: %u and %u established, %u resolved, %u refused, %u time-outs, "
		"%u REJs, %llu retries, at most %u connections, %llu s\n",
		c->name, (unsigned long long)c->seed, r->established[0], r->established[1],
		r->resolved, r->refused, timeouts(r), r->sent[CM_REJ],
		(unsigned long long)(r->counters[0].retry + r->counters[1].retry),
		r->connections_most, (unsigned long long)r->seconds);
}

/* All are kind and a message is lost now and then: every attempt succeeds, as if none were. */
static void run_kind(const struct world_config *config)
{
	struct world_result r;

	world_run(config, &r);
	print(config, &r);
	assert_int_equal(r.established[0] + r.resolved, config->attempts);
	assert_int_equal(r.established[1], r.established[0]);
	assert_int_equal(timeouts(&r), 0);
	assert_int_equal(r.sent[CM_REJ], 0);
	assert_int_equal(r.events[CM_EVENT_REJ], 0);
}

#define KIND(title, ...)                                                                           \
	TEST(lossy__##title)                                                                       \
	{                                                                                          \
		run_kind(&(struct world_config){                                                   \
			.name = #title, .kind = true, .at_once = 50, __VA_ARGS__});                \
	}

KIND(nothing_lost, .seed = 1, .attempts = ATTEMPTS / 5, .resolutions = 100)
KIND(five_percent, .seed = 2, .attempts = ATTEMPTS, .loss = {50, 50})
KIND(thirty_percent, .seed = 5, .attempts = ATTEMPTS / 5, .loss = {300, 300})
KIND(duplicated_and_reordered, .seed = 3, .attempts = ATTEMPTS, .loss = {50, 50}, .duplicated = 200,
     .resolutions = 100)

/* A repetition that arrives after the end of its connection makes another, which the peer
 * rejects. */
TEST(lossy__very_late)
{
	const struct world_config config = {.name = "2 % late by up to 20 s",
					    .seed = 4,
					    .attempts = ATTEMPTS,
					    .at_once = 50,
					    .loss = {50, 50},
					    .duplicated = 100,
					    .late = 20,
					    .resolutions = 100,
					    .kind = true};
	struct world_result r;

	world_run(&config, &r);
	print(&config, &r);
	assert_int_equal(r.established[0] + r.resolved, config.attempts);
}

/* Owners reject, die, call what does not fit; nothing is left of it all. */
static void run_unkind(const struct world_config *config)
{
	struct world_result r;
	struct world_config c = *config;

	for (c.seed = config->seed; c.seed < config->seed + 5; c.seed++) {
		world_run(&c, &r);
		print(&c, &r);
		assert_true(r.established[0] > 0);
		assert_true(r.established[1] > 0);
	}
}

#define UNKIND(title, ...)                                                                         \
	TEST(lossy__##title)                                                                       \
	{                                                                                          \
		run_unkind(&(struct world_config){.name = #title, __VA_ARGS__});                   \
	}

UNKIND(unkind, .seed = 10, .attempts = ATTEMPTS / 5, .at_once = 50, .loss = {50, 50},
       .duplicated = 50, .late = 10, .resolutions = 100)
/* Stale connections: a QPN comes back while the peer still has its old connection. */
UNKIND(qpns_again, .seed = 20, .attempts = ATTEMPTS / 5, .at_once = 20, .loss = {50, 50},
       .qpns_again = true)
UNKIND(hardly_anything_arrives, .seed = 30, .attempts = ATTEMPTS / 10, .at_once = 50,
       .loss = {600, 600}, .duplicated = 50, .late = 50, .resolutions = 100)
UNKIND(little_room, .seed = 40, .attempts = ATTEMPTS / 5, .at_once = 40, .loss = {50, 50},
       .resolutions = 100, .limits = {.connections = 30, .unanswered = 4})

/* One cannot be heard at all: everything ends by time-outs, and its peer believes what it may. */
TEST(lossy__one_side_is_mute)
{
	const struct world_config config = {.name = "side 1 is not heard",
					    .seed = 50,
					    .attempts = 400,
					    .at_once = 50,
					    .loss = {0, 1000},
					    .resolutions = 100,
					    .kind = true};
	struct world_result r;

	world_run(&config, &r);
	print(&config, &r);
	assert_int_equal(r.established[0] + r.established[1] + r.resolved, 0);
	assert_int_equal(r.events[CM_EVENT_REQ_TIMEOUT] + r.events[CM_EVENT_SIDR_TIMEOUT],
			 config.attempts);
}
