/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_PRIV_H
#define CONTROL_PRIV_H
/*
 * What the files of lib/daemon/control share. Control thread only.
 *
 * Objects: everything a client can make has a number, lies in a table (of the device, or of the
 * client for pieces) and in its client's list of that kind. `users` counts what depends on it; it
 * goes only when that is 0.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/limits.h"
#include "base/log.h"
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

/* Numbers: the low bits are the place in slot[], the rest are random and differ from the last use.
 */
struct table {
	struct object **slot;
	uint32_t *last;	    /* number last given at that place */
	uint32_t count;	    /* places there are; power of two */
	uint32_t max;	    /* places that it may grow to; power of two */
	uint32_t cursor;    /* where the search for a free place begins */
	uint32_t kept;	    /* number that table_add() never gives, nor its place; 0: none */
	uint8_t bits;	    /* of a number */
	uint8_t tag_bits;   /* of them, the lowest, that its owner may change: keys */
	uint8_t place_bits; /* enough for max, above them */
};

/* 0, -ENOMEM. */
int table_create(struct table *t, uint32_t count, uint32_t max, unsigned int bits,
		 unsigned int tag_bits);
void table_destroy(struct table *t);
/* Puts o into the table under a new number. 0, -ENOSPC, -ENOMEM. A table that is smaller than its
 * max grows. No number is 0 or, in a table without tags, all ones. */
int table_add(struct table *t, struct object *o);
/* Puts o into the table under the number that is kept. 0; -EBUSY: it has it already; -ENOSPC: it
 * keeps none. */
int table_add_kept(struct table *t, struct object *o);
void table_remove(struct table *t, struct object *o);
/* The object of that number if it is this client's, or NULL. */
struct object *table_find(const struct table *t, uint32_t number, const struct client *client);
/* A random number from the kernel. */
uint32_t control_random(void);

/* MTT entries, given out in powers of two (doc/virt-to-phys.md#mtt), as buddies. */
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
/* Entries that `wanted` of them take, 1 or more; 0: more than there can be. */
uint32_t mtt_space_size(uint32_t wanted);
/* Takes so many, as mtt_space_size() says. False: none are free, or none that lie together. */
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
	uint32_t range; /* in the SIGBUS handler's table */
};

/* A part of a client's file. Its users are MRs, one count for each of their extents. */
struct piece {
	struct object object;
	struct mapping mapping;
	bool read_only;
};

/* Bytes of a piece that follow one another. */
struct extent {
	struct piece *piece;
	uint64_t offset, bytes;
};

/* Where an MR's bytes lie: in one stretch of the daemon's addresses, or in pages. */
struct mr_memory {
	struct extent *extents; /* malloc()ed; NULL: a work request says where */
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
	struct control_device config;
	struct table pds, mrs, cqs, srqs, qps;
	struct mtt_space mtts;
	struct client *clients[CLIENTS_MAX]; /* by client index of this HCA */
	uint32_t client_end;
	uint64_t sigbus_seen;
};

struct message {
	struct control_header header;
	uint8_t body[CONTROL_BYTES_MAX] __attribute__((aligned(8)));
};

enum {
	MESSAGE_FDS_MAX = 4, /* descriptors taken from one message; more are malformed */
	MESSAGES_PER_TURN = 16,
	EVENTS_PER_TURN = 64,
};

/* Each fd in the epoll set has one of these. */
enum source_kind { SOURCE_LISTENER, SOURCE_CLIENT, SOURCE_BELL };
struct source {
	uint8_t kind;
	struct client *client;
};

struct client {
	struct control *control;
	struct device *device; /* NULL before HELLO */
	struct source socket_source, bell_source;
	int fd;
	int bell;	/* our end; -1 before HELLO */
	uint32_t index; /* in device->clients */
	uint32_t id;	/* for logs: counts connections */
	pid_t pid;
	uid_t uid;
	bool own; /* this process itself */
	/* As it connected, for its pid may be another's now: of the daemon's IPC namespace? May it
	 * attach any segment? */
	bool same_ipc, ipc_owner;
	struct client *next, *prev;
	struct mapping page;
	struct pd *queue_pd;
	struct table pieces;
	struct object *objects[OBJECT_KINDS];
	uint32_t counts[OBJECT_KINDS];
	uint64_t piece_bytes;
	uint32_t mtts;		  /* of device->mtts */
	uint32_t extents;	  /* of its MRs, and runs that it has added */
	struct control_run *runs; /* of ADD_RUNS, for the next MR */
	uint32_t run_count, run_room;
	uint32_t attachments; /* of its QPs to multicast groups */
	bool gone;	      /* to be torn down at the end of the turn */
	bool handed_over;     /* its connection is the connection manager's, who has its own copy */
	bool pending;	      /* `request` waits for a next hop */
	struct message request;
	uint64_t sigbus_seen; /* faults in its memory already acted upon */
};

struct control {
	struct control_config config;
	struct device devices[HCA_MAX];
	int epoll, listener;
	int spare; /* given up for a moment to refuse a client when no descriptor is left; -1: it is
		    */
	struct source listener_source;
	struct client *clients;
	unsigned int client_count, client_max;
	unsigned int pending;
	struct leaving *leaving; /* mappings of pieces that are gone: pieces.c */
	uint64_t leaving_bytes;
	uint64_t piece_bytes; /* of all clients' pieces and of what is leaving */
	uint32_t connections;
	char socket_path[108];
};

/* One request: its reply body is written to `reply`. 0: done; -EAGAIN: not yet, ask again; other
 * -errno: the answer. */
struct call {
	struct client *client;
	const void *body;
	void *reply;	/* CONTROL_BYTES_MAX, zeroed */
	const int *fds; /* as many as the request's row says; closed by the caller */
	int reply_fd;	/* >= 0: goes with the reply; closed by the caller */
};
struct request_row {
	const char *name;
	uint16_t body_bytes, reply_bytes;
	uint8_t fds;
	int (*run)(struct call *call);
};
extern const struct request_row request_rows[CONTROL_TYPE_END];

/* session.c */
/* Reads and serves at most MESSAGES_PER_TURN requests. Returns how many; sets client->gone when it
 * is over. */
unsigned int session_serve(struct client *client);
/* Asks again for what waits. Returns 1 when it was answered. */
unsigned int session_retry(struct client *client);

/* control.c */
int control_watch(struct control *c, int fd, struct source *source, uint32_t events);
void control_unwatch(struct control *c, int fd);
void control_rearm(struct client *client, bool readable);

/* What requests do: objects.c, memory_windows.c, queue_pairs.c and so on. */
#define REQUEST(NAME, name, body, reply, fds) int run_##name(struct call *call);
#include "host-abi/control_requests.def"

/* Makes an object of `bytes` and puts it into the table and the client's list. NULL: *err is
 * -ENOMEM or -ENOSPC. */
void *object_make(struct client *client, enum object_kind kind, size_t bytes, int *err);
/* The same, under the number that the table keeps; -EBUSY: somebody has it. */
void *object_make_kept(struct client *client, enum object_kind kind, size_t bytes, int *err);
/* Takes it out of both and frees it. */
void object_drop(struct object *o);
/* The object that a control_number names, to be taken away: NULL with *err -ENOENT or -EBUSY. */
void *object_named(struct call *call, enum object_kind kind, int *err);
/* The client's object with that number, or NULL. */
void *object_find(struct client *client, enum object_kind kind, uint32_t number);
/* The daemon's address of [va, va + bytes) if it lies in an MR of the client's queue PD with local
 * write. NULL if not. */
uint8_t *queue_memory(const struct client *client, const struct mr *mr, uint64_t va, uint64_t bytes,
		      uint32_t align);
/* Gives the key that is o's number its MPT entry (but .key, which is filled in), or takes it away.
 * 0, -errno: nothing has changed. */
int mpt_enter(const struct object *o, struct mpt_entry entry);
int mpt_leave(const struct object *o);

/* mrs.c */
/* MTT entries for so many pages, none of them there yet. No client gets all there are. 0, -ENOSPC,
 * -errno. */
int mtt_take(struct client *client, uint32_t pages, struct mr_memory *m);
/* Gives back what an MR's memory takes; nothing accesses it any more. */
void mr_memory_drop(struct client *client, struct mr_memory *m);

/* The device of that name, or NULL. name is terminated. */
struct device *device_named(struct control *c, const char *name);
/* GID `index`, 0 or -ENOENT; and how many there are. */
int device_gid(const struct device *d, uint32_t index, uint8_t gid[16]);
uint32_t device_gid_count(const struct device *d);
/* Its port as it is now. */
void device_port(const struct device *d, struct control_port_reply *out);

/* pieces.c */
/* May the client have `bytes` more? All pieces share the daemon's addresses, and nobody gets more
 * of them than are left for the others. Before it says no, all that is leaving is unmapped. */
bool piece_fits(const struct client *client, uint64_t bytes);
/* A new piece of the client's, mapped. */
void piece_mapped(struct piece *piece);
/* Its mapping goes, bit by bit: pieces_leave(). The object stays. Nothing accesses it any more. */
void piece_unmap(struct piece *piece);
/* Unmaps some of what is leaving. True: there is more. */
bool pieces_leave(struct control *c);
/* Unmaps all of it. False: there was none. */
bool pieces_leave_all(struct control *c);

/* segments.c: is that process of the daemon's IPC namespace? May it attach any segment there,
 * whatever the segment's mode (CAP_IPC_OWNER in the daemon's user namespace)? */
bool segments_same_namespace(pid_t pid);
bool segments_all_allowed(pid_t pid);

/* objects.c: this memory of the client's, which is mapped, shall lie on the node of the engine that
 * serves the client. */
void client_bind(const struct client *client, void *at, uint64_t bytes);

/* multicast.c: detaches a QP from all its groups. */
void multicast_leave_all(struct qp_object *qp);

/* teardown.c: the client's objects, contexts, memory; waits for the data path once. */
void client_teardown(struct client *client);

/* client_memory.c */
enum { MEMORY_SEAL_SEALED = 1 /* F_SEAL_SEAL is wanted, too */ };
/* Maps a sealed memfd of exactly `bytes` and guards it. 0; -EINVAL with *why: what is wrong with
 * it; -ENOSPC; -errno. */
int memory_map(int fd, uint64_t bytes, unsigned int flags, struct mapping *m, const char **why);
/* Maps [offset, offset + bytes) of a file in memory, at an address that is congruent to the offset
 * modulo 2 MiB, or 1 GiB if it is as large, and guards it. Touches none of it. The same answers. */
int memory_map_piece(int fd, uint64_t offset, uint64_t bytes, bool read_only, struct mapping *m,
		     const char **why);
/* Saves the data path the page faults of [offset, offset + bytes). */
void memory_populate(const struct mapping *m, uint64_t offset, uint64_t bytes, bool read_only);
/* Guards what is mapped by other means; if it cannot, unmaps it. The same answers. */
int memory_mapped(void *at, uint64_t bytes, uint64_t page_bytes, int protection, struct mapping *m,
		  const char **why);
void memory_unmap(struct mapping *m);
/* To unmap by hand: its pages are no longer guarded; and then, when all of it is unmapped, it no
 * longer counts against what the kernel lets a process map. */
void memory_unguard(uint32_t range);
void memory_forget(uint32_t range);
/* Pages of it that were gone when touched. */
uint64_t memory_faults(const struct mapping *m);
/* The same of all mappings ever. */
uint64_t memory_faults_total(void);
/* The SIGBUS handler of the process. 0 or -errno. */
int memory_guard(void);

#endif
