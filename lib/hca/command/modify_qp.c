/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU's commands on queue pairs: creates and frees contexts, moves them through their states,
 * answers queries. Control thread. Writes the CEU's fields of struct qp; those of the data path's
 * modules only while the QP is in RST, or before it enters the state in which the module reads them
 * (sequence numbers before RTR and RTS).
 */
#include <string.h>
#include <stddef.h>
#include "base/ip.h"
#include "ceu_priv.h"
#include "context/path_class.h"
#include "context/path_migration.h"
#include "link/link_port.h"
#include "wire/psn.h"

static void modify_wake_all(struct engine *e, struct qp *q)
{
	for (unsigned int t = 0; t < WAKE_COUNT; t++)
		wake_post(&e->wake[t], &q->wake[t], q->index);
}

/* The index lists of MultiQueue are empty when produced == consumed: zero is empty, for all
 * modules. */
static void clear_data_path(struct qp *q)
{
	/* wake[] stays: its links may be in a list */
	memset(&q->ws, 0, sizeof(*q) - offsetof(struct qp, ws));
	memset(&q->hp, 0, sizeof(q->hp));
}

/* Clears the doorbells that the client has rung and the engine's DoorbellProcessing has not taken
 * yet. The page is the client's, which may change it meanwhile. */
static void forget_doorbells(struct ceu *ceu, const struct qp *q, uint32_t qpn)
{
	struct client_page *page = ceu->config.completion->eqs[q->client].page;

	for (unsigned int i = 0; page && i < UAR_DOORBELLS; i++) {
		uint64_t *at = &page->uar[q->engine].doorbell[i];
		uint64_t rung = __atomic_load_n(at, __ATOMIC_RELAXED);

		if ((uint32_t)(rung >> 32) >> DOORBELL_QPN_SHIFT == qpn)
			__atomic_compare_exchange_n(at, &rung, (uint32_t)rung, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

/*
 * A QP leaves the data path in three steps: its number is cleared, so that it is no longer found;
 * once every lcore has polled, all modules are asked to release it; it has left when all of them
 * have.
 */
static void unlist_qp(struct ceu *ceu, struct qp *q)
{
	uint32_t qpn = q->qpn;

	__atomic_store_n(&q->state, QP_RST, __ATOMIC_SEQ_CST);
	__atomic_store_n(&q->qpn, 0, __ATOMIC_SEQ_CST);
	forget_doorbells(ceu, q, qpn);
}

/* The visits that still found it are over: no packet of it is sent any more. */
void ceu_qp_notify(struct ceu *ceu, struct qp *q)
{
	qp_payload_ends(q);
	__atomic_store_n(&q->closed, 0, __ATOMIC_SEQ_CST);
	ceu_set_releasing(ceu, true);
	modify_wake_all(&ceu->config.engines[q->engine], q);
}

bool ceu_qp_left(struct ceu *ceu, struct qp *q)
{
	if (ceu->config.hooks.quiesce &&
	    __atomic_load_n(&q->closed, __ATOMIC_SEQ_CST) != QP_CLOSED_ALL)
		return false;
	qp_answers_release(ceu->config.qps, q);
	clear_data_path(q);
	return true;
}

static bool make_params_ok(const struct ceu *ceu, uint32_t qpn, const struct ceu_qp *in)
{
	if (qpn == 0 || qpn >= MULTICAST_QPN || in->service > SERVICE_UD || !in->record || !in->sq)
		return false;
	if (in->engine >= ceu->config.engine_count || in->client >= CLIENTS_MAX ||
	    in->user >= USERS_MAX)
		return false;
	if (in->sq_bytes == 0 || in->sq_bytes % 64)
		return false;
	if (!in->rq)
		return in->rq_entries == 0;
	return !in->srqn && ceu_receive_ring_ok(in->rq_entries, in->rq_stride);
}

/* Makes the QP receive from an SRQ, which must be of the same client and engine. */
static bool use_srq(struct qp *q, struct srq *s)
{
	if (!s || s->client != q->client || s->engine != q->engine)
		return false;
	q->srq = s;
	q->rq_stride = s->stride;
	q->rq_pd = s->pd;
	s->users++;
	return true;
}

static void leave_srq(struct qp *q)
{
	if (q->srq)
		q->srq->users--;
}

/* What arrives for the QP arrives at its engine, if the port can choose. */
static void steer(const struct ceu *ceu, const struct qp *q, uint32_t qpn)
{
	const struct link_port *link = ceu->config.engines[q->engine].link;

	if (link && link->spread)
		link_set_queue(link->spread, qpn, ceu->config.qps->mask, q->engine);
}

enum ceu_status ceu_qp_make(struct ceu *ceu, uint32_t qpn, const struct ceu_qp *in)
{
	struct qp *q = qp_at(ceu->config.qps, qpn & ceu->config.qps->mask);

	if (!make_params_ok(ceu, qpn, in))
		return CEU_BAD_PARAM;
	if (!icm_ready(&ceu->config.qps->icm, qpn & ceu->config.qps->mask) || q->qpn != 0 ||
	    ceu->busy[q - ceu->config.qps->qps])
		return CEU_BAD_SYS_STATE;
	memset(q, 0, offsetof(struct qp, wake));
	clear_data_path(q);
	q->state = QP_RST;
	q->epoch = ++ceu->lives;
	q->index = qpn & ceu->config.qps->mask;
	q->service = in->service;
	q->sq_signal_all = in->sq_signal_all != 0;
	q->client = in->client;
	q->user = in->user;
	q->engine = in->engine;
	q->pd = in->pd;
	q->cqn_snd = in->cqn_snd;
	q->cqn_rcv = in->cqn_rcv;
	q->sq = in->sq;
	q->sq_bytes = in->sq_bytes;
	q->rq = in->rq;
	q->rq_stride = in->rq_stride;
	q->rq_entries = in->rq_entries;
	q->record = in->record;
	q->rq_pd = in->pd;
	q->third = &ceu->config.qps->third_paths[q->index];
	__atomic_store_n(&q->payload_turn, q->epoch << 32, __ATOMIC_RELAXED);
	if (in->srqn && !use_srq(q, ceu_srq_find(ceu, in->srqn)))
		return CEU_BAD_PARAM;
	memset(&ceu->shadow[q->index], 0, sizeof(ceu->shadow[0]));
	icm_use(&ceu->config.qps->icm, q->index);
	eq_forget(ceu->config.completion, EVENT_OF_QP, q->index);
	steer(ceu, q, qpn);
	__atomic_store_n(&q->qpn, qpn, __ATOMIC_RELEASE);
	return CEU_OK;
}

/*
 * A QP may hold a descriptor of its SRQ that other QPs could use and whose tag the client waits
 * for. So the QP goes through ERR, where ExecutionEngine returns the descriptor with a completion;
 * but not in a batch, which destroys the SRQ, too.
 */
static void give_back_shared(struct ceu *ceu, struct qp *q)
{
	enum qp_state state = qp_state(q);

	if (!q->srq || state == QP_RST || state == QP_INIT || ceu->batch ||
	    !ceu->config.hooks.quiesce)
		return;
	__atomic_store_n(&q->leaving, 1, __ATOMIC_RELAXED);
	ceu_set_releasing(ceu, true);
	qp_set_error(&ceu->config.engines[q->engine], q);
	for (unsigned int i = 0; i < CEU_WAIT_MAX; i++) {
		if (__atomic_load_n(&q->ee.flushed, __ATOMIC_ACQUIRE) == EE_FLUSHED)
			return;
		ceu_quiesce(ceu);
	}
}

/* Does the number belong to a QP whose reset gave up? Only the shadow knows it. */
static struct qp *find_stuck(struct ceu *ceu, uint32_t qpn)
{
	struct qp *q = qp_at(ceu->config.qps, qpn & ceu->config.qps->mask);
	bool stuck = qpn != 0 && qp_number(q) == 0 &&
		     ceu->shadow[qpn & ceu->config.qps->mask].qpn == qpn;

	return stuck ? q : NULL;
}

/* For a QP whose reset gave up: it is leaving, or has left since. */
static enum ceu_status free_stuck(struct ceu *ceu, uint32_t qpn)
{
	struct qp *q = find_stuck(ceu, qpn);

	if (!q)
		return CEU_BAD_PARAM;
	leave_srq(q);
	ceu->shadow[q->index].qpn = 0;
	ceu_settle(ceu);
	return CEU_OK;
}

enum ceu_status ceu_qp_free(struct ceu *ceu, uint32_t qpn)
{
	struct qp *q = qp_find(ceu->config.qps, qpn);

	if (!q)
		return free_stuck(ceu, qpn);
	give_back_shared(ceu, q);
	unlist_qp(ceu, q);
	leave_srq(q);
	ceu->busy[q->index] = QP_UNLISTED;
	ceu->leaving[ceu->leaving_count++] = q->index;
	ceu_settle(ceu);
	return CEU_OK;
}

enum ceu_status ceu_qp_query(struct ceu *ceu, uint32_t qpn, struct control_qp_attr *out)
{
	struct qp *q = qp_find(ceu->config.qps, qpn);

	if (!q)
		return CEU_BAD_PARAM;
	ceu_migration_follow(ceu, q);
	*out = ceu->shadow[q->index];
	out->qpn = qpn;
	out->path_mig_state = (uint8_t)ceu_migration_state(q);
	out->state = qp_state(q);
	out->cur_state = out->state;
	if (out->state != QP_RST && out->state != QP_INIT) {
		out->rq_psn = __atomic_load_n(&q->ee.expected_psn, __ATOMIC_RELAXED) & PSN_MASK;
		out->sq_psn = __atomic_load_n(&q->rtc.next_psn, __ATOMIC_RELAXED) & PSN_MASK;
	}
	return CEU_OK;
}

static bool av_ok(const uint8_t dgid[16], const struct ceu_path *path)
{
	static const uint8_t none[16];

	return memcmp(dgid, none, 16) != 0 &&
	       ip_is_v4_mapped(dgid) == ip_is_v4_mapped(path->src_ip);
}

static bool in_range(uint32_t value, uint32_t least, uint32_t most)
{
	return value >= least && value <= most;
}

/* The rights that a queue pair may grant its peer; LOCAL_WRITE is accepted without effect. */
#define QP_RIGHTS                                                                                  \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |    \
	 ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT)

static bool rights_ok(uint32_t access)
{
	return !(access & ~(uint32_t)QP_RIGHTS);
}

/* Is every attribute that the mask names in its range? */
static bool attributes_ok(const struct ceu *ceu, const struct ceu_modify *in)
{
	const struct control_qp_attr *a = &in->attr;
	bool ok = !(a->mask & QP_ATTR_AV) || av_ok(a->av.dgid, &in->path);

	ok = ok && (!(a->mask & QP_ATTR_ALT_PATH) || av_ok(a->alternate.dgid, &in->alternate));
	ok = ok && (!(a->mask & QP_ATTR_ACCESS) || rights_ok(a->access));
#define ATTRIBUTE(BIT, field, least, most, applied, in_sqd)                                        \
	ok = ok && (!(a->mask & QP_ATTR_##BIT) || in_range(a->field, least, most));
#include "qp_attributes.def"
	return ok;
}

static uint8_t cc_of(const struct ceu *ceu, const struct qp *q, const uint8_t peer[16],
		     uint8_t traffic_class)
{
	return cc_choose(&ceu->cc_rules, peer, traffic_class,
			 (uint8_t)engine_setting(&ceu->config.engines[q->engine], cc));
}

/* Chooses by the QP's own path, even while the QP sends along the alternate one. */
static void choose_cc(const struct ceu *ceu, struct qp *q, const uint8_t peer[16], uint8_t tclass)
{
	q->tclass = tclass;
	__atomic_store_n(&q->cc, cc_of(ceu, q, peer, tclass), __ATOMIC_RELAXED);
}

void ceu_set_cc_rules(struct ceu *ceu, const struct cc_rules *rules)
{
	struct qp_table *t = ceu->config.qps;

	ceu->cc_rules = *rules;
	for (uint32_t i = 0; i < t->count; i++)
		if (icm_ready(&t->icm, i) && t->qps[i].qpn)
			choose_cc(ceu, &t->qps[i], qp_path(&t->qps[i])->peer_ip, t->qps[i].tclass);
}

/* Packets of a QP that obeys notifications may be marked, unless its traffic class says
 * otherwise. */
static uint8_t ecn_class(uint8_t cc, uint8_t traffic_class)
{
	if (!(cc & CC_DCQCN) || traffic_class & WIRE_ECN_BITS)
		return traffic_class;
	return traffic_class | WIRE_ECN_ECT0;
}

/* Makes the headers, Ethernet to UDP, of this QP's packets to `av`; NULL for UD, whose requests
 * have destinations of their own. Returns the path's number, one that no module reads any more. */
static unsigned make_path(struct ceu *ceu, struct qp *q, const struct control_address *av,
			  const struct ceu_path *via)
{
	unsigned unused = qp_path_unused(q);
	struct qp_path *to = unused < RTE_DIM(q->path) ? &q->path[unused] : q->third;
	struct wire_path path = {
		.has_vlan = via->has_vlan,
		.vlan_tci = via->vlan_tci,
		.is_ipv6 = !ip_is_v4_mapped(via->src_ip),
		.ttl = WIRE_TTL_DEFAULT,
	};

	if (qp_state(q) > QP_INIT)
		ceu_quiesce(ceu);
	memcpy(path.src_mac, via->src_mac, 6);
	memcpy(path.src_ip, via->src_ip, 16);
	if (av) {
		memcpy(path.dst_mac, via->dst_mac, 6);
		memcpy(path.dst_ip, av->dgid, 16);
		memcpy(to->peer_ip, av->dgid, 16);
		path_set_class(&ceu->config.engines[q->engine], &path, av->traffic_class, av->sl);
		path.tos = ecn_class(cc_of(ceu, q, to->peer_ip, av->traffic_class), path.tos);
		path.flow_label = av->flow_label;
		path.sport = av->flow_label ? wire_udp_source_port_of_flow(av->flow_label)
					    : wire_udp_source_port(q->qpn, q->dest_qpn);
		if (av->hop_limit)
			path.ttl = av->hop_limit;
	} else {
		path.sport = wire_udp_source_port_ud(q->qpn);
	}
	wire_template_build(&to->template, &path);
	return unused;
}

static void set_mtu(struct qp *q, uint8_t code)
{
	q->mtu_code = code;
	q->mtu_bytes = (uint16_t)(128u << code);
}

/* Copies the named attributes into the context. */
static void modify_apply(struct ceu *ceu, struct qp *q, const struct ceu_modify *in)
{
	const struct control_qp_attr *a = &in->attr;

#define CONTEXT(field) q->field = (__typeof__(q->field))a->field
#define MTU(field)     set_mtu(q, a->field)
#define PATH(field)    /* below, all at once */
#define MIGRATION(field)
#define ENTERED(field) /* by prepare() */
#define NOWHERE(field)
#define ATTRIBUTE(BIT, field, least, most, applied, in_sqd)                                        \
	if (a->mask & QP_ATTR_##BIT) {                                                             \
		applied(field);                                                                    \
	}
#include "qp_attributes.def"
	if (a->mask & QP_ATTR_AV) {
		choose_cc(ceu, q, a->av.dgid, a->av.traffic_class);
		qp_change_path(q, make_path(ceu, q, &a->av, &in->path));
	}
	if (a->mask & QP_ATTR_ALT_PATH)
		qp_load_alternate(q, make_path(ceu, q, &a->alternate, &in->alternate));
	if (a->mask & QP_ATTR_PATH_MIG_STATE)
		ceu_migration_set(ceu, q, a->path_mig_state);
}

/* Remembers them for QUERY_QP. */
static void modify_remember(struct control_qp_attr *s, const struct control_qp_attr *a)
{
#define ATTRIBUTE(BIT, field, least, most, applied, in_sqd)                                        \
	if (a->mask & QP_ATTR_##BIT)                                                               \
		s->field = a->field;
#include "qp_attributes.def"
	if (a->mask & QP_ATTR_AV)
		memcpy(s->av.dgid, a->av.dgid, 16);
	if (a->mask & QP_ATTR_ALT_PATH)
		memcpy(s->alternate.dgid, a->alternate.dgid, 16);
	s->mask |= a->mask & ~(uint32_t)(QP_ATTR_STATE | QP_ATTR_CUR_STATE);
}

/* Only under congestion control by delay does a connection start with a part of the link's rate. */
static void start_slowly(const struct ceu *ceu, struct qp *q)
{
	const struct engine *e = &ceu->config.engines[q->engine];

	if (q->cc == CC_DELAY && q->service == SERVICE_RC)
		dcqcn_lend(&q->rtc.flow.cc, delay_first_rate(&e->settings.dcqcn));
}

/* Sets what a state needs beside the attributes, before it is entered. */
static void prepare(struct ceu *ceu, struct qp *q, enum qp_state from, enum qp_state to,
		    const struct ceu_modify *in)
{
	if (from == QP_RST && to == QP_INIT) {
		q->pkey = 0xffff;
		if (q->service == SERVICE_UD) {
			set_mtu(q, ceu->config.mtu_code_max);
			qp_change_path(q, make_path(ceu, q, NULL, &in->path));
		}
	} else if (from == QP_INIT && to == QP_RTR) {
		q->rq_psn = in->attr.mask & QP_ATTR_RQ_PSN ? in->attr.rq_psn : 0;
		q->ee.expected_psn = q->rq_psn;
		q->rtc.ssn = 1; /* initial credits may come in RTR */
	} else if (from == QP_RTR && to == QP_RTS) {
		q->sq_psn = in->attr.sq_psn;
		q->rtc.next_psn = q->sq_psn;
		q->rrc.unacked_psn = q->sq_psn;
		start_slowly(ceu, q);
		q->rrc.retry_left = q->retry_cnt;
		q->rrc.path = qp_way(q).path;
		q->rrc.rnr_left = q->rnr_retry;
		q->rrc.peer_keeps = q->agreed & AGREED_REPEAT ? PEER_TRUST : 0;
	} else if (from == QP_RTS && to == QP_SQD) {
		q->sqd_notify = (in->attr.mask & QP_ATTR_EN_SQD_ASYNC_NOTIFY) != 0;
		__atomic_store_n(&q->sqd_turn, q->sqd_turn == UINT8_MAX ? 1 : q->sqd_turn + 1,
				 __ATOMIC_RELEASE);
	} else if (from == QP_SQE && to == QP_RTS) {
		__atomic_store_n(&q->sq_epoch, q->sq_epoch + 1, __ATOMIC_RELEASE);
	}
}

/*
 * Any state may change to RST. The QP leaves the data path altogether and, once every module has
 * released it, comes back under its number, as if it were new.
 */
static enum ceu_status reset(struct ceu *ceu, struct qp *q)
{
	uint32_t qpn = q->qpn;
	bool left = false;

	memset(&ceu->shadow[q->index], 0, sizeof(ceu->shadow[0]));
	if (qp_state(q) == QP_RST) {
		q->agreed = 0; /* can be agreed anew from here on */
		return CEU_OK;
	}
	give_back_shared(ceu, q);
	unlist_qp(ceu, q);
	ceu_quiesce(ceu);
	ceu_qp_notify(ceu, q);
	for (unsigned int i = 0; i < CEU_WAIT_MAX && !left; i++) {
		ceu_quiesce(ceu);
		left = ceu_qp_left(ceu, q);
	}
	if (!left) { /* some module still holds it: it stays given up and can only be freed */
		ceu->shadow[q->index].qpn = qpn;
		ceu->busy[q->index] = QP_NOTIFIED;
		ceu->leaving[ceu->leaving_count++] = q->index;
		return CEU_BAD_SYS_STATE;
	}
	eq_forget(ceu->config.completion, EVENT_OF_QP, q->index); /* of its former life, */
	q->epoch = ++ceu->lives; /* as is whatever waits before modules that are slow or paused */
	q->leaving = 0;
	memset(q->path, 0, sizeof(q->path)); /* HeaderParser takes nothing from the former peer */
	q->way = (struct qp_way){0};
	q->agreed = 0;
	__atomic_store_n(&q->qpn, qpn, __ATOMIC_RELEASE);
	return CEU_OK;
}

/* Moves to `to`, unless a module has moved it to ERR or SQE in the meantime. */
static enum ceu_status qp_enter(struct ceu *ceu, struct qp *q, enum qp_state from, enum qp_state to)
{
	struct engine *e = &ceu->config.engines[q->engine];
	uint8_t expected = (uint8_t)from;

	if (!__atomic_compare_exchange_n(&q->state, &expected, (uint8_t)to, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_ACQUIRE))
		return CEU_BAD_SYS_STATE;
	if (to == QP_RTS || to == QP_SQD)
		modify_wake_all(e, q);
	else if (to == QP_RTR) /* it may send the peer its initial credits (C9-155) */
		wake_post(&e->wake[WAKE_EE], &q->wake[WAKE_EE], q->index);
	return CEU_OK;
}

/* RequesterRecvControl may be storing an acknowledgement's credits and overwrite this: then that
 * acknowledgement said 11111b as well, or the peer gives credits after all. */
void ceu_peer_gives_no_credits(struct ceu *ceu, uint32_t qpn)
{
	struct qp *q = qp_find(ceu->config.qps, qpn);

	if (q)
		__atomic_or_fetch(&q->rrc.credits, CREDITS_UNLIMITED, __ATOMIC_RELEASE);
}

/* What this side can do: the service and the setting permit it. */
static uint8_t features_of(const struct ceu *ceu, const struct qp *q)
{
	bool keeps = engine_setting(&ceu->config.engines[q->engine], loss_recovery) ==
		     LOSS_RECOVERY_KEEP;

	return q->service == SERVICE_RC && keeps ? AGREED_REPEAT : 0;
}

static bool may_agree(const struct qp *q)
{
	return qp_state(q) == QP_RST || qp_state(q) == QP_INIT;
}

uint8_t ceu_qp_offers(struct ceu *ceu, uint32_t qpn)
{
	const struct qp *q = qp_find(ceu->config.qps, qpn);

	if (!q)
		return 0;
	if (may_agree(q) && !(q->agreed & AGREED_ASKED))
		return features_of(ceu, q);
	return q->agreed & (uint8_t)~AGREED_ASKED;
}

enum ceu_status ceu_qp_agree(struct ceu *ceu, uint32_t qpn, uint8_t features)
{
	struct qp *q = qp_find(ceu->config.qps, qpn);

	if (!q)
		return CEU_BAD_PARAM;
	if (!may_agree(q))
		return CEU_BAD_SYS_STATE;
	q->agreed = AGREED_ASKED | (features & features_of(ceu, q));
	return CEU_OK;
}

/* Does the mask have all that the row requires, and nothing that it does not allow? */
static bool mask_ok(const struct ceu_transition *row, const struct control_qp_attr *a)
{
	uint32_t mask = a->mask & ~(uint32_t)QP_ATTR_STATE;

	return (mask & row->required) == row->required &&
	       (mask & ~(row->required | row->optional)) == 0 &&
	       (!(mask & QP_ATTR_CUR_STATE) || a->cur_state == row->from);
}

/* In SQD some attributes may change only while nothing that they concern is outstanding. */
static bool must_be_drained(enum qp_state from, const struct control_qp_attr *a)
{
	enum { ANY_TIME, DRAINED };
	static const uint32_t bits = 0
#define ATTRIBUTE(BIT, field, least, most, applied, in_sqd)                                        \
	| (in_sqd == DRAINED ? QP_ATTR_##BIT : 0)
#include "qp_attributes.def"
		;

	return from == QP_SQD && a->mask & bits;
}

static bool is_drained(const struct qp *q)
{
	return __atomic_load_n(&q->rtc.drained, __ATOMIC_ACQUIRE) == q->sqd_turn;
}

enum ceu_status ceu_qp_modify(struct ceu *ceu, uint16_t op, enum qp_state to, uint32_t qpn,
			      const struct ceu_modify *in)
{
	static const struct ceu_modify nothing;
	struct qp *q = qp_find(ceu->config.qps, qpn);
	const struct ceu_transition *row;
	enum qp_state from;

	if (!q)
		return CEU_BAD_PARAM;
	in = in ? in : &nothing;
	from = qp_state(q);
	row = ceu_transition_find(from, to, (enum qp_service)q->service);
	if (!row || row->op != op)
		return CEU_BAD_SYS_STATE;
	if (!mask_ok(row, &in->attr) || !attributes_ok(ceu, in) ||
	    !ceu_migration_ok(q, to, &in->attr))
		return CEU_BAD_PARAM;
	if (must_be_drained(from, &in->attr) && !is_drained(q))
		return CEU_BAD_SYS_STATE;
	if (to == QP_RST)
		return reset(ceu, q);
	if (to == QP_ERR) {
		qp_set_error(&ceu->config.engines[q->engine], q);
		return CEU_OK;
	}
	ceu_migration_follow(ceu, q);
	modify_apply(ceu, q, in);
	prepare(ceu, q, from, to, in);
	modify_remember(&ceu->shadow[q->index], &in->attr);
	return qp_enter(ceu, q, from, to);
}
