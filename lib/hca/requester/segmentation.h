/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_SEGMENTATION_H
#define REQUESTER_SEGMENTATION_H
/* RequesterTransControl's states that make packets. Stage segmentation. */
#include "rtc_visit.h"

/* Each makes one packet and returns the next state. */
enum rtc_state rtc_rc_seg(struct visit *v);
enum rtc_state rtc_rc_store_entry(struct visit *v);
enum rtc_state rtc_ucud_seg(struct visit *v);

/* Passes what was made to ReqPktGen. */
void rtc_out_flush(struct engine *e);

#endif
