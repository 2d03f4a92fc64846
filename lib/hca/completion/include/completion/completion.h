/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETION_COMPLETION_H
#define COMPLETION_COMPLETION_H
/*
 * CompletionQueueMgt and EventQueueMgt: completion queues and event queues in client memory.
 *
 * Several stages of several engines may complete into one CQ at the same time: a place is reserved
 * with an atomic, the entry's owner byte is written last. No lock, no system call: the bell of a
 * sleeping client is written by completion_round(), which the lcore loop calls between polls.
 *
 * Each lcore remembers for itself which CQs it has written since its last completion_round(), so
 * lcores that complete into different CQs write no common line.
 *
 * A CQ's memory is pinned by its MR while the CQ exists; its contents are the client's and never
 * trusted.
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
	uint32_t stop; /* atomic: 0, or why the CQ takes no completions as usual: CQ_STOP_* */
	uint32_t backlog_entries; /* atomic */
	uint32_t backlog_done;	  /* atomic: entries moved from it so far */
	struct cqe *backlog;	  /* while held: completions of callers that cannot wait */
	uint8_t pad[8];
	uint64_t produced __attribute__((aligned(64))); /* atomic: places reserved */
	uint32_t consumed;     /* atomic: the client's index when it was last read */
	uint32_t touched;      /* atomic: CQ_TOUCHED*, it is in the common list of touched CQs */
	uint32_t next_touched; /* that list, by index */
	/* Atomic: `turn` of the list that an lcore has last added it to, with TOUCHED_SOLICITED.
	 * That of another lcore tells nothing. */
	uint64_t turn;
	/* Atomic: the client's arm counts when an event was last raised: arm_next, above it
	 * arm_solicited. */
	uint64_t served;
};
#define CQ_TOUCHED	     1u
#define CQ_TOUCHED_SOLICITED 2u			/* some entries were solicited, or errors */
#define CQ_STOP_OVERRUN	     (1u << 31)		/* a completion was lost: the CQ is disabled */
#define CQ_STOP_HELD	     (1u << 30)		/* by the control thread, cq_hold() */
#define CQ_STOP_BACKLOG	     (CQ_STOP_HELD - 1) /* while held: entries in its backlog */

/* One client's event queue. */
struct eq {
	struct client_page *page; /* NULL: free; atomic */
	uint32_t produced;	  /* atomic */
	int eventfd;		  /* written to wake the client: the daemon's end of its bell */
	uint32_t notify;	  /* atomic: entries written since the last notification */
	uint32_t mask; /* atomic: bit 1 << enum eqe_type: asynchronous events that it accepts */
	/* Events pending for the client because its queue was full, see struct pending_events. */
	uint32_t newly_pending; /* atomic: some event became pending since the last scan */
	uint32_t listed;	/* atomic: it is in the list of queues with pending events */
	uint32_t next_pending;	/* that list, by client */
	uint32_t port_pending;	/* atomic: 1 + number of the last EQE_PORT_CHANGE, 0: none */
	uint32_t gids_pending;	/* atomic: 1: an EQE_GID_CHANGE */
	/* Written by the serving lcore: kinds of objects still to scan, and the index in the
	 * first. */
	uint32_t kinds_left, look_at;
	uint8_t generation; /* of clients with this index; control thread */
};

/*
 * Pending events: those of objects that did not fit into their client's event queue. Each object
 * has one word (its number, its client, a bit per type), so that no client can make memory grow.
 * Events are written as soon as there is room; a type is pending at most once per object.
 */
enum event_object { EVENT_OF_QP, EVENT_OF_SRQ, EVENT_OF_CQ, EVENT_OBJECTS };
struct pending_events {
	struct icm icm; /* of uint64_t, never mapped: a page is allocated on first write */
	uint64_t *word; /* by index; atomic */
	uint32_t mask;
};

/*
 * The CQs that one lcore has written since its last completion_round(). Its own: the round takes all
 * of them, and what it cannot finish it puts in the common list.
 */
enum { TOUCHED_MAX = 60 }; /* more are served at once */
#define TOUCHED_SOLICITED 1u
struct touched_cqs {
	uint64_t turn; /* lists made so far; no other lcore's are equal; TOUCHED_SOLICITED is 0 */
	uint32_t count;
	uint32_t cq[TOUCHED_MAX]; /* 2 x index, with TOUCHED_SOLICITED */
} __attribute__((aligned(64)));

/* CompletionQueueMgt's answers to requests for a place (doc/modules.md#request-resolution).
 */
enum completion_answer {
	COMPLETION_READY,
	COMPLETION_NOT_READY, /* the CQ is held: try again later */
	COMPLETION_LOST,      /* no place: the CQ is full or destroyed; counted */
};

struct completion {
	struct cq *cqs;
	uint32_t cq_count; /* power of two */
	uint32_t cq_mask;
	struct eq eqs[CLIENTS_MAX];
	uint32_t notify;  /* atomic: some eq.notify is set */
	uint32_t touched; /* atomic: list of touched CQs, newest first: those whose client has no
			     room for an event, and those of threads that are not lcores */
	uint32_t pending_eqs; /* atomic: list of event queues with pending events, newest first */
	uint32_t serving;     /* atomic: 1 while an lcore serves these two lists */
	bool one_lcore;	 /* all stages of the HCA run on one; set before they do, false at first */
	uint32_t eq_end; /* one past the highest client that has had an event queue; written by the
			    control thread */
	struct icm icm;	 /* memory of the CQ contexts */
	struct pending_events pending[EVENT_OBJECTS];
	struct touched_cqs own[LCORES_MAX + 1]; /* by rte_lcore_id(); the control thread's is 0 */
};

/* Reserves address space for `cqs` CQ contexts, for a device with `qps` QPs and `srqs` SRQs; powers
 * of two. 0 or -ENOMEM. */
int completion_create(struct completion *c, uint32_t cqs, uint32_t qps, uint32_t srqs);
void completion_destroy(struct completion *c);

/* True if none of the contexts [first, end), which are free, is in the common list of touched ones:
 * see qp_table_unlisted(). An lcore's own list has none of them, as the caller has quiesced. */
bool cq_table_unlisted(const struct completion *c, uint32_t first, uint32_t end);

/* CEU: SW2HW_CQ / HW2SW_CQ. index = cqn & cq_mask. 0, -EEXIST, -EINVAL / -ENOENT. Caller quiesces
 * after removing. */
int cq_write(struct completion *c, uint32_t cqn, uint32_t client, struct cqe *buffer,
	     uint32_t log_entries, struct cq_record *record);
int cq_remove(struct completion *c, uint32_t cqn);

/*
 * CEU: RESIZE_CQ: moves the CQ to another buffer, whose owner bits all say "hardware", with another
 * number of entries. The CQ is held, and the caller has quiesced since. Entries that the client has
 * not taken stay where they are: it copies them itself, each to its place in the new buffer, where
 * reserved but unwritten ones will appear. 0, -ENOENT, -EINVAL: too many entries, or not held;
 * -EBUSY: the entries that the client has not taken do not fit.
 */
int cq_resize(struct completion *c, uint32_t cqn, struct cqe *buffer, uint32_t log_entries);

/* CEU: SW2HW_EQ: event queue `client` is in that page and announced on that eventfd (which stays
 * the caller's). It accepts events of all types. */
void eq_write(struct completion *c, uint32_t client, struct client_page *page, int eventfd);
void eq_remove(struct completion *c, uint32_t client);
/* CEU: MAP_EQ: which asynchronous events it accepts. It always accepts completion events. */
void eq_map(struct completion *c, uint32_t client, uint32_t mask);
/* CEU: an object with that index is created: drops pending events of its predecessor. */
void eq_forget(struct completion *c, enum event_object of, uint32_t index);

/*
 * CEU: holds a CQ while its memory or size changes (RESIZE_CQ). Callers that can wait get "not
 * ready"; those that cannot (cq_post) put completions into `backlog`, which has `entries` zeroed
 * entries, at least as many as the CQ, and stays the caller's. Once the caller has quiesced,
 * nothing writes into the CQ's memory until cq_release(), which moves the backlog into the CQ, in
 * order, before it accepts others. A place reserved before stays reserved: it is a number, not an
 * address. 0, -ENOENT, -EBUSY: already held; -EINVAL: too few entries. Control thread.
 */
int cq_hold(struct completion *c, uint32_t cqn, struct cqe *backlog, uint32_t entries);
/* 0, -ENOENT, -EINVAL: not held. The backlog is unused when it returns. */
int cq_release(struct completion *c, struct counters *counters, uint32_t cqn);

/*
 * The steps of a completion, for callers that can wait (doc/modules.md#request-resolution); they
 * never block. Data path, any stage. LOST, from any of them, is final: the completion is lost
 * (counted; a full CQ raises a CQ_ERROR event and is disabled).
 *
 *   cq_place: reserves a place. cq_fill() must follow, however late: later completions wait for it.
 *   cq_fill:  writes *entry there (all fields but owner). `solicited`: also wakes a CQ armed only
 *             for solicited events; error completions always do.
 */
enum completion_answer cq_place(struct completion *c, struct counters *counters, uint32_t cqn,
				uint64_t *place);
enum completion_answer cq_fill(struct completion *c, struct counters *counters, uint32_t cqn,
			       uint64_t place, const struct cqe *entry, bool solicited);

/*
 * All steps of a completion at once, for callers that cannot wait. False: lost, as above, or
 * because the CQ is held and its backlog full.
 */
bool cq_post(struct completion *c, struct counters *counters, uint32_t cqn, const struct cqe *entry,
	     bool solicited);
/* The same of n completions, at least one, of success, in order. The client sees all of them at once.
 * False: one is lost, and those behind it. */
bool cq_post_burst(struct completion *c, struct counters *counters, uint32_t cqn,
		   const struct cqe *entry, uint32_t n, bool solicited);

/* Would the CQ take n more now? Until the end of the poll only other lcores that complete into it can
 * change that. */
bool cq_accepts(const struct completion *c, uint32_t cqn, uint32_t n);

/* All steps of an event. Data path or control thread. False if its queue is destroyed, does not
 * accept the type, or was full: then the event becomes pending, except EQE_COMPLETION, which the
 * caller raises again. */
bool eq_post(struct completion *c, struct counters *counters, uint32_t client, enum eqe_type type,
	     uint32_t number);

/*
 * Called between polls by every lcore that completes something, and by the control thread after it
 * has: raises the completion events of CQs that it has written since and that their clients armed,
 * writes pending events and rings the bells of waiting clients. So a completion itself needs neither
 * a fence nor a read of a line that the client may be writing. Costs a few loads when there is
 * nothing to do.
 */
void completion_round(struct completion *c, struct counters *counters);

/* Does no event wait for room in its client's queue? Any thread; may be a moment old. */
bool completion_rests(const struct completion *c);

#endif
