/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The capture of two kernels replayed: each of them in turn is one of our connection managers,
 * which must answer the other's messages as the kernel did. Communication IDs are the sender's own
 * choice, and so is the transaction of what starts an exchange; all else must be the same.
 */
#include "capture.h"
#include "cm_fixture.h"
#include "pipeline/machine.h"

static struct cm_message golden_message[MESSAGES];

static int load(void **state)
{
	return capture_load(golden_message);
}

/* The two kernels' addresses are the fixture's; their GUIDs are not. */
static int start(void **state)
{
	pair_setup(state);
	client.guid = golden_message[REQ].req.guid;
	server.guid = golden_message[REP].rep.guid;
	return 0;
}

/* A message of the capture, in the conversation that we have. */
static struct cm_message captured(unsigned int which, uint32_t local_id, uint32_t remote_id,
				  uint64_t transaction)
{
	struct cm_message m = golden_message[which];

	m.local_id = local_id;
	m.remote_id = remote_id;
	m.transaction = transaction;
	return m;
}

/* s has sent what the kernel sent; IDs and transaction as here. */
static void check_sent(struct side *s, unsigned int which, uint32_t local_id, uint32_t remote_id,
		       uint64_t transaction)
{
	struct cm_message expected = captured(which, local_id, remote_id, transaction);
	struct cm_message m = take(s, golden_message[which].type);
	uint8_t as_sent[CM_MAD_BYTES], as_captured[CM_MAD_BYTES];

	cm_mad_build(&m, as_sent);
	cm_mad_build(&expected, as_captured);
	for (unsigned int i = 0; i < CM_MAD_BYTES; i++)
		if (as_sent[i] != as_captured[i])
			fail_msg("%s: byte %u is %02x, the kernel's %02x", cm_type_name(m.type), i,
				 as_sent[i], as_captured[i]);
}

static struct cm_end end_of_req(void)
{
	const struct cm_req *r = &golden_message[REQ].req;

	return (struct cm_end){.qpn = r->qpn,
			       .psn = r->psn,
			       .qkey = r->qkey,
			       .responder_resources = r->responder_resources,
			       .initiator_depth = r->initiator_depth,
			       .retry_count = r->retry_count,
			       .rnr_retry_count = r->rnr_retry_count,
			       .private_data = golden_message[REQ].private_data,
			       .private_bytes = golden_message[REQ].private_bytes};
}

static struct cm_end end_of_rep(void)
{
	const struct cm_rep *r = &golden_message[REP].rep;

	return (struct cm_end){.qpn = r->qpn,
			       .psn = r->psn,
			       .qkey = r->qkey,
			       .responder_resources = r->responder_resources,
			       .initiator_depth = r->initiator_depth,
			       .rnr_retry_count = r->rnr_retry_count};
}

static uint32_t local_id(const struct cm_connection *c)
{
	struct cm_connection_info info;

	cm_connection_info(c, &info);
	return info.local_id;
}

TEST_WITH(exchange__passive_as_the_kernel, start, pair_teardown)
{
	const uint64_t transaction = golden_message[REQ].transaction;
	const uint32_t theirs = golden_message[REQ].local_id;
	struct cm_end end = end_of_rep();
	struct cm_connection_info info;
	struct cm_connection *c;
	struct cm_message m;
	uint32_t ours;

	deliver(&server, &golden_message[REQ]);
	assert_int_equal(server.requests, 1);
	assert_int_equal(server.request.req.service_id, golden_message[REQ].req.service_id);
	c = server.requested;
	assert_int_equal(cm_send_rep(c, now, &end), 0);
	ours = local_id(c);
	check_sent(&server, REP, ours, theirs, transaction);

	m = captured(RTU, theirs, ours, transaction);
	deliver(&server, &m);
	heard(&server, CM_EVENT_RTU);
	cm_connection_info(c, &info);
	assert_int_equal(info.remote_qpn, golden_message[REQ].req.qpn);
	assert_int_equal(info.remote_psn, golden_message[REQ].req.psn);
	assert_int_equal(info.path.mtu, 3);
	assert_int_equal(info.timeout, 17);
	assert_true(info.retry_count == 7 && info.rnr_retry_count == 7);

	m = captured(DREQ, theirs, ours, transaction);
	deliver(&server, &m);
	heard(&server, CM_EVENT_DREQ);
	assert_int_equal(cm_send_drep(c, now, NULL, 0), 0);
	check_sent(&server, DREP, ours, theirs, transaction);
	wind_up(NULL, c);
}

TEST_WITH(exchange__active_as_the_kernel, start, pair_teardown)
{
	const struct cm_mad_path *p = &golden_message[REQ].req.path;
	const uint32_t theirs = golden_message[REP].local_id;
	struct cm_path path = path_between(&client, &server);
	struct cm_end end = end_of_req();
	struct cm_connection_info info;
	struct cm_connection *c;
	struct cm_message m;
	uint64_t transaction;
	uint32_t ours;

	path.rate = p->rate;
	path.flow_label = p->flow_label;
	c = cm_send_req(client.cm, now, &client, &path, golden_message[REQ].req.service_id, CM_RC,
			&end);
	assert_non_null(c);
	ours = local_id(c);
	assert_int_equal(cm_mad_parse(client.outbox[0], CM_MAD_BYTES, &m), CM_WELL_FORMED);
	transaction = m.transaction;
	check_sent(&client, REQ, ours, 0, transaction);

	m = captured(REP, theirs, ours, transaction);
	deliver(&client, &m);
	heard(&client, CM_EVENT_REP);
	assert_int_equal(cm_send_rtu(c, now, NULL, 0), 0);
	check_sent(&client, RTU, ours, theirs, transaction);
	cm_connection_info(c, &info);
	assert_int_equal(info.remote_qpn, golden_message[REP].rep.qpn);
	assert_int_equal(info.remote_psn, golden_message[REP].rep.psn);
	assert_true(info.retry_count == 7 && info.rnr_retry_count == 7);

	assert_int_equal(cm_send_dreq(c, now, NULL, 0), 0);
	assert_int_equal(cm_mad_parse(client.outbox[client.taken], CM_MAD_BYTES, &m),
			 CM_WELL_FORMED);
	transaction = m.transaction;
	check_sent(&client, DREQ, ours, theirs, transaction);
	m = captured(DREP, theirs, ours, transaction);
	deliver(&client, &m);
	heard(&client, CM_EVENT_DREP);
	pass(TIMEWAIT_NS * 2);
	heard(&client, CM_EVENT_TIMEWAIT_EXIT);
	wind_up(c, NULL);
}

TEST_GROUP(.setup = load);
