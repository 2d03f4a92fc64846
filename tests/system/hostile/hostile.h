/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOSTILE_H
#define HOSTILE_H
/*
 * The hostile client: attacks, each in a separate process. It uses the library to get objects that
 * work and then writes past the library into everything that it shares with the daemon.
 */
#include <stdbool.h>
#include <stdint.h>
#include "client_priv.h"

enum { SIDES = 2, AREA_BYTES = 256 << 10, VICTIMS_MAX = 16 };

/* One end: connected queue pairs of each kind and all that they need. */
struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_srq *srq;
	struct softhca_mr *mr, *read_only;
	struct softhca_ah *ah;
	uint8_t *area;
	struct softhca_qp *qp[4]; /* enum which */
};
enum which { RC, UC, UD, SHARED, WHICH_COUNT };

struct attacker {
	uint64_t state; /* of the random numbers */
	struct side side[SIDES];
	uint32_t given; /* the number that the daemon gave last: of a window, a key, a queue */
};

/* What an attack's process ends with if it could not begin. */
enum { SET_UP_FAILED = 3 };

/* QPNs of clients that must not be disturbed. */
extern uint32_t victims[VICTIMS_MAX];
extern unsigned victim_count;

/* Random numbers. */
uint64_t draw(struct attacker *a);
uint32_t below(struct attacker *a, uint32_t n);
/* One that hurts: a boundary, or anything. */
uint64_t nasty(struct attacker *a);

/* ---- objects.c ---- */
/* Objects that work; ends the process if they cannot be had. */
void objects_make(struct attacker *a);
/* Both ends of a kind of queue pair start over. */
void objects_rejoin(struct attacker *a, enum which which);
/* If one of them has failed. */
void objects_revive(struct attacker *a, enum which which);

/* ---- the attacks: run until they are killed or finished ---- */
void attack_fields(struct attacker *a);	   /* fields.c: every field of every control request */
void attack_sockets(struct attacker *a);   /* fields.c: floods, half-closed, descriptors */
void attack_wqes(struct attacker *a);	   /* wqes.c: every word of every send descriptor */
void attack_receives(struct attacker *a);  /* wqes.c: the same of receive descriptors */
void attack_doorbells(struct attacker *a); /* wqes.c: those of others among them */
void attack_words(struct attacker *a);	   /* words.c: every word of pages, records, queues */
void attack_flips(struct attacker *a);	   /* words.c: descriptors change while they are read */
void attack_memory(struct attacker *a);	   /* words.c: memory goes away */

void attack_refusals(struct attacker *a); /* refusals.c: each reason to refuse, on purpose */

/* Writes a send descriptor of a random kind, as it should be, at a place of the queue. Returns its
 * size in units; *opcode: enum user_opcode. */
unsigned wqe_write(struct attacker *a, unsigned side, enum which which, uint32_t slot,
		   uint8_t *opcode);
/* Posts it. */
void wqe_ring(struct attacker *a, unsigned side, enum which which, uint32_t slot, uint8_t opcode,
	      unsigned units);
/* Posts a few receive descriptors, as they should be. */
void receives_post(struct attacker *a, unsigned side, enum which which);

#endif
