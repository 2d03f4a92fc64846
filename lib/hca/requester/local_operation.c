/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterTransControl's state LOCAL: work requests that send nothing and change a key: binding a
 * memory window, local invalidate, fast registration (IBTA 10.6.7). Each executes when its turn in
 * the send queue comes: requests before it have read their memory, those behind it have not begun;
 * with a fence, READs and atomics have been answered, too. Reads the request's units, which are a
 * copy; changes the key through VirtToPhys. Stage segmentation; never waits.
 *
 * A UC request completes at once. An RC request completes in order, behind what is still
 * unacknowledged: this file puts an element into MultiQueue, and RequesterRecvControl, woken in
 * case nothing is outstanding any more, writes the completion when it finds the element. If an
 * earlier request fails, this one is flushed although it was executed: everything behind the first
 * error is (IBTA 10.3.1.6), and flushed says nothing about the key.
 */
#include "host-abi/wqe.h"
#include "local_operation.h"
#include "request_resolution.h"
#include "send-queue/send_queue.h"
#include "virt-to-phys/v2p.h"

/* The request's units, behind the next unit. */
static const void *units(const struct visit *v)
{
	return request_wqe(v->m) + v->r->data_first;
}

static enum v2p_state bind_window(const struct visit *v)
{
	const struct wqe_bind *u = units(v);
	const struct v2p_bind b = {.key = u->key,
				   .parent = u->lkey,
				   .pd = v->q->pd,
				   .qpn = qp_number(v->q),
				   .access = u->access,
				   .start = u->addr,
				   .length = u->length};

	return v2p_bind(v->e->v2p, &b);
}

static enum v2p_state fast_register(const struct visit *v)
{
	const struct wqe_register *u = units(v);
	const struct v2p_registration r = {.key = u->key,
					   .parent = u->lkey,
					   .pd = v->q->pd,
					   .access = u->access,
					   .iova = u->iova,
					   .length = u->length,
					   .page = u->page,
					   .pages = u->pages,
					   .log_page = u->log_page};

	return v2p_fast_register(v->e->v2p_port[STAGE_SEGMENTATION], &r);
}

/* V2P_PENDING: nothing has happened yet. */
static enum v2p_state local_execute(const struct visit *v)
{
	enum counter done = COUNTER_local_invalidates, refused = COUNTER_bad_local_invalidate;
	enum v2p_state s;

	if (v->r->opcode == USER_BIND_MW) {
		s = bind_window(v);
		done = COUNTER_binds;
		refused = COUNTER_bad_bind;
	} else if (v->r->opcode == USER_REG_MR) {
		s = fast_register(v);
		done = COUNTER_fast_registrations;
		refused = COUNTER_bad_fast_registration;
	} else {
		s = v2p_invalidate(v->e->v2p, v->q->pd, qp_number(v->q), v->r->imm);
	}
	v2p_count_error(rtc_counters(v->e), s);
	if (likely(s != V2P_PENDING))
		count(rtc_counters(v->e), s == V2P_SUCCESS ? done : refused);
	return s;
}

/* Queues its completion in order, as if it were a packet with the PSN before the next. */
static void complete_later(struct visit *v)
{
	struct qp *q = v->q;
	struct sw_element x = {.psn = psn_sub(q->rtc.next_psn, 1),
			       .wqe_offset = v->r->wqe_offset,
			       .packets = 1,
			       .opcode = v->r->opcode,
			       .flags = ELEMENT_LAST | ELEMENT_SIGNALED};

	sw_put(v->e->mq, &q->mq.sw, &x);
	v->share--;
	wake_post(&v->e->wake[WAKE_RRC], &q->wake[WAKE_RRC], q->index);
}

static enum rtc_state local_rc(struct visit *v)
{
	bool signaled = v->r->flags & REQUEST_SIGNALED;
	enum v2p_state s;

	if (unlikely(signaled && !rtc_may_keep(v)))
		return rtc_no_share(v);
	s = local_execute(v);
	if (unlikely(s == V2P_PENDING))
		return RTC_STALLED;
	if (unlikely(s != V2P_SUCCESS)) {
		v->r->outcome = OUTCOME_MW_BIND;
		return RTC_RC_BAD_REQ;
	}
	if (signaled)
		complete_later(v);
	rtc_finish_request(v);
	rtc_free_descriptor(v);
	return RTC_IDLE;
}

static enum rtc_state local_uc(struct visit *v)
{
	enum v2p_state s = local_execute(v);

	if (unlikely(s == V2P_PENDING))
		return RTC_STALLED;
	if (likely(s == V2P_SUCCESS))
		resolution_begin(v->r);
	else
		v->r->outcome = OUTCOME_MW_BIND;
	return RTC_UCUD_CPL;
}

enum rtc_state rtc_local(struct visit *v)
{
	if (unlikely(v->quantum == 0))
		return RTC_STALLED;
	rtc_spend(v, 0);
	return v->q->service == SERVICE_RC ? local_rc(v) : local_uc(v);
}
