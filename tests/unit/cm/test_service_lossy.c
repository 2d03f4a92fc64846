/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that connect and resolve thousands of times, as librdmacm would have them, while MADs get
 * lost, come twice, in another order, or late: every attempt ends with an event that says how, and in
 * the end no identifier, connection, timer, port or descriptor is left. Some programs reject, change
 * their minds or are killed.
 */
#include "service_fixture.h"
#include "xorshift.h"

enum {
	ATTEMPTS = 2000,
	AT_ONCE = 40,
	LIFE = 700, /* attempts until a client program is killed */
	PORT = 7174,
	UID_SERVER = 1000000,
};

struct config {
	uint64_t seed;
	unsigned int attempts;
	unsigned int lost, twice, late; /* per mille; late: by up to 20 s */
	bool datagrams;			/* some attempts are of these */
	bool kind;			/* no rejections or deaths */
	bool forged;			/* a forger sends MADs, too */
	bool qpns_again;		/* while a peer may still have their old connections */
	struct cm_limits limits;
};

static struct lossy {
	struct config c;
	uint64_t random;
	struct end server, datagrams, client;
	unsigned int started, open; /* of this client program */
	unsigned int accepted, established, resolved, ended[32];
} w;

static uint32_t below(uint32_t n)
{
	return xorshift_below(&w.random, n);
}

static unsigned int copies(uint64_t *late_ns)
{
	*late_ns = below(1000) < w.c.late ? below(20000) * (uint64_t)MS : below(200) * 1000;
	return (below(1000) >= w.c.lost) + (below(1000) < w.c.twice);
}

static bool unkind(unsigned int percent)
{
	return !w.c.kind && below(100) < percent;
}

/* Forgers may have ended a connection that a program still uses. */
static void check(int ret)
{
	if (ret)
		assert_true(w.c.forged && ret == -EINVAL);
}

/* A new attempt: identifier, address, route. IPv4 and IPv6 in turn. */
static void start(void)
{
	const char *to = w.started & 1 ? "fd00::2" : "10.0.0.2";
	bool datagram = w.c.datagrams && below(10) == 0;
	uint32_t id;

	assert_int_equal(create_id(&w.client.ch, ++w.started, datagram ? RDMA_PS_UDP : RDMA_PS_TCP,
				   datagram ? UCM_QPT_UD : UCM_QPT_RC, &id),
			 0);
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

/* It says its uid, which the acceptance carries back to who must be it. */
static void ask(const struct rdma_ucm_event_resp *e)
{
	uint32_t qpn = w.c.qpns_again ? 2 + below(24) : (uint32_t)e->uid + 1;
	char uid[16];
	int ret;

	snprintf(uid, sizeof(uid), "%u", (uint32_t)e->uid);
	ret = connect_id(&w.client.ch, e->id, qpn, uid);
	if (!ret)
		return;
	assert_true(w.c.limits.connections && ret == -ENOSPC);
	end(e->id, e->event);
}

static void client_event(const struct rdma_ucm_event_resp *e)
{
	switch (e->event) {
	case UCM_EVENT_ADDR_RESOLVED:
		assert_int_equal(resolve_route(&w.client.ch, e->id), 0);
		return;
	case UCM_EVENT_ROUTE_RESOLVED:
		ask(e);
		return;
	case UCM_EVENT_ESTABLISHED:
		w.resolved++;
		end(e->id, e->event);
		return;
	case UCM_EVENT_CONNECT_RESPONSE:
		if (!w.c.forged)
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

static int accept_it(const struct rdma_ucm_event_resp *e)
{
	uint64_t uid = strtoul((const char *)e->param.conn.private_data, NULL, 10);
	struct rdma_ucm_accept in = {
		.id = e->id,
		.uid = UID_SERVER + uid,
		.conn_param = {.qp_num = w.c.qpns_again ? 2 + below(24) : (uint32_t)uid + 1,
			       .private_data_len = sizeof(uid),
			       .rnr_retry_count = 7,
			       .valid = 1}};

	memcpy(in.conn_param.private_data, &uid, sizeof(uid));
	return TELL(&w.server.ch, ACCEPT, in);
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
		assert_false(w.c.kind);
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
		assert_true(w.c.forged || e->uid > UID_SERVER);
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

/* Who asks for a queue pair is told it, or no; there is nothing to wait for. */
static void resolution_event(const struct rdma_ucm_event_resp *e)
{
	assert_int_equal(e->event, UCM_EVENT_CONNECT_REQUEST);
	if (!unkind(5))
		accept_id(&w.datagrams.ch, e->id, UID_SERVER, 7, "");
	assert_int_equal(destroy_id(&w.datagrams.ch, e->id, NULL), 0);
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
		assert_true(node[n].s->resolve_due == UINT64_MAX);
		for (unsigned int i = 0; i < UCM_SPACES * UCM_PORTS; i++)
			assert_int_equal(node[n].s->ports[i].count, 0);
		for (uint32_t i = 0; i < node[n].s->ids.room; i++)
			assert_null(node[n].s->ids.at[i]);
	}
}

static void serve_all(void)
{
	serve(&w.client, client_event);
	serve(&w.server, server_event);
	serve(&w.datagrams, resolution_event);
}

static void run(const struct config *config)
{
	unsigned int before = service_descriptors(), rounds = 0;

	w = (struct lossy){.c = *config, .random = config->seed};
	services_start(&(struct cm_service_limits){.protocol = w.c.limits});
	node[0].copies = node[1].copies = copies;
	w.server = listener(1, RDMA_PS_TCP, "::", PORT);
	w.datagrams = listener(1, RDMA_PS_UDP, "::", PORT);
	w.client.ch = open_channel(0);
	while (w.started < w.c.attempts || w.open) {
		while (w.started < w.c.attempts && w.open < AT_ONCE)
			start();
		settle();
		serve_all();
		if (!w.c.kind && below(LIFE) == 0) {
			close_channel(&w.client.ch);
			w.client.ch = open_channel(0);
			w.open = 0;
		}
		for (unsigned int i = w.c.forged ? below(100) : 0; i; i--)
			forge();
		if (++rounds % 64 == 0)
			part_all();
		wait_a_while();
	}
	print_message("seed %llu: %u accepted, %u established, %u resolved, %u rejected, %u "
		      "unreachable, %llu s\n",
		      (unsigned long long)w.c.seed, w.accepted, w.established, w.resolved,
		      w.ended[UCM_EVENT_REJECTED], w.ended[UCM_EVENT_UNREACHABLE],
		      (unsigned long long)(now / 1000000000));
	close_channel(&w.client.ch);
	/* Peers of the dead have been notified by now: DREQs and REJs are repeated. */
	pass(600000ull * MS);
	serve_all();
	close_channel(&w.server.ch);
	close_channel(&w.datagrams.ch);
	pass(600000ull * MS);
	check_nothing_left();
	assert_int_equal(service_descriptors(), before);
	if (w.c.datagrams)
		assert_int_not_equal(w.resolved, 0);
}

/* Those who are kind connect whatever gets lost now and then. */
static void run_kind(const struct config *config)
{
	run(config);
	assert_int_equal(w.established + w.resolved, w.c.attempts);
	assert_int_equal(w.ended[UCM_EVENT_REJECTED] + w.ended[UCM_EVENT_UNREACHABLE], 0);
}

TEST(lossy__kind)
{
	run_kind(&(struct config){.seed = 1, .attempts = ATTEMPTS, .lost = 50, .kind = true});
	assert_int_equal(w.accepted, ATTEMPTS);
}

TEST(lossy__kind_and_twice)
{
	run_kind(&(struct config){.seed = 4,
				  .attempts = ATTEMPTS,
				  .lost = 50,
				  .twice = 200,
				  .datagrams = true,
				  .kind = true});
}

TEST(lossy__unkind)
{
	run(&(struct config){.seed = 2, .attempts = ATTEMPTS, .lost = 50, .datagrams = true});
	assert_true(w.established > ATTEMPTS / 2);
	assert_true(w.ended[UCM_EVENT_REJECTED] > ATTEMPTS / 80);
}

/* Later than retries and time-wait: requests come that nobody asks any more. */
TEST(lossy__very_late)
{
	run(&(struct config){.seed = 5,
			     .attempts = ATTEMPTS,
			     .lost = 50,
			     .twice = 100,
			     .late = 20,
			     .datagrams = true});
	assert_true(w.established > ATTEMPTS / 2);
}

/* Stale connections: their peers still have them. */
TEST(lossy__qpns_again)
{
	run(&(struct config){.seed = 6, .attempts = ATTEMPTS, .lost = 50, .qpns_again = true});
	assert_true(cm_service_counters(node[1].s)->stale > 0);
}

/* One time in a thousand both addresses of node 0 have the same hash, and only their share is full. */
TEST(lossy__little_room)
{
	const struct cm_counters *c;

	run(&(struct config){.seed = 7,
			     .attempts = ATTEMPTS,
			     .lost = 50,
			     .datagrams = true,
			     .limits = {.connections = 60, .unanswered = 2}});
	c = cm_service_counters(node[1].s);
	assert_true(c->dropped_full + c->dropped_source > 0);
}

TEST(lossy__hardly_anything_arrives)
{
	run(&(struct config){.seed = 8, .attempts = ATTEMPTS / 10, .lost = 600, .twice = 50});
	assert_true(w.ended[UCM_EVENT_UNREACHABLE] > 0);
}

TEST(lossy__forged)
{
	run(&(struct config){.seed = 3,
			     .attempts = ATTEMPTS / 2,
			     .lost = 50,
			     .twice = 50,
			     .late = 10,
			     .datagrams = true,
			     .forged = true});
	assert_true(w.established > 0);
	assert_true(cm_service_counters(node[1].s)->mad_stray > 1000);
	assert_true(cm_service_counters(node[1].s)->mad_malformed > 0);
}
