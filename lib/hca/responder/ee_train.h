/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EE_TRAIN_H
#define RESPONDER_EE_TRAIN_H
/* ExecutionEngine: packets that travel as one. Stage responder_exec. */
#include "ee_work.h"

/* Executes a train as one. False: not all of it is regular, and nothing has happened; the caller takes its
 * first packet off. */
bool ee_execute_train(struct engine *e, struct execution_engine *ee, struct counters *c,
		      struct rte_mbuf *m);

#endif
