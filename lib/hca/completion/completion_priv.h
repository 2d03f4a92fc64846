/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETION_PRIV_H
#define COMPLETION_PRIV_H
/* What the two modules of this folder share. */
#include "completion/completion.h"

#define LIST_END                                                                                   \
	0xffffffffu /* of the lists of touched CQs and of event queues with pending events */

/* Called by one lcore at a time: struct completion, `serving`. */
/* Raises the events of touched CQs that are armed. */
void completion_serve_arms(struct completion *c, struct counters *counters);
/* The same of those that the caller itself touched, one_lcore's lcore. */
void completion_serve_arms_here(struct completion *c, struct counters *counters);
/* Writes pending events for which there is room now. */
void completion_write_pending(struct completion *c, struct counters *counters);

enum eq_answer {
	EQ_WRITTEN,
	EQ_NOT_TAKEN, /* the queue is destroyed, or does not accept the type */
	EQ_FULL
};
/* Writes the event into its client's queue. */
enum eq_answer eq_write_event(struct completion *c, struct counters *counters, uint32_t client,
			      enum eqe_type type, uint32_t number);
/* The event becomes pending, unless it belongs to no object (EQE_COMPLETION). */
void eq_defer(struct completion *c, uint32_t client, enum eqe_type type, uint32_t number);
bool eq_has_room(const struct completion *c, uint32_t client);

#endif
