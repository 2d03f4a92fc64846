/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EE_PLAIN_H
#define RESPONDER_EE_PLAIN_H
/* ExecutionEngine: requests that need no states. Stage responder_exec. */
#include "ee_work.h"

enum ee_plain {
	EE_PLAIN,      /* executed */
	EE_PLAIN_PART, /* the first packets of the train are executed; it has the rest */
	EE_PLAIN_NOT, /* nothing has happened: the states must see it, or the first packet of a train */
};

/* Executes a WRITE or SEND of one packet behind another request of its queue pair, or a train. */
enum ee_plain ee_execute_plain(struct engine *e, struct execution_engine *ee, struct counters *c,
			       struct rte_mbuf *m);

#endif
