/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RespPktGen's list of waiting answers of one QP. Changes qp->respg and the QP's places only. Stage
 * responder_exec. Makes no frames.
 */
#include "base/assert.h"
#include "resp_order.h"
#include "resp_pkt_gen.h"
#include "wire/aeth.h"

_Static_assert(READS_MAX >= 16 && ANSWERS_MAX >= 3 * READS_MAX, "each answer has its place");

/* PSNs from the next packet of a READ's or an atomic's answer to its last. An atomic has no length:
 * it takes one. */
static uint32_t psns_left(const struct qp *qp, const struct answer *a)
{
	return psn_packets(a->length, qp->mtu_bytes) - a->done_packets;
}

/* Takes the entry behind `before` (NULL: the head) out of the list; its place is free. Returns the
 * resources that it held. */
static unsigned take_after(struct qp *qp, struct answer *before)
{
	struct answer *a = before ? before->next : qp->respg.head;

	if (before)
		before->next = a->next;
	else
		qp->respg.head = a->next;
	if (qp->respg.tail == a)
		qp->respg.tail = before;
	qp->respg.others -= a->resources == 0;
	a->next = qp->respg.free;
	qp->respg.free = a;
	return a->resources;
}

/* Inserts a copy of the answer behind `before` (NULL: at the head). */
static void insert_after(const struct qp_table *t, struct qp *qp, struct answer *before,
			 const struct arrival *from, unsigned resources)
{
	struct answer **link = before ? &before->next : &qp->respg.head;
	struct answer *a = qp->respg.free;

	if (a) {
		qp->respg.free = a->next;
	} else {
		ASSERT(qp->respg.fresh < ANSWERS_MAX);
		a = &qp_answers(t, qp)[qp->respg.fresh++];
	}
	a->va = from->va;
	a->orig = from->orig;
	a->qpn = from->qpn;
	a->psn = from->response_psn;
	a->msn = from->msn;
	a->length = from->length;
	a->rkey = from->rkey;
	a->done_bytes = 0;
	a->done_packets = 0;
	a->response = from->response;
	a->syndrome = from->syndrome;
	a->duplicate = from->duplicate;
	a->resources = (uint8_t)resources;
	qp->respg.others += resources == 0;
	a->next = *link;
	if (a->next && psn_before(a->next->msn, a->msn)) /* the MSN never goes back */
		a->msn = a->next->msn;
	*link = a;
	if (qp->respg.tail == before)
		qp->respg.tail = a;
}

/* The same PSNs are asked for again while their answer waits or is under way: the new one replaces
 * it. */
static bool replaces(const struct qp *qp, const struct arrival *a, const struct answer *old)
{
	uint32_t packets = psn_packets(a->length, qp->mtu_bytes);

	if (old->response == RESPONSE_ACK)
		return false;
	return psn_in(a->response_psn, order_next_psn(old), psns_left(qp, old)) ||
	       psn_in(order_next_psn(old), a->response_psn, packets);
}

/* A duplicate goes in front of everything later: it interrupts the current answer (C9-110). */
static void put_duplicate(const struct qp_table *t, struct counters *c, struct qp *qp,
			  const struct arrival *a)
{
	struct answer *before = NULL, *last = NULL, *next;
	unsigned resources = 0;
	bool replaced = false;

	for (struct answer *i = qp->respg.head; i; i = next) {
		next = i->next;
		if (replaces(qp, a, i)) {
			resources += take_after(qp, last);
			replaced = true;
			continue;
		}
		if (psn_before(order_next_psn(i), a->response_psn))
			before = i;
		last = i;
	}
	if (replaced || qp->respg.others < order_others_max(qp))
		insert_after(t, qp, before, a, resources);
	else
		count(c, COUNTER_drop_duplicate);
}

/* Merges an ACK or NAK into one that waits at the end: the later PSN covers both. Returns false if
 * it must wait itself. */
static bool supersede(struct qp *qp, const struct arrival *a)
{
	struct answer *last = qp->respg.tail;

	if (!last || last->response != RESPONSE_ACK)
		return false;
	if (psn_after_eq(a->response_psn, last->psn)) {
		last->psn = a->response_psn;
		last->msn = a->msn;
		last->syndrome = a->syndrome;
	}
	return true;
}

/* An honest peer's acknowledgements stand between its READs, so there are places for all of
 * them. */
static void put_ack(const struct qp_table *t, struct counters *c, struct qp *qp,
		    const struct arrival *a)
{
	if (supersede(qp, a))
		return;
	if (likely(qp->respg.others < order_others_max(qp)))
		insert_after(t, qp, qp->respg.tail, a, 0);
	else
		count(c, COUNTER_drop_ack_full);
}

void order_put(const struct qp_table *t, struct counters *c, struct qp *qp, const struct arrival *a)
{
	if (a->response == RESPONSE_ACK)
		put_ack(t, c, qp, a);
	else if (response_is_duplicate(a))
		put_duplicate(t, c, qp, a);
	else
		insert_after(t, qp, qp->respg.tail, a, 1);
}

void order_pop(struct qp *qp)
{
	qp->respg.reads_done += take_after(qp, NULL);
}

void order_purge(struct qp *qp)
{
	while (qp->respg.head)
		order_pop(qp);
}

bool order_ends_in_fatal_nak(const struct qp *qp)
{
	uint8_t syndrome = qp->respg.tail->syndrome; /* of a READ: an ACK's */

	return aeth_kind(syndrome) == AETH_NAK && aeth_value(syndrome) != AETH_NAK_SEQUENCE;
}
