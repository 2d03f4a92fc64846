/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_PRIV_H
#define CONTROL_PRIV_H
/*
 * What the files of lib/daemon/control share. Control thread only.
 *
 * Objects: everything a client can create has a number and is in a table (of the device, or of the
 * client for pieces) and in its client's list of that kind. `users` counts its dependants; it is
 * destroyed only when that is 0.
 */
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

enum {
	CONTROL_QP_WR_MAX = 1 << 14, /* work requests of one queue */
	CONTROL_SQ_BYTES_MAX = CONTROL_QP_WR_MAX * 1024,
	CONTROL_SRQ_WR_MAX = 1 << 15, /* of one shared receive queue */
	CONTROL_CQE_MAX = 1 << 20,    /* entries of one CQ */
	CONTROL_INLINE_MAX = 912,     /* fits a WQE of any service */
};
#define CONTROL_PIECE_BYTES_MAX (1ull << 40) /* of one piece, and of one MR */

enum object_kind {
	OBJECT_PD,
	OBJECT_PIECE,
	OBJECT_MR,
	OBJECT_MW, /* its number is one of the MRs' table */
	OBJECT_CQ,
	OBJECT_SRQ,
	OBJECT_QP,
	OBJECT_KINDS
};

struct client;

struct object {
	uint32_t number;
	uint32_t users;
	uint8_t kind; /* enum object_kind */
	struct client *client;
	struct object *next, *prev; /* in the client's list */
};

/* Numbers: the low bits are the index in slot[], the rest are random and differ from the last use.
 */
struct table {
	struct object **slot;
	uint32_t *last;	  /* the place's last number */
	uint32_t count;	  /* places there are; power of two */
	uint32_t max;	  /* most places; power of two */
	uint32_t cursor;  /* start of the search for a free place */
	uint32_t kept;	  /* reserved number: table_add() uses neither it nor its place; 0: none */
	uint8_t bits;	  /* of a number */
	uint8_t tag_bits; /* low bits of it that its owner may change: keys */
	uint8_t place_bits; /* enough for max, above them */
};

/* 0, -ENOMEM. */
int table_create(struct table *t, uint32_t count, uint32_t max, unsigned int bits,
		 unsigned int tag_bits);
void table_destroy(struct table *t);
/* Adds o to the table under a new number. 0, -ENOSPC, -ENOMEM. A table smaller than its max grows.
 * No number is 0 or, in a table without tags, all ones. */
int table_add(struct table *t, struct object *o);
/* Adds o under the reserved number. 0; -EBUSY: taken; -ENOSPC: none is reserved. */
int table_add_kept(struct table *t, struct object *o);
void table_remove(struct table *t, struct object *o);
/* The object of that number if it is this client's, or NULL. */
struct object *table_find(const struct table *t, uint32_t number, const struct client *client);
/* A random number from the kernel. */
uint32_t control_random(void);

/* Allocator of MTT entries, by buddies of powers of two (doc/virt-to-phys.md#mtt). */
enum { MTT_LOG_LEAST = 2, MTT_ORDERS = MTT_INDEX_BITS_MAX - MTT_LOG_LEAST + 1 };
struct mtt_space {
	uint64_t *free[MTT_ORDERS];  /* by log2 of the size, a bit for each free block */
	uint32_t count[MTT_ORDERS];  /* bits that are set */
	uint32_t cursor[MTT_ORDERS]; /* word where the search begins */
	uint32_t entries;
};

/* `entries`: a power of two. 0, -ENOMEM. */
int mtt_space_create(struct mtt_space *s, uint32_t entries);
void mtt_space_destroy(struct mtt_space *s);
/* Entries allocated for `wanted`, 1 or more; 0: too many. */
uint32_t mtt_space_size(uint32_t wanted);
/* Allocates `size` entries, a result of mtt_space_size(). False: no free block of that size. */
bool mtt_space_take(struct mtt_space *s, uint32_t size, uint32_t *first);
void mtt_space_put(struct mtt_space *s, uint32_t first, uint32_t size);

struct pd {
	struct object object;
};

/* Client memory mapped into the daemon. */
struct mapping {
	uint8_t *base;
	uint64_t bytes;
	uint64_t page_bytes;
	bool reports_residence; /* the kernel reports which of its pages are present */
	uint32_t range;		/* in the SIGBUS handler's table */
};

/* A part of a client's file. Its users are MRs, one count for each of their extents. */
struct piece {
	struct object object;
	struct mapping mapping;
	bool read_only;
	uint64_t registered; /* bytes of the extents */
	/* What is still to be populated, [populate_from, populate_to); then it is in
	 * its user's long work, `of`. */
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
	uint32_t standing;		     /* modules that are paused, by bit ... */
	struct client *holder[MODULE_COUNT]; /* ... and until whose end; NULL: they are kept */
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

/* Each fd in an epoll set has one of these. */
enum source_kind { SOURCE_CLIENT, SOURCE_BELL };
struct source {
	uint8_t kind;
	struct client *client;
};

/* A user who has clients, whose descriptors are in an epoll set of his own. */
struct user {
	TAILQ_ENTRY(user) of_control;
	uint32_t uid;
	unsigned int clients, strangers; /* all; those of other processes than this one */
	int epoll;
	bool ready;    /* its set is readable */
	bool deferred; /* its set is not polled: its requests are bulk and wait */
	/* In this turn: some request was served; the user's part was used up; several requests were
	 * queued. */
	bool served, out_of_time, backlogged;
	unsigned int backlogged_turns; /* consecutive turns in which all three were true */
	uint64_t bulk_until_ns;	       /* until then its requests are bulk work */
	uint64_t refused_ns;	       /* when one of its requests was refused last */
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
	struct source socket_source, bell_source;
	int fd;
	int bell;	/* our end; -1 before HELLO */
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
	bool holds; /* some module stands until its connection ends */
	struct pd *queue_pd;
	struct table pieces;
	struct object *objects[OBJECT_KINDS];
	uint32_t counts[OBJECT_KINDS];
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

/* One user's: pieces with something to be populated, and mappings of destroyed ones (pieces.c). It lasts as long as there are any. */
struct long_work {
	TAILQ_ENTRY(long_work) of_control;
	bool deferred; /* in control.long_deferred */
	uint32_t uid;
	TAILQ_HEAD(, piece) populating;
	TAILQ_HEAD(, leaving) leaving;
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
	bool contended;		  /* there are two or more */
	/* What the thread polls: the listener, and each user's set. */
	struct pollfd polled[1 + CLIENTS_MAX];
	unsigned int polled_count;
	/* Bulk work (users.c): */
	bool bulk_deferred;	       /* some was deferred in this turn */
	uint64_t bulk_ns;	       /* time spent on it in this turn, ... */
	uint64_t bulk_limit_ns;	       /* ... and the limit beyond which it serves no request */
	uint64_t bulk_paused_until_ns; /* no bulk work before that */
	/* Only compared: whose next request is expected, until when, ... */
	const struct share_user *awaited;
	uint64_t awaited_until_ns;
	uint64_t bulk_due_ns; /* ... but bulk work waits no longer than this */
	bool pieces_changed;  /* there is new bulk work, maybe of the awaited user */
	struct client *clients;
	unsigned int client_count;
	/* Whatever happens in every turn must not depend on how many clients there are, or one user's
	 * would slow down each request of another's. */
	struct client_queue ended; /* gone, and not torn down yet */
	bool ended_first;	   /* this turn ends them before it serves requests */
	struct client_queue waiting[RETRY_WAITS]; /* pending, each in the order of retry_ns */
	unsigned int pending;
	TAILQ_HEAD(long_works, long_work) long_turns;
	struct long_works
		long_deferred; /* of users in debt (SHARE_waited_ms), until the next second */
	uint32_t connections;
	uint64_t second_ns;    /* when this second began */
	uint64_t sigbus_seen;  /* faults in clients' memory that have been counted */
	uint64_t held_up_seen; /* times that holes held up threads, likewise */
	uint64_t silent_ns;    /* when to look for silent connections again */
	uint64_t turned_ns;    /* when this turn began */
	uint64_t attended_ns;  /* time in which requests were served: no turn counts for long */
	bool throttled;	       /* something waits only for its user's part of the next turn */
	/* For the next request, on behalf of the client that was answered last. NULL: nobody. */
	struct look look;
	const struct client *answered;
	uint64_t looked_ns[USERS_MAX], looked_all_ns; /* in the present second, by user */
	char socket_path[108];
	const struct client *asking;	   /* for a view; NULL: nobody */
	char text[CONTROL_TEXT_BYTES_MAX]; /* of the view that is being replied */
};

/* Of one user, and of all: how long the thread looks for requests in a second, instead of sleeping. */
enum { LOOKED_NS_MAX = 100000000, LOOKED_ALL_NS_MAX = 250000000 };

void control_unwatch(struct client *client, int fd);

/* Its session is over: it is destroyed at the end of the turn, and asks for nothing until then. */
static inline void client_lost(struct client *client)
{
	if (client->gone)
		return;
	client->gone = true;
	TAILQ_INSERT_TAIL(&client->control->ended, client, of_ended);
	control_unwatch(client, client->fd);
}

/* One request: its reply body is written to `reply`. 0: done; -EAGAIN: pending, call again; other
 * -errno: the answer. */
struct call {
	struct client *client;
	const void *body;
	void *reply;	/* CONTROL_BYTES_MAX, zeroed */
	const int *fds; /* the number in the request's row; closed by the caller */
	int reply_fd;	/* >= 0: sent with the reply; closed by the caller */
	/* Not NULL: so many bytes of it are the reply, instead. It stays as it is until then. */
	const char *text;
	uint32_t text_bytes;
};
struct request_row {
	const char *name;
	uint16_t body_bytes, reply_bytes;
	uint8_t fds;
	int (*run)(struct call *call);
};
extern const struct request_row request_rows[CONTROL_TYPE_END];

/* session.c */
/* Reads and serves at most MESSAGES_PER_TURN requests. Returns their number; sets client->gone at
 * the end of the connection. */
unsigned int session_serve(struct client *client);
/* Has the client sent a message that has not been received yet? */
bool session_has_request(const struct client *client);
/* Asks again for the pending requests whose time has come. Returns how many were answered. */
unsigned int sessions_retry(struct control *c);
/* A client that is being destroyed waits for nothing any more. */
void session_forget(struct client *client);

/* control.c */
enum { NS_IN_MS = 1000000, NS_IN_S = 1000000000 };
uint64_t control_now_ns(void);
/* As the data path knows its user. */
static inline uint16_t client_user(const struct client *client)
{
	unsigned int index = share_user_index(&client->shares);

	return (uint16_t)(index < USERS_MAX ? index : USERS_MAX - 1);
}

/* Holes that the client punched into its memory have held up threads of the daemon for `ns`, 0: none.
 * Charges its user (SHARE_held_up_ms), and disconnects clients if the share is exceeded. */
void client_held_up(struct client *client, uint64_t ns);
/* The same, for all holes in its memory so far. */
void client_look_for_holes(struct client *client);
/* Mapping or unmapping its files has kept this thread waiting for `ns`, 0: not. Charges its user
 * (SHARE_waited_ms). */
void client_waited(struct client *client, uint64_t ns);
void user_waited(struct control *c, struct share_user *u, uint32_t uid, uint64_t ns);
/* Its connection ends at once, with all that it has. */
void client_end(struct client *client);
int control_watch(int epoll, int fd, struct source *source, uint32_t events);
void control_rearm(struct client *client, bool readable);
/* Serves a descriptor that is ready. Returns the number of requests. */
unsigned int control_serve(const struct source *source, uint32_t events);

/* users.c */
/* Gives a new client its user, whose epoll set its descriptors join. 0, -ENOMEM, -EUSERS. */
int user_join(struct client *client);
void user_leave(struct client *client);
/* A request of this client has been received and is not answered yet: are more queued behind it? */
void user_check_backlog(const struct client *client);
/* One of its requests was refused. */
void user_refused(struct user *u, uint64_t now);
/* Waits for a request of a user who was connected at the end of the last turn, or for a connection.
 * UINT64_MAX: without limit. Takes no lock. 1; 0: timeout; -errno. */
int users_wait(struct control *c, uint64_t timeout_ns);
/* The same at the beginning of a turn, for all users. users_serve() then serves those who ask. */
int users_turn_wait(struct control *c, int timeout_ms);
/* Returns the number of requests. */
unsigned int users_serve(struct control *c);
/* May a client of this user be served in this turn? If so, control_served() tells since when it
 * was. */
bool control_may_serve(struct client *client);
void control_served(struct client *client, uint64_t since_ns);
/* Requests of this client have been answered; the first was there at asked_ns. */
void control_answered(struct client *client, uint64_t asked_ns);
/* May that user's pieces be populated or unmapped in this turn? The caller then reports the time it
 * took to control_bulk_done(). */
bool control_bulk_allowed(struct control *c, const struct share_user *of);
void control_bulk_done(struct control *c, uint64_t ns);
/* Begin a turn, at control.turned_ns, and end it. */
void users_turn_begin(struct control *c);
void users_turn_end(struct control *c);
/* Time until bulk work may go on; UINT64_MAX: there is none. */
uint64_t users_bulk_wait_ns(const struct control *c);

/* Handlers of requests: objects.c, memory_windows.c, queue_pairs.c and so on. */
#define REQUEST(NAME, name, body, reply, fds) int run_##name(struct call *call);
#include "host-abi/control_requests.def"

/* Creates an object of `bytes` and adds it to the table and the client's list. NULL: *err is
 * -ENOMEM or -ENOSPC. */
void *object_make(struct client *client, enum object_kind kind, size_t bytes, int *err);
/* The same, under the table's reserved number; -EBUSY: taken. */
void *object_make_kept(struct client *client, enum object_kind kind, size_t bytes, int *err);
/* Removes it from both and frees it. */
void object_drop(struct object *o);
/* The object named by a control_number, to be destroyed: NULL with *err -ENOENT or -EBUSY. */
void *object_named(struct call *call, enum object_kind kind, int *err);
/* The client's object with that number, or NULL. */
void *object_find(struct client *client, enum object_kind kind, uint32_t number);
/* The daemon's address of [va, va + bytes) if it lies in an MR of the client's queue PD with local
 * write, else NULL. */
uint8_t *queue_memory(const struct client *client, const struct mr *mr, uint64_t va, uint64_t bytes,
		      uint32_t align);
/* A command to the command unit of the client's HCA, with its mailbox of input (NULL: none) or of
 * output. 0, or -errno with nothing changed. */
int client_command(const struct client *client, uint16_t op, uint32_t modifier, const void *in,
		   uint32_t bytes);
int client_query(const struct client *client, uint16_t op, uint32_t modifier, void *out,
		 uint32_t bytes);
/* Writes the MPT entry of the key that is o's number (.key is filled in), or invalidates it. 0,
 * -errno with nothing changed. */
int mpt_enter(const struct object *o, struct mpt_entry entry);
int mpt_leave(const struct object *o);

/* mrs.c */
/* Allocates MTT entries for `pages` pages, all empty. No client may have them all. 0, -ENOSPC,
 * -errno. */
int mtt_take(struct client *client, uint32_t pages, struct mr_memory *m);
/* Frees the resources of an MR's memory, which nothing accesses any more. */
void mr_memory_drop(struct client *client, struct mr_memory *m);

/* The device of that name, or NULL. name is NUL-terminated. */
struct device *device_named(struct control *c, const char *name);
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
/* What belongs to no device in particular is counted, and waited for, at this one. One is always left. */
static inline struct device *device_first(struct control *c)
{
	return device_from(c, c->devices);
}
/* GID `index`, 0 or -ENOENT; and their number. */
int device_gid(const struct device *d, uint32_t index, uint8_t gid[16]);
uint32_t device_gid_count(const struct device *d);
/* A snapshot of its port. */
void device_port(const struct device *d, struct control_port_reply *out);

/* Why mmap() or shmat() failed, as -errno. "Again" means that too much memory is locked, which does not pass. */
static inline int mapping_errno(void)
{
	return errno == EAGAIN ? -ENOMEM : -errno;
}

/* pieces.c */
/* Has its user kept the control thread waiting for too long (SHARE_waited_ms)? */
bool mapping_deferred(struct client *client);
/* The client's share for one more mapping of `bytes`. 0; -ENOSPC; -EAGAIN: it will fit when what is
 * leaving has left, or its user is in debt (SHARE_waited_ms). Given back by mapping_give(), or by
 * mapping_unmap_later() when it is unmapped. */
int mapping_take(struct client *client, uint64_t bytes);
void mapping_give(struct client *client, uint64_t bytes);
/* Starts unmapping it, bit by bit: pieces_turn(). Nothing may access it any more. */
void mapping_unmap_later(struct client *client, struct mapping *m);
/* The same of a piece. The object stays. */
void piece_unmap(struct piece *piece);
/* Populates [offset, offset + bytes), at once or bit by bit: pieces_turn(). */
void piece_populate(struct piece *piece, uint64_t offset, uint64_t bytes, bool at_once);
/* `bytes` more of it are registered: its client's share of SHARE_registered_bytes, of which a piece
 * takes no more than it has. 0, -ENOMEM. */
int piece_register(struct piece *piece, uint64_t bytes);
void piece_deregister(struct piece *piece, uint64_t bytes);
/* Unmaps some of what is leaving, and populates some of what is to be, of users who may be served in
 * this turn. */
void pieces_turn(struct control *c);
/* Is there more? */
bool pieces_pending(const struct control *c);
/* Gives the deferred ones turns again. */
void pieces_resume(struct control *c);
/* Unmaps all of it. */
void pieces_leave_all(struct control *c);

/* segments.c: is that process in the daemon's IPC namespace? May it attach any segment there,
 * whatever its mode (CAP_IPC_OWNER in the daemon's user namespace)? */
bool segments_same_namespace(pid_t pid);
bool segments_all_allowed(pid_t pid);

/* objects.c: places this mapped memory of the client on the node of its engine. */
void client_bind(const struct client *client, void *at, uint64_t bytes);

/* settings.c: may the client change what concerns others, too? Root, the daemon's own user and the
 * members of its admin_group may. */
bool client_may_change(const struct client *client);

/* settings.c: may the client do `what`, which concerns others? 0; -EPROTO: another version; -EPERM,
 * which is logged. */
int client_may(struct client *client, uint32_t version, const char *what);

/* settings.c: replies with the outcome of a change. 0; -EAGAIN: it is not complete yet. */
int change_answered(struct control_change_reply *reply, int rc);

/* multicast.c: detaches a QP from all its groups. */
void multicast_leave_all(struct qp_object *qp);

/* capture.c: ends the client's capture, if it has one. */
void capture_leave(struct client *client);
/* Ends captures of channels at HCAs that do not allow them any more. */
void captures_debug_changed(struct control *c);

/* trace.c: ends the client's trace, if it has one. */
void trace_leave(struct client *client);

/* pause.c: does the setting debug of that HCA allow to stop modules and to capture channels? */
bool device_may_stop(const struct device *d);
/* Lets the modules run that stand because of the client. */
void pause_leave(struct client *client);
/* Lets all modules of a device run that is being removed. */
void pause_end(struct control *c, struct device *d);

/* teardown.c: the client's objects, contexts, memory; waits for the data path once. */
void client_teardown(struct client *client);

/* client_memory.c */
enum { MEMORY_SEAL_SEALED = 1 /* requires F_SEAL_SEAL, too */ };
/* Maps a sealed memfd of exactly `bytes` and guards it. 0; -EINVAL with *why: what is wrong with
 * it; -ENOSPC; -errno. */
int memory_map(int fd, uint64_t bytes, unsigned int flags, struct mapping *m, const char **why);
/* Maps [offset, offset + bytes) of a memory file at an address congruent to the offset modulo 2
 * MiB, or 1 GiB if it is that large, and guards it. Touches none of it. The same errors. */
int memory_map_piece(int fd, uint64_t offset, uint64_t bytes, bool read_only, struct mapping *m,
		     const char **why);
/* Enters those pages of [offset, offset + bytes) into our tables that exist, to spare the data path
 * its faults. Brings in no others: they would be on our account, not on the client's. */
void memory_populate(const struct mapping *m, uint64_t offset, uint64_t bytes);
/* Guards memory mapped by other means; on failure unmaps it. The same errors. */
int memory_mapped(void *at, uint64_t bytes, uint64_t page_bytes, int protection, struct mapping *m,
		  const char **why);
void memory_unmap(struct mapping *m);
/* To map or unmap a file, the kernel takes a lock of it, which whoever punches a hole holds while the
 * hole is unmapped everywhere: its owner can map it thousands of times before. wait_ns() returns how
 * long the thread has waited in the kernel since wait_begin(): 0 if that was short, or it only left the
 * CPU to others. Async-signal-safe. */
struct wait {
	uint64_t since_ns;
	long switches;
};
struct wait wait_begin(void);
uint64_t wait_ns(const struct wait *w);
/* For unmapping by hand: first stop guarding its pages; then, when all is unmapped, stop counting
 * it against the kernel's limit of mappings. */
void memory_unguard(uint32_t range);
void memory_forget(uint32_t range);
/* Mappings that the process may guard. Then another one is refused: -ENOSPC. */
uint32_t memory_ranges_max(void);
/* Pages of it that were missing when touched. */
uint64_t memory_faults(const struct mapping *m);
/* The same for all mappings so far. */
uint64_t memory_faults_total(void);
/* Names the user who is charged for holes in it. */
void memory_belongs(const struct mapping *m, uid_t uid);
/* How long holes in it have held up threads since the last call. */
uint64_t memory_held_up_ns(const struct mapping *m);
/* How often holes have held up threads, for all mappings so far. */
uint64_t memory_held_up_total(void);
/* Installs the handlers of SIGBUS and of control_thread_waits(). 0 or -errno. */
int memory_guard(void);

#endif
