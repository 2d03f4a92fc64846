/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the exchanges do at the borders of their conditions: each case was found by breaking one
 * that no other test noticed (tests/mutation).
 */
#include <errno.h>
#include <string.h>
#include "cm_fixture.h"

/* As a kernel adds them: the larger exponent, one more if the other is less than two below. */
TEST(timeout__of_ack_delay_and_path)
{
	static const uint8_t rows[][3] = {{15, 17, 17}, {16, 17, 18}, {17, 17, 18}, {17, 16, 18},
					  {17, 15, 17}, {0, 0, 2},    {1, 0, 2},    {30, 31, 31},
					  {31, 31, 31}, {31, 30, 31}, {31, 0, 31}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cm_path path = path_between(&client, &server);
		struct cm_connection_info info;
		struct cm_connection *c;
		struct cm_message m = {.type = CM_REP};

		path.ack_timeout = rows[i][1];
		c = cm_send_req(client.cm, now, &client, &path, SERVICE, CM_RC, &client_end);
		assert_non_null(c);
		take(&client, CM_REQ);
		cm_connection_info(c, &info);
		m.local_id = 77 + i;
		m.remote_id = info.local_id;
		m.rep.qpn = 100 + i;
		m.rep.target_ack_delay = rows[i][0];
		deliver(&client, &m);
		heard(&client, CM_EVENT_REP);
		cm_connection_info(c, &info);
		assert_int_equal(info.timeout, rows[i][2]);
		wind_up(c, NULL);
	}
}

/* A path of one hop, or of none, stays in the subnet. */
TEST(req__of_a_near_peer)
{
	static const uint8_t hops[][2] = {{0, 1}, {1, 1}, {2, 0}, {255, 0}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(hops) / sizeof(hops[0]); i++) {
		struct cm_path path = path_between(&client, &server);
		struct cm_connection *c;
		struct cm_message m;

		path.hop_limit = hops[i][0];
		c = cm_send_req(client.cm, now, &client, &path, SERVICE, CM_RC, &client_end);
		m = take(&client, CM_REQ);
		assert_int_equal(m.req.path.subnet_local, hops[i][1]);
		assert_int_equal(m.req.path.hop_limit, hops[i][0]);
		wind_up(c, NULL);
	}
}

/* QPs 0 and 1 are nobody's to connect; 2 is the first. */
TEST(qpn__the_first_that_connects)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	(void)state;
	c = ask();
	m = take(&client, CM_REQ);
	m.req.qpn = 2;
	deliver(&server, &m);
	assert_int_equal(server.requests, 1);
	s = answer();
	m = take(&server, CM_REP);
	m.rep.qpn = 1;
	deliver(&client, &m);
	heard_nothing(&client);
	assert_int_equal(cm_counters(client.cm)->mad_malformed, 1);
	m.rep.qpn = 2;
	deliver(&client, &m);
	heard(&client, CM_EVENT_REP);
	wind_up(c, s);
}

/* What was sent last is sent again, if it answers; while the owner thinks, nothing is. */
TEST(repeated__rep)
{
	struct cm_connection *c, *s;
	struct cm_message rep, m;

	(void)state;
	c = ask();
	carry(&client, CM_REQ);
	s = answer();
	rep = take(&server, CM_REP);
	deliver(&client, &rep);
	heard(&client, CM_EVENT_REP);
	deliver(&client, &rep);
	sent_nothing(&client);
	assert_int_equal(cm_send_mra(c, now, 20), 0);
	take(&client, CM_MRA);
	deliver(&client, &rep);
	m = take(&client, CM_MRA);
	assert_int_equal(m.mra.about, CM_ABOUT_REP);
	assert_int_equal(cm_send_rtu(c, now, NULL, 0), 0);
	take(&client, CM_RTU);
	deliver(&client, &rep);
	take(&client, CM_RTU);
	assert_int_equal(cm_send_dreq(c, now, NULL, 0), 0);
	take(&client, CM_DREQ);
	deliver(&client, &rep);
	sent_nothing(&client);
	wind_up(c, s);
}

TEST(repeated__req)
{
	struct cm_connection *c = ask(), *s;
	struct cm_message req = take(&client, CM_REQ), m;

	(void)state;
	deliver(&server, &req);
	deliver(&server, &req);
	sent_nothing(&server);
	s = server.requested;
	assert_int_equal(cm_send_mra(s, now, 20), 0);
	take(&server, CM_MRA);
	deliver(&server, &req);
	m = take(&server, CM_MRA);
	assert_int_equal(m.mra.about, CM_ABOUT_REQ);
	answer();
	take(&server, CM_REP);
	deliver(&server, &req);
	take(&server, CM_REP);
	assert_int_equal(server.requests, 1);
	wind_up(c, s);
}

/* REP and RTU go one way each: the other side's are about no connection. */
TEST(role__of_the_other_side)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	(void)state;
	establish(&c, &s);
	m = message_of(&client, c, CM_REP);
	m.rep.qpn = 99;
	deliver(&server, &m);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_INVALID_COMM_ID);
	assert_int_equal(m.rej.about, CM_ABOUT_REP);
	assert_int_equal(cm_counters(server.cm)->rejected, 0); /* no request was */
	m = message_of(&server, s, CM_RTU);
	deliver(&client, &m);
	assert_int_equal(cm_counters(server.cm)->mad_stray, 1);
	assert_int_equal(cm_counters(client.cm)->mad_stray, 1);
	assert_int_equal(cm_counters(client.cm)->duplicate, 0);
	wind_up(c, s);
}

/* A REQ between other GIDs than those of its IP header: the REJ says which would be right. */
TEST(refused__gid_and_service_type)
{
	struct cm_connection *c = ask();
	struct cm_message req = take(&client, CM_REQ), m = req;

	(void)state;
	m.req.path.remote_gid[15] ^= 1;
	deliver(&server, &m);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_INVALID_GID);
	assert_int_equal(m.rej.info_bytes, 16);
	assert_memory_equal(m.rej.info, server.gid, 16);
	m = req;
	m.req.service_type = 2; /* RD */
	deliver(&server, &m);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_INVALID_TRANSPORT_SERVICE_TYPE);
	assert_int_equal(m.rej.info_bytes, 0);
	assert_int_equal(m.rej.info[0], 0);
	assert_int_equal(cm_counters(server.cm)->rejected, 2);
	assert_int_equal(server.requests, 0);
	wind_up(c, NULL);
}

/* An MRA must be about what its receiver waits for. */
TEST(mra__about_something_else)
{
	struct cm_connection *c = ask();
	struct cm_message req = take(&client, CM_REQ), m;

	(void)state;
	deliver(&server, &req);
	m = message_of(&server, server.requested, CM_MRA);
	m.mra.service_timeout = 24;
	m.mra.about = CM_ABOUT_OTHER;
	deliver(&client, &m);
	check_state(c, "REQ_SENT");
	m.mra.about = CM_ABOUT_REP;
	deliver(&client, &m);
	check_state(c, "REQ_SENT");
	assert_int_equal(cm_counters(client.cm)->duplicate, 2);
	m.mra.about = CM_ABOUT_REQ;
	deliver(&client, &m);
	check_state(c, "MRA_REQ_RCVD");
	wind_up(c, server.requested);
}

/* An alternate path can be refused to an established connection only. */
TEST(lap__before_it_is_established)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	(void)state;
	until_rep(&c, &s);
	m = message_of(&server, s, CM_LAP);
	deliver(&client, &m);
	m = take(&client, CM_APR);
	assert_int_equal(m.apr.status, CM_APR_INVALID_COMM_ID);
	assert_int_equal(cm_counters(client.cm)->mad_stray, 0);
	m = message_of(&server, s, CM_LAP);
	m.remote_id ^= 1 << 30;
	deliver(&client, &m);
	m = take(&client, CM_APR);
	assert_int_equal(m.apr.status, CM_APR_INVALID_COMM_ID);
	assert_int_equal(cm_counters(client.cm)->mad_stray, 1);
	wind_up(c, s);
}

TEST(private__too_long)
{
	static const uint8_t data[256];
	struct cm_connection *c, *s;
	struct cm_message m;

	(void)state;
	establish(&c, &s);
	assert_int_equal(cm_send_dreq(c, now, data, 221), -EINVAL);
	check_state(c, "ESTABLISHED");
	assert_int_equal(cm_send_dreq(c, now, data, 220), 0);
	carry(&client, CM_DREQ);
	heard(&server, CM_EVENT_DREQ);
	assert_int_equal(cm_send_drep(s, now, data, 225), -EINVAL);
	check_state(s, "DREQ_RCVD");
	assert_int_equal(cm_send_drep(s, now, data, 224), 0);
	carry(&server, CM_DREP);
	heard(&client, CM_EVENT_DREP);
	wind_up(c, s);

	until_req(&c, &s);
	assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, data, 73, NULL, 0), -EINVAL);
	assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, data, 72, data, 149), -EINVAL);
	check_state(s, "REQ_RCVD");
	sent_nothing(&server);
	assert_int_equal(cm_reject(s, now, CM_REJ_CONSUMER, data, 72, data, 148), 0);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.info_bytes, 72);
	assert_int_equal(cm_counters(server.cm)->rejected, 1);
	wind_up(c, s);
}

/* Only requests that we reject are counted as such, not answers. */
TEST(rejected__counts_requests)
{
	struct cm_connection *c, *s;

	(void)state;
	until_rep(&c, &s);
	assert_int_equal(cm_reject(c, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0), 0);
	carry(&client, CM_REJ);
	heard(&server, CM_EVENT_REJ);
	assert_int_equal(cm_counters(client.cm)->rejected, 0);
	wind_up(c, s);
}

/* The path to answer on has a hop limit, even if what came did not say one. */
static void answered_within(bool sidr, uint8_t hops, uint8_t limit)
{
	struct cm_path path = path_between(&client, &server);
	struct cm_connection *c =
		sidr ? cm_send_sidr_req(client.cm, now, &client, &path, SERVICE, "who", 3) : ask();
	struct cm_message m = take(&client, sidr ? CM_SIDR_REQ : CM_REQ);
	struct cm_connection_info info;
	uint8_t mad[CM_MAD_BYTES];

	path = path_between(&server, &client);
	path.hop_limit = hops;
	cm_mad_build(&m, mad);
	cm_receive(server.cm, now, &path, mad, sizeof(mad));
	cm_connection_info(server.requested, &info);
	assert_int_equal(info.path.hop_limit, limit);
	wind_up(c, server.requested);
}

TEST(hop_limit__of_an_answer)
{
	(void)state;
	for (unsigned int sidr = 0; sidr < 2; sidr++) {
		answered_within(sidr, 0, 64);
		answered_within(sidr, 5, 5);
	}
}

/* A message at another device is about none of this one's connections. */
TEST(device__is_part_of_the_name)
{
	struct cm_path path = path_between(&client, &server);
	struct cm_connection *c, *s;
	struct cm_message m;
	uint8_t mad[CM_MAD_BYTES];

	(void)state;
	c = ask();
	carry(&client, CM_REQ);
	s = answer();
	m = take(&server, CM_REP);
	path.device = 1;
	cm_mad_build(&m, mad);
	cm_receive(client.cm, now, &path, mad, sizeof(mad));
	take(&client, CM_REJ);
	heard_nothing(&client);
	assert_int_equal(cm_counters(client.cm)->mad_stray, 1);
	deliver(&client, &m);
	heard(&client, CM_EVENT_REP);
	wind_up(c, s);
}

static void rep_and_let_go(struct side *s, struct cm_connection *c)
{
	assert_int_equal(cm_send_rep(c, now, &server_end), 0);
	cm_release(c, now);
}

static void rep_only(struct side *s, struct cm_connection *c)
{
	(void)s;
	assert_int_equal(cm_send_rep(c, now, &server_end), 0);
}

/* Answered in request() by somebody who then does not want it, in both ways to say so. */
TEST(request__answered_and_left)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct cm_connection *c = ask();
		uint32_t connections, orphans;
		struct cm_message m;

		server.serves = NULL;
		server.on_request = i ? rep_and_let_go : rep_only;
		carry(&client, CM_REQ);
		take(&server, CM_REP);
		m = take(&server, CM_REJ);
		assert_int_equal(m.rej.reason, CM_REJ_CONSUMER);
		cm_census(server.cm, &connections, &orphans);
		assert_int_equal(connections, 1); /* it repeats the REJ */
		assert_int_equal(orphans, 1);
		wind_up(c, NULL);
	}
}

/* Who was only asked for patience is not answered yet. */
TEST(unanswered__with_mra)
{
	const struct cm_limits limits = {.unanswered = 1};
	struct cm_connection *c, *other_c, *s;
	struct cm_message m;

	(void)state;
	cm_destroy(client.cm);
	cm_destroy(server.cm);
	pair_start(&limits);
	c = ask();
	carry(&client, CM_REQ);
	s = server.requested;
	assert_int_equal(cm_send_mra(s, now, 20), 0);
	take(&server, CM_MRA);
	other_c = ask();
	m = take(&client, CM_REQ);
	m.req.qpn++;
	deliver(&server, &m);
	sent_nothing(&server);
	assert_int_equal(server.requests, 1);
	assert_int_equal(cm_counters(server.cm)->dropped_full, 1);
	cm_release(other_c, now);
	wind_up(c, s);
}

/* A peer that never heard of our ID gives its own and its GUID; that is for time-outs alone. */
TEST(rej__without_our_id)
{
	struct cm_connection *c, *s;
	struct cm_message m;
	uint64_t guid = __builtin_bswap64(client.guid);

	(void)state;
	until_req(&c, &s);
	m = message_of(&client, c, CM_REJ);
	m.rej.reason = CM_REJ_CONSUMER;
	m.rej.info_bytes = 8;
	memcpy(m.rej.info, &guid, 8);
	deliver(&server, &m);
	m.rej.reason = CM_REJ_TIMEOUT;
	m.rej.info_bytes = 7;
	deliver(&server, &m);
	heard_nothing(&server);
	assert_int_equal(cm_counters(server.cm)->mad_stray, 2);
	m.rej.info_bytes = 8;
	deliver(&server, &m);
	heard(&server, CM_EVENT_REJ);
	wind_up(c, s);

	until_req(&c, &s); /* with our ID it need not say who it is */
	m = message_of(&client, c, CM_REJ);
	m.remote_id = message_of(&server, s, CM_REJ).local_id;
	m.rej.reason = CM_REJ_TIMEOUT;
	deliver(&server, &m);
	heard(&server, CM_EVENT_REJ);
	wind_up(c, s);
}

/* The ID of a SIDR_REQ is no connection's. */
TEST(sidr__is_no_connection)
{
	struct cm_path path = path_between(&client, &server);
	struct cm_connection *c;
	struct cm_message m;

	(void)state;
	c = cm_send_sidr_req(client.cm, now, &client, &path, SERVICE, NULL, 0);
	take(&client, CM_SIDR_REQ);
	m = (struct cm_message){.type = CM_REP,
				.local_id = 5,
				.remote_id = message_of(&client, c, CM_REP).local_id};
	m.rep.qpn = 99;
	deliver(&client, &m);
	assert_int_equal(take(&client, CM_REJ).rej.reason, CM_REJ_INVALID_COMM_ID);
	m.type = CM_REJ;
	memset(&m.rej, 0, sizeof(m.rej));
	m.rej.reason = CM_REJ_CONSUMER;
	deliver(&client, &m);
	heard_nothing(&client);
	check_state(c, "SIDR_REQ_SENT");
	assert_int_equal(cm_counters(client.cm)->mad_stray, 2);
	wind_up(c, NULL);
}
