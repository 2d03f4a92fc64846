/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding and resolving: our own addresses, sharing of ports, the device and GID for a destination,
 * next hops that are resolved late or never.
 */
#include <endian.h>
#include "service_fixture.h"

static struct channel ch;

static uint32_t fresh(uint16_t ps)
{
	uint32_t id;

	assert_int_equal(create_id(&ch, 200, ps, UCM_QPT_RC, &id), 0);
	return id;
}

static int reuse(uint32_t id)
{
	int32_t one = 1;

	return set_option(&ch, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one));
}

static int afonly(uint32_t id, int32_t on)
{
	return set_option(&ch, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
}

TEST(bind__whose_address)
{
	static const struct {
		const char *address;
		int status;
	} cases[] = {{"0.0.0.0", 0},
		     {"127.0.0.1", 0},
		     {"10.0.0.1", 0},
		     {"10.1.0.1", 0},
		     {"10.0.0.2", -EADDRNOTAVAIL},
		     {"192.0.2.1", -EADDRNOTAVAIL},
		     {"::", 0},
		     {"::1", 0},
		     {"fd00::1", 0},
		     {"fd00:1::1", 0},
		     {"fe80::1:0", 0},
		     {"fd00::2", -EADDRNOTAVAIL},
		     {"::2", -EADDRNOTAVAIL},
		     {"::ffff:10.0.0.1", 0},
		     {"gid:::", 0},
		     {"gid:fd00::1", 0},
		     {"gid:::ffff:10.0.0.1", 0},
		     {"gid:fd00::2", -EADDRNOTAVAIL}};
	uint32_t id;

	ch = open_channel(0);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		id = fresh(RDMA_PS_TCP);
		assert_int_equal(bind_ip(&ch, id, cases[i].address, 0), cases[i].status);
		/* After a failure one may try again. */
		assert_int_equal(bind_ip(&ch, id, "0.0.0.0", 0), cases[i].status ? 0 : -EINVAL);
	}
}

TEST(bind__malformed)
{
	struct rdma_ucm_bind in = {.id = 0};
	union ucm_address a = address_of("10.0.0.1", 0);
	struct rdma_ucm_bind_ip ip = {.id = 0};
	struct rdma_ucm_resolve_ip both = {.id = 0};
	struct rdma_ucm_resolve_addr r = {.id = 0};

	ch = open_channel(0);
	in.id = ip.id = both.id = r.id = fresh(RDMA_PS_TCP);
	memcpy(&in.addr, &a, sizeof(a.v4));
	for (uint16_t size = 0; size < 200; size++) {
		in.addr_size = size;
		if (size != sizeof(a.v4))
			assert_int_equal(TELL(&ch, BIND, in), -EINVAL);
	}
	in.addr_size = sizeof(a.v4);
	in.reserved = 1;
	assert_int_equal(TELL(&ch, BIND, in), -EINVAL);
	ip.addr.sin6_family = UCM_AF_IB;
	assert_int_equal(TELL(&ch, BIND_IP, ip), -EAFNOSUPPORT);
	both.src_addr.sin6_family = UCM_AF_IB;
	both.dst_addr.sin6_family = AF_INET;
	assert_int_equal(TELL(&ch, RESOLVE_IP, both), -EAFNOSUPPORT);
	both.src_addr.sin6_family = AF_UNSPEC;
	both.dst_addr.sin6_family = UCM_AF_IB;
	assert_int_equal(TELL(&ch, RESOLVE_IP, both), -EAFNOSUPPORT);
	both.src_addr.sin6_family = AF_INET;
	both.dst_addr.sin6_family = AF_UNIX;
	assert_int_equal(TELL(&ch, RESOLVE_IP, both), -EAFNOSUPPORT);
	ip.addr.sin6_family = AF_UNIX;
	assert_int_equal(TELL(&ch, BIND_IP, ip), -EAFNOSUPPORT);
	memcpy(&r.dst_addr, &a, sizeof(a.v4));
	assert_int_equal(TELL(&ch, RESOLVE_ADDR, r), -EINVAL);
	r.dst_size = sizeof(a.v4);
	r.src_size = 3;
	assert_int_equal(TELL(&ch, RESOLVE_ADDR, r), -EINVAL);
	r.src_size = 0;
	r.reserved = 1;
	assert_int_equal(TELL(&ch, RESOLVE_ADDR, r), -EINVAL);
}

/* Two bind to port 5000, one after the other. */
TEST(bind__shared_ports)
{
	static const struct {
		const char *first, *second;
		unsigned int reuse; /* of the first: 1, of the second: 2 */
		bool afonly;
		int status;
	} cases[] = {{"0.0.0.0", "0.0.0.0", 0, false, -EADDRNOTAVAIL},
		     {"10.0.0.1", "10.0.0.1", 0, false, -EADDRINUSE},
		     {"10.0.0.1", "10.1.0.1", 0, false, 0},
		     {"10.0.0.1", "0.0.0.0", 0, false, -EADDRNOTAVAIL},
		     {"0.0.0.0", "10.0.0.1", 0, false, -EADDRNOTAVAIL},
		     {"0.0.0.0", "0.0.0.0", 1, false, -EADDRNOTAVAIL},
		     {"0.0.0.0", "0.0.0.0", 2, false, -EADDRNOTAVAIL},
		     {"0.0.0.0", "0.0.0.0", 3, false, 0},
		     {"10.0.0.1", "10.0.0.1", 3, false, 0},
		     {"0.0.0.0", "::", 0, false, -EADDRNOTAVAIL},
		     {"0.0.0.0", "::", 0, true, 0},
		     {"::", "0.0.0.0", 0, false, -EADDRNOTAVAIL},
		     {"10.0.0.1", "fd00::1", 0, false, 0},
		     {"gid:fd00::1", "fd00::1", 0, false, 0},
		     {"gid:fd00::1", "gid:fd00::1", 0, false, -EADDRINUSE}};

	ch = open_channel(0);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t a = fresh(RDMA_PS_TCP), b = fresh(RDMA_PS_TCP), other = fresh(RDMA_PS_UDP);
		struct rdma_ucm_query_addr_resp addr;

		if (cases[i].reuse & 1)
			assert_int_equal(reuse(a), 0);
		if (cases[i].reuse & 2)
			assert_int_equal(reuse(b), 0);
		if (cases[i].afonly)
			assert_int_equal(afonly(b, 1), 0);
		assert_int_equal(bind_ip(&ch, a, cases[i].first, 5000), 0);
		assert_int_equal(bind_ip(&ch, b, cases[i].second, 5000), cases[i].status);
		assert_int_equal(query_addr(&ch, b, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
		assert_int_equal(!addr.src_size, cases[i].status != 0);
		if (strncmp(cases[i].second, "gid", 3) != 0) /* another port space */
			assert_int_equal(bind_ip(&ch, other, cases[i].second, 5000), 0);
		/* Who does not share has been compared with all when it was bound. */
		if (cases[i].afonly)
			assert_int_equal(afonly(b, 0) | listen_id(&ch, b, 1), 0);
		/* Only one may listen, if they share all. */
		if (cases[i].reuse == 3) {
			assert_int_equal(listen_id(&ch, a, 1),
					 cases[i].first[0] == '0' ? -EADDRNOTAVAIL : -EADDRINUSE);
			assert_int_equal(destroy_id(&ch, b, NULL), 0);
			b = fresh(RDMA_PS_TCP);
			assert_int_equal(listen_id(&ch, a, 1), 0);
			assert_int_equal(reuse(b), 0);
			assert_true(bind_ip(&ch, b, cases[i].second, 5000) < 0);
		}
		assert_int_equal(destroy_id(&ch, a, NULL), 0);
		assert_int_equal(destroy_id(&ch, b, NULL), 0);
		assert_int_equal(destroy_id(&ch, other, NULL), 0);
	}
}

static uint16_t port_of(uint32_t id)
{
	struct rdma_ucm_query_route_resp route;

	assert_int_equal(query_route(&ch, id, &route), 0);
	return ntohs(route.src_addr.sin6_port);
}

TEST(bind__ephemeral_ports)
{
	static uint8_t seen[65536];
	uint32_t id;

	memset(seen, 0, sizeof(seen));
	services_total(SHARE_cm_ports, 1 << 16); /* so that one channel may have them all */
	ch = open_channel(0);
	for (unsigned int i = 0; i < 60999 - 32768 + 1; i++) {
		uint16_t port;

		id = fresh(RDMA_PS_TCP);
		assert_int_equal(bind_ip(&ch, id, "0.0.0.0", 0), 0);
		port = port_of(id);
		assert_in_range(port, 32768, 60999);
		assert_false(seen[port]);
		seen[port] = 1;
	}
	assert_int_equal(bind_ip(&ch, fresh(RDMA_PS_TCP), "0.0.0.0", 0), -EADDRNOTAVAIL);
	/* The last one rests for a while. */
	assert_int_equal(destroy_id(&ch, id, NULL), 0);
	assert_int_equal(bind_ip(&ch, fresh(RDMA_PS_TCP), "0.0.0.0", 0), -EADDRNOTAVAIL);
	assert_int_equal(bind_ip(&ch, fresh(RDMA_PS_UDP), "0.0.0.0", 0), 0);
}

/* One that does not conflict hides none that does. Each takes from the channel's share. */
TEST(bind__beside_several)
{
	uint32_t first, second, id;

	services_total(SHARE_cm_ports, 4); /* half of them for one channel */
	ch = open_channel(0);
	first = fresh(RDMA_PS_TCP);
	second = fresh(RDMA_PS_TCP);
	id = fresh(RDMA_PS_TCP);
	assert_int_equal(bind_ip(&ch, first, "10.0.0.1", 5000), 0);
	assert_int_equal(bind_ip(&ch, second, "10.1.0.1", 5000), 0);
	assert_int_equal(bind_ip(&ch, id, "10.0.0.1", 5000), -EADDRINUSE);
	assert_int_equal(bind_ip(&ch, id, "fd00::1", 5000), -EADDRNOTAVAIL);
	assert_int_equal(destroy_id(&ch, first, NULL), 0);
	assert_int_equal(bind_ip(&ch, id, "fd00::1", 5000), 0);
}

/* A port is shared by that many and no more, since who binds to it is compared with all of them. */
TEST(bind__shared_by_many)
{
	int32_t on = 1;
	uint32_t id;

	ch = open_channel(0);
	for (unsigned int i = 0; i <= UCM_PORT_SHARERS; i++) {
		id = fresh(RDMA_PS_TCP);
		assert_int_equal(
			set_option(&ch, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, 4), 0);
		assert_int_equal(bind_ip(&ch, id, "0.0.0.0", 7174),
				 i < UCM_PORT_SHARERS ? 0 : -EADDRNOTAVAIL);
	}
	assert_int_equal(bind_ip(&ch, id, "0.0.0.0", 7175), 0);
}

TEST(bind__privileged_ports)
{
	struct ucm_channel *c;
	uint32_t id;

	ch = open_channel(0);
	c = LIST_FIRST(&node[0].s->channels);
	c->user = 1000;
	id = fresh(RDMA_PS_TCP);
	assert_int_equal(bind_ip(&ch, id, "0.0.0.0", 1023), -EACCES);
	assert_int_equal(bind_ip(&ch, id, "0.0.0.0", 1024), 0);
	c->user = 0;
	assert_int_equal(bind_ip(&ch, fresh(RDMA_PS_TCP), "0.0.0.0", 1023), 0);
}

/* AF_IB: the service ID's upper bits say the port space. */
TEST(bind__service_ids)
{
	static const struct {
		uint16_t ps;
		uint64_t sid, mask;
		int status;
		uint16_t space;
	} cases[] = {{RDMA_PS_IB, 0x1060000, 0xffffffffffff0000, 0, RDMA_PS_TCP},
		     {RDMA_PS_IB, 0x13f1234, UINT64_MAX, 0, RDMA_PS_IB},
		     {RDMA_PS_IB, 0x1111234, UINT64_MAX, 0, RDMA_PS_UDP},
		     {RDMA_PS_IB, 0, 0, 0, RDMA_PS_IB},
		     {RDMA_PS_TCP, 0, 0, 0, RDMA_PS_TCP},
		     {RDMA_PS_TCP, 0x1111234, UINT64_MAX, -EPROTONOSUPPORT, 0},
		     {RDMA_PS_IB, 0x1234567800000000, UINT64_MAX, -EPROTONOSUPPORT, 0},
		     {RDMA_PS_UDP, 0x1061234, UINT64_MAX, -EPROTONOSUPPORT, 0}};

	ch = open_channel(0);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union ucm_address a = address_of("gid:::", 0);
		struct rdma_ucm_query_addr_resp addr;
		struct ucm_sockaddr_ib ib;
		uint32_t id = fresh(cases[i].ps);

		a.ib.sid = htobe64(cases[i].sid);
		a.ib.sid_mask = htobe64(cases[i].mask);
		assert_int_equal(bind_any(&ch, id, &a), cases[i].status);
		if (cases[i].status)
			continue;
		assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
		memcpy(&ib, &addr.src_addr, sizeof(ib));
		assert_int_equal(be64toh(ib.sid) >> 16, cases[i].space);
		if (cases[i].sid & 0xffff)
			assert_int_equal(be64toh(ib.sid) & 0xffff, cases[i].sid & 0xffff);
	}
}

/* It is on that device, and has that GID. */
static void check_device(uint32_t id, unsigned int device, const char *sgid)
{
	struct rdma_ucm_query_route_resp route;
	union ucm_address a = address_of(sgid, 0);
	uint8_t wanted[16];

	ucm_address_gid(&a, wanted);
	assert_int_equal(query_route(&ch, id, &route), 0);
	assert_int_equal(be64toh(route.node_guid), 0x0200000000000000 + device);
	assert_memory_equal(route.ib_route[0].sgid, wanted, 16);
}

TEST(resolve__device_and_gid)
{
	static const struct {
		const char *source, *destination, *chosen;
		unsigned int device;
		int status;
		const char *sgid; /* NULL: as chosen */
	} cases[] = {{NULL, "10.0.0.2", "10.0.0.1", 0, 0, NULL},
		     {NULL, "10.1.0.2", "10.1.0.1", 1, 0, NULL},
		     {"10.1.0.1", "10.1.0.2", "10.1.0.1", 1, 0, NULL},
		     {"10.0.0.1", "10.1.0.2", NULL, 0, -ENETUNREACH, NULL},
		     {"0.0.0.0", "10.1.0.2", "10.1.0.1", 1, 0, NULL},
		     {NULL, "192.0.2.7", NULL, 0, -ENETUNREACH, NULL},
		     {NULL, "fd00::2", "fd00::1", 0, 0, NULL},
		     {NULL, "fd00:1::2", "fd00:1::1", 1, 0, NULL},
		     {NULL, "fd09::2", NULL, 0, -ENETUNREACH, NULL},
		     {NULL, "gid:fd00:1::2", "gid:fd00:1::1", 1, 0, NULL},
		     {"fd00::1", "10.0.0.2", NULL, 0, -EINVAL, NULL},
		     {"10.0.0.2", "10.0.0.2", NULL, 0, -EADDRNOTAVAIL, NULL},
		     {NULL, "10.1.0.1", "10.1.0.1", 1, 0, NULL},
		     {"10.0.0.1", "10.1.0.1", NULL, 0, -ENETUNREACH, NULL},
		     {"gid:fd00::1", "gid:fe80::1:0", "gid:fd00::1", 0, 0, NULL},
		     {"gid:fe80::1:0", "gid:fd00::2", "gid:fe80::1:0", 0, 0, NULL},
		     {"gid:fe80::1:0", "gid:::ffff:10.0.0.2", NULL, 0, -ENETUNREACH, NULL},
		     {"gid:fd00::1", "gid:::ffff:10.0.0.1", NULL, 0, -ENETUNREACH, NULL},
		     {"gid:::ffff:10.0.0.1", "gid:fd00::2", NULL, 0, -ENETUNREACH, NULL},
		     {NULL, "127.0.0.1", "127.0.0.1", 0, 0, "10.0.0.1"},
		     {NULL, "0.0.0.0", "127.0.0.1", 0, 0, "10.0.0.1"},
		     {NULL, "::1", "::1", 0, 0, "fe80::1:0"},
		     {"10.1.0.1", "127.0.0.1", "127.0.0.1", 1, 0, "10.1.0.1"}};

	ch = open_channel(0);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rdma_ucm_query_addr_resp addr;
		uint8_t wanted[16], got[16];
		union ucm_address a;
		uint32_t id = fresh(RDMA_PS_TCP);

		assert_int_equal(
			resolve_ip(&ch, id, cases[i].source, cases[i].destination, 7174, 10),
			cases[i].status);
		if (cases[i].status) {
			expect_no_event(&ch);
			assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
			assert_int_equal(addr.dst_size, 0);
			continue;
		}
		assert_int_equal(expect_event(&ch, UCM_EVENT_ADDR_RESOLVED).id, id);
		assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
		memset(&a, 0, sizeof(a));
		memcpy(&a, &addr.src_addr, addr.src_size);
		ucm_address_gid(&a, got);
		a = address_of(cases[i].chosen, 0);
		ucm_address_gid(&a, wanted);
		assert_memory_equal(got, wanted, 16);
		check_device(id, cases[i].device, cases[i].sgid ? cases[i].sgid : cases[i].chosen);
	}
}

/* A scope ID has no meaning here, and a peer does not get it. */
TEST(resolve__forgets_scope_ids)
{
	union ucm_address source = address_of("fd00::1", 0), to = address_of("fd00::2", 7174);
	struct rdma_ucm_resolve_ip in = {.timeout_ms = 10};
	struct rdma_ucm_query_addr_resp addr;

	ch = open_channel(0);
	in.id = fresh(RDMA_PS_TCP);
	source.v6.sin6_scope_id = to.v6.sin6_scope_id = 5;
	in.src_addr = source.v6;
	in.dst_addr = to.v6;
	assert_int_equal(TELL(&ch, RESOLVE_IP, in), 0);
	assert_int_equal(query_addr(&ch, in.id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
	memcpy(&source, &addr.src_addr, sizeof(source.v6));
	memcpy(&to, &addr.dst_addr, sizeof(to.v6));
	assert_int_equal(source.v6.sin6_scope_id, 0);
	assert_int_equal(to.v6.sin6_scope_id, 0);
}

/* Of the destination a source that nobody names has the P_Key. */
TEST(resolve__takes_after_the_destination)
{
	union ucm_address source;
	struct rdma_ucm_query_addr_resp addr;
	uint32_t id;

	ch = open_channel(0);
	id = fresh(RDMA_PS_TCP);
	assert_int_equal(resolve_ip(&ch, id, NULL, "gid:fd00::2", 7174, 10), 0);
	assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
	memcpy(&source, &addr.src_addr, sizeof(source.ib));
	assert_int_equal(source.ib.pkey, 0xffff);
}

/* A second try after one that found no way. */
TEST(resolve__again)
{
	uint32_t id;

	ch = open_channel(0);
	id = fresh(RDMA_PS_TCP);
	assert_int_equal(resolve_ip(&ch, id, NULL, "192.0.2.7", 7174, 10), -ENETUNREACH);
	node[0].resolve_result = -EHOSTUNREACH;
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 10), 0);
	assert_int_equal((int)expect_event(&ch, UCM_EVENT_ADDR_ERROR).status, -EHOSTUNREACH);
	/* Neither a group nor oneself has a next hop that could be missing. */
	assert_int_equal(resolve_ip(&ch, fresh(RDMA_PS_TCP), NULL, "10.0.0.1", 7174, 10), 0);
	expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_ip(&ch, fresh(RDMA_PS_UDP), NULL, "ff0e::1", 7174, 10), 0);
	expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
	node[0].resolve_result = 0;
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.1.0.2", 7174, 10), 0);
	expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.1.0.2", 7174, 10), -EINVAL);
}

/* Only so many next hops are asked for in a second; what is known needs no question. */
TEST(resolve__questions_are_shared)
{
	services_total(SHARE_neighbours, 2);
	ch = open_channel(0);
	for (int i = 0; i < 6; i++) {
		node[0].would_ask = i >= 3;
		assert_int_equal(resolve_ip(&ch, fresh(RDMA_PS_TCP), NULL, "10.0.0.2", 7174, 1000),
				 0);
		if (i < 5)
			expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
	}
	pass(5 * MS);
	expect_no_event(&ch);
	share_refill(node[0].s->shares, SHARE_neighbours);
	pass(2 * MS);
	expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
}

TEST(resolve__times_out)
{
	uint32_t id, behind;

	ch = open_channel(0);
	id = fresh(RDMA_PS_TCP);
	behind = fresh(RDMA_PS_TCP);
	node[0].resolve_again = 1000000;
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 100), 0);
	pass(99 * MS);
	expect_no_event(&ch);
	pass(MS);
	assert_int_equal((int)expect_event(&ch, UCM_EVENT_ADDR_ERROR).status, -ETIMEDOUT);
	/* Destroyed while it waits, and another behind it. */
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, UINT32_MAX), 0);
	assert_int_equal(resolve_ip(&ch, behind, NULL, "10.0.0.2", 7174, UINT32_MAX), 0);
	assert_int_equal(destroy_id(&ch, id, NULL), 0);
	assert_int_equal(destroy_id(&ch, behind, NULL), 0);
	pass(200 * MS);
	expect_no_event(&ch);
	assert_true(node[0].next > now + 1000 * (uint64_t)MS);
}

/* To ourselves goes what is active, else the first one, with a GID of the family asked for. */
TEST(resolve__loopback_device)
{
	static const struct {
		const char *destination;
		bool down[DEVICES];
		uint32_t lacks;
		int status;
		unsigned int device;
		const char *sgid;
	} rows[] = {{"127.0.0.1", {true, false}, 0, 0, 1, "10.1.0.1"},
		    {"127.0.0.1", {true, true}, 0, 0, 0, "10.0.0.1"},
		    {"gid:::1", {false, false}, 0, 0, 0, "fe80::1:0"},
		    {"gid:::1", {false, false}, GID_V4, 0, 0, "10.0.0.1"},
		    {"::1", {false, false}, GID_V4, 0, 0, "fd00::1"},
		    {"127.0.0.1", {false, false}, GID_V6, -ENODEV, 0, NULL},
		    {"127.0.0.1", {false, false}, GIDS, -ENODEV, 0, NULL},
		    {"::1", {false, false}, GIDS, -ENODEV, 0, NULL}};

	ch = open_channel(0);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t id = fresh(RDMA_PS_TCP);

		memcpy(node[0].down, rows[i].down, sizeof(node[0].down));
		node[0].lacks = rows[i].lacks;
		assert_int_equal(resolve_ip(&ch, id, NULL, rows[i].destination, 7174, 10),
				 rows[i].status);
		if (rows[i].status)
			continue;
		expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
		check_device(id, rows[i].device, rows[i].sgid);
	}
}

/* A program that reads no events gets no more of them. */
TEST(resolve__too_many_events)
{
	struct ib_path_rec_data path = {.flags = 0x2b};
	uint32_t id;

	services_total(SHARE_cm_events, 6); /* half of them for one channel */
	ch = open_channel(0);
	node[0].resolve_result = -EHOSTUNREACH;
	id = fresh(RDMA_PS_TCP);
	for (int i = 0; i < 3; i++)
		assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 10), 0);
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 10), -ENOMEM);
	expect_event(&ch, UCM_EVENT_ADDR_ERROR);
	node[0].resolve_result = 0;
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 10), 0);
	assert_int_equal(resolve_route(&ch, id), -ENOMEM);
	assert_int_equal(
		set_option(&ch, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)),
		-ENOMEM);
	expect_event(&ch, UCM_EVENT_ADDR_ERROR);
	assert_int_equal(resolve_route(&ch, id), 0);
}

/* Programs that read none leave room for those of other users. */
TEST(resolve__events_of_others)
{
	static const int room[] = {8, 6, 1,
				   1}; /* half; the rest except for the reserve; assured parts */
	uint32_t id;

	services_total(SHARE_cm_events, 16);
	node[0].resolve_result = -EHOSTUNREACH;
	for (uid_t n = 0; n < 4; n++) {
		ch = open_channel_as(0, 1000 + n);
		id = fresh(RDMA_PS_TCP);
		for (int i = 0; i < room[n]; i++)
			assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 10), 0);
		assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 10), -ENOMEM);
	}
	expect_event(&ch, UCM_EVENT_ADDR_ERROR);
	assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 10), 0);
}

/* Many next hops are resolved one after another, a bounded number at once. */
TEST(resolve__many)
{
	enum { MANY = 10 * UCM_RESOLVES_PER_TURN };
	const int before = 1 << 20;
	uint64_t due;
	uint32_t id;

	ch = open_channel(0);
	node[0].resolve_again = before;
	due = now + UCM_RESOLVE_PERIOD_NS;
	for (int i = 0; i < MANY; i++, now++) {
		id = fresh(RDMA_PS_TCP);
		assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, i & 1 ? 1000 : 5), 0);
		assert_int_equal(node[0].s->resolve_due, due);
	}
	assert_int_equal(node[0].resolve_again, before - MANY);
	now = due;
	turn(&node[0]);
	assert_int_equal(node[0].resolve_again, before - MANY - UCM_RESOLVES_PER_TURN);
	expect_no_event(&ch);
	pass(20ull * MS);
	for (int i = 0; i < MANY / 2; i++)
		assert_int_equal((int)expect_event(&ch, UCM_EVENT_ADDR_ERROR).status, -ETIMEDOUT);
	expect_no_event(&ch);
	node[0].resolve_again = 0;
	pass(20ull * MS);
	for (int i = 0; i < MANY / 2; i++)
		expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(node[0].s->resolve_due, UINT64_MAX);
}

/* The code of the fastest rate that the port reaches, as enum ibv_rate has them. */
TEST(route__rate_of_each_speed)
{
	static const struct {
		uint32_t mbps;
		uint8_t code;
	} rows[] = {{0, 2},	  {2500, 2},	 {5000, 5},	  {10000, 3},	{20000, 6},
		    {24999, 6},	  {25000, 15},	 {40000, 7},	  {50000, 20},	{56000, 12},
		    {100000, 16}, {200000, 17},	 {300000, 18},	  {400000, 21}, {600000, 22},
		    {800000, 23}, {1200000, 24}, {UINT32_MAX, 24}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_ucm_query_route_resp route;
		struct end c;

		node[0].speed_mbps = rows[i].mbps;
		c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
		assert_int_equal(query_route(&c.ch, c.id, &route), 0);
		assert_int_equal(route.ib_route[0].rate, rows[i].code);
		close_channel(&c.ch);
	}
}
