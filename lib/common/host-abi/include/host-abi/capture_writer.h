/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_CAPTURE_WRITER_H
#define HOST_ABI_CAPTURE_WRITER_H
/*
 * The writer's side of the rings of capture_ring.h: in the daemon, an lcore for each ring. It keeps
 * its position to itself, so that nothing the reader writes can make it write outside the ring.
 */
#include <string.h>
#include <time.h>
#include "host-abi/capture_ring.h"

struct capture_writer {
	uint64_t head; /* bytes, including records that the reader has not been shown yet */
	uint64_t dropped;
	uint32_t dropped_since; /* the last record */
};

/* The size of each of `queues` rings in memory of `bytes` bytes, a power of two; 0: too little
 * memory. */
static inline uint64_t capture_queue_bytes(uint64_t bytes, unsigned int queues)
{
	uint64_t room = bytes > CAPTURE_HEAD_BYTES ? (bytes - CAPTURE_HEAD_BYTES) / queues : 0;

	if (room < CAPTURE_QUEUE_BYTES_MIN)
		return 0;
	return 1ull << (63 - __builtin_clzll(room));
}

/* Fills in the head: the clock is that of the records. Before the first record. */
static inline void capture_head_fill(struct capture_head *h, unsigned int queues,
				     uint64_t queue_bytes, uint64_t tsc, uint64_t tsc_hz)
{
	struct timespec now;

	memset(h, 0, sizeof(*h));
	clock_gettime(CLOCK_REALTIME, &now);
	h->queues = queues;
	h->queue_bytes = queue_bytes;
	h->start_tsc = tsc;
	h->tsc_hz = tsc_hz;
	h->start_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Room for a record of `bytes` bytes in all (capture_record_bytes()), at the ring's start if it
 * would wrap; NULL: there is none. The caller advances w->head by `bytes`. */
static inline struct capture_record *capture_reserve(struct capture_writer *w,
						     struct capture_head *h, unsigned int queue,
						     uint64_t queue_bytes, uint64_t bytes)
{
	uint64_t used = w->head - __atomic_load_n(&h->queue[queue].tail, __ATOMIC_ACQUIRE);
	uint64_t at = w->head & (queue_bytes - 1), to_end = queue_bytes - at;
	uint64_t skip = to_end < bytes ? to_end : 0;
	uint8_t *first = capture_ring(h, queue, queue_bytes);

	if (used > queue_bytes || queue_bytes - used < skip + bytes)
		return NULL;
	if (skip >= sizeof(struct capture_record))
		((struct capture_record *)(void *)(first + at))->direction = CAPTURE_PADDING;
	w->head += skip;
	return (struct capture_record *)(void *)(first + (skip ? 0 : at));
}

/* Shows the reader what has been written and lost up to now. */
static inline void capture_show(const struct capture_writer *w, struct capture_head *h,
				unsigned int queue)
{
	__atomic_store_n(&h->queue[queue].dropped, w->dropped, __ATOMIC_RELAXED);
	__atomic_store_n(&h->queue[queue].head, w->head, __ATOMIC_RELEASE);
}

#endif
