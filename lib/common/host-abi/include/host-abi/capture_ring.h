/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_CAPTURE_RING_H
#define HOST_ABI_CAPTURE_RING_H
/*
 * Frames on their way from a port to the program that captures them, the reader. The reader
 * provides the memory: a head, then a ring of bytes for each queue of the port. The queue's lcore
 * writes records into its ring and never waits: a frame that finds no room is dropped and counted.
 * The daemon relies on nothing that the reader writes: an impossible tail counts as a full ring.
 *
 * A record is followed by its bytes, and begins at a multiple of 8. It never wraps: a record of
 * CAPTURE_PADDING, or less room than a record has, means that the next one is at the ring's start.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include "base/pcapng.h"

enum {
	CAPTURE_QUEUES_MAX = 8,
	CAPTURE_HEAD_BYTES = 4096,
	CAPTURE_QUEUE_BYTES_MIN = 16 << 10,		      /* some frames of any length */
	CAPTURE_BYTES_MAX = CAPTURE_HEAD_BYTES + (256 << 20), /* of the memory */
};

enum capture_direction {
	CAPTURE_PADDING = 0,
	CAPTURE_IN = 1, /* the values of pcapng's epb_flags */
	CAPTURE_OUT = 2,
};

struct capture_record {
	uint64_t tsc;
	uint32_t captured; /* bytes of the frame that follow ... */
	uint32_t original; /* ... and that it has */
	uint32_t dropped;  /* frames of this queue, since the previous record */
	uint32_t direction;
};
static_assert(sizeof(struct capture_record) == 24, "a multiple of 8");

/* Positions count bytes from the beginning of the capture. */
struct capture_queue {
	uint64_t head;	  /* daemon, atomic: the end of the last record */
	uint64_t dropped; /* daemon, atomic: frames, in all */
	uint8_t pad0[48];
	uint64_t tail; /* reader, atomic: the end of the last record that it has read */
	uint8_t pad1[56];
};

struct capture_head {
	/* Daemon, once, before it answers: */
	uint32_t queues;
	uint32_t reserved;
	uint64_t queue_bytes; /* of each ring; a power of two */
	uint64_t start_tsc, tsc_hz;
	uint64_t start_ns; /* wall clock at start_tsc */
	uint8_t pad[24];
	struct capture_queue queue[CAPTURE_QUEUES_MAX];
	uint8_t pad2[CAPTURE_HEAD_BYTES - 64 - CAPTURE_QUEUES_MAX * sizeof(struct capture_queue)];
};
static_assert(sizeof(struct capture_head) == CAPTURE_HEAD_BYTES, "the rings are page-aligned");

/* Bytes of a record with its frame. */
static inline uint64_t capture_record_bytes(uint32_t captured)
{
	return (sizeof(struct capture_record) + captured + 7) & ~(uint64_t)7;
}

static inline uint8_t *capture_ring(struct capture_head *h, unsigned int queue,
				    uint64_t queue_bytes)
{
	return (uint8_t *)h + CAPTURE_HEAD_BYTES + queue * queue_bytes;
}

/* The oldest record of the queue; NULL: none. For the reader; the record is not consumed until
 * capture_pass(). */
static inline const struct capture_record *capture_next(struct capture_head *h, unsigned int queue)
{
	struct capture_queue *q = &h->queue[queue];
	uint64_t tail = q->tail;

	while (tail != __atomic_load_n(&q->head, __ATOMIC_ACQUIRE)) {
		uint64_t at = tail & (h->queue_bytes - 1), to_end = h->queue_bytes - at;
		const struct capture_record *r =
			(const struct capture_record *)(const void *)(capture_ring(h, queue,
										   h->queue_bytes) +
								      at);

		if (to_end >= sizeof(*r) && r->direction != CAPTURE_PADDING)
			return r;
		tail += to_end;
		__atomic_store_n(&q->tail, tail, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The reader is done with that record, which capture_next() returned. */
static inline void capture_pass(struct capture_head *h, unsigned int queue,
				const struct capture_record *r)
{
	struct capture_queue *q = &h->queue[queue];

	__atomic_store_n(&q->tail, q->tail + capture_record_bytes(r->captured), __ATOMIC_RELEASE);
}

/* Frames dropped so far. */
static inline uint64_t capture_dropped(const struct capture_head *h)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < h->queues; i++)
		n += __atomic_load_n(&h->queue[i].dropped, __ATOMIC_RELAXED);
	return n;
}

/* Wall clock of a record, nanoseconds. */
static inline uint64_t capture_time_ns(const struct capture_head *h, uint64_t tsc)
{
	const uint64_t ns_in_s = 1000000000;
	uint64_t passed = tsc > h->start_tsc ? tsc - h->start_tsc : 0;

	return h->start_ns + passed / h->tsc_hz * ns_in_s +
	       passed % h->tsc_hz * ns_in_s / h->tsc_hz;
}

/* A record as a frame for a file; valid until capture_pass(). */
static inline struct pcapng_frame capture_frame(const struct capture_head *h,
						const struct capture_record *r)
{
	return (struct pcapng_frame){.time_ns = capture_time_ns(h, r->tsc),
				     .bytes = r + 1,
				     .captured = r->captured,
				     .original = r->original,
				     .direction = r->direction,
				     .dropped = r->dropped};
}

#endif
