/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CONNECTION_PRIV_H
#define CM_CONNECTION_PRIV_H
/*
 * What the files of the protocol share: a connection, and the building blocks of its handlers
 * (connection.c). tables.c (look-up, timers) and the exchanges have their own headers.
 *
 * Re-entrancy: the owner is called only from cm_receive(), cm_expire() and cm_established(), and
 * last by each: after cm_notify() the connection may be freed. Only ops->request() is followed by
 * more work on the connection, which `in_request` keeps alive.
 */
#include "cm/connection.h"

/* The times of the protocol. Those of 5 bits are exponents: 4.096 us * 2^n. */
enum {
	CM_RESPONSE_TIMEOUT = 20, /* promised and expected in REQs: 4.3 s */
	CM_RETRIES = 15,	  /* at most as many as fit into max_cm_retries */
	CM_RESPONSE_LEAST = 8,	  /* least that a peer may request: 1 ms ... */
	CM_RESPONSE_MOST = 23,	  /* ... and most: 34 s, 16 times for each REP */
	CM_SERVICE_MOST = 26,	  /* of an MRA: 275 s; kernels say 24 */
	CM_TARGET_ACK_DELAY = 15, /* our device's, in a REP: 134 ms */
	CM_ACK_TIMEOUT = 17,	  /* if a path has none: 0.54 s */
	CM_TIMEWAIT_MOST = 21,	  /* 8.6 s */
	CM_KEPT_MOST = 25,	  /* 137 s: how long a rejection is kept for repetitions */
	CM_REJECT_REPEATS = 3,	  /* of a REJ that the peer has no reason to request again */
	CM_CONNECTIONS = 65536,
	CM_UNANSWERED = 1024,
	CM_SOURCES = 1024,	 /* by which strangers are told apart: hashes of their addresses */
	CM_PLACE_BITS_MOST = 24, /* communication IDs have 8 random bits at least */
	CM_HOP_LIMIT = 64,
	CM_EXPIRED_MOST = 1024, /* in one call of cm_expire(), while received messages wait */
};

enum cm_state {
#define STATE(id, text) CM_##id,
#include "connection.def"
	CM_STATE_COUNT
};

/* In a hash chain. */
struct cm_node {
	struct cm_node *next, **back; /* back: NULL, if in none */
	uint64_t hash;
};

struct cm_hash {
	struct cm_node **bucket;
	uint32_t buckets, count; /* buckets: a power of two */
};

/* Communication IDs: an index in the low bits, random bits above. Freed indices are reused in the
 * order in which they were freed. */
struct cm_places {
	struct cm_connection **at;
	uint32_t *last; /* the index's last ID */
	uint32_t *next; /* next free index; UINT32_MAX: none */
	uint32_t first_free, last_free;
	uint32_t count, most;
	unsigned int bits;
};

/* Connections by time, a binary heap with room for all places. */
struct cm_timers {
	struct cm_connection **heap; /* from 1 on */
	uint32_t count;
};

struct cm_connection {
	struct cm *cm;
	void *owner;
	struct share_client *share; /* in which it counts while unanswered; NULL: in none */
	bool owned;
	bool in_request; /* ops->request() is running: do not free */
	bool passive;	 /* began with the peer's REQ or SIDR_REQ */
	bool sidr;	 /* service ID resolution */
	bool kept;	 /* in TIMEWAIT only to repeat `mad`, a REJ or SIDR_REP */
	uint8_t state;	 /* enum cm_state */
	uint8_t retries; /* resends of `mad` left */
	uint8_t max_retries;
	uint8_t response_timeout; /* for answers to our messages, exponent */
	uint8_t peer_waits;	  /* for our answers, exponent */
	bool mra_fresh;		  /* an MRA arrived since `mad` was last sent */
	bool mra_sent;		  /* we sent an MRA, so the peer waits longer: */
	uint8_t service_timeout;  /* by that, exponent */
	struct cm_path path;
	uint32_t local_id, remote_id; /* remote: 0 while unknown */
	uint64_t transaction, remote_guid, service_id;
	uint32_t local_qpn, remote_qpn, remote_psn, remote_qkey;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count, timeout;
	bool peer_srq;
	uint64_t due;	  /* if in the heap */
	uint32_t heap_at; /* 0: not */
	struct cm_node by_remote, by_qpn;
	uint8_t mad[CM_MAD_BYTES]; /* the last message, for resending */
};

struct cm {
	const struct cm_ops *ops;
	void *ctx;
	struct cm_places places;
	struct cm_hash by_remote; /* peers' requests, by remote ID */
	struct cm_hash by_qpn;	  /* connections, by remote QPN, until their time-wait */
	struct cm_timers timers;
	uint64_t seed[2];		 /* of the hashes */
	struct cm_connection *abandoned; /* answered by an owner that does not keep it: to be
					    released once its handler has returned */
	uint32_t connections, orphans, unanswered, kept;
	uint32_t unanswered_of[CM_SOURCES]; /* by cm_source() */
	uint32_t unanswered_most, of_source_most, strangers_most, kept_most;
	uint8_t response_timeout, retries;
	struct cm_counters counters;
};

/* A new connection in IDLE, owned by owner. NULL with errno: ENOSPC, ENOMEM. */
struct cm_connection *cm_connection_new(struct cm *cm, const struct cm_path *path, void *owner);
/* Makes a transition and updates the counts and tables that depend on the state. */
void cm_step(struct cm_connection *c, enum cm_state next);
/* Notifies the owner, or settles without one. c must not be used afterwards. */
void cm_notify(struct cm_connection *c, enum cm_event_type type, const struct cm_message *m);
/* The connection that a message names; NULL: none, or it is another peer's. Its remote ID must be
 * m's local ID, or unknown. */
struct cm_connection *cm_find_pair(const struct cm *cm, const struct cm_path *path,
				   const struct cm_message *m);

uint64_t cm_time_of(unsigned int exponent); /* ns */
uint8_t cm_clamp(uint8_t value, uint8_t least, uint8_t most);
/* Starts waiting for the answer to c->mad, with max_retries resends. */
void cm_await_answer(struct cm_connection *c, uint64_t now);
/* Enters time-wait. */
void cm_enter_timewait(struct cm_connection *c, uint64_t now);
/* In time-wait: repeats the answer unasked, or ends it. */
void cm_timewait_expired(struct cm_connection *c, uint64_t now);
/* Keeps c to repeat c->mad on request, if not too many are kept; else it is over. */
void cm_keep_answer(struct cm_connection *c, uint64_t now, unsigned int repeats);

/* An empty message of the connection. */
void cm_message_begin(const struct cm_connection *c, struct cm_message *m, enum cm_type type);
/* 0; -EINVAL: too long. */
int cm_message_private(struct cm_message *m, const void *data, uint8_t bytes);
/* Sends it, and keeps it for resending. */
void cm_send_kept(struct cm_connection *c, const struct cm_message *m);
void cm_send_again(struct cm_connection *c);
/* Sends an answer outside any connection. */
void cm_send_to(struct cm *cm, const struct cm_path *path, const struct cm_message *m);

/*
 * Calls ops->request() to find an owner for c, made for the request m. False: there is none, c is
 * unchanged and *reason says why. True: c is handled, and may be freed; nothing may follow.
 */
bool cm_ask_owner(struct cm_connection *c, const struct cm_message *m, uint16_t *reason);
/* May a request from there create a connection now? A refusal is counted. */
bool cm_room_for_stranger(struct cm *cm, const struct cm_path *path);
/* Its owner has released it. */
void cm_orphan(struct cm_connection *c);
/* Frees c if it is over and has no owner. */
void cm_settle(struct cm_connection *c);
/* Frees a connection that no one serves. */
void cm_forget(struct cm_connection *c);

#endif
