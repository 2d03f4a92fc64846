/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_PRIV_H
#define CLIENT_PRIV_H
/*
 * What the files of libsofthca share.
 *
 * Locks, in the order in which they may be taken:
 *   context.lock                    object lists, memory
 *   context.rpc                     control socket
 *   context.event_lock              event queues
 *   cq.lock                         } spin locks, held for a few hundred cycles,
 *   sq.lock, rq.lock or srq.lock    } no system call inside
 *   doorbell_fifo.lock              }
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include "base/look.h"
#include "host-abi/control.h"
#include "host-abi/cqe.h"
#include "host-abi/doorbell.h"
#include "host-abi/wqe.h"
#include "softhca/softhca.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define CACHE_LINE  __attribute__((aligned(64)))

enum { PAGE_BYTES = 4096, UNIT_BYTES = 16, RECV_STRIDE_MIN = 64 };

/* The smallest of from, 2 × from, 4 × from, ... that is at least n. */
static inline uint32_t round_up(uint32_t n, uint32_t from)
{
	while (from < n)
		from *= 2;
	return from;
}

/* Bytes of a receive queue entry: a next unit, at least one scatter entry, and a zero unit. */
static inline uint32_t receive_stride(uint32_t max_sge)
{
	return round_up((2 + (max_sge ? max_sge : 1)) * UNIT_BYTES, RECV_STRIDE_MIN);
}

struct sharing;

struct spin {
	uint32_t held; /* atomic */
};

void spin_wait(struct spin *l);

static inline void spin_lock(struct spin *l)
{
	if (unlikely(__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE)))
		spin_wait(l);
}

static inline bool spin_trylock(struct spin *l)
{
	return !__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE);
}

static inline void spin_unlock(struct spin *l)
{
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

/* All objects of a context are in a list, so that closing frees what is left. */
enum node_kind {
	NODE_PD,
	NODE_MR,
	NODE_MW,
	NODE_CHANNEL,
	NODE_CQ,
	NODE_SRQ,
	NODE_QP,
	NODE_AH,
	NODE_KINDS
};
struct node {
	struct node *next, *prev;
	struct softhca_context *ctx;
	uint32_t users; /* dependent objects; context.lock */
	uint8_t kind;	/* enum node_kind */
	/* Asynchronous events about it: returned to the user, acknowledged; event_lock. */
	uint32_t events, acked;
};

/* A part of a memory file that the daemon maps (CONTROL_ADD_PIECE). Pieces of one file and kind do
 * not overlap. */
struct file_piece {
	uint64_t device, inode;
	uint64_t offset, bytes; /* in the file */
	uint64_t idle_since;	/* context.releases when users became 0 */
	uint32_t number;
	uint32_t users; /* parts of regions */
	bool writable;
	bool kept; /* even without users */
};

/* A range of a piece. */
struct region_part {
	struct file_piece *piece;
	uint64_t offset; /* in the piece */
	uint64_t bytes;
};

/* Memory that the daemon maps as well. */
struct region {
	struct region *next;
	struct sharing *sharing; /* of the program's own memory; NULL: from softhca_alloc() */
	uint8_t *addr;
	size_t bytes;
	uint32_t users; /* MRs in it */
	uint32_t count; /* of parts, consecutive in memory */
	struct region_part *parts;
	struct file_piece own; /* softhca_alloc(): the piece of its only part */
};

/* Memory for queues: each chunk has one region and one MR in the queue PD, and is allocated by the
 * page. */
struct chunk {
	struct chunk *next;
	struct region *region;
	uint32_t lkey;
	uint32_t pages, pages_used;
	uint8_t used[]; /* by page */
};

/* Some pages of a chunk. */
struct queue_memory {
	struct chunk *chunk;
	uint8_t *addr;
	uint32_t first, pages;
};

struct event_queue {
	struct softhca_event *events;
	uint32_t head, count, size; /* size: power of two */
	uint32_t waiting;	    /* threads that read fd */
	/* Semaphore eventfd: one count per event; a channel's also has one for the daemon's death,
	 * which is never consumed. */
	int fd;
};

/* The doorbell FIFO of one engine. Each on a line of its own: threads that post to QPs of different
 * engines share none. */
struct doorbell_fifo {
	struct spin lock CACHE_LINE;
	uint32_t produced; /* doorbells ever rung */
	uint32_t consumed; /* of them, as last seen */
	uint32_t qps;	   /* that ring here; context.lock */
	struct uar_page *page;
	/* Those of which a doorbell waits for room. With lock; the count may be read without. */
	TAILQ_HEAD(, softhca_qp) waiting;
	uint32_t waiting_qps;
};

struct softhca_context {
	int fd;
	int bell, kick;
	pthread_mutex_t lock, rpc, event_lock;
	struct look look;     /* rpc: for the reply */
	pthread_cond_t acked; /* with event_lock: a CQ's events were acknowledged */
	struct control_hello_reply hello;
	struct client_page *page;
	uint32_t dead;		 /* atomic: the daemon has gone */
	uint32_t unrung;	 /* atomic: doorbells that wait for room in their FIFOs */
	uint32_t engines;	 /* atomic: of its QPs, a bit each */
	uint32_t yields;	 /* atomic: client_yields is set in some of their pages */
	uint32_t dead_announced; /* atomic: and the waiters were woken */
	bool fatal_raised;	 /* event_lock: the last event of `async` is queued */

	struct node *nodes[NODE_KINDS];
	uint32_t node_count;
	struct region *regions;	    /* of softhca_alloc(), and for queues */
	struct region *shared;	    /* of the program's own memory; each has users */
	struct file_piece **pieces; /* what they lie in, in order: pieces.c */
	uint32_t piece_count, piece_room;
	uint64_t releases; /* of pieces */
	struct chunk *chunks;

	/* QPs by the low bits of their number; atomic */
	struct softhca_qp **qps;
	uint32_t qp_mask;

	/* events.c: a thread that sorts the daemon's events; started when the program first asks
	 * for any */
	pthread_t dispatcher;
	bool dispatching;  /* event_lock */
	bool acknowledges; /* event_lock: the user acknowledges asynchronous events, too */
	int wake;	   /* eventfd: the dispatcher is to look at `closing` and `unrung` */
	bool closing;	   /* atomic */
	uint32_t eq_taken; /* event_lock; the dispatcher reads it without; atomic */
	struct event_queue async;

	struct doorbell_fifo fifo[UAR_PAGES]; /* by engine */
};

struct softhca_pd {
	struct node node;
	uint32_t number;
};

struct mr_object {
	struct softhca_mr mr; /* first: what the user holds */
	struct node node;
	struct region *region; /* NULL: of softhca_alloc_mr(), or of no bytes */
	unsigned int access;
	uint64_t iova;
	uint32_t number; /* its lkey as registered or allocated */
	bool zero_based;
};

struct mw_object {
	struct softhca_mw mw; /* first: what the user holds */
	struct node node;
	uint32_t number; /* its rkey as allocated */
};

struct softhca_channel {
	struct node node;
	struct event_queue queue;
};

struct softhca_ah {
	struct node node;
	struct softhca_pd *pd;
	struct wqe_ud ud; /* all but QPN and Q_Key */
};

/* An entry taken by a poll in pieces, and the request that it completes. my_qpn: atomic; 0: its QP
 * has been destroyed since. */
struct taken {
	struct cqe entry;
	uint64_t wr_id;
};
enum { TAKEN_MAX = 32 };

struct softhca_cq {
	struct node node;
	uint32_t number;
	uint32_t entries;
	void *user;
	struct softhca_channel *channel;
	struct queue_memory memory; /* record and first buffer; resized: the record's page */
	struct queue_memory moved;  /* the buffer, once resized */
	uint32_t events, acked;	    /* of completion, taken by the user, acknowledged; event_lock */

	struct spin lock CACHE_LINE;
	uint32_t consumed; /* entries taken, free running */
	uint32_t mask;
	struct cqe *buffer;
	struct cq_record *record;
	struct softhca_qp *last; /* the QP of the last completion */
	uint32_t idle;		 /* empty polls in a row; atomic, without the lock */
	uint32_t idle_mask;	 /* after how many, less 1, to do more than look; atomic */
	bool yields;		 /* softhca_yield_when_empty() */
	/* The entry to be polled next; NULL: ask with the lock. Atomic: read without it. */
	const struct cqe *next;
	bool resized; /* the buffer is no more the first */

	/* A poll in pieces. */
	uint8_t open;	   /* a thread is between softhca_start_poll() and _end_poll(); atomic */
	pthread_t opener;  /* that thread */
	uint32_t taken_at; /* the next of `taken` to return: see cq.c; atomic */
	uint32_t taken_end;
	struct taken taken[TAKEN_MAX];
};

struct work_queue {
	struct spin lock CACHE_LINE;
	uint32_t head; /* requests posted, free running */
	uint32_t tail; /* requests completed, free running; atomic: the CQ's poller writes */
	uint32_t mask; /* entries - 1 */
	uint8_t shift; /* entry i lies at i << shift */
	uint32_t max_wr, max_sge, max_inline; /* as asked for; max_wr is no more than the entries */
	uint8_t *buffer;
	uint64_t *wr_id;
};

/* Requests posted but not completed; 0 if the daemon claims to have completed more than were
 * posted. */
static inline uint32_t outstanding(const struct work_queue *q)
{
	uint32_t n = q->head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE);

	return likely(n <= q->max_wr) ? n : 0;
}

/* Send requests written into a queue whose doorbell has not been rung yet. */
struct posting {
	uint32_t head;		 /* the queue's, after the doorbell */
	uint32_t end;		 /* and when no more fit */
	struct wqe_next *before; /* the last of them, or NULL */
	uint32_t word0, word1;	 /* the doorbell of the first */
	int rc;			 /* why the next was refused; NO_ADDRESS: post.c */
};

/* The request that softhca_post_begin() began: linked, and still to be completed. */
struct open_request {
	uint32_t *size; /* its units, in the lowest bits; NULL: there is none */
	uint8_t *data;	/* where they go; NULL: they are there, or refused */
	const struct operation *op;
};

struct softhca_srq {
	struct node node;
	struct softhca_pd *pd;
	void *user;
	struct queue_memory memory;
	uint32_t number;

	struct spin lock CACHE_LINE;
	uint32_t head;		  /* descriptors posted, free running */
	uint32_t mask;		  /* entries - 1 */
	uint8_t shift;		  /* entry i lies at i << shift */
	uint32_t max_wr, max_sge; /* as asked for; max_wr is no more than the entries */
	uint8_t *ring;
	struct srq_record *record;
	uint64_t *wr_id;     /* by tag */
	uint32_t *free_tags; /* free_count of them: tags that no descriptor carries */
	uint32_t free_count;
};

struct softhca_qp {
	struct node node;
	struct softhca_pd *pd;
	struct softhca_cq *send_cq, *recv_cq;
	struct softhca_srq *srq; /* NULL: receives come from rq */
	void *user;
	struct queue_memory memory;

	uint32_t number CACHE_LINE;
	uint8_t type;  /* enum softhca_qp_type */
	uint8_t state; /* enum softhca_qp_state, as known; atomic */
	uint8_t signal_all;
	uint32_t qkey;
	struct doorbell_fifo *fifo;
	struct qp_record *record;
	struct work_queue sq, rq;
	struct posting batch;	  /* softhca_post_start() to _end(); sq.lock */
	struct open_request open; /* the same */

	/* Posted, but its doorbell found no room; before: NULL if none. sq.lock. */
	struct posting unrung;
	/* Doorbells that wait: that one, that of ring_for_receives(). Atomic. */
	uint8_t chain_unrung, receives_unrung;
	/* How many they are; in fifo->waiting if any. fifo->lock. */
	int8_t waits;
	TAILQ_ENTRY(softhca_qp) waiting;
};

#endif
