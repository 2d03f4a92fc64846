/* SPDX-License-Identifier: BSD-3-Clause */
/* Service ID resolution: answers, repetitions, time-outs, refusals, forgeries. */
#include "cm_fixture.h"

static struct cm_connection *resolve(void)
{
	struct cm_path path = path_between(&client, &server);
	struct cm_connection *c =
		cm_send_sidr_req(client.cm, now, &client, &path, SERVICE, "who", 3);

	assert_non_null(c);
	return c;
}

TEST(sidr__reports_the_qp)
{
	struct cm_connection_info info;
	struct cm_connection *c = resolve();
	struct cm_message m;

	carry(&client, CM_SIDR_REQ);
	assert_int_equal(server.request.sidr_req.pkey, 0xffff);
	assert_true(server.request.sidr_req.service_id == SERVICE);
	assert_memory_equal(server.request.private_data, "who", 4);
	assert_int_equal(
		cm_send_sidr_rep(server.requested, now, CM_SIDR_VALID, SERVER_QPN, 0x1234, "me", 2),
		0);
	carry(&server, CM_SIDR_REP);
	m = heard(&client, CM_EVENT_SIDR_REP)->message;
	assert_int_equal(m.sidr_rep.status, CM_SIDR_VALID);
	assert_int_equal(m.sidr_rep.qpn, SERVER_QPN);
	assert_int_equal(m.sidr_rep.qkey, 0x1234);
	assert_memory_equal(m.private_data, "me", 3);
	check_state(c, "IDLE");
	cm_connection_info(c, &info);
	assert_int_equal(info.remote_qpn, SERVER_QPN);
	assert_int_equal(info.remote_qkey, 0x1234);
	wind_up(c, server.requested);
}

/* The path of the answer has a hop limit, even if the request had none. */
TEST(sidr__hop_limits)
{
	static const uint8_t limits[][2] = {{0, 64}, {5, 5}};

	for (unsigned int i = 0; i < 2; i++) {
		struct cm_path back = path_between(&server, &client);
		struct cm_connection *c = resolve();
		struct cm_message req = take(&client, CM_SIDR_REQ);
		struct cm_connection_info info;
		uint8_t mad[CM_MAD_BYTES];

		back.hop_limit = limits[i][0];
		cm_mad_build(&req, mad);
		cm_receive(server.cm, now, &back, mad, sizeof(mad));
		cm_connection_info(server.requested, &info);
		assert_int_equal(info.path.hop_limit, limits[i][1]);
		wind_up(c, server.requested);
	}
}

TEST(sidr__repeated_is_answered_again)
{
	struct cm_connection *c = resolve();
	struct cm_message req = take(&client, CM_SIDR_REQ), first, again;

	deliver(&server, &req);
	deliver(&server, &req);
	assert_int_equal(server.requests, 1);
	cm_send_sidr_rep(server.requested, now, CM_SIDR_VALID, SERVER_QPN, 1, NULL, 0);
	first = take(&server, CM_SIDR_REP); /* lost */
	cm_release(server.requested, now);
	pass(RESPONSE_NS);
	carry(&client, CM_SIDR_REQ);
	again = take(&server, CM_SIDR_REP);
	assert_memory_equal(&first, &again, sizeof(first));
	assert_int_equal(server.requests, 1);
	deliver(&client, &again);
	heard(&client, CM_EVENT_SIDR_REP);
	deliver(&client, &again);
	heard_nothing(&client);
	wind_up(c, NULL);
}

TEST(sidr__that_nobody_serves_is_refused)
{
	struct cm_connection *c = resolve();
	struct cm_message req = take(&client, CM_SIDR_REQ);

	server.serves = NULL;
	server.reason = 0; /* as if it had been lost */
	deliver(&server, &req);
	sent_nothing(&server);
	assert_int_equal(cm_counters(server.cm)->dropped_full, 1);
	server.reason = 0xffff;
	deliver(&server, &req);
	carry(&server, CM_SIDR_REP);
	assert_int_equal(heard(&client, CM_EVENT_SIDR_REP)->message.sidr_rep.status,
			 CM_SIDR_UNSUPPORTED);
	wind_up(c, NULL);
}

TEST(sidr__release_is_refused_or_forgotten)
{
	struct cm_connection *c = resolve();

	carry(&client, CM_SIDR_REQ);
	cm_release(server.requested, now);
	assert_int_equal(take(&server, CM_SIDR_REP).sidr_rep.status, CM_SIDR_REJECTED);
	cm_release(c, now);
	sent_nothing(&client);
	pass(16 * RESPONSE_NS);
	check_empty();
}

static void release_it(struct side *s, struct cm_connection *c, const struct cm_event *e)
{
	cm_release(c, now);
}

static void refuse_it(struct side *s, struct cm_connection *c)
{
	cm_send_sidr_rep(c, now, CM_SIDR_REJECTED, 0, 0, NULL, 0);
	cm_release(c, now);
}

TEST(sidr__callbacks_may_release)
{
	client.on_event = release_it;
	server.on_request = refuse_it;
	resolve();
	carry(&client, CM_SIDR_REQ);
	carry(&server, CM_SIDR_REP);
	heard(&client, CM_EVENT_SIDR_REP);
	wind_up(NULL, NULL);
	resolve();
	wind_up(NULL, NULL);
}

TEST(sidr__answers_of_others_are_not_taken)
{
	struct cm_connection *c = resolve(), *r;
	struct cm_message rep = {.type = CM_SIDR_REP}, m;

	rep.sidr_rep.request_id = take(&client, CM_SIDR_REQ).sidr_req.request_id;
	deliver_from(&client, elsewhere, &rep);
	deliver_to_device(&client, 1, &rep);
	m = rep;
	m.sidr_rep.request_id ^= 1u << 30;
	deliver(&client, &m);
	r = ask(); /* a connection is no resolution, and the other way round */
	m.sidr_rep.request_id = take(&client, CM_REQ).local_id;
	deliver(&client, &m);
	assert_int_equal(cm_counters(client.cm)->mad_stray, 4);
	check_state(c, "SIDR_REQ_SENT");
	check_state(r, "REQ_SENT");
	m = (struct cm_message){.type = CM_REJ, .remote_id = rep.sidr_rep.request_id};
	deliver(&client, &m);
	m = (struct cm_message){.type = CM_REP, .local_id = 5, .remote_id = m.remote_id};
	m.rep.qpn = SERVER_QPN;
	deliver(&client, &m);
	assert_int_equal(take(&client, CM_REJ).rej.reason, CM_REJ_INVALID_COMM_ID);
	assert_int_equal(cm_counters(client.cm)->mad_stray, 6);
	check_state(c, "SIDR_REQ_SENT");
	cm_release(r, now);
	wind_up(c, NULL);
}

TEST(sidr__calls_out_of_turn_are_refused)
{
	struct cm_path path = path_between(&client, &server);
	struct cm_connection *c;
	static const char data[255];

	assert_fails(cm_send_sidr_req(client.cm, now, &client, &path, SERVICE, data, 255), EINVAL);
	c = resolve();
	carry(&client, CM_SIDR_REQ);
	assert_int_equal(cm_send_sidr_rep(c, now, 0, 0, 0, NULL, 0), -EINVAL);
	assert_int_equal(cm_send_sidr_rep(server.requested, now, 0, 0, 0, data, 255), -EINVAL);
	assert_int_equal(cm_reject(c, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0), -EINVAL);
	assert_int_equal(cm_reject(server.requested, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0),
			 -EINVAL);
	check_state(server.requested, "SIDR_REQ_RCVD");
	wind_up(c, server.requested);
}
