/* SPDX-License-Identifier: BSD-3-Clause */
/* Pacing: see the header. Stages segmentation and responder_exec. */
#include "context/pacing.h"

static struct qp_flow *flow_of(const struct pacer *p, struct qp *q)
{
	return (struct qp_flow *)((char *)q + p->flow);
}

void pacer_init(struct pacer *p, const struct qp_table *qps, size_t flow)
{
	*p = (struct pacer){.flow = (uint32_t)flow};
	for (unsigned i = 0; i < PACING_SLOTS; i++)
		qp_list_init(&p->slot[i], qps, flow + offsetof(struct qp_flow, waits));
}

void pacer_wait(struct pacer *p, struct qp *q, uint64_t now_ns)
{
	struct qp_flow *f = flow_of(p, q);
	uint64_t at;

	if (f->waits.listed)
		return;
	if (!p->waiting)
		p->turn = now_ns >> PACING_SLOT_SHIFT;
	at = (f->next_ns >> PACING_SLOT_SHIFT) + 1; /* the first slot that is not early */
	at = RTE_MIN(at, p->turn + PACING_SLOTS - 1);
	at = RTE_MAX(at, p->turn);
	f->slot = at % PACING_SLOTS;
	qp_list_add(&p->slot[f->slot], q);
	p->waiting++;
}

void pacer_leave(struct pacer *p, struct qp *q)
{
	struct qp_flow *f = flow_of(p, q);

	if (!f->waits.listed)
		return;
	qp_list_remove(&p->slot[f->slot], q);
	p->waiting--;
}

struct qp *pacer_take(struct pacer *p, uint64_t now_ns)
{
	uint64_t now = now_ns >> PACING_SLOT_SHIFT;
	struct qp *q;

	if (now >= p->turn + PACING_SLOTS) /* a pause: all of them are due, in any order */
		p->turn = now - PACING_SLOTS + 1;
	for (; p->waiting && p->turn <= now; p->turn++) {
		q = qp_list_take(&p->slot[p->turn % PACING_SLOTS]);
		if (q) {
			p->waiting--;
			return q;
		}
	}
	return NULL;
}

uint64_t pacer_due_ns(const struct pacer *p)
{
	for (unsigned i = 0; p->waiting && i < PACING_SLOTS; i++)
		if (!qp_list_empty(&p->slot[(p->turn + i) % PACING_SLOTS]))
			return (p->turn + i) << PACING_SLOT_SHIFT;
	return UINT64_MAX;
}

bool flow_limited(struct qp_flow *f, const struct dcqcn_params *p, uint64_t now_ns)
{
	dcqcn_advance(&f->cc, p, now_ns);
	return f->cc.rate != 0;
}

void flow_sent(struct qp_flow *f, const struct dcqcn_params *p, uint32_t packets, uint32_t bytes,
	       uint64_t now_ns)
{
	uint64_t late_ns = RTE_MIN(now_ns, (uint64_t)PACING_SLACK_NS);
	uint64_t from = RTE_MAX(f->next_ns, now_ns - late_ns);

	bytes += packets * PACING_HEADER_BYTES;
	f->next_ns = from + dcqcn_ns(&f->cc, bytes);
	dcqcn_sent(&f->cc, p, bytes);
}

void flow_take_cnps(struct qp_flow *f, const struct qp *q, const struct dcqcn_params *p,
		    uint64_t now_ns)
{
	uint32_t cnps = __atomic_load_n(&q->hp.cnps, __ATOMIC_RELAXED);

	if (likely(cnps == f->cnps))
		return;
	f->cnps = cnps; /* those of one round count as one: they are about the same queue */
	/* A flow that has sent nothing since its last cut is not to blame: otherwise a QP that only
	 * writes would find its READ responses at the minimum rate. */
	if (!f->cc.rate || f->cc.bytes || f->cc.byte_stage)
		dcqcn_cnp(&f->cc, p, now_ns);
}
