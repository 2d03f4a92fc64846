/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens contexts, memory, CQs and QPs and connects them: control path only. With two sides in this
 * process the endpoints are copied, else they go over TCP.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "session.h"

enum {
	SLEEP_MS = 200,
	DEVICES_SHOWN = 16,
	MIB = 1 << 20,
	ACCESS_ALL = SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
		     SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC |
		     SOFTHCA_ACCESS_FLUSH_GLOBAL
};

#define POST_NS 20000000000ull

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

int session_fail(const char *what, int error)
{
	fprintf(stderr, "softhca-perf: %s: %s\n", what, strerror(error < 0 ? -error : error));
	return -1;
}

int session_post_send(struct softhca_qp *qp, struct softhca_send_wr *first)
{
	struct softhca_send_wr *rest = first;
	uint64_t until = 0;
	int error;

	while ((error = softhca_post_send(qp, rest, &rest)) == -EAGAIN) {
		if (until == 0)
			until = now_ns() + POST_NS;
		if (now_ns() > until)
			break;
		sched_yield();
	}
	return error ? session_fail("post send", error) : 0;
}

size_t session_stride(const struct options *o, uint32_t size)
{
	size_t bytes = (size_t)size + (o->service == SOFTHCA_QP_UD ? UD_GRH_BYTES : 0);

	return (bytes + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN + (bytes == 0 ? SLOT_ALIGN : 0);
}

struct softhca_qp *session_make_qp(struct session *s, struct side *side)
{
	struct softhca_qp_init_attr init = {.send_cq = side->send_cq,
					    .recv_cq = side->recv_cq,
					    .cap = {.max_send_wr = s->o->tx_depth,
						    .max_recv_wr = s->o->rx_depth,
						    .max_send_sge = 1,
						    .max_recv_sge = 1,
						    .max_inline_data = s->o->inline_bytes},
					    .type = s->o->service,
					    .srq = side->srq};
	struct softhca_qp *qp = softhca_create_qp(side->pd, &init);

	if (!qp)
		session_fail("create QP", errno);
	return qp;
}

/* One for each request, or as many as a CQ may have: not every request completes with one. */
static uint32_t cq_entries(struct side *side, uint32_t wanted)
{
	struct softhca_device_attr attr;

	softhca_query_device(side->ctx, &attr);
	return wanted < attr.max_cqe ? wanted : attr.max_cqe;
}

static int open_srq(struct session *s, struct side *side)
{
	struct softhca_srq_init_attr init = {.max_wr = s->o->qps * s->o->rx_depth, .max_sge = 1};

	side->srq = softhca_create_srq(side->pd, &init);
	return side->srq ? 0 : session_fail("create SRQ for --qp times --rx-depth requests", errno);
}

static int open_queues(struct session *s, struct side *side)
{
	const struct options *o = s->o;

	if (o->events) {
		side->channel = softhca_create_channel(side->ctx);
		if (!side->channel)
			return session_fail("create channel", errno);
		fcntl(softhca_channel_fd(side->channel), F_SETFL, O_NONBLOCK);
	}
	side->send_cq = softhca_create_cq(side->ctx, cq_entries(side, o->qps * o->tx_depth), side,
					  side->channel);
	side->recv_cq = softhca_create_cq(side->ctx, cq_entries(side, o->qps * o->rx_depth), side,
					  side->channel);
	if (!side->send_cq || !side->recv_cq)
		return session_fail("create CQ", errno);
	softhca_yield_when_empty(side->send_cq);
	softhca_yield_when_empty(side->recv_cq);
	if (o->srq && open_srq(s, side))
		return -1;
	side->ends = calloc(o->qps, sizeof(*side->ends));
	if (!side->ends)
		return session_fail("memory", ENOMEM);
	for (uint32_t i = 0; i < o->qps; i++) {
		side->ends[i].qp = session_make_qp(s, side);
		if (!side->ends[i].qp)
			return -1;
	}
	return 0;
}

/* Of the areas of one end. */
static size_t end_bytes(const struct session *s)
{
	return s->in_offset + s->area_bytes;
}

/* Of this machine's memory; UINT64_MAX: not known. */
static uint64_t available_bytes(void)
{
	FILE *in = fopen("/proc/meminfo", "r");
	unsigned long long kib = 0;
	char line[128];

	while (in && kib == 0 && fgets(line, sizeof(line), in))
		sscanf(line, "MemAvailable: %llu kB", &kib);
	if (in)
		fclose(in);
	return kib ? kib * 1024 : UINT64_MAX;
}

/* What is allocated is touched: asking for more than there is would have somebody killed. */
static bool fits(const struct session *s, uint64_t bytes)
{
	uint64_t available = available_bytes();

	if (bytes < available)
		return true;
	fprintf(stderr,
		"softhca-perf: --span %llu: each side needs %llu MiB, %llu MiB are available\n",
		(unsigned long long)s->o->span, (unsigned long long)(bytes / MIB),
		(unsigned long long)(available / MIB));
	return false;
}

static int open_memory(struct session *s, struct side *side)
{
	size_t bytes = end_bytes(s) * s->o->qps;

	if (s->o->span && !fits(s, bytes))
		return -1;
	side->memory = softhca_alloc(side->ctx, bytes);
	if (!side->memory)
		return session_fail("allocate memory", errno);
	side->mr = softhca_reg_mr(side->pd, side->memory, bytes, ACCESS_ALL);
	return side->mr ? 0 : session_fail("register memory", errno);
}

/* Prints why not, with the HCAs that there are if it is the name. */
static int cannot_open(const struct session *s, const char *device, int error)
{
	struct softhca_device_info list[DEVICES_SHOWN];
	int n = error == ENODEV ? softhca_device_list(s->o->socket, list, DEVICES_SHOWN) : 0;

	if (error == EACCES)
		fputs("softhca-perf: you may not connect to the daemon; its socket_mode and "
		      "socket_group say who may ('softhca status' names the group)\n",
		      stderr);
	else if (n <= 0)
		return session_fail(error == ENOENT || error == ECONNREFUSED
					    ? "no daemon answers (softhcad, --socket)"
					    : "open the HCA",
				    error);
	else
		fprintf(stderr, "softhca-perf: there is no HCA '%s'; there are:", device);
	for (int i = 0; i < n && i < DEVICES_SHOWN; i++)
		fprintf(stderr, " %s%s", list[i].name, i + 1 < n ? "" : "\n");
	return -1;
}

static int no_address(const struct session *s, const struct side *side, int error)
{
	struct softhca_port_attr port;

	if (error != -ENOENT || softhca_query_port(side->ctx, &port))
		return session_fail("local address", error);
	fprintf(stderr, "softhca-perf: HCA %s has no GID %u, only 0 to %u (--gid-index)\n",
		side->name ? side->name : "", s->o->gid_index, port.gid_count - 1);
	return -1;
}

static int open_side(struct session *s, struct side *side, const char *device)
{
	side->name = device;
	side->ctx = softhca_open(s->o->socket, device);
	if (!side->ctx)
		return cannot_open(s, device, errno);
	side->pd = softhca_alloc_pd(side->ctx);
	if (!side->pd)
		return session_fail("allocate PD", errno);
	if (open_memory(s, side) || open_queues(s, side))
		return -1;
	for (uint32_t i = 0; i < s->o->qps; i++) {
		struct end *e = &side->ends[i];
		int error = softhca_local_endpoint(e->qp, s->o->gid_index, &e->local.qp);

		if (error)
			return no_address(s, side, error);
		e->out = side->memory + end_bytes(s) * i;
		e->in = e->out + s->in_offset;
		e->local.addr = (uintptr_t)e->out;
		e->local.rkey = side->mr->rkey;
	}
	return 0;
}

static int exchange_all(struct session *s)
{
	uint32_t n = s->o->qps;
	struct endpoint *mine, *theirs;
	int error;

	if (s->sides == 2) {
		for (uint32_t i = 0; i < n; i++) {
			s->side[0].ends[i].remote = s->side[1].ends[i].local;
			s->side[1].ends[i].remote = s->side[0].ends[i].local;
		}
		return 0;
	}
	mine = calloc(2 * n, sizeof(*mine));
	if (!mine)
		return session_fail("memory", ENOMEM);
	theirs = mine + n;
	for (uint32_t i = 0; i < n; i++)
		mine[i] = s->side[0].ends[i].local;
	error = exchange_endpoints(s->socket, mine, theirs, n);
	for (uint32_t i = 0; i < n && !error; i++)
		s->side[0].ends[i].remote = theirs[i];
	free(mine);
	return error;
}

static uint8_t mtu_code(uint32_t bytes)
{
	uint8_t code = 0;

	for (; bytes >= 256; bytes /= 2)
		code++;
	return code;
}

void session_connect_attr(const struct session *s, struct side *side,
			  struct softhca_connect_attr *a)
{
	struct softhca_device_attr device;

	softhca_connect_defaults(side->ctx, a);
	/* As many READs and atomics outstanding as the device has, as perftest does. */
	if (softhca_query_device(side->ctx, &device) == 0)
		a->max_rd_atomic = a->max_dest_rd_atomic = (uint8_t)device.max_rd_atomic;
	a->gid_index = s->o->gid_index;
	if (s->o->mtu)
		a->path_mtu = mtu_code(s->o->mtu);
	a->timeout = (uint8_t)s->o->qp_timeout;
	a->retry_cnt = (uint8_t)s->o->retries;
	a->min_rnr_timer = 1; /* 10 usec: a peer that is not ready will be at once */
}

static int connect_end(struct session *s, struct side *side, struct end *e,
		       const struct softhca_connect_attr *attr)
{
	struct softhca_ah_attr to = {.gid_index = (uint8_t)s->o->gid_index};
	int error = softhca_connect_qp(e->qp, &e->local.qp, &e->remote.qp, attr);

	if (error)
		return session_fail("connect", error);
	if (s->o->service != SOFTHCA_QP_UD)
		return 0;
	memcpy(to.dgid, e->remote.qp.gid, sizeof(to.dgid));
	e->ah = softhca_create_ah(side->pd, &to);
	return e->ah ? 0 : session_fail("address", errno);
}

static int connect_side(struct session *s, struct side *side)
{
	struct softhca_connect_attr attr;

	session_connect_attr(s, side, &attr);
	s->qkey = attr.qkey;
	for (uint32_t i = 0; i < s->o->qps; i++)
		if (connect_end(s, side, &side->ends[i], &attr))
			return -1;
	return 0;
}

/* The client's seed is used. Neither sends before both are here. */
static int agree_seed(struct session *s)
{
	uint64_t theirs;

	if (exchange_sync(s->socket, s->seed, &theirs))
		return -1;
	if (!s->client)
		s->seed = theirs;
	return 0;
}

int session_open(struct session *s, const struct options *o, size_t area_bytes)
{
	*s = (struct session){.o = o,
			      .sides = o->pair ? 2 : 1,
			      .socket = -1,
			      .area_bytes = area_bytes,
			      .in_offset = o->span && !o->bidirectional ? 0 : area_bytes,
			      .client = o->pair || o->server,
			      .seed = o->seed};
	for (unsigned i = 0; i < s->sides; i++)
		if (open_side(s, &s->side[i], o->device[i]))
			return -1;
	if (!o->pair) {
		s->socket = exchange_open(o->server, o->tcp_port);
		if (s->socket < 0)
			return -1;
	}
	if (exchange_all(s))
		return -1;
	for (unsigned i = 0; i < s->sides; i++)
		if (connect_side(s, &s->side[i]))
			return -1;
	return agree_seed(s);
}

static void close_side(struct session *s, struct side *side)
{
	/* The context frees all that was made in it. */
	if (side->ctx)
		softhca_close(side->ctx);
	free(side->ends);
	(void)s;
}

void session_close(struct session *s)
{
	for (unsigned i = 0; i < s->sides; i++)
		close_side(s, &s->side[i]);
	if (s->socket >= 0)
		close(s->socket);
	s->sides = 0;
}

void session_arm(struct session *s)
{
	for (unsigned i = 0; i < s->sides; i++) {
		softhca_req_notify_cq(s->side[i].send_cq, 0);
		softhca_req_notify_cq(s->side[i].recv_cq, 0);
	}
}

void session_sleep(struct session *s)
{
	struct pollfd p[3];
	nfds_t n = 0;

	for (unsigned i = 0; i < s->sides; i++)
		p[n++] = (struct pollfd){.fd = softhca_channel_fd(s->side[i].channel),
					 .events = POLLIN};
	if (s->socket >= 0)
		p[n++] = (struct pollfd){.fd = s->socket, .events = POLLIN};
	poll(p, n, SLEEP_MS);
	for (unsigned i = 0; i < s->sides; i++) {
		struct softhca_cq *cq;

		while (softhca_get_cq_event(s->side[i].channel, &cq, NULL) == 0)
			softhca_ack_cq_events(cq, 1);
	}
}
