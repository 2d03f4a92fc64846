/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_EVENTS_H
#define CLIENT_EVENTS_H
/* The daemon's events. */
#include "client_priv.h"

/* Starts the thread unless it is running. 0, -errno. */
int events_start(struct softhca_context *ctx);
void events_stop(struct softhca_context *ctx);
/* Wakes the dispatcher, to look at `closing` and `unrung`. False: there is none. */
bool events_wake(struct softhca_context *ctx);
/* Dispatches everything in the event queue: all that was raised before the daemon's last reply.
 * context.lock is held. */
void events_drain(struct softhca_context *ctx);
/* Drops queued events of a CQ, QP or SRQ that is being destroyed, and waits until those that the
 * user took have been acknowledged. No lock is held. */
void events_forget(struct node *object);
int event_queue_create(struct event_queue *q);
void event_queue_destroy(struct event_queue *q);
/* The daemon has died: wakes everyone who waits. */
void events_dead(struct softhca_context *ctx);

#endif
