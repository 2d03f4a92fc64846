/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GOLDEN_SCENARIO_H
#define GOLDEN_SCENARIO_H
/* The actions of both sides of each capture in tests/golden: generated from the .json files by
 * `golden_scenarios`, at build time. */
#include "context/qp_context.h"
#include "sim.h"

enum golden_event_kind { GOLDEN_POST, GOLDEN_SENT, GOLDEN_RECEIVED };

/* In the order in which that side saw them: it posted a request, or took a completion. */
struct golden_event {
	enum golden_event_kind kind;
	uint32_t wr_id;
	uint8_t opcode;	  /* POST, RECEIVED: enum user_opcode */
	uint8_t syndrome; /* SENT, RECEIVED: enum cqe_syndrome, 0: success */
	uint32_t bytes;
	uint32_t imm;	 /* the wire's four bytes */
	uint64_t remote; /* POST: offset in the peer's region */
	uint32_t key;	 /* POST: not 0: another key than the region's, at address 0 + remote, or
			    SEND with invalidate: what to invalidate */
	uint64_t swap_add, compare;
	bool solicited;
};

struct golden_side {
	struct sim_identity identity;
	const struct golden_event *events;
	unsigned event_count;
	uint8_t memory[16]; /* the atomics' words at the end */
	unsigned memory_bytes;
	uint32_t window_key; /* not 0: a memory window of this side */
	uint64_t window_va;
	const char *grh; /* UD: the 40 bytes in front of each receive, hexadecimal */
};

struct golden_scenario {
	const char *name;
	const char *capture[2]; /* file: at the client's host, at the server's */
	enum qp_service service;
	uint32_t mtu;
	uint8_t timeout, min_rnr_timer;
	bool late;		    /* the receives were posted late */
	int fill;		    /* every payload byte; -1: the pattern of README.md */
	uint32_t recv_bytes;	    /* of each receive buffer */
	struct golden_side side[2]; /* client, server */
};

extern const struct golden_scenario golden_scenarios[];
extern const unsigned golden_scenario_count;

#endif
