/* SPDX-License-Identifier: BSD-3-Clause */
/* The segmentation and requester_recv stages: their modules, made and polled. */
#include <errno.h>
#include <rte_malloc.h>
#include "multi_queue.h"
#include "pipeline/module_run.h"
#include "req_pkt_gen.h"
#include "requester/requester.h"
#include "requester_recv_control.h"
#include "requester_trans_control.h"
#include "timer_control.h"
#include "virt-to-phys/v2p.h"

int requester_create(struct engine *e)
{
	int err = mq_create(e);

	if (!err)
		err = rtc_create(e);
	if (!err)
		err = rpg_create(e);
	if (!err)
		err = rrc_create(e);
	if (!err)
		err = tc_create(e);
	return err;
}

void requester_destroy(struct engine *e)
{
	tc_destroy(e);
	rrc_destroy(e);
	rpg_destroy(e);
	rtc_destroy(e);
	mq_destroy(e);
}

void requester_on_one_lcore(struct engine *e)
{
	e->mq->one_lcore = true;
}

unsigned segmentation_poll(struct engine *e)
{
	unsigned n;

	v2p_poll(e->v2p_port[STAGE_SEGMENTATION]);
	n = module_run(e, MODULE_RTC, rtc_poll);
	return n + module_run(e, MODULE_RPG, rpg_poll);
}

unsigned requester_recv_poll(struct engine *e)
{
	unsigned n = module_run(e, MODULE_TC, tc_poll);

	v2p_poll(e->v2p_port[STAGE_REQUESTER_RECV]);
	return n + module_run(e, MODULE_RRC, rrc_poll);
}

const char *requester_waits_for(const struct qp *q)
{
	static const char *const texts[PARK_REASONS] = {
		[PARK_NONE] = "nothing",
		[PARK_BUFFER] = "retransmit buffers",
		[PARK_FENCE] = "READs and atomics before a fence",
		[PARK_READS] = "fewer READs and atomics outstanding",
		[PARK_CREDIT] = "credits",
		[PARK_RNR] = "the RNR timer",
		[PARK_PSN] = "fewer PSNs outstanding",
		[PARK_RETRANSMIT] = "retransmission",
		[PARK_WINDOW] = "the window after a loss",
		[PARK_DRAIN] = "leaving SQD",
	};
	uint8_t reason = __atomic_load_n(&q->rtc.parked, __ATOMIC_RELAXED);

	ASSERT(reason < PARK_REASONS && texts[reason]);
	return texts[reason];
}
