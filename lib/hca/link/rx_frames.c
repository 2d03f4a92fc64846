/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link receive, 64To256Trans in the hardware design (doc/modules.md#link-receive): takes frames
 * from the port. Nothing else is left of it in software, where words need no widening. Stage
 * header_parse.
 */
#include "hp.h"
#include "link/link_port.h"
#include "pipeline/train.h"
#include "rx_frames.h"

unsigned rxa_take(struct engine *e, struct rte_mbuf **frames, unsigned room)
{
	unsigned n = room ? e->link->rx_burst(e->link, e->index, frames, room) : 0;

	call_note(&e->stage[STAGE_HEADER_PARSE], CALL_HP_RXA, 1);
	count_n(hp_counters(e), COUNTER_rx_packets, frames_packets(frames, n));
	return n;
}
