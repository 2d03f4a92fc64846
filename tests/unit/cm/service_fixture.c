/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two services with made-up devices, and programs: see service_fixture.h.
 */
#include <endian.h>
#include <poll.h>
#include <sys/syscall.h>
#include "../descriptors.h"
#include "base/close_later.h"
#include "host-abi/descriptor.h"
#include "service_fixture.h"

struct node node[2];
uint64_t now;

enum { WIRE = 4096, CHANNELS = 64 };

static struct flying {
	struct node *to;
	uint64_t due;
	struct cm_path path;
	uint8_t mad[CM_MAD_BYTES];
} wire[WIRE];
static unsigned int wire_first, wire_last;
static int open_fds[CHANNELS];
static unsigned int open_count;

void gid_of(unsigned int n, unsigned int device, unsigned int index, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (index == GID_LINK) {
		gid[0] = 0xfe;
		gid[1] = 0x80;
		gid[13] = (uint8_t)n;
		gid[15] = (uint8_t)device;
	} else if (index == GID_V4) {
		gid[10] = gid[11] = 0xff;
		gid[12] = 10;
		gid[13] = (uint8_t)device;
		gid[15] = (uint8_t)n;
	} else {
		gid[0] = 0xfd;
		gid[3] = (uint8_t)device;
		gid[15] = (uint8_t)n;
	}
}

static void op_port(void *ctx, struct control_port_reply *out)
{
	struct node_device *d = ctx;

	*out = (struct control_port_reply){.state = d->node->down[d->index] ? 1 : 4,
					   .max_mtu = 5,
					   .active_mtu = d->node->active_mtu,
					   .speed_mbps = d->node->speed_mbps,
					   .gid_count = GIDS,
					   .pkey_count = 1};
}

static int op_gid(void *ctx, uint32_t index, uint8_t gid[16])
{
	struct node_device *d = ctx;

	if (index + d->node->lacks >= GIDS) {
		gid_of(3 - d->node->n, d->index, GID_V4, gid); /* nobody is to believe it */
		return -ENOENT;
	}
	gid_of(d->node->n, d->index, index + d->node->lacks, gid);
	return 0;
}

static int op_source(void *ctx, const uint8_t dgid[16])
{
	struct node_device *d = ctx;
	uint8_t own[16];

	if (dgid[0] == 0xff)
		return d->index == 0 ? GID_V6 : -ENETUNREACH;
	for (int i = GID_V4; i < GIDS; i++) {
		gid_of(d->node->n, d->index, (unsigned int)i, own);
		if (!memcmp(own, dgid, 14))
			return i;
		if (i == GID_V4 && !memcmp(own, dgid, 12) && dgid[12] >> 4 == 14 && !d->index)
			return i;
	}
	return -ENETUNREACH;
}

static int op_resolve(void *ctx, const uint8_t dgid[16])
{
	struct node_device *d = ctx;

	if (d->node->resolve_again) {
		d->node->resolve_again--;
		return -EAGAIN;
	}
	return d->node->resolve_result;
}

static bool op_would_ask(void *ctx, const uint8_t dgid[16])
{
	return ((struct node_device *)ctx)->node->would_ask;
}

static void set_off(const struct flying *f)
{
	assert_true(wire_last - wire_first < WIRE);
	wire[wire_last++ % WIRE] = *f;
}

static void op_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	struct node_device *d = ctx;
	struct flying f = {.path = {.device = (uint16_t)d->index, .hop_limit = 64}};
	unsigned int copies = d->node->copies ? d->node->copies(&f.due) : 1;

	d->node->sent++;
	memcpy(d->node->last, mad, CM_MAD_BYTES);
	assert_int_equal(path->device, d->index);
	f.due += now;
	memcpy(f.path.sgid, path->dgid, 16);
	memcpy(f.path.dgid, path->sgid, 16);
	memcpy(f.mad, mad, sizeof(f.mad));
	for (unsigned int n = 0; n < 2; n++) {
		for (unsigned int g = 0; g < GIDS; g++) {
			uint8_t gid[16];

			gid_of(n + 1, d->index, g, gid);
			if (memcmp(gid, path->dgid, 16) != 0)
				continue;
			f.to = &node[n];
			while (copies--)
				set_off(&f);
			return;
		}
	}
}

static bool op_gives_credits(void *ctx, uint32_t user, uint32_t qpn)
{
	const struct node_device *d = ctx;

	assert_int_equal(user, getuid());
	return qpn == d->node->credits_of;
}

static void op_peer_gives_no_credits(void *ctx, uint32_t user, uint32_t qpn)
{
	struct node_device *d = ctx;

	assert_int_equal(user, getuid());
	d->node->at_will = qpn;
}

static struct cm_device device_of(unsigned int n, unsigned int d)
{
	struct cm_device device = {.name = "shca",
				   .guid = 0x0200000000000000 + n * 16 + d,
				   .ctx = &node[n].devices[d],
				   .port = op_port,
				   .gid = op_gid,
				   .source = op_source,
				   .resolve = op_resolve,
				   .would_ask = op_would_ask,
				   .send = op_send,
				   .gives_credits = op_gives_credits,
				   .peer_gives_no_credits = op_peer_gives_no_credits};

	device.name[4] = (char)('0' + d);
	return device;
}

void service_add(unsigned int n, unsigned int d)
{
	const struct cm_device device = device_of(n, d);

	cm_service_add(node[n].s, d, &device);
}

void services_start(const struct cm_service_limits *limits)
{
	for (unsigned int n = 0; n < 2; n++) {
		cm_service_destroy(node[n].s);
		node[n] = (struct node){.n = n + 1, .active_mtu = 3, .speed_mbps = 100000};
		node[n].s = cm_service_create(limits);
		assert_non_null(node[n].s);
		for (unsigned int d = 0; d < DEVICES; d++) {
			struct cm_device device = device_of(n, d);

			node[n].devices[d] = (struct node_device){&node[n], d};
			cm_service_add(node[n].s, d, &device);
		}
		/* Commands take real time. */
		shares_set_total(node[n].s->shares, SHARE_cm_us, 0, UINT32_MAX);
	}
}

void services_total(enum share row, uint64_t total)
{
	for (unsigned int n = 0; n < 2; n++)
		shares_set_total(node[n].s->shares, row, 0, total);
}

uint64_t services_used(const struct node *n, enum share row)
{
	struct share_info info;

	shares_info(n->s->shares, row, 0, &info);
	return info.used;
}

int services_setup(void **state)
{
	now = 1000;
	wire_first = wire_last = 0;
	open_count = 0;
	memset(node, 0, sizeof(node));
	services_start(NULL);
	return 0;
}

/* Also where somebody else holds it for a moment, as who lists /proc/PID/fd does. */
static void hang_up(int fd)
{
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

int services_teardown(void **state)
{
	while (open_count)
		hang_up(open_fds[--open_count]);
	settle();
	close_later_finish(); /* what is still being closed is still held */
	for (unsigned int n = 0; n < 2; n++) {
		assert_int_equal(cm_service_ids(node[n].s, NULL, 0), 0);
		assert_int_equal(services_used(&node[n], SHARE_cm_channels), 0);
		cm_service_destroy(node[n].s);
	}
	return 0;
}

unsigned int service_descriptors(void)
{
	close_later_finish();
	return open_descriptors();
}

struct channel open_channel(unsigned int n)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(cm_service_adopt(node[n].s, pair[1]), 0);
	assert_true(open_count < CHANNELS);
	open_fds[open_count++] = pair[0];
	return (struct channel){.node = &node[n], .fd = pair[0]};
}

int use_hca(struct channel *ch, const char *hca)
{
	struct cm_channel_hcas hcas = {.name = {""}};

	memcpy(hcas.name[0], hca, strnlen(hca, sizeof(hcas.name[0])));
	return command(ch, CM_COMMAND_USE_HCAS, &hcas, sizeof(hcas), NULL, 0);
}

struct channel open_channel_on(unsigned int n, const char *hca)
{
	struct channel ch = open_channel(n);

	assert_int_equal(use_hca(&ch, hca), 0);
	return ch;
}

struct channel open_channel_as(unsigned int n, uid_t uid)
{
	struct channel ch;

	if (getuid() != 0)
		skip();
	assert_int_equal(syscall(SYS_setresuid, -1, uid, -1), 0);
	ch = open_channel(n);
	assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
	return ch;
}

void close_channel(struct channel *ch)
{
	for (unsigned int i = 0; i < open_count; i++)
		if (open_fds[i] == ch->fd)
			open_fds[i] = open_fds[--open_count];
	hang_up(ch->fd);
	turn(ch->node);
}

void turn(struct node *n)
{
	n->next = cm_service_turn(n->s, now);
}

/* What is due arrives, the rest stays: true if something did. */
static bool deliver(void)
{
	bool any = false;

	for (unsigned int n = wire_last - wire_first; n; n--) {
		struct flying f = wire[wire_first++ % WIRE];

		if (f.due > now) {
			set_off(&f);
			continue;
		}
		any = true;
		if (!f.to->deaf)
			cm_service_receive(f.to->s, now, &f.path, f.mad, sizeof(f.mad));
	}
	return any;
}

void settle(void)
{
	do {
		turn(&node[0]);
		turn(&node[1]);
	} while (deliver());
}

static uint64_t next_due(void)
{
	uint64_t next = node[0].next < node[1].next ? node[0].next : node[1].next;

	for (unsigned int i = wire_first; i != wire_last; i++)
		next = wire[i % WIRE].due < next ? wire[i % WIRE].due : next;
	return next;
}

void pass(uint64_t ns)
{
	uint64_t end = now + ns;

	for (;;) {
		uint64_t next;

		settle();
		next = next_due();
		if (next > end)
			break;
		now = next > now ? next : now + 1;
	}
	now = end;
	settle();
}

int command_with(struct channel *ch, uint32_t number, const void *body, size_t in,
		 const void *extra, size_t extra_bytes, void *response, size_t out)
{
	struct rdma_ucm_cmd_hdr h = {.cmd = number, .in = (uint16_t)in, .out = (uint16_t)out};
	struct iovec iov[3] = {{&h, sizeof(h)},
			       {(void *)(uintptr_t)body, in},
			       {(void *)(uintptr_t)extra, extra_bytes}};
	struct {
		struct cm_channel_reply head;
		uint8_t bytes[CM_CHANNEL_BYTES_MAX];
	} reply;
	int pair[2];
	uint8_t byte;
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(descriptor_send(ch->fd, iov, 3, pair[1], MSG_NOSIGNAL),
			 (ssize_t)(sizeof(h) + in + extra_bytes));
	close(pair[1]);
	turn(ch->node);
	n = recv(pair[0], &reply, sizeof(reply), MSG_DONTWAIT);
	close(pair[0]);
	assert_true(n >= (ssize_t)sizeof(reply.head));
	assert_int_equal(n - sizeof(reply.head), reply.head.bytes);
	assert_true(reply.head.bytes <= out);
	assert_true(reply.head.status <= 0);
	ch->flags = reply.head.flags;
	ch->bytes = reply.head.bytes;
	ch->counts_for = reply.head.counts_for;
	if (ch->bytes)
		memcpy(response, reply.bytes, ch->bytes);
	if (ch->flags & CM_CHANNEL_QUIET)
		assert_int_equal(recv(ch->fd, &byte, 1, MSG_DONTWAIT), 1);
	return reply.head.status;
}

int command(struct channel *ch, uint32_t number, const void *body, size_t in, void *response,
	    size_t out)
{
	return command_with(ch, number, body, in, NULL, 0, response, out);
}

bool readable(const struct channel *ch)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

int get_event(struct channel *ch, struct rdma_ucm_event_resp *e)
{
	struct rdma_ucm_get_event in = {.response = (uintptr_t)e};
	bool waits = readable(ch);
	int ret;

	memset(e, 0, sizeof(*e));
	ret = command(ch, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), e, sizeof(*e));
	assert_int_equal(waits, ret != -EAGAIN);
	return ret;
}

struct rdma_ucm_event_resp expect_event(struct channel *ch, uint32_t type)
{
	struct rdma_ucm_event_resp e;

	assert_int_equal(get_event(ch, &e), 0);
	assert_int_equal(e.event, type);
	return e;
}

void expect_no_event(struct channel *ch)
{
	struct rdma_ucm_event_resp e;

	assert_int_equal(get_event(ch, &e), -EAGAIN);
}

/* ---- commands ---- */

int create_id(struct channel *ch, uint64_t uid, uint16_t ps, uint8_t qp_type, uint32_t *id)
{
	struct rdma_ucm_create_id in = {.uid = uid, .ps = ps, .qp_type = qp_type};
	struct rdma_ucm_create_id_resp out = {0};
	int ret = ASK(ch, CREATE_ID, in, out);

	*id = out.id;
	return ret;
}

int destroy_id(struct channel *ch, uint32_t id, uint32_t *events)
{
	struct rdma_ucm_destroy_id in = {.id = id};
	struct rdma_ucm_destroy_id_resp out = {0};
	int ret = ASK(ch, DESTROY_ID, in, out);

	if (events)
		*events = out.events_reported;
	return ret;
}

union ucm_address address_of(const char *text, uint16_t port)
{
	union ucm_address a;

	memset(&a, 0, sizeof(a));
	if (!strncmp(text, "gid:", 4)) {
		a.ib = (struct ucm_sockaddr_ib){.family = UCM_AF_IB,
						.pkey = htons(0xffff),
						.sid = htobe64((uint64_t)RDMA_PS_TCP << 16 | port),
						.sid_mask = UINT64_MAX};
		assert_int_equal(inet_pton(AF_INET6, text + 4, a.ib.gid), 1);
	} else if (strchr(text, ':')) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
		assert_int_equal(inet_pton(AF_INET6, text, &a.v6.sin6_addr), 1);
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
		assert_int_equal(inet_pton(AF_INET, text, &a.v4.sin_addr), 1);
	}
	return a;
}

int bind_any(struct channel *ch, uint32_t id, const union ucm_address *a)
{
	struct rdma_ucm_bind in = {.id = id, .addr_size = (uint16_t)ucm_address_bytes(a)};

	memcpy(&in.addr, a, in.addr_size);
	return TELL(ch, BIND, in);
}

int bind_ip(struct channel *ch, uint32_t id, const char *address, uint16_t port)
{
	union ucm_address a = address_of(address, port);
	struct rdma_ucm_bind_ip in = {.id = id};

	if (a.family == UCM_AF_IB)
		return bind_any(ch, id, &a);
	memcpy(&in.addr, &a, sizeof(in.addr));
	return TELL(ch, BIND_IP, in);
}

static int resolve_addr(struct channel *ch, uint32_t id, const union ucm_address *source,
			const union ucm_address *destination, uint32_t timeout_ms)
{
	struct rdma_ucm_resolve_addr in = {.id = id, .timeout_ms = timeout_ms};

	in.src_size = source ? (uint16_t)ucm_address_bytes(source) : 0;
	in.dst_size = (uint16_t)ucm_address_bytes(destination);
	if (source)
		memcpy(&in.src_addr, source, in.src_size);
	memcpy(&in.dst_addr, destination, in.dst_size);
	return TELL(ch, RESOLVE_ADDR, in);
}

int resolve_ip(struct channel *ch, uint32_t id, const char *source, const char *destination,
	       uint16_t port, uint32_t timeout_ms)
{
	struct rdma_ucm_resolve_ip in = {.id = id, .timeout_ms = timeout_ms};
	union ucm_address s = {.family = 0}, d = address_of(destination, port);

	if (source)
		s = address_of(source, 0);
	if (d.family == UCM_AF_IB)
		return resolve_addr(ch, id, source ? &s : NULL, &d, timeout_ms);
	memcpy(&in.src_addr, &s, sizeof(in.src_addr));
	memcpy(&in.dst_addr, &d, sizeof(in.dst_addr));
	return TELL(ch, RESOLVE_IP, in);
}

int resolve_route(struct channel *ch, uint32_t id)
{
	struct rdma_ucm_resolve_route in = {.id = id, .timeout_ms = 2000};

	return TELL(ch, RESOLVE_ROUTE, in);
}

int listen_id(struct channel *ch, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen in = {.id = id, .backlog = backlog};

	return TELL(ch, LISTEN, in);
}

static struct rdma_ucm_conn_param param(uint32_t qpn, const char *data)
{
	struct rdma_ucm_conn_param p = {.qp_num = qpn,
					.private_data_len = (uint8_t)(data ? strlen(data) : 0),
					.responder_resources = 4,
					.initiator_depth = 2,
					.retry_count = 200, /* 7 are most */
					.rnr_retry_count = 6,
					.qkey = 0x777, /* with GIDs only */
					.valid = 1};

	if (data)
		memcpy(p.private_data, data, p.private_data_len);
	return p;
}

struct rdma_ucm_ece offered_ece, answered_ece;

int connect_id(struct channel *ch, uint32_t id, uint32_t qpn, const char *data)
{
	struct rdma_ucm_connect in = {.id = id, .conn_param = param(qpn, data), .ece = offered_ece};

	return TELL(ch, CONNECT, in);
}

int accept_id(struct channel *ch, uint32_t id, uint64_t uid, uint32_t qpn, const char *data)
{
	struct rdma_ucm_accept in = {
		.id = id, .uid = uid, .conn_param = param(qpn, data), .ece = answered_ece};

	in.conn_param.responder_resources = 3;
	in.conn_param.initiator_depth = 1;
	return TELL(ch, ACCEPT, in);
}

int confirm_id(struct channel *ch, uint32_t id)
{
	struct rdma_ucm_accept in = {.id = id};

	return TELL(ch, ACCEPT, in);
}

int reject_id(struct channel *ch, uint32_t id, uint8_t reason, const char *data)
{
	struct rdma_ucm_reject in = {.id = id, .reason = reason};

	in.private_data_len = (uint8_t)strlen(data);
	memcpy(in.private_data, data, in.private_data_len);
	return TELL(ch, REJECT, in);
}

int disconnect_id(struct channel *ch, uint32_t id)
{
	struct rdma_ucm_disconnect in = {.id = id};

	return TELL(ch, DISCONNECT, in);
}

int init_qp_attr(struct channel *ch, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *attr)
{
	struct rdma_ucm_init_qp_attr in = {.id = id, .qp_state = state};

	memset(attr, 0xee, sizeof(*attr));
	return ASK(ch, INIT_QP_ATTR, in, *attr);
}

int query_route(struct channel *ch, uint32_t id, struct rdma_ucm_query_route_resp *out)
{
	struct rdma_ucm_query in = {.id = id};

	return ASK(ch, QUERY_ROUTE, in, *out);
}

int query_addr(struct channel *ch, uint32_t id, uint32_t option,
	       struct rdma_ucm_query_addr_resp *out)
{
	struct rdma_ucm_query in = {.id = id, .option = option};

	return ASK(ch, QUERY, in, *out);
}

int set_option(struct channel *ch, uint32_t id, uint32_t level, uint32_t name, const void *value,
	       uint32_t bytes)
{
	struct rdma_ucm_set_option in = {.id = id,
					 .level = level,
					 .optname = name,
					 .optlen = bytes,
					 .optval = (uintptr_t)value};

	return command_with(ch, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), value, bytes, NULL,
			    0);
}

/* ---- whole exchanges ---- */

static struct end listener_of(unsigned int n, uint16_t ps, uint8_t qp_type, const char *address,
			      uint16_t port)
{
	struct end l = {.ch = open_channel(n)};

	assert_int_equal(create_id(&l.ch, 100, ps, qp_type, &l.id), 0);
	assert_int_equal(bind_ip(&l.ch, l.id, address, port), 0);
	assert_int_equal(listen_id(&l.ch, l.id, 0), 0);
	return l;
}

static struct end caller_of(unsigned int n, uint16_t ps, uint8_t qp_type, const char *destination,
			    uint16_t port)
{
	struct end c = {.ch = open_channel(n)};

	assert_int_equal(create_id(&c.ch, 200, ps, qp_type, &c.id), 0);
	assert_int_equal(resolve_ip(&c.ch, c.id, NULL, destination, port, 1000), 0);
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_ADDR_RESOLVED).uid, 200);
	assert_int_equal(resolve_route(&c.ch, c.id), 0);
	assert_int_equal(expect_event(&c.ch, UCM_EVENT_ROUTE_RESOLVED).id, c.id);
	return c;
}

struct end listener(unsigned int n, uint16_t ps, const char *address, uint16_t port)
{
	return listener_of(n, ps, UCM_QPT_RC, address, port);
}

struct end caller(unsigned int n, uint16_t ps, const char *destination, uint16_t port)
{
	return caller_of(n, ps, UCM_QPT_RC, destination, port);
}

struct end ib_listener(uint8_t qp_type)
{
	return listener_of(1, RDMA_PS_IB, qp_type, "gid:::", 7174);
}

struct end ib_caller(uint8_t qp_type)
{
	return caller_of(0, RDMA_PS_IB, qp_type, "gid:fd00::2", 7174);
}

uint32_t requested(struct end *l, struct rdma_ucm_event_resp *e)
{
	settle();
	*e = expect_event(&l->ch, UCM_EVENT_CONNECT_REQUEST);
	assert_int_equal(e->uid, 100);
	assert_int_not_equal(e->id, l->id);
	return e->id;
}

uint32_t ask_ends(struct end *l, struct end *c)
{
	struct rdma_ucm_event_resp e;

	*l = listener(1, RDMA_PS_TCP, "0.0.0.0", 7174);
	*c = caller(0, RDMA_PS_TCP, "10.0.0.2", 7174);
	assert_int_equal(connect_id(&c->ch, c->id, 0x111, ""), 0);
	return requested(l, &e);
}

uint32_t join_ends(struct end *l, struct end *c)
{
	struct rdma_ucm_event_resp e;
	uint32_t id;

	assert_int_equal(connect_id(&c->ch, c->id, 0x111, "hello"), 0);
	id = requested(l, &e);
	assert_int_equal(accept_id(&l->ch, id, 300, 0x222, "welcome"), 0);
	settle();
	expect_event(&c->ch, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(confirm_id(&c->ch, c->id), 0);
	settle();
	e = expect_event(&l->ch, UCM_EVENT_ESTABLISHED);
	assert_int_equal(e.uid, 300);
	assert_int_equal(e.id, id);
	return id;
}
