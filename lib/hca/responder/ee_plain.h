/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EE_PLAIN_H
#define RESPONDER_EE_PLAIN_H
/* ExecutionEngine: regular requests, which bypass its states. Stage responder_exec. */
#include "ee_work.h"

enum ee_plain {
	EE_PLAIN,      /* executed */
	EE_PLAIN_PART, /* the first packets were executed; the train keeps the rest */
	EE_PLAIN_NOT,  /* nothing was executed: for the states, a train packet by packet */
};

/* Executes a train, or a single-packet WRITE or SEND that follows another request of its queue
 * pair. */
enum ee_plain ee_execute_plain(struct engine *e, struct execution_engine *ee, struct counters *c,
			       struct rte_mbuf *m);

#endif
