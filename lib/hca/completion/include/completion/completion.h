/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETION_COMPLETION_H
#define COMPLETION_COMPLETION_H
/*
 * CompletionQueueMgt and EventQueueMgt: completion queues and event queues in client memory.
 *
 * Several stages of several engines may complete into one CQ at the same time: a place is reserved
 * with an atomic, the entry's owner byte is written last. No lock, no system call: the bell of a
 * client that sleeps is written by completion_notify(), called by the lcore loop between polls.
 *
 * A CQ's memory is pinned by its MR for as long as the CQ lives; what lies in it is the client's
 * and never trusted.
 */
#include <stdint.h>
#include <stdbool.h>
#include "base/counters.h"
#include "base/icm.h"
#include "base/limits.h"
#include "host-abi/cqe.h"
#include "host-abi/doorbell.h"

struct cq {
	uint32_t cqn;  /* 0: free; atomic */
	uint32_t mask; /* entries - 1 */
	struct cqe *buffer;
	struct cq_record *record;
	uint32_t client;
	uint32_t stop; /* atomic: 0, or why the CQ does not take completions as usual: CQ_STOP_* */
	uint32_t backlog_entries;
	struct cqe *backlog; /* while held: what those post who cannot wait */
	uint8_t pad[8];
	uint64_t produced __attribute__((aligned(64))); /* atomic: places reserved */
	uint32_t consumed; /* atomic: the client's index when it was last read */
	/* Whoever serves: the client's arm counts when an event was raised last */
	uint32_t served_next, served_solicited;
	uint32_t touched; /* atomic: CQ_TOUCHED_*, entries were written since arms were served */
	uint32_t next_touched; /* list of touched CQs, by index */
};
#define CQ_TOUCHED	     1u
#define CQ_TOUCHED_SOLICITED 2u			/* some of them were solicited, or errors */
#define CQ_STOP_OVERRUN	     (1u << 31)		/* a completion was lost: it takes none any more */
#define CQ_STOP_HELD	     (1u << 30)		/* by the control thread, cq_hold() */
#define CQ_STOP_BACKLOG	     (CQ_STOP_HELD - 1) /* while held: entries in its backlog */

/* One client's event queue. */
struct eq {
	struct client_page *page; /* NULL: free; atomic */
	uint32_t produced;	  /* atomic */
	int eventfd;	 /* what is written to wake the client: the daemon's end of its bell */
	uint32_t notify; /* atomic: entries written since the last notification */
	uint32_t mask;	 /* atomic: bit 1 << enum eqe_type: asynchronous events that it takes */
	/* What it owes its client: events that found it full, see struct events_owed. */
	uint32_t owing;	     /* atomic: something was owed since it was looked through */
	uint32_t listed;     /* atomic: it is in the list of those that owe */
	uint32_t next_owing; /* that list, by client */
	uint32_t port_owed;  /* atomic: 1 + number of the last EQE_PORT_CHANGE, 0: none */
	/* Whoever serves: kinds of objects still to be looked through, at which of the first */
	uint32_t kinds_left, look_at;
	uint8_t generation; /* of clients with this index; control thread */
};

/*
 * Events of objects that did not fit into their client's event queue: one word for each object, so
 * that no client can make it grow: its number, its client, one bit for each type. They are
 * written as soon as there is room; a type that is owed already is not owed twice.
 */
enum event_object { EVENT_OF_QP, EVENT_OF_SRQ, EVENT_OF_CQ, EVENT_OBJECTS };
struct events_owed {
	struct icm icm; /* of uint64_t, never mapped: a page comes when something is owed */
	uint64_t *word; /* by index; atomic */
	uint32_t mask;
};

/* What CompletionQueueMgt answers to who asks for a place (doc/modules.md#request-resolution).
 */
enum completion_answer {
	COMPLETION_READY,
	COMPLETION_NOT_READY, /* the CQ is held: ask again later */
	COMPLETION_LOST,      /* there is no place: the CQ is full or gone; counted */
};

struct completion {
	struct cq *cqs;
	uint32_t cq_count; /* power of two */
	uint32_t cq_mask;
	struct eq eqs[CLIENTS_MAX];
	uint32_t notify;  /* atomic: some eq.notify is set */
	uint32_t touched; /* atomic: list of touched CQs, newest first */
	uint32_t owing;	  /* atomic: list of event queues that owe something, newest first */
	uint32_t serving; /* atomic: 1 while somebody serves arms and what is owed */
	uint32_t eq_end; /* one past the highest client that ever had an event queue; control thread
			    writes */
	struct icm icm;	 /* where the CQ contexts lie */
	struct events_owed owed_of[EVENT_OBJECTS];
};

/* Reserves address space for `cqs` CQ contexts, for a device of so many QPs and SRQs; powers of
 * two. 0 or -ENOMEM. */
int completion_create(struct completion *c, uint32_t cqs, uint32_t qps, uint32_t srqs);
void completion_destroy(struct completion *c);

/* None of the contexts [first, end), which are free, is in the list of touched ones: see
 * qp_table_unlisted(). */
bool cq_table_unlisted(const struct completion *c, uint32_t first, uint32_t end);

/* CEU: SW2HW_CQ / HW2SW_CQ. index = cqn & cq_mask. 0, -EEXIST, -EINVAL / -ENOENT. Caller quiesces
 * after removing. */
int cq_write(struct completion *c, uint32_t cqn, uint32_t client, struct cqe *buffer,
	     uint32_t log_entries, struct cq_record *record);
int cq_remove(struct completion *c, uint32_t cqn);

/*
 * CEU: RESIZE_CQ: the CQ goes on in another buffer, whose owner bits all say "hardware", with
 * another number of places. It is held, and the caller has quiesced since. Entries that the client
 * has not taken stay where they are: it brings them over itself, each to its place there, where it
 * finds those that were promised but not written yet. 0, -ENOENT, -EINVAL: too many places, or not
 * held; -EBUSY: what the client has not taken does not fit.
 */
int cq_resize(struct completion *c, uint32_t cqn, struct cqe *buffer, uint32_t log_entries);

/* CEU: SW2HW_EQ: event queue `client` lies in that page and is announced on that eventfd (kept by
 * the caller). It takes events of all types. */
void eq_write(struct completion *c, uint32_t client, struct client_page *page, int eventfd);
void eq_remove(struct completion *c, uint32_t client);
/* CEU: MAP_EQ: which asynchronous events it takes. Completion events it takes always. */
void eq_map(struct completion *c, uint32_t client, uint32_t mask);
/* CEU: an object with that index comes to be: what was owed of the one before is void. */
void eq_forget(struct completion *c, enum event_object of, uint32_t index);

/*
 * CEU: holds a CQ, while its memory or its size changes (RESIZE_CQ). Who can wait is told "not
 * ready"; who cannot (cq_post) puts completions into `backlog`, `entries` of them, at least as many
 * as the CQ has places, all zeroes, which stays the caller's. Once the caller has quiesced, nobody
 * writes into the CQ's memory until cq_release(): that moves the backlog into the CQ, in order,
 * before it takes others. A place that was reserved before stays reserved: it has a number, not an
 * address. 0, -ENOENT, -EBUSY: is held; -EINVAL: too few entries. Control thread.
 */
int cq_hold(struct completion *c, uint32_t cqn, struct cqe *backlog, uint32_t entries);
/* 0, -ENOENT, -EINVAL: is not held. The backlog is free when it returns. */
int cq_release(struct completion *c, struct counters *counters, uint32_t cqn);

/*
 * The steps of a completion, for callers that can wait (doc/modules.md#request-resolution); never
 * block. Data path, any stage. LOST, of any of them: it is over, the completion is lost (counted; a
 * full CQ gets a CQ_ERROR event and takes no more).
 *
 *   cq_place: reserves a place. From then on cq_fill() must follow, however late: all behind
 * it wait.
 *   cq_fill: writes *entry there (all fields but owner). `solicited`: also wakes a CQ armed for
 * solicited events only; error completions always do.
 */
enum completion_answer cq_place(struct completion *c, struct counters *counters, uint32_t cqn,
				uint64_t *place);
enum completion_answer cq_fill(struct completion *c, struct counters *counters, uint32_t cqn,
			       uint64_t place, const struct cqe *entry, bool solicited);

/*
 * All steps of a completion in one go, for who cannot wait. Returns false if it was lost, as above;
 * so it is when the CQ is held and its backlog full.
 */
bool cq_post(struct completion *c, struct counters *counters, uint32_t cqn, const struct cqe *entry,
	     bool solicited);

/* All steps of an event. Data path or control thread. False if its queue is gone, does not take
 * the type, or was full: then the event is owed, but for EQE_COMPLETION, which the caller raises
 * again. */
bool eq_post(struct completion *c, struct counters *counters, uint32_t client, enum eqe_type type,
	     uint32_t number);

/*
 * Between polls, on every lcore that completes something: raises the completion events of the CQs
 * that were written since and that their clients armed, writes events that were owed and rings the
 * bells of clients that wait. So a completion itself costs neither a fence nor a look at what the
 * client may just be writing. Costs three loads when there is nothing to do.
 */
void completion_notify(struct completion *c, struct counters *counters);

#endif
