/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The capture of rping on two kernels, with our services in place of each kernel in turn and the
 * commands that librdmacm writes for rping: the messages that come of them are the kernel's, but
 * for what each chooses itself (communication IDs, transactions, PSNs) and the port's speed. The
 * addresses are the fixture's.
 */
#include "capture.h"
#include "service_fixture.h"

enum { CLIENT_PORT = 0xbe39, SERVER_PORT = 7174, CLIENT_QPN = 0x99, SERVER_QPN = 0xe2 };
enum { CLIENT, SERVER };

static struct cm_message golden_message[MESSAGES];

/* The capture, among the fixture's nodes. */
static int load(void **state)
{
	struct cm_message *req = &golden_message[REQ];
	struct cm_ip_addressing ip;

	if (capture_load(golden_message) || cm_ip_parse(req->private_data, &ip))
		return -1;
	gid_of(1, 0, GID_V4, req->req.path.local_gid);
	gid_of(2, 0, GID_V4, req->req.path.remote_gid);
	memcpy(ip.source, req->req.path.local_gid, 16);
	memcpy(ip.destination, req->req.path.remote_gid, 16);
	cm_ip_build(&ip, req->private_data);
	req->req.guid = 0x0200000000000000;
	golden_message[REP].rep.guid = 0x0200000000000010;
	return 0;
}

/* Takes out what each side chooses itself. */
static void level(struct cm_message *m)
{
	if (m->type == CM_REQ) {
		m->req.psn = 0;
		m->req.path.rate = 0;
	}
	if (m->type == CM_REP)
		m->rep.psn = 0;
}

/* The one message that a node has sent since `sent`; IDs and transaction are as here, all else as
 * in the capture. */
static struct cm_message check_sent(unsigned int n, unsigned int *sent, unsigned int which,
				    uint32_t local, uint32_t remote)
{
	struct cm_message expected = golden_message[which], m, as_sent;
	uint8_t a[CM_MAD_BYTES], b[CM_MAD_BYTES];
	unsigned int i;

	assert_int_equal(node[n].sent, *sent + 1);
	*sent = node[n].sent;
	assert_int_equal(cm_mad_parse(node[n].last, CM_MAD_BYTES, &m), CM_WELL_FORMED);
	as_sent = m;
	expected.local_id = local ? local : m.local_id;
	expected.remote_id = remote;
	expected.transaction = m.transaction;
	level(&expected);
	level(&m);
	cm_mad_build(&expected, a);
	cm_mad_build(&m, b);
	for (i = 0; i < CM_MAD_BYTES; i++)
		if (a[i] != b[i])
			fail_msg("%s: byte %u is %02x, the kernel's %02x", cm_type_name(m.type), i,
				 b[i], a[i]);
	return as_sent;
}

/* A node hears what the other's kernel said, as part of this conversation. */
static void hear(unsigned int n, unsigned int which, uint32_t local, uint32_t remote,
		 uint64_t transaction)
{
	struct cm_message m = golden_message[which];
	struct cm_path path = {.hop_limit = 64};
	uint8_t mad[CM_MAD_BYTES];

	m.local_id = local;
	m.remote_id = remote;
	m.transaction = transaction;
	gid_of(n + 1, 0, GID_V4, path.sgid);
	gid_of(2 - n, 0, GID_V4, path.dgid);
	cm_mad_build(&m, mad);
	cm_service_receive(node[n].s, now, &path, mad, sizeof(mad));
	turn(&node[n]);
}

/* As rping says it to librdmacm. */
static struct rdma_ucm_conn_param param(uint32_t qpn)
{
	return (struct rdma_ucm_conn_param){.qp_num = qpn,
					    .responder_resources = 1,
					    .initiator_depth = 1,
					    .retry_count = 7,
					    .rnr_retry_count = 7,
					    .valid = 1};
}

TEST_WITH(capture__client_as_the_kernel, services_setup, services_teardown)
{
	const uint32_t theirs = golden_message[REP].local_id;
	struct end c = {.ch = open_channel(CLIENT)};
	struct rdma_ucm_connect connect = {.conn_param = param(CLIENT_QPN)};
	struct rdma_ucm_event_resp e;
	struct ib_uverbs_qp_attr attr;
	struct cm_message m;
	unsigned int sent = 0;

	node[SERVER].deaf = true;
	assert_int_equal(create_id(&c.ch, 200, RDMA_PS_TCP, UCM_QPT_RC, &c.id), 0);
	assert_int_equal(bind_ip(&c.ch, c.id, "10.0.0.1", CLIENT_PORT), 0);
	assert_int_equal(resolve_ip(&c.ch, c.id, NULL, "10.0.0.2", SERVER_PORT, 2000), 0);
	expect_event(&c.ch, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&c.ch, c.id), 0);
	expect_event(&c.ch, UCM_EVENT_ROUTE_RESOLVED);
	connect.id = c.id;
	assert_int_equal(TELL(&c.ch, CONNECT, connect), 0);
	m = check_sent(CLIENT, &sent, REQ, 0, 0);

	hear(CLIENT, REP, theirs, m.local_id, m.transaction);
	e = expect_event(&c.ch, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(e.param.conn.qp_num, SERVER_QPN);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_RTS, &attr), 0);
	assert_int_equal(attr.sq_psn, golden_message[REP].rep.psn);
	assert_int_equal(confirm_id(&c.ch, c.id), 0);
	check_sent(CLIENT, &sent, RTU, m.local_id, theirs);

	assert_int_equal(disconnect_id(&c.ch, c.id), 0);
	m = check_sent(CLIENT, &sent, DREQ, m.local_id, theirs);
	hear(CLIENT, DREP, theirs, m.local_id, m.transaction);
	expect_event(&c.ch, UCM_EVENT_DISCONNECTED);
	pass(30000ull * MS);
	expect_event(&c.ch, UCM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(node[CLIENT].sent, sent);
}

TEST_WITH(capture__server_as_the_kernel, services_setup, services_teardown)
{
	const uint64_t transaction = golden_message[REQ].transaction;
	const uint32_t theirs = golden_message[REQ].local_id;
	struct end l = listener(SERVER, RDMA_PS_TCP, "0.0.0.0", SERVER_PORT);
	struct rdma_ucm_accept accept = {.uid = 300, .conn_param = param(SERVER_QPN)};
	struct rdma_ucm_event_resp e;
	struct ib_uverbs_qp_attr attr;
	struct cm_message m;
	unsigned int sent = 0;

	node[CLIENT].deaf = true;
	hear(SERVER, REQ, theirs, 0, transaction);
	e = expect_event(&l.ch, UCM_EVENT_CONNECT_REQUEST);
	assert_int_equal(e.param.conn.qp_num, CLIENT_QPN);
	accept.id = e.id;
	assert_int_equal(init_qp_attr(&l.ch, e.id, UCM_QPS_RTS, &attr), 0);
	assert_int_equal(attr.sq_psn, golden_message[REQ].req.psn);
	assert_int_equal(attr.timeout, 17);
	assert_int_equal(TELL(&l.ch, ACCEPT, accept), 0);
	m = check_sent(SERVER, &sent, REP, 0, theirs);
	assert_true(m.transaction == transaction);

	hear(SERVER, RTU, theirs, m.local_id, transaction);
	assert_int_equal(expect_event(&l.ch, UCM_EVENT_ESTABLISHED).uid, 300);
	hear(SERVER, DREQ, theirs, m.local_id, transaction);
	expect_event(&l.ch, UCM_EVENT_DISCONNECTED);
	assert_int_equal(disconnect_id(&l.ch, e.id), 0);
	m = check_sent(SERVER, &sent, DREP, m.local_id, theirs);
	assert_true(m.transaction == transaction);
	pass(30000ull * MS);
	expect_event(&l.ch, UCM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(node[SERVER].sent, sent);
}

TEST_GROUP(.setup = load);
