/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request scheduler (doc/virt-to-phys.md#request-scheduler), the part of mpt_ram_ctl that deals
 * with pending requests in the design, and mtt_req_scheduler: requests that cannot be answered at
 * once wait here, one for each channel of a port, and are completed at the beginning of the stage's
 * next poll. Runs on the stage's lcore; never waits.
 *
 * Requests that want pages are served in two queues, reading and writing, so that one whose pages
 * are held does not hold up the other kind. No descriptor is read through them
 * (doc/virt-to-phys.md#pending-requests).
 */
#include "base/assert.h"
#include "v2p_priv.h"

/* mpt_rd_req_parser, mpt_wr_req_parser: the queue of a request. */
static enum mtt_class class_of(const struct v2p_slot *s)
{
	return s->access.rights & (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)
		       ? MTT_WRITE
		       : MTT_READ;
}

static bool same_access(const struct v2p_access *a, const struct v2p_access *b)
{
	return a->pd == b->pd && a->qpn == b->qpn && a->key == b->key && a->va == b->va &&
	       a->length == b->length && a->rights == b->rights;
}

static uint64_t generation(const struct v2p *v)
{
	return __atomic_load_n(&v->generation, __ATOMIC_ACQUIRE);
}

static void scheduler_finish(struct v2p_slot *s, enum v2p_state result)
{
	s->result = result;
	s->state = V2P_SLOT_DONE;
}

static struct mtt_queue *queue_of(struct v2p_port *port, enum v2p_channel channel)
{
	return &port->mtt[class_of(&port->slot[channel])];
}

/* The request waits in its channel's place. */
static enum v2p_state pend(struct v2p_port *port, enum v2p_channel channel)
{
	port->pending |= (uint8_t)(1u << channel);
	count(port->counters, COUNTER_v2p_pending);
	return V2P_PENDING;
}

static void enqueue(struct v2p_port *port, enum v2p_channel channel)
{
	struct mtt_queue *q = queue_of(port, channel);

	ASSERT(q->count < V2P_CHANNELS);
	q->channel[(q->first + q->count++) % V2P_CHANNELS] = (uint8_t)channel;
}

/* The entry is there: match, and on to the pages if it has some. */
static void match(struct v2p_port *port, enum v2p_channel channel)
{
	struct v2p_slot *s = &port->slot[channel];
	bool translates = !(s->access.rights & V2P_CHECK_ONLY);
	union mpt_line m;
	enum v2p_state r;

	memcpy(m.words, s->entry, sizeof(s->entry));
	if (m.entry.flags & MPT_CHANGES)
		r = changing_check(&m.entry, &s->access, &s->offset);
	else
		r = mpt_check(m.words, &s->access, &s->offset);
	s->addr = NULL;
	s->run = s->access.length;
	if (r == V2P_SUCCESS && translates && m.entry.flags & MPT_PAGES) {
		s->state = V2P_SLOT_MTT;
		enqueue(port, channel);
		return;
	}
	if (r == V2P_SUCCESS && m.entry.flags & MPT_NULL)
		s->addr = null_map(port->v2p, s->access.rights, &s->run);
	else if (r == V2P_SUCCESS && !(m.entry.flags & MPT_PAGES))
		s->addr = m.entry.phys + s->offset;
	scheduler_finish(s, r);
}

/* A pending request's turn: the entry comes from the cache or, as a refill, from memory. */
static void serve_mpt(struct v2p_port *port, enum v2p_channel channel)
{
	struct v2p_slot *s = &port->slot[channel];
	enum v2p_state r;

	s->generation = generation(port->v2p);
	r = mpt_try(port, s->access.key, s->entry, true);
	if (r == V2P_SUCCESS)
		match(port, channel);
	else if (r != V2P_PENDING) /* another lcore holds the set: at the next poll */
		scheduler_finish(s, r);
}

/* The request at the head of a queue. False: it is blocked, and with it the queue. */
static bool serve_mtt(struct v2p_port *port, struct mtt_queue *q)
{
	struct v2p_slot *s = &port->slot[q->channel[q->first]];
	union mpt_line m;
	enum v2p_state r;

	memcpy(m.words, s->entry, sizeof(s->entry));
	r = mtt_map(port, &m.entry, s->offset, s->access.length, &s->addr, &s->run);
	if (m.entry.flags & MPT_FAST && r != V2P_PENDING) {
		enum v2p_state still = changing_still(port->v2p, &m.entry);

		r = still == V2P_SUCCESS ? r : still;
	}
	if (r == V2P_PENDING)
		return false;
	q->first = (q->first + 1) % V2P_CHANNELS;
	q->count--;
	scheduler_finish(s, r);
	return true;
}

unsigned v2p_poll_pending(struct v2p_port *port)
{
	unsigned done = 0;

	/* CEU first, the others in turn, each once. */
	if (port->slot[V2P_CEU].state == V2P_SLOT_MPT)
		serve_mpt(port, V2P_CEU);
	for (unsigned i = 1; i < V2P_CHANNELS; i++) {
		unsigned c = 1 + (port->selected + i - 1) % (V2P_CHANNELS - 1);

		if (port->slot[c].state == V2P_SLOT_MPT)
			serve_mpt(port, (enum v2p_channel)c);
	}
	port->selected = port->selected % (V2P_CHANNELS - 1) + 1;
	for (unsigned i = 0; i < MTT_CLASSES; i++) {
		struct mtt_queue *q = &port->mtt[(port->mtt_selected + i) % MTT_CLASSES];

		while (q->count && serve_mtt(port, q))
			;
	}
	port->mtt_selected = (port->mtt_selected + 1) % MTT_CLASSES;
	for (unsigned c = 0; c < V2P_CHANNELS; c++) {
		unsigned is_done = port->slot[c].state == V2P_SLOT_DONE && port->pending >> c & 1;

		port->pending &= (uint8_t) ~(is_done << c);
		done += is_done;
	}
	return done;
}

/* The pending request of the channel was completed. Is it this one, and still true? */
static bool take_result(struct v2p_port *port, struct v2p_slot *s, bool same, uint8_t **addr,
			uint64_t *run, enum v2p_state *result)
{
	s->state = V2P_SLOT_IDLE;
	if (!same || s->generation != generation(port->v2p))
		return false;
	*addr = s->addr;
	*run = s->run;
	*result = s->result;
	return true;
}

/* The request and the entry that it has found are in its channel's place. */
static enum v2p_state scheduler_answer(struct v2p_port *port, enum v2p_channel channel,
				       uint8_t **addr, uint64_t *run)
{
	struct v2p_slot *s = &port->slot[channel];

	match(port, channel);
	if (s->state == V2P_SLOT_MTT) {
		struct mtt_queue *q = queue_of(port, channel);

		if (q->count > 1 || !serve_mtt(port, q)) /* not before what waits already */
			return pend(port, channel);
	}
	s->state = V2P_SLOT_IDLE;
	*addr = s->addr;
	*run = s->run;
	return s->result;
}

/* Does the entry alone decide? Most requests on the slow path are misses of such entries. */
static inline bool scheduler_is_plain(const union mpt_line *m)
{
	return !(m->entry.flags & MPT_NOT_PLAIN);
}

/* True if the entry is cached and plain; *r is the answer. Such a request, which is refused or met
 * the entry just as it changed, need not wait for the one in its channel's slot. */
static bool retry_cached(const struct v2p *v, const struct v2p_access *a, uint8_t **addr,
			 enum v2p_state *r)
{
	union mpt_line m;
	uint64_t offset;

	if (!mpt_find(&v->mpt_cache, v2p_index(v, a->key), m.words) || !scheduler_is_plain(&m))
		return false;
	*r = mpt_check(m.words, a, &offset);
	if (*r == V2P_SUCCESS)
		*addr = m.entry.phys + offset;
	return true;
}

enum v2p_state v2p_request_slow(struct v2p_port *port, enum v2p_channel channel,
				const struct v2p_access *a, uint8_t **addr, uint64_t *run)
{
	struct v2p_slot *s = &port->slot[channel];
	uint64_t seen = generation(port->v2p);
	union mpt_line m;
	uint64_t offset;
	enum v2p_state r;

	if (retry_cached(port->v2p, a, addr, &r))
		return r;
	if (s->state == V2P_SLOT_DONE &&
	    take_result(port, s, same_access(&s->access, a), addr, run, &r))
		return r;
	if (s->state != V2P_SLOT_IDLE)
		return V2P_PENDING;
	r = mpt_try(port, a->key, m.words, !port->pend_misses);
	if (r == V2P_SUCCESS && scheduler_is_plain(&m)) {
		r = mpt_check(m.words, a, &offset);
		*addr = r == V2P_SUCCESS ? m.entry.phys + offset : NULL;
		return r;
	}
	if (r != V2P_SUCCESS && r != V2P_PENDING)
		return r;
	*s = (struct v2p_slot){.access = *a, .generation = seen};
	if (r == V2P_PENDING) {
		s->state = V2P_SLOT_MPT;
		return pend(port, channel);
	}
	memcpy(s->entry, m.words, sizeof(s->entry));
	return scheduler_answer(port, channel, addr, run);
}

enum v2p_state v2p_check_slow(struct v2p_port *port, enum v2p_channel channel,
			      const struct v2p_access *a)
{
	struct v2p_access only = *a;
	uint8_t *addr;
	uint64_t run;

	only.rights |= V2P_CHECK_ONLY;
	return v2p_request_slow(port, channel, &only, &addr, &run);
}
