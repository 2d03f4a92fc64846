/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link transmit, 256To64Trans in the hardware design (doc/modules.md#link-transmit): takes frames
 * in turn from request and response generation and gives them to the port. Stage header_parse.
 *
 * If the port accepts nothing for STUCK_NS the waiting frames are dropped: two joined HCAs could
 * otherwise wait for each other for ever, each with a full transmit side because the other's
 * receive side is stalled. The transport repairs the loss.
 */
#include <errno.h>
#include "context/qp_context.h"
#include "link/link_port.h"
#include "pipeline/message.h"
#include "pipeline/train.h"
#include "stall.h"
#include "tx_arbiter.h"

#define STUCK_NS 2000000

struct txa {
	struct rte_mbuf *waiting[BURST]; /* taken from the rings, not taken by the port */
	unsigned count, first;
	unsigned turn;
	struct stall stuck; /* the port takes nothing */
	uint64_t timed;	    /* those of `waiting` whose departure is to be noted, by bit */
};

int txa_create(struct engine *e)
{
	e->txa = engine_alloc(e, "txa", sizeof(struct txa));
	return e->txa ? 0 : -ENOMEM;
}

void txa_destroy(struct engine *e)
{
	rte_free(e->txa);
	e->txa = NULL;
}

_Static_assert(BURST <= 64, "a bit for each");

/* Which of the frames just taken are timed, by bit. Nobody else holds these frames. */
static uint64_t take_timed(const struct txa *t)
{
	uint64_t any = 0, timed = 0;

	for (unsigned i = 0; i < t->count; i++)
		any |= t->waiting[i]->ol_flags;
	if (likely(!(any & FRAME_TIMED)))
		return 0;
	for (unsigned i = 0; i < t->count; i++) {
		timed |= (uint64_t) !!(t->waiting[i]->ol_flags & FRAME_TIMED) << i;
		t->waiting[i]->ol_flags &= ~FRAME_TIMED;
	}
	return timed;
}

/* The timed frames leave now, unless the port refuses them: then this is repeated. */
static __rte_noinline void note_departures(struct engine *e, const struct txa *t)
{
	for (uint64_t left = t->timed >> t->first << t->first; left; left &= left - 1) {
		const struct packet *p = packet_of(t->waiting[rte_bsf64(left)]);
		struct qp *q = qp_find(e->qps, p->qpn);

		if (!q)
			continue;
		__atomic_store_n(&q->left.ns, engine_now(e), __ATOMIC_RELAXED);
		__atomic_store_n(&q->left.psn, p->headers.psn, __ATOMIC_RELEASE);
	}
}

/* Gives the waiting frames to the port. True: none is left. */
static bool send_waiting(struct engine *e, struct txa *t)
{
	struct counters *c = stage_counters(e, STAGE_HEADER_PARSE);
	unsigned left = t->count - t->first, sent;
	struct rte_mbuf **m = t->waiting + t->first;
	uint32_t packets;
	uint64_t bytes;

	if (!left)
		return true;
	packets = frames_packets(m, left); /* while they are ours */
	bytes = frames_bytes(m, left);
	if (unlikely(t->timed))
		note_departures(e, t);
	sent = e->link->tx_burst(e->link, e->index, m, left);
	t->first += sent;
	if (unlikely(sent < left)) {
		packets -= frames_packets(m + sent, left - sent);
		bytes -= frames_bytes(m + sent, left - sent);
	}
	count_n(c, COUNTER_tx_packets, packets);
	count_n(c, COUNTER_tx_bytes, bytes);
	if (likely(sent)) {
		stall_ends(&t->stuck);
	} else if (stall_exceeds(&t->stuck, engine_now(e), STUCK_NS)) {
		count_n(c, COUNTER_drop_tx_stuck, frames_packets(m, left));
		rte_pktmbuf_free_bulk(m, left);
		t->count = t->first = 0;
		stall_ends(&t->stuck);
	}
	return sent == left;
}

static const enum channel_id inputs[] = {CHANNEL_RPG_TXA, CHANNEL_RESPG_TXA};

/* Takes a burst of the input whose turn it is, or of the other one. False: both are empty. */
static bool take_next(struct engine *e, struct txa *t)
{
	t->first = t->count = 0;
	for (unsigned i = 0; i < RTE_DIM(inputs) && !t->count; i++)
		t->count = channel_take(&e->channel[inputs[t->turn++ % RTE_DIM(inputs)]],
					t->waiting, BURST);
	t->timed = take_timed(t);
	return t->count != 0;
}

static __rte_noinline unsigned txa_work(struct engine *e)
{
	struct txa *t = e->txa;
	unsigned total = 0;

	while (send_waiting(e, t) && total < 4 * BURST && take_next(e, t))
		total += t->count;
	return total;
}

unsigned txa_poll(struct engine *e)
{
	const struct txa *t = e->txa;

	if (t->first == t->count && channels_idle(e->channel, inputs, RTE_DIM(inputs)))
		return 0;
	return txa_work(e);
}
