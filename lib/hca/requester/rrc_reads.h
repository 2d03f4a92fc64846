/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_READS_H
#define REQUESTER_RRC_READS_H
/* RequesterRecvControl: responses to READs and atomics. Stage requester_recv. */
#include "rrc_work.h"

/* The steps; each returns the next state. */
enum rrc_state rrc_step_read_implicit_release(struct rrc_work *w);
enum rrc_state rrc_step_read_fetch_entry(struct rrc_work *w);
enum rrc_state rrc_step_read_scatter(struct rrc_work *w);
enum rrc_state rrc_step_read_update_entry(struct rrc_work *w);
enum rrc_state rrc_step_read_release_entry(struct rrc_work *w);
enum rrc_state rrc_step_read_flush(struct rrc_work *w);

#endif
