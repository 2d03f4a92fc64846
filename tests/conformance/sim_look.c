/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of a simulation: contexts, counters, whether everything has been returned. */
#include <stdio.h>
#include "requester/requester.h"
#include "responder/responder.h"
#include "sim.h"

struct qp *sim_context(struct sim *s, int node, unsigned qp)
{
	return qp_find(&s->node[node].hca->qps, s->node[node].qp[qp].qpn);
}

uint64_t sim_counter(struct sim *s, int node, enum counter which)
{
	return hca_counter(s->node[node].hca, which);
}

void sim_print_counters(struct sim *s)
{
	for (unsigned n = 0; n < s->nodes && s->node[n].hca; n++)
		for (unsigned c = 0; c < COUNTER_COUNT; c++)
			if (sim_counter(s, n, c))
				fprintf(stderr, "sim: node %u: %s %lu\n", n, counter_name(c),
					(unsigned long)sim_counter(s, n, c));
}

bool sim_quiet(struct sim *s)
{
	unsigned wire = sim_wire_count(s);
	unsigned packets = rte_mempool_in_use_count(s->packets), stock = 0, elements = 0,
		 holders = 0;
	unsigned descriptors = rte_mempool_in_use_count(s->descriptors);
	bool quiet;

	for (unsigned n = 0; n < s->nodes && s->node[n].hca; n++) {
		stock += requester_stock(s->node[n].hca->engines) +
			 responder_stock(s->node[n].hca->engines);
		elements += requester_elements(s->node[n].hca->engines);
		holders += requester_holders(s->node[n].hca->engines);
	}
	quiet = packets == wire + stock && descriptors <= 2 && /* WQEParse keeps one */
		!elements && !holders;
	for (unsigned n = 0; n < s->nodes && s->node[n].hca; n++)
		for (unsigned c = 0; c < CHANNEL_COUNT; c++)
			if (rte_ring_count(s->node[n].hca->engines[0].channel[c].ring)) {
				fprintf(stderr, "sim: node %u: %s is not empty\n", n,
					channel_infos[c].name);
				quiet = false;
			}
	if (!quiet)
		fprintf(stderr,
			"sim: %u packets (%u on the wire, %u in stock), %u descriptors, %u "
			"retransmit buffers in use, counted against %u holders\n",
			packets, wire, stock, descriptors, elements, holders);
	return quiet;
}
