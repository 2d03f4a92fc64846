/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H
/*
 * The world of the stateful targets: one whole HCA in virtual time (the conformance simulator) with
 * queue pairs in all states. The input acts as its peer, or its client, or both.
 *
 * Its numbers are the same in every run, so that an input names them: QPNs, PSNs, keys, addresses.
 * The changes of an input are undone after it, queue pair by queue pair.
 */
#include "fuzz.h"
#include "sim.h"

enum world_qp {
	WORLD_RC,   /* RTS, with a receive queue */
	WORLD_SRQ,  /* RTS, on the shared receive queue */
	WORLD_ASKS, /* RTS, with a request of each kind unanswered */
	WORLD_RTR,
	WORLD_UC,
	WORLD_UD,
	WORLD_ERR,
	WORLD_SQD, /* with a SEND unanswered */
	WORLD_QPS
};

enum {
	WORLD_PSN = 0x100, /* initial, of both directions */
	WORLD_MTU = 256,
	WORLD_QKEY = 0x11111111,
	WORLD_BYTES = 1 << 14, /* of the client's memory */
	WORLD_VAULT_BYTES = 4096,
	WORLD_RECEIVES = 8, /* posted to each queue pair that receives */
	WORLD_RECEIVE_BYTES = 1024,
};
#define WORLD_VA       0x10000000ull
#define WORLD_QPN      0x20000u
#define WORLD_KEY      0xabc00105u
#define WORLD_PEER_QPN 0x30000u
/* Two keys of memory that no peer may ever change: one is for reading, one for another domain. */
#define WORLD_KEY_READ_ONLY 0xdef02000u
#define WORLD_KEY_FOREIGN   0xdef02100u
#define WORLD_VAULT_VA	    0x20000000ull

extern struct sim *world;

/* The HCA's packets, and its client's completions and events, for a target to check. Both may be
 * NULL. */
struct world_watch {
	void (*packet)(const struct wire_frame *f);
	void (*completion)(const struct cqe *c);
	void (*restored)(unsigned int qp);
};
extern struct world_watch world_watch;

/* Makes it, once for all inputs. */
void world_start(void);
/* That many steps; completions and events are taken. */
void world_run(unsigned int steps);
/* Ends an input: runs until idle, checks that nothing is lost and the vault untouched, and restores
 * everything. */
void world_restore(void);
/* The same after a client that wrote anything into its queues and records: all of them are created
 * again. */
void world_rebuild(void);

/* The peer's packet with these headers and that many bytes of payload, checksums and ICRC right.
 * Returns its length. `frame` has room for WORLD_FRAME_BYTES. */
unsigned int world_frame(uint8_t *frame, struct wire_headers h, unsigned int bytes);
enum { WORLD_FRAME_BYTES = 1200, WORLD_BURST = 0x8000 };

#endif
