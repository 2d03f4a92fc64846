/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program is killed at each step of the handshake: its side releases the connection, and the
 * other gets the event that a kernel's peer would get, within the standard's times, even if the
 * first message about it is lost; and nothing is left on either side.
 */
#include "cm_fixture.h"

enum step {
	REQ_ON_ITS_WAY,
	REQ_ARRIVED,
	MRA_OF_REQ,
	REP_ON_ITS_WAY,
	REP_ARRIVED,
	MRA_OF_REP,
	RTU_ON_ITS_WAY,
	ESTABLISHED,
	DREQ_ON_ITS_WAY,
	DREQ_ARRIVED,
	DREP_ON_ITS_WAY,
	STEPS
};

/* Both ends as they are after that many steps; what is on its way is in the outbox. */
static void walk(enum step step, struct cm_connection **c, struct cm_connection **s)
{
	*c = ask();
	*s = NULL;
	if (step == REQ_ON_ITS_WAY)
		return;
	carry(&client, CM_REQ);
	*s = server.requested;
	if (step == REQ_ARRIVED)
		return;
	if (step == MRA_OF_REQ) {
		cm_send_mra(*s, now, 20);
		carry(&server, CM_MRA);
		return;
	}
	answer();
	if (step == REP_ON_ITS_WAY)
		return;
	carry(&server, CM_REP);
	heard(&client, CM_EVENT_REP);
	if (step == REP_ARRIVED)
		return;
	if (step == MRA_OF_REP) {
		cm_send_mra(*c, now, 20);
		carry(&client, CM_MRA);
		return;
	}
	cm_send_rtu(*c, now, NULL, 0);
	if (step == RTU_ON_ITS_WAY)
		return;
	carry(&client, CM_RTU);
	heard(&server, CM_EVENT_RTU);
	if (step == ESTABLISHED)
		return;
	cm_send_dreq(*c, now, NULL, 0);
	if (step == DREQ_ON_ITS_WAY)
		return;
	carry(&client, CM_DREQ);
	heard(&server, CM_EVENT_DREQ);
	if (step == DREQ_ARRIVED)
		return;
	cm_send_drep(*s, now, NULL, 0);
}

/* All that is in the outboxes is carried, owners answer as programs do, time passes to `until`. */
static void live(uint64_t until)
{
	for (;;) {
		uint64_t a = cm_expire(client.cm, now), b = cm_expire(server.cm, now);

		for (struct side *s = &client;; s = &server) {
			while (s->taken < s->sent) {
				struct cm_message m;

				cm_mad_parse(s->outbox[s->taken++], CM_MAD_BYTES, &m);
				deliver(other(s), &m);
			}
			if (s == &server)
				break;
		}
		if (client.taken < client.sent)
			continue;
		a = a < b ? a : b;
		if (a > until)
			return;
		now = a > now ? a : now;
	}
}

static void rtu_when_rep(struct side *s, struct cm_connection *c, const struct cm_event *e)
{
	if (e->type == CM_EVENT_REP)
		cm_send_rtu(c, now, NULL, 0);
	else if (e->type == CM_EVENT_DREQ)
		cm_send_drep(c, now, NULL, 0);
}

struct row {
	enum step step;
	bool client_dies;
	enum cm_event_type told; /* the survivor's first event */
	bool anything;		 /* it is over already, or there was no request: no event is due */
	unsigned int responses;	 /* at the latest after that many response times, if one is lost */
};

static const struct row rows[] = {
	{REQ_ON_ITS_WAY, true, CM_EVENT_REJ, true, 0},
	{REQ_ARRIVED, true, CM_EVENT_REJ, false, 0},
	{REQ_ARRIVED, false, CM_EVENT_REJ, false, 1},
	{MRA_OF_REQ, true, CM_EVENT_REJ, false, 0},
	{MRA_OF_REQ, false, CM_EVENT_REJ, false, 2},
	{REP_ON_ITS_WAY, true, CM_EVENT_REJ, false, 1},
	{REP_ON_ITS_WAY, false, CM_EVENT_REJ, false, 1},
	{REP_ARRIVED, true, CM_EVENT_REJ, false, 1},
	{REP_ARRIVED, false, CM_EVENT_REJ, false, 1},
	{MRA_OF_REP, true, CM_EVENT_REJ, false, 2},
	{MRA_OF_REP, false, CM_EVENT_REJ, false, 1},
	{RTU_ON_ITS_WAY, true, CM_EVENT_DREQ, false, 1},
	{RTU_ON_ITS_WAY, false, CM_EVENT_REJ, false, 1},
	{ESTABLISHED, true, CM_EVENT_DREQ, false, 1},
	{ESTABLISHED, false, CM_EVENT_DREQ, false, 1},
	{DREQ_ON_ITS_WAY, true, CM_EVENT_DREQ, false, 1},
	{DREQ_ON_ITS_WAY, false, CM_EVENT_DREQ, false, 1},
	{DREQ_ARRIVED, true, CM_EVENT_TIMEWAIT_EXIT, false, 1},
	{DREQ_ARRIVED, false, CM_EVENT_DREP, false, 1},
	{DREP_ON_ITS_WAY, true, CM_EVENT_TIMEWAIT_EXIT, false, 1},
	{DREP_ON_ITS_WAY, false, CM_EVENT_DREP, false, 1},
};

/* The survivor's event for a message that was in flight. */
static bool progress(enum cm_event_type type)
{
	return type == CM_EVENT_REP || type == CM_EVENT_RTU;
}

/* lost: all that was on its way when the program died, and what its side says first. A program that
 * takes its REQ back says so once, and only the next message of the survivor is answered. */
static void kill_at(const struct row *row, bool lost)
{
	struct cm_connection *c, *s, *survivor;
	struct side *side;
	uint64_t until = now + (row->responses + 1) * RESPONSE_NS + TIMEWAIT_NS;

	walk(row->step, &c, &s);
	client.on_event = server.on_event = rtu_when_rep;
	side = row->client_dies ? &server : &client;
	survivor = row->client_dies ? s : c;
	cm_release(row->client_dies ? c : s, now);
	if (lost) {
		client.taken = client.sent;
		server.taken = server.sent;
	}
	if (row->step == DREQ_ARRIVED && row->client_dies)
		cm_send_drep(s, now, NULL, 0);
	live(until);
	if (!row->anything) {
		if (side->events == side->read)
			fail_msg("step %d, %s dies%s: nothing was told", row->step,
				 row->client_dies ? "client" : "server", lost ? ", lost" : "");
		while (progress(side->told[side->read % TOLD].type) &&
		       side->read + 1 < side->events)
			side->read++;
		heard(side, row->told);
	}
	if (survivor)
		cm_release(survivor, now);
	else if (server.requests)
		cm_release(server.requested, now);
	live(UINT64_MAX - 1);
	check_empty();
	side->read = side->events;
}

TEST(kill__at_each_step)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cm_destroy(client.cm);
		cm_destroy(server.cm);
		pair_start(NULL);
		kill_at(&rows[i], false);
	}
}

TEST(kill__at_each_step_and_the_first_word_is_lost)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* The server's program has not answered yet: only its answer will show it. */
		if (rows[i].client_dies && rows[i].step <= MRA_OF_REQ)
			continue;
		cm_destroy(client.cm);
		cm_destroy(server.cm);
		pair_start(NULL);
		kill_at(&rows[i], true);
	}
}

/* cm_release() in each state, as kernels do it. */
TEST(release__says_what_kernels_say)
{
	static const struct {
		enum step step;
		bool client;
		enum cm_type type;
		uint16_t reason;
		uint8_t about;
	} says[] = {
		{REQ_ON_ITS_WAY, true, CM_REJ, CM_REJ_TIMEOUT, CM_ABOUT_OTHER},
		{MRA_OF_REQ, true, CM_REJ, CM_REJ_TIMEOUT, CM_ABOUT_OTHER},
		{REQ_ARRIVED, false, CM_REJ, CM_REJ_CONSUMER, CM_ABOUT_REQ},
		{MRA_OF_REQ, false, CM_REJ, CM_REJ_CONSUMER, CM_ABOUT_REQ},
		{REP_ARRIVED, true, CM_REJ, CM_REJ_CONSUMER, CM_ABOUT_REP},
		{MRA_OF_REP, true, CM_REJ, CM_REJ_CONSUMER, CM_ABOUT_REP},
		{REP_ARRIVED, false, CM_REJ, CM_REJ_CONSUMER, CM_ABOUT_OTHER},
		{MRA_OF_REP, false, CM_REJ, CM_REJ_CONSUMER, CM_ABOUT_OTHER},
		{ESTABLISHED, true, CM_DREQ, 0, 0},
		{DREQ_ARRIVED, false, CM_DREP, 0, 0},
	};

	for (unsigned int i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
		struct side *side = says[i].client ? &client : &server;
		struct cm_connection *c, *s;
		struct cm_message m;

		walk(says[i].step, &c, &s);
		client.taken = client.sent;
		server.taken = server.sent;
		cm_release(says[i].client ? c : s, now);
		m = take(side, says[i].type);
		if (says[i].type == CM_REJ) {
			assert_int_equal(m.rej.reason, says[i].reason);
			assert_int_equal(m.rej.about, says[i].about);
		}
		sent_nothing(side);
		wind_up(says[i].client ? NULL : c, says[i].client ? s : NULL);
	}
}
