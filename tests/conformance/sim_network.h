/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFORMANCE_SIM_NETWORK_H
#define CONFORMANCE_SIM_NETWORK_H
/*
 * A network between the nodes of a simulation: a link from each node to a switch and back; with more
 * than one leaf, every leaf is joined to every spine, and a connection goes through the spine that
 * its UDP source port chooses (ECMP).
 *
 *   node --+      +-- spine 0 --+      +-- node
 *   node --+ leaf +-- spine 1 --+ leaf +-- node
 *   node --+      +-- ...     --+      +-- node
 *
 * Frames on their way are events in the order of time, among equals in that of their departure.
 * Copies of this from the same seed do the same.
 */
#include <rte_mbuf.h>
#include "sim_switch.h"

enum { SIM_LEAVES_MAX = 4, SIM_SPINES_MAX = 4 };

struct sim_network_config {
	unsigned leaves; /* 0 or 1: one switch, no spines; else node i is at leaf i % leaves */
	unsigned spines;
	uint32_t port_mbps;   /* from a node */
	uint32_t queue_bytes; /* that wait in a node's port before it takes no more */
	uint32_t link_mbps;   /* to a node */
	uint32_t spine_mbps;  /* between switches */
	uint64_t delay_ns;    /* of each link */
	/* By which links from leaves to spine 1 are longer; those to spine 2 by twice as much ... */
	uint64_t detour_ns;
	uint32_t
		slow_mbps; /* instead of spine_mbps, to and from spine number slow_spine; 0: none */
	unsigned slow_spine;
	uint32_t spray_ppm; /* so many frames in a million take any spine, at random */
	struct sim_switch_kind kind;
};

struct sim_network;

/* Returns NULL if there is no memory. `config` is copied. */
struct sim_network *sim_network_create(const struct sim_network_config *config, unsigned nodes,
				       uint64_t seed);
/* Frees it and the frames in it. */
void sim_network_destroy(struct sim_network *n);
/* Drops all that is on its way. */
void sim_network_empty(struct sim_network *n);

/* Has the node's port room for another frame? */
bool sim_network_takes(const struct sim_network *n, unsigned node, uint64_t now_ns);
/* A frame of at least an Ethernet header leaves a node for another, late_ns late. The network owns
 * it. */
void sim_network_send(struct sim_network *n, unsigned from, unsigned to, struct rte_mbuf *m,
		      uint64_t now_ns, uint64_t late_ns);
/* The next frame that has arrived at a node by then, which is the caller's; NULL: none. */
struct rte_mbuf *sim_network_take(struct sim_network *n, uint64_t now_ns, unsigned *node);

/* When the next one gets somewhere; UINT64_MAX: nothing is on its way. */
uint64_t sim_network_due(const struct sim_network *n);
/* Frames on their way. */
unsigned sim_network_count(const struct sim_network *n);
/* The output to a node, at its leaf. */
struct sim_port *sim_network_port(struct sim_network *n, unsigned node);
/* Sums over all switches. */
uint64_t sim_network_dropped(const struct sim_network *n);
uint64_t sim_network_marked(const struct sim_network *n);

#endif
