/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_QP_LIST_H
#define CONTEXT_QP_LIST_H
/*
 * Queue pairs that take turns in one module: a list of QP indices linked through a struct qp_link
 * in each QP. A QP is in a list at most once. Belongs to one module, so to one stage; no locks, no
 * allocation.
 */
#include <stddef.h>
#include "context/qp_context.h"

struct qp_list {
	const struct qp_table *qps;
	uint32_t head, tail; /* QP indices; QP_LIST_END: none */
	uint32_t link;	     /* offset of the struct qp_link in struct qp */
};

#define QP_LIST_END 0xffffffffu

/* `link`: offsetof(struct qp, ...) of the member that this list uses. */
static inline void qp_list_init(struct qp_list *l, const struct qp_table *qps, size_t link)
{
	*l = (struct qp_list){
		.qps = qps, .head = QP_LIST_END, .tail = QP_LIST_END, .link = (uint32_t)link};
}

static inline bool qp_list_empty(const struct qp_list *l)
{
	return l->head == QP_LIST_END;
}

static inline struct qp_link *qp_list_link(const struct qp_list *l, struct qp *q)
{
	return (struct qp_link *)((char *)q + l->link);
}

/* Appends the QP unless it is in the list. */
static inline void qp_list_add(struct qp_list *l, struct qp *q)
{
	struct qp_link *link = qp_list_link(l, q);

	if (link->listed)
		return;
	link->listed = 1;
	link->next = QP_LIST_END;
	link->before = l->tail & 0xffffff;
	if (qp_list_empty(l))
		l->head = q->index;
	else
		qp_list_link(l, qp_at(l->qps, l->tail))->next = q->index;
	l->tail = q->index;
}

/* Puts the QP in front of all others, unless it is in the list: it is the next to be taken. */
static inline void qp_list_add_first(struct qp_list *l, struct qp *q)
{
	struct qp_link *link = qp_list_link(l, q);

	if (link->listed)
		return;
	link->listed = 1;
	link->next = l->head;
	if (qp_list_empty(l))
		l->tail = q->index;
	else
		qp_list_link(l, qp_at(l->qps, l->head))->before = q->index;
	l->head = q->index;
}

/* The first one, which stays; NULL: the list is empty. */
static inline struct qp *qp_list_first(const struct qp_list *l)
{
	return qp_list_empty(l) ? NULL : qp_at(l->qps, l->head);
}

/* Takes the first one out; NULL: the list is empty. */
static inline struct qp *qp_list_take(struct qp_list *l)
{
	struct qp *q = qp_list_first(l);

	if (q) {
		l->head = qp_list_link(l, q)->next;
		qp_list_link(l, q)->listed = 0;
	}
	return q;
}

/* Takes a QP out of the list, if it is in it, at the same cost wherever it is: thousands of QPs go
 * at once when their client does, and the others must not notice. */
static inline void qp_list_remove(struct qp_list *l, struct qp *q)
{
	struct qp_link *link = qp_list_link(l, q);

	if (!link->listed)
		return;
	if (l->head == q->index) {
		qp_list_take(l);
		return;
	}
	qp_list_link(l, qp_at(l->qps, link->before))->next = link->next;
	if (l->tail == q->index)
		l->tail = link->before;
	else
		qp_list_link(l, qp_at(l->qps, link->next))->before = link->before;
	link->listed = 0;
}

#endif
