/* SPDX-License-Identifier: BSD-3-Clause */
/* The three-way handshake, its repetitions, its time-outs, and what is refused. */
#include <errno.h>
#include <string.h>
#include "cm_fixture.h"

static void connect__both_ends_learn_of_each_other(void **state)
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

static void connect__req_is_as_the_capture_has_it(void **state)
{
	struct cm_connection *c = ask();
	struct cm_message m = take(&client, CM_REQ);

	assert_int_equal(m.req.remote_timeout, 0x14);
	assert_int_equal(m.req.local_timeout, 0x14);
	assert_int_equal(m.req.max_cm_retries, 15);
	assert_int_equal(m.req.pkey, 0xffff);
	assert_int_equal(m.req.path.local_lid, 0xffff);
	assert_int_equal(m.req.path.hop_limit, 64);
	assert_false(m.req.path.subnet_local);
	assert_int_equal(m.req.path.ack_timeout, 17);
	assert_true(m.req.guid == client.guid && m.req.service_id == SERVICE);
	assert_int_equal(m.remote_id, 0);
	wind_up(c, NULL);
}

static const struct CMUnitTest tests[] = {
	PAIR_TEST(connect__both_ends_learn_of_each_other),
	PAIR_TEST(connect__req_is_as_the_capture_has_it),
};

int main(void)
{
	return cmocka_run_group_tests_name("cm connect", tests, NULL, NULL);
}
