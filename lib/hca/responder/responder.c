/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder_exec stage: makes its modules and polls them in the order of the pipeline. */
#include <errno.h>
#include "context/qp_context.h"
#include "context/srq.h"
#include "execution_engine.h"
#include "pipeline/module_run.h"
#include "resp_pkt_gen.h"
#include "responder/responder.h"
#include "virt-to-phys/v2p.h"

int responder_create(struct engine *e)
{
	if (ee_create(e))
		return -ENOMEM;
	if (respg_create(e)) {
		ee_destroy(e);
		return -ENOMEM;
	}
	return 0;
}

void responder_destroy(struct engine *e)
{
	respg_destroy(e);
	ee_destroy(e);
}

static unsigned execution_poll(struct engine *e)
{
	unsigned n = wake_list_empty(&e->wake[WAKE_EE]) ? 0 : ee_wakes(e);

	n += ee_poll(e);
	n += ee_late_gaps(e);
	return n + ee_offer_credits(e);
}

unsigned responder_exec_poll(struct engine *e)
{
	unsigned n;

	v2p_poll(e->v2p_port[STAGE_RESPONDER_EXEC]);
	n = module_run(e, MODULE_EE, execution_poll);
	n += module_run(e, MODULE_RESPG, respg_poll);
	return n + ee_gap_waits(e);
}

/* Nothing depends on the count, so the race detector may ignore it. */
__attribute__((no_sanitize("thread"))) uint32_t responder_receives(const struct qp *q)
{
	const volatile uint32_t *consumed = &q->rwm.consumed;

	if (q->srq)
		return srq_claimed(q->srq);
	return q->rq ? __atomic_load_n(&q->record->rq_posted, __ATOMIC_ACQUIRE) - *consumed : 0;
}
