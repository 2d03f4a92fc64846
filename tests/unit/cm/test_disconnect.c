/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends in good order: DREQ and DREP, their repetitions and time-outs, time-wait; LAP. */
#include "cm_fixture.h"

TEST(disconnect__both_wait_and_are_over)
{
	struct cm_connection *c, *s;

	establish(&c, &s);
	assert_int_equal(cm_send_dreq(c, now, "bye", 3), 0);
	carry(&client, CM_DREQ);
	assert_memory_equal(heard(&server, CM_EVENT_DREQ)->message.private_data, "bye", 4);
	check_state(s, "DREQ_RCVD");
	assert_int_equal(cm_send_drep(s, now, "so long", 7), 0);
	check_state(s, "TIMEWAIT");
	carry(&server, CM_DREP);
	assert_memory_equal(heard(&client, CM_EVENT_DREP)->message.private_data, "so long", 8);
	check_state(c, "TIMEWAIT");
	pass((TIMEWAIT_NS >> 1) - 1); /* 4.096 us * 2^17, both ends' ACK timeout */
	heard_nothing(&client);
	heard_nothing(&server);
	pass(1);
	heard(&client, CM_EVENT_TIMEWAIT_EXIT);
	heard(&server, CM_EVENT_TIMEWAIT_EXIT);
	check_state(c, "IDLE");
	cm_release(c, now);
	cm_release(s, now);
	check_empty();
}

/* 12.9.8.4: also when the connection is long forgotten. */
TEST(dreq__repeated_is_answered_again)
{
	struct cm_connection *c, *s;
	struct cm_message dreq, drep, m;

	establish(&c, &s);
	cm_send_dreq(c, now, NULL, 0);
	dreq = take(&client, CM_DREQ);
	deliver(&server, &dreq);
	heard(&server, CM_EVENT_DREQ);
	deliver(&server, &dreq);
	heard_nothing(&server);
	sent_nothing(&server); /* its owner has not answered yet */
	assert_int_equal(cm_send_drep(s, now, "x", 255), -EINVAL);
	cm_send_drep(s, now, "x", 1);
	drep = take(&server, CM_DREP);
	deliver(&server, &dreq);
	m = take(&server, CM_DREP);
	assert_memory_equal(&m, &drep, sizeof(m));
	cm_release(s, now);
	deliver(&server, &dreq);
	m = take(&server, CM_DREP);
	assert_memory_equal(&m, &drep, sizeof(m));
	pass(TIMEWAIT_NS);
	deliver(&server, &dreq);
	m = take(&server, CM_DREP);
	assert_int_equal(m.local_id, drep.local_id);
	assert_int_equal(m.remote_id, drep.remote_id);
	assert_true(m.transaction == drep.transaction);
	deliver(&client, &m);
	heard(&client, CM_EVENT_DREP);
	wind_up(c, NULL);
}

TEST(disconnect__private_data_may_be_so_long)
{
	static const uint8_t data[256];
	struct cm_connection *c, *s;

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
}

TEST(disconnect__both_at_once)
{
	struct cm_connection *c, *s;

	establish(&c, &s);
	cm_send_dreq(c, now, NULL, 0);
	cm_send_dreq(s, now, NULL, 0);
	carry(&client, CM_DREQ);
	carry(&server, CM_DREQ);
	heard(&client, CM_EVENT_DREQ);
	heard(&server, CM_EVENT_DREQ);
	cm_send_drep(c, now, NULL, 0);
	carry(&client, CM_DREP); /* before the server's owner has answered */
	heard(&server, CM_EVENT_DREP);
	check_state(s, "TIMEWAIT");
	assert_int_equal(cm_send_drep(s, now, NULL, 0), -EINVAL);
	wind_up(c, s);
}

TEST(disconnect__both_release_at_once)
{
	struct cm_connection *c, *s;

	establish(&c, &s);
	cm_release(c, now);
	cm_release(s, now);
	carry(&client, CM_DREQ);
	carry(&server, CM_DREQ);
	carry(&client, CM_DREP);
	carry(&server, CM_DREP);
	pass(TIMEWAIT_NS);
	check_empty();
}

TEST(drep__unasked_is_not_taken)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	establish(&c, &s);
	m = message_of(&server, s, CM_DREP);
	deliver(&client, &m);
	check_state(c, "ESTABLISHED");
	m.remote_id++;
	deliver(&client, &m);
	assert_int_equal(cm_counters(client.cm)->mad_stray, 1);
	wind_up(c, s);
}

/* Attempts of a stranger who does not see the wire: each number is right except one. */
TEST(dreq__forged_changes_nothing)
{
	struct cm_connection *c, *s;
	struct cm_message m, forged;

	establish(&c, &s);
	m = message_of(&client, c, CM_DREQ);
	m.dreq.remote_qpn = SERVER_QPN;
	forged = m;
	forged.dreq.remote_qpn++;
	deliver(&server, &forged);
	sent_nothing(&server);
	forged = m;
	forged.local_id++;
	deliver(&server, &forged);
	take(&server, CM_DREP);
	forged = m;
	forged.remote_id ^= 1u << 31;
	deliver(&server, &forged);
	take(&server, CM_DREP);
	deliver_from(&server, elsewhere, &m);
	take(&server, CM_DREP);
	deliver_to_device(&server, 1, &m);
	take(&server, CM_DREP);
	check_state(s, "ESTABLISHED");
	assert_int_equal(cm_counters(server.cm)->mad_stray, 5);
	deliver(&server, &m);
	heard(&server, CM_EVENT_DREQ);
	wind_up(c, s);
}

/* Ended connections and service ID resolutions cannot be disconnected. */
TEST(dreq__of_no_connection_is_answered)
{
	struct cm_path path = path_between(&client, &server);
	struct cm_connection *c, *s;
	struct cm_message m;

	until_req(&c, &s);
	answer();
	take(&server, CM_REP);
	m = message_of(&client, c, CM_REJ);
	m.remote_id = message_of(&server, s, CM_REJ).local_id;
	m.rej.about = CM_ABOUT_OTHER;
	m.rej.reason = CM_REJ_CONSUMER;
	deliver(&server, &m);
	heard(&server, CM_EVENT_REJ);
	check_state(s, "IDLE");
	m.type = CM_DREQ;
	m.dreq.remote_qpn = SERVER_QPN;
	deliver(&server, &m);
	take(&server, CM_DREP);
	wind_up(c, s);

	c = cm_send_sidr_req(client.cm, now, &client, &path, SERVICE, NULL, 0);
	carry(&client, CM_SIDR_REQ);
	s = server.requested;
	cm_send_sidr_rep(s, now, 0, SERVER_QPN, 0, NULL, 0);
	take(&server, CM_SIDR_REP);
	m = message_of(&server, s, CM_DREQ);
	m = (struct cm_message){.type = CM_DREQ, .local_id = m.remote_id, .remote_id = m.local_id};
	deliver(&server, &m);
	take(&server, CM_DREP);
	wind_up(c, s);
}

/* An ACK timeout of 31 would keep a connection for two hours. */
TEST(timewait__is_bounded)
{
	static const struct {
		uint8_t said, waits;
	} rows[] = {{0, 17}, {1, 1}, {18, 18}, {31, 21}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cm_connection *c = ask(), *s;
		struct cm_message req = take(&client, CM_REQ), m;

		req.req.path.ack_timeout = rows[i].said;
		deliver(&server, &req);
		s = answer();
		take(&server, CM_REP);
		m = message_of(&client, c, CM_RTU);
		m.remote_id = message_of(&server, s, CM_RTU).local_id;
		deliver(&server, &m);
		heard(&server, CM_EVENT_RTU);
		m.type = CM_DREQ;
		m.dreq.remote_qpn = SERVER_QPN;
		deliver(&server, &m);
		heard(&server, CM_EVENT_DREQ);
		cm_release(c, now);
		take(&client, CM_REJ);
		cm_send_drep(s, now, NULL, 0);
		take(&server, CM_DREP);
		pass(((uint64_t)4096 << rows[i].waits) - 1);
		heard_nothing(&server);
		pass(1);
		heard(&server, CM_EVENT_TIMEWAIT_EXIT);
		cm_release(s, now);
		check_empty();
	}
}

TEST(lap__is_refused)
{
	struct cm_connection *c, *s;
	struct cm_message m;

	until_rep(&c, &s);
	m = message_of(&client, c, CM_LAP);
	deliver(&server, &m); /* too early */
	assert_int_equal(take(&server, CM_APR).apr.status, CM_APR_INVALID_COMM_ID);
	wind_up(c, s);
	establish(&c, &s);
	m = message_of(&client, c, CM_LAP);
	deliver(&server, &m);
	m = take(&server, CM_APR);
	assert_int_equal(m.apr.status, CM_APR_UNSUPPORTED);
	deliver(&client, &m); /* none was requested */
	assert_int_equal(cm_counters(client.cm)->mad_stray, 1);
	m = message_of(&client, c, CM_LAP);
	m.remote_id++;
	assert_int_equal(cm_counters(server.cm)->mad_stray, 0);
	deliver(&server, &m);
	assert_int_equal(cm_counters(server.cm)->mad_stray, 1);
	assert_int_equal(take(&server, CM_APR).apr.status, CM_APR_INVALID_COMM_ID);
	check_state(c, "ESTABLISHED");
	check_state(s, "ESTABLISHED");
	wind_up(c, s);
}
