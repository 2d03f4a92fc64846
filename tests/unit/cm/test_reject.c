/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends otherwise: who is refused at once, who is rejected, REJs in each state, stale connections.
 */
#include "cm_fixture.h"

static struct cm_message last_rej;

static uint16_t refused(const struct cm_message *req)
{
	struct cm_message m;

	deliver(&server, req);
	m = last_rej = take(&server, CM_REJ);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	assert_int_equal(m.remote_id, req->local_id);
	assert_true(m.transaction == req->transaction);
	return m.rej.reason;
}

TEST(request__that_cannot_be_served_is_rejected)
{
	struct cm_connection *c = ask();
	struct cm_message req = take(&client, CM_REQ), m;

	m = req;
	m.req.service_type = 2;
	assert_int_equal(refused(&m), CM_REJ_INVALID_TRANSPORT_SERVICE_TYPE);
	assert_int_equal(last_rej.rej.info_bytes, 0);
	m.req.service_type = 3;
	assert_int_equal(refused(&m), CM_REJ_INVALID_TRANSPORT_SERVICE_TYPE);
	m = req;
	m.req.path.local_gid[15]++;
	assert_int_equal(refused(&m), CM_REJ_INVALID_GID);
	assert_int_equal(last_rej.rej.info_bytes, 16); /* the expected value */
	assert_memory_equal(last_rej.rej.info, server.gid, 16);
	m = req;
	m.req.path.remote_gid[15]++;
	assert_int_equal(refused(&m), CM_REJ_INVALID_GID);
	assert_memory_equal(last_rej.rej.info, server.gid, 16);
	m = req;
	m.req.qpn = 1;
	deliver(&server, &m);
	m = req;
	m.local_id = 0;
	deliver(&server, &m);
	assert_int_equal(cm_counters(server.cm)->mad_malformed, 2);
	assert_int_equal(cm_counters(server.cm)->rejected, 4);
	assert_int_equal(server.requests, 0);
	m = req;
	m.req.service_type = CM_UC;
	m.req.qpn = 2; /* the first that connects */
	deliver(&server, &m);
	assert_int_equal(server.requests, 1);
	wind_up(c, server.requested);
}

TEST(request__that_nobody_serves_is_rejected)
{
	struct cm_connection *c = ask();
	struct cm_message req = take(&client, CM_REQ), m;

	server.serves = NULL;
	assert_int_equal(refused(&req), CM_REJ_INVALID_SERVICE_ID);
	server.reason = CM_REJ_NO_RESOURCES;
	deliver(&server, &req);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_NO_RESOURCES);
	server.reason = 0; /* as if it had been lost */
	deliver(&server, &req);
	sent_nothing(&server);
	assert_int_equal(cm_counters(server.cm)->dropped_full, 1);
	deliver(&client, &m);
	assert_int_equal(heard(&client, CM_EVENT_REJ)->message.rej.reason, CM_REJ_NO_RESOURCES);
	wind_up(c, NULL);
}

static void release_it(struct side *s, struct cm_connection *c)
{
	cm_release(c, now);
}

static void accept_it(struct side *s, struct cm_connection *c)
{
	assert_int_equal(cm_send_rep(c, now, &server_end), 0);
}

static void reject_it(struct side *s, struct cm_connection *c)
{
	assert_int_equal(cm_reject(c, now, CM_REJ_CONSUMER, NULL, 0, "no", 2), 0);
}

static void reject_and_release_it(struct side *s, struct cm_connection *c)
{
	reject_it(s, c);
	cm_release(c, now);
}

static void accept_and_release_it(struct side *s, struct cm_connection *c)
{
	accept_it(s, c);
	cm_release(c, now);
}

/* Within request(), which then reports that there is no listener. */
TEST(request__may_be_answered_at_once)
{
	static const struct {
		void (*what)(struct side *s, struct cm_connection *c);
		bool serves;
		enum cm_type sent, then; /* 0: nothing */
	} rows[] = {
		{release_it, true, CM_REJ, 0},
		{reject_it, false, CM_REJ, 0},
		{reject_and_release_it, true, CM_REJ, 0},
		{accept_it, true, CM_REP, 0},
		{accept_it, false, CM_REP, CM_REJ},
		{accept_and_release_it, true, CM_REP, CM_REJ},
		{accept_and_release_it, false, CM_REP, CM_REJ},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t before = cm_counters(server.cm)->rejected;
		struct cm_connection *c = ask();
		uint32_t connections, orphans;

		server.on_request = rows[i].what;
		server.serves = rows[i].serves ? &server : NULL;
		carry(&client, CM_REQ);
		carry(&server, rows[i].sent);
		heard(&client, rows[i].sent == CM_REJ ? CM_EVENT_REJ : CM_EVENT_REP);
		if (rows[i].then)
			assert_int_equal(take(&server, rows[i].then).rej.reason, CM_REJ_CONSUMER);
		sent_nothing(&server);
		assert_int_equal(cm_counters(server.cm)->rejected - before,
				 rows[i].sent == CM_REJ || rows[i].then == CM_REJ);
		cm_census(server.cm, &connections, &orphans);
		assert_int_equal(connections, 1); /* the last message may have to be repeated */
		assert_int_equal(orphans, rows[i].what != accept_it || !rows[i].serves);
		wind_up(c, orphans ? NULL : server.requested);
	}
}

static void release_client(struct side *s, struct cm_connection *c, const struct cm_event *e)
{
	cm_release(c, now);
}

/* In each event, of its own connection: nothing touches it afterwards (run it under ASan). */
TEST(event__may_release)
{
	struct cm_connection *c, *s;

	client.on_event = server.on_event = release_client;
	until_req(&c, &s);
	answer_arrives();
	carry(&client, CM_REJ);
	heard(&server, CM_EVENT_REJ);
	wind_up(NULL, NULL);

	until_req(&c, &s);
	client.on_event = NULL;
	answer_arrives();
	rtu_arrives(c);
	client.on_event = release_client;
	carry(&server, CM_DREQ);
	heard(&client, CM_EVENT_DREQ);
	carry(&client, CM_DREP);
	wind_up(NULL, NULL);

	c = ask();
	pass_all_lost(); /* CM_EVENT_REQ_TIMEOUT */
	check_empty();
	until_req(&c, &s);
	answer();
	cm_release(c, now);
	pass_all_lost(); /* CM_EVENT_REP_TIMEOUT */
	check_empty();
	client.on_event = server.on_event = NULL;
	establish(&c, &s);
	cm_send_dreq(c, now, NULL, 0);
	client.on_event = release_client;
	pass_all_lost(); /* CM_EVENT_DREQ_TIMEOUT */
	cm_release(s, now);
	pass_all_lost();
	check_empty();
	client.on_event = NULL;
	establish(&c, &s);
	disconnect(c, s);
	client.on_event = server.on_event = release_client;
	pass_all_lost(); /* CM_EVENT_TIMEWAIT_EXIT */
	check_empty();
	client.on_event = NULL;
	until_rep(&c, &s);
	assert_int_equal(cm_established(s, now), 0);
	heard(&server, CM_EVENT_RTU);
	wind_up(c, NULL);
}

/* The owner's rejection arrives, and answers repetitions until the peer must have received it. */
TEST(reject__of_req_is_kept)
{
	struct cm_connection *c = ask();
	struct cm_message req = take(&client, CM_REQ), m;

	deliver(&server, &req);
	assert_int_equal(cm_reject(server.requested, now, CM_REJ_CONSUMER, "info", 4, "no", 2), 0);
	take(&server, CM_REJ); /* lost */
	cm_release(server.requested, now);
	pass(RESPONSE_NS);
	carry(&client, CM_REQ);
	assert_int_equal(server.requests, 1);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	assert_memory_equal(m.rej.info, "info", 4);
	assert_memory_equal(m.private_data, "no", 3);
	deliver(&client, &m);
	heard(&client, CM_EVENT_REJ);
	check_state(c, "IDLE");
	m = req;
	m.req.psn++; /* the same ID, but another request */
	assert_int_equal(refused(&m), CM_REJ_STALE_CONNECTION);
	cm_release(c, now);
	pass(15 * RESPONSE_NS - 1);
	deliver(&server, &req); /* the last that may come */
	take(&server, CM_REJ);
	pass(1);
	check_empty();
	deliver(&server, &req); /* and then it would be a new one */
	assert_int_equal(server.requests, 2);
	wind_up(NULL, server.requested);
}

/* How long the server keeps its rejection after what it did with the REQ before. */
static void kept_for(uint8_t mra, bool repeated, uint64_t ns)
{
	struct cm_connection *c = ask();
	struct cm_message req = take(&client, CM_REQ);
	uint32_t connections, orphans;

	deliver(&server, &req);
	if (mra)
		cm_send_mra(server.requested, now, mra);
	if (repeated)
		deliver(&server, &req);
	cm_release(server.requested, now);
	cm_release(c, now);
	client.taken = client.sent = server.taken = server.sent = 0;
	pass(ns - 1);
	cm_census(server.cm, &connections, &orphans);
	assert_int_equal(orphans, 1);
	pass(1);
	check_empty();
}

/* A side that got an MRA repeats its REQ that much later. */
TEST(reject__is_kept_as_long_as_the_peer_is_patient)
{
	uint64_t usual = 16 * RESPONSE_NS;

	kept_for(0, false, usual);
	kept_for(0, true, usual);
	kept_for(20, false, usual + RESPONSE_NS);
	kept_for(20 | CM_MRA_IF_REPEATED, false, usual);
	kept_for(20 | CM_MRA_IF_REPEATED, true, usual + RESPONSE_NS);
	kept_for(25, false, (uint64_t)4096 << 25); /* bounded */
}

/* The same of a REP: the one that is repeated is the server's. */
static void kept_by_client_for(uint8_t mra, bool repeated, uint64_t ns)
{
	struct cm_connection *c, *s;
	struct cm_message rep;
	uint32_t connections, orphans;

	until_req(&c, &s);
	answer();
	rep = take(&server, CM_REP);
	deliver(&client, &rep);
	heard(&client, CM_EVENT_REP);
	if (mra)
		cm_send_mra(c, now, mra);
	if (repeated)
		deliver(&client, &rep);
	cm_release(c, now);
	cm_release(s, now);
	client.taken = client.sent = server.taken = server.sent = 0;
	pass(ns - 1);
	server.taken = server.sent = 0;
	cm_census(client.cm, &connections, &orphans);
	assert_int_equal(orphans, 1);
	pass(1);
	cm_census(client.cm, &connections, &orphans);
	assert_int_equal(orphans, 0);
	server.taken = server.sent = 0;
	wind_up(NULL, NULL);
}

TEST(reject__of_rep_is_kept_as_long_too)
{
	uint64_t usual = 16 * RESPONSE_NS;

	kept_by_client_for(0, false, usual);
	kept_by_client_for(0, true, usual);
	kept_by_client_for(20 | CM_MRA_IF_REPEATED, false, usual);
	kept_by_client_for(20 | CM_MRA_IF_REPEATED, true, usual + RESPONSE_NS);
}

TEST(reject__of_rep_is_kept)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	until_rep(&c, &s);
	assert_int_equal(cm_reject(c, now, CM_REJ_CONSUMER, NULL, 0, "no", 2), 0);
	assert_int_equal(cm_counters(client.cm)->rejected, 0); /* that counts requests */
	take(&client, CM_REJ);
	check_state(c, "TIMEWAIT");
	pass(RESPONSE_NS);
	carry(&server, CM_REP);
	m = take(&client, CM_REJ);
	assert_int_equal(m.rej.about, CM_ABOUT_REP);
	assert_memory_equal(m.private_data, "no", 3);
	deliver(&server, &m);
	heard(&server, CM_EVENT_REJ);
	check_state(s, "IDLE");
	pass(16 * RESPONSE_NS);
	heard_nothing(&client); /* it knows that it is over */
	check_state(c, "IDLE");
	wind_up(c, s);
}

/* The peer may be established already, and would never ask again. */
TEST(reject__after_rep_is_repeated_unasked)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	until_rep(&c, &s);
	cm_send_rtu(c, now, NULL, 0);
	take(&client, CM_RTU); /* lost */
	assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0), 0);
	take(&server, CM_REJ); /* lost */
	pass(RESPONSE_NS);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.about, CM_ABOUT_OTHER);
	deliver(&client, &m);
	heard(&client, CM_EVENT_REJ);
	check_state(c, "TIMEWAIT");
	pass(RESPONSE_NS);
	heard(&client, CM_EVENT_TIMEWAIT_EXIT);
	deliver(&client, &m); /* nothing happens any more */
	take(&server, CM_REJ);
	pass(RESPONSE_NS);
	take(&server, CM_REJ);
	pass(16 * RESPONSE_NS - 1);
	sent_nothing(&server);
	check_state(s, "TIMEWAIT");
	pass(1);
	check_state(s, "IDLE");
	wind_up(c, s);
}

/* An RTU, a REQ or a DREQ for what was rejected after the REP: the REJ again. */
TEST(reject__after_rep_answers_what_comes)
{
	struct cm_connection *c = ask(), *s;
	struct cm_message req = take(&client, CM_REQ), m;

	deliver(&server, &req);
	s = answer_arrives();
	cm_release(s, now);
	take(&server, CM_REJ);
	deliver(&server, &req);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	cm_send_rtu(c, now, NULL, 0);
	carry(&client, CM_RTU);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.about, CM_ABOUT_OTHER);
	cm_send_dreq(c, now, NULL, 0);
	carry(&client, CM_DREQ);
	carry(&server, CM_REJ);
	heard(&client, CM_EVENT_REJ);
	check_state(c, "TIMEWAIT");
	wind_up(c, NULL);
}

/* A side that withdraws its REQ does not know our ID: its GUID identifies the request. */
TEST(rej__timeout_finds_the_request_by_guid)
{
	struct cm_connection *c, *s;
	struct cm_message m, bad;

	until_req(&c, &s);
	cm_release(c, now);
	m = take(&client, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_TIMEOUT);
	assert_int_equal(m.remote_id, 0);
	bad = m;
	bad.rej.info[7]++;
	deliver(&server, &bad);
	bad = m;
	bad.rej.info_bytes = 0;
	deliver(&server, &bad);
	bad = m;
	bad.local_id++;
	deliver(&server, &bad);
	bad = m;
	bad.rej.reason = CM_REJ_CONSUMER; /* the GUID is for time-outs alone */
	deliver(&server, &bad);
	assert_int_equal(cm_counters(server.cm)->mad_stray, 4);
	check_state(s, "REQ_RCVD");
	deliver(&server, &m);
	heard(&server, CM_EVENT_REJ);
	check_state(s, "IDLE");
	wind_up(NULL, s);
}

/* A part of a GUID is none. */
TEST(rej__timeout_needs_the_whole_guid)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	client.guid = 0x5054000000000100;
	until_req(&c, &s);
	cm_release(c, now);
	m = take(&client, CM_REJ);
	m.rej.info_bytes = 7;
	deliver(&server, &m);
	check_state(s, "REQ_RCVD");
	m.rej.info_bytes = 8;
	deliver(&server, &m);
	heard(&server, CM_EVENT_REJ);
	wind_up(NULL, s);
}

/* If it names the connection, that is the one, whatever GUID it has. */
TEST(rej__timeout_of_the_rep_names_the_request)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	for (uint8_t bytes = 0; bytes <= 8; bytes += 8) {
		until_rep(&c, &s);
		m = message_of(&server, s, CM_REJ);
		m.rej.about = CM_ABOUT_OTHER;
		m.rej.reason = CM_REJ_TIMEOUT;
		m.rej.info_bytes = bytes;
		deliver(&client, &m);
		heard(&client, CM_EVENT_REJ);
		wind_up(c, s);
	}
}

TEST(reject__calls_out_of_turn_are_refused)
{
	static const uint8_t bytes[255];
	struct cm_connection *c, *s;

	until_req(&c, &s);
	assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, bytes, 73, NULL, 0), -EINVAL);
	assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, NULL, 0, bytes, 149), -EINVAL);
	check_state(s, "REQ_RCVD");
	assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, bytes, 72, bytes, 148), 0);
	carry(&server, CM_REJ);
	assert_int_equal(heard(&client, CM_EVENT_REJ)->message.rej.info_bytes, 72);
	assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0), -EINVAL);
	check_state(c, "IDLE");
	assert_int_equal(cm_reject(c, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0), -EINVAL);
	wind_up(c, s);
}

TEST(rej__forged_changes_nothing)
{
	struct cm_connection *c, *s;
	struct cm_message m, forged;

	establish(&c, &s);
	m = message_of(&client, c, CM_REJ);
	m.rej.about = CM_ABOUT_OTHER;
	m.rej.reason = CM_REJ_CONSUMER;
	for (unsigned int bit = 0; bit < 64; bit++) {
		forged = m;
		forged.local_id ^= (uint32_t)(1ull << bit);
		forged.remote_id ^= (uint32_t)(1ull << bit >> 32);
		deliver(&server, &forged);
	}
	deliver_from(&server, elsewhere, &m);
	forged = m;
	forged.local_id = 0;
	forged.rej.about = CM_ABOUT_REQ;
	deliver(&server, &forged);
	check_state(s, "ESTABLISHED");
	assert_int_equal(cm_counters(server.cm)->mad_stray, 66);
	sent_nothing(&server);
	wind_up(c, s);
}

/* 12.9.8.3.1: the peer has forgotten the connection that its QP had. */
TEST(cm_12_9_8__req_of_a_connected_qp_is_stale)
{
	struct cm_connection *c, *s, *c2;
	struct cm_message req, forged;

	establish(&c, &s);
	c2 = ask();
	req = take(&client, CM_REQ);
	forged = req; /* its GUID and QPN from elsewhere: another peer */
	memcpy(forged.req.path.local_gid, elsewhere, sizeof(elsewhere));
	deliver_from(&server, elsewhere, &forged);
	check_state(s, "ESTABLISHED");
	assert_int_equal(server.requests, 2);
	cm_release(server.requested, now);
	take(&server, CM_REJ);

	assert_int_equal(refused(&req), CM_REJ_STALE_CONNECTION);
	assert_int_equal(cm_counters(server.cm)->stale, 1);
	assert_int_equal(server.requests, 2);
	check_state(s, "DREQ_SENT");
	carry(&server, CM_DREQ);
	heard(&client, CM_EVENT_DREQ);
	cm_send_drep(c, now, NULL, 0);
	carry(&client, CM_DREP);
	heard(&server, CM_EVENT_DREP);
	deliver(&server, &req); /* now it may */
	assert_int_equal(server.requests, 3);
	cm_release(server.requested, now);
	cm_release(c2, now);
	wind_up(c, s);
}

TEST(stale__rep_of_a_connected_qp)
{
	struct cm_connection *c, *s, *c2;
	struct cm_message req, rep, m;

	establish(&c, &s);
	c2 = ask();
	req = take(&client, CM_REQ);
	rep = message_of(&server, s, CM_REP);
	rep.local_id++; /* the peer has another connection for the same QP */
	rep.remote_id = req.local_id;
	rep.rep.qpn = SERVER_QPN;
	rep.rep.guid = server.guid;
	deliver(&client, &rep);
	m = take(&client, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(m.rej.about, CM_ABOUT_REP);
	check_state(c2, "REQ_SENT");
	check_state(c, "DREQ_SENT");
	take(&client, CM_DREQ);
	cm_release(c2, now);
	wind_up(c, s);
}

TEST(request__with_the_id_of_another_is_rejected)
{
	struct cm_connection *c = ask(), *s;
	struct cm_message req = take(&client, CM_REQ), m;

	deliver(&server, &req);
	s = server.requested;
	m = req;
	m.req.qpn++;
	assert_int_equal(refused(&m), CM_REJ_DUPLICATE_LOCAL_COMM_ID);
	check_state(s, "REQ_RCVD");
	wind_up(c, s);
}

/* A quarter of the limit; rejections beyond it are not kept, and the state is over at once. */
TEST(reject__kept_ones_are_bounded)
{
	static void (*const until[])(struct cm_connection * *c, struct cm_connection * *s) = {
		until_req, until_mra_of_req, until_rep, until_mra_of_rep};

	struct cm_connection *c, *s, *victim;

	for (unsigned int i = 0; i < 8; i++) {
		struct side *side = i & 1 ? &client : &server;

		cm_destroy(client.cm);
		cm_destroy(server.cm);
		pair_start(&(struct cm_limits){.connections = 3});
		until[i / 2](&c, &s);
		victim = i & 1 ? c : s;
		assert_int_equal(cm_reject(victim, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0), 0);
		take(side, CM_REJ);
		check_state(victim, "IDLE");
		wind_up(c, s);
	}
	server.on_request = release_it;
	victim = ask();
	carry(&client, CM_REQ);
	take(&server, CM_REJ);
	cm_release(victim, now);
	take(&client, CM_REJ);
	check_empty();
}

/* One that is over makes room for the next. */
TEST(reject__kept_ones_go)
{
	struct cm_connection *c, *s;

	cm_destroy(client.cm);
	cm_destroy(server.cm);
	pair_start(&(struct cm_limits){.connections = 4});
	for (int i = 0; i < 3; i++) {
		until_req(&c, &s);
		assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0), 0);
		check_state(s, "TIMEWAIT");
		wind_up(c, s);
	}
}
