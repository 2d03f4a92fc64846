/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CONNECTION_H
#define CM_CONNECTION_H
/*
 * The connection manager's protocol (IBTA volume 1, chapter 12): connections and their states
 * (connection.def), retransmission and timeouts, duplicates, stale connections, time-wait, and
 * service ID resolution for UD. Knows no socket, no clock and no verbs: time and MADs are passed
 * in, so that tests can use virtual time. One thread at a time.
 *
 * A connection has an owner (one of service.h's identifiers) from its creation until cm_release();
 * what remains to be done with the peer after that, rejecting, disconnecting, time-wait, continues
 * without one. Times are nanoseconds of any monotonic clock.
 *
 * Peers are identified by GID: a message about a connection counts only if it comes from that
 * connection's GID and names both communication IDs; a DREQ must name our QP as well.
 */
#include "cm/mad.h"

struct cm;
struct share_client;
struct cm_connection;

/* The address of the peer, and ours: the GID, as its index may change while the path is in use. */
struct cm_path {
	uint16_t device; /* index of the daemon's device */
	uint8_t sgid[16], dgid[16];
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit, sl;
	uint8_t mtu;	     /* 1..5 */
	uint8_t ack_timeout; /* for both QPs, 5 bits */
	uint8_t rate;
};

enum cm_event_type {
	CM_EVENT_REP,	      /* message; cm_send_rtu() or cm_reject() is due */
	CM_EVENT_RTU,	      /* message, or NULL: established by cm_established() */
	CM_EVENT_REJ,	      /* message; over; in time-wait if the connection had been answered or
				  the reason is a stale connection */
	CM_EVENT_REQ_TIMEOUT, /* the REQ was not answered: over */
	CM_EVENT_REP_TIMEOUT, /* no RTU arrived: over */
	CM_EVENT_DREQ, /* message; answer by cm_send_drep(). May arrive instead of a lost RTU,
				  and after our own DREQ */
	CM_EVENT_DREP, /* message; in time-wait */
	CM_EVENT_DREQ_TIMEOUT,	/* the DREQ was not answered; in time-wait */
	CM_EVENT_TIMEWAIT_EXIT, /* no packet of the old connection can still arrive: over. Not after
				   cm_reject() or cm_send_sidr_rep() */
	CM_EVENT_SIDR_REP,	/* message: over */
	CM_EVENT_SIDR_TIMEOUT,	/* over */
};

struct cm_event {
	enum cm_event_type type;
	const struct cm_message *message; /* valid during the call; NULL: none */
};

/*
 * The callbacks. request() and event() may call all functions that take a connection, for any
 * connection, and cm_send_req() and cm_send_sidr_req(); but not cm_receive(), cm_expire(),
 * cm_destroy() or cm_established(), which call back themselves.
 */
struct cm_ops {
	/* Sends a MAD to QP 1 at the path's other end. It may be lost. Must not call cm. */
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES]);
	/*
	 * A new REQ or SIDR_REQ has arrived. Returns the connection's owner, who serves its
	 * service ID; NULL: no one does, and *reason is the answer (REQ: preset to
	 * CM_REJ_INVALID_SERVICE_ID; SIDR_REQ: a status, preset to 1). If it is set to 0
	 * there is no answer: the request is dropped and counted (dropped_full), since the
	 * sender will repeat it. May call functions of cm for c, also cm_release().
	 */
	void *(*request)(void *ctx, struct cm_connection *c, const struct cm_path *path,
			 const struct cm_message *m, uint16_t *reason);
	/* Something happened to c. May call functions of cm, also cm_release(c). */
	void (*event)(void *ctx, void *owner, struct cm_connection *c, const struct cm_event *e);
	/* CA GUID of a device. */
	uint64_t (*guid)(void *ctx, unsigned int device);
	/* For communication IDs and transactions. */
	uint32_t (*random)(void *ctx);
};

struct cm_limits {
	uint32_t connections;	  /* at most, including time-wait; an eighth is reserved for our
				     own requests, and at most a quarter are kept only to repeat
				     rejections and the like; 0: 65536 */
	uint32_t unanswered;	  /* received REQs and SIDR_REQs not answered yet; further ones are
					dropped, their senders repeat them; 0: 1024 */
	uint32_t of_source;	  /* of these, from addresses that share one of 1024 secret
					hashes; 0: a sixteenth */
	uint8_t response_timeout; /* promised in our REQs: 4.096 us * 2^n; 0: 20 (4.3 s) */
	uint8_t retries;	  /* of unanswered messages, at most 15; 0: 15 */
};

/* Statistics of MADs and connections; they only grow. */
struct cm_counters {
#define CM_COUNTER(name, text) uint64_t name;
#include "cm/counters.def"
};

/* NULL with errno: ENOMEM. */
struct cm *cm_create(const struct cm_ops *ops, void *ctx, const struct cm_limits *limits);
/* Frees everything at once, without notifying any peer. NULL is allowed. */
void cm_destroy(struct cm *cm);

/* A MAD arrived at a device's QP 1; path: the way back to its sender (mtu, ack_timeout and rate are
 * ignored). Any bytes. */
void cm_receive(struct cm *cm, uint64_t now, const struct cm_path *path, const uint8_t *mad,
		size_t bytes);
/* Handles a bounded number of expired timers. Returns when to call it next (not after now: more
 * have expired); UINT64_MAX: never. Cheap if none has expired. */
uint64_t cm_expire(struct cm *cm, uint64_t now);

/* A device has been removed, and its connections have been released: ends what remained to be done
 * with their peers. No event follows. */
void cm_forget_device(struct cm *cm, unsigned int device);

/* One side's parameters in REQ and REP. */
struct cm_end {
	uint32_t qpn, psn; /* 24 bits */
	uint32_t qkey;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count; /* 0..7 */
	bool flow_control, srq;
	uint32_t vendor_id, options; /* ECE: 24 bits, 32 bits; 0: none */
	const void *private_data;    /* copied */
	uint8_t private_bytes;	     /* 0..cm_private_bytes() of the message */
};

/*
 * Sends a REQ, repeated until it is answered or max_cm_retries (15) are spent, each after the
 * response timeout (2^20 * 4.096 us). NULL with errno: ENOSPC (limit), ENOMEM, EINVAL (private
 * data).
 */
struct cm_connection *cm_send_req(struct cm *cm, uint64_t now, void *owner,
				  const struct cm_path *path, uint64_t service_id,
				  enum cm_service_type type, const struct cm_end *end);

/* Added to service_timeout (5 bits): the MRA is sent only if the REQ or REP is repeated. */
enum { CM_MRA_IF_REPEATED = 0x80 };
/* All of these return 0 or -EINVAL: wrong state of the connection, or private data too long.
 * private_data may be NULL if private_bytes is 0. */
int cm_send_mra(struct cm_connection *c, uint64_t now, uint8_t service_timeout);
int cm_send_rep(struct cm_connection *c, uint64_t now, const struct cm_end *end);
int cm_send_rtu(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes);
int cm_reject(struct cm_connection *c, uint64_t now, enum cm_reject_reason reason, const void *info,
	      uint8_t info_bytes, const void *private_data, uint8_t bytes);
int cm_send_dreq(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes);
int cm_send_drep(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes);
/* Data arrived before the RTU (IBV_EVENT_COMM_EST): treated as the RTU. Notifies the owner at once,
 * which may release c. */
int cm_established(struct cm_connection *c, uint64_t now);

/* Service ID resolution. As cm_send_req(); ends with the answer. */
struct cm_connection *cm_send_sidr_req(struct cm *cm, uint64_t now, void *owner,
				       const struct cm_path *path, uint64_t service_id,
				       const void *private_data, uint8_t bytes);
enum cm_sidr_status { CM_SIDR_VALID = 0, CM_SIDR_UNSUPPORTED = 1, CM_SIDR_REJECTED = 2 };
/* Answers a SIDR_REQ, which ends it. status: enum cm_sidr_status or another. */
int cm_send_sidr_rep(struct cm_connection *c, uint64_t now, uint8_t status, uint32_t qpn,
		     uint32_t qkey, const void *private_data, uint8_t bytes);

/*
 * Releases c, because its owner wants to or has died: no more events, and c must not be used. As a
 * kernel does: our REQ is withdrawn (REJ: CM_REJ_TIMEOUT), an unanswered request is rejected
 * (CM_REJ_CONSUMER; SIDR: CM_SIDR_REJECTED), an established connection is disconnected, with
 * retries, and time-wait runs to its end.
 */
void cm_release(struct cm_connection *c, uint64_t now);

/*
 * Called in ops->request(): c is one of its owner's SHARE_cm_requests until it is answered. False:
 * the owner may have no more; nothing has changed. *holder must remain valid until c is released,
 * or until cm_share_move() counts it elsewhere, which has room.
 */
bool cm_share(struct cm_connection *c, struct share_client *holder);
void cm_share_move(struct cm_connection *c, struct share_client *holder);
/* Does it count as one now? */
bool cm_is_shared(const struct cm_connection *c);

/* What an owner may ask of its connection. */
struct cm_connection_info {
	const char *state; /* name in connection.def */
	uint8_t state_number;
	struct cm_path path;
	uint32_t local_id, remote_id;
	uint32_t remote_qpn, remote_psn, remote_qkey; /* after REQ or REP */
	uint8_t responder_resources, initiator_depth; /* of the peer's message */
	uint8_t retry_count, rnr_retry_count;	      /* for our QP */
	uint8_t timeout;			      /* local ACK timeout for our QP */
	bool peer_srq;
};
void cm_connection_info(const struct cm_connection *c, struct cm_connection_info *out);

/* The number of connections, and of those without an owner. For tests and telemetry. */
void cm_census(const struct cm *cm, uint32_t *connections, uint32_t *orphans);
const struct cm_counters *cm_counters(const struct cm *cm);

#endif
