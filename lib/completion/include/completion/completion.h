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
#include "base/limits.h"
#include "host-abi/cqe.h"
#include "host-abi/doorbell.h"

struct cq {
	uint32_t cqn;  /* 0: free; atomic */
	uint32_t mask; /* entries - 1 */
	struct cqe *buffer;
	struct cq_record *record;
	uint32_t client;
	uint32_t overrun; /* atomic: 1 once a completion was lost; the CQ takes none any more */
	uint8_t pad[24];
	uint64_t produced __attribute__((aligned(64))); /* atomic: places reserved */
	uint32_t consumed;   /* atomic: the client's index when it was last read */
	uint32_t served_arm; /* whoever serves: the last arm value that raised an event */
	uint32_t touched;    /* atomic: CQ_TOUCHED_*, entries were written since arms were served */
	uint32_t next_touched; /* list of touched CQs, by index */
};
#define CQ_TOUCHED	     1u
#define CQ_TOUCHED_SOLICITED 2u /* some of them were solicited, or errors */

/* One client's event queue. */
struct eq {
	struct client_page *page; /* NULL: free; atomic */
	uint32_t produced;	  /* atomic */
	int eventfd;	 /* what is written to wake the client: the daemon's end of its bell */
	uint32_t notify; /* atomic: entries written since the last notification */
};

struct rte_memzone;

struct completion {
	struct cq *cqs;
	uint32_t cq_count; /* power of two */
	uint32_t cq_mask;
	struct eq eqs[CLIENTS_MAX];
	uint32_t notify;  /* atomic: some eq.notify is set */
	uint32_t touched; /* atomic: list of touched CQs, newest first */
	uint32_t serving; /* atomic: 1 while somebody serves arms */
	uint32_t eq_end; /* one past the highest client that ever had an event queue; control thread
			    writes */
	const struct rte_memzone *zone;
};

/* Reserves `cqs` (power of two) CQ contexts. 0 or -ENOMEM. */
int completion_create(struct completion *c, const char *name, uint32_t cqs, int socket);
void completion_destroy(struct completion *c);

/* CEU: SW2HW_CQ / HW2SW_CQ. index = cqn & cq_mask. 0, -EEXIST, -EINVAL / -ENOENT. Caller quiesces
 * after removing. */
int cq_write(struct completion *c, uint32_t cqn, uint32_t client, struct cqe *buffer,
	uint32_t log_entries, struct cq_record *record);
int cq_remove(struct completion *c, uint32_t cqn);

/* CEU: MAP_EQ: event queue `client` lies in that page and is announced on that eventfd (kept by the
 * caller). */
void eq_write(struct completion *c, uint32_t client, struct client_page *page, int eventfd);
void eq_remove(struct completion *c, uint32_t client);

/*
 * Writes one completion (all fields but owner are taken from *entry). `solicited`: also wakes a CQ
 * armed for solicited events only; error completions always do. Full queue: the completion is lost,
 * counted, the CQ gets a CQ_ERROR event and takes no more. Data path, any stage. Returns false if
 * it was lost.
 */
bool cq_post(struct completion *c, struct counters *counters, uint32_t cqn, const struct cqe *entry,
	bool solicited);

/* Raises an event for that client. Data path or control thread. False if its queue was full. */
bool eq_post(struct completion *c, struct counters *counters, uint32_t client, enum eqe_type type,
	uint32_t number);

/*
 * Between polls, on every lcore that completes something: raises the completion events of the CQs
 * that were written since and that their clients armed, and rings the bells of clients that
 * wait. So a completion itself costs neither a fence nor a look at what the client may just be
 * writing. Costs two loads when there is nothing to do.
 */
void completion_notify(struct completion *c, struct counters *counters);

#endif
