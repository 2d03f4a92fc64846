/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EXECUTION_ENGINE_H
#define RESPONDER_EXECUTION_ENGINE_H
/*
 * ExecutionEngine (seed 000 4.4.1): checks and executes requests in order. HP_EE → EE_RESPG, client
 * memory, receive completions. Stage responder_exec.
 *
 * What goes to RespPktGen is always a received mbuf, with what to answer in its arrival: so nothing
 * is allocated here, and n packets never make more than n elements.
 */
#include <stdint.h>
#include "pipeline/engine.h"
#include "pipeline/message.h"

/* Receive completions that flushing queue pairs may write in one poll. */
#define EE_FLUSH_BUDGET 64u

int ee_create(struct engine *e); /* 0 or -ENOMEM */
void ee_destroy(struct engine *e);

/* Looks at the queue pairs that were woken: those in ERR get their receive queues flushed. Returns
 * completions written. */
unsigned ee_wakes(struct engine *e);

/* Executes one burst, as much as EE_RESPG has room for. Returns packets taken. */
unsigned ee_poll(struct engine *e);

#endif
