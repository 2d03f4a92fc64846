/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model of large messages, on one lcore: client buffer, one pass of copy + CRC into an mbuf, ring,
 * one pass of copy + CRC into the other client's buffer. The payload begins on a cache line, the
 * headers end in front of it, as in the product's packets.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>
#include <rte_ring.h>
#include "wire/crc.h"
#include "limit_frame.h"
#include "limit_measure.h"

enum {
	PAYLOAD_BYTES = 4096,
	BURST = 32,
	RING_ELEMENTS = 256,
	/* 2047 x 4.5 KiB is the share of a L3 that is there; more or less of it is slower. */
	POOL_MBUFS = 2047,
	POOL_CACHE = 256,
	HUGE_BYTES = 2 << 20,
	DATA_ROOM = RTE_PKTMBUF_HEADROOM + PAYLOAD_BYTES + 64,
	L3_HEADER_BYTES = LIMIT_REQUEST_BYTES - LIMIT_L3_OFFSET,
};

struct bulk {
	struct rte_mempool *pool;
	struct rte_ring *ring;
	uint32_t message_bytes;
	uint8_t *source;      /* the sending client's: message_bytes, or span_bytes */
	uint8_t *destination; /* the receiving client's, likewise */
	uint32_t offset;      /* of the next packet in its message */
	size_t span_bytes;    /* that messages walk through; a multiple of message_bytes */
	size_t at;	      /* copy: of the next message in the span */
	size_t copied;	      /* bytes from the beginning of the span; a message at least */
	uint32_t psn;
	uint64_t wrong; /* packets with a bad ICRC or out of bounds */
	struct limit_clock clock;
	union limit_template template;
};

static void bulk_close(struct bulk *b)
{
	rte_ring_free(b->ring);
	rte_mempool_free(b->pool);
	free(b->source);
	free(b->destination);
}

/* In huge pages if they may be had: how memory is mapped is no part of the limit. */
static uint8_t *buffer(size_t bytes)
{
	uint8_t *p = aligned_alloc(bytes < HUGE_BYTES ? 4096 : HUGE_BYTES, bytes);

	if (p && bytes >= HUGE_BYTES)
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

/* Touches all of the span. Returns 0, or -1 with all given back. */
static int bulk_open(struct bulk *b, uint32_t message_bytes, size_t span_bytes)
{
	memset(b, 0, sizeof(*b));
	b->message_bytes = message_bytes;
	b->span_bytes = span_bytes;
	b->copied = message_bytes;
	b->pool = rte_pktmbuf_pool_create("limit_bulk", POOL_MBUFS, POOL_CACHE, 0, DATA_ROOM,
					  SOCKET_ID_ANY);
	b->ring = rte_ring_create("limit_bulk", RING_ELEMENTS, SOCKET_ID_ANY,
				  RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	b->source = buffer(span_bytes);
	b->destination = buffer(span_bytes);
	if (!b->pool || !b->ring || !b->source || !b->destination) {
		bulk_close(b);
		return -1;
	}
	for (size_t i = 0; i < span_bytes; i++)
		b->source[i] = (uint8_t)(i * 167 + (i >> 8));
	memset(b->destination, 0, span_bytes);
	limit_template_build(&b->template, LIMIT_OPCODE_WRITE_ONLY, 1, LIMIT_REQUEST_BYTES,
			     PAYLOAD_BYTES);
	return 0;
}

static void write_headers(struct bulk *b, struct rte_mbuf *m, uint32_t offset)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *) - LIMIT_REQUEST_BYTES;
	struct limit_headers *h = (struct limit_headers *)frame;

	memcpy(frame, &b->template, LIMIT_REQUEST_BYTES);
	h->ack_psn = rte_cpu_to_be_32(b->psn++ & LIMIT_PSN_MASK);
	h->reth.va = rte_cpu_to_be_64(offset);
	h->reth.bytes = RTE_BE32(PAYLOAD_BYTES);
	m->data_off -= LIMIT_REQUEST_BYTES;
	m->data_len = LIMIT_REQUEST_BYTES + PAYLOAD_BYTES + LIMIT_ICRC_BYTES;
	m->pkt_len = m->data_len;
}

static void copy_payload(struct bulk *b, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t *payload = frame + LIMIT_REQUEST_BYTES;
	uint32_t state;

	state = wire_icrc_headers(frame + LIMIT_L3_OFFSET, L3_HEADER_BYTES, false);
	state = wire_crc_copy(state, payload, b->source + b->offset, PAYLOAD_BYTES);
	wire_icrc_store(payload + PAYLOAD_BYTES, ~state);
	b->offset = (b->offset + PAYLOAD_BYTES) % b->message_bytes;
}

static void send_burst(struct bulk *b)
{
	struct rte_mbuf *mbufs[BURST];

	if (rte_pktmbuf_alloc_bulk(b->pool, mbufs, BURST))
		return;
	limit_lap(&b->clock, LIMIT_REQUEST_ALLOC);
	for (unsigned int i = 0; i < BURST; i++)
		write_headers(b, mbufs[i], (b->offset + i * PAYLOAD_BYTES) % b->message_bytes);
	limit_lap(&b->clock, LIMIT_REQUEST_HEADERS);
	for (unsigned int i = 0; i < BURST; i++)
		copy_payload(b, mbufs[i]);
	limit_lap(&b->clock, LIMIT_REQUEST_COPY);
	rte_ring_sp_enqueue_bulk(b->ring, (void **)mbufs, BURST, NULL);
	limit_lap(&b->clock, LIMIT_REQUEST_RING);
}

static void place(struct bulk *b, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct limit_headers *h = (const struct limit_headers *)frame;
	uint64_t va = rte_be_to_cpu_64(h->reth.va);
	uint32_t state;

	if (!limit_is_roce(h, LIMIT_OPCODE_WRITE_ONLY) || va > b->message_bytes - PAYLOAD_BYTES) {
		b->wrong++;
		return;
	}
	state = wire_icrc_headers(frame + LIMIT_L3_OFFSET, L3_HEADER_BYTES, false);
	frame += LIMIT_REQUEST_BYTES;
	state = wire_crc_copy(state, b->destination + va, frame, PAYLOAD_BYTES);
	b->wrong += ~state != wire_icrc_load(frame + PAYLOAD_BYTES);
}

static uint64_t receive_burst(struct bulk *b)
{
	struct rte_mbuf *mbufs[BURST];
	unsigned int n = rte_ring_sc_dequeue_burst(b->ring, (void **)mbufs, BURST, NULL);

	limit_lap(&b->clock, LIMIT_ARRIVAL_RING);
	for (unsigned int i = 0; i < n; i++)
		place(b, mbufs[i]);
	limit_lap(&b->clock, LIMIT_ARRIVAL_STORE);
	rte_pktmbuf_free_bulk(mbufs, n);
	limit_lap(&b->clock, LIMIT_ARRIVAL_FREE);
	return n;
}

static uint64_t bulk_step(void *model)
{
	struct bulk *b = model;

	send_burst(b);
	return receive_burst(b) * PAYLOAD_BYTES;
}

static uint64_t copy_step(void *model)
{
	struct bulk *b = model;
	size_t end = b->at + b->message_bytes;

	for (size_t at = b->at; at < end; at += PAYLOAD_BYTES)
		rte_memcpy(b->destination + at, b->source + at, PAYLOAD_BYTES);
	b->copied = RTE_MAX(b->copied, end);
	b->at = end < b->span_bytes ? end : 0;
	return b->message_bytes;
}

static bool came_out_wrong(const struct bulk *b)
{
	return b->wrong || memcmp(b->source, b->destination, b->copied);
}

/* Bytes per second; 0: memory is short; -1: a packet, or the copy, came out wrong. */
static double measure(const struct limit_params *params, uint32_t message_bytes, size_t span_bytes,
		      uint64_t (*step)(void *model))
{
	struct bulk b;
	double rate;

	if (bulk_open(&b, message_bytes, span_bytes))
		return 0;
	rate = limit_measure(params, step, &b);
	if (came_out_wrong(&b))
		rate = -1;
	bulk_close(&b);
	return rate;
}

double limit_copy_bytes_per_s(const struct limit_params *params, uint32_t message_bytes,
			      size_t span_bytes)
{
	return measure(params, message_bytes, span_bytes, copy_step);
}

double limit_bulk_bytes_per_s(const struct limit_params *params)
{
	return measure(params, LIMIT_MESSAGE_BYTES, LIMIT_MESSAGE_BYTES, bulk_step);
}

int limit_bulk_steps(unsigned int ms, struct limit_steps *out)
{
	struct bulk b;
	int ret;

	if (bulk_open(&b, LIMIT_MESSAGE_BYTES, LIMIT_MESSAGE_BYTES))
		return -1;
	ret = limit_measure_steps(ms, bulk_step, &b, &b.clock, PAYLOAD_BYTES, out);
	if (came_out_wrong(&b))
		ret = -1;
	bulk_close(&b);
	return ret;
}
