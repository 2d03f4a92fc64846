/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulation: see sim.h. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rte_errno.h>
#include "world_eal.h"
#include "sim.h"

#define QUEUE_PD  1u
#define CLIENT_PD 2u

static void die(const char *what, int err)
{
	fprintf(stderr, "sim: %s: %s\n", what, strerror(abs(err)));
	exit(99);
}

#define MAC(i)                                                                                     \
	{                                                                                          \
		2, 0, 0, 0, 0, (i) + 1                                                             \
	}
#define MACS(i) MAC(i), MAC((i) + 1), MAC((i) + 2), MAC((i) + 3)
const uint8_t sim_macs[SIM_NODES_MAX][6] = {MACS(0),  MACS(4),	MACS(8),  MACS(12),
					    MACS(16), MACS(20), MACS(24), MACS(28)};

static const struct sim_identity *identity_of(const struct sim_params *p, int node)
{
	return node < 2 ? p->identity[node] : NULL;
}

/* The node at the other end of a queue pair. */
static int peer_of(const struct sim *s, int node, unsigned qp)
{
	const struct sim_flow *f = s->params.flows;

	return f ? f[qp].from + f[qp].to - node : !node;
}

/* Does the node have that queue pair? */
static bool takes_part(const struct sim_params *p, int node, unsigned qp)
{
	return !p->flows || p->flows[qp].from == node || p->flows[qp].to == node;
}

uint64_t sim_random(struct sim *s)
{
	return sim_next_random(&s->rng);
}

/* ---- the client ---- */

static void *zeroed(size_t bytes)
{
	void *p = aligned_alloc(4096, RTE_ALIGN(bytes, 4096));

	if (!p)
		die("memory", ENOMEM);
	memset(p, 0, bytes);
	return p;
}

static void must(enum ceu_status status, const char *what)
{
	if (status != CEU_OK) {
		fprintf(stderr, "sim: %s: command status %u\n", what, status);
		exit(99);
	}
}

static void make_srq(struct sim_node *n)
{
	struct ceu_srq make = {
		.client = 0, .pd = CLIENT_PD, .entries = SIM_SRQ_ENTRIES, .stride = SIM_RQ_STRIDE};

	n->srq.srqn = 0x5002;
	n->srq.ring = make.ring = zeroed(SIM_SRQ_ENTRIES * SIM_RQ_STRIDE);
	n->srq.record = make.record = zeroed(sizeof(*n->srq.record));
	must(ceu_map_context(n->ceu, CEU_CONTEXT_SRQ, n->srq.srqn), "MAP_ICM");
	must(ceu_exec(n->ceu, CEU_SW2HW_SRQ, n->srq.srqn, &make, sizeof(make), NULL, 0),
	     "SW2HW_SRQ");
}

enum { PAGE = 4096, FIRST_MTT = 64 };

/* Where in n->pages the page of n->memory lies. */
static uint64_t place(uint64_t page, uint64_t pages)
{
	return page * 7919 % pages * PAGE;
}

/* The same memory twice: for the client in order, for the HCA not. */
static void scatter(struct sim_node *n, uint64_t bytes)
{
	int fd = memfd_create("sim", MFD_CLOEXEC);
	uint64_t pages = bytes / PAGE;

	n->pages = MAP_FAILED;
	n->memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ftruncate(fd, (off_t)bytes) == 0)
		n->pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (n->pages == MAP_FAILED || n->memory == MAP_FAILED || bytes % PAGE || pages % 7919 == 0)
		die("memory in pages", errno);
	for (uint64_t i = 0; i < pages; i++)
		if (mmap(n->memory + i * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, (off_t)place(i, pages)) == MAP_FAILED)
			die("a page", errno);
	close(fd);
}

static void write_pages(struct sim_node *n, uint64_t pages)
{
	struct ceu_write_mtt *w = zeroed(sizeof(*w));

	for (uint64_t i = 0; i < pages; i++) {
		w->first = FIRST_MTT + i;
		w->page[0] = (uintptr_t)n->pages + place(i, pages);
		must(ceu_exec(n->ceu, CEU_WRITE_MTT, 1, w, sizeof(*w), NULL, 0), "WRITE_MTT");
	}
	free(w);
}

/* The second client: a page for doorbells and events. */
static void make_other(struct sim_node *n)
{
	struct ceu_eq eq = {.eventfd = -1};

	eq.page = n->other_page = zeroed(sizeof(*n->other_page));
	must(ceu_exec(n->ceu, CEU_SW2HW_EQ, 1, &eq, sizeof(eq), NULL, 0), "SW2HW_EQ");
	hca_client_attach(n->hca, 1, 0, n->other_page->uar);
}

static void make_client(struct sim *s, int node, const struct sim_params *p)
{
	struct sim_node *n = &s->node[node];
	const struct sim_identity *id = identity_of(p, node);
	struct mpt_entry mpt = {.pd = CLIENT_PD, .access = 0xf, .length = p->memory_bytes};
	struct ceu_cq cq = {.client = 0, .log_entries = SIM_CQ_LOG};
	struct ceu_eq eq = {.eventfd = -1};
	const struct ceu_event_mask events = {.types = CEU_EVENTS_ALL};

	n->page = zeroed(sizeof(*n->page));
	if (p->paged)
		scatter(n, p->memory_bytes);
	else
		n->memory = zeroed(p->memory_bytes);
	n->memory_bytes = p->memory_bytes;
	n->va = id ? id->va : (uintptr_t)n->memory;
	n->key = id ? id->key : 0xabc00000u + (node + 1) * 0x100 + 5;
	if (!n->hca)
		return;
	mpt.key = n->key;
	mpt.start = n->va;
	mpt.phys = n->memory;
	if (p->paged) {
		write_pages(n, p->memory_bytes / PAGE);
		mpt.phys = NULL;
		mpt.flags = MPT_PAGES;
		mpt.log_page = 12;
		mpt.mtt_first = FIRST_MTT;
	}
	must(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, n->key), &mpt, sizeof(mpt),
		      NULL, 0),
	     "SW2HW_MPT");
	n->cq = zeroed(sizeof(struct cqe) << SIM_CQ_LOG);
	for (unsigned i = 0; i < 1u << SIM_CQ_LOG; i++)
		n->cq[i].owner = CQE_OWNER_HW;
	n->cq_record = zeroed(sizeof(*n->cq_record));
	n->cqn = 0x4001;
	cq.buffer = n->cq;
	cq.record = n->cq_record;
	eq.page = n->page;
	must(ceu_exec(n->ceu, CEU_SW2HW_EQ, 0, &eq, sizeof(eq), NULL, 0), "SW2HW_EQ");
	must(ceu_exec(n->ceu, CEU_MAP_EQ, 0, &events, sizeof(events), NULL, 0), "MAP_EQ");
	must(ceu_map_context(n->ceu, CEU_CONTEXT_CQ, n->cqn), "MAP_ICM");
	must(ceu_exec(n->ceu, CEU_SW2HW_CQ, n->cqn, &cq, sizeof(cq), NULL, 0), "SW2HW_CQ");
	hca_client_attach(n->hca, 0, 0, n->page->uar);
	if (p->own)
		make_other(n);
	if (p->srq)
		make_srq(n);
}

static bool is_others(const struct sim *s, unsigned qp)
{
	return s->params.own && qp >= s->params.own;
}

/* Address space in which every SIM_FOLD bytes are the same memory. */
static void *map_folded(uint64_t bytes)
{
	int fd = memfd_create("sim", MFD_CLOEXEC);
	uint8_t *at =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd < 0 || at == MAP_FAILED || ftruncate(fd, SIM_FOLD))
		die("mmap", errno);
	for (uint64_t i = 0; i < bytes; i += SIM_FOLD)
		if (mmap(at + i, SIM_FOLD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			die("mmap", errno);
	close(fd);
	return at;
}

uint64_t sim_map(struct sim *s, int node, uint64_t bytes, uint32_t *key)
{
	struct sim_node *n = &s->node[node];
	struct mpt_entry mpt = {
		.pd = CLIENT_PD, .access = 0xf, .length = bytes, .key = n->key + 0x400};

	n->mapped = map_folded(bytes);
	n->mapped_bytes = bytes;
	mpt.phys = n->mapped;
	mpt.start = (uintptr_t)n->mapped;
	must(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, mpt.key), &mpt, sizeof(mpt),
		      NULL, 0),
	     "SW2HW_MPT");
	*key = mpt.key;
	return mpt.start - n->va;
}

/* A queue pair of that number over the memory that there is. */
static void make_context(struct sim *s, int node, unsigned i, uint32_t qpn)
{
	struct sim_node *n = &s->node[node];
	struct sim_qp *q = &n->qp[i];
	struct ceu_qp make = {.service = s->params.service,
			      .client = is_others(s, i),
			      .user = is_others(s, i),
			      .pd = CLIENT_PD,
			      .cqn_snd = n->cqn,
			      .cqn_rcv = n->cqn,
			      .sq = q->sq,
			      .sq_bytes = SIM_SQ_ENTRIES * SIM_STRIDE,
			      .rq = s->params.srq ? NULL : q->rq,
			      .rq_stride = SIM_RQ_STRIDE,
			      .rq_entries = s->params.srq ? 0 : SIM_RQ_ENTRIES,
			      .srqn = s->params.srq ? n->srq.srqn : 0,
			      .record = q->record};

	q->qpn = qpn;
	must(ceu_map_context(n->ceu, CEU_CONTEXT_QP, qpn), "MAP_ICM");
	must(ceu_exec(n->ceu, CEU_SW2HW_QP, qpn, &make, sizeof(make), NULL, 0), "SW2HW_QP");
}

static void make_qp(struct sim *s, int node, unsigned i, const struct sim_params *p)
{
	struct sim_qp *q = &s->node[node].qp[i];
	const struct sim_identity *id = identity_of(p, node);

	if (!takes_part(p, node, i))
		return;
	q->qpn = id ? id->qpn + i : 0x10000 * (node + 2) + i + 1;
	if (!s->node[node].hca)
		return;
	q->sq = zeroed(SIM_SQ_ENTRIES * SIM_STRIDE);
	q->rq = zeroed(SIM_RQ_ENTRIES * SIM_RQ_STRIDE);
	q->record = zeroed(sizeof(*q->record));
	make_context(s, node, i, q->qpn);
}

static uint32_t initial_psn(const struct sim_params *p, int node)
{
	const struct sim_identity *id = identity_of(p, node);

	return id ? id->psn : p->psn;
}

void sim_alternate_ip(const struct sim *s, int node, uint8_t ip[16])
{
	memcpy(ip, s->node[node].ip, 16);
	ip[14] ^= 0x40;
}

static struct ceu_modify attributes_of(struct sim *s, int node, unsigned i)
{
	const struct sim_params *p = &s->params;
	int other = peer_of(s, node, i);
	struct sim_node *n = &s->node[node], *peer = &s->node[other];
	struct ceu_modify m = {
		.attr = {.qpn = n->qp[i].qpn,
			 .access = p->access,
			 .qkey = p->qkey ? p->qkey : 0x11111111,
			 .port = 1,
			 .dest_qpn = peer->qp[i].qpn,
			 .rq_psn = initial_psn(p, other),
			 .sq_psn = initial_psn(p, node),
			 .path_mtu = p->mtu,
			 .timeout = p->timeout,
			 .retry_cnt = p->retry_cnt,
			 .rnr_retry = p->rnr_retry,
			 .min_rnr_timer = p->min_rnr_timer,
			 .max_rd_atomic = p->max_rd_atomic,
			 .max_dest_rd_atomic = p->max_rd_atomic,
			 .av = {.traffic_class = p->traffic_class, .sl = p->sl, .hop_limit = 64},
			 .alternate = {.hop_limit = 63},
			 .alternate_timeout = p->alternate_timeout,
			 .alternate_port = 1,
			 .path_mig_state = p->mig_state}};

	m.path.has_vlan = p->vlan;
	m.path.vlan_tci = p->vlan;
	memcpy(m.path.dst_mac, sim_macs[other], 6);
	memcpy(m.path.src_mac, sim_macs[node], 6);
	memcpy(m.path.src_ip, n->ip, 16);
	memcpy(m.attr.av.dgid, peer->ip, 16);
	m.alternate = m.path;
	sim_alternate_ip(s, node, m.alternate.src_ip);
	sim_alternate_ip(s, other, m.attr.alternate.dgid);
	return m;
}

static void empty_queues(struct sim_qp *q)
{
	q->posted = q->rq_posted = 0;
	q->record->rq_posted = 0;
}

void sim_modify(struct sim *s, int node, unsigned qp, enum qp_state to, uint32_t optional)
{
	struct ceu_modify m = attributes_of(s, node, qp);
	enum qp_state from = qp_state(sim_context(s, node, qp));
	const struct ceu_transition *row =
		ceu_transition_find(from, to, (enum qp_service)s->params.service);

	if (!row)
		die("sim_modify: no such transition", EINVAL);
	m.attr.mask = row->required | optional | QP_ATTR_STATE;
	must(ceu_exec(s->node[node].ceu, row->op, m.attr.qpn, &m, sizeof(m), NULL, 0), "MODIFY_QP");
	if (to == QP_RST)
		empty_queues(&s->node[node].qp[qp]);
	if (to == QP_INIT && s->params.equal)
		must(ceu_qp_agree(s->node[node].ceu, m.attr.qpn, AGREED_REPEAT), "ceu_qp_agree");
}

void sim_renew(struct sim *s, int node, unsigned qp)
{
	struct sim_qp *q = &s->node[node].qp[qp];

	must(ceu_exec(s->node[node].ceu, CEU_HW2SW_QP, q->qpn, NULL, 0, NULL, 0), "HW2SW_QP");
	empty_queues(q);
	make_context(s, node, qp, q->qpn + SIM_QPS);
}

static void connect_qps(struct sim *s, const struct sim_params *p)
{
	for (unsigned n = 0; n < s->nodes && s->node[n].hca; n++)
		for (unsigned i = 0; i < p->qps; i++) {
			if (!takes_part(p, n, i))
				continue;
			sim_modify(s, n, i, QP_INIT, 0);
			sim_modify(s, n, i, QP_RTR, 0);
			sim_modify(s, n, i, QP_RTS, 0);
		}
}

uint32_t sim_post(struct sim *s, int node, unsigned qp, const struct sim_wr *wr)
{
	struct sim_node *n = &s->node[node], *peer = &s->node[peer_of(s, node, qp)];
	struct sim_qp *q = &n->qp[qp];
	uint32_t offset = q->posted++ % SIM_SQ_ENTRIES * SIM_STRIDE, at = 16;
	uint8_t *w = q->sq + offset;
	struct wqe_next next = {.flags = (wr->unsignaled ? 0 : WQE_SIGNALED) |
					 (wr->solicited ? WQE_SOLICITED : 0),
				.imm = wr->imm};
	uint8_t traits = sim_traits[wr->opcode];
	struct client_page *page = is_others(s, qp) ? n->other_page : n->page;
	uint32_t *doorbells = is_others(s, qp) ? &n->other_doorbells : &n->doorbells;
	uint32_t slot = *doorbells % UAR_DOORBELLS,
		 phase = *doorbells / UAR_DOORBELLS & 1 ? 0 : DOORBELL_PHASE;
	uint64_t w0, w1;

	memset(w, 0, SIM_STRIDE);
	memcpy(w, &next, sizeof(next));
	if (wr->unit_bytes) {
		memcpy(w + at, wr->units, wr->unit_bytes);
		at += wr->unit_bytes;
	}
	if (traits & USER_RADDR) {
		struct wqe_raddr r = {.addr = peer->va + wr->remote,
				      .rkey = wr->rkey ? wr->rkey : peer->key};

		memcpy(w + at, &r, sizeof(r));
		at += sizeof(r);
	}
	if (traits & USER_OPERANDS) {
		struct wqe_atomic a = {wr->swap_add, wr->compare};

		memcpy(w + at, &a, sizeof(a));
		at += sizeof(a);
	}
	if (wr->ud_qpn) {
		static const uint8_t group_mac[6] = {1, 0, 0x5e, 1, 1, 1};
		struct wqe_ud u = {.port = 1,
				   .hop_limit = 64,
				   .is_ipv6 = peer->ip[10] != 0xff,
				   .traffic_class = wr->ud_traffic_class,
				   .sl = wr->ud_sl,
				   .qpn = wr->ud_qpn,
				   .qkey = wr->ud_qkey};

		memcpy(u.dmac, wr->ud_group ? group_mac : sim_macs[peer_of(s, node, qp)], 6);
		memcpy(u.dip, wr->ud_group ? wr->ud_group : peer->ip, 16);
		memcpy(w + at, &u, sizeof(u));
		at += sizeof(u);
	}
	if (wr->is_inline) {
		uint32_t length = wr->sges ? wr->sge[0].length : 0, head = length | WQE_INLINE;

		memcpy(w + at, &head, sizeof(head));
		memcpy(w + at + sizeof(head), n->memory + wr->sge[0].offset, length);
		at += RTE_ALIGN(sizeof(head) + length, 16);
	}
	for (unsigned i = 0; !wr->is_inline && i < wr->sges; i++) {
		struct wqe_data d = {wr->sge[i].length, wr->sge[i].key ? wr->sge[i].key : n->key,
				     n->va + wr->sge[i].offset};

		memcpy(w + at, &d, sizeof(d));
		at += sizeof(d);
	}
	w0 = offset / 16 << DOORBELL_OFFSET_SHIFT | phase | (wr->fence ? DOORBELL_FENCE : 0) |
	     wr->opcode;
	w1 = q->qpn << DOORBELL_QPN_SHIFT | at / 16;
	__atomic_store_n(&page->uar->doorbell[slot], w0 | w1 << 32, __ATOMIC_RELEASE);
	++*doorbells;
	return offset;
}

uint32_t sim_post_recv_list(struct sim *s, int node, unsigned qp, const struct sim_sge *sge,
			    unsigned sges)
{
	struct sim_node *n = &s->node[node];
	struct sim_qp *q = &n->qp[qp];
	uint32_t offset = q->rq_posted % SIM_RQ_ENTRIES * SIM_RQ_STRIDE;

	memset(q->rq + offset, 0, SIM_RQ_STRIDE);
	for (unsigned i = 0; i < sges; i++) {
		struct wqe_data d = {sge[i].length, sge[i].key ? sge[i].key : n->key,
				     n->va + sge[i].offset};

		memcpy(q->rq + offset + 16 * (i + 1), &d, sizeof(d));
	}
	__atomic_store_n(&q->record->rq_posted, ++q->rq_posted, __ATOMIC_RELEASE);
	return offset;
}

uint32_t sim_post_recv(struct sim *s, int node, unsigned qp, uint64_t at, uint32_t length)
{
	struct sim_sge entry = {at, length, 0};

	return sim_post_recv_list(s, node, qp, &entry, length != 0);
}

uint32_t sim_post_srq_recv(struct sim *s, int node, uint64_t offset, uint32_t length)
{
	struct sim_node *n = &s->node[node];
	uint8_t *wqe = n->srq.ring + n->srq.posted % SIM_SRQ_ENTRIES * SIM_RQ_STRIDE;
	struct wqe_next next = {.imm = 0x1000 + n->srq.posted};
	struct wqe_data d = {length, n->key, n->va + offset};

	memset(wqe, 0, SIM_RQ_STRIDE);
	memcpy(wqe, &next, sizeof(next));
	memcpy(wqe + sizeof(next), &d, sizeof(d));
	__atomic_store_n(&n->srq.record->posted, ++n->srq.posted, __ATOMIC_RELEASE);
	return next.imm;
}

bool sim_poll_cq(struct sim *s, int node, struct cqe *out)
{
	struct sim_node *n = &s->node[node];
	struct cqe *c = &n->cq[n->cq_taken & ((1u << SIM_CQ_LOG) - 1)];

	if (__atomic_load_n(&c->owner, __ATOMIC_ACQUIRE) & CQE_OWNER_HW)
		return false;
	*out = *c;
	c->owner = CQE_OWNER_HW;
	__atomic_store_n(&n->cq_record->consumer_index, ++n->cq_taken, __ATOMIC_RELEASE);
	return true;
}

bool sim_poll_event(struct sim *s, int node, struct eqe *out)
{
	struct client_page *page = s->node[node].page;
	uint32_t at = page->eq_consumer;
	struct eqe *e = &page->eq[at % EQ_ENTRIES];

	if (__atomic_load_n(&e->owner, __ATOMIC_ACQUIRE) != ((at / EQ_ENTRIES & 1) ^ 1))
		return false;
	*out = *e;
	__atomic_store_n(&page->eq_consumer, at + 1, __ATOMIC_RELEASE);
	return true;
}

/* ---- time ---- */

/* Another lcore holds the region's entry, or those of some of its pages, while this one polls. */
static unsigned busy_poll(struct sim *s, struct sim_node *n)
{
	struct v2p *v = &n->hca->v2p;
	uint64_t pages = n->memory_bytes / PAGE, draw = sim_random(s);
	const struct tpt_cache *c = draw & 1 ? &v->mpt_cache : &v->mtt_cache;
	uint64_t line =
		draw & 1 ? v2p_index(v, n->key) : (FIRST_MTT + (draw >> 8) % pages) / MTT_WORDS;
	struct tpt_hold hold;
	unsigned handled;

	if (draw & 2)
		return hca_poll(n->hca, s->now_ns);
	assert(tpt_take(c, (uint32_t)line, NULL, &hold));
	handled = hca_poll(n->hca, s->now_ns);
	tpt_release(&hold);
	return handled + 1; /* it is not at rest */
}

/* Time without polls because nothing happened: a daemon would have slept. */
static void tell_sleep(struct sim *s)
{
	uint64_t slept_ns = s->now_ns - s->polled_ns - s->stolen_ns;

	for (unsigned i = 0; i < s->nodes; i++)
		if (s->node[i].hca)
			s->node[i].hca->engines[0].slept_ns += slept_ns;
	s->polled_ns = s->now_ns;
	s->stolen_ns = 0;
}

unsigned sim_step(struct sim *s)
{
	unsigned n = 0;

	s->now_ns += s->step_ns;
	tell_sleep(s);
	sim_wire_arrive(s);
	for (unsigned i = 0; i < s->nodes; i++)
		if (s->node[i].hca)
			n += s->params.busy ? busy_poll(s, &s->node[i])
					    : hca_poll(s->node[i].hca, s->now_ns);
	return n;
}

void sim_steal(struct sim *s, uint64_t ns)
{
	s->now_ns += ns;
	s->stolen_ns += ns;
}

void sim_run(struct sim *s, uint64_t ns)
{
	for (uint64_t end = s->now_ns + ns; s->now_ns < end;)
		sim_step(s);
}

/* A timer that is due at `deadline` expires with the tick behind it. */
static uint64_t timer_due(const struct hca *h, const struct qp *q)
{
	uint64_t due = UINT64_MAX, tick = h->config.settings.timer_tick_ns;

	for (unsigned k = 0; k < 2; k++)
		if (q && q->tc.armed[k])
			due = RTE_MIN(due, q->tc.deadline_ns[k] + tick);
	return due;
}

/* When the next frame arrives or timer may expire; UINT64_MAX: nothing is due. */
static uint64_t next_due(struct sim *s)
{
	uint64_t due = sim_wire_due(s);

	for (unsigned n = 0; n < s->nodes && s->node[n].hca; n++)
		for (unsigned i = 0; i < s->qps; i++)
			if (s->node[n].qp[i].qpn)
				due = RTE_MIN(due, timer_due(s->node[n].hca, sim_context(s, n, i)));
	return due;
}

void sim_steal_to_due(struct sim *s, uint64_t ns)
{
	uint64_t due = next_due(s);

	if (due != UINT64_MAX && due > s->now_ns)
		sim_steal(s, RTE_MIN(due - s->now_ns, ns));
}

bool sim_advance(struct sim *s, uint64_t end_ns)
{
	uint64_t due;

	/* Two rounds, because a stage may wake one that has had its turn. */
	if (sim_step(s) || sim_step(s))
		return true;
	due = next_due(s);
	if (due == UINT64_MAX)
		return false;
	due = RTE_MIN(due, end_ns);
	s->now_ns = RTE_MAX(s->now_ns, due);
	return true;
}

bool sim_settle(struct sim *s, uint64_t ns)
{
	uint64_t end = s->now_ns + ns;

	while (sim_advance(s, end))
		if (s->now_ns >= end)
			return false;
	return true;
}

bool sim_wait(struct sim *s, int node, struct cqe *out, uint64_t ns)
{
	uint64_t end = s->now_ns + ns;

	while (!sim_poll_cq(s, node, out)) {
		if (s->now_ns >= end)
			return false;
		sim_step(s);
	}
	return true;
}

/* ---- making and unmaking ---- */

static void quiesce(void *ctx)
{
	struct sim *s = ctx;

	sim_step(s);
}

static void make_node(struct sim *s, int node, const struct sim_params *p)
{
	struct sim_node *n = &s->node[node];
	const struct sim_identity *id = identity_of(p, node);
	static unsigned serial;
	struct hca_config c;
	struct ceu_config ceu = {.hooks = {.ctx = s, .quiesce = quiesce}};
	const uint8_t ip4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, node + 1};
	const uint8_t ip6[16] = {0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, node + 1};
	int err;

	memcpy(n->ip, id ? id->ip : p->ipv6 ? ip6 : ip4, 16);
	if (node == 1 && p->alone)
		return;
	hca_config_defaults(&c);
	snprintf(c.name, sizeof(c.name), "s%u", serial++);
	c.cqs = c.mpts = 256;
	c.qps = p->qps > 200 ? 2048 : 256;
	if (p->nodes)
		c.mtts = 64;
	if (p->settings)
		c.settings = *p->settings;
	c.settings.payload_refs = p->singly ? REFS_SINGLY : p->payload_refs;
	if (p->payload_refs && !p->icrcs)
		c.settings.icrc = ICRC_NEVER;
	if (p->no_credits)
		c.settings.e2e_credits = false;
	c.packets = s->packets;
	c.descriptors = s->descriptors;
	c.clones = s->clones;
	c.descriptor_share = p->descriptor_share;
	c.link = &s->end[node].port;
	memcpy(c.gids[0].src_mac, sim_macs[node], 6);
	memcpy(c.gids[0].src_ip, n->ip, 16);
	c.gids[0].is_ipv6 = n->ip[10] != 0xff;
	c.gid_count = 1;
	err = hca_create(&c, &n->hca);
	if (err)
		die("hca_create", err);
	hca_on_one_lcore(n->hca, true);
	ceu.qps = &n->hca->qps;
	ceu.srqs = &n->hca->srqs;
	ceu.multicast = &n->hca->multicast;
	ceu.v2p = &n->hca->v2p;
	ceu.completion = &n->hca->completion;
	ceu.engines = n->hca->engines;
	ceu.engine_count = 1;
	ceu.counters = &n->hca->counters;
	err = ceu_create(&ceu, &n->ceu);
	if (err)
		die("ceu_create", err);
	must(ceu_start(n->ceu), "INIT_HCA");
}

struct sim *sim_create(const struct sim_params *p)
{
	static unsigned serial;
	struct sim *s = zeroed(sizeof(*s));
	char name[32];

	if (world_eal(NULL))
		die("EAL", rte_errno);
	s->params = *p;
	s->nodes = p->nodes ? p->nodes : 2;
	s->qps = p->qps;
	s->node = zeroed(s->nodes * sizeof(*s->node));
	s->end = zeroed(s->nodes * sizeof(*s->end));
	s->rng = p->seed;
	s->now_ns = 1000000;
	if (p->network && !(s->net = sim_network_create(p->network, s->nodes, sim_random(s))))
		die("network", EINVAL);
	s->step_ns = 1000;
	snprintf(name, sizeof(name), "sp%u", serial);
	s->packets = rte_pktmbuf_pool_create(name, p->packets ? p->packets : 8191, 0,
					     MESSAGE_PRIV_BYTES, PACKET_ROOM_BYTES, SOCKET_ID_ANY);
	snprintf(name, sizeof(name), "sd%u", serial++);
	s->descriptors = rte_pktmbuf_pool_create(name, 4095, 0, MESSAGE_PRIV_BYTES,
						 DESCRIPTOR_ROOM_BYTES, SOCKET_ID_ANY);
	if (p->clones) {
		name[1] = 'c';
		s->clones = rte_pktmbuf_pool_create(name, p->clones, 0, MESSAGE_PRIV_BYTES, 0,
						    SOCKET_ID_ANY);
	}
	if (!s->packets || !s->descriptors || (p->clones && !s->clones))
		die("mempool", rte_errno);
	for (unsigned i = 0; i < s->nodes; i++) {
		s->end[i].port =
			(struct link_port){.rx_burst = sim_wire_rx, .tx_burst = sim_wire_tx};
		s->end[i].sim = s;
		s->end[i].node = i;
		make_node(s, i, p);
	}
	for (unsigned i = 0; i < s->nodes; i++) {
		make_client(s, i, p);
		for (unsigned k = 0; k < p->qps; k++)
			make_qp(s, i, k, p);
	}
	connect_qps(s, p);
	return s;
}

void sim_reset(struct sim *s, const struct sim_params *p)
{
	struct cqe c;
	struct eqe e;

	s->faults = (struct sim_faults){0};
	sim_wire_empty(s);
	for (unsigned i = 0; i < s->nodes; i++)
		for (unsigned k = 0; k < p->qps && s->node[i].hca; k++)
			sim_modify(s, i, k, QP_RST, 0);
	for (unsigned i = 0; i < s->nodes && s->node[i].hca; i++)
		while (sim_poll_cq(s, i, &c) || sim_poll_event(s, i, &e))
			;
	sim_wire_empty(s);
	s->params = *p;
	s->lost = 0;
	s->rng = p->seed;
	s->now_ns = RTE_ALIGN_CEIL(s->now_ns + 1, 1ull << 30); /* timers: same places every run */
	connect_qps(s, p);
}

static void free_node(struct sim_node *n)
{
	ceu_destroy(n->ceu);
	hca_destroy(n->hca);
	for (unsigned k = 0; k < SIM_QPS_MAX; k++) {
		free(n->qp[k].sq);
		free(n->qp[k].rq);
		free(n->qp[k].record);
	}
	free(n->srq.ring);
	free(n->srq.record);
	free(n->page);
	free(n->other_page);
	if (n->pages) {
		munmap(n->memory, n->memory_bytes);
		munmap(n->pages, n->memory_bytes);
	} else {
		free(n->memory);
	}
	if (n->mapped)
		munmap(n->mapped, n->mapped_bytes);
	free(n->cq);
	free(n->cq_record);
}

void sim_destroy(struct sim *s)
{
	sim_wire_empty(s);
	for (unsigned i = 0; i < s->nodes; i++)
		free_node(&s->node[i]);
	sim_network_destroy(s->net);
	rte_mempool_free(s->clones);
	rte_mempool_free(s->packets);
	rte_mempool_free(s->descriptors);
	free(s->node);
	free(s->end);
	free(s);
}
