/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFORMANCE_SCENARIO_H
#define CONFORMANCE_SCENARIO_H
/*
 * Whole HCAs that compete in a network, and what becomes of them: goodput of each flow over time,
 * times of single messages. A flow is one connection on which a client has `depth` messages of 64
 * KiB outstanding. Virtual time: CPUs are infinitely fast, links are what limits.
 */
#include "sim.h"

enum {
	SCENARIO_FLOWS = 20,
	SCENARIO_WINDOWS = 4000,
	SCENARIO_BYTES = 65536, /* of a message */
};

struct scenario {
	struct sim_network_config network;
	unsigned senders; /* nodes 1 to this one send to node 0 */
	bool victim;	  /* the next node WRITEs to the one after it: the last flow */
	uint8_t opcode;	  /* USER_RDMA_WRITE if 0; USER_RDMA_READ: node 0 READs; USER_SEND */
	bool equal;	  /* the peers have agreed on selective repeat */
	uint32_t spread;  /* setting path_spread; 0: 1 */
	unsigned depth;
	enum congestion_control cc;
	enum loss_recovery sender, receiver; /* settings of either end */
	struct sim_faults faults;	     /* once it is warm */
	/* The last sender of several begins and ends then; 0: as all, the whole time. */
	unsigned joins_ms, leaves_ms;
	unsigned warm_ms, run_ms; /* what is measured comes behind the first */
	unsigned step_us;	  /* of the simulation; 0: 1 */
};

/* What was completed: messages from the very beginning, times from the end of warm_ms on. */
struct outcome {
	unsigned flows, windows; /* of a millisecond */
	uint16_t messages[SCENARIO_FLOWS][SCENARIO_WINDOWS];
	uint32_t *took_ns; /* each message of the senders, in ascending order */
	unsigned times;
	uint64_t sent, again; /* packets with payload, and of them for the second time */
	uint64_t dropped, marked, cnps, timeouts;
};

/* Runs it. The simulation has to have enough buffers; no completion may be an error; in the end
 * nothing is left over: else the test fails. To be released with scenario_free(). */
struct outcome *scenario_run(const struct scenario *c, uint64_t seed);
void scenario_free(struct outcome *o);

/* Mean payload of a flow from one millisecond to another, Mbit/s. */
double scenario_mbps(const struct outcome *o, unsigned flow, unsigned from_ms, unsigned to_ms);
/* The same of all senders. */
double scenario_total_mbps(const struct scenario *c, const struct outcome *o);
/* That quantile of the times, in ns. */
uint32_t scenario_quantile(const struct outcome *o, double quantile);

#endif
