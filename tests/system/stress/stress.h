/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STRESS_H
#define STRESS_H
/*
 * The stress: threads that create, use, modify and destroy everything at random.
 *
 * A thread has its own world: pairs of queue pairs, one end on each HCA, memory regions, shared
 * receive queues. A pair's data follow from its seed and a sequence number, so each byte that
 * arrives can be checked. All choices follow from the thread's seed; the interleaving does not.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "softhca/softhca.h"

enum {
	SIDES = 2,
	WINDOW = 8, /* send requests of an end that may be open */
	RECVS = 16, /* receive requests of an end, or of an SRQ */
	SLOT_BYTES = 16384,
	MESSAGE_MAX = SLOT_BYTES - 64,
	PAIRS = 4,	 /* of a thread */
	BOX_SLOTS = 128, /* buffers for an SRQ: a reset of a queue pair loses some */
	STRAYS = 6,	 /* regions of a thread that come and go while they are in use */
	AREA_BYTES = (2 * WINDOW + RECVS) * SLOT_BYTES + 4096,
	GRH_BYTES = 40,
	CQ_ENTRIES = 64, /* enough for all that a pair may leave there */
	REGION_PAGES_MAX = 4,
};

/* Counts of all threads and processes: shared memory, atomic. */
enum tally {
	TALLY_POSTED,
	TALLY_COMPLETED,
	TALLY_FAILED, /* of these, in error */
	TALLY_RECEIVED,
	TALLY_VERIFIED_BYTES,
	TALLY_PAIRS,
	TALLY_EXACT,   /* pairs that ended with all counts exact */
	TALLY_FLUSHED, /* pairs that were moved to ERR and gave everything back */
	TALLY_RESETS,
	TALLY_DESTROYED, /* queue pairs destroyed under load */
	TALLY_DRAINS,
	TALLY_REGIONS,
	TALLY_EVENTS,
	TALLY_CLOSED, /* contexts closed with everything in them */
	TALLY_KEYS,   /* windows and regions for registration by request */
	TALLY_KEYS_CHANGED,
	TALLY_THROUGH, /* requests that named one */
	TALLY_REREGISTERED,
	TALLY_RESIZES,
	TALLY_SQE, /* send queues that failed and were taken up again */
	TALLY_OVERFLOWS,
	TALLY_REFUSED, /* requests that were to be refused and were */
	TALLY_WRONG,
	TALLY_COUNT
};
extern uint64_t *tally;
static inline void add(enum tally what, uint64_t n)
{
	__atomic_fetch_add(&tally[what], n, __ATOMIC_RELAXED);
}

static inline uint64_t told(enum tally what)
{
	return __atomic_load_n(&tally[what], __ATOMIC_RELAXED);
}

/* Says what is wrong, with the seed; the run has failed. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Longest time without progress, seconds. */
extern unsigned patience_s;

struct random {
	uint64_t state;
};
uint64_t draw(struct random *r);
static inline uint32_t below(struct random *r, uint32_t n)
{
	return (uint32_t)(draw(r) >> 32) % n;
}
static inline bool one_in(struct random *r, uint32_t n)
{
	return below(r, n) == 0;
}

enum kind {
	KIND_SEND,
	KIND_SEND_IMM,
	KIND_WRITE,
	KIND_WRITE_IMM,
	KIND_READ,
	KIND_ADD,
	KIND_SWAP,
	KIND_STRAY_WRITE, /* into a region that may go */
	KIND_STRAY_READ,
	KIND_SEND_INV, /* invalidates a key of the peer's */
	KIND_BIND,     /* keys.c */
	KIND_REGISTER,
	KIND_INVALIDATE,
	KIND_STALE, /* a WRITE through a key that names nothing any more */
	KIND_BAD,   /* a SEND whose local key there is not: UC, UD */
	KIND_COUNT
};

struct op {
	uint64_t seq;
	uint32_t length;
	uint8_t kind;	/* enum kind */
	uint8_t expect; /* enum softhca_wc_status */
	bool open, signaled;
	bool through;	    /* names the peer's handle */
	uint32_t disturbed; /* pair.disturbed when it was posted */
};

/* A key over the slots that the peer writes and reads, with its own lifetime. */
enum handle_kind { HANDLE_NONE, HANDLE_WINDOW_1, HANDLE_WINDOW_2, HANDLE_REGION };
struct handle {
	struct softhca_mw *mw; /* windows */
	struct softhca_mr *mr; /* a region to be registered by a request */
	uint64_t base;	       /* how requests call its first byte */
	uint64_t page[REGION_PAGES_MAX];
	uint32_t key, next_key; /* now, once what is under way has completed */
	uint32_t uses;		/* open requests of the peer that name it */
	uint8_t kind;		/* enum handle_kind */
	uint8_t first, slots;
	bool bound;
	bool changing; /* a request that binds or invalidates it is open */
	bool too_long; /* and must be refused */
	bool lost;     /* only to be freed */
};

/* A shared receive queue and its buffers. */
struct srq_box {
	struct softhca_srq *srq;
	struct softhca_mr *mr;
	uint8_t *area;
	bool posted[BOX_SLOTS];
	uint32_t users;
};

/* One side of a pair. */
struct end {
	struct softhca_pd *pd;
	struct softhca_channel *channel;
	struct softhca_cq *send_cq, *recv_cq; /* may be the same */
	struct softhca_qp *qp;
	struct srq_box *box; /* NULL: its own receive queue */
	struct softhca_ah *ah;
	uint8_t *area;
	struct softhca_mr *mr;
	struct handle handle;
	struct op op[WINDOW];
	uint64_t posted, completed; /* send requests: the next number; all before are over */
	uint64_t delivered;	    /* of them, completed well and taking a receive request */
	uint64_t added;		    /* of them, additions completed well */
	uint64_t recv_posted, recv_completed, received;
	uint64_t recv_seq; /* the next one that may arrive */
	bool draining;	   /* in SQD */
	bool error;	   /* moved to ERR, or failed */
	bool sqe;	   /* UC, UD: a request that fails has been posted */
	bool sqe_seen;	   /* and has failed */
};

struct pair {
	struct end end[SIDES];
	uint64_t key; /* of its data; a new one with each connection */
	enum softhca_qp_type type;
	uint8_t timeout;
	bool live, connected;
	uint32_t disturbed; /* so often something was done to it after which it may fail */
};

enum stray_state {
	STRAY_NONE,
	STRAY_REGISTERED,
	STRAY_CLOSED, /* reregistered for ourselves alone: must not change */
	STRAY_GONE,   /* deregistered, must not change */
};
struct stray {
	uint8_t *memory;
	struct softhca_mr *mr;
	uint32_t bytes;
	uint8_t side, state;
};

struct world {
	struct random random;
	struct softhca_context *ctx[SIDES];
	bool own_ctx;
	bool overflows; /* events of its contexts are its own */
	bool sharing;	/* every end receives through its side's SRQ */
	uint32_t mtu_bytes;
	struct softhca_pd *pd[SIDES];
	struct srq_box box[SIDES];
	struct pair pair[PAIRS];
	struct stray stray[STRAYS];
};

/* wr_id of receive requests; those of sends are their sequence numbers. */
#define RECEIVE (1ull << 63)
/* The words of an area that atomics change. */
enum { WORD_ADDED, WORD_SWAPPED };
#define WORDS(e) ((uint64_t *)(void *)((e)->area + AREA_BYTES - 4096))

/* ---- world.c ---- */
/* Runs one thread's world until time_is_up(until_ns); ctx: shared with other threads, or NULL: its
 * own. */
void world_run(struct softhca_context *const ctx[SIDES], uint64_t seed, uint64_t until_ns);
int contexts_open(struct softhca_context *ctx[SIDES]);
uint64_t clock_ns(void);

/* A slow machine gets more time, until a pair has ended with exact counts; but two minutes at most.
 * until_ns: UINT64_MAX is never. */
static inline bool time_is_up(uint64_t until_ns)
{
	enum { GRACE_S = 120 };
	uint64_t now_ns = clock_ns();

	return now_ns >= until_ns &&
	       (told(TALLY_EXACT) || now_ns - until_ns >= GRACE_S * 1000000000ull);
}

/* ---- memory.c ---- */
void box_make(struct world *w, unsigned side);
void box_free(struct srq_box *b);
void box_fill(struct srq_box *b);
/* Few of its buffers are left: no more may be lost, except with the last queue pairs. */
bool box_worn(const struct srq_box *b);
/* One step with one of the regions that come and go. */
void stray_step(struct world *w);
void strays_free(struct world *w);
struct stray *stray_on(struct world *w, unsigned side);

/* ---- pair.c: life of a pair ---- */
void pair_make(struct world *w, struct pair *p);
/* Ends it by waiting until everything is over; then all counts must be exact. */
void pair_finish(struct world *w, struct pair *p);
/* The same after both ends were moved to ERR. */
void pair_flush(struct world *w, struct pair *p);
/* Frees all objects of it as it is. */
void pair_destroy(struct pair *p);
void pair_reset(struct world *w, struct pair *p);
void pair_error(struct world *w, struct pair *p);
void pair_drain(struct world *w, struct pair *p);
void pair_look(struct world *w, struct pair *p);

/* ---- keys.c ---- */
/* One step with the key of that side. */
void handle_step(struct world *w, struct pair *p, unsigned side);
void handle_free(struct end *e);
/* The parts of a request that names one. */
void handle_fill(struct pair *p, unsigned side, const struct op *op, struct softhca_send_wr *wr);
/* Posts the bind of a window of type 1. As softhca_post_send(). */
int handle_post_bind(struct end *e, const struct softhca_send_wr *wr);
/* May the peer name the slot of `seq` through it? By which address? */
bool handle_covers(const struct end *e, uint64_t seq);
uint64_t handle_address(const struct end *e, const uint8_t *at);
/* A request of that side is over. */
void handle_done(struct pair *p, unsigned side, const struct op *op, bool ok);

/* ---- queues.c ---- */
void resize_step(struct world *w, struct pair *p);
void overflow_step(struct world *w);
/* Makes a send queue of UC or UD fail. */
void sqe_step(struct world *w, struct pair *p);
/* Is that error part of it? */
bool sqe_took(struct end *e, const struct op *op, const struct softhca_wc *wc);
/* Restarts it when everything is flushed. */
void sqe_recover(struct pair *p, unsigned side);

/* ---- stuck.c ---- */
/* The pair makes no progress: reports the error with everything known about it. */
void report_stuck(struct world *w, struct pair *p, const char *what);

/* ---- traffic.c ---- */
void post_receives(struct pair *p, unsigned side);
void post_some(struct world *w, struct pair *p, unsigned side);
/* A last request that is signaled: when it is over, all are. False: no room. */
bool post_marker(struct pair *p, unsigned side);
bool can_post(const struct pair *p, unsigned side);
/* Posts a request of kind, length and expected outcome as in *op. False: it could not be. */
bool post_special(struct world *w, struct pair *p, unsigned side, struct op *op);
/* Takes what the CQs of both ends hold. Returns how many. */
unsigned pair_poll(struct pair *p);

#endif
