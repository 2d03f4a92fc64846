/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_EVENTS_H
#define CM_SERVICE_EVENTS_H
/* The events of a channel. The CM thread's alone. */
#include "ucm.h"

/* NULL: no memory, or the channel has too many. Not queued. */
struct ucm_event *ucm_event_new(struct ucm_id *id, uint32_t type, int status);
void ucm_event_post(struct ucm_event *e);
/* Creates and queues an event, unless there is no uid. */
void ucm_event_report(struct ucm_id *id, uint32_t type, int status);
/* True: no more events may be created on request. */
bool ucm_events_full(struct ucm_channel *ch);
/* Removes it from all lists and frees it. */
void ucm_event_free(struct ucm_event *e);
/* Moves events, including connection requests, to another channel, in order. */
void ucm_events_move(struct ucm_id *id, struct ucm_channel *to);
/* Drops the events of a membership. */
void ucm_events_drop(const struct ucm_membership *m);
/* The private data of an event. */
void ucm_event_private(uint8_t *to, uint8_t *length, const uint8_t *data, unsigned int bytes);
/* Wakes the program for a pending event, unless already done. */
void ucm_channel_wake(struct ucm_channel *ch);

#endif
