/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that write anything to their channels: bytes that are no commands, descriptors that are
 * no sockets, and 10^5 commands at random on everybody's identifiers while the peers answer, time
 * passes and programs vanish. Nothing may be left, and nobody else may notice.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "../lingering.h"
#include "../stranger.h"
#include "base/close_later.h"
#include "service_fixture.h"

enum { COMMANDS = 100000, HOSTILE = 6 };

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % below);
}

/* A message with any descriptors. */
static void post(struct channel *ch, const void *bytes, size_t n, const int *fds, size_t count)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	memset(&control, 0, sizeof(control));
	if (count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(ch->fd, &m, MSG_NOSIGNAL), (ssize_t)n);
}

/* The status of a reply, or 1 if there is none. */
static int replied(int fd)
{
	struct cm_channel_reply reply;

	return recv(fd, &reply, sizeof(reply), MSG_DONTWAIT) < 0 ? 1 : reply.status;
}

TEST(descriptors__of_every_kind)
{
	struct channel ch = open_channel(0), other = open_channel(0);
	struct rdma_ucm_cmd_hdr h = {.cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = 8, .out = 1000};
	uint8_t bytes[2000] = {0};
	int fds[64], pair[2], dgram[2], pipes[2], file;
	int vsock = socket(AF_VSOCK, SOCK_SEQPACKET, 0); /* where there is one */
	struct rlimit room;
	unsigned int before;
	uint32_t id;

	memcpy(bytes, &h, sizeof(h));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, dgram), 0);
	assert_int_equal(pipe(pipes), 0);
	file = open("/dev/null", O_RDWR);
	before = service_descriptors();
	for (unsigned int i = 0; i < 64; i++)
		fds[i] = pair[1];

	post(&ch, bytes, 16, fds, 1);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), -EAGAIN);
	/* none: nothing to notify */
	post(&ch, bytes, 16, fds, 0);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), 1);
	for (size_t n = 2; n <= 64; n *= 2) {
		post(&ch, bytes, 16, fds, n);
		turn(&node[0]);
		assert_int_equal(replied(pair[0]), -EBADF);
	}
	post(&ch, bytes, 16, &file, 1);
	post(&ch, bytes, 16, &pipes[1], 1);
	post(&ch, bytes, 16, &dgram[1], 1);
	if (vsock >= 0)
		post(&ch, bytes, 16, &vsock, 1);
	turn(&node[0]);
	assert_int_equal(replied(dgram[0]), 1);
	assert_int_equal(cm_service_counters(node[0].s)->reply_lost, 0);
	/* Too long, too short. */
	post(&ch, bytes, 1025, fds, 1);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), -EMSGSIZE);
	post(&ch, bytes, 1024, fds, 1);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), -EAGAIN);
	for (size_t n = 0; n < 16; n++) {
		post(&ch, bytes, n, fds, 1);
		turn(&node[0]);
		assert_int_equal(replied(pair[0]), -EINVAL);
	}
	/* Empty, with a descriptor for which the daemon has no room. */
	getrlimit(RLIMIT_NOFILE, &room);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, room.rlim_max});
	post(&ch, bytes, 0, fds, 1);
	turn(&node[0]);
	setrlimit(RLIMIT_NOFILE, &room);
	post(&ch, bytes, 16, fds, 1);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), -EAGAIN);
	assert_int_equal(service_descriptors(), before);
	assert_true(cm_service_counters(node[0].s)->command_malformed >= 11);
	/* An empty message is the end; another channel does not notice. */
	post(&ch, bytes, 0, NULL, 0);
	turn(&node[0]);
	assert_int_equal(create_id(&other, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(recv(ch.fd, bytes, 1, MSG_DONTWAIT), 0);
	for (int i = 0; i < 2; i++) {
		close(pair[i]);
		close(dgram[i]);
		close(pipes[i]);
	}
	close(vsock);
	close(file);
}

/* The descriptor was a copy, and the other one is closed only later: nobody is notified of a
 * channel that has ended. */
TEST(descriptors__copied)
{
	struct channel other = open_channel(0);
	struct pollfd p = {.fd = cm_service_fd(node[0].s), .events = POLLIN};
	int pair[2], copy;
	uint32_t id;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	copy = dup(pair[1]);
	assert_int_equal(cm_service_adopt(node[0].s, pair[1]), 0);
	close(pair[0]);
	turn(&node[0]);
	assert_int_equal(services_used(&node[0], SHARE_cm_channels), 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	turn(&node[0]);
	assert_int_equal(create_id(&other, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	close(copy);
}

/* Descriptors whose last close waits, wherever they are put: in a command, more than are taken, in
 * the queue of the socket for the reply, in that of the channel. Nobody else waits for them. */
TEST(descriptors__that_do_not_close)
{
	struct channel bad = open_channel(0), ended = open_channel(0), good = open_channel(0);
	uint64_t begun = lingering_now_ms();
	int fds[64], peer[4], pair[2];
	uint8_t byte = 1;
	uint32_t id;

	fds[0] = lingering(&peer[0]);
	post(&bad, &byte, 1, fds, 1);
	close(fds[0]);
	fds[1] = lingering(&peer[1]);
	for (unsigned int i = 0; i < 64; i++)
		fds[i] = fds[1];
	post(&bad, &byte, 1, fds, 64);
	close(fds[1]);
	fds[0] = lingering(&peer[2]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	post(&(struct channel){.fd = pair[0]}, &byte, 1, fds, 1);
	close(fds[0]);
	post(&bad, &byte, 1, &pair[1], 1);
	close(pair[1]);
	close(pair[0]);
	fds[0] = lingering(&peer[3]);
	post(&ended, &byte, 0, NULL, 0);
	post(&ended, &byte, 1, fds, 1);
	close(fds[0]);
	for (int i = 0; i < 10; i++)
		assert_int_equal(create_id(&good, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(recv(ended.fd, &byte, 1, MSG_DONTWAIT), 0);
	/* A program with more of them than it may have loses its channel. */
	services_total(SHARE_closings, 1);
	post(&bad, &byte, 1, NULL, 0);
	turn(&node[0]);
	assert_int_equal(recv(bad.fd, &byte, 1, MSG_DONTWAIT), 0);
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
	for (int i = 0; i < 4; i++)
		close(peer[i]);
	close_later_finish();
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
}

/* Bad reply sockets, some of which would block the writer. */
TEST(descriptors__of_strangers)
{
	struct channel bad = open_channel(0), good = open_channel(0);
	uint64_t begun = lingering_now_ms();
	struct stranger s;
	uint8_t byte = 1;
	uint32_t id;

	for (int kind = 0; kind < STRANGER_KINDS; kind++) {
		if (!stranger_make(&s, kind))
			continue;
		post(&bad, &byte, 1, &s.fd, 1);
		assert_int_equal(create_id(&good, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		stranger_end(&s);
	}
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
	close_later_finish();
}

/* A program that does not read its replies loses them; nothing waits for it. */
TEST(replies__not_read)
{
	struct channel ch = open_channel(0);
	struct rdma_ucm_cmd_hdr h = {.cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = 8, .out = 1000};
	uint8_t bytes[16] = {0};
	int pair[2];

	memcpy(bytes, &h, sizeof(h));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (int i = 0; i < 5000; i++) {
		post(&ch, bytes, sizeof(bytes), &pair[1], 1);
		turn(&node[0]);
	}
	assert_true(cm_service_counters(node[0].s)->reply_lost > 1000);
	assert_int_equal(cm_service_counters(node[0].s)->command_refused, 0); /* no event yet */
	close(pair[0]);
	post(&ch, bytes, sizeof(bytes), &pair[1], 1);
	turn(&node[0]);
	close(pair[1]);
}

/* A turn serves a bounded number of commands of one channel, others come in between. */
TEST(commands__bounded)
{
	struct channel ch = open_channel(0), other = open_channel(0);
	uint8_t byte = 1;
	uint32_t id;

	for (int i = 0; i < 2 * UCM_COMMANDS_PER_TURN; i++)
		post(&ch, &byte, 1, NULL, 0);
	turn(&node[0]);
	assert_int_equal(cm_service_counters(node[0].s)->command_malformed, UCM_COMMANDS_PER_TURN);
	assert_int_equal(create_id(&other, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(cm_service_counters(node[0].s)->command_malformed,
			 2 * UCM_COMMANDS_PER_TURN);
}

/* However many channels a user has, another one waits for no more than his part of a turn. */
TEST(commands__take_their_users_time)
{
	enum { CHANNELS = 32 };
	struct channel crowd[CHANNELS], other;
	const struct cm_counters *c;
	uint64_t before;
	uint8_t byte = 1;

	for (int i = 0; i < CHANNELS; i++)
		crowd[i] = open_channel_as(0, 1000);
	other = open_channel_as(0, 1001);
	services_total(SHARE_cm_us, 100);
	shares_set_user_part(node[0].s->shares, 1);
	for (int i = 0; i < CHANNELS; i++)
		post(&crowd[i], &byte, 1, NULL, 0);
	post(&other, &byte, 1, NULL, 0);
	c = cm_service_counters(node[0].s);
	before = c->command_malformed;
	assert_int_equal(cm_service_turn(node[0].s, now), now); /* there is more */
	assert_int_equal(cm_service_counters(node[0].s)->command_malformed - before, 2);
	shares_set_user_part(node[0].s->shares, 0);
	services_total(SHARE_cm_us, UINT32_MAX);
	turn(&node[0]);
	assert_int_equal(cm_service_counters(node[0].s)->command_malformed - before, CHANNELS + 1);
}

/* However slow the thread that closes what comes with commands, descriptors do not run out. */
enum { BETWEEN_CLOSES = 64 };

TEST(bytes__at_random)
{
	struct channel ch = open_channel(0);
	uint8_t bytes[1024];
	int pair[2];

	seed = 1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (int i = 0; i < 20000; i++) {
		size_t n = 1 + draw(sizeof(bytes));

		for (size_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)draw(256);
		if (draw(4) && n > 8) { /* with a head that passes */
			struct rdma_ucm_cmd_hdr h = {.cmd = draw(24),
						     .in = (uint16_t)(n - 8 - draw(2)),
						     .out = (uint16_t)draw(1200)};

			memcpy(bytes, &h, sizeof(h));
		}
		post(&ch, bytes, n, &pair[1], 1);
		turn(&node[0]);
		if (i % BETWEEN_CLOSES == 0)
			close_later_finish();
		while (recv(pair[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
	}
	close(pair[0]);
	close(pair[1]);
}

/* ---- plausible commands ---- */

static struct channel ch[HOSTILE];
static const struct ucm_channel *inside[HOSTILE]; /* the service's view of them */

static void open_hostile(unsigned int k)
{
	ch[k] = open_channel(k & 1);
	inside[k] = LIST_FIRST(&node[k & 1].s->channels);
}

static const char *some_address(void)
{
	static const char *const addresses[] = {
		"0.0.0.0",     "127.0.0.1",   "10.0.0.1",
		"10.0.0.2",    "10.1.0.1",    "10.1.0.2",
		"192.0.2.1",   "::",	      "::1",
		"fd00::1",     "fd00::2",     "fd00:1::2",
		"239.1.2.3",   "ff0e::1",     "gid:::",
		"gid:fd00::1", "gid:fd00::2", "gid:::ffff:10.0.0.2"};

	return addresses[draw(sizeof(addresses) / sizeof(addresses[0]))];
}

static uint32_t some_id(void)
{
	return draw(100) ? draw(24) : draw(UINT32_MAX);
}

static uint16_t some_port(void)
{
	return draw(3) ? (uint16_t)(2000 + draw(4)) : 0;
}

static void fill_address(void *to, size_t room)
{
	union ucm_address a = address_of(some_address(), some_port());

	memcpy(to, &a, room);
}

static void fill_param(struct rdma_ucm_conn_param *p)
{
	p->qp_num = 2 + draw(1000);
	p->private_data_len = (uint8_t)(draw(10) ? draw(57) : draw(256));
	p->valid = draw(8) != 0;
	p->responder_resources = (uint8_t)draw(256);
	p->qkey = draw(3);
}

union body {
	struct rdma_ucm_create_id create;
	struct rdma_ucm_bind_ip bind_ip;
	struct rdma_ucm_bind bind;
	struct rdma_ucm_resolve_ip resolve_ip;
	struct rdma_ucm_resolve_addr resolve_addr;
	struct rdma_ucm_connect connect;
	struct rdma_ucm_accept accept;
	struct rdma_ucm_reject reject;
	struct rdma_ucm_listen listen;
	struct rdma_ucm_query query;
	struct rdma_ucm_destroy_id destroy;
	struct rdma_ucm_join_mcast join;
	struct rdma_ucm_join_ip_mcast join_ip;
	struct rdma_ucm_set_option option;
	uint8_t bytes[1000];
};

/* Those with addresses. False: it is none of them. */
static bool fill_addressed(uint32_t number, union body *b)
{
	switch (number) {
	case RDMA_USER_CM_CMD_BIND_IP:
		b->bind_ip.id = some_id();
		fill_address(&b->bind_ip.addr, sizeof(b->bind_ip.addr));
		return true;
	case RDMA_USER_CM_CMD_BIND:
		b->bind.id = some_id();
		fill_address(&b->bind.addr, sizeof(b->bind.addr));
		b->bind.addr_size =
			(uint16_t)ucm_address_bytes((const union ucm_address *)&b->bind.addr);
		return true;
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		b->resolve_ip.id = some_id();
		b->resolve_ip.timeout_ms = draw(100);
		if (!draw(3))
			fill_address(&b->resolve_ip.src_addr, sizeof(b->resolve_ip.src_addr));
		fill_address(&b->resolve_ip.dst_addr, sizeof(b->resolve_ip.dst_addr));
		return true;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		b->resolve_addr.id = some_id();
		b->resolve_addr.timeout_ms = draw(100);
		fill_address(&b->resolve_addr.dst_addr, sizeof(b->resolve_addr.dst_addr));
		b->resolve_addr.dst_size = (uint16_t)ucm_address_bytes(
			(const union ucm_address *)&b->resolve_addr.dst_addr);
		return true;
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		b->join.id = some_id();
		b->join.uid = 9;
		fill_address(&b->join.addr, sizeof(b->join.addr));
		b->join.addr_size =
			(uint16_t)ucm_address_bytes((const union ucm_address *)&b->join.addr);
		return true;
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		b->join_ip.id = some_id();
		fill_address(&b->join_ip.addr, sizeof(b->join_ip.addr));
		return true;
	default:
		return false;
	}
}

/* Values that have a chance, of any command. */
static void fill_body(uint32_t number, union body *b)
{
	memset(b, 0, sizeof(*b));
	if (fill_addressed(number, b))
		return;
	switch (number) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		b->create.uid = 1 + draw(5);
		b->create.ps = draw(2) ? RDMA_PS_TCP : draw(2) ? RDMA_PS_UDP : RDMA_PS_IB;
		b->create.qp_type = (uint8_t)(2 + draw(3));
		return;
	case RDMA_USER_CM_CMD_CONNECT:
		b->connect.id = some_id();
		fill_param(&b->connect.conn_param);
		return;
	case RDMA_USER_CM_CMD_ACCEPT:
		b->accept.id = some_id();
		b->accept.uid = 1 + draw(5);
		fill_param(&b->accept.conn_param);
		return;
	case RDMA_USER_CM_CMD_REJECT:
		b->reject.id = some_id();
		b->reject.private_data_len = (uint8_t)draw(256);
		return;
	case RDMA_USER_CM_CMD_SET_OPTION:
		b->option.id = some_id();
		b->option.optname = draw(5);
		b->option.optlen = draw(2) ? 4 : 1;
		return;
	case RDMA_USER_CM_CMD_QUERY:
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
	case CM_COMMAND_RELEASE_ID:
		b->query.id = some_id();
		b->query.option = draw(4);
		return;
	default: /* the identifier comes first */
		b->listen.id = some_id();
		b->listen.backlog = draw(5);
		return;
	}
}

static uint32_t some_command(void)
{
	/* Often what makes something. */
	static const uint32_t often[] = {
		RDMA_USER_CM_CMD_CREATE_ID,	RDMA_USER_CM_CMD_RESOLVE_IP,
		RDMA_USER_CM_CMD_RESOLVE_ROUTE, RDMA_USER_CM_CMD_CONNECT,
		RDMA_USER_CM_CMD_LISTEN,	RDMA_USER_CM_CMD_GET_EVENT,
		RDMA_USER_CM_CMD_ACCEPT,	CM_COMMAND_RELEASE_ID};

	return draw(2) ? often[draw(8)] : draw(24);
}

static void one_command(void)
{
	struct channel *c = &ch[draw(HOSTILE)];
	union body body;
	uint8_t out[1024];
	uint32_t number = some_command();
	static struct cm_channel_ticket ticket;
	int ret;

	fill_body(number, &body);
	if (number == RDMA_USER_CM_CMD_MIGRATE_ID && draw(2))
		memcpy(body.bytes + 8, &ticket, sizeof(ticket));
	ret = command(c, number, &body, 300, out, 1000);
	if (!ret && number == CM_COMMAND_RELEASE_ID)
		memcpy(&ticket, out, sizeof(ticket));
}

/* ---- and what makes sense, so that the others hit something ---- */

static const char *const peers[] = {"10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2", "gid:fd00::2"};

/* Some identifier of a channel that its program knows; NULL: it has none. */
static const struct ucm_id *some_own_id(const struct ucm_channel *c)
{
	const struct ucm_id *id, *found = NULL;
	unsigned int seen = 0;

	LIST_FOREACH (id, &c->ids, of_channel)
		if (id->number != UCM_NO_NUMBER && !draw(++seen))
			found = id;
	return found;
}

static void step_of_connection(struct channel *c, uint32_t id)
{
	switch (draw(8)) {
	case 0:
		disconnect_id(c, id);
		return;
	case 1:
		destroy_id(c, id, NULL);
		return;
	case 2:
		reject_id(c, id, 0, "no");
		return;
	case 3:
	case 4:
		confirm_id(c, id);
		return;
	default:
		accept_id(c, id, 5, 2 + draw(1000), "yes");
		return;
	}
}

static void sensible_step(struct channel *c, const struct ucm_id *own)
{
	uint32_t id = own->number;

	switch ((enum ucm_state)own->state) {
	case UCM_IDLE:
		if (draw(2))
			bind_ip(c, id, draw(3) ? "::" : "gid:::", (uint16_t)(2000 + draw(4)));
		else
			resolve_ip(c, id, NULL, peers[draw(5)], (uint16_t)(2000 + draw(4)), 50);
		return;
	case UCM_BOUND:
		listen_id(c, id, 2);
		return;
	case UCM_ADDR_RESOLVED:
		resolve_route(c, id);
		return;
	case UCM_ROUTE_RESOLVED:
		connect_id(c, id, 2 + draw(1000), "please");
		return;
	case UCM_CONNECT:
		step_of_connection(c, id);
		return;
	case UCM_DISCONNECT:
		if (draw(2))
			disconnect_id(c, id);
		else
			destroy_id(c, id, NULL);
		return;
	case UCM_ADDR_QUERY:
	case UCM_LISTENING:
	case UCM_REMOVED:
	case UCM_GONE:
		return;
	}
}

static void step(void)
{
	struct channel *c = &ch[draw(HOSTILE)];
	struct rdma_ucm_get_event in = {.response = 1};
	struct rdma_ucm_event_resp e;
	const struct ucm_id *own = some_own_id(inside[c - ch]);
	uint32_t id;

	if (!own || !draw(8))
		create_id(c, 1 + draw(5), draw(3) ? RDMA_PS_TCP : RDMA_PS_UDP, 2, &id);
	else
		sensible_step(c, own);
	command(c, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), &e, sizeof(e));
}

/* Byte and events belong together, whatever happened: QUIET_THERE is not looked at here, so that a
 * byte may be there without an event, never the other way round. */
static void check_bytes(void)
{
	struct ucm_channel *c;

	for (unsigned int n = 0; n < 2; n++)
		LIST_FOREACH (c, &node[n].s->channels, of_service)
			assert_true(TAILQ_EMPTY(&c->events) || c->woken);
}

TEST(commands__at_random)
{
	const char *said = getenv("SOFTHCA_SEED");
	uint32_t connections, orphans;

	seed = said ? strtoull(said, NULL, 0) : 20261121;
	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned int i = 0; i < HOSTILE; i++)
		open_hostile(i);
	for (unsigned int i = 0; i < COMMANDS; i++) {
		if (draw(5))
			step();
		else
			one_command();
		if (!draw(4))
			settle();
		if (!draw(50)) {
			pass(draw(300) * (uint64_t)MS);
			check_bytes();
		}
		if (!draw(1000)) {
			unsigned int k = draw(HOSTILE);

			close_channel(&ch[k]);
			open_hostile(k);
		}
		if (i % BETWEEN_CLOSES == 0)
			close_later_finish();
		node[draw(2)].deaf = !draw(20);
		node[draw(2)].resolve_again = (int)draw(3);
		node[draw(2)].resolve_result = draw(10) ? 0 : -EHOSTUNREACH;
	}
	node[0].deaf = node[1].deaf = false;
	for (unsigned int i = 0; i < HOSTILE; i++)
		close_channel(&ch[i]);
	pass(1000000ull * MS);
	for (unsigned int n = 0; n < 2; n++) {
		const struct cm_counters *c = cm_service_counters(node[n].s);

		printf("node %u: %llu commands, %llu refused\n", n, (unsigned long long)c->command,
		       (unsigned long long)c->command_refused);
		cm_census(node[n].s->cm, &connections, &orphans);
		assert_int_equal(connections, 0);
		assert_int_equal(node[n].s->resolve_due, UINT64_MAX);
		for (unsigned int b = 0; b < UCM_SPACES * UCM_PORTS; b++)
			assert_int_equal(node[n].s->ports[b].count, 0);
		for (uint32_t i = 0; i < node[n].s->ids.room; i++)
			assert_null(node[n].s->ids.at[i]);
		for (uint32_t i = 0; i < node[n].s->memberships.room; i++)
			assert_null(node[n].s->memberships.at[i]);
	}
}
