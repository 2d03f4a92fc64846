/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs connect through the service: every step as in librdmacm, the events of each side, the
 * attributes of the queue pairs, and the end.
 */
#include "service_fixture.h"

/* Both queue pairs' attributes fit together. */
static void check_attributes(struct end *c, struct channel *server, uint32_t server_id)
{
	struct ib_uverbs_qp_attr a, b;

	assert_int_equal(init_qp_attr(&c->ch, c->id, UCM_QPS_INIT, &a), 0);
	assert_int_equal(a.qp_state, UCM_QPS_INIT);
	assert_int_equal(a.qp_attr_mask,
			 QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS);
	assert_int_equal(a.qp_access_flags, UCM_ACCESS_REMOTE_WRITE | UCM_ACCESS_REMOTE_READ |
						    UCM_ACCESS_REMOTE_ATOMIC |
						    UCM_ACCESS_FLUSHABLE);
	assert_int_equal(a.port_num, 1);
	assert_int_equal(init_qp_attr(&c->ch, c->id, UCM_QPS_RTR, &a), 0);
	assert_int_equal(a.qp_attr_mask, QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU |
						 QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
						 QP_ATTR_MAX_DEST_RD_ATOMIC |
						 QP_ATTR_MIN_RNR_TIMER);
	assert_int_equal(init_qp_attr(server, server_id, UCM_QPS_RTR, &b), 0);
	assert_int_equal(a.dest_qp_num, 0x222);
	assert_int_equal(b.dest_qp_num, 0x111);
	assert_int_equal(a.path_mtu, 3);
	assert_int_equal(b.path_mtu, 3);
	assert_int_equal(a.max_dest_rd_atomic, 1); /* the server's depth */
	assert_int_equal(b.max_dest_rd_atomic, 3);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.ah_attr.port_num, 1);
	assert_int_equal(a.ah_attr.grh.hop_limit, 64);
	assert_int_equal(a.ah_attr.grh.flow_label, b.ah_attr.grh.flow_label);
	uint32_t client_rq = a.rq_psn, server_rq = b.rq_psn;

	assert_int_equal(init_qp_attr(&c->ch, c->id, UCM_QPS_RTS, &a), 0);
	assert_int_equal(init_qp_attr(server, server_id, UCM_QPS_RTS, &b), 0);
	assert_int_equal(a.qp_attr_mask, QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT |
						 QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
						 QP_ATTR_MAX_RD_ATOMIC);
	assert_int_equal(a.sq_psn, server_rq);
	assert_int_equal(b.sq_psn, client_rq);
	assert_int_equal(a.max_rd_atomic, 3);
	assert_int_equal(b.max_rd_atomic, 1);
	assert_int_equal(a.retry_cnt, 7);
	assert_int_equal(b.rnr_retry, 6);
	assert_in_range(a.timeout, 1, 31);
	assert_in_range(b.timeout, 1, 31);
}

static void check_request(const struct rdma_ucm_event_resp *e, const char *data, unsigned int room)
{
	assert_int_equal(e->status, 0);
	assert_int_equal(e->param.conn.private_data_len, room);
	assert_memory_equal(e->param.conn.private_data, data, strlen(data));
	assert_int_equal(e->param.conn.responder_resources, 2); /* the client's depth */
	assert_int_equal(e->param.conn.initiator_depth, 4);
	assert_int_equal(e->param.conn.retry_count, 7);
	assert_int_equal(e->param.conn.rnr_retry_count, 6);
	assert_int_equal(e->param.conn.qp_num, 0x111);
}

/* A request's identifier has the address that was asked, and its peer's. */
static void check_ends(struct channel *server, uint32_t id, struct end *c,
		       const union ucm_address *asked)
{
	struct rdma_ucm_query_addr_resp its, mine;

	assert_int_equal(query_addr(server, id, RDMA_USER_CM_QUERY_ADDR, &its), 0);
	assert_int_equal(query_addr(&c->ch, c->id, RDMA_USER_CM_QUERY_ADDR, &mine), 0);
	assert_int_equal(its.src_size, ucm_address_bytes(asked));
	assert_int_equal(its.dst_size, mine.src_size);
	assert_true(ucm_address_same_host((void *)&its.src_addr, asked));
	assert_true(ucm_address_same_host((void *)&its.dst_addr, (void *)&mine.src_addr));
}

/* The whole life of a connection between two nodes. */
static void life(const char *bound, const char *destination, unsigned int room)
{
	struct end l = listener(1, RDMA_PS_TCP, bound, 7174);
	struct end c = caller(0, RDMA_PS_TCP, destination, 7174);
	union ucm_address a = address_of(destination, 7174);
	struct rdma_ucm_event_resp e;
	uint32_t id, events;

	assert_int_equal(connect_id(&c.ch, c.id, 0x111, "hello"), 0);
	id = requested(&l, &e);
	check_request(&e, "hello", room);
	check_ends(&l.ch, id, &c, &a);
	expect_no_event(&c.ch);
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, "welcome"), 0);
	settle();
	e = expect_event(&c.ch, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(e.uid, 200);
	assert_int_equal(e.param.conn.private_data_len, 196);
	assert_memory_equal(e.param.conn.private_data, "welcome", 7);
	assert_int_equal(e.param.conn.responder_resources, 1);
	assert_int_equal(e.param.conn.initiator_depth, 3);
	assert_int_equal(e.param.conn.qp_num, 0x222);
	check_attributes(&c, &l.ch, id);
	assert_int_equal(confirm_id(&c.ch, c.id), 0);
	settle();
	assert_int_equal(expect_event(&l.ch, UCM_EVENT_ESTABLISHED).uid, 300);
	check_attributes(&c, &l.ch, id);

	assert_int_equal(disconnect_id(&c.ch, c.id), 0);
	settle();
	assert_int_equal(expect_event(&l.ch, UCM_EVENT_DISCONNECTED).id, id);
	expect_no_event(&c.ch);
	assert_int_equal(disconnect_id(&l.ch, id), 0);
	settle();
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_DISCONNECTED).uid, 200);
	pass(30000ull * MS);
	expect_event(&c.ch, UCM_EVENT_TIMEWAIT_EXIT);
	expect_event(&l.ch, UCM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(destroy_id(&c.ch, c.id, &events), 0);
	assert_int_equal(events, 5);
	assert_int_equal(destroy_id(&l.ch, id, &events), 0);
	assert_int_equal(events, 3);
	assert_int_equal(destroy_id(&l.ch, l.id, &events), 0);
	assert_int_equal(events, 1);
	close_channel(&c.ch);
	close_channel(&l.ch);
}

TEST(connect__families)
{
	static const struct {
		const char *bound, *destination;
		unsigned int room; /* for private data */
	} rows[] = {
		{"10.0.0.2", "10.0.0.2", 56},
		{"0.0.0.0", "10.1.0.2", 56},
		{"fd00::2", "fd00::2", 56},
		{"::", "fd00::2", 56},
		{"::", "10.0.0.2", 56},
		{"gid:fd00::2", "gid:fd00::2", 92},
		{"gid:::", "gid:::ffff:10.0.0.2", 92},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		life(rows[i].bound, rows[i].destination, rows[i].room);
}

static const char *const self[][2] = {
	{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.1"}, {"0.0.0.0", "0.0.0.0"}, {"::", "::1"},
	{"10.0.0.1", "10.0.0.1"},   {"0.0.0.0", "10.1.0.1"},  {"::", "fd00:1::1"},
};

TEST(connect__to_oneself)
{
	for (unsigned int i = 0; i < sizeof(self) / sizeof(self[0]); i++) {
		struct end l = listener(0, RDMA_PS_TCP, self[i][0], 7174);
		struct end c = caller(0, RDMA_PS_TCP, self[i][1], 7174);
		uint32_t id = join_ends(&l, &c);

		check_attributes(&c, &l.ch, id);
		close_channel(&c.ch);
		settle();
		expect_event(&l.ch, UCM_EVENT_DISCONNECTED);
		close_channel(&l.ch);
	}
}

TEST(reject__by_program)
{
	static const uint8_t reasons[][2] = {{0, 28}, {28, 28}, {35, 35}};

	for (unsigned int i = 0; i < 3; i++) {
		struct end l, c;
		struct rdma_ucm_event_resp e;
		uint32_t id = ask_ends(&l, &c);

		assert_int_equal(reject_id(&l.ch, id, 4, ""), -EINVAL);
		assert_int_equal(reject_id(&l.ch, id, reasons[i][0], "no"), 0);
		settle();
		e = expect_event(&c.ch, UCM_EVENT_REJECTED);
		assert_int_equal(e.status, reasons[i][1]);
		assert_int_equal(e.param.conn.private_data_len, 148);
		assert_memory_equal(e.param.conn.private_data, "no", 2);
		assert_int_equal(destroy_id(&l.ch, id, NULL), 0);
		close_channel(&l.ch);
		close_channel(&c.ch);
	}
}

/* A kind of queue pair that a program may ask for and that nothing here connects. */
TEST(connect__unknown_service)
{
	struct end c = ib_caller(9); /* XRC */

	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), -EINVAL);
}

TEST(reject__wrong_service)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	struct end c = ib_caller(UCM_QPT_UC);

	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	settle();
	/* A listener for IP addresses does not serve who says none. */
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_REJECTED).status, CM_REJ_INVALID_SERVICE_ID);
	close_channel(&l.ch);
}

/* No room for another connection: the program may try again. */
TEST(connect__no_room)
{
	struct rdma_ucm_connect in = {.conn_param = {.qp_num = 0x112, .valid = 1}};
	struct ib_uverbs_qp_attr attr;
	struct end first, second;

	services_start(&(struct cm_service_limits){.protocol.connections = 1});
	first = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	second = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	assert_int_equal(connect_id(&first.ch, first.id, 0x111, ""), 0);
	assert_int_equal(connect_id(&second.ch, second.id, 0x112, ""), -ENOSPC);
	close_channel(&first.ch);
	/* One that offers nobody to read from it. */
	in.id = second.id;
	assert_int_equal(TELL(&second.ch, CONNECT, in), 0);
	assert_int_equal(init_qp_attr(&second.ch, second.id, UCM_QPS_INIT, &attr), 0);
	assert_int_equal(attr.qp_access_flags, UCM_ACCESS_REMOTE_WRITE);
}

/* Programs may take minutes to answer: the services ask each other for patience. */
TEST(connect__slow_programs)
{
	struct end l, c;
	uint32_t id = ask_ends(&l, &c);

	pass(180000ull * MS);
	expect_no_event(&c.ch);
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, ""), 0);
	settle();
	expect_event(&c.ch, UCM_EVENT_CONNECT_RESPONSE);
	pass(180000ull * MS);
	expect_no_event(&l.ch);
	assert_int_equal(confirm_id(&c.ch, c.id), 0);
	settle();
	expect_event(&l.ch, UCM_EVENT_ESTABLISHED);
}

/* An identifier with uid 0 connects like others, and its program is told nothing. */
TEST(connect__without_uid)
{
	static const uint16_t spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP};

	for (int i = 0; i < 2; i++) {
		struct end l = listener(1, spaces[i], "0.0.0.0", 7174), c = {.ch = open_channel(0)};
		struct rdma_ucm_event_resp e;

		assert_int_equal(create_id(&c.ch, 0, spaces[i], 0, &c.id), 0);
		assert_int_equal(resolve_ip(&c.ch, c.id, NULL, "10.0.0.2", 7174, 1000), 0);
		assert_int_equal(resolve_route(&c.ch, c.id), 0);
		assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
		assert_int_equal(accept_id(&l.ch, requested(&l, &e), 300, 0x222, ""), 0);
		settle();
		expect_no_event(&c.ch);
	}
}

TEST(unreachable__nobody_answers)
{
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	struct rdma_ucm_event_resp e;

	node[1].deaf = true;
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	pass(60000ull * MS);
	expect_no_event(&c.ch);
	pass(60000ull * MS);
	e = expect_event(&c.ch, UCM_EVENT_UNREACHABLE);
	assert_int_equal((int)e.status, -ETIMEDOUT);
}

/* A client that vanishes before its RTU: the server gets an event. */
TEST(unreachable__no_rtu)
{
	struct end l, c;
	struct ib_uverbs_qp_attr attr;
	uint32_t id = ask_ends(&l, &c);

	/* It asks again, and is told that the program takes its time. */
	pass(5000ull * MS);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_INIT, &attr), 0);
	node[0].deaf = true;
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, ""), 0);
	pass(120000ull * MS);
	assert_int_equal((int)expect_event(&l.ch, UCM_EVENT_UNREACHABLE).status, -ETIMEDOUT);
}

TEST(disconnect__nobody_answers)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);

	join_ends(&l, &c);
	node[1].deaf = true;
	assert_int_equal(disconnect_id(&c.ch, c.id), 0);
	pass(120000ull * MS);
	assert_int_equal((int)expect_event(&c.ch, UCM_EVENT_DISCONNECTED).status, -ETIMEDOUT);
	expect_event(&c.ch, UCM_EVENT_TIMEWAIT_EXIT);
}

/* The first one's request was lost: it answers the other's all the same. */
TEST(disconnect__both_but_one_is_lost)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	uint32_t id = join_ends(&l, &c);

	node[1].deaf = true;
	assert_int_equal(disconnect_id(&c.ch, c.id), 0);
	settle();
	node[1].deaf = false;
	assert_int_equal(disconnect_id(&l.ch, id), 0);
	settle();
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_DISCONNECTED).status, 0);
	assert_int_equal(expect_event(&l.ch, UCM_EVENT_DISCONNECTED).status, 0);
}

/* The data of a QP came before the RTU, and its program says so. */
TEST(notify__established)
{
	struct end l, c;
	uint32_t id = ask_ends(&l, &c);
	struct rdma_ucm_notify in = {.id = id, .event = UCM_QP_COMM_EST};

	assert_int_equal(TELL(&l.ch, NOTIFY, in), -EINVAL);
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, ""), 0);
	in.event = 6;
	assert_int_equal(TELL(&l.ch, NOTIFY, in), -EINVAL);
	in.event = UCM_QP_COMM_EST;
	assert_int_equal(TELL(&l.ch, NOTIFY, in), 0);
	assert_int_equal(expect_event(&l.ch, UCM_EVENT_ESTABLISHED).uid, 300);
	in = (struct rdma_ucm_notify){.id = l.id, .event = UCM_QP_COMM_EST};
	assert_int_equal(TELL(&l.ch, NOTIFY, in), -EINVAL);
}

/* Enhanced connection establishment: REQ and REP carry what either program says of its queue pair; from
 * one that says nothing nothing comes. */
TEST(ece__is_carried)
{
	static const struct rdma_ucm_ece pairs[][2] = {
		{{0x025348, 0x53480001}, {0x025348, 0x53480001}},
		{{0xffffff, UINT32_MAX}, {0x123456, 0x80000001}},
		{{0x025348, 0x53480001}, {0}},
		{{0}, {0}},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct end l = listener(1, RDMA_PS_TCP, "10.0.0.2", 7174);
		struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
		struct rdma_ucm_event_resp e;
		uint32_t id;

		offered_ece = pairs[i][0];
		answered_ece = pairs[i][1];
		assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
		id = requested(&l, &e);
		assert_memory_equal(&e.ece, &offered_ece, sizeof(e.ece));
		assert_int_equal(accept_id(&l.ch, id, 300, 0x222, ""), 0);
		settle();
		e = expect_event(&c.ch, UCM_EVENT_CONNECT_RESPONSE);
		assert_memory_equal(&e.ece, &answered_ece, sizeof(e.ece));
		assert_int_equal(destroy_id(&c.ch, c.id, NULL), 0);
		assert_int_equal(destroy_id(&l.ch, id, NULL), 0);
		assert_int_equal(destroy_id(&l.ch, l.id, NULL), 0);
	}
}

/* REQ and REP say what each queue pair does, whatever the programs say; each is notified of its
 * peer.
 */
TEST(credits__are_the_queue_pairs_affair)
{
	for (unsigned int both = 0; both < 4; both++) {
		struct end l = listener(1, RDMA_PS_TCP, "10.0.0.2", 7174);
		struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
		struct rdma_ucm_event_resp e;
		uint32_t id;

		node[0].credits_of = both & 1 ? 0x111 : 0;
		node[1].credits_of = both & 2 ? 0x222 : 0;
		node[0].at_will = node[1].at_will = 0;
		assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
		id = requested(&l, &e);
		assert_int_equal(e.param.conn.flow_control, both & 1);
		assert_int_equal(accept_id(&l.ch, id, 300, 0x222, ""), 0);
		assert_int_equal(node[1].at_will, both & 1 ? 0 : 0x222);
		settle();
		e = expect_event(&c.ch, UCM_EVENT_CONNECT_RESPONSE);
		assert_int_equal(e.param.conn.flow_control, both >> 1);
		assert_int_equal(node[0].at_will, both & 2 ? 0 : 0x111);
		assert_int_equal(destroy_id(&c.ch, c.id, NULL), 0);
		assert_int_equal(destroy_id(&l.ch, id, NULL), 0);
		assert_int_equal(destroy_id(&l.ch, l.id, NULL), 0);
		pass(600000ull * MS);
	}
}
