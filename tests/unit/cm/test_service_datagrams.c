/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD identifiers: finding out which QP serves, and multicast groups.
 */
#include "service/numbers.h"
#include "service_fixture.h"

static struct rdma_ucm_event_resp ud_request(struct end *l, struct end *c, const char *data)
{
	struct rdma_ucm_event_resp e;

	assert_int_equal(connect_id(&c->ch, c->id, 0x111, data), 0);
	requested(l, &e);
	assert_int_equal(e.param.ud.private_data_len, 180);
	assert_memory_equal(e.param.ud.private_data, data, strlen(data));
	return e;
}

static void check_established(struct end *c, uint32_t qkey, unsigned int gid_index)
{
	struct rdma_ucm_event_resp e = expect_event(&c->ch, UCM_EVENT_ESTABLISHED);
	uint8_t gid[16];

	gid_of(2, 0, gid_index, gid);
	assert_int_equal(e.uid, 200);
	assert_int_equal(e.status, 0);
	assert_int_equal(e.param.ud.qp_num, 0x222);
	assert_int_equal(e.param.ud.qkey, qkey);
	assert_int_equal(e.param.ud.private_data_len, 136);
	assert_memory_equal(e.param.ud.private_data, "welcome", 7);
	assert_memory_equal(e.param.ud.ah_attr.grh.dgid, gid, 16);
	assert_int_equal(e.param.ud.ah_attr.grh.sgid_index, gid_index - node[0].lacks);
	assert_int_equal(e.param.ud.ah_attr.grh.hop_limit, 64);
	assert_int_equal(e.param.ud.ah_attr.is_global, 1);
	assert_int_equal(e.param.ud.ah_attr.port_num, 1);
}

static void check_queue_pair(struct end *c)
{
	const struct ucm_id *id = ucm_number_find(&c->ch.node->s->ids, c->id);
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(init_qp_attr(&c->ch, c->id, UCM_QPS_INIT, &attr), 0);
	assert_int_equal(attr.qp_attr_mask, 0x71);
	assert_int_equal(attr.qkey, UCM_QKEY);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.rq_psn, 0);
	assert_int_equal(init_qp_attr(&c->ch, c->id, UCM_QPS_RTR, &attr), 0);
	assert_int_equal(attr.rq_psn, id->psn);
}

/* The caller's device loses the first so many GIDs in the meantime. */
static void sidr(const char *bound, const char *destination, unsigned int gid_index, uint32_t loses)
{
	struct end l = listener(1, RDMA_PS_UDP, bound, 7174);
	struct end c = caller(0, RDMA_PS_UDP, destination, 7174);
	struct rdma_ucm_query_route_resp route;
	uint32_t id, connections, orphans;

	check_queue_pair(&c);
	id = ud_request(&l, &c, "hello").id;
	check_queue_pair(&(struct end){l.ch, id});
	assert_int_equal(query_route(&l.ch, id, &route), 0);
	assert_int_equal(route.num_paths, 0);
	assert_int_not_equal(route.node_guid, 0);
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, "welcome"), 0);
	node[0].lacks = loses;
	settle();
	check_established(&c, UCM_QKEY, gid_index);
	node[0].lacks = 0;
	expect_no_event(&l.ch);
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, "welcome"), -EINVAL);
	assert_int_equal(disconnect_id(&c.ch, c.id), 0);
	assert_int_equal(destroy_id(&c.ch, c.id, NULL), 0);
	assert_int_equal(destroy_id(&l.ch, id, NULL), 0);
	pass(600000ull * MS);
	cm_census(node[1].s->cm, &connections, &orphans);
	assert_int_equal(connections, 0);
}

TEST(sidr__ipv4)
{
	sidr("0.0.0.0", "10.0.0.2", GID_V4, 0);
}

TEST(sidr__ipv6)
{
	sidr("fd00::2", "fd00::2", GID_V6, 0);
}

/* The index of its GID is what it is by then. */
TEST(sidr__from_a_gid_that_has_moved)
{
	sidr("0.0.0.0", "10.0.0.2", GID_V4, GID_V4);
}

TEST(sidr__rejected)
{
	struct end l = listener(1, RDMA_PS_UDP, "0.0.0.0", 7174);
	struct end c = caller(0, RDMA_PS_UDP, "10.0.0.2", 7174);
	struct rdma_ucm_event_resp e = ud_request(&l, &c, "");

	assert_int_equal(reject_id(&l.ch, e.id, 0, "no"), 0);
	settle();
	e = expect_event(&c.ch, UCM_EVENT_UNREACHABLE);
	assert_int_equal(e.status, 2);
	assert_memory_equal(e.param.ud.private_data, "no", 2);
	assert_int_equal(e.param.ud.ah_attr.is_global, 0);
}

/* The Q_Key of a peer that does not serve means nothing. */
TEST(sidr__rejected_with_a_qkey)
{
	struct end l = listener(1, RDMA_PS_UDP, "0.0.0.0", 7174);
	struct end c = caller(0, RDMA_PS_UDP, "10.0.0.2", 7174);
	struct cm_path path = {.hop_limit = 64};
	uint8_t mad[CM_MAD_BYTES];
	struct cm_message m;

	check_queue_pair(&c);
	assert_int_equal(reject_id(&l.ch, ud_request(&l, &c, "").id, 0, "no"), 0);
	assert_int_equal(cm_mad_parse(node[1].last, CM_MAD_BYTES, &m), CM_WELL_FORMED);
	m.sidr_rep.qkey = 0x777;
	cm_mad_build(&m, mad);
	gid_of(1, 0, GID_V4, path.sgid);
	gid_of(2, 0, GID_V4, path.dgid);
	cm_service_receive(node[0].s, now, &path, mad, sizeof(mad));
	expect_event(&c.ch, UCM_EVENT_UNREACHABLE);
}

TEST(sidr__too_many_connections)
{
	struct cm_service_limits limits = {.protocol = {.connections = 1}};
	struct end c, d;

	services_start(&limits);
	c = caller(0, RDMA_PS_UDP, "10.0.0.2", 7174);
	d = caller(0, RDMA_PS_UDP, "10.0.0.2", 7174);
	assert_int_equal(node[0].s->counters.command_refused, 0);
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	assert_int_equal(connect_id(&d.ch, d.id, 0x111, ""), -ENOSPC);
	assert_int_equal(node[0].s->counters.command_refused, 1);
}

TEST(sidr__nobody)
{
	struct end c = caller(0, RDMA_PS_UDP, "10.0.0.2", 7174);

	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	settle();
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_UNREACHABLE).status, 1);
	c = caller(0, RDMA_PS_UDP, "10.0.0.2", 7174);
	node[1].deaf = true;
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	pass(120000ull * MS);
	assert_int_equal((int)expect_event(&c.ch, UCM_EVENT_UNREACHABLE).status, -ETIMEDOUT);
}

TEST(sidr__lengths)
{
	struct end l = listener(1, RDMA_PS_UDP, "0.0.0.0", 7174);
	struct end c = caller(0, RDMA_PS_UDP, "10.0.0.2", 7174);
	struct cm_id_info info;
	char data[256];
	uint32_t id;

	memset(data, 'x', sizeof(data));
	data[181] = 0;
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, data), -EINVAL);
	assert_int_equal(cm_service_ids(node[0].s, &info, 1), 1);
	assert_int_equal(info.qpn, 0);
	data[180] = 0;
	id = ud_request(&l, &c, data).id;
	data[180] = 'x';
	data[137] = 0;
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, data), -EINVAL);
	settle();
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_UNREACHABLE).status, 2);
}

/* With GIDs a program may say its Q_Key; one that does not fit to the peer's is an error there. */
TEST(sidr__own_qkey)
{
	struct end l = ib_listener(UCM_QPT_UD);
	struct rdma_ucm_accept in = {.uid = 300,
				     .conn_param = {.qp_num = 0x222, .qkey = 0x777, .valid = 1}};
	struct rdma_ucm_event_resp e;
	struct end c;

	for (int knows = 0; knows < 2; knows++) {
		c = ib_caller(UCM_QPT_UD);

		if (knows)
			check_queue_pair(&c);
		assert_int_equal(connect_id(&c.ch, c.id, 0x111, "hello"), 0);
		in.id = requested(&l, &e);
		assert_int_equal(e.param.ud.private_data_len, 216);
		assert_int_equal(TELL(&l.ch, ACCEPT, in), 0);
		settle();
		if (knows) {
			e = expect_event(&c.ch, UCM_EVENT_ADDR_ERROR);
			assert_int_equal((int)e.status, -EINVAL);
		} else {
			e = expect_event(&c.ch, UCM_EVENT_ESTABLISHED);
			assert_int_equal(e.param.ud.qkey, 0x777);
		}
	}
	/* Nor may it differ from what its own queue pair has. */
	c = ib_caller(UCM_QPT_UD);
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	in.id = requested(&l, &e);
	check_queue_pair(&(struct end){l.ch, in.id});
	assert_int_equal(TELL(&l.ch, ACCEPT, in), -EINVAL);
	settle();
	expect_event(&c.ch, UCM_EVENT_UNREACHABLE);
	/* It is answered. */
	assert_int_equal(confirm_id(&l.ch, in.id), -EINVAL);
}

TEST(sidr__for_a_connection)
{
	struct end l = listener(1, RDMA_PS_TCP, "gid:::", 7174), c = ib_caller(UCM_QPT_UD);

	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	settle();
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_UNREACHABLE).status, 1);
	expect_no_event(&l.ch);
}

/* ---- groups ---- */

static int join_ip(struct channel *ch, uint32_t id, uint64_t uid, const char *group,
		   uint32_t *number)
{
	union ucm_address a = address_of(group, 0);
	struct rdma_ucm_join_ip_mcast in = {.id = id, .uid = uid};
	struct rdma_ucm_create_id_resp out = {0};
	int ret;

	memcpy(&in.addr, &a, sizeof(in.addr));
	ret = ASK(ch, JOIN_IP_MCAST, in, out);
	*number = out.id;
	return ret;
}

static int join_flags(struct channel *ch, uint32_t id, uint64_t uid, const char *group,
		      uint16_t flags, uint32_t *number)
{
	union ucm_address a = address_of(group, 0);
	struct rdma_ucm_join_mcast in = {.id = id,
					 .uid = uid,
					 .join_flags = flags,
					 .addr_size = (uint16_t)ucm_address_bytes(&a)};
	struct rdma_ucm_create_id_resp out = {0};
	int ret;

	memcpy(&in.addr, &a, in.addr_size);
	ret = ASK(ch, JOIN_MCAST, in, out);
	*number = out.id;
	return ret;
}

static int leave(struct channel *ch, uint32_t number, uint32_t *events)
{
	struct rdma_ucm_destroy_id in = {.id = number};
	struct rdma_ucm_destroy_id_resp out = {0};
	int ret = ASK(ch, LEAVE_MCAST, in, out);

	*events = out.events_reported;
	return ret;
}

static void check_joined(struct channel *ch, uint64_t uid, uint32_t number, const char *group)
{
	struct rdma_ucm_event_resp e = expect_event(ch, UCM_EVENT_MULTICAST_JOIN);
	union ucm_address a = address_of(group, 0);
	uint8_t gid[16];

	ucm_address_gid(&a, gid);
	assert_int_equal(e.uid, uid);
	assert_int_equal(e.id, number);
	assert_int_equal(e.status, 0);
	assert_int_equal(e.param.ud.qp_num, 0xffffff);
	assert_int_equal(e.param.ud.qkey, UCM_QKEY);
	assert_memory_equal(e.param.ud.ah_attr.grh.dgid, gid, 16);
	assert_int_equal(e.param.ud.ah_attr.is_global, 1);
	assert_int_equal(e.param.ud.ah_attr.grh.hop_limit, 64);
}

TEST(join__groups)
{
	struct channel ch = open_channel(0);
	uint32_t id, number[4], events;

	assert_int_equal(create_id(&ch, 1, RDMA_PS_UDP, UCM_QPT_UD, &id), 0);
	assert_int_equal(resolve_ip(&ch, id, NULL, "239.1.2.3", 0, 1000), 0);
	expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(join_ip(&ch, id, 11, "239.1.2.3", &number[0]), 0);
	check_joined(&ch, 11, number[0], "239.1.2.3");
	assert_int_equal(join_ip(&ch, id, 10, "ff0e::6", &number[1]), 0);
	check_joined(&ch, 10, number[1], "ff0e::6");
	assert_int_equal(leave(&ch, number[1], &events), 0);
	assert_int_equal(join_ip(&ch, id, 10, "gid:ff0e::6", &number[1]), -EINVAL);
	assert_int_equal(join_flags(&ch, id, 12, "224.0.0.9", 0, &number[1]), 0);
	assert_int_equal(join_flags(&ch, id, 13, "ff0e::7", 1, &number[2]), 0);
	assert_int_equal(join_flags(&ch, id, 14, "gid:ff0e::8", 0, &number[3]), 0);
	check_joined(&ch, 12, number[1], "224.0.0.9");
	check_joined(&ch, 13, number[2], "ff0e::7");
	assert_int_equal(leave(&ch, number[0], &events), 0);
	assert_int_equal(events, 1);
	assert_int_equal(leave(&ch, number[0], &events), -ENOENT);
	/* With its event unread. */
	assert_true(readable(&ch));
	assert_int_equal(leave(&ch, number[3], &events), 0);
	assert_int_equal(events, 0);
	assert_false(readable(&ch));
	assert_int_equal(destroy_id(&ch, id, &events), 0);
	assert_int_equal(events, 5);
	assert_int_equal(leave(&ch, number[1], &events), -ENOENT);
}

TEST(join__refused)
{
	struct channel ch = open_channel(0), other = open_channel(0);
	struct end c = caller(0, RDMA_PS_UDP, "10.0.0.2", 7174);
	union ucm_address group = address_of("239.1.2.3", 0);
	struct rdma_ucm_join_mcast longer = {.addr_size = sizeof(group.v4) + 1};
	uint32_t id, tcp, number, events;

	assert_int_equal(create_id(&ch, 1, RDMA_PS_UDP, UCM_QPT_UD, &id), 0);
	assert_int_equal(join_ip(&ch, id, 1, "239.1.2.3", &number), -EINVAL);
	assert_int_equal(bind_ip(&ch, id, "10.0.0.1", 0), 0);
	assert_int_equal(join_ip(&ch, id, 1, "10.0.0.2", &number), -EINVAL);
	assert_int_equal(join_ip(&ch, id, 1, "0.0.0.0", &number), -EINVAL);
	assert_int_equal(join_ip(&ch, id, 1, "fd00::2", &number), -EINVAL);
	assert_int_equal(join_flags(&ch, id, 1, "239.1.2.3", 2, &number), -EINVAL);
	longer.id = id;
	memcpy(&longer.addr, &group, sizeof(group.v4));
	assert_int_equal(
		command(&ch, RDMA_USER_CM_CMD_JOIN_MCAST, &longer, sizeof(longer), &number, 4),
		-EINVAL);
	assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &tcp), 0);
	assert_int_equal(bind_ip(&ch, tcp, "10.0.0.1", 0), 0);
	assert_int_equal(join_ip(&ch, tcp, 1, "239.1.2.3", &number), -EINVAL);
	assert_int_equal(join_ip(&c.ch, c.id, 1, "239.1.2.3", &number), -EINVAL);
	assert_int_equal(join_ip(&ch, id, 1, "239.1.2.3", &number), 0);
	assert_int_equal(leave(&other, number, &events), -EINVAL);
}

TEST(join__limits)
{
	struct channel ch;
	uint32_t id, number;

	services_total(SHARE_cm_ids, 8); /* half of them for one channel */
	services_total(SHARE_cm_events, 4);
	ch = open_channel(0);
	assert_int_equal(create_id(&ch, 1, RDMA_PS_UDP, UCM_QPT_UD, &id), 0);
	assert_int_equal(bind_ip(&ch, id, "10.0.0.1", 0), 0);
	assert_int_equal(join_ip(&ch, id, 1, "239.1.2.3", &number), 0);
	assert_int_equal(join_ip(&ch, id, 2, "239.1.2.4", &number), 0);
	assert_int_equal(join_ip(&ch, id, 3, "239.1.2.5", &number), -ENOMEM);
	expect_event(&ch, UCM_EVENT_MULTICAST_JOIN);
	assert_int_equal(join_ip(&ch, id, 3, "239.1.2.5", &number), 0);
	expect_event(&ch, UCM_EVENT_MULTICAST_JOIN);
	assert_int_equal(join_ip(&ch, id, 3, "239.1.2.6", &number), -ENOMEM);
}

/* The same where only numbers are lacking. */
TEST(join__no_number_left)
{
	struct channel ch = open_channel(0);
	uint32_t id, number;

	assert_int_equal(create_id(&ch, 1, RDMA_PS_UDP, UCM_QPT_UD, &id), 0);
	assert_int_equal(bind_ip(&ch, id, "10.0.0.1", 0), 0);
	for (uint32_t i = 0; i < UCM_NUMBERS; i++)
		assert_int_equal(ucm_number_take(&node[0].s->memberships, node), i);
	assert_int_equal(join_ip(&ch, id, 1, "239.1.2.3", &number), -ENOMEM);
	assert_int_equal(services_used(&node[0], SHARE_cm_ids), 1);
}

/* A membership goes where its identifier goes. */
TEST(join__moves)
{
	struct channel a = open_channel(0), b = open_channel(0);
	struct rdma_ucm_destroy_id give;
	struct cm_channel_ticket ticket;
	struct rdma_ucm_migrate_id in = {.response = 1};
	struct rdma_ucm_migrate_resp out;
	uint32_t id, number, events;

	assert_int_equal(create_id(&a, 1, RDMA_PS_UDP, UCM_QPT_UD, &id), 0);
	assert_int_equal(bind_ip(&a, id, "10.0.0.1", 0), 0);
	assert_int_equal(join_ip(&a, id, 7, "239.1.2.3", &number), 0);
	give = (struct rdma_ucm_destroy_id){.id = id};
	assert_int_equal(command(&a, CM_COMMAND_RELEASE_ID, &give, sizeof(give), &ticket, 8), 0);
	in.id = (uint32_t)ticket.ticket;
	in.fd = (uint32_t)(ticket.ticket >> 32);
	assert_int_equal(ASK(&b, MIGRATE_ID, in, out), 0);
	close_channel(&a);
	check_joined(&b, 7, number, "239.1.2.3");
	assert_int_equal(leave(&b, number, &events), 0);
	assert_int_equal(events, 1);
}
