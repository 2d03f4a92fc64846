/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies frames into the rings of captures on the queue's lcore; begins and ends captures on the
 * control thread. See capture.h. */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "base/limits.h"
#include "capture.h"
#include "pipeline/icrc.h"
#include "pipeline/train.h"
#include "port_internal.h"
#include "wire/run.h"

_Static_assert((int)CAPTURE_QUEUES_MAX == (int)PORT_QUEUES_MAX, "a ring for each queue");

/* ---- the queue's lcore ---- */

/*
 * Writes packet `index` of a frame, of which a train has several, as it would look on a wire: with
 * its ICRC, and with the payload itself where the frame has a reference to it, which must not leave
 * the daemon. Returns the number of valid bytes in `whole`: if the payload is gone, because its
 * queue pair has failed since, only those in front of it; 0: the frame is not valid.
 */
static uint32_t make_whole(const struct capture *c, const struct rte_mbuf *m, uint32_t index,
			   uint8_t whole[FRAME_BYTES_MAX])
{
	struct wire_frame f;
	uint32_t skip;

	if (m->data_len > FRAME_BYTES_MAX || !train_write_packet(whole, m, index, &skip))
		return 0;
	if (m->ol_flags & PAYLOAD_REF) {
		if (wire_parse_frame(whole, m->data_len, &f) != WIRE_OK)
			return 0;
		if (!c->payload ||
		    !c->payload(rte_pktmbuf_mtod_offset(m, const uint8_t *, f.payload_offset), skip,
				whole + f.payload_offset, f.payload_bytes))
			return f.payload_offset;
		memset(whole + f.payload_offset + f.payload_bytes, 0, f.h.pad);
	}
	if (m->ol_flags & ICRC_OMITTED)
		icrc_put(whole, m->data_len);
	return m->data_len;
}

/* Copies packet `index` of a frame. Returns the number of valid bytes in the copy. */
static uint32_t copy_bytes(const struct capture *c, const struct rte_mbuf *m, uint32_t index,
			   uint8_t *copy, uint32_t captured)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint8_t whole[FRAME_BYTES_MAX];

	if (unlikely(m->ol_flags & FRAME_MARKS)) {
		captured = RTE_MIN(captured, make_whole(c, m, index, whole));
		frame = whole;
	}
	memcpy(copy, frame, captured);
	return captured;
}

static bool copy_packet(struct capture *c, struct capture_head *ring, uint16_t queue,
			const struct rte_mbuf *m, uint32_t index, struct capture_record record)
{
	struct capture_writer *w = &c->queue[queue].writer;
	struct capture_record *r;

	record.original = m->data_len;
	record.captured = RTE_MIN(record.original, c->snap);
	r = capture_reserve(w, ring, queue, c->queue_bytes, capture_record_bytes(record.captured));
	if (!r) {
		w->dropped_since++;
		w->dropped++;
		return false;
	}
	record.captured = copy_bytes(c, m, index, (uint8_t *)(r + 1), record.captured);
	record.dropped = w->dropped_since;
	w->dropped_since = 0;
	*r = record;
	w->head += capture_record_bytes(record.captured);
	return true;
}

/* Writes a record for each packet of a frame. Returns how many found room in the ring. */
static uint32_t copy_frame(struct capture *c, struct capture_head *ring, uint16_t queue,
			   const struct rte_mbuf *m, const struct capture_record *record)
{
	uint32_t copied = 0, packets = frame_packets(m);

	for (uint32_t i = 0; i < packets; i++)
		copied += copy_packet(c, ring, queue, m, i, *record);
	return copied;
}

void capture_frames(struct port_queue *q, struct rte_mbuf *const *frames, uint16_t n,
		    enum capture_direction direction)
{
	const struct capture_record record = {.tsc = rte_rdtsc(), .direction = direction};

	for (unsigned int i = 0; i < PORT_CAPTURES_MAX; i++) {
		struct capture *c = &q->port->captures[i];
		struct capture_head *ring = __atomic_load_n(&c->ring, __ATOMIC_ACQUIRE);
		uint32_t copied = 0;

		if (!ring)
			continue;
		for (uint16_t k = 0; k < n; k++)
			copied += copy_frame(c, ring, q->id, frames[k], &record);
		capture_show(&c->queue[q->id].writer, ring, q->id);
		queue_count(q, PORT_COUNTER_captured, copied);
		queue_count(q, PORT_COUNTER_capture_missed, frames_packets(frames, n) - copied);
	}
}

/* ---- control thread ---- */

static void set_captured(struct port *port)
{
	bool any = false;

	for (unsigned int i = 0; i < PORT_CAPTURES_MAX; i++)
		any |= port->captures[i].ring != NULL;
	for (unsigned int i = 0; i < port->config.queues; i++)
		__atomic_store_n(&port->queue[i].captured, any, __ATOMIC_RELEASE);
}

int port_capture_begin(struct port *port, void *memory, uint64_t bytes, uint32_t snap,
		       port_payload *payload)
{
	uint64_t queue_bytes = capture_queue_bytes(bytes, port->config.queues);
	struct capture *c = port->captures;

	if (!queue_bytes)
		return -EINVAL;
	while (c < port->captures + PORT_CAPTURES_MAX && c->ring)
		c++;
	if (c == port->captures + PORT_CAPTURES_MAX)
		return -EBUSY;
	c->queue_bytes = queue_bytes;
	c->snap = snap ? snap : UINT32_MAX;
	c->payload = payload;
	memset(c->queue, 0, sizeof(c->queue));
	capture_head_fill(memory, port->config.queues, queue_bytes, rte_rdtsc(), rte_get_tsc_hz());
	__atomic_store_n(&c->ring, memory, __ATOMIC_RELEASE);
	set_captured(port);
	return 0;
}

void port_capture_end(struct port *port, const void *memory)
{
	for (unsigned int i = 0; i < PORT_CAPTURES_MAX; i++) {
		if (port->captures[i].ring == memory)
			__atomic_store_n(&port->captures[i].ring, NULL, __ATOMIC_RELEASE);
	}
	set_captured(port);
}
