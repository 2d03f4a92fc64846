/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_IDS_H
#define CM_SERVICE_IDS_H
/* Identifiers. The CM thread's alone. */
#include "ucm.h"

/* Has no number yet. NULL: the channel has too many, or no memory. */
struct ucm_id *ucm_id_new(struct ucm_channel *ch, uint16_t space, uint8_t qp_type);
/* 0; -ENOENT; -EINVAL: of another channel. */
int ucm_id_find(struct ucm_channel *ch, uint32_t number, struct ucm_id **id);
/* The same; -EINVAL also: no device is chosen yet. */
int ucm_id_find_on_device(struct ucm_channel *ch, uint32_t number, struct ucm_id **id);
void ucm_id_step(struct ucm_id *id, enum ucm_state next);
const char *ucm_state_name(unsigned int state);
struct cm_device *ucm_device(const struct ucm_id *id);
/* Is there such a device, and does the channel use it? */
bool ucm_may_use(const struct ucm_channel *ch, unsigned int device);
/* Sets its device and GIDs. */
void ucm_id_choose(struct ucm_id *id, const struct ucm_choice *choice);
/* qkey 0: the default. 0; -EINVAL: it has another. */
int ucm_set_qkey(struct ucm_id *id, uint32_t qkey);

#endif
