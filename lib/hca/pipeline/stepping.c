/* SPDX-License-Identifier: BSD-3-Clause */
/* See stepping.h. */
#include <errno.h>
#include <string.h>
#include <rte_cycles.h>
#include "pipeline/module_run.h"
#include "pipeline/stepping.h"
#include "pipeline/tap.h"
#include "pipeline/trace.h"

enum { GATE_SLOTS = 2 * BURST }; /* a ring has one place less, and a power of two */

/* ---- the control thread ---- */

int stepping_create(struct engine *e)
{
	const unsigned flags = RING_F_SP_ENQ | RING_F_SC_DEQ;
	const size_t gate_bytes = rte_ring_get_memsize(GATE_SLOTS);
	const size_t head_bytes = RTE_ALIGN_CEIL(sizeof(struct stepping), RTE_CACHE_LINE_SIZE);
	uint8_t *memory = engine_alloc(e, "stepping", head_bytes + CHANNEL_COUNT * gate_bytes);

	e->stepping = (struct stepping *)memory;
	if (!memory)
		return -ENOMEM;
	for (unsigned i = 0; i < CHANNEL_COUNT; i++) {
		e->stepping->gate[i] = (struct rte_ring *)(memory + head_bytes + i * gate_bytes);
		rte_ring_init(e->stepping->gate[i], channel_infos[i].name, GATE_SLOTS, flags);
	}
	return 0;
}

void stepping_destroy(struct engine *e)
{
	rte_free(e->stepping);
	e->stepping = NULL;
}

void stepping_watch(struct engine *e)
{
	const struct stepping *s = e->stepping;

	engine_watch(e, WATCH_STEPPED, s->standing || s->trace || tap_any(s));
}

void stepping_set(struct engine *e, uint32_t modules)
{
	__atomic_store_n(&e->stepping->standing, modules, __ATOMIC_RELAXED);
	stepping_watch(e);
}

void engine_stop_time(struct engine *e)
{
	engine_watch(e, WATCH_TIME_STANDS, true);
}

void engine_start_time(struct engine *e)
{
	engine_watch(e, WATCH_TIME_STANDS, false);
}

void stepping_ask(struct engine *e, enum module_id id, uint32_t steps)
{
	struct stepping *s = e->stepping;

	s->module = id;
	__atomic_store_n(&s->asked, steps, __ATOMIC_RELEASE);
}

bool stepping_done(const struct engine *e, struct step_report *report)
{
	const struct stepping *s = e->stepping;

	if (__atomic_load_n(&s->asked, __ATOMIC_ACQUIRE))
		return false;
	*report = s->report;
	return true;
}

/* ---- the lcore ---- */

/* While the gates are closed, the module's channels seem empty. */
static void set_gates(struct engine *e, enum module_id id, bool closed)
{
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		if (channel_infos[i].consumer == id)
			e->channel[i].in = closed ? e->stepping->gate[i] : e->channel[i].ring;
}

static uint64_t put_in_all(const struct engine *e, enum module_id id)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		if (channel_infos[i].producer == id)
			n += __atomic_load_n(&e->channel[i].put, __ATOMIC_RELAXED);
	return n;
}

/* If so, what was put into it can be read. */
static bool is_filled(const struct rte_ring *r)
{
	return ring_put_count(r) != r->cons.tail;
}

/* A channel to the module with something in it; those that come later in the table have their turn
 * when these are empty. CHANNEL_COUNT: all are empty. */
static enum channel_id first_filled(const struct engine *e, enum module_id id)
{
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		if (channel_infos[i].consumer == id && is_filled(e->channel[i].ring))
			return i;
	return CHANNEL_COUNT;
}

static struct rte_mbuf *head_of(const struct rte_ring *r)
{
	return ring_slots(r)[r->cons.tail & r->mask];
}

/* Polls with one element of that channel. Has it been taken? */
static bool stepping_offer(struct engine *e, enum channel_id from,
			   unsigned (*poll)(struct engine *e), struct step_report *report)
{
	struct rte_ring *ring = e->channel[from].ring, *gate = e->stepping->gate[from];
	void *m = head_of(ring);
	struct rte_mbuf *offered = m;
	struct step_element element;
	unsigned n;

	element.qpn = trace_describe(m, from, &element.what);
	tap_offer(e, from, &offered, 1);
	ring_put(gate, &m, 1);
	n = poll(e);
	if (ring_take(gate, &m, 1)) {
		tap_settle(e, from, 0);
		return false;
	}
	ring_take(ring, &m, 1);
	tap_settle(e, from, 1);
	report->elements += n;
	report->last = element;
	return true;
}

/* What the module holds goes first: the rest of a message, a queue pair's turn, a doorbell or a
 * frame from outside. False: there is nothing to do, or no room for it. */
static bool step_once(struct engine *e, enum module_id id, unsigned (*poll)(struct engine *e),
		      struct step_report *report)
{
	uint64_t before = put_in_all(e, id);
	unsigned n = poll(e);
	enum channel_id from;

	report->elements += n;
	if (n || put_in_all(e, id) != before)
		return true;
	from = first_filled(e, id);
	return from != CHANNEL_COUNT && stepping_offer(e, from, poll, report);
}

/* What passed through the module's channels: sign -1 before it, +1 after. */
static void count_moves(const struct engine *e, enum module_id id, uint32_t sign,
			struct step_report *report)
{
	for (unsigned i = 0; i < CHANNEL_COUNT; i++) {
		const struct channel *c = &e->channel[i];

		if (channel_infos[i].consumer == id)
			report->taken[i] += sign * (uint32_t)c->taken;
		if (channel_infos[i].producer == id)
			report->put[i] +=
				sign * (uint32_t)__atomic_load_n(&c->put, __ATOMIC_RELAXED);
	}
}

static unsigned run_steps(struct engine *e, enum module_id id, unsigned (*poll)(struct engine *e),
			  uint32_t steps)
{
	struct stepping *s = e->stepping;
	struct step_report report = {0};

	count_moves(e, id, -1u, &report);
	set_gates(e, id, true);
	__atomic_store_n(&e->source_burst, 1, __ATOMIC_RELAXED);
	while (report.steps < steps && step_once(e, id, poll, &report))
		report.steps++;
	__atomic_store_n(&e->source_burst, BURST, __ATOMIC_RELAXED);
	set_gates(e, id, false);
	count_moves(e, id, 1, &report);
	s->report = report;
	__atomic_store_n(&s->asked, 0, __ATOMIC_RELEASE);
	return report.elements;
}

/* The wake list from which a module releases queue pairs that leave; WAKE_COUNT: it holds none. */
static enum wake_target wakes_of(enum module_id id)
{
	switch (id) {
	case MODULE_WS:
		return WAKE_WS;
	case MODULE_RTC:
		return WAKE_RTC;
	case MODULE_RRC:
		return WAKE_RRC;
	case MODULE_EE:
		return WAKE_EE;
	default:
		return WAKE_COUNT;
	}
}

static unsigned stand(struct engine *e, enum module_id id, unsigned (*poll)(struct engine *e))
{
	struct stepping *s = e->stepping;
	uint32_t steps = __atomic_load_n(&s->asked, __ATOMIC_ACQUIRE);
	unsigned n;

	if (steps && s->module == id)
		return run_steps(e, id, poll, steps);
	if (!__atomic_load_n(&e->releasing, __ATOMIC_ACQUIRE) || wakes_of(id) == WAKE_COUNT)
		return 0;
	set_gates(e, id, true);
	n = poll(e);
	set_gates(e, id, false);
	return n;
}

unsigned module_run_measured(struct engine *e, enum module_id id,
			     unsigned (*poll)(struct engine *e))
{
	struct module_run *r = &e->run[id];
	uint64_t before, cycles;
	unsigned n;

	if (!(__atomic_load_n(&e->watched, __ATOMIC_RELAXED) & WATCH_TIMED))
		return poll(e);
	before = rte_rdtsc();
	n = poll(e);
	cycles = rte_rdtsc() - before;
	__atomic_store_n(&r->polls, r->polls + 1, __ATOMIC_RELAXED);
	if (!n) {
		__atomic_store_n(&r->idle_cycles, r->idle_cycles + cycles, __ATOMIC_RELAXED);
		return 0;
	}
	__atomic_store_n(&r->busy_polls, r->busy_polls + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&r->elements, r->elements + n, __ATOMIC_RELAXED);
	__atomic_store_n(&r->cycles, r->cycles + cycles, __ATOMIC_RELAXED);
	return n;
}

unsigned module_run_watched(struct engine *e, enum module_id id, unsigned (*poll)(struct engine *e))
{
	struct trace *trace;

	if (__atomic_load_n(&e->stepping->standing, __ATOMIC_RELAXED) & 1u << id)
		return stand(e, id, poll);
	trace = __atomic_load_n(&e->stepping->trace, __ATOMIC_ACQUIRE);
	if (trace)
		return trace_run(e, trace, id, poll);
	return tap_run(e, id, poll);
}
