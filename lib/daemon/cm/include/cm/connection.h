/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CONNECTION_H
#define CM_CONNECTION_H
/*
 * The protocol of the connection manager (IBTA volume 1, chapter 12): connections and their states
 * (connection.def), retransmission and time-outs, duplicates, stale connections, time-wait, and
 * service ID resolution for UD. Knows no socket, no clock and no verbs: time and MADs are given
 * to it, so that tests drive it in virtual time. One thread at a time.
 *
 * A connection has an owner (of service.h's identifiers) from its making until cm_release(); what
 * remains to be done with the peer after that, rejecting, disconnecting, time-wait, goes on without
 * one. Times are nanoseconds of any clock that does not go back.
 *
 * The peer is who its GID says it is: a message about a connection counts only if it comes from
 * that connection's GID and names both communication IDs; a DREQ must name our QP as well.
 */
#include "cm/mad.h"

struct cm;
struct cm_connection;

/* Where the other end is, and from where we talk to it. */
struct cm_path {
	uint16_t device;    /* index of the daemon's device */
	uint16_t gid_index; /* ours */
	uint8_t sgid[16], dgid[16];
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit;
	uint8_t mtu;	     /* 1..5 */
	uint8_t ack_timeout; /* for both QPs, 5 bits */
	uint8_t rate;
};

enum cm_event_type {
	CM_EVENT_REP,	       /* message; cm_send_rtu() or cm_reject() is due */
	CM_EVENT_RTU,	       /* message, or NULL: established by cm_established() */
	CM_EVENT_REJ,	       /* message; the connection is over; in time-wait if it had been
				  answered or the reason is a stale connection */
	CM_EVENT_REQ_TIMEOUT,  /* nobody answered the REQ: over */
	CM_EVENT_REP_TIMEOUT,  /* no RTU came: over */
	CM_EVENT_DREQ,	       /* message; answer by cm_send_drep(). May come instead of the RTU, if
				  that was lost, and after our own DREQ */
	CM_EVENT_DREP,	       /* message; in time-wait */
	CM_EVENT_DREQ_TIMEOUT, /* nobody answered the DREQ; in time-wait */
	CM_EVENT_TIMEWAIT_EXIT, /* nothing of the old connection can be on its way any more: over.
				   Not after cm_reject() or cm_send_sidr_rep() */
	CM_EVENT_SIDR_REP,	/* message: over */
	CM_EVENT_SIDR_TIMEOUT,	/* over */
};

struct cm_event {
	enum cm_event_type type;
	const struct cm_message *message; /* the callee's during the call; NULL: none */
};

/*
 * The callbacks. request() and event() may call all functions that take a connection, for any
 * connection, and cm_send_req() and cm_send_sidr_req(); not cm_receive(), cm_expire(), cm_destroy()
 * and not cm_established(), which would call back in turn.
 */
struct cm_ops {
	/* Sends a MAD to QP 1 at the path's other end. May get lost; calls nothing of cm. */
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES]);
	/*
	 * A REQ or SIDR_REQ came, no duplicate. Who serves that service ID becomes the connection's
	 * owner; NULL: nobody, *reason (REQ: preset to CM_REJ_INVALID_SERVICE_ID; SIDR_REQ: a
	 * status, preset to 1) is the answer, or, if it is set to 0, none is: forgotten and counted
	 * (dropped_full), since the sender will repeat it. May call functions of cm for c,
	 * cm_release() too.
	 */
	void *(*request)(void *ctx, struct cm_connection *c, const struct cm_path *path,
			 const struct cm_message *m, uint16_t *reason);
	/* Something happened to c. May call functions of cm, cm_release(c) too. */
	void (*event)(void *ctx, void *owner, struct cm_connection *c, const struct cm_event *e);
	/* CA GUID of a device. */
	uint64_t (*guid)(void *ctx, unsigned int device);
	/* For communication IDs and transactions. */
	uint32_t (*random)(void *ctx);
};

struct cm_limits {
	uint32_t connections; /* at most, those in time-wait too; an eighth of them is not for
				 requests of strangers, a quarter for rejections and the like
				 that are kept for repetitions; 0: 65536 */
	uint32_t unanswered;  /* REQs and SIDR_REQs received that nobody has answered yet; more are
				 dropped, their senders repeat them; 0: 1024 */
	uint8_t response_timeout; /* what we say in REQs: 4.096 us * 2^n; 0: 20 (4.3 s) */
	uint8_t retries;	  /* of what is not answered, at most 15; 0: 15 */
};

/* What became of MADs and connections; only grows. */
struct cm_counters {
#define CM_COUNTER(name, text) uint64_t name;
#include "cm/counters.def"
};

/* NULL with errno: ENOMEM. */
struct cm *cm_create(const struct cm_ops *ops, void *ctx, const struct cm_limits *limits);
/* Forgets everything at once, says nothing to anybody. NULL is allowed. */
void cm_destroy(struct cm *cm);

/* A MAD came to a device's QP 1; path: the way back to its sender (mtu, ack_timeout and rate are
 * not looked at). Any bytes. */
void cm_receive(struct cm *cm, uint64_t now, const struct cm_path *path, const uint8_t *mad,
		size_t bytes);
/* Does what is due, a bounded part of it. Returns when it wants to be called next (not after now:
 * more is due); UINT64_MAX: never. Cheap if nothing is due. */
uint64_t cm_expire(struct cm *cm, uint64_t now);

/* What one side says of its end in REQ and REP. */
struct cm_end {
	uint32_t qpn, psn; /* 24 bits */
	uint32_t qkey;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count; /* 0..7 */
	bool flow_control, srq;
	const void *private_data; /* copied */
	uint8_t private_bytes;	  /* 0..cm_private_bytes() of the message */
};

/*
 * Sends a REQ, until it is answered: as often as max_cm_retries (15) says, each after the response
 * timeout (2^20 * 4.096 us). NULL with errno: ENOSPC (limit), ENOMEM, EINVAL (private data).
 */
struct cm_connection *cm_send_req(struct cm *cm, uint64_t now, void *owner,
				  const struct cm_path *path, uint64_t service_id,
				  enum cm_service_type type, const struct cm_end *end);

/* Added to service_timeout (5 bits): only a REQ or REP that is repeated is answered by the MRA. */
enum { CM_MRA_IF_REPEATED = 0x80 };
/* All of these: 0; -EINVAL: not in the connection's state, or private data that is too long.
 * private_data may be NULL if private_bytes is 0. */
int cm_send_mra(struct cm_connection *c, uint64_t now, uint8_t service_timeout);
int cm_send_rep(struct cm_connection *c, uint64_t now, const struct cm_end *end);
int cm_send_rtu(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes);
int cm_reject(struct cm_connection *c, uint64_t now, enum cm_reject_reason reason, const void *info,
	      uint8_t info_bytes, const void *private_data, uint8_t bytes);
int cm_send_dreq(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes);
int cm_send_drep(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes);
/* Data came before the RTU (IBV_EVENT_COMM_EST): as if the RTU had come. Tells the owner at once,
 * who may let go of c then. */
int cm_established(struct cm_connection *c, uint64_t now);

/* Service ID resolution. As cm_send_req(); the answer ends it. */
struct cm_connection *cm_send_sidr_req(struct cm *cm, uint64_t now, void *owner,
				       const struct cm_path *path, uint64_t service_id,
				       const void *private_data, uint8_t bytes);
enum cm_sidr_status { CM_SIDR_VALID = 0, CM_SIDR_UNSUPPORTED = 1, CM_SIDR_REJECTED = 2 };
/* Answers a SIDR_REQ, which ends it. status: enum cm_sidr_status or another. */
int cm_send_sidr_rep(struct cm_connection *c, uint64_t now, uint8_t status, uint32_t qpn,
		     uint32_t qkey, const void *private_data, uint8_t bytes);

/*
 * The owner lets go, because it wants to or because it died: no event is reported any more, c must
 * not be used. As a kernel does: our REQ is taken back (REJ: CM_REJ_TIMEOUT), what has not been
 * answered is rejected (CM_REJ_CONSUMER; SIDR: CM_SIDR_REJECTED), what was established is
 * disconnected, as often as it takes, and time-wait passes.
 */
void cm_release(struct cm_connection *c, uint64_t now);

/*
 * Of the requests that nobody has answered yet (cm_limits.unanswered), no owner should hold all:
 * in ops->request(), c is counted in *share from now on while it is one. False: *share has as much
 * already as is left for others; nothing has changed. *share must last until c is let go, or
 * cm_share_move() has it counted in another place.
 */
bool cm_share(struct cm_connection *c, uint32_t *share);
void cm_share_move(struct cm_connection *c, uint32_t *share);

/* What an owner may ask of its connection. */
struct cm_connection_info {
	const char *state; /* name in connection.def */
	uint8_t state_number;
	struct cm_path path;
	uint32_t local_id, remote_id;
	uint32_t remote_qpn, remote_psn, remote_qkey; /* once REQ or REP have come */
	uint8_t responder_resources, initiator_depth; /* of the peer's message */
	uint8_t retry_count, rnr_retry_count;	      /* what ours has to use */
	uint8_t timeout;			      /* local ACK timeout for our QP */
	bool peer_srq;
};
void cm_connection_info(const struct cm_connection *c, struct cm_connection_info *out);

/* How many there are: of all, of those without an owner. For tests and telemetry. */
void cm_census(const struct cm *cm, uint32_t *connections, uint32_t *orphans);
const struct cm_counters *cm_counters(const struct cm *cm);

#endif
