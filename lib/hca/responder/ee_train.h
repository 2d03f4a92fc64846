/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EE_TRAIN_H
#define RESPONDER_EE_TRAIN_H
/* ExecutionEngine: trains of middle packets. Stage responder_exec. */
#include "ee_work.h"

/* Executes a whole train. False: it is irregular, and nothing has changed; the caller splits its
 * first packet off. */
bool ee_execute_train(struct engine *e, struct execution_engine *ee, struct counters *c,
		      struct rte_mbuf *m);

#endif
