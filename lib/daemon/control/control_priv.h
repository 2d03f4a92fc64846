/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_PRIV_H
#define CONTROL_PRIV_H
/* What the files of lib/daemon/control share: clients and what they own. Control thread only. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include "base/limits.h"
#include "base/log.h"
#include "base/look.h"
#include "base/shares.h"
#include "command/ceu.h"
#include "control/control.h"
#include "hca/hca.h"
#include "host-abi/wqe.h"
#include "client_memory.h"
#include "mtt_space.h"
#include "numbers.h"

enum {
	CONTROL_QP_WR_MAX = 1 << 14, /* work requests of one queue */
	CONTROL_SQ_BYTES_MAX = CONTROL_QP_WR_MAX * 1024,
	CONTROL_SRQ_WR_MAX = 1 << 15, /* of one shared receive queue */
	CONTROL_CQE_MAX = 1 << 20,    /* entries of one CQ */
	CONTROL_INLINE_MAX = 912,     /* fits a WQE of any service */
};
#define CONTROL_PIECE_BYTES_MAX (1ull << 40) /* of one piece, and of one MR */

struct pd {
	struct object object;
};

/* A part of a client's file. Its users are MRs, one count for each of their extents. */
struct piece {
	struct object object;
	struct mapping mapping;
	bool read_only;
	uint64_t registered; /* bytes of the extents */
	/* Still to be populated: [populate_from, populate_to). If that is not empty, the piece is
	 * in its user's long work, `of`. */
	struct long_work *of;
	TAILQ_ENTRY(piece) of_populating;
	uint64_t populate_from, populate_to;
};

/* A range of a piece. */
struct extent {
	struct piece *piece;
	uint64_t offset, bytes;
};

/* An MR's memory: one range of the daemon's addresses, or pages. */
struct mr_memory {
	struct extent *extents; /* malloc()ed; NULL: set by a work request */
	uint32_t count;		/* of them */
	uint64_t length;
	uint8_t *phys;		      /* of the first byte; NULL: pages */
	uint8_t log_page;	      /* pages: 12..30, else 0 */
	uint32_t mtt_first, mtt_size; /* its MTT entries; 0: none */
};

struct mr {
	struct object object;
	struct pd *pd;
	struct mr_memory memory;
	uint64_t iova;
	uint32_t access;
};

struct mw {
	struct object object;
	struct pd *pd;
};

struct cq_object {
	struct object object;
	struct mr *record_mr, *buffer_mr;
};

struct srq_object {
	struct object object;
	unsigned int engine;
	struct pd *pd;
	struct mr *mr;
};

/* A multicast group that a QP is attached to. */
struct attachment {
	struct attachment *next;
	uint8_t mgid[16];
};

struct qp_object {
	struct object object;
	unsigned int engine;
	struct pd *pd;
	struct mr *mr;
	struct cq_object *send_cq, *recv_cq;
	struct srq_object *srq; /* NULL: none */
	struct attachment *groups;
};

struct device {
	struct control_device config; /* .hca NULL: it has been removed */
	struct table pds, mrs, cqs, srqs, qps;
	struct mtt_space mtts;
	struct client *clients[CLIENTS_MAX]; /* by client index of this HCA */
	uint32_t paused;		     /* modules that are, by bit ... */
	struct client *holder[MODULE_COUNT]; /* ... and until whose end; NULL: until resumed */
	uint32_t client_end;
};

struct message {
	struct control_header header;
	uint8_t body[CONTROL_BYTES_MAX] __attribute__((aligned(8)));
};

enum {
	MESSAGE_FDS_MAX = 4, /* descriptors taken from one message; more are malformed */
	MESSAGES_PER_TURN = 16,
	CLIENT_TRACES_MAX = 2,
	EVENTS_PER_TURN = 64,
	ENDED_PER_TURN = 64,
	RETRY_WAITS = 7, /* how long a request waits before it is asked again: 1, 2, 4 ... 64 ms */
};

/* What came with a message. */
struct descriptors {
	int fd[MESSAGE_FDS_MAX];
	unsigned int count;
	bool truncated; /* there were more */
};

TAILQ_HEAD(client_queue, client);

struct client {
	struct control *control;
	struct user *user;
	struct share_client shares;
	struct device *device; /* NULL before HELLO */
	int fd;
	int bell; /* our end; -1 before HELLO */
	int kick; /* an eventfd; -1 before HELLO */
	bool kick_given;
	uint32_t index; /* in device->clients */
	uint32_t id;	/* for logs: counts connections */
	uint64_t begun_ns;
	uint64_t silent_ns; /* control.attended_ns then */
	pid_t pid;
	uid_t uid;
	bool own;   /* this process itself */
	bool looks; /* it has been shown something */
	/* As of its connection, since its pid may be reused: is it in the daemon's IPC namespace?
	 * May it attach any segment? */
	bool same_ipc, ipc_owner;
	struct client *next, *prev;
	struct mapping page;
	struct device *captured;	  /* into `capture`; NULL: none */
	enum channel_id captured_channel; /* CHANNEL_COUNT: its port */
	struct mapping capture;
	struct traced {
		struct device *device;
		struct engine *engine;
		uint32_t qpn;
	} traced[CLIENT_TRACES_MAX]; /* its trace; the second: of the peer */
	unsigned int traced_count;
	bool holds; /* some module is paused until its connection ends */
	struct pd *queue_pd;
	struct table pieces;
	struct object *objects[OBJECT_KINDS];
	uint32_t counts[OBJECT_KINDS];
	uint32_t on_engine[ENGINES_MAX]; /* its QPs and SRQs, by engine */
	uint32_t attached;	  /* engines, a bit each, that poll its doorbell page for them */
	struct control_run *runs; /* of ADD_RUNS, for the next MR */
	uint32_t run_count, run_room;
	bool gone;	  /* in control.ended: to be destroyed at the end of the turn */
	bool handed_over; /* its connection is now the connection manager's, which has a copy */
	bool pending;	  /* `request` waits, in control.waiting[wait] */
	uint8_t wait;
	uint32_t ticket; /* of `request`: what a callback has noted to know it again; 0: nothing */
	uint64_t retry_ns; /* then: when to ask again */
	TAILQ_ENTRY(client) of_ended, of_waiting;
	struct message request;
	struct descriptors waits_with; /* those of the request, while it is pending */
	uint64_t sigbus_seen;	       /* faults in its memory handled so far */
};

/* A line that a client causes, of which only a limited number per second are written. */
#define CLIENT_LOG(client, level, fmt, ...)                                                        \
	do {                                                                                       \
		if (share_use(&(client)->shares, SHARE_log_lines, 1) == 0)                         \
			LOG(level, "client %u: pid %d: " fmt, (client)->id, (int)(client)->pid,    \
			    ##__VA_ARGS__);                                                        \
	} while (0)

/* Pieces of one user to be populated, and mappings to be unmapped (pieces.c); freed when there are
 * none left. */
struct long_work {
	TAILQ_ENTRY(long_work) of_control;
	bool deferred; /* in control.long_deferred */
	uint32_t uid;
	TAILQ_HEAD(, piece) populating;
	TAILQ_HEAD(, unmapping) unmapping;
};

struct control {
	struct control_config config;
	struct shares *shares;
	bool own_shares; /* created here */
	struct device devices[HCA_MAX];
	unsigned int device_count; /* some may have been removed: FOR_EACH_DEVICE */
	int listener;
	int spare; /* closed for a moment to refuse a client when out of descriptors; -1: closed */
	uint32_t owner;		  /* the daemon's own user */
	TAILQ_HEAD(, user) users; /* in the order in which they are served */
	bool contended;		  /* there are two or more, the daemon itself not counted */
	/* What the thread polls: the listener, and each user's set. */
	struct pollfd polled[1 + CLIENTS_MAX];
	unsigned int polled_count;
	/* Bulk work (users.c): */
	bool bulk_deferred;	       /* some was deferred in this turn */
	uint64_t bulk_ns;	       /* time spent on it in this turn, ... */
	uint64_t bulk_limit_ns;	       /* ... and the limit beyond which it serves no request */
	uint64_t bulk_paused_until_ns; /* no bulk work before that */
	/* The user whose next request is expected (only compared), and until when; but bulk work
	 * waits no longer than bulk_due_ns. */
	const struct share_user *awaited;
	uint64_t awaited_until_ns;
	uint64_t bulk_due_ns;
	bool pieces_changed; /* there is new bulk work, maybe of the awaited user */
	struct client *clients;
	unsigned int client_count;
	/* The work of every turn must not grow with the number of clients, or one user's clients
	 * would slow down each request of another's. */
	struct client_queue ended; /* gone, and not torn down yet */
	bool ended_first;	   /* this turn ends them before it serves requests */
	struct client_queue waiting[RETRY_WAITS]; /* pending, each in the order of retry_ns */
	unsigned int pending;
	TAILQ_HEAD(long_works, long_work) long_turns; /* in the order of their turns */
	struct long_works long_deferred; /* of users in debt (SHARE_waited_ms), for this second */
	uint32_t connections;
	uint64_t second_ns;	/* when this second began */
	uint64_t sigbus_seen;	/* faults in clients' memory that have been counted */
	uint64_t held_up_seen;	/* times that holes held up threads, likewise */
	uint64_t silent_ns;	/* when to look for silent connections again */
	uint64_t turn_begun_ns; /* when this turn began */
	uint64_t attended_ns;	/* time in which requests were served: no turn counts for long */
	bool throttled;		/* something waits only for its user's time in the next turn */
	/* Busy polling for the next request, on account of the client answered last; NULL:
	 * nobody. */
	struct look look;
	const struct client *answered;
	uint64_t looked_ns[USERS_MAX], looked_all_ns; /* in this second, by user */
	char socket_path[108];
	const struct client *asking;	   /* for a view; NULL: nobody */
	char text[CONTROL_TEXT_BYTES_MAX]; /* of the view that is being replied */
};

/* Most time in a second that the thread polls for requests, instead of sleeping: one user's;
 * all's. */
enum { LOOKED_NS_MAX = 100000000, LOOKED_ALL_NS_MAX = 250000000 };

void control_unwatch(struct client *client);

/* Ends the client's session: it is destroyed at the end of the turn, and not served until then. */
static inline void client_lost(struct client *client)
{
	if (client->gone)
		return;
	client->gone = true;
	TAILQ_INSERT_TAIL(&client->control->ended, client, of_ended);
	control_unwatch(client);
}

enum { NS_IN_MS = 1000000, NS_IN_S = 1000000000 };
uint64_t control_now_ns(void);
/* The client's user, as an index for the data path. */
static inline uint16_t client_user(const struct client *client)
{
	unsigned int index = share_user_index(&client->shares);

	return (uint16_t)(index < USERS_MAX ? index : USERS_MAX - 1);
}

/* Charges the client's user (SHARE_held_up_ms) for `ns` that threads waited for holes in its
 * memory, and disconnects clients if the share is exceeded. */
void client_held_up(struct client *client, uint64_t ns);
/* The same, for all holes in its memory so far. */
void client_look_for_holes(struct client *client);
/* Charges the user (SHARE_waited_ms) for `ns` that this thread waited to map or unmap files. */
void client_waited(struct client *client, uint64_t ns);
void user_waited(struct control *c, struct share_user *u, uint32_t uid, uint64_t ns);
/* Ends the client's connection at once, and frees all that it has. */
void client_end(struct client *client);
void control_rearm(struct client *client, bool readable);
/* Serves a client whose connection is ready. Returns the number of requests. */
unsigned int control_serve(struct client *client, uint32_t events);
/* Frees the tables of a device that nobody uses any more. */
void device_close(struct device *d);

/* The first device from `d` on that has not been removed, or the end. */
static inline struct device *device_from(const struct control *c, struct device *d)
{
	while (d < c->devices + c->device_count && !d->config.hca)
		d++;
	return d;
}
#define FOR_EACH_DEVICE(d, c)                                                                      \
	for (struct device *d = device_from(c, (c)->devices);                                      \
	     d < (c)->devices + (c)->device_count; d = device_from(c, d + 1))
/* The device that stands for what belongs to none in particular. One is always left. */
static inline struct device *device_first(struct control *c)
{
	return device_from(c, c->devices);
}

/* Why mmap() or shmat() failed, as -errno. EAGAIN means that too much memory is locked, and trying
 * again would not help. */
static inline int mapping_errno(void)
{
	return errno == EAGAIN ? -ENOMEM : -errno;
}

#endif
