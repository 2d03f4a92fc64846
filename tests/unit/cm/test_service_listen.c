/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners and their requests, queues of events, identifiers that move to other channels, and
 * channels that end with all they have.
 */
#include "base/close_later.h"
#include "service_fixture.h"

static int release(struct channel *ch, uint32_t id, struct cm_channel_ticket *ticket)
{
	struct rdma_ucm_destroy_id in = {.id = id};

	return command(ch, CM_COMMAND_RELEASE_ID, &in, sizeof(in), ticket, sizeof(*ticket));
}

static int take(struct channel *ch, uint64_t ticket, uint32_t *events)
{
	struct rdma_ucm_migrate_id in = {.id = (uint32_t)ticket, .fd = (uint32_t)(ticket >> 32)};
	struct rdma_ucm_migrate_resp out = {0};
	int ret = ASK(ch, MIGRATE_ID, in, out);

	*events = out.events_reported;
	return ret;
}

static int migrate(struct channel *from, struct channel *to, uint32_t id, uint32_t *events)
{
	struct cm_channel_ticket ticket;

	assert_int_equal(release(from, id, &ticket), 0);
	return take(to, ticket.ticket, events);
}

static void take_byte(struct channel *ch)
{
	uint8_t byte;

	assert_int_equal(recv(ch->fd, &byte, 1, MSG_DONTWAIT), 1);
}

TEST(listen__without_an_address)
{
	struct end l = {.ch = open_channel(1)};
	struct rdma_ucm_query_route_resp route;
	struct end c;

	assert_int_equal(create_id(&l.ch, 100, RDMA_PS_TCP, UCM_QPT_RC, &l.id), 0);
	assert_int_equal(listen_id(&l.ch, l.id, 5), 0);
	assert_int_equal(listen_id(&l.ch, l.id, 5), -EINVAL);
	assert_int_equal(query_route(&l.ch, l.id, &route), 0);
	assert_in_range(ntohs(route.src_addr.sin6_port), 32768, 60999);
	c = caller(0, RDMA_PS_TCP, "10.0.0.2", ntohs(route.src_addr.sin6_port));
	join_ends(&l, &c);
}

/* As programs in network namespaces with an interface each: neither is in the other's way, nor reached in its place. */
TEST(listen__each_for_its_own_hca)
{
	static const char *const addresses[] = {"10.0.0.2", "10.1.0.2"};
	struct end l[DEVICES], any = {.ch = open_channel(1)}, c;
	struct channel elsewhere = open_channel_on(1, "none");
	uint32_t id, events;

	for (unsigned int d = 0; d < DEVICES; d++) {
		l[d] = (struct end){.ch = open_channel_on(1, d ? "shca1" : "shca0")};
		assert_int_equal(create_id(&l[d].ch, 100, RDMA_PS_TCP, UCM_QPT_RC, &l[d].id), 0);
		assert_int_equal(bind_ip(&l[d].ch, l[d].id, addresses[!d], 7174), -EADDRNOTAVAIL);
		assert_int_equal(bind_ip(&l[d].ch, l[d].id, "0.0.0.0", 7174), 0);
		assert_int_equal(listen_id(&l[d].ch, l[d].id, 0), 0);
	}
	assert_int_equal(create_id(&any.ch, 100, RDMA_PS_TCP, UCM_QPT_RC, &any.id), 0);
	assert_int_equal(bind_ip(&any.ch, any.id, "0.0.0.0", 7174), -EADDRNOTAVAIL);
	assert_int_equal(bind_ip(&any.ch, any.id, addresses[1], 7174), -EADDRNOTAVAIL);
	assert_int_equal(create_id(&l[0].ch, 100, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(bind_ip(&l[0].ch, id, addresses[0], 7174), -EADDRNOTAVAIL);
	assert_int_equal(resolve_ip(&l[0].ch, id, NULL, "10.1.0.1", 7174, 1000), -ENETUNREACH);
	assert_int_equal(use_hca(&l[0].ch, "shca1"), -EBUSY);
	assert_int_equal(use_hca(&elsewhere, "a name of thirty-two characters."), -EINVAL);
	assert_int_equal(create_id(&elsewhere, 100, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(bind_ip(&elsewhere, id, "0.0.0.0", 7174), 0);
	assert_int_equal(migrate(&elsewhere, &any.ch, id, &events),
			 -EINVAL); /* where it is taken */
	for (unsigned int d = 0; d < DEVICES; d++) {
		c = caller(0, RDMA_PS_TCP, addresses[d], 7174);
		assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
		settle();
		expect_event(&l[d].ch, UCM_EVENT_CONNECT_REQUEST);
		expect_no_event(&l[!d].ch);
	}
}

TEST(listen__families)
{
	static const struct {
		const char *bound, *destination;
		bool only, served;
	} cases[] = {{"0.0.0.0", "fd00::2", false, false},
		     {"0.0.0.0", "10.0.0.2", false, true},
		     {"::", "10.0.0.2", false, true},
		     {"::", "10.0.0.2", true, false},
		     {"::", "fd00::2", true, true},
		     {"10.0.0.2", "10.0.0.2", false, true},
		     {"fd00::2", "10.0.0.2", false, false},
		     {"127.0.0.1", "10.0.0.2", false, true},
		     {"gid:::", "10.0.0.2", false, true},
		     {"0.0.0.0", "gid:fd00::2", false, false},
		     {"::", "gid:fd00::2", false, false},
		     {"fe80::2:0", "fd00::2", false, false},
		     {"gid:fd00:1::2", "gid:fd00::2", false, false}};
	int32_t one = 1;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end l = {.ch = open_channel(1)}, c;

		assert_int_equal(create_id(&l.ch, 100, RDMA_PS_TCP, UCM_QPT_RC, &l.id), 0);
		if (cases[i].only)
			assert_int_equal(set_option(&l.ch, l.id, RDMA_OPTION_ID,
						    RDMA_OPTION_ID_AFONLY, &one, 4),
					 0);
		assert_int_equal(bind_ip(&l.ch, l.id, cases[i].bound, 7174), 0);
		assert_int_equal(listen_id(&l.ch, l.id, 0), 0);
		c = caller(0, RDMA_PS_TCP, cases[i].destination, 7174);
		assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
		settle();
		if (cases[i].served)
			expect_event(&l.ch, UCM_EVENT_CONNECT_REQUEST);
		else
			assert_int_equal(expect_event(&c.ch, UCM_EVENT_REJECTED).status,
					 CM_REJ_INVALID_SERVICE_ID);
		close_channel(&c.ch);
		close_channel(&l.ch);
		settle();
	}
}

TEST(listen__transport)
{
	struct end l = listener(1, RDMA_PS_TCP, "gid:::", 7174);
	struct end c = ib_caller(UCM_QPT_UC);

	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	settle();
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_REJECTED).status,
			 CM_REJ_INVALID_TRANSPORT_SERVICE_TYPE);
	expect_no_event(&l.ch);
}

TEST(listen__unreliable_connection)
{
	struct end l = ib_listener(UCM_QPT_UC), c = ib_caller(UCM_QPT_UC);
	struct ib_uverbs_qp_attr attr;
	struct rdma_ucm_event_resp e;

	node[0].credits_of = 0x111;
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	assert_int_equal(accept_id(&l.ch, requested(&l, &e), 300, 0x222, ""), 0);
	settle();
	expect_event(&c.ch, UCM_EVENT_CONNECT_RESPONSE);
	/* There are no credits. */
	assert_int_equal(e.param.conn.flow_control, 0);
	assert_int_equal(node[0].at_will | node[1].at_will, 0);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_RTR, &attr), 0);
	assert_int_equal(attr.qp_attr_mask, 0x101181);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_RTS, &attr), 0);
	assert_int_equal(attr.qp_attr_mask, 0x10001);
}

/* The caller of a listener on node 1 whose own port has that MTU is rejected for it. */
static void rejected_for_mtu(unsigned int from, uint32_t mtu, const char *address)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174), c;

	node[from].active_mtu = mtu;
	c = caller(from, RDMA_PS_TCP, address, 7174);
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	settle();
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_REJECTED).status, CM_REJ_INVALID_MTU);
	expect_no_event(&l.ch);
}

/* A peer whose packets are larger than our port's. */
TEST(listen__mtu)
{
	rejected_for_mtu(0, 5, "10.0.0.2");
}

/* A port through which no packet fits, to itself. */
TEST(listen__no_mtu)
{
	rejected_for_mtu(1, 0, "127.0.0.1");
}

/* What does not fit into the backlog is forgotten, and is repeated. */
TEST(listen__backlog)
{
	struct end l = {.ch = open_channel(1)}, c[5];
	struct rdma_ucm_event_resp e;
	unsigned int come = 0;

	assert_int_equal(create_id(&l.ch, 100, RDMA_PS_TCP, UCM_QPT_RC, &l.id), 0);
	assert_int_equal(bind_ip(&l.ch, l.id, "0.0.0.0", 7174), 0);
	assert_int_equal(listen_id(&l.ch, l.id, 2), 0);
	for (unsigned int i = 0; i < 5; i++) {
		c[i] = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
		assert_int_equal(connect_id(&c[i].ch, c[i].id, 0x111 + i, ""), 0);
	}
	settle();
	assert_int_equal(cm_service_ids(node[1].s, NULL, 0), 3);
	assert_int_equal(cm_service_counters(node[1].s)->request_dropped, 3);
	for (int round = 0; round < 4; round++) {
		while (!get_event(&l.ch, &e)) {
			assert_int_equal(e.event, UCM_EVENT_CONNECT_REQUEST);
			come++;
		}
		pass(5000 * (uint64_t)MS);
	}
	assert_int_equal(come, 5);
}

/* Strangers' requests are bounded by what else the channel may have, and by the service's limit. */
TEST(listen__channel_is_full)
{
	static const struct {
		enum share row;
		int room; /* besides the listener */
		struct cm_service_limits limits;
	} rows[] = {{SHARE_cm_events, 3, {.shares = NULL}},
		    {SHARE_cm_ids, 2, {.shares = NULL}},
		    {SHARE_cm_events, 1, {.protocol.unanswered = 1}}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct end l, c[5];

		services_start(&rows[i].limits);
		services_total(rows[i].row, 6); /* half of them for one channel */
		l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
		for (unsigned int k = 0; k < 5; k++) {
			c[k] = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
			assert_int_equal(connect_id(&c[k].ch, c[k].id, 0x111 + k, ""), 0);
		}
		settle();
		for (int k = 0; k < rows[i].room; k++)
			expect_event(&l.ch, UCM_EVENT_CONNECT_REQUEST);
		expect_no_event(&l.ch);
		for (unsigned int k = 0; k < 5; k++)
			close_channel(&c[k].ch);
		close_channel(&l.ch);
		close_later_finish(); /* they hold their shares until then */
	}
}

/* A caller that asks on and on. */
static struct end ask(unsigned int n, uint16_t port)
{
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", port);

	assert_int_equal(connect_id(&c.ch, c.id, 0x111 + n, ""), 0);
	settle();
	return c;
}

static uint64_t unanswered(const struct ucm_channel *ch)
{
	return share_held(&ch->shares, SHARE_cm_requests);
}

/* A channel that answers none of its requests, read or not, leaves half of the room for those of
 * others; what moves to another channel counts there. */
TEST(listen__nobody_answers)
{
	struct end bad, good, c;
	struct channel third;
	struct rdma_ucm_event_resp e, last;
	const struct ucm_channel *inside, *other;
	uint32_t events, other_id, id = 0;

	services_total(SHARE_cm_requests, 8); /* of which two are reserved for other users */
	bad = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	inside = LIST_FIRST(&node[1].s->channels);
	good = listener(1, RDMA_PS_TCP, "0.0.0.0", 7175);
	other = LIST_FIRST(&node[1].s->channels);
	for (unsigned int i = 0; i < 10; i++) {
		ask(i, 7174);
		if (i == 1)
			id = expect_event(&bad.ch, UCM_EVENT_CONNECT_REQUEST).id;
	}
	assert_int_equal(unanswered(inside), 4);
	assert_int_equal(share_held(&inside->shares, SHARE_cm_ids), 1 + 4);
	ask(20, 7175);
	ask(21, 7175);
	ask(22, 7175);
	other_id = expect_event(&good.ch, UCM_EVENT_CONNECT_REQUEST).id;
	expect_event(&good.ch, UCM_EVENT_CONNECT_REQUEST);
	e = expect_event(&good.ch, UCM_EVENT_CONNECT_REQUEST);
	ask(23, 7175);
	expect_no_event(&good.ch);
	assert_int_equal(accept_id(&good.ch, e.id, 300, 0x222, ""), 0);
	settle();
	pass(5000ull * MS); /* it is asked again */
	last = expect_event(&good.ch, UCM_EVENT_CONNECT_REQUEST);
	assert_int_equal(unanswered(inside), 4);
	assert_int_equal(unanswered(other), 3);
	third = open_channel(1);
	assert_int_equal(migrate(&bad.ch, &third, id, &events), 0);
	assert_int_equal(unanswered(inside), 3);
	assert_int_equal(migrate(&good.ch, &third, other_id, &events), 0);
	assert_int_equal(migrate(&bad.ch, &third, bad.id, &events), -ENOMEM);
	assert_int_equal(reject_id(&third, other_id, 0, ""), 0);
	assert_int_equal(migrate(&bad.ch, &third, bad.id, &events), 0);
	assert_int_equal(unanswered(inside), 0);
	inside = LIST_FIRST(&node[1].s->channels);
	assert_int_equal(unanswered(inside), 4);
	assert_int_equal(migrate(&good.ch, &third, last.id, &events), -ENOMEM);
	assert_int_equal(migrate(&good.ch, &third, e.id, &events), 0); /* it is answered */
	assert_int_equal(unanswered(other), 2);
	c = ask(24, 7175); /* and takes it back before anybody reads it */
	assert_int_equal(unanswered(other), 3);
	close_channel(&c.ch);
	settle();
	assert_int_equal(unanswered(other), 2);
	assert_int_equal(migrate(&good.ch, &third, good.id, &events), 0);
	assert_int_equal(reject_id(&third, id, 0, ""), 0);
	assert_int_equal(unanswered(inside), 3);
	assert_int_equal(destroy_id(&third, bad.id, &events), 0);
	assert_int_equal(unanswered(inside), 0);
}

/* A flood from one peer: bounded, counted, and gone with the listener. */
TEST(listen__flood)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	struct cm_ip_addressing ip = {.version = 4, .source_port = 7};
	struct cm_message m = {.type = CM_REQ, .private_bytes = 92};
	struct cm_path path = {.hop_limit = 64};
	struct rdma_ucm_query_route_resp route;
	uint8_t mad[CM_MAD_BYTES];
	uint32_t id;

	gid_of(2, 0, GID_V4, path.sgid);
	gid_of(1, 0, GID_V4, path.dgid);
	memcpy(ip.destination, path.sgid, 16);
	memcpy(ip.source, path.dgid, 16);
	cm_ip_build(&ip, m.private_data);
	m.req = (struct cm_req){
		.guid = 77, .mtu = 3, .pkey = 0xffff, .local_timeout = 20, .remote_timeout = 20};
	memcpy(m.req.path.local_gid, path.dgid, 16);
	memcpy(m.req.path.remote_gid, path.sgid, 16);
	for (uint32_t i = 0; i < 10000; i++) {
		/* For another service first. */
		m.req.service_id = (uint64_t)(i == 0) << 32 | RDMA_PS_TCP << 16 | 7174;
		m.local_id = 1000 + i;
		m.req.qpn = 100 + i;
		cm_mad_build(&m, mad);
		cm_service_receive(node[1].s, now, &path, mad, sizeof(mad));
	}
	turn(&node[1]);
	assert_int_equal(cm_service_ids(node[1].s, NULL, 0), 1 + UCM_BACKLOG / 2);
	assert_int_equal(cm_service_counters(node[1].s)->dropped_source, 9999 - UCM_BACKLOG / 2);
	assert_int_equal(cm_service_counters(node[1].s)->rejected, 1);
	/* It knows no time in which ACKs come. */
	id = expect_event(&l.ch, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(query_route(&l.ch, id, &route), 0);
	assert_int_equal(route.ib_route[0].packet_life_time, 0);
	assert_int_equal(destroy_id(&l.ch, id, NULL), 0);
	assert_int_equal(destroy_id(&l.ch, l.id, NULL), 0);
	assert_int_equal(cm_service_ids(node[1].s, NULL, 0), 0);
	assert_false(readable(&l.ch));
}

/* A program whose socket was full when an event came is woken when it has room again. */
TEST(event__byte_that_found_no_room)
{
	struct channel ch = open_channel(0);
	const struct ucm_channel *inside = LIST_FIRST(&node[0].s->channels);
	uint8_t byte = 0;
	uint32_t id;

	assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	while (send(inside->fd, &byte, 1, MSG_DONTWAIT) == 1)
		;
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 10), 0);
	while (recv(ch.fd, &byte, 1, MSG_DONTWAIT) == 1)
		;
	assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
}

/* The peer gives up before the request is accepted: no event, the accept fails. */
TEST(listen__peer_gives_up)
{
	struct end l, c;
	uint32_t id = ask_ends(&l, &c);

	close_channel(&c.ch);
	settle();
	expect_no_event(&l.ch);
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, ""), -EINVAL);
}

/* ---- the byte ---- */

TEST(byte__one_for_all_events)
{
	struct end a = {.ch = open_channel(0)};
	struct rdma_ucm_get_event in = {.response = 1};
	struct rdma_ucm_event_resp e;
	uint8_t bytes[2];
	uint32_t id[3];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(create_id(&a.ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id[i]), 0);
		assert_false(i == 0 && readable(&a.ch));
		assert_int_equal(resolve_ip(&a.ch, id[i], NULL, "10.0.0.2", 1, 1000), 0);
	}
	/* After taking it early there is no new notification until the queue has been empty. */
	assert_int_equal(recv(a.ch.fd, bytes, 2, MSG_DONTWAIT), 1);
	assert_false(readable(&a.ch));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ASK(&a.ch, GET_EVENT, in, e), 0);
		assert_int_equal(a.ch.flags, 0);
	}
}

/* ---- moving ---- */

TEST(migrate__with_events)
{
	struct channel a = open_channel(0), b = open_channel(0);
	uint32_t id, other, events;

	assert_int_equal(create_id(&a, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(create_id(&a, 2, RDMA_PS_TCP, UCM_QPT_RC, &other), 0);
	assert_int_equal(resolve_ip(&a, id, NULL, "10.0.0.2", 1, 1000), 0);
	expect_event(&a, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&a, id), 0);
	/* The last event goes: the byte there is to be taken. */
	assert_int_equal(migrate(&a, &b, id, &events), 0);
	assert_int_equal(events, 1);
	assert_int_equal(services_used(&node[0], SHARE_cm_events), 1);
	assert_int_equal(services_used(&node[0], SHARE_cm_ports), 1);
	assert_int_equal(b.flags, CM_CHANNEL_QUIET_THERE);
	take_byte(&a);
	expect_no_event(&a);
	assert_int_equal(expect_event(&b, UCM_EVENT_ROUTE_RESOLVED).uid, 1);
	assert_int_equal(resolve_route(&a, id), -EINVAL);
	assert_int_equal(connect_id(&b, id, 1, ""), 0);
	assert_int_equal(destroy_id(&b, id, &events), 0);
	assert_int_equal(events, 2);
}

TEST(migrate__others_stay)
{
	struct channel a = open_channel(0), b = open_channel(0);
	uint32_t id, other, third, events;

	assert_int_equal(create_id(&a, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(create_id(&a, 2, RDMA_PS_TCP, UCM_QPT_RC, &other), 0);
	assert_int_equal(create_id(&a, 3, RDMA_PS_TCP, UCM_QPT_RC, &third), 0);
	assert_int_equal(resolve_ip(&a, id, NULL, "10.0.0.2", 1, 1000), 0);
	assert_int_equal(resolve_ip(&a, other, NULL, "10.0.0.2", 1, 1000), 0);
	assert_int_equal(resolve_ip(&a, third, NULL, "10.0.0.2", 1, 1000), 0);
	assert_int_equal(resolve_route(&a, id), 0);
	/* To itself: nothing changes. */
	assert_int_equal(migrate(&a, &a, other, &events), 0);
	assert_int_equal(migrate(&a, &b, id, &events), 0);
	assert_int_equal(b.flags, 0);
	assert_int_equal(expect_event(&b, UCM_EVENT_ADDR_RESOLVED).uid, 1);
	assert_int_equal(expect_event(&b, UCM_EVENT_ROUTE_RESOLVED).uid, 1);
	expect_no_event(&b);
	assert_int_equal(expect_event(&a, UCM_EVENT_ADDR_RESOLVED).uid, 2);
	assert_int_equal(expect_event(&a, UCM_EVENT_ADDR_RESOLVED).uid, 3);
	expect_no_event(&a);
}

TEST(migrate__tickets)
{
	struct channel a = open_channel(0), b = open_channel(0);
	struct cm_channel_ticket first, second;
	uint32_t id, events;

	assert_int_equal(create_id(&a, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(take(&b, id, &events), -ENOENT);
	srand(1);
	assert_int_equal(release(&a, id, &first), 0);
	assert_int_equal(take(&b, first.ticket ^ 0x10000, &events), -ENOENT);
	assert_int_equal(take(&b, first.ticket ^ 1, &events), -ENOENT);
	srand(1); /* that would be guessed */
	assert_int_equal(release(&a, id, &second), 0);
	assert_int_not_equal(first.ticket, second.ticket);
	assert_int_equal(take(&b, first.ticket, &events), -ENOENT);
	assert_int_equal(take(&b, second.ticket, &events), 0);
	assert_int_equal(b.flags, 0);
	assert_false(readable(&b));
	assert_int_equal(take(&b, second.ticket, &events), -ENOENT);
	assert_int_equal(destroy_id(&a, id, NULL), -EINVAL);
	/* It ends with its identifier. */
	assert_int_equal(release(&b, id, &first), 0);
	assert_int_equal(destroy_id(&b, id, NULL), 0);
	assert_int_equal(create_id(&b, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(take(&a, first.ticket, &events), -ENOENT);
}

TEST(migrate__no_room)
{
	struct channel a, b;
	uint32_t id, other, events;

	services_total(SHARE_cm_ids, 2); /* one of them for one channel */
	a = open_channel(0);
	b = open_channel(0);
	assert_int_equal(create_id(&a, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(create_id(&b, 1, RDMA_PS_TCP, UCM_QPT_RC, &other), 0);
	assert_int_equal(migrate(&a, &b, id, &events), -ENOMEM);
	assert_int_equal(destroy_id(&b, other, NULL), 0);
	assert_int_equal(migrate(&a, &b, id, &events), 0);
}

/* ---- the end of a program ---- */

/* With identifiers in every state. */
TEST(death__in_every_state)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174), c, d;
	struct channel ch;
	uint32_t id, connections, orphans;

	c = caller(1, RDMA_PS_TCP, "10.0.0.2", 7174); /* to itself */
	ch = c.ch;
	id = join_ends(&l, &c);
	assert_int_equal(disconnect_id(&l.ch, id), 0);
	settle();
	expect_event(&c.ch, UCM_EVENT_DISCONNECTED);
	assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(bind_ip(&ch, id, "10.0.0.2", 0), 0);
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.1", 1, 1), 0);
	node[1].resolve_again = 10;
	assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.1", 1, 1), 0);
	d = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	assert_int_equal(connect_id(&d.ch, d.id, 0x999, ""), 0);
	settle();
	close_channel(&l.ch); /* with a request in its queue */
	close_channel(&ch);
	assert_int_equal(cm_service_ids(node[1].s, NULL, 0), 0);
	settle();
	assert_int_equal(expect_event(&d.ch, UCM_EVENT_REJECTED).status, CM_REJ_CONSUMER);
	pass(240000ull * MS); /* the rejection is kept for repetitions */
	cm_census(node[1].s->cm, &connections, &orphans);
	assert_int_equal(connections, 0);
	/* Its port is free. */
	l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
}

/* What a library has to know in case the daemon dies. */
TEST(device__which_identifiers_are_on_one)
{
	static const struct {
		const char *address;
		uint32_t flags;
	} cases[] = {{"10.0.0.2", CM_CHANNEL_ON_DEVICE},
		     {"fd00::2", CM_CHANNEL_ON_DEVICE},
		     {"gid:fd00::2", CM_CHANNEL_ON_DEVICE},
		     {"0.0.0.0", 0},
		     {"::", 0},
		     {"127.0.0.1", 0},
		     {"10.9.9.9", 0}};
	struct channel ch = open_channel(1);
	uint32_t id;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union ucm_address address = address_of(cases[i].address, 7174);

		assert_int_equal(create_id(&ch, 100, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		bind_any(&ch, id, &address);
		assert_int_equal(ch.flags, cases[i].flags);
		assert_int_equal(destroy_id(&ch, id, NULL), 0);
		if (address.family == UCM_AF_IB)
			continue;
		assert_int_equal(create_id(&ch, 100, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		bind_ip(&ch, id, cases[i].address, 7174);
		assert_int_equal(ch.flags, cases[i].flags);
		assert_int_equal(destroy_id(&ch, id, NULL), 0);
	}
}

/* A request's counts for its listener. */
TEST(device__which_identifier_an_event_counts_for)
{
	struct end l = listener(1, RDMA_PS_TCP, "10.0.0.2", 7174);
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	struct rdma_ucm_event_resp e;

	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	settle();
	e = expect_event(&l.ch, UCM_EVENT_CONNECT_REQUEST);
	assert_int_not_equal(e.id, l.id);
	assert_int_equal(l.ch.counts_for, l.id + 1);
	assert_int_equal(reject_id(&l.ch, e.id, 0, ""), 0);
	assert_int_equal(l.ch.counts_for, 0);
	settle();
	expect_event(&c.ch, UCM_EVENT_REJECTED);
	assert_int_equal(c.ch.counts_for, c.id + 1);
	expect_no_event(&c.ch);
	assert_int_equal(c.ch.counts_for, 0);
}

TEST(telemetry__identifiers)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	struct cm_id_info info[3];
	uint8_t gid[16];

	join_ends(&l, &c);
	assert_int_equal(cm_service_ids(node[0].s, info, 3), 1);
	assert_int_equal(info[0].id, c.id);
	assert_int_equal(info[0].pid, getpid());
	assert_int_equal(info[0].port_space, RDMA_PS_TCP);
	assert_string_equal(info[0].state, "CONNECT");
	assert_string_equal(info[0].device, "shca0");
	assert_int_equal(info[0].destination_port, 7174);
	assert_int_equal(info[0].qpn, 0x111);
	gid_of(2, 0, GID_V4, gid);
	assert_memory_equal(info[0].destination, gid, 16);
	gid_of(1, 0, GID_V4, gid);
	assert_memory_equal(info[0].source, gid, 16);
	info[1].id = 4711;
	assert_int_equal(cm_service_ids(node[1].s, info, 1), 2);
	assert_int_equal(info[1].id, 4711);
	assert_int_equal(cm_service_ids(node[1].s, info, 3), 2);
	assert_int_equal(info[1].id, l.id);
	assert_string_equal(info[1].device, "");
}
