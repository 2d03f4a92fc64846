/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each command alone: its lengths, whose identifiers it accepts, its answer in each state; options
 * and queries.
 */
#include <endian.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "service/numbers.h"
#include "service_fixture.h"

enum {
	ROUTE_LEAST = offsetof(struct rdma_ucm_query_route_resp, ibdev_index),
	EVENT_LEAST = offsetof(struct rdma_ucm_event_resp, reserved),
};

/* Every command: where its identifier lies, and whether it has a response. */
static const struct row {
	uint32_t number;
	uint16_t body, least, out_least;
	int id_at;   /* -1: it has none */
	int unbound; /* status for an identifier that was only made */
} rows[] = {
	{RDMA_USER_CM_CMD_CREATE_ID, 24, 19, 4, -1, -EINVAL},
	{RDMA_USER_CM_CMD_BIND_IP, 40, 40, 0, 36, -EAFNOSUPPORT},
	{RDMA_USER_CM_CMD_RESOLVE_IP, 64, 64, 0, 56, -EAFNOSUPPORT},
	{RDMA_USER_CM_CMD_RESOLVE_ROUTE, 8, 8, 0, 0, -EINVAL},
	{RDMA_USER_CM_CMD_QUERY_ROUTE, 16, 12, ROUTE_LEAST, 8, 0},
	{RDMA_USER_CM_CMD_CONNECT, 288, 280, 0, 272, -EINVAL},
	{RDMA_USER_CM_CMD_ACCEPT, 296, 288, 0, 280, -EINVAL},
	{RDMA_USER_CM_CMD_REJECT, 264, 264, 0, 0, -EINVAL},
	{RDMA_USER_CM_CMD_DISCONNECT, 4, 4, 0, 0, -EINVAL},
	{RDMA_USER_CM_CMD_INIT_QP_ATTR, 16, 16, 144, 8, -EINVAL},
	{RDMA_USER_CM_CMD_GET_EVENT, 8, 0, EVENT_LEAST, -1, -EAGAIN},
	{RDMA_USER_CM_CMD_GET_OPTION, 0, 0, 0, -1, -ENOSYS},
	{RDMA_USER_CM_CMD_SET_OPTION, 24, 24, 0, 8, -EINVAL},
	{RDMA_USER_CM_CMD_NOTIFY, 8, 8, 0, 0, -EINVAL},
	{RDMA_USER_CM_CMD_JOIN_IP_MCAST, 48, 48, 4, 44, -EINVAL},
	{RDMA_USER_CM_CMD_LEAVE_MCAST, 16, 12, 4, 8, -ENOENT},
	{RDMA_USER_CM_CMD_MIGRATE_ID, 16, 16, 4, 8, -ENOENT},
	{RDMA_USER_CM_CMD_QUERY, 16, 16, 0, 8, -ENOSPC},
	{RDMA_USER_CM_CMD_BIND, 136, 136, 0, 0, -EINVAL},
	{RDMA_USER_CM_CMD_RESOLVE_ADDR, 272, 272, 0, 0, -EINVAL},
	{RDMA_USER_CM_CMD_JOIN_MCAST, 152, 152, 4, 16, -EINVAL},
	{CM_COMMAND_RELEASE_ID, 16, 12, 8, 8, 0},
	{RDMA_USER_CM_CMD_LISTEN, 8, 8, 0, 0, 0},
	{RDMA_USER_CM_CMD_DESTROY_ID, 16, 12, 4, 8, 0},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* A body that is all zeroes except for the identifier, and names an address for who compares. */
static void fill(uint8_t *body, const struct row *r, uint32_t id)
{
	memset(body, 0, 512);
	if (r->id_at >= 0)
		memcpy(body + r->id_at, &id, sizeof(id));
}

TEST(commands__lengths)
{
	struct channel ch = open_channel(0);
	uint8_t body[512], out[1024];
	uint32_t id;

	for (unsigned int i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];

		assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		fill(body, r, id);
		if (r->least)
			assert_int_equal(
				command(&ch, r->number, body, r->least - 1u, out, sizeof(out)),
				-EINVAL);
		if (r->out_least)
			assert_int_equal(
				command(&ch, r->number, body, r->least, out, r->out_least - 1u),
				-ENOSPC);
		/* Longer than the structure: what is too much is not looked at. */
		assert_int_equal(command(&ch, r->number, body, r->body + 4u, out, r->out_least),
				 r->unbound);
		if (r->number != RDMA_USER_CM_CMD_DESTROY_ID)
			assert_int_equal(destroy_id(&ch, id, NULL), 0);
	}
}

TEST(commands__whose_identifier)
{
	struct channel mine = open_channel(0), other = open_channel(0);
	uint8_t body[512], out[1024];
	uint32_t id;

	assert_int_equal(create_id(&mine, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	for (unsigned int i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		bool own_rule = r->number == RDMA_USER_CM_CMD_LEAVE_MCAST ||
				r->number == RDMA_USER_CM_CMD_MIGRATE_ID;

		if (r->id_at < 0)
			continue;
		fill(body, r, 4711);
		if (r->number == RDMA_USER_CM_CMD_BIND || r->number == RDMA_USER_CM_CMD_CONNECT ||
		    r->number == RDMA_USER_CM_CMD_RESOLVE_ADDR ||
		    r->number == RDMA_USER_CM_CMD_JOIN_IP_MCAST ||
		    r->number == RDMA_USER_CM_CMD_JOIN_MCAST)
			continue; /* their bodies are checked before: below */
		assert_int_equal(command(&other, r->number, body, r->body, out, 512), -ENOENT);
		fill(body, r, id);
		assert_int_equal(command(&other, r->number, body, r->body, out, 512),
				 own_rule ? -ENOENT : -EINVAL);
	}
	assert_int_equal(destroy_id(&mine, id, NULL), 0);
	assert_int_equal(connect_id(&mine, id, 1, ""), -ENOENT);
	assert_int_equal(bind_any(&mine, id, &(union ucm_address){.family = AF_INET}), -ENOENT);
	assert_int_equal(resolve_ip(&mine, id, NULL, "gid:fd00::2", 1, 1), -ENOENT);
}

TEST(commands__unknown)
{
	static const uint32_t numbers[] = {23, 24, 0xff, 0x101, UINT32_MAX};
	struct channel ch = open_channel(0);
	uint8_t body[64] = {0};

	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(command(&ch, numbers[i], body, sizeof(body), body, sizeof(body)),
				 -EINVAL);
}

TEST(create__port_spaces)
{
	static const struct {
		uint16_t ps;
		uint8_t type;
		int status;
	} cases[] = {{RDMA_PS_TCP, 2, 0}, {RDMA_PS_UDP, 4, 0}, {RDMA_PS_IPOIB, 4, 0},
		     {RDMA_PS_IB, 2, 0},  {RDMA_PS_IB, 4, 0},  {RDMA_PS_TCP, 77, 0},
		     {0, 2, -EINVAL},	  {0x107, 2, -EINVAL}};
	struct channel ch = open_channel(0);
	uint32_t id;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(create_id(&ch, 1, cases[i].ps, cases[i].type, &id),
				 cases[i].status);
}

TEST(create__limits)
{
	struct channel a, b;
	uint32_t id[4];
	int pair[2];

	services_total(SHARE_cm_channels, 2);
	services_total(SHARE_cm_ids, 6); /* half of them for one channel */
	a = open_channel(0);
	b = open_channel(0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(send(pair[1], pair, 1, 0), 1);
	assert_int_equal(cm_service_adopt(node[0].s, pair[0]), -EUSERS);
	assert_false(readable(&(struct channel){.fd = cm_service_fd(node[0].s)}));
	close(pair[0]);
	close(pair[1]);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(create_id(&a, 1, RDMA_PS_TCP, UCM_QPT_RC, &id[i]), 0);
		assert_int_equal(id[i], i);
	}
	assert_int_equal(create_id(&a, 1, RDMA_PS_TCP, UCM_QPT_RC, &id[3]), -ENOMEM);
	assert_int_equal(create_id(&b, 1, RDMA_PS_TCP, UCM_QPT_RC, &id[3]), 0);
	assert_int_equal(id[3], 3);
	assert_int_equal(destroy_id(&a, id[0], NULL), 0);
	assert_int_equal(destroy_id(&a, id[1], NULL), 0);
	assert_int_equal(create_id(&a, 1, RDMA_PS_TCP, UCM_QPT_RC, &id[3]), 0);
	assert_int_equal(id[3], 0); /* the lowest */
}

TEST(create__shares_of_users)
{
	enum { TOTAL = 4096, RESERVE = TOTAL / 4, ASSURED = RESERVE / SHARES_USERS };
	/* half; the rest except for the reserve; assured parts */
	static const uint32_t room[] = {TOTAL / 2, TOTAL / 2 - RESERVE + 2 * ASSURED, ASSURED,
					ASSURED};
	uint32_t next = 0, id;
	struct channel ch;

	services_total(SHARE_cm_ids, TOTAL);
	for (uid_t n = 0; n < 4; n++) {
		ch = open_channel_as(0, 1000 + n);
		for (uint32_t i = 0; i < room[n]; i++) {
			assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
			assert_int_equal(id, next++);
		}
		assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), -ENOMEM);
	}
}

/* Numbers end, too; a peer's request then waits for its own. */
TEST(create__no_number_left)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	struct rdma_ucm_event_resp e;
	uint32_t id;

	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
	settle();
	for (uint32_t i = 1; i < UCM_NUMBERS; i++)
		assert_int_equal(ucm_number_take(&node[1].s->ids, node), i);
	assert_int_equal(create_id(&l.ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), -ENOMEM);
	assert_int_equal(services_used(&node[1], SHARE_cm_ids), 2);
	assert_int_equal(get_event(&l.ch, &e), -ENOMEM);
	ucm_number_free(&node[1].s->ids, 4711);
	assert_int_equal(expect_event(&l.ch, UCM_EVENT_CONNECT_REQUEST).id, 4711);
}

/* How librdmacm finds out whether AF_IB is known. */
TEST(probe__gids)
{
	struct channel ch = open_channel(0);
	union ucm_address any = {.family = 0};
	struct rdma_ucm_query_addr_resp addr;
	struct ucm_sockaddr_ib ib;
	uint32_t id;

	any.ib.family = UCM_AF_IB;
	any.ib.sid = htobe64((uint64_t)RDMA_PS_TCP << 16);
	any.ib.sid_mask = htobe64(0xffffffffffff0000);
	assert_int_equal(create_id(&ch, 1, RDMA_PS_IB, UCM_QPT_RC, &id), 0);
	assert_int_equal(bind_any(&ch, id, &any), 0);
	assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
	assert_int_equal(addr.node_guid, 0);
	assert_int_equal(addr.src_size, 48);
	memcpy(&ib, &addr.src_addr, sizeof(ib));
	assert_in_range(be64toh(ib.sid), 0x1060000 + 32768, 0x1060000 + 60999);
	assert_int_equal(ib.sid_mask, UINT64_MAX);
	assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_GID, &addr), 0);
	assert_memory_equal(&addr.src_addr, &ib, sizeof(ib));
	/* Of any address there is no P_Key yet. */
	assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(bind_ip(&ch, id, "0.0.0.0", 0), 0);
	assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_GID, &addr), 0);
	memcpy(&ib, &addr.src_addr, sizeof(ib));
	assert_int_equal(ib.pkey, 0);
}

TEST(query__address)
{
	struct channel ch = open_channel(0);
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_query in;
	struct ucm_sockaddr_ib ib;
	union ucm_address a = address_of("10.1.0.1", 4000);
	uint8_t gid[16], out[1024];
	uint32_t id;

	assert_int_equal(create_id(&ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
	assert_int_equal(addr.src_size, 0);
	assert_int_equal(bind_any(&ch, id, &a), 0);
	assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
	assert_int_equal(ch.bytes, sizeof(addr));
	assert_int_equal(addr.node_guid, htobe64(0x0200000000000001));
	assert_int_equal(addr.port_num, 1);
	assert_int_equal(addr.pkey, 0xffff);
	assert_int_equal(addr.ibdev_index, UINT32_MAX);
	assert_int_equal(addr.src_size, sizeof(a.v4));
	assert_memory_equal(&addr.src_addr, &a, sizeof(a.v4));
	assert_int_equal(addr.dst_size, sizeof(a.v4));
	assert_int_equal(query_addr(&ch, id, RDMA_USER_CM_QUERY_GID, &addr), 0);
	assert_int_equal(addr.node_guid, htobe64(0x0200000000000001));
	memcpy(&ib, &addr.src_addr, sizeof(ib));
	gid_of(1, 1, GID_V4, gid);
	assert_memory_equal(ib.gid, gid, 16);
	assert_int_equal(ib.family, UCM_AF_IB);
	assert_int_equal(ib.pkey, 0xffff);
	assert_int_equal(be64toh(ib.sid), 0x1060000 + 4000);
	assert_int_equal(query_route(&ch, id, &route), 0);
	assert_int_equal(route.num_paths, 0);
	assert_memory_equal(route.ib_route[0].sgid, gid, 16);
	assert_memory_equal(&route.src_addr, &a, sizeof(a.v4));
	memset(gid, 0xee, sizeof(gid));
	ucm_address_gid(&(union ucm_address){.family = AF_UNSPEC}, gid);
	assert_memory_equal(gid, &in6addr_any, 16);
	assert_int_equal(ucm_address_port(&(union ucm_address){.family = AF_UNSPEC}), 0);
	/* Older libraries have no room for the tail. */
	in = (struct rdma_ucm_query){.id = id};
	assert_int_equal(
		command(&ch, RDMA_USER_CM_CMD_QUERY_ROUTE, &in, sizeof(in), out, ROUTE_LEAST), 0);
	assert_int_equal(ch.bytes, ROUTE_LEAST);
	assert_int_equal(command(&ch, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), out, 272), 0);
	assert_int_equal(ch.bytes, 272);
	assert_int_equal(command(&ch, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), out, 271), -ENOSPC);
	in.option = 3;
	assert_int_equal(command(&ch, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), out, 512), -ENOSYS);
}

TEST(query__path)
{
	struct end c = caller(0, RDMA_PS_TCP, "10.1.0.2", 7174);
	struct rdma_ucm_query in = {.id = c.id, .option = RDMA_USER_CM_QUERY_PATH};
	struct rdma_ucm_query_route_resp route;
	struct {
		uint32_t count, reserved; /* struct rdma_ucm_query_path_resp, before its array */
		struct ib_path_rec_data data[6];
	} path;
	const uint8_t *record = (const uint8_t *)path.data[0].path_rec;
	const struct ib_user_path_rec *r = &route.ib_route[0];
	uint8_t sgid[16], dgid[16];

	gid_of(1, 1, GID_V4, sgid);
	gid_of(2, 1, GID_V4, dgid);
	assert_int_equal(query_route(&c.ch, c.id, &route), 0);
	assert_int_equal(route.num_paths, 1);
	assert_int_equal(ntohs(route.dst_addr.sin6_port), 7174);
	assert_memory_equal(r->sgid, sgid, 16);
	assert_memory_equal(r->dgid, dgid, 16);
	assert_int_equal(r->mtu, 3);
	assert_int_equal(r->mtu_selector, 2);
	assert_int_equal(r->hop_limit, 64);
	assert_int_equal(r->reversible, 1);
	assert_int_equal(r->pkey, 0xffff);
	assert_int_equal(r->rate, 16);
	assert_int_equal(r->packet_life_time, 16);
	assert_int_equal(r->packet_life_time_selector, 2);
	assert_int_equal(ASK(&c.ch, QUERY, in, path), 0);
	assert_int_equal(c.ch.bytes, 8 + 72);
	assert_int_equal(path.count, 1);
	assert_int_equal(path.data[0].flags, 0x2b);
	assert_memory_equal(record + 8, dgid, 16);
	assert_memory_equal(record + 24, sgid, 16);
	assert_int_equal(record[47], 64);
	assert_int_equal(record[49], 0x80);
	assert_int_equal(record[50] << 8 | record[51], 0xffff);
	assert_int_equal(record[54], 0x83);
	assert_int_equal(record[55], 0x90);
	assert_int_equal(record[56], 0x90);
	/* All of it, or none. */
	for (unsigned int room = 8; room <= 80; room += room == 8 ? 71 : 1) {
		assert_int_equal(
			command(&c.ch, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), &path, room), 0);
		assert_int_equal(c.ch.bytes, room < 80 ? 8 : 80);
	}
	assert_int_equal(command(&c.ch, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), &path, 7),
			 -ENOSPC);
	/* Where there is no route yet, whatever the room. */
	assert_int_equal(create_id(&c.ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &in.id), 0);
	assert_int_equal(ASK(&c.ch, QUERY, in, path), 0);
	assert_int_equal(c.ch.bytes, 8);
	assert_int_equal(path.count, 0);
}

/* The passive side knows both GIDs, its own address and the path. */
TEST(query__gids_of_a_request)
{
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query_route_resp route;
	union ucm_address a = address_of("10.0.0.2", 7174);
	struct ucm_sockaddr_ib ib;
	struct end l, c;
	uint32_t id = ask_ends(&l, &c);
	uint8_t gid[16];

	assert_int_equal(query_addr(&l.ch, id, RDMA_USER_CM_QUERY_GID, &addr), 0);
	memcpy(&ib, &addr.src_addr, sizeof(ib));
	gid_of(2, 0, GID_V4, gid);
	assert_memory_equal(ib.gid, gid, 16);
	memcpy(&ib, &addr.dst_addr, sizeof(ib));
	gid_of(1, 0, GID_V4, gid);
	assert_memory_equal(ib.gid, gid, 16);
	assert_int_equal(query_addr(&l.ch, id, RDMA_USER_CM_QUERY_ADDR, &addr), 0);
	assert_memory_equal(&addr.src_addr, &a, sizeof(a.v4));
	assert_int_equal(query_route(&l.ch, id, &route), 0);
	assert_int_equal(route.num_paths, 1);
}

/* A flow label that the program chose, or one of the ports; scopes are forgotten. */
TEST(query__flow_label)
{
	static const uint32_t infos[] = {0xf0012345, 0xf0000000}; /* 20 bits are the label */
	struct channel ch = open_channel(0);
	union ucm_address a = address_of("fd00::1", 0);
	struct rdma_ucm_query_route_resp route;
	uint32_t id, of_ports;

	a.v6.sin6_scope_id = 5;
	for (int i = 0; i < 2; i++) {
		a.v6.sin6_flowinfo = htonl(infos[i]);
		assert_int_equal(create_id(&ch, 200, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		assert_int_equal(bind_any(&ch, id, &a), 0);
		assert_int_equal(resolve_ip(&ch, id, NULL, "fd00::2", 7174, 1000), 0);
		expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
		assert_int_equal(resolve_route(&ch, id), 0);
		expect_event(&ch, UCM_EVENT_ROUTE_RESOLVED);
		assert_int_equal(query_route(&ch, id, &route), 0);
		of_ports = (ntohs(route.src_addr.sin6_port) * 31u + 7174) & 0xfffff;
		assert_int_equal(ntohl(route.ib_route[0].flow_label), i ? of_ports : 0x12345);
		assert_int_equal(route.src_addr.sin6_scope_id, 0);
	}
}

static int set_int(struct channel *ch, uint32_t id, uint32_t name, int32_t value)
{
	return set_option(ch, id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static int set_byte(struct channel *ch, uint32_t id, uint32_t name, uint8_t value)
{
	return set_option(ch, id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

TEST(options__of_identifiers)
{
	struct end l = listener(0, RDMA_PS_TCP, "0.0.0.0", 7174);
	struct rdma_ucm_set_option lies = {.optlen = 1};
	uint8_t zero[16] = {0};
	uint32_t id, datagram;

	assert_int_equal(create_id(&l.ch, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(create_id(&l.ch, 1, RDMA_PS_UDP, UCM_QPT_UD, &datagram), 0);
	assert_int_equal(set_byte(&l.ch, id, RDMA_OPTION_ID_TOS, 32), 0);
	assert_int_equal(set_int(&l.ch, id, RDMA_OPTION_ID_TOS, 32), -EINVAL);
	assert_int_equal(set_byte(&l.ch, id, RDMA_OPTION_ID_ACK_TIMEOUT, 14), 0);
	assert_int_equal(set_byte(&l.ch, id, RDMA_OPTION_ID_ACK_TIMEOUT, 31), 0);
	assert_int_equal(set_byte(&l.ch, id, RDMA_OPTION_ID_ACK_TIMEOUT, 32), -EINVAL);
	assert_int_equal(set_byte(&l.ch, datagram, RDMA_OPTION_ID_ACK_TIMEOUT, 14), -EINVAL);
	assert_int_equal(set_byte(&l.ch, id, RDMA_OPTION_ID_REUSEADDR, 1), -EINVAL);
	assert_int_equal(set_int(&l.ch, id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(set_int(&l.ch, id, RDMA_OPTION_ID_REUSEADDR, 0), 0);
	assert_int_equal(set_int(&l.ch, l.id, RDMA_OPTION_ID_REUSEADDR, 1), -EINVAL);
	assert_int_equal(set_int(&l.ch, id, RDMA_OPTION_ID_AFONLY, 1), 0);
	assert_int_equal(set_int(&l.ch, l.id, RDMA_OPTION_ID_AFONLY, 1), -EINVAL);
	assert_int_equal(bind_ip(&l.ch, id, "0.0.0.0", 0), 0);
	assert_int_equal(set_int(&l.ch, id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(set_int(&l.ch, id, RDMA_OPTION_ID_REUSEADDR, 0), -EINVAL);
	assert_int_equal(set_int(&l.ch, id, RDMA_OPTION_ID_AFONLY, 1), 0);
	assert_int_equal(set_int(&l.ch, id, 4, 1), -ENOSYS);
	assert_int_equal(set_option(&l.ch, id, 2, RDMA_OPTION_IB_PATH, zero, 4), -ENOSYS);
	assert_int_equal(set_option(&l.ch, id, RDMA_OPTION_IB, 2, zero, 4), -ENOSYS);
	/* More bytes than there are. */
	lies.id = id;
	assert_int_equal(TELL(&l.ch, SET_OPTION, lies), -EINVAL);
	lies.optlen = UINT32_MAX;
	assert_int_equal(TELL(&l.ch, SET_OPTION, lies), -EINVAL);
}

TEST(options__reach_the_queue_pair)
{
	struct end l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	struct end c = {.ch = open_channel(0)};
	struct rdma_ucm_query_route_resp route;
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(create_id(&c.ch, 200, RDMA_PS_TCP, UCM_QPT_RC, &c.id), 0);
	assert_int_equal(set_byte(&c.ch, c.id, RDMA_OPTION_ID_TOS, 104), 0);
	assert_int_equal(set_byte(&c.ch, c.id, RDMA_OPTION_ID_ACK_TIMEOUT, 14), 0);
	assert_int_equal(resolve_ip(&c.ch, c.id, NULL, "10.0.0.2", 7174, 1000), 0);
	expect_event(&c.ch, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&c.ch, c.id), 0);
	expect_event(&c.ch, UCM_EVENT_ROUTE_RESOLVED);
	join_ends(&l, &c);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_RTR, &attr), 0);
	assert_int_equal(attr.ah_attr.grh.traffic_class, 104);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_RTS, &attr), 0);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(query_route(&c.ch, c.id, &route), 0);
	assert_int_equal(route.ib_route[0].packet_life_time, 13);
}

TEST(options__path)
{
	struct end c = {.ch = open_channel(0)};
	struct ib_path_rec_data data[2];
	uint8_t *record = (uint8_t *)data[1].path_rec;
	struct rdma_ucm_query_route_resp route;

	memset(data, 0, sizeof(data));
	data[1].flags = 0x2b;
	gid_of(2, 0, GID_V4, record + 8);
	gid_of(1, 0, GID_V4, record + 24);
	record[47] = 9;
	record[48] = 8;
	record[54] = 0x82;
	assert_int_equal(create_id(&c.ch, 200, RDMA_PS_TCP, UCM_QPT_RC, &c.id), 0);
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, sizeof(data)), -EINVAL);
	assert_int_equal(set_byte(&c.ch, c.id, RDMA_OPTION_ID_ACK_TIMEOUT, 0), 0);
	assert_int_equal(resolve_ip(&c.ch, c.id, NULL, "10.0.0.2", 7174, 1000), 0);
	expect_event(&c.ch, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(query_route(&c.ch, c.id, &route), 0);
	assert_memory_equal(route.ib_route[0].dgid, record + 8, 16);
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, sizeof(data) - 1), -EINVAL);
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, sizeof(data[0])), -EINVAL);
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, 0), -EINVAL);
	record[23] = 77; /* to somebody else */
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, sizeof(data)), -EINVAL);
	record[23] = 2;
	record[39] = 77; /* from somebody else */
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, sizeof(data)), -EINVAL);
	record[39] = 1;
	data[1].flags = 0; /* not the primary path */
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, sizeof(data)), -EINVAL);
	data[1].flags = 0x2b;
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, sizeof(data)), 0);
	expect_event(&c.ch, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(query_route(&c.ch, c.id, &route), 0);
	assert_int_equal(route.ib_route[0].hop_limit, 9);
	assert_int_equal(route.ib_route[0].traffic_class, 8);
	assert_int_equal(route.ib_route[0].mtu, 2);
	assert_int_equal(route.ib_route[0].packet_life_time, 16);
	assert_int_equal(set_option(&c.ch, c.id, 1, 1, data, sizeof(data)),
			 -EINVAL); /* it has one */
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), 0);
}

/* A record's MTU counts if it says one that is smaller than the port's. It names no hop limit. */
TEST(options__mtu_of_a_path)
{
	static const uint8_t mtus[][2] = {{0x80, 3}, {0x81, 1}, {0x83, 3}, {0x84, 3}};
	struct channel ch = open_channel(0);
	struct rdma_ucm_query_route_resp route;
	struct ib_path_rec_data data = {.flags = 0x2b};
	uint8_t *record = (uint8_t *)data.path_rec;
	uint32_t id;

	gid_of(2, 0, GID_V4, record + 8);
	gid_of(1, 0, GID_V4, record + 24);
	for (unsigned int i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		record[54] = mtus[i][0];
		assert_int_equal(create_id(&ch, 200, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		assert_int_equal(resolve_ip(&ch, id, NULL, "10.0.0.2", 7174, 1000), 0);
		expect_event(&ch, UCM_EVENT_ADDR_RESOLVED);
		assert_int_equal(set_option(&ch, id, 1, 1, &data, sizeof(data)), 0);
		expect_event(&ch, UCM_EVENT_ROUTE_RESOLVED);
		assert_int_equal(query_route(&ch, id, &route), 0);
		assert_int_equal(route.ib_route[0].mtu, mtus[i][1]);
		assert_int_equal(route.ib_route[0].hop_limit, 64);
	}
}

/* Each command where its identifier's state does not allow it. */
TEST(states__wrong)
{
	struct end c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	struct rdma_ucm_connect invalid = {.id = c.id};
	struct ib_uverbs_qp_attr attr;
	struct cm_id_info info;
	char long_data[200];

	assert_int_equal(bind_ip(&c.ch, c.id, "0.0.0.0", 0), -EINVAL);
	assert_int_equal(resolve_ip(&c.ch, c.id, NULL, "10.0.0.2", 7174, 1000), -EINVAL);
	assert_int_equal(resolve_route(&c.ch, c.id), -EINVAL);
	assert_int_equal(listen_id(&c.ch, c.id, 1), -EINVAL);
	assert_int_equal(accept_id(&c.ch, c.id, 1, 1, ""), -EINVAL);
	assert_int_equal(reject_id(&c.ch, c.id, 0, ""), -EINVAL);
	assert_int_equal(reject_id(&c.ch, c.id, 4, ""), -EINVAL);
	assert_int_equal(disconnect_id(&c.ch, c.id), -EINVAL);
	assert_int_equal(init_qp_attr(&c.ch, c.id, 7, &attr), -EINVAL);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_INIT, &attr), 0);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_ERR, &attr), 0);
	assert_int_equal(attr.qp_access_flags, 0);
	assert_int_equal(attr.qp_attr_mask, 0x39);
	assert_int_equal(TELL(&c.ch, CONNECT, invalid), -EINVAL);
	memset(long_data, 'x', 57);
	long_data[57] = 0;
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, long_data), -EINVAL);
	assert_int_equal(cm_service_ids(node[0].s, &info, 1), 1);
	assert_int_equal(info.qpn, 0);
	long_data[56] = 0;
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, long_data), 0);
	assert_int_equal(connect_id(&c.ch, c.id, 0x111, ""), -EINVAL);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_INIT, &attr), 0);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_RTR, &attr), -EINVAL);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_RTS, &attr), -EINVAL);
	settle();
	expect_event(&c.ch, UCM_EVENT_REJECTED);
	assert_int_equal(init_qp_attr(&c.ch, c.id, UCM_QPS_INIT, &attr), -EINVAL);
	assert_int_equal(disconnect_id(&c.ch, c.id), 0); /* as a kernel: nothing to do */
}

TEST(services__leave_no_descriptor)
{
	unsigned int before = service_descriptors();
	struct cm_service *s = cm_service_create(NULL);
	int file = memfd_create("no socket", 0);
	struct rlimit room;

	assert_non_null(s);
	getrlimit(RLIMIT_NOFILE, &room);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, room.rlim_max});
	assert_fails(cm_service_create(NULL), EMFILE);
	setrlimit(RLIMIT_NOFILE, &room);
	assert_int_equal(cm_service_adopt(s, file), -ENOMEM);
	close(file);
	assert_int_equal(service_descriptors(), before + 1);
	cm_service_destroy(s);
	assert_int_equal(service_descriptors(), before);
}

/* The daemon's, of which the service is one holder. */
TEST(services__shares_of_others)
{
	struct shares *shares = shares_create(geteuid());
	struct cm_service *s = cm_service_create(&(struct cm_service_limits){.shares = shares});

	assert_non_null(s);
	assert_ptr_equal(s->shares, shares);
	cm_service_destroy(s);
	assert_int_equal(shares_total(shares, SHARE_cm_ids, 0), UCM_NUMBERS);
	shares_destroy(shares);
}

/* An accept with too much data fails, and the peer is rejected. */
TEST(accept__fails)
{
	struct end l, c;
	struct ib_uverbs_qp_attr attr;
	char data[200];
	uint32_t id = ask_ends(&l, &c);

	assert_int_equal(init_qp_attr(&l.ch, id, UCM_QPS_SQD, &attr), -EINVAL);
	memset(data, 'x', 197);
	data[197] = 0;
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, data), -EINVAL);
	settle();
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_REJECTED).status, CM_REJ_CONSUMER);
	assert_int_equal(accept_id(&l.ch, id, 300, 0x222, ""), -EINVAL);
}
