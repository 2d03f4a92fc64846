/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_QUEUE_DOORBELL_PROCESSING_H
#define SEND_QUEUE_DOORBELL_PROCESSING_H
/* DoorbellProcessing (doc/modules.md#doorbellprocessing). Stage doorbell_wqe. */
#include <stdbool.h>
#include "descriptors.h"
#include "pipeline/engine.h"

/* 0 or -ENOMEM. */
int dbp_create(struct engine *e);
void dbp_destroy(struct engine *e);
/* Returns how many it handled. */
unsigned dbp_poll(struct engine *e);

/* Does the user hold more descriptors than are left to take? Only while they are scarce
 * (descriptors_scarce()); the answer may be some polls old. */
bool dbp_user_has_many(const struct engine *e, uint32_t user);

/* Must QPs of that user fetch less ahead of sending for now? */
static inline bool dbp_user_gets_less(const struct engine *e, uint32_t user)
{
	return unlikely(descriptors_scarce(e)) && dbp_user_has_many(e, user);
}

#endif
