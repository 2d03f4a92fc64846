/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RespPktGen's list of waiting answers of one QP. Changes qp->respg only; frees the mbufs it gives
 * up. Stage responder_exec. Makes no frames.
 */
#include "resp_order.h"
#include "resp_pkt_gen.h"
#include "wire/aeth.h"

void order_account(struct qp *qp, const struct arrival *a)
{
	if (a->response != RESPONSE_ACK && !response_is_duplicate(a))
		qp->respg.reads_done++;
}

/* PSNs from the next packet of a READ's or an atomic's answer to its last. An atomic has no length:
 * it takes one. */
static uint32_t psns_left(const struct qp *qp, const struct arrival *a)
{
	return psn_packets(a->length, qp->mtu_bytes) - a->done_packets;
}

/* Takes the entry behind `before` (NULL: the head) out of the list and frees it. */
static void drop_after(struct qp *qp, struct rte_mbuf *before)
{
	struct rte_mbuf *m = before ? arrival_of(before)->next : qp->respg.head;
	struct rte_mbuf *next = arrival_of(m)->next;

	if (before)
		arrival_of(before)->next = next;
	else
		qp->respg.head = next;
	if (qp->respg.tail == m)
		qp->respg.tail = before;
	order_account(qp, arrival_of(m));
	rte_pktmbuf_free(m);
}

static void insert_after(struct qp *qp, struct rte_mbuf *before, struct rte_mbuf *m)
{
	struct rte_mbuf **link = before ? &arrival_of(before)->next : &qp->respg.head;

	arrival_of(m)->next = *link;
	*link = m;
	if (qp->respg.tail == before)
		qp->respg.tail = m;
}

/* The same PSNs are asked for again while their answer waits or is under way: the new one replaces
 * it. */
static bool replaces(const struct qp *qp, const struct arrival *a, const struct arrival *old)
{
	if (old->response == RESPONSE_ACK)
		return false;
	return psn_in(a->response_psn, order_next_psn(old), psns_left(qp, old)) ||
	       psn_in(order_next_psn(old), a->response_psn, psns_left(qp, a));
}

/* A duplicate goes in front of everything later: it interrupts the current answer (C9-110). */
static int put_duplicate(struct counters *c, struct qp *qp, struct rte_mbuf *m)
{
	struct arrival *a = arrival_of(m);
	struct rte_mbuf *before = NULL, *last = NULL, *next;
	unsigned entries = 0;
	int replaced = 0;

	for (struct rte_mbuf *i = qp->respg.head; i; i = next) {
		next = arrival_of(i)->next;
		if (replaces(qp, a, arrival_of(i))) {
			drop_after(qp, last);
			replaced++;
			continue;
		}
		if (psn_before(order_next_psn(arrival_of(i)), a->response_psn))
			before = i;
		last = i;
		entries++;
	}
	if (replaced || entries < order_duplicates_max(qp)) {
		insert_after(qp, before, m);
		return 1 - replaced;
	}
	count(c, COUNTER_drop_duplicate);
	rte_pktmbuf_free(m);
	return 0;
}

/* An ACK or NAK behind another one: the later PSN says it all. Returns false if it must wait
 * itself. */
static bool supersede(struct qp *qp, const struct arrival *a)
{
	struct arrival *last = qp->respg.tail ? arrival_of(qp->respg.tail) : NULL;

	if (!last || last->response != RESPONSE_ACK)
		return false;
	if (psn_after_eq(a->response_psn, last->response_psn)) {
		last->response_psn = a->response_psn;
		last->msn = a->msn;
		last->syndrome = a->syndrome;
	}
	return true;
}

int order_put(struct counters *c, struct qp *qp, struct rte_mbuf *m)
{
	struct arrival *a = arrival_of(m);

	if (a->response != RESPONSE_ACK && response_is_duplicate(a))
		return put_duplicate(c, qp, m);
	if (a->response == RESPONSE_ACK && supersede(qp, a)) {
		rte_pktmbuf_free(m);
		return 0;
	}
	insert_after(qp, qp->respg.tail, m);
	return 1;
}

void order_pop(struct qp *qp)
{
	drop_after(qp, NULL);
}

unsigned order_purge(struct qp *qp)
{
	unsigned n = 0;

	for (; qp->respg.head; n++)
		drop_after(qp, NULL);
	return n;
}

bool order_ends_in_fatal_nak(const struct qp *qp)
{
	uint8_t syndrome = arrival_of(qp->respg.tail)->syndrome; /* of a READ: an ACK's */

	return aeth_kind(syndrome) == AETH_NAK && aeth_value(syndrome) != AETH_NAK_SEQUENCE;
}
