/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFORMANCE_SIM_SWITCH_H
#define CONFORMANCE_SIM_SWITCH_H
/*
 * A switch: for each output one queue, first in, first out, and a link that sends it; all queues
 * share one buffer. Nothing runs: a queue is the time until which its link is busy, so what a frame
 * meets is known when it arrives. Frames must be offered in the order of time.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	SIM_PORTS_MAX = 40,
	SIM_GAP_BYTES = 24, /* of a frame on a link, besides its bytes: preamble, FCS, gap */
};

/* A link and the queue in front of it. */
struct sim_link {
	uint32_t mbps;	   /* 0: a queue is never there, and frames take no time */
	uint64_t delay_ns; /* of propagation */
	uint64_t free_ps;  /* when it will have sent what is queued */
};

struct sim_port {
	struct sim_link link;
	uint64_t frames, bytes; /* sent */
	uint32_t marked, dropped, most_queued;
};

/* What switches are like; copied into each. */
struct sim_switch_kind {
	uint32_t buffer_bytes; /* of all queues; 0: without end */
	/* A queue may take no more than so many eighths of what is free of the buffer: of 1 MB, one
	 * alone takes 512 KB with 8, two 341 KB each. 0: all of it. */
	uint32_t share_eighths;
	/* RED: frames whose senders allow it (ECT) are marked with a probability that rises linearly
	 * from 0 to pmax between kmin and kmax bytes in their queue; beyond that, all. kmax 0: none. */
	uint32_t kmin, kmax, pmax_ppm;
};

struct sim_switch {
	struct sim_switch_kind kind;
	uint64_t rng;
	unsigned ports;
	struct sim_port port[SIM_PORTS_MAX];
};

/* Bytes that wait for the link, or are being sent. */
uint64_t sim_link_queued(const struct sim_link *l, uint64_t now_ns);
/* Puts a frame of so many bytes into the queue. Returns when its last bit arrives at the other end. */
uint64_t sim_link_send(struct sim_link *l, unsigned bytes, uint64_t now_ns);

/*
 * A frame arrives for that output. True: it goes there, maybe with a mark, and arrives at the next
 * station at *at_ns. False: there is no room, it is dropped.
 */
bool sim_switch_forward(struct sim_switch *w, unsigned port, uint8_t *frame, unsigned bytes,
			uint64_t now_ns, uint64_t *at_ns);

/* The generator of everything here that is random: 64 bits more. */
uint64_t sim_next_random(uint64_t *state);

#endif
