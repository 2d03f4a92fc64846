/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CM_WORLD_PRIV_H
#define TESTS_UNIT_CM_WORLD_PRIV_H
/* What the files of cm_world share: cm_world.c has the wire and the clock, cm_owner.c the owners,
 * cm_forge.c the forged messages. */
#include <stdint.h>

#include "test.h"
#include "cm_world.h"

enum {
	SIDES = 2,
	PACKETS = 4096, /* on their way */
	SEEN = 256,	/* the last that were sent, for the forger */
	US = 1000,
	MS = 1000 * US,
};
#define SECOND ((uint64_t)1000 * MS)
#define NEVER  UINT64_MAX

enum state {
#define STATE(id, text) S_##id,
#include "connection.def"
	STATES
};

struct packet {
	uint64_t due; /* NEVER: none here */
	unsigned int to;
	struct cm_path path; /* as the receiver has it */
	uint8_t mad[CM_MAD_BYTES];
};

struct owner {
	bool live, active, sidr, established;
	uint8_t side, state; /* as it was when somebody looked last */
	uint32_t number;     /* 1 .. */
	uint32_t partner;    /* who is at the other end; 0: not known */
	uint32_t qpn;
	struct cm_connection *c;
	uint64_t due, end; /* when it does something; when it dies */
};

struct world {
	const struct world_config *config;
	struct world_result *result;
	uint64_t now, random;
	struct cm *cm[SIDES];
	struct packet packets[PACKETS];
	unsigned int packets_used; /* places that ever had one */
	struct packet seen[SEEN];
	unsigned int seen_count;
	unsigned int sent; /* MADs, ever */
	struct owner *owners;
	unsigned int owner_count, open; /* places; active ones that are live */
	uint32_t next_number, next_qpn;
};

extern struct world world;

/* Fails the test, saying where in the world. */
void world_fail(const char *what) __attribute__((noreturn));
uint64_t world_random(void);
uint32_t below(uint32_t n);
bool per_mille(unsigned int n);
/* From side `from` to the other; as the sender has it. */
struct cm_path world_path(unsigned int from);

/* Callbacks of the managers, ctx: the side. */
void *owner_request(void *ctx, struct cm_connection *c, const struct cm_path *path,
		    const struct cm_message *m, uint16_t *reason);
void owner_event(void *ctx, void *owner, struct cm_connection *c, const struct cm_event *e);
/* A new attempt from a side; false: no place. */
bool owner_start(unsigned int side);
/* Fails the test because of that owner. */
void owner_fail(const struct owner *o, const char *what) __attribute__((noreturn));
/* Do what is due at world.now. */
void owners_act(void);
/* When one has something to do. */
uint64_t owners_due(void);

/* Delivers a forged message to one of the sides. */
void forge(void);

#endif
