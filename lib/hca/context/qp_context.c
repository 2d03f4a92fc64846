/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of QP contexts and the transitions that modules of the data path make. */
#include <errno.h>
#include <sys/mman.h>
#include "completion/completion.h"
#include "context/qp_context.h"
#include "pipeline/channel.h"
#include "pipeline/message.h"

static size_t results_bytes(const struct qp_table *t)
{
	return (size_t)t->count * (READS_MAX - RESULTS_KEPT) * sizeof(*t->results);
}

static size_t answers_bytes(const struct qp_table *t)
{
	return (size_t)t->count * ANSWERS_MAX * sizeof(*t->answers);
}

/* Memory that is allocated when it is written to; NULL: there is no address space. */
static void *qp_reserve(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

int qp_table_create(struct qp_table *t, uint32_t count)
{
	int err;

	*t = (struct qp_table){.count = count, .mask = count - 1};
	t->results = qp_reserve(results_bytes(t));
	t->answers = qp_reserve(answers_bytes(t));
	t->third_paths = qp_reserve(count * sizeof(*t->third_paths));
	if (!t->results || !t->answers || !t->third_paths) {
		qp_table_destroy(t);
		return -ENOMEM;
	}
	err = icm_reserve(&t->icm, count, sizeof(struct qp));
	t->qps = (struct qp *)t->icm.base;
	return err;
}

void qp_table_destroy(struct qp_table *t)
{
	icm_release(&t->icm);
	if (t->results)
		munmap(t->results, results_bytes(t));
	if (t->answers)
		munmap(t->answers, answers_bytes(t));
	if (t->third_paths)
		munmap(t->third_paths, t->count * sizeof(*t->third_paths));
	*t = (struct qp_table){0};
}

void qp_disown(const struct qp_table *t, struct rte_mbuf *m)
{
	struct arrival *a = arrival_of(m);

	if (!qp_find(t, a->qpn))
		a->qpn = 0;
}

void qp_disown_ring(const struct qp_table *t, const struct rte_ring *arrivals)
{
	uint32_t end = ring_put_count(arrivals);

	for (uint32_t i = arrivals->cons.tail; i != end; i++)
		qp_disown(t, ring_slots(arrivals)[i & arrivals->mask]);
}

bool qp_table_unlisted(const struct qp_table *t, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		for (unsigned w = 0; w < WAKE_COUNT; w++)
			if (__atomic_load_n(&t->qps[i].wake[w].posted, __ATOMIC_SEQ_CST))
				return false;
	return true;
}

/* Only advice to the kernel: if it fails, the next QP at that index reuses the memory. */
void qp_answers_release(const struct qp_table *t, const struct qp *q)
{
	_Static_assert(ANSWERS_MAX * sizeof(struct answer) % 4096 == 0, "whole pages");

	if (q->respg.fresh)
		(void)madvise(qp_answers(t, q), ANSWERS_MAX * sizeof(struct answer), MADV_DONTNEED);
}

bool qp_set_error(struct engine *e, struct qp *q)
{
	uint8_t state = __atomic_load_n(&q->state, __ATOMIC_ACQUIRE);

	do {
		if (state == QP_RST || state == QP_ERR)
			return false;
	} while (!__atomic_compare_exchange_n(&q->state, &state, QP_ERR, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_ACQUIRE));
	for (unsigned t = 0; t < WAKE_COUNT; t++)
		wake_post(&e->wake[t], &q->wake[t], q->index);
	return true;
}

void qp_completion_lost(struct engine *e, struct counters *c, struct qp *q)
{
	if (qp_set_error(e, q))
		eq_post(e->completion, c, q->client, EQE_WQ_CATAS_ERROR, qp_number(q));
}

bool qp_set_sqe(struct qp *q)
{
	uint8_t state = __atomic_load_n(&q->state, __ATOMIC_ACQUIRE);

	do {
		if (state != QP_RTS && state != QP_SQD)
			return false;
	} while (!__atomic_compare_exchange_n(&q->state, &state, QP_SQE, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_ACQUIRE));
	return true;
}
