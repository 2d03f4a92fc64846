/* SPDX-License-Identifier: BSD-3-Clause */
/* A device is removed: its identifiers' programs are told, the peers of its connections too, and nothing
 * of it remains; what is on other devices goes on. */
#include "service_fixture.h"

/* Two ends with a connection: the server's identifier, of a listener at all devices. */
static uint32_t connected(struct end *l, struct end *c)
{
	*l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	*c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	return join_ends(l, c);
}

static void expect_removal(struct channel *ch, uint32_t id, uint64_t uid)
{
	struct rdma_ucm_event_resp e = expect_event(ch, UCM_EVENT_DEVICE_REMOVAL);

	assert_int_equal(e.id, id);
	assert_int_equal(e.uid, uid);
}

/* Nothing but DESTROY_ID works any more. */
static void expect_useless(struct channel *ch, uint32_t id)
{
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(bind_ip(ch, id, "10.1.0.2", 0), -EINVAL);
	assert_int_equal(resolve_ip(ch, id, NULL, "10.1.0.1", 7174, 100), -EINVAL);
	assert_int_equal(resolve_route(ch, id), -EINVAL);
	assert_int_equal(listen_id(ch, id, 1), -EINVAL);
	assert_int_equal(connect_id(ch, id, 0x111, ""), -EINVAL);
	assert_int_equal(accept_id(ch, id, 1, 0x111, ""), -EINVAL);
	assert_int_equal(reject_id(ch, id, 0, ""), -EINVAL);
	assert_int_equal(disconnect_id(ch, id), -EINVAL);
	assert_int_equal(init_qp_attr(ch, id, UCM_QPS_INIT, &attr), -EINVAL);
	expect_no_event(ch);
	assert_int_equal(destroy_id(ch, id, NULL), 0);
}

TEST(remove__ends_connections)
{
	struct end l, c;
	uint32_t server = connected(&l, &c);

	cm_service_remove(node[1].s, now, 0);
	expect_removal(&l.ch, server, 300);
	expect_no_event(&l.ch); /* its listener is for all devices */
	settle();
	expect_event(&c.ch, UCM_EVENT_DISCONNECTED);
	expect_useless(&l.ch, server);
	pass(60000ull * MS);
	assert_int_equal(services_used(&node[1], SHARE_cm_requests), 0);
}

TEST(remove__in_every_state)
{
	static const char *const addresses[] = {"10.0.0.2", "10.1.0.2"};
	struct channel ch = open_channel(1);
	uint32_t id;

	for (unsigned int step = 0; step < 6; step++) {
		assert_int_equal(create_id(&ch, 7, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		node[1].resolve_again = step == 2 ? 1000 : 0;
		assert_int_equal(bind_ip(&ch, id, addresses[0], 7174), 0);
		if (step == 1)
			assert_int_equal(listen_id(&ch, id, 1), 0);
		if (step >= 2)
			assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.1", 1, 1000), 0);
		if (step >= 3)
			expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
		if (step >= 4) {
			assert_int_equal(resolve_route(&ch, id), 0);
			expect_event(&ch, UCM_EVENT_ROUTE_RESOLVED);
		}
		if (step == 5)
			assert_int_equal(connect_id(&ch, id, 0x111, ""), 0);
		cm_service_remove(node[1].s, now, 0);
		expect_removal(&ch, id, 7);
		/* Its port is free, at the device that is left, too. */
		expect_useless(&ch, id);
		assert_int_equal(create_id(&ch, 7, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		assert_int_equal(bind_ip(&ch, id, addresses[0], 7174), -EADDRNOTAVAIL);
		assert_int_equal(bind_ip(&ch, id, addresses[1], 7174), 0);
		assert_int_equal(destroy_id(&ch, id, NULL), 0);
		services_teardown(NULL);
		services_setup(NULL);
		ch = open_channel(1);
	}
}

TEST(remove__in_time_wait)
{
	struct end l, c;
	uint32_t server = connected(&l, &c);

	assert_int_equal(disconnect_id(&l.ch, server), 0);
	settle();
	expect_event(&c.ch, UCM_EVENT_DISCONNECTED);
	assert_int_equal(disconnect_id(&c.ch, c.id), 0);
	settle();
	expect_event(&l.ch, UCM_EVENT_DISCONNECTED);
	cm_service_remove(node[1].s, now, 0);
	expect_removal(&l.ch, server, 300);
	expect_useless(&l.ch, server);
}

/* Requests that no program knows yet are rejected; what a listener has room for is as before. */
TEST(remove__rejects_requests)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174), other;
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);

	assert_int_equal(connect_id(&c.ch, c.id, 0x112, ""), 0);
	settle();
	cm_service_remove(node[1].s, now, 0);
	settle();
	expect_event(&c.ch, UCM_EVENT_REJECTED);
	other = caller(0, RDMA_PS_TCP, "10.1.0.2", 7174);
	assert_int_equal(connect_id(&other.ch, other.id, 0x113, ""), 0);
	settle();
	expect_event(&l.ch, UCM_EVENT_CONNECT_REQUEST);
	expect_no_event(&l.ch);
}

/* Neither is its route taken, nor are its addresses. */
TEST(remove__resolves_no_more)
{
	struct channel ch = open_channel(1);
	uint32_t id;

	cm_service_remove(node[1].s, now, 0);
	assert_int_equal(create_id(&ch, 7, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.1", 7174, 100), -ENETUNREACH);
	assert_int_equal(resolve_ip(&ch, id, NULL, "127.0.0.1", 7174, 100), 0);
	expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
	cm_service_remove(node[1].s, now, 1);
	expect_removal(&ch, id, 7);
}

TEST(remove__leaves_other_devices)
{
	struct end l, c, other;
	uint32_t server = connected(&l, &c), resolving;

	other = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	assert_int_equal(connect_id(&other.ch, other.id, 0x112, ""), 0);
	settle();
	assert_int_equal(create_id(&l.ch, 7, RDMA_PS_TCP, UCM_QPT_RC, &resolving), 0);
	node[1].resolve_again = 1000;
	assert_int_equal(resolve_ip(&l.ch, resolving, NULL, "10.0.0.1", 1, 1000), 0);
	cm_service_remove(node[1].s, now, 1);
	settle();
	expect_event(&l.ch, UCM_EVENT_CONNECT_REQUEST);
	expect_no_event(&l.ch);
	expect_no_event(&c.ch);
	assert_int_equal(disconnect_id(&l.ch, server), 0);
	settle();
	expect_event(&c.ch, UCM_EVENT_DISCONNECTED);
}

/* Whoever listens at any address is reached through a device that has come back; an identifier of the time
 * before is not. */
TEST(add__in_the_place_of_one_that_was_removed)
{
	struct end l, c;
	uint32_t server = connected(&l, &c), again;

	cm_service_remove(node[1].s, now, 0);
	expect_removal(&l.ch, server, 300);
	settle();
	expect_event(&c.ch, UCM_EVENT_DISCONNECTED);
	assert_int_equal(destroy_id(&c.ch, c.id, NULL), 0);
	pass(60000ull * MS);
	service_add(1, 0);
	c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	again = join_ends(&l, &c);
	expect_useless(&l.ch, server);
	cm_service_remove(node[1].s, now, 0);
	expect_removal(&l.ch, again, 300);
	expect_no_event(&l.ch);
}
