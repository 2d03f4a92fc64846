/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ten thousand connections through a wire that loses, doubles, delays and overtakes, all by a seed:
 * each is established on both ends or failed on both, each that was established ends on both, and
 * nothing is left. Programs take their time, refuse, ask for patience, resolve services, and, in
 * one of the tests, are killed at any moment. A failure prints the seed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "cm/connection.h"

enum { CLIENT, SERVER, SIDES };
enum {
	CONNECTIONS = 10000,
	AT_ONCE = 500,
	MS = 1000000,
	SIDR_OF_100 = 10,
};

/* One end of a connection, and what became of it. */
struct end {
	struct cm_connection *c;
	int side;
	bool asked, established, failed, over, killed, sidr, refuses;
};

enum what { PACKET, ANSWER, RTU, DISCONNECT, KILL };

/* Something that will happen. */
struct happening {
	uint64_t at, order;
	enum what what;
	struct end *end;     /* not PACKET */
	int to;		     /* PACKET */
	struct cm_path path; /* PACKET: as its receiver sees it */
	uint8_t mad[CM_MAD_BYTES];
};

static struct world {
	uint64_t now, order, seed;
	struct cm *cm[SIDES];
	uint64_t random[SIDES];
	struct end end[CONNECTIONS][SIDES];
	struct happening **heap; /* from 1 on */
	unsigned int count, room;
	unsigned int lost, doubled, begun, done;
	unsigned int loss_of_100;
	bool kills;
} w;

static const uint8_t gid[SIDES][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 1},
				       {[10] = 0xff, 0xff, 10, 0, 0, 2}};

static uint32_t any(uint32_t below)
{
	w.seed = w.seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((w.seed >> 32) * below >> 32);
}

static bool before(const struct happening *a, const struct happening *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void later(struct happening *h, uint64_t ns)
{
	unsigned int at = ++w.count;

	if (w.count >= w.room) {
		w.room = w.room ? 2 * w.room : 1024;
		w.heap = realloc(w.heap, w.room * sizeof(struct happening *));
	}
	h->at = w.now + ns;
	h->order = w.order++;
	for (; at > 1 && before(h, w.heap[at / 2]); at /= 2)
		w.heap[at] = w.heap[at / 2];
	w.heap[at] = h;
}

static struct happening *next(void)
{
	struct happening *first = w.heap[1], *last = w.heap[w.count--];
	unsigned int at = 1;

	for (unsigned int child; (child = 2 * at) <= w.count; at = child) {
		if (child < w.count && before(w.heap[child + 1], w.heap[child]))
			child++;
		if (!before(w.heap[child], last))
			break;
		w.heap[at] = w.heap[child];
	}
	w.heap[at] = last;
	return first;
}

static void plan(enum what what, struct end *e, uint64_t ns)
{
	struct happening *h = calloc(1, sizeof(*h));

	h->what = what;
	h->end = e;
	later(h, ns);
}

static struct cm_path path_from(int side)
{
	struct cm_path p = {.hop_limit = 64, .mtu = 3, .ack_timeout = 17, .rate = 3};

	memcpy(p.sgid, gid[side], 16);
	memcpy(p.dgid, gid[!side], 16);
	return p;
}

/* Mostly a millisecond or so; one in twenty much longer than those that follow, yet not longer than
 * packets live: half of an ACK timeout of 17. */
static uint64_t on_the_wire(void)
{
	return any(20) ? 100000 + any(2 * MS) : any(268) * (uint64_t)MS;
}

static void wire_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	int side = *(int *)ctx;
	unsigned int copies = any(100) < w.loss_of_100 ? 0 : any(100) < 3 ? 2 : 1;

	w.lost += !copies;
	w.doubled += copies == 2;
	while (copies--) {
		struct happening *h = calloc(1, sizeof(*h));

		h->what = PACKET;
		h->to = !side;
		h->path = path_from(!side);
		memcpy(h->mad, mad, CM_MAD_BYTES);
		later(h, on_the_wire());
	}
}

static void let_go(struct end *e)
{
	struct cm_connection *c = e->c;

	e->c = NULL;
	e->over = true;
	w.done++;
	cm_release(c, w.now);
}

static void fails(struct end *e)
{
	e->failed = true;
	let_go(e);
}

static void is_established(struct end *e)
{
	e->established = true;
	plan(DISCONNECT, e, any(3) ? any(20000) * (uint64_t)MS : any(50) * (uint64_t)MS);
}

/* Programs wait for the end of time-wait, or do not. */
static void has_ended(struct end *e)
{
	if (any(2))
		let_go(e);
}

static void program_event(void *ctx, void *owner, struct cm_connection *c,
			  const struct cm_event *event)
{
	struct end *e = owner;

	assert_ptr_equal(e->c, c);
	switch (event->type) {
	case CM_EVENT_REP:
		if (!any(10))
			cm_send_mra(c, w.now, 21);
		plan(RTU, e, any(4) ? any(2 * MS) : any(8000) * (uint64_t)MS);
		return;
	case CM_EVENT_RTU:
		is_established(e);
		return;
	case CM_EVENT_REJ:
	case CM_EVENT_REQ_TIMEOUT:
	case CM_EVENT_REP_TIMEOUT:
	case CM_EVENT_SIDR_TIMEOUT:
		fails(e);
		return;
	case CM_EVENT_DREQ:
		e->established = true; /* the RTU may have been lost */
		if (any(4)) {
			cm_send_drep(c, w.now, NULL, 0);
			has_ended(e);
		} else {
			let_go(e);
		}
		return;
	case CM_EVENT_DREP:
	case CM_EVENT_DREQ_TIMEOUT:
		has_ended(e);
		return;
	case CM_EVENT_TIMEWAIT_EXIT:
		let_go(e);
		return;
	case CM_EVENT_SIDR_REP:
		if (event->message->sidr_rep.status != CM_SIDR_VALID) {
			fails(e);
			return;
		}
		e->established = true;
		let_go(e);
		return;
	}
}

static void *program_request(void *ctx, struct cm_connection *c, const struct cm_path *path,
			     const struct cm_message *m, uint16_t *reason)
{
	struct end *e;
	uint32_t number;

	memcpy(&number, m->private_data, sizeof(number));
	assert_true(number < CONNECTIONS);
	e = &w.end[number][SERVER];
	if (e->asked && w.end[number][CLIENT].killed)
		return NULL; /* the REJ that took it back has overtaken a repetition */
	if (e->asked)
		fail_msg("a repetition of request %u came as a new one", number);
	e->asked = true;
	e->c = c;
	e->refuses = !any(20);
	if (!e->sidr && !any(5))
		cm_send_mra(c, w.now, (uint8_t)(21 | (any(2) ? CM_MRA_IF_REPEATED : 0)));
	plan(ANSWER, e, any(4) ? any(10 * MS) : any(12000) * (uint64_t)MS);
	if (w.kills && !any(4))
		plan(KILL, e, any(30000) * (uint64_t)MS);
	return e;
}

static uint64_t program_guid(void *ctx, unsigned int device)
{
	return 1 + (uint64_t) * (int *)ctx;
}

static uint32_t program_random(void *ctx)
{
	return any(UINT32_MAX);
}

static const struct cm_ops ops = {.send = wire_send,
				  .request = program_request,
				  .event = program_event,
				  .guid = program_guid,
				  .random = program_random};

static void begin(uint32_t number)
{
	struct cm_end said = {.qpn = 2 + number, .private_data = &number, .private_bytes = 4};
	struct end *e = &w.end[number][CLIENT];
	struct cm_path path = path_from(CLIENT);

	e->sidr = w.end[number][SERVER].sidr = any(100) < SIDR_OF_100;
	e->side = CLIENT;
	w.end[number][SERVER].side = SERVER;
	e->asked = true;
	e->c = e->sidr ? cm_send_sidr_req(w.cm[CLIENT], w.now, e, &path, 1, &number, 4)
		       : cm_send_req(w.cm[CLIENT], w.now, e, &path, 1, CM_RC, &said);
	assert_non_null(e->c);
	if (w.kills && !any(4))
		plan(KILL, e, any(30000) * (uint64_t)MS);
}

static void answer(struct end *e)
{
	uint32_t number = (uint32_t)((e - &w.end[0][0]) / SIDES);
	struct cm_end said = {.qpn = 2 + number};

	if (e->sidr) {
		cm_send_sidr_rep(e->c, w.now, e->refuses ? CM_SIDR_REJECTED : CM_SIDR_VALID, 5, 6,
				 NULL, 0);
		e->established = !e->refuses;
		e->failed = e->refuses;
		let_go(e);
	} else if (e->refuses) {
		cm_reject(e->c, w.now, CM_REJ_CONSUMER, NULL, 0, "no", 2);
		fails(e);
	} else {
		assert_int_equal(cm_send_rep(e->c, w.now, &said), 0);
	}
}

static void happen(const struct happening *h)
{
	if (h->what == PACKET) {
		cm_receive(w.cm[h->to], w.now, &h->path, h->mad, CM_MAD_BYTES);
		return;
	}
	if (!h->end->c)
		return; /* over since */
	switch (h->what) {
	case ANSWER:
		answer(h->end);
		return;
	case RTU:
		if (cm_send_rtu(h->end->c, w.now, NULL, 0) == 0)
			is_established(h->end);
		return;
	case DISCONNECT:
		if (!any(5))
			let_go(h->end); /* by closing */
		else
			cm_send_dreq(h->end->c, w.now, NULL, 0); /* unless the peer has */
		return;
	case KILL:
		h->end->killed = true;
		let_go(h->end);
		return;
	case PACKET:
		return;
	}
}

static void step_time(void)
{
	uint64_t due = UINT64_MAX;

	for (int side = 0; side < SIDES; side++) {
		uint64_t when = cm_expire(w.cm[side], w.now);

		due = when < due ? when : due;
	}
	if (w.count && w.heap[1]->at <= due) {
		struct happening *h = next();

		w.now = h->at;
		happen(h);
		free(h);
	} else if (due != UINT64_MAX) {
		w.now = due;
	}
}

static bool left(void)
{
	uint32_t connections[SIDES], orphans;

	for (int side = 0; side < SIDES; side++)
		cm_census(w.cm[side], &connections[side], &orphans);
	return w.count || connections[CLIENT] || connections[SERVER];
}

static void check_ends(uint32_t number, uint64_t seed)
{
	const struct end *c = &w.end[number][CLIENT], *s = &w.end[number][SERVER];

	if (!c->over || (s->asked && !s->over))
		fail_msg("seed %ju: connection %u did not end", (uintmax_t)seed, number);
	if (c->killed || s->killed)
		return;
	if (c->established && s->established)
		return;
	if (c->failed && (s->failed || !s->asked))
		return;
	fail_msg("seed %ju: connection %u: client established %d failed %d, server %d %d",
		 (uintmax_t)seed, number, c->established, c->failed, s->established, s->failed);
}

static void run(uint64_t seed, unsigned int loss_of_100, bool kills)
{
	static const int sides[SIDES] = {CLIENT, SERVER};
	unsigned int established = 0;
	uint64_t steps = 0;

	print_message("seed %ju\n", (uintmax_t)seed);
	memset(&w, 0, sizeof(w));
	w.seed = seed;
	w.loss_of_100 = loss_of_100;
	w.kills = kills;
	for (int side = 0; side < SIDES; side++)
		w.cm[side] = cm_create(&ops, (void *)&sides[side], NULL);
	while (w.begun < CONNECTIONS || left()) {
		while (w.begun < CONNECTIONS && w.begun < w.done / SIDES + AT_ONCE)
			begin(w.begun++);
		step_time();
		if (++steps > 100u * CONNECTIONS)
			fail_msg("seed %ju: it does not end", (uintmax_t)seed);
	}
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		check_ends(i, seed);
		established += w.end[i][CLIENT].established && w.end[i][SERVER].established;
	}
	print_message("seed %ju: %u established, %u lost, %u doubled, %ju s of virtual time\n",
		      (uintmax_t)seed, established, w.lost, w.doubled,
		      (uintmax_t)(w.now / (1000 * (uint64_t)MS)));
	for (int side = 0; side < SIDES; side++) {
		assert_true(cm_expire(w.cm[side], w.now) == UINT64_MAX);
		assert_int_equal(cm_counters(w.cm[side])->mad_malformed, 0);
		cm_destroy(w.cm[side]);
	}
	assert_true(established > CONNECTIONS / 4);
	free(w.heap);
}

TEST(loss__of_5_in_100_leaves_nothing_behind)
{
	for (uint64_t seed = 1; seed <= 3; seed++)
		run(seed, 5, false);
}

TEST(loss__of_30_in_100_leaves_nothing_behind)
{
	run(4, 30, false);
}

TEST(loss__and_programs_that_are_killed)
{
	for (uint64_t seed = 5; seed <= 7; seed++)
		run(seed, 5, true);
}
