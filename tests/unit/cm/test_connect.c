/* SPDX-License-Identifier: BSD-3-Clause */
/* The three-way handshake: what each end learns, repetitions, time-outs, MRAs. */
#include "cm_fixture.h"

TEST(connect__both_ends_learn_of_each_other)
{
	struct cm_connection_info at_client, at_server;
	struct cm_connection *c, *s;

	establish(&c, &s);
	cm_connection_info(c, &at_client);
	cm_connection_info(s, &at_server);
	assert_int_equal(at_client.local_id, at_server.remote_id);
	assert_int_equal(at_client.remote_id, at_server.local_id);
	assert_int_equal(at_client.remote_qpn, SERVER_QPN);
	assert_int_equal(at_client.remote_psn, 0x222222);
	assert_int_equal(at_server.remote_qpn, CLIENT_QPN);
	assert_int_equal(at_server.remote_psn, 0x111111);
	assert_int_equal(at_server.responder_resources, 3);
	assert_int_equal(at_server.initiator_depth, 4);
	assert_int_equal(at_client.responder_resources, 5);
	assert_int_equal(at_client.initiator_depth, 2);
	assert_int_equal(at_server.retry_count, 7);
	assert_int_equal(at_server.rnr_retry_count, 6);
	assert_int_equal(at_client.retry_count, 7);
	assert_int_equal(at_client.rnr_retry_count, 1);
	assert_true(at_client.peer_srq);
	assert_false(at_server.peer_srq);
	assert_int_equal(at_server.path.mtu, 3);
	assert_int_equal(at_server.timeout, 17);
	assert_int_equal(at_client.timeout, 17); /* 2^16 twice and the peer's 2^15, rounded */
	assert_memory_equal(server.request.private_data, "hello", 5);
	wind_up(c, s);
}

/* As the capture has it: the answers carry the request's transaction, the DREQ one of its own. */
TEST(connect__transactions_belong_to_exchanges)
{
	struct cm_connection *c, *s;
	struct cm_message req, m;

	c = ask();
	req = take(&client, CM_REQ);
	deliver(&server, &req);
	s = answer();
	m = take(&server, CM_REP);
	assert_true(m.transaction == req.transaction);
	deliver(&client, &m);
	heard(&client, CM_EVENT_REP);
	cm_send_rtu(c, now, NULL, 0);
	m = take(&client, CM_RTU);
	assert_true(m.transaction == req.transaction);
	deliver(&server, &m);
	heard(&server, CM_EVENT_RTU);
	cm_send_dreq(s, now, NULL, 0);
	req = take(&server, CM_DREQ);
	assert_true(m.transaction != req.transaction);
	deliver(&client, &req);
	heard(&client, CM_EVENT_DREQ);
	cm_send_drep(c, now, NULL, 0);
	m = take(&client, CM_DREP);
	assert_true(m.transaction == req.transaction);
	wind_up(c, s);
}

/* max_cm_retries 15: 16 REQs, each 2^20 * 4.096 us after the one before, then the end. */
TEST(cm_12_9_5__req_is_sent_16_times)
{
	struct cm_connection *c = ask();
	struct cm_message first = take(&client, CM_REQ), m;

	for (int i = 1; i < 16; i++) {
		pass(RESPONSE_NS - 1);
		sent_nothing(&client);
		pass(1);
		m = take(&client, CM_REQ);
		assert_memory_equal(&m, &first, sizeof(m));
	}
	pass(RESPONSE_NS - 1);
	heard_nothing(&client);
	pass(1);
	assert_false(heard(&client, CM_EVENT_REQ_TIMEOUT)->has_message);
	m = take(&client, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_TIMEOUT);
	assert_int_equal(m.rej.info_bytes, 8);
	assert_memory_equal(m.rej.info, "\x50\x54\0\0\0\0\0\x01", 8);
	check_state(c, "IDLE");
	assert_int_equal(cm_counters(client.cm)->retry, 15);
	assert_int_equal(cm_counters(client.cm)->timeout, 1);
	wind_up(c, NULL);
}

TEST(req__times_out_after_an_mra_too)
{
	struct cm_connection *c, *s;

	until_mra_of_req(&c, &s);
	for (int i = 0; i < 32 && client.events == client.read; i++)
		pass(((uint64_t)4096 << 24) + RESPONSE_NS);
	heard(&client, CM_EVENT_REQ_TIMEOUT);
	check_state(c, "IDLE");
	client.taken = client.sent;
	wind_up(c, s);
}

TEST(req__repeated_in_timewait_is_stale)
{
	struct cm_connection *c = ask(), *s;
	struct cm_message req = take(&client, CM_REQ), m;

	deliver(&server, &req);
	s = answer_arrives();
	rtu_arrives(c);
	disconnect(c, s);
	deliver(&server, &req);
	m = take(&server, CM_REJ);
	assert_int_equal(m.rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	deliver(&client, &m);
	heard_nothing(&client);
	wind_up(c, s);
}

TEST(rep__without_id_or_qp_is_not_taken)
{
	struct cm_connection *c, *s;
	struct cm_message rep, bad;

	until_req(&c, &s);
	answer();
	rep = take(&server, CM_REP);
	bad = rep;
	bad.rep.qpn = 1;
	deliver(&client, &bad);
	bad = rep;
	bad.local_id = 0;
	deliver(&client, &bad);
	assert_int_equal(cm_counters(client.cm)->mad_malformed, 2);
	check_state(c, "REQ_SENT");
	rep.rep.qpn = 2; /* the first that connects */
	deliver(&client, &rep);
	heard(&client, CM_EVENT_REP);
	wind_up(c, s);
}

TEST(mra__of_req_buys_its_time_once)
{
	uint64_t longer = ((uint64_t)4096 << 24) + RESPONSE_NS;
	struct cm_connection *c, *s;
	struct cm_message m;

	until_req(&c, &s);
	assert_int_equal(cm_send_mra(s, now, 24), 0);
	m = take(&server, CM_MRA);
	assert_int_equal(m.mra.about, CM_ABOUT_REQ);
	assert_int_equal(m.mra.service_timeout, 24);
	deliver(&client, &m);
	check_state(c, "MRA_REQ_RCVD");
	pass(longer - 1);
	deliver(&client, &m); /* a repetition: no more time for it */
	sent_nothing(&client);
	pass(1);
	carry(&client, CM_REQ);
	carry(&server, CM_MRA); /* the REQ again, the MRA again: more time */
	pass(longer - 1);
	sent_nothing(&client);
	answer_arrives();
	wind_up(c, s);
}

/* As kernels do: programs take their time, and who waits patiently need not know. */
TEST(mra__may_wait_for_the_repetition)
{
	struct cm_connection *c, *s;

	until_req(&c, &s);
	assert_int_equal(cm_send_mra(s, now, 24 | CM_MRA_IF_REPEATED), 0);
	check_state(s, "MRA_REQ_SENT");
	sent_nothing(&server);
	pass(RESPONSE_NS);
	carry(&client, CM_REQ);
	carry(&server, CM_MRA);
	check_state(c, "MRA_REQ_RCVD");
	wind_up(c, s);
}

TEST(established__by_data)
{
	struct cm_connection *c, *s;

	until_rep(&c, &s);
	assert_int_equal(cm_established(c, now), -EINVAL);
	assert_int_equal(cm_established(s, now), 0);
	assert_false(heard(&server, CM_EVENT_RTU)->has_message);
	check_state(s, "ESTABLISHED");
	cm_send_rtu(c, now, NULL, 0);
	carry(&client, CM_RTU);
	heard_nothing(&server);
	wind_up(c, s);
}

TEST(established__after_mra_by_data_or_rtu)
{
	struct cm_connection *c, *s;

	until_mra_of_rep(&c, &s);
	cm_established(s, now);
	heard(&server, CM_EVENT_RTU);
	wind_up(c, s);
	until_mra_of_rep(&c, &s);
	rtu_arrives(c);
	check_state(s, "ESTABLISHED");
	wind_up(c, s);
}

/* The peer sets timeout and retries, within limits: nothing waits for hours. */
TEST(rep__waits_as_the_req_says_within_bounds)
{
	static const struct {
		uint8_t said, waits;
	} rows[] = {{0, 8}, {8, 8}, {18, 18}, {22, 22}, {31, 23}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cm_connection *c = ask();
		struct cm_message req = take(&client, CM_REQ);

		req.req.local_timeout = rows[i].said;
		req.req.max_cm_retries = 1;
		deliver(&server, &req);
		answer();
		take(&server, CM_REP);
		cm_release(c, now);
		take(&client, CM_REJ);
		pass(((uint64_t)4096 << rows[i].waits) - 1);
		sent_nothing(&server);
		pass(1);
		take(&server, CM_REP);
		pass((uint64_t)4096 << rows[i].waits);
		heard(&server, CM_EVENT_REP_TIMEOUT);
		wind_up(NULL, server.requested);
	}
}

/* The peer's ACK delay plus the round trip on the wire, rounded as kernels do. */
TEST(connect__ack_timeout_adds_the_peers_delay)
{
	static const struct {
		uint8_t path, delay, timeout;
	} rows[] = {{17, 0, 17},  {17, 15, 17}, {17, 16, 18}, {17, 17, 18}, {17, 18, 19},
		    {17, 19, 19}, {17, 31, 31}, {31, 31, 31}, {31, 30, 31}, {30, 31, 31},
		    {0, 0, 2},	  {0, 1, 2},	{0, 5, 5},    {0, 31, 31}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cm_path path = path_between(&client, &server);
		struct cm_connection_info info;
		struct cm_connection *c;
		struct cm_message rep;

		path.ack_timeout = rows[i].path;
		c = cm_send_req(client.cm, now, &client, &path, SERVICE, CM_RC, &client_end);
		carry(&client, CM_REQ);
		answer();
		rep = take(&server, CM_REP);
		rep.rep.target_ack_delay = rows[i].delay;
		deliver(&client, &rep);
		heard(&client, CM_EVENT_REP);
		cm_connection_info(c, &info);
		assert_int_equal(info.timeout, rows[i].timeout);
		wind_up(c, server.requested);
	}
}

TEST(connect__hop_limits)
{
	static const uint8_t limits[] = {0, 1, 2, 255};
	struct cm_path path = path_between(&client, &server);
	struct cm_path back = path_between(&server, &client);
	struct cm_connection_info info;
	struct cm_connection *c;
	uint8_t mad[CM_MAD_BYTES];
	struct cm_message req;

	for (unsigned int i = 0; i < sizeof(limits); i++) {
		uint8_t hops = path.hop_limit = back.hop_limit = limits[i];

		c = cm_send_req(client.cm, now, &client, &path, SERVICE, CM_RC, &client_end);
		req = take(&client, CM_REQ);
		assert_int_equal(req.req.path.subnet_local, hops <= 1);
		assert_int_equal(req.req.path.hop_limit, hops);
		cm_mad_build(&req, mad);
		cm_receive(server.cm, now, &back, mad, sizeof(mad));
		cm_connection_info(server.requested, &info);
		assert_int_equal(info.path.hop_limit, hops ? hops : 64);
		wind_up(c, server.requested);
	}
}

TEST(connect__times_are_the_limits)
{
	struct cm_connection *c;

	cm_destroy(client.cm);
	cm_destroy(server.cm);
	pair_start(&(struct cm_limits){.response_timeout = 10, .retries = 2});
	c = ask();
	assert_int_equal(take(&client, CM_REQ).req.remote_timeout, 10);
	for (int i = 0; i < 2; i++) {
		pass(4096 << 10);
		assert_int_equal(take(&client, CM_REQ).req.max_cm_retries, 2);
	}
	pass(4096 << 10);
	heard(&client, CM_EVENT_REQ_TIMEOUT);
	wind_up(c, NULL);
}

TEST(connect__calls_out_of_turn_are_refused)
{
	static const char long_data[255];
	struct cm_end long_end = client_end;
	struct cm_path path = path_between(&client, &server);
	struct cm_connection *c, *s;

	long_end.private_data = long_data;
	long_end.private_bytes = (uint8_t)(cm_private_bytes(CM_REQ) + 1);
	assert_fails(cm_send_req(client.cm, now, &client, &path, SERVICE, CM_RC, &long_end),
		     EINVAL);
	until_req(&c, &s);
	assert_int_equal(cm_send_rtu(c, now, NULL, 0), -EINVAL);
	assert_int_equal(cm_send_rep(c, now, &server_end), -EINVAL);
	assert_int_equal(cm_send_mra(c, now, 20), -EINVAL);
	assert_int_equal(cm_send_dreq(c, now, NULL, 0), -EINVAL);
	assert_int_equal(cm_send_drep(c, now, NULL, 0), -EINVAL);
	assert_int_equal(cm_send_sidr_rep(s, now, 0, 0, 0, NULL, 0), -EINVAL);
	long_end.private_bytes = (uint8_t)(cm_private_bytes(CM_REP) + 1);
	assert_int_equal(cm_send_rep(s, now, &long_end), -EINVAL);
	check_state(s, "REQ_RCVD");
	answer_arrives();
	assert_int_equal(cm_send_rep(s, now, &server_end), -EINVAL);
	assert_int_equal(cm_send_rtu(c, now, long_data, 255), -EINVAL);
	rtu_arrives(c);
	assert_int_equal(cm_reject(c, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0), -EINVAL);
	assert_int_equal(cm_established(s, now), -EINVAL);
	check_state(c, "ESTABLISHED");
	wind_up(c, s);
}
