/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CompletionQueueMgt: reserves places in completion queues and writes entries into client memory.
 * Runs on whatever stage completes; never waits, never calls the system.
 */
#include <errno.h>
#include <rte_branch_prediction.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include "completion/completion.h"
#include "host-abi/wqe.h"
#include "completion_priv.h"

int completion_create(struct completion *c, uint32_t cqs, uint32_t qps, uint32_t srqs)
{
	const uint32_t objects[EVENT_OBJECTS] = {
		[EVENT_OF_QP] = qps, [EVENT_OF_SRQ] = srqs, [EVENT_OF_CQ] = cqs};
	int err;

	*c = (struct completion){
		.cq_count = cqs, .cq_mask = cqs - 1, .touched = LIST_END, .pending_eqs = LIST_END};
	for (unsigned i = 0; i < RTE_DIM(c->own); i++)
		c->own[i].turn = (uint64_t)(i + 1) << 48;
	err = icm_reserve(&c->icm, cqs, sizeof(struct cq));
	c->cqs = (struct cq *)c->icm.base;
	for (unsigned i = 0; i < EVENT_OBJECTS && !err; i++) {
		err = icm_reserve(&c->pending[i].icm, objects[i], sizeof(uint64_t));
		c->pending[i].word = (uint64_t *)c->pending[i].icm.base;
		c->pending[i].mask = objects[i] - 1;
	}
	return err;
}

void completion_destroy(struct completion *c)
{
	icm_release(&c->icm);
	for (unsigned i = 0; i < EVENT_OBJECTS; i++)
		icm_release(&c->pending[i].icm);
	*c = (struct completion){0};
}

bool cq_table_unlisted(const struct completion *c, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (__atomic_load_n(&c->cqs[i].touched, __ATOMIC_SEQ_CST))
			return false;
	return true;
}

int cq_write(struct completion *c, uint32_t cqn, uint32_t client, struct cqe *buffer,
	     uint32_t log_entries, struct cq_record *record)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];

	if (cqn == 0 || log_entries > CQ_LOG_MAX)
		return -EINVAL;
	if (q->cqn != 0)
		return -EEXIST;
	q->mask = (1u << log_entries) - 1;
	q->buffer = buffer;
	q->record = record;
	q->client = client;
	q->stop = 0;
	q->produced = 0;
	q->consumed = 0;
	q->served = 0;
	__atomic_store_n(&q->cqn, cqn, __ATOMIC_RELEASE);
	return 0;
}

int cq_remove(struct completion *c, uint32_t cqn)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];

	if (cqn == 0 || q->cqn != cqn)
		return -ENOENT;
	__atomic_store_n(&q->cqn, 0, __ATOMIC_SEQ_CST);
	return 0;
}

/* The list of the lcore that this runs on. NULL: this thread is none. */
static struct touched_cqs *own_list(struct completion *c)
{
	unsigned lcore = rte_lcore_id();

	return likely(lcore < RTE_DIM(c->own)) ? &c->own[lcore] : NULL;
}

/* Adds the CQ to the common list. What was written before is visible before the mark is looked at:
 * the lcore that clears it then finds the arm, or the client that arms later finds the entry. */
static void touch_common(struct completion *c, struct cq *q, bool solicited)
{
	uint32_t bits = solicited ? CQ_TOUCHED | CQ_TOUCHED_SOLICITED : CQ_TOUCHED, head;

	if (__atomic_fetch_or(&q->touched, bits, __ATOMIC_SEQ_CST) & CQ_TOUCHED)
		return;
	head = __atomic_load_n(&c->touched, __ATOMIC_RELAXED);
	do {
		q->next_touched = head;
	} while (!__atomic_compare_exchange_n(&c->touched, &head, (uint32_t)(q - c->cqs), true,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

static uint64_t arms_of(const struct cq_record *r)
{
	return __atomic_load_n(&r->arm_next, __ATOMIC_RELAXED) |
	       (uint64_t)__atomic_load_n(&r->arm_solicited, __ATOMIC_RELAXED) << 32;
}

static bool is_armed(uint64_t arms, uint64_t served, bool solicited)
{
	return (uint32_t)arms != (uint32_t)served || (solicited && arms != served);
}

/* Raises the event that the client armed for. Several lcores may serve a CQ at the same time: the
 * one that takes the arms raises it. The arms are read after `served`: they are none that another
 * lcore has left behind. */
static void serve_arm(struct completion *c, struct counters *counters, struct cq *q, bool solicited)
{
	uint32_t cqn = __atomic_load_n(&q->cqn, __ATOMIC_ACQUIRE);
	uint64_t served, arms;

	if (!cqn)
		return;
	do {
		served = __atomic_load_n(&q->served, __ATOMIC_ACQUIRE);
		arms = arms_of(q->record);
		if (likely(!is_armed(arms, served, solicited)))
			return;
	} while (!__atomic_compare_exchange_n(&q->served, &served, arms, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	if (likely(eq_post(c, counters, q->client, EQE_COMPLETION, cqn)))
		return;
	/* When there is room again. If another lcore has taken later arms, that one raises. */
	__atomic_compare_exchange_n(&q->served, &arms, served, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
	touch_common(c, q, solicited);
}

/*
 * The fence orders "entries written" before "arms read"; the client orders "arm written" before
 * "entries read": one of the two sees the other.
 */
static void serve_list(struct completion *c, struct counters *counters, struct touched_cqs *l)
{
	unsigned n = l->count;

	l->count = 0;
	l->turn += 2 * TOUCHED_SOLICITED;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < n; i++)
		serve_arm(c, counters, &c->cqs[l->cq[i] / 2], l->cq[i] & TOUCHED_SOLICITED);
}

void completion_serve_own(struct completion *c, struct counters *counters)
{
	struct touched_cqs *l = own_list(c);

	if (l && l->count)
		serve_list(c, counters, l);
}

/* The same: an entry written after its CQ was taken off the list puts it there again. */
void completion_serve_common(struct completion *c, struct counters *counters)
{
	uint32_t index = __atomic_exchange_n(&c->touched, LIST_END, __ATOMIC_SEQ_CST), next,
		 touched;

	for (; index != LIST_END; index = next) {
		struct cq *q = &c->cqs[index];

		next = q->next_touched;
		touched = __atomic_exchange_n(&q->touched, 0, __ATOMIC_SEQ_CST);
		serve_arm(c, counters, q, touched & CQ_TOUCHED_SOLICITED);
	}
}

/* Has new entries: completion_round() checks whether its client armed it. */
static void touch(struct completion *c, struct counters *counters, struct cq *q, bool solicited)
{
	struct touched_cqs *l = own_list(c);
	uint64_t last = __atomic_load_n(&q->turn, __ATOMIC_RELAXED);

	if (unlikely(!l)) {
		touch_common(c, q, solicited);
		return;
	}
	if (likely(last == (l->turn | solicited) || last == (l->turn | TOUCHED_SOLICITED)))
		return;
	if (unlikely(l->count == TOUCHED_MAX))
		serve_list(c, counters, l);
	__atomic_store_n(&q->turn, l->turn | solicited, __ATOMIC_RELAXED);
	l->cq[l->count++] = (uint32_t)(q - c->cqs) * 2 | solicited;
}

/* `produced` may be stale and behind what is consumed, by no more than others can complete in the
 * meantime: then its reservation fails. A client's index further ahead than that is forged. */
static bool cq_has_room(const struct cq *q, uint64_t produced, uint32_t consumed)
{
	const uint32_t behind_most = 1u << 30;

	return (uint32_t)produced - consumed + behind_most <= q->mask + behind_most;
}

/* Is there no room, judged by the client's index as it is now? */
static bool full(struct cq *q, uint64_t produced)
{
	uint32_t consumed = __atomic_load_n(&q->record->consumer_index, __ATOMIC_ACQUIRE);

	__atomic_store_n(&q->consumed, consumed, __ATOMIC_RELEASE);
	return !cq_has_room(q, produced, consumed);
}

/* Is there room for n more? Reads the client's index only when the last one seen leaves none. */
static bool has_room_for(struct cq *q, uint64_t produced, uint32_t n)
{
	uint64_t last = produced + n - 1;
	/* a client that frees a place has read its entry */
	uint32_t consumed = __atomic_load_n(&q->consumed, __ATOMIC_ACQUIRE);

	return likely(cq_has_room(q, last, consumed)) || !full(q, last);
}

/* Reserves n places, or fails when the client has not consumed enough. `alone`: no other thread
 * reserves a place now. */
static bool cq_reserve(struct cq *q, bool alone, uint32_t n, uint64_t *place)
{
	uint64_t produced = __atomic_load_n(&q->produced, __ATOMIC_RELAXED);

	do {
		if (unlikely(!has_room_for(q, produced, n)))
			return false;
		if (likely(alone)) {
			__atomic_store_n(&q->produced, produced + n, __ATOMIC_RELAXED);
			break;
		}
	} while (!__atomic_compare_exchange_n(&q->produced, &produced, produced + n, true,
					      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	*place = produced;
	return true;
}

static bool lost(struct completion *c, struct counters *counters, struct cq *q)
{
	count(counters, COUNTER_cq_overruns);
	if (!(__atomic_fetch_or(&q->stop, CQ_STOP_OVERRUN, __ATOMIC_RELAXED) & CQ_STOP_OVERRUN))
		eq_post(c, counters, q->client, EQE_CQ_ERROR, q->cqn);
	return false;
}

/* reserved2 of a backlog's entries. */
enum { LOG_WRITTEN = 1, LOG_SOLICITED = 2 };

/* opcode, is_send, reserved2 and owner are one word, written last. The compiler must not read opcode
 * and is_send at once: where the caller has just written each by itself, such a load waits until all
 * stores before have left the store buffer. */
static inline void write_entry(struct cqe *to, const struct cqe *entry, uint32_t reserved2)
{
	uint32_t opcode = *(const volatile uint8_t *)&entry->opcode;
	uint32_t is_send = *(const volatile uint8_t *)&entry->is_send;

	to->my_qpn = entry->my_qpn;
	to->reserved = 0;
	to->remote_qpn = entry->remote_qpn;
	to->rlid_flags = entry->rlid_flags;
	to->imm_or_error = entry->imm_or_error;
	to->byte_count = entry->byte_count;
	to->wqe_offset = entry->wqe_offset;
	__atomic_store_n((uint32_t *)&to->opcode, opcode | is_send << 8 | reserved2 << 16,
			 __ATOMIC_RELEASE);
}

/* How far ahead of an entry that comes alone the line of a later one is prefetched. */
enum { ENTRIES_AHEAD = 8 };

/* The CPU of the client has its line, who has read what was there before and polls a nearer entry:
 * the write would wait for it. */
static inline void prefetch_entry(const struct cq *q, uint64_t place)
{
	__builtin_prefetch(&q->buffer[place & q->mask], 1);
}

static inline void cq_write_entry(struct completion *c, struct counters *counters, struct cq *q,
				  uint64_t place, const struct cqe *entry, bool solicited)
{
	write_entry(&q->buffer[place & q->mask], entry, 0);
	prefetch_entry(q, place + ENTRIES_AHEAD);
	count(counters, COUNTER_cqes);
	touch(c, counters, q, solicited || entry->opcode == USER_INVALID);
}

/* ---- step by step ---- */

/* The CQ, or NULL with *answer: it does not exist or accepts no completion now. */
static struct cq *open_cq(struct completion *c, struct counters *counters, uint32_t cqn,
			  enum completion_answer *answer)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];
	uint32_t stop = __atomic_load_n(&q->stop, __ATOMIC_ACQUIRE);

	*answer = COMPLETION_READY;
	if (unlikely(__atomic_load_n(&q->cqn, __ATOMIC_ACQUIRE) != cqn)) {
		*answer = COMPLETION_LOST;
		return NULL;
	}
	if (unlikely(stop & CQ_STOP_HELD)) {
		count(counters, COUNTER_cq_not_ready);
		*answer = COMPLETION_NOT_READY;
		return NULL;
	}
	return q;
}

enum completion_answer cq_place(struct completion *c, struct counters *counters, uint32_t cqn,
				uint64_t *place)
{
	enum completion_answer answer;
	struct cq *q = open_cq(c, counters, cqn, &answer);

	if (unlikely(q && (__atomic_load_n(&q->stop, __ATOMIC_RELAXED) & CQ_STOP_OVERRUN ||
			   !cq_reserve(q, c->one_lcore, 1, place)))) {
		lost(c, counters, q);
		return COMPLETION_LOST;
	}
	return answer;
}

enum completion_answer cq_fill(struct completion *c, struct counters *counters, uint32_t cqn,
			       uint64_t place, const struct cqe *entry, bool solicited)
{
	enum completion_answer answer;
	struct cq *q = open_cq(c, counters, cqn, &answer);

	if (likely(q != NULL))
		cq_write_entry(c, counters, q, place, entry, solicited);
	return answer;
}

/* ---- in one go ---- */

/* The backlog is a ring: while a CQ is being released, completions still come, and its client takes
 * those that have been moved. `taken`: places reserved since it was held. */
static bool backlog_has_room(const struct cq *q, uint32_t taken)
{
	return taken - __atomic_load_n(&q->backlog_done, __ATOMIC_ACQUIRE) <
		       __atomic_load_n(&q->backlog_entries, __ATOMIC_RELAXED) &&
	       taken < CQ_STOP_BACKLOG;
}

/* A place that the caller has reserved, or releases: the backlog stays until it is filled. */
static struct cqe *backlog_at(const struct cq *q, uint32_t number)
{
	return &q->backlog[number % q->backlog_entries];
}

/* Adds to the backlog of a held CQ. Reserving a place there and releasing the CQ meet in one word:
 * no completion goes into a backlog that has been emptied for the last time. */
static bool post_backlog(struct completion *c, struct counters *counters, struct cq *q,
			 const struct cqe *entry, bool solicited)
{
	uint32_t stop = __atomic_load_n(&q->stop, __ATOMIC_ACQUIRE), now;

	for (;;) {
		if (!(stop & CQ_STOP_HELD)) /* released just now */
			return cq_post(c, counters, q->cqn, entry, solicited);
		if (stop & CQ_STOP_OVERRUN || !backlog_has_room(q, stop & CQ_STOP_BACKLOG)) {
			/* Or have others filled and emptied it since `stop` was read? */
			now = __atomic_load_n(&q->stop, __ATOMIC_ACQUIRE);
			if (now == stop)
				return lost(c, counters, q);
			stop = now;
		} else if (__atomic_compare_exchange_n(&q->stop, &stop, stop + 1, false,
						       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			break;
		}
	}
	write_entry(backlog_at(q, stop & CQ_STOP_BACKLOG), entry,
		    LOG_WRITTEN | (solicited ? LOG_SOLICITED : 0));
	count(counters, COUNTER_cq_backlogged);
	return true;
}

bool cq_post(struct completion *c, struct counters *counters, uint32_t cqn, const struct cqe *entry,
	     bool solicited)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];
	uint32_t stop;
	uint64_t place;

	if (unlikely(__atomic_load_n(&q->cqn, __ATOMIC_ACQUIRE) != cqn))
		return false;
	stop = __atomic_load_n(&q->stop, __ATOMIC_ACQUIRE);
	if (unlikely(stop & CQ_STOP_HELD))
		return post_backlog(c, counters, q, entry, solicited);
	if (unlikely(stop || !cq_reserve(q, c->one_lcore, 1, &place)))
		return lost(c, counters, q);
	cq_write_entry(c, counters, q, place, entry, solicited);
	return true;
}

static bool post_each(struct completion *c, struct counters *counters, uint32_t cqn,
		      const struct cqe *entry, uint32_t n, bool solicited)
{
	for (uint32_t i = 0; i < n; i++)
		if (unlikely(!cq_post(c, counters, cqn, &entry[i], solicited)))
			return false;
	return true;
}

/* Backwards: the client, who polls the first place, sees all of them at once. Else it would take
 * each line from us as soon as it holds one entry, and we would wait for it for the next. */
static void write_burst(struct cq *q, uint64_t place, const struct cqe *entry, uint32_t n)
{
	const uint32_t ahead = n;

	while (n--) {
		write_entry(&q->buffer[(place + n) & q->mask], &entry[n], 0);
		prefetch_entry(q, place + n + ahead);
	}
}

/* Does it exist, and is it neither held nor overrun? */
static inline bool is_plain(const struct cq *q, uint32_t cqn)
{
	return __atomic_load_n(&q->cqn, __ATOMIC_ACQUIRE) == cqn &&
	       !__atomic_load_n(&q->stop, __ATOMIC_ACQUIRE);
}

bool cq_accepts(const struct completion *c, uint32_t cqn, uint32_t n)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];

	return is_plain(q, cqn) &&
	       has_room_for(q, __atomic_load_n(&q->produced, __ATOMIC_RELAXED), n);
}

bool cq_post_burst(struct completion *c, struct counters *counters, uint32_t cqn,
		   const struct cqe *entry, uint32_t n, bool solicited)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];
	uint64_t place;

	if (n == 1 || unlikely(!is_plain(q, cqn) || !cq_reserve(q, c->one_lcore, n, &place)))
		return post_each(c, counters, cqn, entry, n, solicited);
	write_burst(q, place, entry, n);
	count_n(counters, COUNTER_cqes, n);
	touch(c, counters, q, solicited);
	return true;
}

/* ---- held ---- */

int cq_hold(struct completion *c, uint32_t cqn, struct cqe *backlog, uint32_t entries)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];
	uint32_t stop = __atomic_load_n(&q->stop, __ATOMIC_RELAXED);

	if (cqn == 0 || q->cqn != cqn)
		return -ENOENT;
	if (stop & CQ_STOP_HELD)
		return -EBUSY;
	if (entries <= q->mask || entries > CQ_STOP_BACKLOG)
		return -EINVAL;
	q->backlog = backlog;
	__atomic_store_n(&q->backlog_entries, entries, __ATOMIC_RELAXED);
	__atomic_store_n(&q->backlog_done, 0, __ATOMIC_RELAXED);
	__atomic_fetch_or(&q->stop, CQ_STOP_HELD, __ATOMIC_SEQ_CST);
	return 0;
}

int cq_resize(struct completion *c, uint32_t cqn, struct cqe *buffer, uint32_t log_entries)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];
	uint32_t produced = (uint32_t)__atomic_load_n(&q->produced, __ATOMIC_RELAXED);

	if (cqn == 0 || q->cqn != cqn)
		return -ENOENT;
	if (log_entries > CQ_LOG_MAX ||
	    !(__atomic_load_n(&q->stop, __ATOMIC_RELAXED) & CQ_STOP_HELD))
		return -EINVAL;
	__atomic_store_n(&q->consumed,
			 __atomic_load_n(&q->record->consumer_index, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELAXED);
	if (produced - q->consumed > 1u << log_entries)
		return -EBUSY;
	q->buffer = buffer;
	q->mask = (1u << log_entries) - 1;
	return 0;
}

/* Moves an entry of the backlog to the CQ. If it is not there yet, the stage that reserved it is
 * just writing it. */
static void unlog(struct completion *c, struct counters *counters, struct cq *q, uint32_t number)
{
	struct cqe *entry = backlog_at(q, number);
	uint64_t place;

	while (!__atomic_load_n((const uint32_t *)&entry->opcode, __ATOMIC_ACQUIRE))
		rte_pause();
	if (cq_reserve(q, false, 1, &place))
		cq_write_entry(c, counters, q, place, entry, entry->reserved2 & LOG_SOLICITED);
	else
		lost(c, counters, q);
	__atomic_store_n((uint32_t *)&entry->opcode, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->backlog_done, number + 1, __ATOMIC_RELEASE);
}

int cq_release(struct completion *c, struct counters *counters, uint32_t cqn)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];
	uint32_t stop = __atomic_load_n(&q->stop, __ATOMIC_ACQUIRE), done = 0;

	if (cqn == 0 || q->cqn != cqn)
		return -ENOENT;
	if (!(stop & CQ_STOP_HELD))
		return -EINVAL;
	do {
		for (; done < (stop & CQ_STOP_BACKLOG); done++)
			unlog(c, counters, q, done);
	} while (!__atomic_compare_exchange_n(&q->stop, &stop, stop & CQ_STOP_OVERRUN, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
	return 0;
}
