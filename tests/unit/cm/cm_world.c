/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire, the clock and the end: see cm_world.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_world_priv.h"
#include "xorshift.h"

struct world world;

void world_fail(const char *what)
{
	fail_msg("%s, seed %llu, at %llu us: %s", world.config->name,
		 (unsigned long long)world.config->seed, (unsigned long long)(world.now / US),
		 what);
	abort(); /* does not come here */
}

uint64_t world_random(void)
{
	return xorshift(&world.random);
}

uint32_t below(uint32_t n)
{
	return xorshift_below(&world.random, n);
}

bool per_mille(unsigned int n)
{
	return below(1000) < n;
}

struct cm_path world_path(unsigned int from)
{
	struct cm_path p = {.hop_limit = 64, .mtu = 3, .ack_timeout = 14, .rate = 3};

	memcpy(p.sgid, (uint8_t[16]){[10] = 0xff, 0xff, 10, 222, 0, (uint8_t)(1 + from)}, 16);
	memcpy(p.dgid, (uint8_t[16]){[10] = 0xff, 0xff, 10, 222, 0, (uint8_t)(2 - from)}, 16);
	return p;
}

/* A message sets off; a second time, if the dice say so. */
static void set_off(unsigned int to, const uint8_t mad[CM_MAD_BYTES])
{
	uint64_t delay = 10 * US + below(200) * US;
	struct packet *p = world.packets;

	if (per_mille(world.config->late))
		delay += below(20000) * (uint64_t)MS;
	while (p < world.packets + PACKETS && p->due != NEVER)
		p++;
	if (p == world.packets + world.packets_used && world.packets_used < PACKETS)
		world.packets_used++;
	if (p == world.packets + PACKETS && world.config->forged)
		return; /* forgers fill the wire */
	if (p == world.packets + PACKETS)
		world_fail("more messages on their way than there is room for");
	p->due = world.now + delay;
	p->to = to;
	p->path = world_path(to);
	p->path.mtu = p->path.ack_timeout = p->path.rate = 0;
	memcpy(p->mad, mad, CM_MAD_BYTES);
}

static void world_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	unsigned int from = ctx == &world.cm[1];
	struct packet *seen = &world.seen[world.seen_count++ % SEEN];
	struct cm_path expected = world_path(from);
	struct cm_message m;

	if (cm_mad_parse(mad, CM_MAD_BYTES, &m) != CM_WELL_FORMED)
		world_fail("a malformed message was sent");
	world.sent++;
	world.result->sent[m.type]++;
	memcpy(seen->mad, mad, CM_MAD_BYTES);
	seen->to = !from;
	if (memcmp(path->dgid, expected.dgid, sizeof(path->dgid)))
		return; /* an answer to a forger */
	if (!per_mille(world.config->loss[from]))
		set_off(!from, mad);
	if (per_mille(world.config->duplicated))
		set_off(!from, mad);
}

static uint64_t world_guid(void *ctx, unsigned int device)
{
	return 0x5054000000000000u + device + (ctx == &world.cm[1] ? 2 : 1);
}

static uint32_t world_ids(void *ctx)
{
	return (uint32_t)(world_random() >> 32);
}

static const struct cm_ops world_ops = {.send = world_send,
					.request = owner_request,
					.event = owner_event,
					.guid = world_guid,
					.random = world_ids};

static void deliver(void)
{
	unsigned int i;

	for (i = 0; i < world.packets_used; i++) {
		struct packet *p = &world.packets[i];

		if (p->due > world.now)
			continue;
		p->due = NEVER;
		cm_receive(world.cm[p->to], world.now, &p->path, p->mad, CM_MAD_BYTES);
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void watch(void)
{
	uint32_t connections, orphans;
	unsigned int side;

	for (side = 0; side < SIDES; side++) {
		cm_census(world.cm[side], &connections, &orphans);
		if (connections > world.result->connections_most)
			world.result->connections_most = connections;
		if (connections > world.config->limits.connections &&
		    world.config->limits.connections)
			world_fail("more connections than the limit");
		if (orphans > connections)
			world_fail("more orphans than connections");
	}
}

/* Everything that is due now, once. */
static void turn(unsigned int *started)
{
	const struct world_config *config = world.config;

	deliver();
	while (*started < config->attempts && world.open < config->at_once &&
	       owner_start(*started & 1))
		++*started;
	owners_act();
	while (world.open && per_mille(config->forged))
		forge();
	cm_expire(world.cm[0], world.now);
	cm_expire(world.cm[1], world.now);
	watch();
}

static uint64_t next_due(void)
{
	uint64_t next = owners_due();
	unsigned int i;

	for (i = 0; i < world.packets_used; i++)
		next = earlier(next, world.packets[i].due);
	for (i = 0; i < SIDES; i++)
		next = earlier(next, cm_expire(world.cm[i], world.now));
	return next;
}

static void check_end(void)
{
	uint32_t connections, orphans;
	unsigned int side, i;

	for (i = 0; i < world.owner_count; i++)
		if (world.owners[i].live)
			owner_fail(&world.owners[i], "waits, and nothing will happen any more");
	for (side = 0; side < SIDES; side++) {
		cm_census(world.cm[side], &connections, &orphans);
		if (connections || orphans)
			world_fail("a connection is left, and nothing will happen any more");
		world.result->counters[side] = *cm_counters(world.cm[side]);
	}
}

void world_run(const struct world_config *config, struct world_result *result)
{
	unsigned int started = 0, side, i;
	uint64_t next;

	memset(&world, 0, sizeof(world));
	memset(result, 0, sizeof(*result));
	world.config = config;
	world.result = result;
	world.random = config->seed * 2 + 1;
	world.now = SECOND;
	world.next_qpn = 2;
	world.owner_count = config->at_once * 8;
	world.owners = calloc(world.owner_count, sizeof(*world.owners));
	assert_non_null(world.owners);
	for (i = 0; i < PACKETS; i++)
		world.packets[i].due = NEVER;
	for (side = 0; side < SIDES; side++) {
		world.cm[side] = cm_create(&world_ops, &world.cm[side], &config->limits);
		assert_non_null(world.cm[side]);
	}
	do {
		turn(&started);
		next = next_due();
		world.now = next == NEVER || next <= world.now ? world.now + 1 : next;
	} while (next != NEVER || started < config->attempts);
	check_end();
	result->seconds = world.now / SECOND;
	for (side = 0; side < SIDES; side++)
		cm_destroy(world.cm[side]);
	free(world.owners);
}
