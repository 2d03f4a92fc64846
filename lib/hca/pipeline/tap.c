/* SPDX-License-Identifier: BSD-3-Clause */
/* See tap.h. */
#include <errno.h>
#include <string.h>
#include <rte_cycles.h>
#include "host-abi/capture_element.h"
#include "pipeline/message.h"
#include "pipeline/stepping.h"
#include "pipeline/tap.h"
#include "pipeline/trace.h"
#include "wire/encap.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a description is little-endian"
#endif

_Static_assert((int)CAPTURE_QUEUES_MAX == (int)ENGINES_MAX, "a ring for each engine");

enum { HEADER_BYTES_MAX = WIRE_ENCAP_BYTES_MAX + WIRE_TRANSPORT_BYTES_MAX };

/* A description as it is written. */
struct description {
	struct capture_element element;
	uint8_t headers[HEADER_BYTES_MAX];
};
_Static_assert(offsetof(struct description, headers) == sizeof(struct capture_element), "no gap");

/* ---- the control thread ---- */

static struct tap *free_tap(struct stepping *s)
{
	for (struct tap *t = s->tap; t < s->tap + TAPS_MAX; t++)
		if (!t->ring)
			return t;
	return NULL;
}

int tap_begin(struct engine *engines, unsigned count, enum channel_id channel, void *memory,
	      uint64_t bytes, uint32_t snap)
{
	uint64_t queue_bytes = capture_queue_bytes(bytes, count);

	if (!queue_bytes)
		return -EINVAL;
	if (!free_tap(engines[0].stepping)) /* all have the same */
		return -EBUSY;
	capture_head_fill(memory, count, queue_bytes, rte_rdtsc(), rte_get_tsc_hz());
	for (struct engine *e = engines; e < engines + count; e++) {
		struct tap *t = free_tap(e->stepping);

		*t = (struct tap){.queue_bytes = queue_bytes, .snap = snap, .channel = channel};
		__atomic_store_n(&t->ring, memory, __ATOMIC_RELEASE);
		stepping_watch(e);
	}
	return 0;
}

void tap_end(struct engine *engines, unsigned count, const void *memory)
{
	for (struct engine *e = engines; e < engines + count; e++) {
		for (struct tap *t = e->stepping->tap; t < e->stepping->tap + TAPS_MAX; t++)
			if (t->ring == memory)
				__atomic_store_n(&t->ring, NULL, __ATOMIC_RELEASE);
		stepping_watch(e);
	}
}

bool tap_any(const struct stepping *s)
{
	bool any = false;

	for (unsigned i = 0; i < TAPS_MAX; i++)
		any |= s->tap[i].ring != NULL;
	return any;
}

/* ---- descriptions: the lcore ---- */

/* The headers of a frame. How many bytes; *whole: of all of it, to the ICRC. */
static uint32_t put_frame_headers(uint8_t *to, struct rte_mbuf *m, uint32_t *whole)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct wire_frame f;

	if (wire_parse_frame(frame, m->data_len, &f) != WIRE_OK)
		return 0;
	memcpy(to, frame, f.payload_offset);
	*whole = f.transport_end + WIRE_ICRC_BYTES;
	return f.payload_offset;
}

/* The same for a packet that ReqPktGen has not built yet, with the headers that it will write. */
static uint32_t put_packet_headers(uint8_t *to, const struct packet *p, uint32_t *whole)
{
	struct wire_headers h = p->headers;
	uint32_t bytes;

	h.pad = -p->payload_bytes & 3;
	bytes = wire_write_transport(to, &h);
	*whole = bytes + p->payload_bytes + h.pad + WIRE_ICRC_BYTES;
	return bytes;
}

static bool has_frame(struct rte_mbuf *m, enum channel_id in)
{
	switch (in) {
	case CHANNEL_RPG_TXA:
	case CHANNEL_RESPG_TXA:
	case CHANNEL_HP_RRC:
	case CHANNEL_HP_EE:
	case CHANNEL_EE_RESPG:
		return true;
	default:
		return in == CHANNEL_RRC_RPG && packet_of(m)->flags & PACKET_BUILT;
	}
}

static uint32_t put_headers(struct description *d, struct rte_mbuf *m, enum channel_id in,
			    uint32_t *whole)
{
	uint32_t bytes = 0;

	*whole = 0;
	if (has_frame(m, in)) {
		bytes = put_frame_headers(d->headers, m, whole);
		d->element.layer = bytes ? CAPTURE_LAYER_ETHERNET : CAPTURE_LAYER_NONE;
	} else if (in == CHANNEL_RTC_RPG || in == CHANNEL_RRC_RPG) {
		bytes = put_packet_headers(d->headers, packet_of(m), whole);
		d->element.layer = CAPTURE_LAYER_BTH;
	}
	return bytes;
}

/* How many bytes; *whole: with what there is of the packet. */
static uint32_t describe(struct description *d, const struct engine *e, struct rte_mbuf *m,
			 enum channel_id in, uint32_t *whole)
{
	const struct channel_info *c = &channel_infos[in];
	struct trace_record r;
	uint32_t qpn = trace_describe(m, in, &r), bytes;
	bool is_packet = r.kind == TRACE_PACKET;

	d->element = (struct capture_element){
		.tags = CAPTURE_ELEMENT_TAGS,
		.version = CAPTURE_ELEMENT_VERSION,
		.kind = r.kind,
		.opcode = is_packet ? r.opcode : CAPTURE_ELEMENT_NONE8,
		.qpn = qpn,
		.psn = is_packet ? r.psn : CAPTURE_ELEMENT_NONE32,
		.wqe = r.wqe,
		.length = is_packet ? r.bytes : r.message_bytes,
		.engine = e->index,
	};
	memccpy(d->element.channel, c->name, 0, sizeof(d->element.channel));
	memccpy(d->element.producer, module_infos[c->producer].name, 0,
		sizeof(d->element.producer));
	memccpy(d->element.consumer, module_infos[c->consumer].name, 0,
		sizeof(d->element.consumer));
	bytes = put_headers(d, m, in, whole);
	*whole += sizeof(d->element);
	return sizeof(d->element) + bytes;
}

/* ---- captures: the lcore ---- */

/* Writes the next record, if there is room; the reader is shown it later. */
static void tap_put(const struct tap *t, void *ring, struct capture_writer *w,
		    const struct engine *e, const struct description *d,
		    struct capture_record record)
{
	struct capture_record *r;

	if (t->snap)
		record.captured = RTE_MIN(record.captured, t->snap);
	r = capture_reserve(w, ring, e->index, t->queue_bytes,
			    capture_record_bytes(record.captured));
	if (!r) {
		w->dropped++;
		w->dropped_since++;
		return;
	}
	record.dropped = w->dropped_since;
	w->dropped_since = 0;
	*r = record;
	memcpy(r + 1, d, record.captured);
	w->head += capture_record_bytes(record.captured);
}

/* The memory of a capture of the channel, or NULL. Read once: tap_end() takes it away at any time,
 * but leaves it mapped until all lcores have passed a quiescent state. */
static void *ring_of(const struct tap *t, enum channel_id in)
{
	void *ring = __atomic_load_n(&t->ring, __ATOMIC_ACQUIRE);

	return ring && t->channel == in ? ring : NULL;
}

static void tap_put_burst(struct tap *t, void *ring, const struct engine *e,
			  struct rte_mbuf *const *m, unsigned n)
{
	struct capture_record record = {.tsc = rte_rdtsc(), .direction = CAPTURE_IN};
	struct capture_writer w = t->writer;
	struct description d;

	for (unsigned i = 0; i < n; i++) {
		record.captured = describe(&d, e, m[i], t->channel, &record.original);
		tap_put(t, ring, &w, e, &d, record);
		t->after[i] = w;
	}
	t->offered = n;
}

void tap_offer(struct engine *e, enum channel_id in, struct rte_mbuf *const *m, unsigned n)
{
	for (struct tap *t = e->stepping->tap; t < e->stepping->tap + TAPS_MAX; t++) {
		void *ring = ring_of(t, in);

		if (ring)
			tap_put_burst(t, ring, e, m, n);
	}
}

void tap_settle(struct engine *e, enum channel_id in, unsigned n)
{
	for (struct tap *t = e->stepping->tap; t < e->stepping->tap + TAPS_MAX; t++) {
		void *ring = ring_of(t, in);

		if (!ring)
			continue;
		if (n && n <= t->offered) { /* otherwise it began meanwhile */
			t->writer = t->after[n - 1];
			capture_show(&t->writer, ring, e->index);
		}
		t->offered = 0;
	}
}

/* The channels to the module that are captured, by bit. */
static uint32_t tapped_of(const struct engine *e, enum module_id id)
{
	uint32_t channels = 0;

	for (const struct tap *t = e->stepping->tap; t < e->stepping->tap + TAPS_MAX; t++)
		if (__atomic_load_n(&t->ring, __ATOMIC_ACQUIRE) &&
		    channel_infos[t->channel].consumer == id)
			channels |= 1u << t->channel;
	return channels;
}

/* The module finds in its channel what is there now, and nothing that comes meanwhile. Returns how
 * many. */
static unsigned open_gate(struct engine *e, enum channel_id in)
{
	const struct rte_ring *ring = e->channel[in].ring;
	uint32_t first = ring->cons.tail;
	unsigned n = RTE_MIN(ring_put_count(ring) - first, (uint32_t)BURST);
	struct rte_mbuf *m[BURST];

	for (unsigned i = 0; i < n; i++)
		m[i] = ring_slots(ring)[(first + i) & ring->mask];
	if (n) {
		tap_offer(e, in, m, n);
		ring_put(e->stepping->gate[in], (void *const *)m, n);
	}
	e->channel[in].in = e->stepping->gate[in];
	return n;
}

static void close_gate(struct engine *e, enum channel_id in, unsigned offered)
{
	struct rte_mbuf *m[BURST];
	unsigned taken = offered - ring_take(e->stepping->gate[in], (void **)m, BURST);

	e->channel[in].in = e->channel[in].ring;
	ring_take(e->channel[in].ring, (void **)m, taken);
	tap_settle(e, in, taken);
}

unsigned tap_run(struct engine *e, enum module_id id, unsigned (*poll)(struct engine *e))
{
	uint32_t tapped = tapped_of(e, id);
	unsigned offered[CHANNEL_COUNT] = {0}, n;

	if (!tapped)
		return module_run_measured(e, id, poll);
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		if (tapped & 1u << i)
			offered[i] = open_gate(e, i);
	n = module_run_measured(e, id, poll);
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		if (tapped & 1u << i)
			close_gate(e, i, offered[i]);
	return n;
}
