/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All about one queue pair for telemetry, down to what each module knows of it: what a queue pair
 * that stands still waits for must be seen from outside. Each number may be a moment old, and they
 * are not of one moment. A telemetry thread, under the daemon's lock: the context and the client's
 * memory stay meanwhile. Changes nothing.
 */
#include <arpa/inet.h>
#include <rte_telemetry.h>
#include "context/qp_context.h"
#include "context/srq.h"
#include "pipeline/message.h"
#include "qp_view.h"
#include "requester/requester.h"
#include "responder/responder.h"

/* The race detector need not hear of it: whatever is read here may change meanwhile. */
#define UNGUARDED __attribute__((no_sanitize("thread")))

#define NUMBER(name, value) rte_tel_data_add_dict_u64(to, name, value)
/* A field that an lcore writes meanwhile; read once. */
#define NOW(field)	   (*(const volatile __typeof__(field) *)&(field))
#define FIELD(name, field) NUMBER(name, NOW(field))

/* What it was made and modified to be. */
static void put_attributes(struct rte_tel_data *to, const struct qp *q)
{
	char ip[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, qp_path(q)->peer_ip, ip, sizeof(ip));
	rte_tel_data_add_dict_string(to, "peer_ip", ip);
	NUMBER("pd", q->pd);
	NUMBER("send_cqn", q->cqn_snd);
	NUMBER("recv_cqn", q->cqn_rcv);
	NUMBER("sq_bytes", q->sq_bytes);
	NUMBER("rq_entries", q->rq_entries);
	NUMBER("timeout", q->timeout);
	NUMBER("retry_cnt", q->retry_cnt);
	NUMBER("rnr_retry", q->rnr_retry);
	NUMBER("max_rd_atomic", q->max_rd_atomic);
	NUMBER("max_dest_rd_atomic", q->max_dest_rd_atomic);
}

UNGUARDED static void put_srq(struct rte_tel_data *to, const struct srq *s)
{
	NUMBER("srqn", s ? s->srqn : 0);
	if (!s)
		return;
	NUMBER("srq_entries", s->entries);
	FIELD("srq_taken", s->consumed);
	FIELD("srq_limit", s->limit);
	FIELD("srq_state", s->state);
	NUMBER("srq_users", s->users);
}

/* In ms from now; a timer that is late says so. */
UNGUARDED static void put_timer(struct rte_tel_data *to, const char *armed, const char *due,
				const struct qp *q, enum timer_kind kind, uint64_t now_ns)
{
	bool is_armed = NOW(q->tc.armed[kind]);
	uint64_t at_ns = NOW(q->tc.deadline_ns[kind]);

	NUMBER(armed, is_armed);
	if (is_armed)
		rte_tel_data_add_dict_int(to, due, (int)((int64_t)(at_ns - now_ns) / 1000000));
}

UNGUARDED static void put_requester(struct rte_tel_data *to, const struct qp *q, uint64_t now_ns)
{
	uint64_t progress_ns = NOW(q->rrc.progress_ns);

	rte_tel_data_add_dict_string(to, "waits_for", requester_waits_for(q));
	FIELD("requests_issued", q->ws.issued);
	FIELD("requests_segmented", q->rtc.consumed);
	FIELD("scheduler_parked", q->ws.parked);
	FIELD("ssn", q->rtc.ssn);
	FIELD("lsn", q->rtc.lsn);
	FIELD("credits", q->rrc.credits);
	FIELD("reads_issued", q->rtc.reads_issued);
	FIELD("reads_done", q->rrc.reads_done);
	FIELD("flushing", q->rtc.flushing);
	FIELD("retry_left", q->rrc.retry_left);
	FIELD("rnr_left", q->rrc.rnr_left);
	FIELD("rnr_waiting", q->rrc.rnr_waiting);
	FIELD("retransmitting", q->rrc.retransmitting);
	FIELD("retransmit_psn", q->rrc.retransmit_psn);
	FIELD("recovering", q->rrc.recovering);
	FIELD("probes", q->rrc.probes);
	FIELD("window_sixteenths", q->rrc.window);
	NUMBER("progress_ms_ago", progress_ns ? (now_ns - progress_ns) / 1000000 : 0);
	put_timer(to, "loss_timer", "loss_due_ms", q, TIMER_LOSS, now_ns);
	put_timer(to, "rnr_timer", "rnr_due_ms", q, TIMER_RNR, now_ns);
}

UNGUARDED static void put_responder(struct rte_tel_data *to, const struct qp *q)
{
	FIELD("expected_psn", q->ee.expected_psn);
	FIELD("msn", q->ee.msn);
	FIELD("nak_sent", q->ee.nak_sent);
	FIELD("message_open", q->ee.message);
	FIELD("receives_flushed", q->ee.flushed);
	NUMBER("receives_posted", responder_receives(q));
	NUMBER("receives_held", NOW(q->rwm.fetched) - NOW(q->rwm.consumed));
	FIELD("receives_done", q->rwm.consumed);
	NUMBER("answers_wait", NOW(q->respg.head) != NULL);
}

void qp_view_put(struct rte_tel_data *to, const struct qp *q, uint64_t now_ns)
{
	put_attributes(to, q);
	put_srq(to, q->srq);
	put_requester(to, q, now_ns);
	put_responder(to, q);
}
