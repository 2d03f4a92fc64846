/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that connect thousands of times, as librdmacm would have them, while MADs get lost:
 * every attempt ends with an event that says how, and in the end no identifier, connection, timer,
 * port or descriptor is left. Some programs reject, change their minds or are killed.
 */
#include <stdio.h>
#include "service_fixture.h"
#include "xorshift.h"

enum {
	ATTEMPTS = 10000,
	AT_ONCE = 40,
	LOSS = 50,  /* per mille */
	LIFE = 700, /* attempts until a client program is killed */
	PORT = 7174,
	UID_SERVER = 1000000,
};

static struct lossy {
	uint64_t random;
	bool kind;   /* no rejections or deaths */
	bool forged; /* a forger sends MADs, too */
	struct end server, client;
	unsigned int started, open; /* of this client program */
	unsigned int accepted, established, ended[32];
} w;

static uint32_t below(uint32_t n)
{
	return xorshift_below(&w.random, n);
}

static bool loses(void)
{
	return below(1000) < LOSS;
}

static bool unkind(unsigned int percent)
{
	return !w.kind && below(100) < percent;
}

/* Forgers may have ended a connection that a program still uses. */
static void check(int ret)
{
	if (ret)
		assert_true(w.forged && ret == -EINVAL);
}

/* A new attempt: identifier, address, route. IPv4 and IPv6 in turn. */
static void start(void)
{
	const char *to = w.started & 1 ? "fd00::2" : "10.0.0.2";
	uint32_t id;

	assert_int_equal(create_id(&w.client.ch, ++w.started, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(resolve_ip(&w.client.ch, id, NULL, to, PORT, 2000), 0);
	w.open++;
}

/* It ended for this reason. */
static void end(uint32_t id, uint32_t type)
{
	assert_int_equal(destroy_id(&w.client.ch, id, NULL), 0);
	w.ended[type]++;
	w.open--;
}

static void client_event(const struct rdma_ucm_event_resp *e)
{
	switch (e->event) {
	case UCM_EVENT_ADDR_RESOLVED:
		assert_int_equal(resolve_route(&w.client.ch, e->id), 0);
		return;
	case UCM_EVENT_ROUTE_RESOLVED:
		assert_int_equal(connect_id(&w.client.ch, e->id, (uint32_t)e->uid + 1, "hi"), 0);
		return;
	case UCM_EVENT_CONNECT_RESPONSE:
		if (!w.forged)
			assert_memory_equal(e->param.conn.private_data, &e->uid, sizeof(e->uid));
		if (unkind(5)) {
			end(e->id, e->event);
			return;
		}
		check(confirm_id(&w.client.ch, e->id));
		w.established++;
		if (below(2))
			check(disconnect_id(&w.client.ch, e->id));
		return;
	case UCM_EVENT_DISCONNECTED:
		disconnect_id(&w.client.ch, e->id);
		if (below(4))
			end(e->id, e->event);
		return;
	case UCM_EVENT_TIMEWAIT_EXIT:
	case UCM_EVENT_REJECTED:
	case UCM_EVENT_UNREACHABLE:
		end(e->id, e->event);
		return;
	default:
		fail_msg("the client was told event %u", e->event);
	}
}

/* Its QPN says the client's uid, which the acceptance carries back to who must be it. */
static int accept_it(const struct rdma_ucm_event_resp *e)
{
	uint64_t uid = e->param.conn.qp_num - 1;
	struct rdma_ucm_accept in = {.id = e->id,
				     .uid = UID_SERVER + uid,
				     .conn_param = {.qp_num = (uint32_t)uid + 1,
						    .private_data_len = sizeof(uid),
						    .rnr_retry_count = 7,
						    .valid = 1}};

	memcpy(in.conn_param.private_data, &uid, sizeof(uid));
	return command(&w.server.ch, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), NULL, 0);
}

static void answer(const struct rdma_ucm_event_resp *e)
{
	int ret;

	if (unkind(5)) {
		reject_id(&w.server.ch, e->id, 0, "no");
	} else if (!unkind(5)) {
		ret = accept_it(e);
		w.accepted += !ret;
		if (!ret)
			return;
		assert_int_equal(ret, -EINVAL); /* whose program has died */
		assert_false(w.kind);
	}
	assert_int_equal(destroy_id(&w.server.ch, e->id, NULL), 0);
}

static void server_event(const struct rdma_ucm_event_resp *e)
{
	switch (e->event) {
	case UCM_EVENT_CONNECT_REQUEST:
		answer(e);
		return;
	case UCM_EVENT_ESTABLISHED:
		assert_true(w.forged || e->uid > UID_SERVER);
		if (below(2))
			check(disconnect_id(&w.server.ch, e->id));
		return;
	case UCM_EVENT_DISCONNECTED:
		disconnect_id(&w.server.ch, e->id);
		if (below(4))
			assert_int_equal(destroy_id(&w.server.ch, e->id, NULL), 0);
		return;
	case UCM_EVENT_TIMEWAIT_EXIT:
	case UCM_EVENT_REJECTED:
	case UCM_EVENT_UNREACHABLE:
		assert_int_equal(destroy_id(&w.server.ch, e->id, NULL), 0);
		return;
	default:
		fail_msg("the server was told event %u", e->event);
	}
}

static void serve(struct end *who, void (*on)(const struct rdma_ucm_event_resp *e))
{
	struct rdma_ucm_event_resp e;

	while (readable(&who->ch)) {
		assert_int_equal(get_event(&who->ch, &e), 0);
		on(&e);
	}
}

/* Established connections of which neither end wants to part would stay for ever: the client that
 * the dice kept does it when it is bored. */
static void part_all(void)
{
	struct cm_id_info info[4 * AT_ONCE];
	unsigned int n = cm_service_ids(node[0].s, info, 4 * AT_ONCE);

	while (n--)
		disconnect_id(&w.client.ch, info[n].id);
}

/* A node's last message arrives once more, altered, at it or at the other. */
static void forge(void)
{
	struct node *to = &node[below(2)];
	const struct node *from = &node[below(2)];
	unsigned int gid = below(2) ? GID_V4 : GID_V6, changes = below(5);
	struct cm_path path = {.hop_limit = 64};
	uint8_t mad[CM_MAD_BYTES];

	memcpy(mad, from->last, sizeof(mad));
	while (changes--)
		mad[24 + below(150)] = (uint8_t)below(256);
	if (below(2))
		mad[17] = (uint8_t)(CM_REQ + below(CM_APR - CM_REQ + 1));
	gid_of(to->n, 0, gid, path.sgid);
	gid_of(3 - to->n, 0, gid, path.dgid);
	cm_service_receive(to->s, now, &path, mad, sizeof(mad));
}

/* Time goes to what is due next, and a little further. */
static void wait_a_while(void)
{
	uint64_t next = node[0].next < node[1].next ? node[0].next : node[1].next;

	pass(next != UINT64_MAX && next > now && below(4) == 0 ? next - now : below(20) * MS);
}

static void check_nothing_left(void)
{
	uint32_t connections, orphans;

	for (unsigned int n = 0; n < 2; n++) {
		cm_census(node[n].s->cm, &connections, &orphans);
		assert_int_equal(connections, 0);
		assert_int_equal(cm_service_ids(node[n].s, NULL, 0), 0);
		assert_int_equal(services_used(&node[n], SHARE_cm_channels), 0);
		turn(&node[n]);
		assert_true(node[n].next == UINT64_MAX);
		for (unsigned int i = 0; i < UCM_SPACES * UCM_PORTS; i++)
			assert_int_equal(node[n].s->ports[i].count, 0);
	}
}

static void run(uint64_t seed, bool kind, unsigned int attempts)
{
	unsigned int before = service_descriptors(), rounds = 0;

	w.random = seed;
	w.kind = kind;
	node[0].loses = node[1].loses = loses;
	w.server = listener(1, RDMA_PS_TCP, "::", PORT);
	w.client.ch = open_channel(0);
	while (w.started < attempts || w.open) {
		while (w.started < attempts && w.open < AT_ONCE)
			start();
		settle();
		serve(&w.client, client_event);
		serve(&w.server, server_event);
		if (!kind && below(LIFE) == 0) {
			close_channel(&w.client.ch);
			w.client.ch = open_channel(0);
			w.open = 0;
		}
		for (unsigned int i = w.forged ? below(100) : 0; i; i--)
			forge();
		if (++rounds % 64 == 0)
			part_all();
		wait_a_while();
	}
	print_message(
		"seed %llu: %u accepted, %u established, %u rejected, %u unreachable, %llu s\n",
		(unsigned long long)seed, w.accepted, w.established, w.ended[UCM_EVENT_REJECTED],
		w.ended[UCM_EVENT_UNREACHABLE], (unsigned long long)(now / 1000000000));
	close_channel(&w.client.ch);
	/* Peers of the dead have been notified by now: DREQs and REJs are repeated. */
	pass(600000ull * MS);
	serve(&w.server, server_event);
	close_channel(&w.server.ch);
	pass(600000ull * MS);
	check_nothing_left();
	assert_int_equal(service_descriptors(), before);
}

static int setup(void **state)
{
	memset(&w, 0, sizeof(w));
	return services_setup(state);
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, services_teardown)

TEST(lossy__kind)
{
	run(1, true, ATTEMPTS);
	assert_int_equal(w.accepted, ATTEMPTS);
	assert_int_equal(w.established, ATTEMPTS);
	assert_int_equal(w.ended[UCM_EVENT_REJECTED] + w.ended[UCM_EVENT_UNREACHABLE], 0);
}

TEST(lossy__unkind)
{
	run(2, false, ATTEMPTS / 5);
	assert_true(w.established > ATTEMPTS / 8);
	assert_true(w.ended[UCM_EVENT_REJECTED] > ATTEMPTS / 400);
}

TEST(lossy__forged)
{
	w.forged = true;
	run(3, false, ATTEMPTS / 8);
	assert_true(w.established > 0);
	assert_true(cm_service_counters(node[1].s)->mad_stray > 1000);
	assert_true(cm_service_counters(node[1].s)->mad_malformed > 0);
}
