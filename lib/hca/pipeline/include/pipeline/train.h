/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_TRAIN_H
#define PIPELINE_TRAIN_H
/*
 * Trains: consecutive packets of one queue pair that travel through the daemon as one frame, in one
 * mbuf and one channel slot, parsed and checked once (doc/decisions/0030-trains.md). Their PSNs are
 * consecutive; otherwise they differ only in what is listed here. There are two kinds:
 *
 *   - Middle packets of one message, each of one path MTU. The frame carries a reference
 *     (PAYLOAD_REF) to the payload of all of them, and behind it their ICRCs and the CRCs of what
 *     the sender read as their payload, unless ICRCs are omitted.
 *
 *   - Single-packet messages of the same operation and length. The frame of the first is complete;
 *     each of the others is a part behind it in the same buffer: its extension headers and payload,
 *     at a fixed stride.
 *
 *        buffer:  ... headers | payload | pad, ICRC |  | ext | payload |  | ext | payload | ...
 *                 |<---- data_len, the first ---->|  |<-- stride -->|
 *
 *     With ICRCs, a part also has its own IP, UDP and base headers in front, right-aligned in
 *     TRAIN_HEADERS_BYTES, and pad and ICRC behind its payload: an ICRC takes one pass over it.
 *
 * The frame has the headers of the first packet, except that AckReq is the last packet's. It is
 * marked FRAME_TRAIN; data_len is the length of one packet's frame, pkt_len the sum over all
 * packets. Only ring ports carry trains. Counters and channels count packets, not trains.
 *
 * A receiver that cannot execute a train as a whole splits packets off its front, and handles each
 * as if it had arrived alone.
 */
#include "base/limits.h"
#include "pipeline/frame_marks.h"
#include "pipeline/message.h"
#include "wire/psn.h"
#include "wire/run.h"

/* How many packets a frame stands for. */
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

enum {
	TRAIN_ALIGN = 8,
	TRAIN_HEADERS_BYTES = 64,
	TRAIN_TAIL_BYTES = 8, /* pad and ICRC, aligned */
};

/* Where the parts of a train are. */
struct train_parts {
	uint32_t first;	 /* offset of the extension headers of packet 1 from the frame's payload */
	uint32_t stride; /* from one part to the next */
};

static inline struct train_parts train_parts(uint8_t opcode, uint32_t payload_bytes, bool icrcs)
{
	uint32_t frame = payload_bytes + 3 + WIRE_ICRC_BYTES;
	uint32_t part = wire_extension_bytes(opcode) + payload_bytes;
	struct train_parts t = {.first = RTE_ALIGN_CEIL(frame, (uint32_t)TRAIN_ALIGN),
				.stride = RTE_ALIGN_CEIL(part, (uint32_t)TRAIN_ALIGN)};

	if (icrcs) {
		t.first += TRAIN_HEADERS_BYTES;
		t.stride += TRAIN_HEADERS_BYTES + TRAIN_TAIL_BYTES;
	}
	return t;
}

/* Offset of the extension headers of packet `index` >= 1 (packet 0 has no part). */
static inline uint32_t train_part_at(struct train_parts t, uint32_t index)
{
	return t.first + (index - 1) * t.stride;
}

/* ---- ICRCs ---- */

enum {
	TRAIN_ICRCS_AT = 256, /* behind the reference */
	TRAIN_CRCS_AT = TRAIN_ICRCS_AT + TRAIN_PACKETS_MAX * WIRE_ICRC_BYTES,
	TRAIN_REFERRED_BYTES = TRAIN_CRCS_AT + TRAIN_PACKETS_MAX * WIRE_ICRC_BYTES,
};

/* Where a train of referred packets has the ICRC of packet `index`; `payload` is where the frame
 * has the reference. */
static inline uint8_t *train_icrc(const uint8_t *payload, uint32_t index)
{
	return (uint8_t *)payload + TRAIN_ICRCS_AT + index * WIRE_ICRC_BYTES;
}

/* And where it has the CRC, from state 0, of what its sender read as that packet's payload. */
static inline uint8_t *train_crc(const uint8_t *payload, uint32_t index)
{
	return (uint8_t *)payload + TRAIN_CRCS_AT + index * WIRE_ICRC_BYTES;
}

/* Stores the CRCs of what a train will refer to, now at `from`. */
void train_put_crcs(uint8_t *payload, const uint8_t *from, uint32_t packet_bytes, uint32_t packets);

/* Stores the ICRCs of a train that has been built; if it refers to its payload, from its CRCs. `p`
 * describes the train: l3_offset, is_ipv6, payload_bytes and packets are read. */
void train_put_icrcs(struct rte_mbuf *m, const struct packet *p);

/* CRC states after the headers of packets [index, index + n) of a frame, which may be a single
 * packet. */
void train_icrc_headers(const struct rte_mbuf *m, uint32_t l3_offset, bool ipv6, uint32_t index,
			uint32_t n, uint32_t *states);

/* Are all ICRCs of a train in parts right? f: what wire_parse_frame() says of the frame. */
bool train_parts_intact(const struct rte_mbuf *m, const struct wire_frame *f);

/*
 * Writes packet `index` of a train as a frame of its own, of m->data_len bytes, with its ICRC, or
 * zeros if that is omitted. If the payload is by reference, the frame has the train's reference,
 * and this packet's payload begins *skip bytes into what it refers to; otherwise *skip is 0. False:
 * the train is not a valid frame.
 */
bool train_write_packet(uint8_t *frame, const struct rte_mbuf *m, uint32_t index, uint32_t *skip);

/* ---- received ---- */

/* The place of the first packet that is left, in the train as it was sent. Only of references. */
static inline uint32_t train_index(const struct arrival *a)
{
	return a->payload_skip / a->payload_bytes;
}

/* Is the ICRC of the first packet that is left right? The frame, which may be a single packet,
 * refers to its payload, now at `payload`. */
bool train_referred_intact(const struct rte_mbuf *m, const uint8_t *payload);

/* Would the ICRC of that packet of a train of references be right, if the payload were still what
 * its sender read? `index` as train_index() counts. */
bool train_headers_intact(const struct rte_mbuf *m, uint32_t index);

/*
 * Copies the payload of what is left of a train of references, now at `from`, and checks the ICRC
 * of each packet on the way. Returns how many are right before the first wrong one, whose bytes
 * have been copied, too. `nt`: with stores that bypass the caches. `changed`, unless NULL: packets
 * of which only the payload has changed count as right, and are added up there.
 */
uint32_t train_copy_checked(const struct rte_mbuf *m, uint8_t *to, const uint8_t *from, bool nt,
			    uint32_t *changed);

/* Payload bytes of all packets that are left. */
static inline uint32_t train_bytes(const struct arrival *a)
{
	return a->packets * a->payload_bytes;
}

/* Drops the first n packets of a received train of more than n. */
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
 * Splits the first n packets off a received train of more than n. Returns them as an indirect mbuf
 * with metadata of its own, which the caller owns; m keeps the others. NULL: `clones` is empty, and
 * the train is unchanged.
 */
static inline struct rte_mbuf *train_split(struct rte_mempool *clones, struct rte_mbuf *m,
					   uint32_t n)
{
	struct rte_mbuf *front = rte_pktmbuf_alloc(clones);

	if (unlikely(!front))
		return NULL;
	rte_pktmbuf_attach(front, m);
	front->pkt_len = m->pkt_len; /* so that frame_packets() counts the whole train */
	*arrival_of(front) = *arrival_of(m);
	arrival_of(front)->packets = n;
	arrival_of(front)->headers.ackreq = 0;
	train_advance(arrival_of(m), n);
	return front;
}

#endif
