/* SPDX-License-Identifier: BSD-3-Clause */
/* The smoothed round trip: see the header. */
#include "outstanding.h"
#include "round_trip.h"

#define ROUND_TRIP_NS_MAX (UINT32_MAX / 8) /* eight times that fits into 32 bits */

/*
 * A round trip is measured from an acknowledgement until a packet sent after it is acknowledged:
 * not one in flight already, since the acknowledgements of a burst arrive close together, however
 * far away the peer is. None is measured while nothing is outstanding, since it would include the
 * client's pauses. Those with retransmissions are discarded, except for the first one, which
 * replaces the initial guess, however long it is.
 */
void round_trip_acked(struct engine *e, struct qp *q)
{
	uint32_t next = qp_next_psn(q), unacked = q->rrc.unacked_psn, srtt = q->rrc.srtt_ns;
	bool over = psn_after(unacked, q->rrc.mark_psn);
	uint64_t ns;

	if (q->rrc.mark_ns && over) {
		ns = RTE_MIN(engine_now(e) - q->rrc.mark_ns, (uint64_t)ROUND_TRIP_NS_MAX);
		if (srtt && !q->rrc.guessed)
			ns = (ns + 7 * (uint64_t)srtt) / 8;
		q->rrc.guessed &= !srtt;
		srtt = (uint32_t)ns;
		__atomic_store_n(&q->rrc.srtt_ns, srtt, __ATOMIC_RELAXED);
	}
	if (psn_after_eq(unacked, q->rrc.recover_psn))
		q->rrc.recovering = 0;
	if (next == unacked || (q->rrc.recovering && !q->rrc.guessed)) {
		q->rrc.mark_ns = 0;
	} else if (!q->rrc.mark_ns || over) {
		q->rrc.mark_psn = next;
		q->rrc.mark_ns = engine_now(e);
	}
}

/*
 * The oldest packet is repeated: its acknowledgement will show the round trip. If it was repeated
 * before, the measurement counts from the first repetition, since nothing tells which of the two
 * was answered, and a guess that is too short would make the next one shorter. There is a limit:
 * the peer may have been away.
 */
void round_trip_again(const struct engine *e, struct qp *q, uint32_t psn)
{
	enum { ROUND_TRIPS = 4 };
	bool again = q->rrc.mark_ns && q->rrc.mark_psn == psn;
	uint64_t now_ns = engine_now(e), most_ns = (uint64_t)ROUND_TRIPS * q->rrc.srtt_ns;

	if (psn != q->rrc.unacked_psn || (again && now_ns - q->rrc.mark_ns <= most_ns))
		return;
	q->rrc.mark_psn = psn;
	q->rrc.mark_ns = again ? now_ns - most_ns : now_ns;
}
