/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 of one HCA, for the connection manager: see cm_port.h. MADs in, MADs out; knows nothing of
 * connections. CM thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/ip.h"
#include "base/limits.h"
#include "base/log.h"
#include "cm-thread/cm_port.h"
#include "softhca/softhca.h"

enum {
	RECEIVES = 1024, /* largest burst of MADs before the thread wakes */
	SENDS = 256,
	GRH_BYTES = 40,
	SLOT_BYTES = 320, /* GRH and MAD, in whole cache lines */
	BATCH = 16,	  /* completions taken, and receives posted, at once */
	TURN_BATCHES = 16,
	AHS = 128,	      /* cached address handles, a power of two */
	WAITING_MAX = 1024,   /* waiting MADs ... */
	WAITING_HOP_MAX = 64, /* ... and those of them waiting for a next hop */
	WAIT_NS = 100000000,
	RETRY_NS = 1000000,
	ASKS = 64,	       /* unknown next hops that may be resolved at once, ... */
	ASK_NS = 50000000,     /* ... and one more per this interval */
	SOURCES = 256,	       /* groups of senders */
	SOURCE_MADS = 8192,    /* at once from each group while more wait than a turn takes, ... */
	SOURCE_MAD_NS = 50000, /* ... and one more per this interval */
	QPN = 1,
};

/* A MAD that waits for its next hop or for room in the send queue. */
struct waiting {
	struct waiting *next;
	uint64_t until_ns;
	bool hop; /* waiting for the next hop */
	struct cm_path path;
	uint8_t mad[CM_MAD_BYTES];
};

struct remembered {
	struct softhca_ah_attr attr;
	uint8_t mac[6];
	struct softhca_ah *ah; /* NULL: empty */
};

struct cm_port {
	const struct cm_port_ops *ops;
	void *ops_ctx;
	uint16_t index;
	char device[32];
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_channel *channel; /* of recv_cq; the send CQ is only polled */
	struct softhca_cq *recv_cq, *send_cq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	uint8_t *memory; /* RECEIVES slots */
	bool dead;
	bool more;   /* more arrived than the last turn took */
	bool behind; /* it did in the turn before */
	/* For each group of senders: the time at which its last MAD counts, SOURCE_MAD_NS after the
	 * one before. */
	uint64_t taken_ns[SOURCES];
	uint32_t key; /* of the hash that forms the groups: no sender can choose its own */
	uint8_t gid[GID_TABLE_MAX][16];
	unsigned int gids;
	struct remembered ahs[AHS];
	struct waiting *first, **end;
	unsigned int waiting, waiting_hop;
	unsigned int posted; /* sends that have not completed as far as reap() has seen */
	uint64_t asked_ns;   /* when the last request counts, each ASK_NS after the previous one */
	struct cm_port_counters counters;
};

/* ---- create ---- */

static int post_receives(struct cm_port *p, const uint64_t *slot, unsigned int n)
{
	struct softhca_recv_wr wr[BATCH];
	struct softhca_sge sge[BATCH];

	for (unsigned int i = 0; i < n; i++) {
		sge[i] = (struct softhca_sge){.addr = (uintptr_t)p->memory + slot[i] * SLOT_BYTES,
					      .length = GRH_BYTES + CM_MAD_BYTES,
					      .lkey = p->mr->lkey};
		wr[i] = (struct softhca_recv_wr){.wr_id = slot[i],
						 .sg_list = &sge[i],
						 .num_sge = 1,
						 .next = i + 1 < n ? &wr[i + 1] : NULL};
	}
	return n ? softhca_post_recv(p->qp, wr, NULL) : 0;
}

static int post_all_receives(struct cm_port *p)
{
	uint64_t slot[BATCH];
	int rc = 0;

	for (unsigned int i = 0; i < RECEIVES && !rc; i += BATCH) {
		for (unsigned int k = 0; k < BATCH; k++)
			slot[k] = i + k;
		rc = post_receives(p, slot, BATCH);
	}
	return rc;
}

static int make_queues(struct cm_port *p)
{
	struct softhca_qp_init_attr init = {.type = SOFTHCA_QP_GSI,
					    .cap = {.max_send_wr = SENDS,
						    .max_recv_wr = RECEIVES,
						    .max_send_sge = 1,
						    .max_recv_sge = 1,
						    .max_inline_data = CM_MAD_BYTES}};

	p->pd = softhca_alloc_pd(p->ctx);
	p->channel = p->pd ? softhca_create_channel(p->ctx) : NULL;
	p->recv_cq = p->channel ? softhca_create_cq(p->ctx, RECEIVES, p, p->channel) : NULL;
	p->send_cq = p->recv_cq ? softhca_create_cq(p->ctx, SENDS, p, NULL) : NULL;
	p->memory = p->send_cq ? softhca_alloc(p->ctx, RECEIVES * SLOT_BYTES) : NULL;
	if (p->memory)
		p->mr = softhca_reg_mr(p->pd, p->memory, RECEIVES * SLOT_BYTES,
				       SOFTHCA_ACCESS_LOCAL_WRITE);
	if (!p->mr)
		return -errno;
	init.send_cq = p->send_cq;
	init.recv_cq = p->recv_cq;
	p->qp = softhca_create_qp(p->pd, &init);
	return p->qp ? 0 : -errno;
}

static int cm_port_bring_up(struct cm_port *p)
{
	const struct softhca_connect_attr attr = {.qkey = CM_QKEY};
	const struct softhca_endpoint local = {.psn = 0};
	int flags = fcntl(softhca_channel_fd(p->channel), F_GETFL);
	int rc = softhca_init_qp(p->qp, &attr);

	if (!rc)
		rc = post_all_receives(p);
	if (!rc)
		rc = softhca_connect_qp(p->qp, &local, NULL, &attr);
	if (!rc)
		rc = softhca_req_notify_cq(p->recv_cq, 0);
	if (!rc && fcntl(softhca_channel_fd(p->channel), F_SETFL, flags | O_NONBLOCK))
		rc = -errno;
	return rc;
}

int cm_port_learn_gids(struct cm_port *p)
{
	int rc = 0;

	p->gids = 0;
	while (!rc && p->gids < GID_TABLE_MAX) {
		rc = softhca_query_gid(p->ctx, p->gids, p->gid[p->gids]);
		p->gids += rc == 0;
	}
	return rc == -ENOENT ? 0 : rc;
}

int cm_port_open(int socket, const char *device, uint16_t index, const struct cm_port_ops *ops,
		 void *ctx, struct cm_port **out)
{
	struct softhca_context *context = softhca_open_socket(socket, device);
	struct cm_port *p = context ? calloc(1, sizeof(*p)) : NULL;
	int rc;

	if (!p) {
		rc = context ? -ENOMEM : -errno;
		softhca_close(context);
		return rc;
	}
	*p = (struct cm_port){
		.ops = ops, .ops_ctx = ctx, .index = index, .ctx = context, .end = &p->first};
	strncpy(p->device, device, sizeof(p->device) - 1);
	if (getrandom(&p->key, sizeof(p->key), GRND_NONBLOCK) != sizeof(p->key))
		LOG(WARNING, "hca %s: QP 1: no random number, floods may hit others", device);
	rc = make_queues(p);
	if (!rc)
		rc = cm_port_learn_gids(p);
	if (!rc)
		rc = cm_port_bring_up(p);
	if (rc) {
		cm_port_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

/* The context frees what is left in it. */
void cm_port_close(struct cm_port *p)
{
	if (!p)
		return;
	while (p->first) {
		struct waiting *w = p->first;

		p->first = w->next;
		free(w);
	}
	softhca_close(p->ctx);
	free(p);
}

int cm_port_fd(const struct cm_port *p)
{
	return p->dead ? -1 : softhca_channel_fd(p->channel);
}

const struct cm_port_counters *cm_port_counters(const struct cm_port *p)
{
	return &p->counters;
}

static void cm_port_died(struct cm_port *p, const char *why)
{
	if (!p->dead)
		LOG(ERR, "hca %s: QP 1 is dead: %s", p->device, why);
	p->dead = true;
}

/* ---- addresses ---- */

/* The present index of our GID, or p->gids: we do not have it. */
static unsigned int gid_index(const struct cm_port *p, const uint8_t gid[16])
{
	unsigned int i = 0;

	while (i < p->gids && memcmp(p->gid[i], gid, 16) != 0)
		i++;
	return i;
}

/* The path to a datagram's sender, from its IP header. False: not addressed to us. */
static bool path_back(const struct cm_port *p, const struct softhca_wc *wc, const uint8_t *grh,
		      struct cm_path *path)
{
	bool v4 = wc->sl == SOFTHCA_WC_SL_IPV4;

	*path = (struct cm_path){.device = p->index};
	if (v4) {
		path->traffic_class = grh[21];
		ip_map_v4(grh + 32, path->dgid);
		ip_map_v4(grh + 36, path->sgid);
	} else {
		path->traffic_class = (uint8_t)(grh[0] << 4 | grh[1] >> 4);
		path->flow_label = (grh[1] & 0xfu) << 16 | (uint32_t)grh[2] << 8 | grh[3];
		memcpy(path->dgid, grh + 8, 16);
		memcpy(path->sgid, grh + 24, 16);
	}
	return gid_index(p, path->sgid) < p->gids && ip_is_host(path->dgid);
}

static struct remembered *cm_port_place_of(struct cm_port *p, const struct softhca_ah_attr *attr)
{
	const uint8_t *byte = (const uint8_t *)attr;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(*attr); i++)
		hash = (hash ^ byte[i]) * 16777619u;
	return &p->ahs[(hash ^ hash >> 16) & (AHS - 1)];
}

/* The handle of an address whose next hop is `mac`; NULL: no memory. */
static struct softhca_ah *handle_of(struct cm_port *p, const struct cm_path *path,
				    const uint8_t mac[6])
{
	struct softhca_ah_attr attr = {.gid_index = (uint8_t)gid_index(p, path->sgid),
				       .traffic_class = path->traffic_class,
				       .hop_limit = path->hop_limit,
				       .sl = path->sl,
				       .flow_label = path->flow_label & 0xfffff};
	struct remembered *r;

	memcpy(attr.dgid, path->dgid, sizeof(attr.dgid));
	r = cm_port_place_of(p, &attr);
	if (r->ah && memcmp(&r->attr, &attr, sizeof(attr)) == 0 && memcmp(r->mac, mac, 6) == 0)
		return r->ah;
	if (r->ah)
		softhca_destroy_ah(r->ah);
	r->ah = softhca_create_ah_by(p->pd, &attr, mac);
	r->attr = attr;
	memcpy(r->mac, mac, 6);
	return r->ah;
}

/* ---- send ---- */

/* Takes completions of sends; a failure stops the queue, which is then restarted. */
static void reap(struct cm_port *p)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RTS};
	struct softhca_wc wc[BATCH];
	bool failed = false;
	int n;

	do {
		n = softhca_poll_cq(p->send_cq, BATCH, wc);
		p->posted -= n > 0 ? (unsigned int)n : 0;
		for (int i = 0; i < n; i++) {
			if (wc[i].status == SOFTHCA_WC_SUCCESS)
				continue;
			failed = true;
			p->counters.failed++;
		}
	} while (n == BATCH);
	if (n < 0)
		cm_port_died(p, "its connection to the daemon has ended");
	else if (failed && softhca_modify_qp(p->qp, &attr, SOFTHCA_QP_STATE))
		cm_port_died(p, "it cannot send any more");
}

static int post(struct cm_port *p, struct softhca_ah *ah, const uint8_t *mad)
{
	struct softhca_sge sge = {.addr = (uintptr_t)mad, .length = CM_MAD_BYTES};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_SEND,
		.send_flags = SOFTHCA_SEND_INLINE | SOFTHCA_SEND_SIGNALED,
		.wr.ud = {.ah = ah, .remote_qpn = QPN, .remote_qkey = CM_QKEY}};
	int rc = softhca_post_send(p->qp, &wr, NULL);

	return rc == -ENOMEM ? -EAGAIN : rc;
}

/* 0: sent. -EAGAIN: the send queue is full; -EINPROGRESS: the next hop is being resolved;
 * -EHOSTUNREACH; -EIO. */
static int transmit(struct cm_port *p, const struct cm_path *path, const uint8_t *mad)
{
	struct softhca_ah *ah;
	uint8_t mac[6];
	int rc = p->ops->resolve(p->ops_ctx, path->dgid, mac);

	if (rc)
		return rc == -EAGAIN ? -EINPROGRESS : -EHOSTUNREACH;
	ah = handle_of(p, path, mac);
	if (!ah)
		return -EIO;
	reap(p);
	rc = p->dead ? -EIO : post(p, ah, mad);
	p->counters.sent += rc == 0;
	p->posted += rc == 0;
	return rc;
}

static bool sendable(const struct cm_port *p, const struct cm_path *path)
{
	return gid_index(p, path->sgid) < p->gids && ip_is_host(path->dgid) &&
	       ip_is_v4_mapped(path->dgid) == ip_is_v4_mapped(path->sgid);
}

static void put_off(struct cm_port *p, uint64_t now_ns, const struct cm_path *path,
		    const uint8_t *mad, bool hop)
{
	bool full = p->waiting >= WAITING_MAX || (hop && p->waiting_hop >= WAITING_HOP_MAX);
	struct waiting *w = full ? NULL : malloc(sizeof(*w));

	if (!w) {
		p->counters.dropped_full++;
		return;
	}
	*w = (struct waiting){.until_ns = now_ns + WAIT_NS, .hop = hop, .path = *path};
	memcpy(w->mad, mad, sizeof(w->mad));
	*p->end = w;
	p->end = &w->next;
	p->waiting++;
	p->waiting_hop += hop;
	p->counters.waited++;
}

/* Limits new resolutions: a sender that forges addresses makes us resolve them for our answers, and
 * must not fill the table of pending resolutions. */
static bool may_ask(struct cm_port *p, uint64_t now_ns, const uint8_t dgid[16])
{
	if (!p->ops->would_ask(p->ops_ctx, dgid))
		return true;
	if (p->asked_ns > now_ns + (uint64_t)ASKS * ASK_NS)
		return false;
	p->asked_ns = (p->asked_ns > now_ns ? p->asked_ns : now_ns) + ASK_NS;
	return true;
}

void cm_port_send(struct cm_port *p, uint64_t now_ns, const struct cm_path *path,
		  const uint8_t mad[CM_MAD_BYTES])
{
	int rc;

	if (p->dead)
		return;
	if (!sendable(p, path)) {
		p->counters.dropped_path++;
		return;
	}
	if (!may_ask(p, now_ns, path->dgid)) {
		p->counters.dropped_full++;
		return;
	}
	rc = transmit(p, path, mad);
	if (rc == -EAGAIN || rc == -EINPROGRESS)
		put_off(p, now_ns, path, mad, rc == -EINPROGRESS);
	else if (rc)
		p->counters.dropped_hop++;
}

/* Retries waiting MADs. */
static void cm_port_send_waiting(struct cm_port *p, uint64_t now_ns)
{
	struct waiting **at = &p->first;
	int rc = 0;

	while (*at && rc != -EAGAIN) {
		struct waiting *w = *at;

		/* its GID may be gone */
		rc = sendable(p, &w->path) ? transmit(p, &w->path, w->mad) : -EADDRNOTAVAIL;
		if ((rc == -EAGAIN || rc == -EINPROGRESS) && now_ns < w->until_ns) {
			at = &w->next;
			continue;
		}
		p->counters.dropped_path += rc == -EADDRNOTAVAIL;
		p->counters.dropped_hop += rc && rc != -EADDRNOTAVAIL;
		p->waiting--;
		p->waiting_hop -= w->hop;
		*at = w->next;
		free(w);
	}
	while (*at)
		at = &(*at)->next;
	p->end = at;
}

/* ---- receive ---- */

static unsigned int source_of(const struct cm_port *p, const struct cm_path *path)
{
	uint32_t hash = 2166136261u ^ p->key;

	for (size_t i = 0; i < sizeof(path->dgid); i++)
		hash = (hash ^ path->dgid[i]) * 16777619u;
	return (hash ^ hash >> 16) % SOURCES;
}

/* Each MAD costs time, most of all one that we refuse with a MAD of our own. A peer that sends more
 * than we have time for must not fill the receive queue, or the MADs of others are lost. */
static bool is_flood(struct cm_port *p, uint64_t now_ns, const struct cm_path *path)
{
	uint64_t *taken_ns = &p->taken_ns[source_of(p, path)];

	if (*taken_ns < now_ns)
		*taken_ns = now_ns;
	if (*taken_ns - now_ns >= (uint64_t)SOURCE_MADS * SOURCE_MAD_NS)
		return p->behind;
	*taken_ns += SOURCE_MAD_NS;
	return false;
}

static void cm_port_take(struct cm_port *p, uint64_t now_ns, const struct softhca_wc *wc)
{
	const uint8_t *grh = p->memory + wc->wr_id * SLOT_BYTES;
	struct cm_path path;

	p->counters.received++;
	if (wc->byte_len != GRH_BYTES + CM_MAD_BYTES || !(wc->wc_flags & SOFTHCA_WC_GRH) ||
	    wc->src_qp != QPN || !path_back(p, wc, grh, &path)) {
		p->counters.dropped_stranger++;
		return;
	}
	if (is_flood(p, now_ns, &path)) {
		p->counters.dropped_flood++;
		return;
	}
	p->ops->receive(p->ops_ctx, &path, grh + GRH_BYTES, CM_MAD_BYTES);
}

/* True: there may be more. */
static bool take_batch(struct cm_port *p, uint64_t now_ns)
{
	struct softhca_wc wc[BATCH];
	uint64_t slot[BATCH];
	int n = softhca_poll_cq(p->recv_cq, BATCH, wc);

	if (n < 0) {
		cm_port_died(p, "its connection to the daemon has ended");
		return false;
	}
	for (int i = 0; i < n; i++) {
		if (wc[i].status != SOFTHCA_WC_SUCCESS) {
			cm_port_died(p, softhca_wc_status_str(wc[i].status));
			return false;
		}
		cm_port_take(p, now_ns, &wc[i]);
		slot[i] = wc[i].wr_id;
	}
	if (post_receives(p, slot, (unsigned int)n))
		cm_port_died(p, "it takes no receive requests");
	return n == BATCH;
}

/* Rearms the CQ before it is polled: later completions wake us. */
static void take_events(struct cm_port *p)
{
	struct softhca_cq *cq;
	unsigned int n = 0;
	int rc;

	while ((rc = softhca_get_cq_event(p->channel, &cq, NULL)) == 0)
		n++;
	if (rc == -EIO)
		cm_port_died(p, "its connection to the daemon has ended");
	if (!n)
		return;
	softhca_ack_cq_events(p->recv_cq, n);
	if (softhca_req_notify_cq(p->recv_cq, 0))
		cm_port_died(p, "its completions cannot be waited for");
}

void cm_port_turn(struct cm_port *p, uint64_t now_ns)
{
	p->behind = p->more;
	p->more = !p->dead;
	take_events(p);
	for (int i = 0; i < TURN_BATCHES && p->more && !p->dead; i++)
		p->more = take_batch(p, now_ns);
	cm_port_send_waiting(p, now_ns);
}

uint64_t cm_port_due(const struct cm_port *p, uint64_t now_ns)
{
	if (p->dead)
		return UINT64_MAX;
	if (p->more)
		return now_ns;
	return p->first ? now_ns + RETRY_NS : UINT64_MAX;
}

bool cm_port_finish(struct cm_port *p, uint64_t now_ns)
{
	cm_port_send_waiting(p, now_ns);
	if (!p->dead)
		reap(p);
	return p->dead || (!p->posted && !p->first);
}
