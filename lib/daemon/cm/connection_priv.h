/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CONNECTION_PRIV_H
#define CM_CONNECTION_PRIV_H
/*
 * What the files of the protocol share: a connection, the tables it is found by, and what its
 * handlers are made of. connection.c: life, time, owner; tables.c: finding and timers; connect.c,
 * disconnect.c, reject.c, sidr.c: the exchanges.
 *
 * Re-entrancy: the owner is called only by cm_receive(), cm_expire() and cm_established(), and
 * each of them calls it last: after cm_tell() the connection may be gone. Only ops->request() is
 * followed by more work on the connection, which `in_request` keeps from going.
 */
#include "cm/connection.h"

/* All the times of the protocol. Those of 5 bits are exponents: 4.096 us * 2^n. */
enum {
	CM_RESPONSE_TIMEOUT = 20, /* what we promise and expect in REQs: 4.3 s */
	CM_RETRIES = 15,	  /* at most as many as fit into max_cm_retries */
	CM_RESPONSE_LEAST = 8,	  /* what a peer may ask of us at least: 1 ms ... */
	CM_RESPONSE_MOST = 23,	  /* ... and at most: 34 s, 16 times for each REP */
	CM_SERVICE_MOST = 26,	  /* of an MRA: 275 s; kernels say 24 */
	CM_TARGET_ACK_DELAY = 15, /* what a REP says of our device: 134 ms */
	CM_ACK_TIMEOUT = 17,	  /* where a path says none: 0.54 s */
	CM_TIMEWAIT_MOST = 21,	  /* 8.6 s */
	CM_KEPT_MOST = 25,	  /* 137 s: how long a rejection is kept for repetitions */
	CM_REJECT_REPEATS = 3,	  /* of a REJ that nothing makes the peer ask for again */
	CM_CONNECTIONS = 65536,
	CM_UNANSWERED = 1024,
	CM_PLACE_BITS_MOST = 24, /* communication IDs have 8 random bits at least */
	CM_HOP_LIMIT = 64,
	CM_EXPIRED_MOST = 1024, /* in one call of cm_expire(): messages that came wait meanwhile */
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

/* Communication IDs: a place in the low bits, random ones above. Places that became free are taken
 * again in that order, latest last. */
struct cm_places {
	struct cm_connection **at;
	uint32_t *last; /* ID that the place had last */
	uint32_t *next; /* free place that follows; UINT32_MAX: none */
	uint32_t first_free, last_free;
	uint32_t count, most;
	unsigned int bits;
};

/* Connections by time, a binary heap of as much room as there are places. */
struct cm_timers {
	struct cm_connection **heap; /* from 1 on */
	uint32_t count;
};

struct cm_connection {
	struct cm *cm;
	void *owner;
	uint32_t *share; /* of its owner: requests not answered yet; NULL: nobody counts */
	bool owned;
	bool in_request; /* ops->request() is at it: do not free */
	bool passive;	 /* began with the peer's REQ or SIDR_REQ */
	bool sidr;	 /* service ID resolution */
	bool kept;	 /* in TIMEWAIT only to answer repetitions by `mad`: REJ or SIDR_REP */
	uint8_t state;	 /* enum cm_state */
	uint8_t retries; /* how often `mad` may be sent again */
	uint8_t max_retries;
	uint8_t response_timeout; /* for answers to ours, exponent */
	uint8_t peer_waits;	  /* so long for ours, exponent */
	bool mra_fresh;		  /* an MRA came since `mad` was sent last */
	bool mra_sent;		  /* the peer waits longer than it says in its messages: */
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
	uint8_t mad[CM_MAD_BYTES]; /* the last that was sent on purpose: to be sent again */
};

struct cm {
	const struct cm_ops *ops;
	void *ctx;
	struct cm_places places;
	struct cm_hash by_remote; /* peers' requests, by remote ID */
	struct cm_hash by_qpn;	  /* connections, by remote QPN, until their time-wait */
	struct cm_timers timers;
	uint64_t seed[2]; /* of the hashes */
	uint32_t connections, orphans, unanswered, kept;
	uint32_t unanswered_most, strangers_most, kept_most;
	uint8_t response_timeout, retries;
	struct cm_counters counters;
};

/* --- tables.c --- */

/* 0; -ENOMEM. most: of connections. */
int cm_places_create(struct cm_places *p, uint32_t most);
void cm_places_destroy(struct cm_places *p);
/* Gives c its local_id. 0; -ENOSPC, -ENOMEM. May enlarge the heap, too. */
int cm_place_take(struct cm *cm, struct cm_connection *c);
void cm_place_free(struct cm *cm, struct cm_connection *c);
struct cm_connection *cm_place_find(const struct cm_places *p, uint32_t id);

/* Both keys have a number that the peer chose, its GUID (SIDR: 0), its GID and our device. */
void cm_remote_add(struct cm_connection *c);
void cm_qpn_add(struct cm_connection *c);
struct cm_connection *cm_remote_find(const struct cm *cm, uint32_t id, uint64_t guid,
				     const struct cm_path *path, bool sidr);
struct cm_connection *cm_qpn_find(const struct cm *cm, uint32_t qpn, uint64_t guid,
				  const struct cm_path *path);
/* Not in it: nothing happens. */
void cm_hash_remove(struct cm_hash *h, struct cm_node *n);
void cm_hash_destroy(struct cm_hash *h);

/* Moves it if it has one already. */
void cm_timer_set(struct cm_connection *c, uint64_t due);
void cm_timer_cancel(struct cm_connection *c);

/* --- connection.c --- */

/* A new connection in IDLE, owned by owner. NULL with errno: ENOSPC, ENOMEM. */
struct cm_connection *cm_connection_new(struct cm *cm, const struct cm_path *path, void *owner);
/* Makes a transition; nothing else but the counts and tables that depend on the state. */
void cm_step(struct cm_connection *c, enum cm_state next);
/* c is freed if nobody owns it and it is over. */
void cm_settle(struct cm_connection *c);
/* Tells the owner; without one, settles. The last thing done with c. */
void cm_tell(struct cm_connection *c, enum cm_event_type type, const struct cm_message *m);
/* The connection that a message names; NULL: none, or it is another peer's. Its remote ID must be
 * m's local ID, or unknown. */
struct cm_connection *cm_find_pair(const struct cm *cm, const struct cm_path *path,
				   const struct cm_message *m);

uint64_t cm_time_of(unsigned int exponent); /* ns */
uint8_t cm_clamp(uint8_t value, uint8_t least, uint8_t most);
/* Waits for the answer to c->mad, as often as max_retries says. */
void cm_await_answer(struct cm_connection *c, uint64_t now);
/* Time-wait begins. */
void cm_enter_timewait(struct cm_connection *c, uint64_t now);
/* It goes on for answering repetitions by c->mad, if not too many do; else it is over. */
void cm_keep_answer(struct cm_connection *c, uint64_t now, unsigned int repeats);

/* An empty message of the connection. */
void cm_message_begin(const struct cm_connection *c, struct cm_message *m, enum cm_type type);
/* 0; -EINVAL: too long. */
int cm_message_private(struct cm_message *m, const void *data, uint8_t bytes);
/* Sends it, and keeps it to be sent again. */
void cm_send_kept(struct cm_connection *c, const struct cm_message *m);
void cm_send_again(struct cm_connection *c);
/* Sends an answer to who has no connection. */
void cm_send_to(struct cm *cm, const struct cm_path *path, const struct cm_message *m);

/* --- the exchanges: what to do when a message came, or no answer --- */

void cm_on_req(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_mra(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_rep(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_rtu(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_dreq(struct cm *cm, uint64_t now, const struct cm_path *path,
		const struct cm_message *m);
void cm_on_drep(struct cm *cm, uint64_t now, const struct cm_path *path,
		const struct cm_message *m);
void cm_on_rej(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_lap(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_sidr_req(struct cm *cm, uint64_t now, const struct cm_path *path,
		    const struct cm_message *m);
void cm_on_sidr_rep(struct cm *cm, uint64_t now, const struct cm_path *path,
		    const struct cm_message *m);

/*
 * Asks ops->request() for an owner of c, which the request m made. false: nobody serves it, c is as
 * it was and has no owner; *reason says why. true: c is taken care of, and may be gone.
 */
bool cm_ask_owner(struct cm_connection *c, uint64_t now, const struct cm_message *m,
		  uint16_t *reason);
/* May a request of a stranger make a connection now? If not, that is counted. */
bool cm_room_for_stranger(struct cm *cm);
/* A connection that nobody served is forgotten. */
void cm_forget(struct cm_connection *c);

/* A REJ to who has no connection here. */
void cm_refuse(struct cm *cm, const struct cm_path *path, const struct cm_message *m,
	       enum cm_reject_reason reason, const void *info, uint8_t info_bytes);
/* The REJ again, about the message that came, if a REJ is what c sent last. */
void cm_reject_again(struct cm_connection *c, enum cm_about about);
/* A REJ because its peer does not answer. */
void cm_reject_timeout(struct cm_connection *c, uint64_t now);
/* A peer has a new connection with the QP of an old one, which ends if it is established. */
void cm_disconnect_stale(struct cm_connection *c, uint64_t now);

#endif
