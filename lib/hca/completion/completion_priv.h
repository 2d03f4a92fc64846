/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETION_PRIV_H
#define COMPLETION_PRIV_H
/* What the two modules of this folder share. */
#include "completion/completion.h"

#define LIST_END                                                                                   \
	0xffffffffu /* of the lists of touched CQs and of event queues with pending events */

/* Raises the events of CQs in the caller's own list that are armed. */
void completion_serve_own(struct completion *c, struct counters *counters);

/* Called by one lcore at a time: struct completion, `serving`. */
/* The same of those in the common list. */
void completion_serve_common(struct completion *c, struct counters *counters);
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
