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
#include "wire/train.h"

_Static_assert((int)CAPTURE_QUEUES_MAX == (int)PORT_QUEUES_MAX, "a ring for each queue");

/* ---- the queue's lcore ---- */

/* Copies the packet number `index` of a frame that refers to its payload, and in place of the reference, which is
 * nobody's business outside of the daemon, the payload, once it is known to be what was sent. Returns how
 * many bytes of the copy are true: fewer than `captured` if the payload is gone, as it may be if its queue
 * pair has failed. */
static uint32_t copy_referring(const struct capture *c, const struct rte_mbuf *m, uint32_t index,
			       uint8_t *copy, uint32_t captured)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint8_t headers[HEADROOM_BYTES], payload[MTU_BYTES_MAX];
	uint32_t bytes, end, packets = frame_packets(m);
	struct wire_frame f;

	if (wire_parse_frame(frame, m->data_len, &f) != WIRE_OK ||
	    f.payload_offset > sizeof(headers))
		return 0;
	memcpy(headers, frame, f.payload_offset);
	wire_take_place(headers, &f, index, index + 1 == packets);
	memcpy(copy, headers, RTE_MIN(captured, (uint32_t)f.payload_offset));
	if (captured <= f.payload_offset)
		return captured;
	bytes = RTE_MIN(captured - f.payload_offset, (uint32_t)f.payload_bytes);
	if (!c->payload || bytes > sizeof(payload) ||
	    !c->payload(frame + f.payload_offset, index * f.payload_bytes, payload, bytes))
		return f.payload_offset;
	end = f.payload_offset + bytes;
	memcpy(copy + f.payload_offset, payload, bytes);
	memset(copy + end, 0, captured - end); /* the pad; the ICRC follows */
	return captured < m->data_len ? RTE_MIN(captured, m->data_len - (uint32_t)WIRE_ICRC_BYTES)
				      : captured;
}

/* Copies a packet of a frame, with what a sender of this daemon has left out. Returns how many bytes of the
 * copy are true. */
static uint32_t copy_bytes(const struct capture *c, const struct rte_mbuf *m, uint32_t index,
			   uint8_t *copy, uint32_t captured)
{
	if (unlikely(m->ol_flags & PAYLOAD_REF))
		captured = copy_referring(c, m, index, copy, captured);
	else
		memcpy(copy, rte_pktmbuf_mtod(m, const void *), captured);
	if (m->ol_flags & FRAME_MARKS && captured == m->data_len)
		icrc_put(copy, captured);
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

/* A record for each packet. Returns how many found room. */
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
