/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_ACKS_H
#define REQUESTER_RRC_ACKS_H
/* RequesterRecvControl: acknowledgements and NAKs. Stage requester_recv. */
#include "rrc_work.h"

/* The steps; each returns the next state. */
enum rrc_state rrc_step_ack_release_normal(struct rrc_work *w);
enum rrc_state rrc_step_ack_release_exception(struct rrc_work *w);
enum rrc_state rrc_step_nak_implicit_release(struct rrc_work *w);
enum rrc_state rrc_step_nak_retrans(struct rrc_work *w);
enum rrc_state rrc_step_reset_timer(struct rrc_work *w);
enum rrc_state rrc_step_sack(struct rrc_work *w);

/* The states ACK_LOSS_RETRANS and READ_RETRANS: the response shows that an earlier one, of the READ
 * or atomic before, was lost. */
enum rrc_state rrc_step_implied_nak(struct rrc_work *w);

/* Sends everything from `psn` on again and counts that as a try (C9-137, C9-142): RRC_IDLE, or
 * RRC_FLUSH if none is left. Any advance restores the tries. */
enum rrc_state rrc_retry(struct rrc_work *w, uint32_t psn);

/* Takes the credits of an AETH. */
void rrc_take_credits(struct rrc_work *w);

#endif
