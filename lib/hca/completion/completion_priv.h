/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETION_PRIV_H
#define COMPLETION_PRIV_H
/* What the two modules of this folder share. */
#include "completion/completion.h"

#define LIST_END 0xffffffffu /* of the lists of touched CQs and of event queues that owe */

/* These two by one lcore at a time, struct completion, `serving`. */
/* Raises the events of touched CQs that are armed. */
void completion_serve_arms(struct completion *c, struct counters *counters);
/* Writes events that were owed and have room now. */
void completion_serve_owed(struct completion *c, struct counters *counters);

/* An event found no place: it is owed, unless it is of no object (EQE_COMPLETION). */
void eq_owe(struct completion *c, uint32_t client, enum eqe_type type, uint32_t number);
bool eq_has_room(const struct completion *c, uint32_t client);

#endif
