/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_TRAIN_H
#define PIPELINE_TRAIN_H
/*
 * Trains: packets that travel as one. Within the daemon a packet that refers to its payload may stand
 * for several, which follow one another in PSN and payload and are alike in everything else: middle
 * packets of one message, of the path MTU each. It has one mbuf, one place in rings and in MultiQueue,
 * and is judged, translated and copied once (doc/decisions/0030-trains.md).
 *
 * The frame has the headers of the first packet, and its data_len; pkt_len has the bytes of all. AckReq is
 * the last packet's. Only frames with PAYLOAD_REF are trains, so ports with a driver see none. Counters
 * and channels count the packets.
 *
 * A receiver that cannot take a train as one, because anything about it is irregular, takes packets off
 * its front, one after the other, and treats each as if it had come alone.
 */
#include "base/limits.h"
#include "pipeline/message.h"
#include "wire/psn.h"

/* How many packets a frame is. */
static inline uint32_t frame_packets(const struct rte_mbuf *m)
{
	return likely(m->pkt_len == m->data_len) ? 1 : m->pkt_len / m->data_len;
}

static inline uint32_t frames_packets(struct rte_mbuf *const *m, unsigned n)
{
	uint32_t packets = 0;

	for (unsigned i = 0; i < n; i++)
		packets += frame_packets(m[i]);
	return packets;
}

static inline uint64_t frames_bytes(struct rte_mbuf *const *m, unsigned n)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += m[i]->pkt_len;
	return bytes;
}

/* Of the payload of all packets, or of those that are left. */
static inline uint32_t train_bytes(const struct arrival *a)
{
	return a->packets * a->payload_bytes;
}

/*
 * Takes the first packet off a received train of two packets at least. Returns a reference to the frame
 * with metadata of its own, the caller's; m has the others. NULL: `clones` is empty, and nothing has
 * happened.
 */
static inline struct rte_mbuf *train_peel(struct rte_mempool *clones, struct rte_mbuf *m)
{
	struct rte_mbuf *one = rte_pktmbuf_alloc(clones);
	struct arrival *a = arrival_of(m);

	if (unlikely(!one))
		return NULL;
	rte_pktmbuf_attach(one, m);
	*arrival_of(one) = *a;
	arrival_of(one)->packets = 1;
	arrival_of(one)->headers.ackreq = 0;
	a->headers.psn = psn_add(a->headers.psn, 1);
	a->payload_skip += a->payload_bytes;
	a->packets--;
	return one;
}

#endif
