/* SPDX-License-Identifier: BSD-3-Clause */
/* See trace.h. */
#include <errno.h>
#include <rte_cycles.h>
#include "pipeline/message.h"
#include "pipeline/stepping.h"
#include "pipeline/tap.h"
#include "pipeline/trace.h"
#include "wire/encap.h"

enum { CANDIDATES_MAX = 2 * BURST };

/* Something of the queue pair that lies in a channel. */
struct candidate {
	uint32_t index; /* as the channel counts them */
	struct trace_record record;
};

/* ---- the control thread ---- */

int trace_begin(struct engine *e, uint32_t qpn)
{
	struct trace *t;

	if (e->stepping->trace)
		return -EBUSY;
	t = engine_alloc(e, "trace", sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->qpn = qpn;
	__atomic_store_n(&e->stepping->trace, t, __ATOMIC_RELEASE);
	stepping_watch(e);
	return 0;
}

struct trace *trace_end(struct engine *e)
{
	struct trace *t = e->stepping->trace;

	__atomic_store_n(&e->stepping->trace, NULL, __ATOMIC_RELEASE);
	stepping_watch(e);
	return t;
}

/* ---- the lcore ---- */

static struct trace_record of_headers(const struct wire_headers *h, uint32_t bytes, uint32_t wqe)
{
	return (struct trace_record){.kind = TRACE_PACKET,
				     .psn = h->psn,
				     .opcode = h->opcode,
				     .bytes = (uint16_t)bytes,
				     .wqe = wqe};
}

/* Only its frame knows its headers. */
static struct trace_record of_response(struct rte_mbuf *m)
{
	struct wire_frame f = {0};

	wire_parse_frame(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &f);
	return of_headers(&f.h, packet_of(m)->payload_bytes, TRACE_NO_WQE);
}

static struct trace_record of_request(const struct request *r, enum channel_id in)
{
	bool parsed = in == CHANNEL_WP_DP || in == CHANNEL_DP_RTC || in == CHANNEL_RTC_RRC;

	return (struct trace_record){.kind = TRACE_REQUEST,
				     .wqe = r->wqe_offset,
				     .message_bytes = parsed ? r->length : 0};
}

uint32_t trace_describe(struct rte_mbuf *m, enum channel_id in, struct trace_record *r)
{
	switch (in) {
	case CHANNEL_RTC_RPG:
	case CHANNEL_RRC_RPG:
	case CHANNEL_RPG_TXA:
		*r = of_headers(&packet_of(m)->headers, packet_of(m)->payload_bytes,
				packet_of(m)->wqe_offset);
		return packet_of(m)->qpn;
	case CHANNEL_RESPG_TXA:
		*r = of_response(m);
		return packet_of(m)->qpn;
	case CHANNEL_HP_RRC:
	case CHANNEL_HP_EE:
	case CHANNEL_EE_RESPG:
		*r = of_headers(&arrival_of(m)->headers, arrival_of(m)->payload_bytes,
				TRACE_NO_WQE);
		return arrival_of(m)->qpn;
	case CHANNEL_RTC_TC:
	case CHANNEL_RRC_TC:
	case CHANNEL_TC_RRC:
		*r = (struct trace_record){.kind = TRACE_TIMER, .wqe = TRACE_NO_WQE};
		return timer_event_of(m)->qpn;
	default:
		*r = of_request(request_of(m), in);
		return request_of(m)->qpn;
	}
}

/* Those of the queue pair among [from, to) of a channel. Returns how many there are with them. */
static unsigned find(const struct engine *e, uint32_t qpn, enum channel_id in, uint32_t from,
		     uint32_t to, struct candidate *c, unsigned n)
{
	const struct rte_ring *r = e->channel[in].ring;

	for (uint32_t i = from; i != to && n < CANDIDATES_MAX; i++) {
		struct rte_mbuf *m = __atomic_load_n(&ring_slots(r)[i & r->mask], __ATOMIC_RELAXED);

		if (trace_describe(m, in, &c[n].record) != qpn)
			continue;
		c[n].record.channel = (uint8_t)in;
		c[n++].index = i;
	}
	return n;
}

/* Finds what the module may take now; until it does, nothing else touches these elements. */
static unsigned find_inputs(const struct engine *e, uint32_t qpn, enum module_id id,
			    struct candidate *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CHANNEL_COUNT; i++) {
		const struct rte_ring *r = e->channel[i].ring;

		if (channel_infos[i].consumer == id)
			n = find(e, qpn, i, r->cons.tail, ring_put_count(r), c, n);
	}
	return n;
}

static void record(struct trace *t, enum module_id id, const struct trace_record *r, uint64_t tsc,
		   uint64_t cycles)
{
	struct trace_stage *s = &t->stage[module_infos[id].stage];
	struct trace_record *to = &s->record[s->count];

	if (s->count == TRACE_RECORDS_MAX)
		return;
	*to = *r;
	to->module = (uint8_t)id;
	to->tsc = tsc;
	to->cycles = (uint32_t)RTE_MIN(cycles, (uint64_t)UINT32_MAX);
	__atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELEASE);
}

static bool brings_in(enum module_id id)
{
	return id == MODULE_DBP || id == MODULE_HP;
}

/* Records what came from outside. What was read may be anything if the consumer, on another lcore,
 * has taken it already: then it is left out. */
static void record_brought(struct engine *e, struct trace *t, enum module_id id,
			   const uint32_t put[CHANNEL_COUNT], uint64_t tsc, uint64_t cycles)
{
	struct candidate c[CANDIDATES_MAX];

	for (unsigned i = 0; i < CHANNEL_COUNT; i++) {
		const struct rte_ring *r = e->channel[i].ring;
		unsigned n;

		if (channel_infos[i].producer != id)
			continue;
		n = find(e, t->qpn, i, put[i], ring_put_count(r), c, 0);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		for (unsigned k = 0; k < n; k++)
			if (!ring_taken_to(r, c[k].index + 1))
				record(t, id, &c[k].record, tsc, cycles);
	}
}

unsigned trace_run(struct engine *e, struct trace *t, enum module_id id,
		   unsigned (*poll)(struct engine *e))
{
	struct candidate c[CANDIDATES_MAX];
	unsigned there = find_inputs(e, t->qpn, id, c), n;
	uint32_t put[CHANNEL_COUNT];
	uint64_t begin, cycles;

	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		put[i] = ring_put_count(e->channel[i].ring);
	begin = rte_rdtsc();
	n = tap_run(e, id, poll);
	cycles = rte_rdtsc() - begin;
	for (unsigned i = 0; i < there; i++)
		if (ring_taken_to(e->channel[c[i].record.channel].ring, c[i].index + 1))
			record(t, id, &c[i].record, begin, cycles);
	if (brings_in(id))
		record_brought(e, t, id, put, begin, cycles);
	return n;
}
