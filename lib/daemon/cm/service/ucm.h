/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_UCM_H
#define CM_SERVICE_UCM_H
/*
 * What the files of the service share: channels, identifiers, events, ports (prefix ucm: user's
 * side of the connection manager).
 *
 * An identifier belongs to one channel. Those of connection requests are created with the request,
 * belong to the listener's channel and have no number until their event is read. All numbers fit
 * into 16 bits, like librdmacm's index.
 *
 * All of it belongs to the CM thread. No function here blocks.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include "base/assert.h"
#include "base/shares.h"
#include "cm/service.h"
#include "host-abi/cm_channel.h"

enum {
	UCM_AF_IB = 27, /* as in linux/socket.h; not glibc's */
	UCM_NUMBERS = 65536,
	UCM_NO_NUMBER = UINT32_MAX,
	UCM_SPACES = 4, /* port spaces */
	UCM_PORTS = 65536,
	UCM_PORT_SHARERS = 1024,   /* identifiers at one port, all visited by checks */
	UCM_BACKLOG = 1024,	   /* default, and most */
	UCM_COMMANDS_PER_TURN = 8, /* of one channel */
	UCM_CHANNELS_PER_TURN = 64,
	UCM_QKEY = 0x01234567, /* default of UD identifiers */
	UCM_HOP_LIMIT = 64,
	UCM_PACKET_LIFE = 16, /* 4.096 us * 2^16, a kernel's for RoCE */
	UCM_MRA_TIMEOUT = 24, /* time for programs to answer: 4.096 us * 2^24 */
	UCM_PKEY = 0xffff,
	UCM_RESOLVE_PERIOD_NS = 1000000, /* between checks of pending next hops ... */
	UCM_RESOLVES_PER_TURN = 64,	 /* ... this many at once */
	UCM_MULTICAST_QPN = 0xffffff,
};

/* Kernel interface values without names in its public headers. */
enum { UCM_QPT_RC = 2, UCM_QPT_UC = 3, UCM_QPT_UD = 4 };
enum { UCM_QPS_INIT = 1, UCM_QPS_RTR = 2, UCM_QPS_RTS = 3, UCM_QPS_SQD = 4, UCM_QPS_ERR = 6 };
enum {
	UCM_ACCESS_REMOTE_WRITE = 2,
	UCM_ACCESS_REMOTE_READ = 4,
	UCM_ACCESS_REMOTE_ATOMIC = 8,
	UCM_ACCESS_FLUSHABLE = 256 | 512, /* for everybody to see, and for good */
};
enum { UCM_QP_COMM_EST = 4 }; /* of NOTIFY */
enum ucm_event_type {
	UCM_EVENT_ADDR_RESOLVED = 0,
	UCM_EVENT_ADDR_ERROR = 1,
	UCM_EVENT_ROUTE_RESOLVED = 2,
	UCM_EVENT_CONNECT_REQUEST = 4,
	UCM_EVENT_CONNECT_RESPONSE = 5,
	UCM_EVENT_UNREACHABLE = 7,
	UCM_EVENT_REJECTED = 8,
	UCM_EVENT_ESTABLISHED = 9,
	UCM_EVENT_DISCONNECTED = 10,
	UCM_EVENT_DEVICE_REMOVAL = 11,
	UCM_EVENT_MULTICAST_JOIN = 12,
	UCM_EVENT_TIMEWAIT_EXIT = 15,
};

/* An address of GID and service ID (the kernel's rdma/ib.h). */
struct ucm_sockaddr_ib {
	uint16_t family, pkey; /* pkey and all that follow: big-endian */
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t sid, sid_mask, scope_id;
};

union ucm_address {
	uint16_t family; /* AF_UNSPEC: none */
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct ucm_sockaddr_ib ib;
	struct sockaddr_storage storage;
};

enum ucm_state {
#define STATE(id, text) UCM_##id,
#include "ids.def"
};

/* A device and the GIDs on it that an identifier uses. */
struct ucm_choice {
	bool chosen, loopback;
	uint16_t device;
	uint8_t sgid[16], dgid[16];
};

/* Membership in a multicast group. Its numbers are separate from identifiers'. */
struct ucm_membership {
	LIST_ENTRY(ucm_membership) of_id;
	struct ucm_id *id;
	uint32_t number;
	uint32_t events_reported;
	uint64_t uid;
};

TAILQ_HEAD(ucm_event_queue, ucm_event);

struct ucm_event {
	TAILQ_ENTRY(ucm_event) of_channel, of_id;
	struct ucm_id *id;	/* the identifier it counts for */
	struct ucm_id *request; /* a new identifier, delivered by this event; NULL: none */
	struct ucm_membership *membership; /* NULL: of none */
	struct rdma_ucm_event_resp body;
};

struct ucm_id {
	LIST_ENTRY(ucm_id) of_channel, of_port;
	TAILQ_ENTRY(ucm_id) resolving;
	struct ucm_channel *channel;
	struct cm_connection *connection; /* NULL: none; ours until cm_release() */
	struct ucm_event_queue events;	  /* those that count for it */
	struct ucm_event *announced_by;	  /* the event of a new identifier, until read */
	LIST_HEAD(, ucm_membership) memberships;
	uint64_t uid;	 /* 0: no events */
	uint64_t ticket; /* 0: none issued */
	uint64_t deadline;
	uint32_t number; /* UCM_NO_NUMBER: not known to the program yet */
	uint32_t events_reported;
	uint32_t backlog; /* room for further requests */
	uint32_t psn;	  /* 24 bits: the peer's first */
	uint32_t qpn, qkey;
	uint16_t space;	     /* RDMA_PS_* of CREATE_ID */
	uint16_t port_space; /* of its port; 0: none */
	uint16_t port;
	uint8_t state;	      /* enum ucm_state */
	uint8_t qp_type;      /* enum ibv_qp_type */
	uint8_t tos, timeout; /* of SET_OPTION; 0 until then */
	bool timeout_set, afonly_set;
	bool afonly, reuseaddr, srq;
	bool path_known;
	bool parting;				      /* the program asked to disconnect */
	bool peer_gives_credits;		      /* a request's sender */
	uint8_t responder_resources, initiator_depth; /* for INIT_QP_ATTR */
	struct ucm_choice at;
	struct ucm_choice pending; /* while in ADDR_QUERY */
	struct cm_path path;
	union ucm_address source, destination;
};

LIST_HEAD(ucm_id_list, ucm_id);

struct ucm_channel {
	LIST_ENTRY(ucm_channel) of_service;
	struct cm_service *service;
	struct ucm_id_list ids;
	struct ucm_event_queue events;
	struct share_client shares;
	struct cm_channel_hcas hcas; /* that its program uses */
	int fd;
	int32_t pid;
	uint32_t user;
	bool woken; /* a wake-up byte is pending that no QUIET has cancelled */
};

/* Numbers of one kind and their owners, lowest free number first. */
struct ucm_numbers {
	void **at;
	uint32_t room, low; /* low: all below are used */
};

/* A port of a port space. */
struct ucm_port {
	struct ucm_id_list bound, listening;
	uint32_t count; /* of both */
};

struct cm_service {
	struct cm *cm;
	struct cm_device *devices;
	unsigned int device_count;
	struct cm_service_limits limits;
	int epoll;
	uint64_t now;
	uint64_t resolve_due; /* UINT64_MAX: no pending next hop */
	bool held_up;	      /* a user waits for his part of the next turn, or lacks some of it */
	struct shares *shares;
	bool own_shares; /* created here */
	LIST_HEAD(, ucm_channel) channels;
	TAILQ_HEAD(ucm_resolving, ucm_id) resolving;
	struct ucm_port *ports; /* of all spaces */
	struct ucm_numbers ids, memberships;
	uint16_t last_port;
	struct cm_counters counters; /* ours alone */
	struct cm_counters *sum;     /* with the protocol's, for telemetry */
};

/* The context of a command. */
struct ucm_none {
	uint8_t none[0];
};
struct ucm_largest {
	uint8_t bytes[CM_CHANNEL_BYTES_MAX - sizeof(struct cm_channel_reply)];
};
struct ucm_call {
	struct ucm_channel *channel;
	const uint8_t *extra; /* bytes after the body */
	uint32_t extra_bytes;
	uint32_t out;	     /* room for the response, bytes */
	uint32_t flags;	     /* enum cm_channel_flags, except QUIET */
	uint32_t counts_for; /* as struct cm_channel_reply */
	uint32_t bytes;	     /* of the response, if shorter than its structure */
};

#endif
