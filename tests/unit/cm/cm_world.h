/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CM_WORLD_H
#define TESTS_UNIT_CM_WORLD_H
/*
 * Two connection managers in virtual time, joined by a wire that loses, duplicates, delays and
 * reorders, and owners on both sides that connect, answer, refuse, send MRAs, disconnect and die at
 * random. Everything follows from the seed.
 *
 * It always checks that an owner gets only events of its own connection, only while it has one, and
 * only in a possible order; that all messages are well formed; and that in the end nothing is left
 * (cm_census) and nothing is due.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cm/connection.h"

struct world_config {
	const char *name;
	uint64_t seed;
	unsigned int attempts, at_once; /* connects, half of them from either side */
	unsigned int loss[2];		/* per mille, of what side 0 and side 1 send */
	unsigned int duplicated;	/* per mille */
	unsigned int late;	  /* per mille, by up to 20 s: later than retries and time-wait */
	unsigned int resolutions; /* per mille of the attempts are SIDR_REQs */
	bool kind;		  /* no rejections, deaths, or requests in the wrong state */
	bool qpns_again;	  /* QPNs are reused as soon as their owner has released them */
	unsigned int forged;	  /* per mille of the steps, another MAD comes: mutated, random */
	struct cm_limits limits;
};

/* The results, of both sides. */
struct world_result {
	unsigned int established[2]; /* of those who asked, of those who were asked */
	unsigned int resolved, refused, forged;
	unsigned int events[16]; /* by enum cm_event_type */
	unsigned int sent[CM_APR + 1];
	uint32_t connections_most;
	struct cm_counters counters[2];
	uint64_t seconds; /* of virtual time */
};

/* Runs it to its end; fails the test, naming configuration and seed, if something is wrong. */
void world_run(const struct world_config *config, struct world_result *result);

#endif
