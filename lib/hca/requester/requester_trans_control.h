/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQUESTER_TRANS_CONTROL_H
#define REQUESTER_REQUESTER_TRANS_CONTROL_H
/*
 * RequesterTransControl (doc/modules.md#requestertranscontrol): decides whether requests may be
 * sent, has them cut into packets, parks queue pairs that must wait. DP_RTC → RTC_RPG, RTC_RRC,
 * RTC_TC. Stage segmentation.
 */
#include "context/qp_context.h"
#include "pipeline/engine.h"
#include "pipeline/parking.h"

int rtc_create(struct engine *e); /* 0 or -ENOMEM */
void rtc_destroy(struct engine *e);

/* One poll of it. Returns requests taken and packets made. */
unsigned rtc_poll(struct engine *e);

/* Why RequesterTransControl has parked a QP (qp.rtc.parked). */
enum park_reason {
	PARK_NONE,
	PARK_BUFFER,
	PARK_FENCE,
	PARK_READS,
	PARK_CREDIT,
	PARK_RNR,
	PARK_PSN,
	PARK_RETRANSMIT,
	PARK_WINDOW,
	PARK_DRAIN,
	PARK_REASONS
};

/* Makes RequesterTransControl visit the QP again if it has parked it: a condition that the QP may
 * wait for has changed. Stage requester_recv. */
static inline void wake_sender(struct engine *e, struct qp *q)
{
	if (parked(&q->rtc.parked, e->one_lcore))
		wake_post(&e->wake[WAKE_RTC], &q->wake[WAKE_RTC], q->index);
}

#endif
