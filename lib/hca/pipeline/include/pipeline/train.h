/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_TRAIN_H
#define PIPELINE_TRAIN_H
/*
 * Trains: packets that travel as one. Within the daemon a frame may stand for several packets of one
 * queue pair, which follow one another in PSN and are alike in everything but what is said here. A train has one
 * mbuf and one place in each channel, and is parsed and judged once (doc/decisions/0030-trains.md).
 * There are two kinds:
 *
 *   - Middle packets of one message, of the path MTU each. The frame refers to its payload (PAYLOAD_REF),
 *     and the reference is that to the payload of all.
 *
 *   - Messages of one packet each, of one operation and length. Behind the frame of the first the others follow
 *     in the same buffer, in parts: extension headers and payload of each, at equal distances.
 *
 *        buffer:  ... headers | payload | pad, ICRC |  | ext | payload |  | ext | payload | ...
 *                 |<---- data_len, the first ---->|  |<-- stride -->|
 *
 * The frame has the headers of the first packet. AckReq is the last packet's. Frames of trains are marked
 * (FRAME_TRAIN); pkt_len has the bytes that the frames of all packets would have. Only ring ports carry trains.
 * Counters and channels count the packets.
 *
 * A receiver that cannot take a train as one, because anything about it is irregular, takes packets off
 * its front, one after the other, and treats each as if it had come alone.
 */
#include "base/limits.h"
#include "pipeline/frame_marks.h"
#include "pipeline/message.h"
#include "wire/psn.h"
#include "wire/train.h"

/* How many packets a frame is. */
static inline uint32_t frame_packets(const struct rte_mbuf *m)
{
	return likely(!(m->ol_flags & FRAME_TRAIN)) ? 1 : m->pkt_len / m->data_len;
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

/* ---- parts ---- */

enum { TRAIN_ALIGN = 8 };

/* Where the first part begins, from the payload of the frame on: behind pad and ICRC. */
static inline uint32_t train_parts_at(uint32_t payload_bytes)
{
	return RTE_ALIGN_CEIL(payload_bytes + 3 + WIRE_ICRC_BYTES, (uint32_t)TRAIN_ALIGN);
}

/* From one part to the next. */
static inline uint32_t train_stride(uint8_t opcode, uint32_t payload_bytes)
{
	return RTE_ALIGN_CEIL(wire_extension_bytes(opcode) + payload_bytes, (uint32_t)TRAIN_ALIGN);
}

/* The part of packet number `index`, 1 at least, of a train in parts whose frame has that payload. */
static inline const uint8_t *train_part(const uint8_t *payload, uint8_t opcode,
					uint32_t payload_bytes, uint32_t index)
{
	return payload + train_parts_at(payload_bytes) +
	       (index - 1) * train_stride(opcode, payload_bytes);
}

/* Bytes of a frame in its buffer, with all parts. `f` describes it. */
uint32_t train_buffer_bytes(const struct rte_mbuf *m, const struct wire_frame *f);

/*
 * Writes the packet number `index` of a train as a frame of its own, which has m->data_len bytes, and no
 * ICRC: zeros in its place. In place of a payload that is referred to it has the same bytes as the train's frame; of
 * what they name this packet's begins *skip bytes behind. False: the train is no valid frame.
 */
bool train_write_packet(uint8_t *frame, const struct rte_mbuf *m, uint32_t index, uint32_t *skip);

/* ---- received ---- */

/* Of the payload of all packets, or of those that are left. */
static inline uint32_t train_bytes(const struct arrival *a)
{
	return a->packets * a->payload_bytes;
}

/* Passes over the first n packets of a received train of more: it describes the others from now on. */
static inline void train_advance(struct arrival *a, uint32_t n)
{
	a->packets -= n;
	a->headers.psn = psn_add(a->headers.psn, n);
	if (a->payload_elsewhere) {
		a->payload_skip += n * a->payload_bytes;
		return;
	}
	a->part += (n - 1) * a->part_bytes;
	wire_read_extensions(a->part, &a->headers);
	a->payload = a->part + a->part_headers;
	a->part += a->part_bytes;
}

/*
 * Takes the first n packets off a received train of more. Returns a reference to the frame
 * with metadata of its own, the caller's; m has the others. NULL: `clones` is empty, and nothing has
 * happened.
 */
static inline struct rte_mbuf *train_split(struct rte_mempool *clones, struct rte_mbuf *m,
					   uint32_t n)
{
	struct rte_mbuf *front = rte_pktmbuf_alloc(clones);

	if (unlikely(!front))
		return NULL;
	rte_pktmbuf_attach(front, m);
	*arrival_of(front) = *arrival_of(m);
	arrival_of(front)->packets = n;
	arrival_of(front)->headers.ackreq = 0;
	train_advance(arrival_of(m), n);
	return front;
}

#endif
