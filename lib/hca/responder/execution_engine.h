/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EXECUTION_ENGINE_H
#define RESPONDER_EXECUTION_ENGINE_H
/*
 * ExecutionEngine (doc/modules.md#executionengine): checks and executes requests in order. HP_EE →
 * EE_RESPG, client memory, receive completions. Stage responder_exec.
 *
 * What goes to RespPktGen is always a received mbuf, with what to answer in its arrival: so nothing
 * is allocated here, and n packets never make more than n elements.
 */
#include <stdbool.h>
#include <stdint.h>
#include "pipeline/engine.h"
#include "pipeline/message.h"

struct qp;

/* Receive completions that flushing queue pairs may write in one poll. */
#define EE_FLUSH_BUDGET 64u

int ee_create(struct engine *e); /* 0 or -ENOMEM */
void ee_destroy(struct engine *e);

/* Looks at the queue pairs that were woken: those in ERR get their receive queues flushed, those
 * that can receive are watched for credits. Returns completions written. */
unsigned ee_wakes(struct engine *e);

/*
 * Syndrome of an acknowledgement that leaves now: the credits that the peer has (C9-157, C9-158),
 * 11111b without end-to-end credits. If there are none, the QP is watched from now on.
 */
uint8_t ee_ack_syndrome(struct engine *e, struct qp *qp);

/* The QP has become able to receive: its peer has no credits yet. */
void ee_watch_credits(struct engine *e, struct qp *qp);

/* Looks whether the QP has posted its first receive. */
void ee_note_first_receive(struct engine *e, struct qp *qp);

/* The QP is being destroyed. */
void ee_forget_credits(struct engine *e, struct qp *qp);

/*
 * Checks a few of the QPs whose peers have no credits. If the client has posted receives since, an
 * unsolicited acknowledgement grants them (C9-152, C9-155). Returns how many were put into
 * EE_RESPG, behind the answers that are there.
 */
unsigned ee_offer_credits(struct engine *e);

/* The QP receives no more: what is kept for it is dropped. */
void ee_close_gap(struct engine *e, struct qp *qp);

/* Looks at a few of the gaps whose NAKs wait (ee_gap.c). Returns how many were due, and put into
 * EE_RESPG. */
unsigned ee_late_gaps(struct engine *e);

/* Does such a NAK wait? Then the lcore must not sleep, or the NAK would be late. */
bool ee_gap_waits(const struct engine *e);

/* Which packets are kept behind the expected PSN of the queue pair: bit i of byte k is that of
 * EPSN + 1 + 8 k + i. False: none that shows a gap. */
bool ee_describe_gap(const struct engine *e, const struct qp *qp, uint8_t map[WIRE_SACK_BYTES]);

/* Packets that came early and are kept. */
unsigned ee_kept(const struct engine *e);

/* Executes one burst, as much as EE_RESPG has room for. Returns packets taken. */
unsigned ee_poll(struct engine *e);

#endif
