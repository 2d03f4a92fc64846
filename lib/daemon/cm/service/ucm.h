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
enum { UCM_ACCESS_REMOTE_WRITE = 2, UCM_ACCESS_REMOTE_READ = 4, UCM_ACCESS_REMOTE_ATOMIC = 8 };
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
	uint16_t device, gid_index;
	uint8_t sgid[16], dgid[16];
};

/* Membership in a multicast group. Has a number of its own kind. */
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
	struct ucm_event *brought_by;	  /* the event of a new identifier, until read */
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
	uint32_t id_count, event_count; /* ids: memberships too */
	uint32_t unanswered;		/* requests, as cm_share() counts */
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
	uint32_t channel_count;
	uint32_t id_count, event_count; /* of all channels */
	LIST_HEAD(, ucm_channel) channels;
	TAILQ_HEAD(ucm_resolving, ucm_id) resolving;
	struct ucm_port *ports; /* of all spaces */
	struct ucm_numbers ids, memberships;
	uint16_t last_port;
	struct cm_counters counters; /* ours alone */
	struct cm_counters *sum;     /* with the protocol's, for telemetry */
};

/* What a command works on. */
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

/* --- service.c --- */

uint32_t ucm_random(void);

/* --- channel.c --- */

/* Serves a bounded number of a channel's commands. May free the channel. */
void ucm_channel_serve(struct ucm_channel *ch);
void ucm_channel_close(struct ucm_channel *ch);
/* Wakes the program for a pending event, unless already done. */
void ucm_channel_wake(struct ucm_channel *ch);

/* --- commands.c --- */

/* Executes a message; *bytes: of the response. Flags: in call. 0 or -errno for the program. */
int ucm_run(struct ucm_call *call, const uint8_t *message, size_t message_bytes,
	    struct ucm_largest *response, uint32_t *bytes);

/* --- numbers.c --- */

/* UCM_NO_NUMBER: none left, or no memory. */
uint32_t ucm_number_take(struct ucm_numbers *n, void *who);
void ucm_number_free(struct ucm_numbers *n, uint32_t number);
/* NULL: not in use. */
void *ucm_number_find(const struct ucm_numbers *n, uint32_t number);

/* --- ids.c --- */

/* Has no number yet. NULL: the channel has too many, or no memory. */
struct ucm_id *ucm_id_new(struct ucm_channel *ch, uint16_t space, uint8_t qp_type);
/* True: the channel may have no more identifiers or memberships. */
bool ucm_ids_full(const struct ucm_channel *ch);
/* Adds `by` to the channel's count of them. */
void ucm_ids_count(struct ucm_channel *ch, uint32_t by);
/* 0; -ENOENT; -EINVAL: of another channel. */
int ucm_id_find(struct ucm_channel *ch, uint32_t number, struct ucm_id **id);
/* The same; -EINVAL also: no device is chosen yet. */
int ucm_id_find_on_device(struct ucm_channel *ch, uint32_t number, struct ucm_id **id);
void ucm_id_step(struct ucm_id *id, enum ucm_state next);
void ucm_id_destroy(struct ucm_id *id);
const char *ucm_state_name(unsigned int state);
struct cm_device *ucm_device(const struct ucm_id *id);
/* Sets its device and GIDs. */
void ucm_id_choose(struct ucm_id *id, const struct ucm_choice *choice);

/* --- addresses.c: properties of addresses --- */

/* Bytes of its structure; 0: unknown family. */
unsigned int ucm_address_bytes(const union ucm_address *a);
/* 0; -EINVAL: too long, or not its family's length. */
int ucm_address_copy(union ucm_address *to, const void *from, size_t bytes);
/* From a command with room for only IPv4 and IPv6; the caller checks the family. */
void ucm_address_copy_ip(union ucm_address *to, const struct sockaddr_in6 *from);
bool ucm_address_zero(const union ucm_address *a);
bool ucm_address_loopback(const union ucm_address *a);
/* Zero or loopback: implies no device. */
bool ucm_address_any(const union ucm_address *a);
bool ucm_address_same_host(const union ucm_address *a, const union ucm_address *b);
bool ucm_address_multicast(const union ucm_address *a);
uint16_t ucm_address_port(const union ucm_address *a);
void ucm_address_set_port(union ucm_address *a, uint16_t port);
void ucm_address_gid(const union ucm_address *a, uint8_t gid[16]);
/* Sets the host, and the family if there is none. */
void ucm_address_set_gid(union ucm_address *a, const uint8_t gid[16]);
void ucm_address_set_loopback(union ucm_address *a);
uint64_t ucm_service_id(const struct ucm_id *id, const union ucm_address *a);
void ucm_ip_address(union ucm_address *a, uint8_t version, const uint8_t gid[16], uint16_t port);

/* --- ports.c --- */

/* Binds the identifier to the port of its source address, or to a free one. 0; -EADDRINUSE;
 * -EADDRNOTAVAIL; -EACCES; -EPROTONOSUPPORT. */
int ucm_port_bind(struct ucm_id *id);
/* Listens at its port. 0; -EADDRINUSE; -EADDRNOTAVAIL. */
int ucm_port_listen(struct ucm_id *id);
void ucm_port_release(struct ucm_id *id);
/* The listener at a service ID, on that device, for a destination (NULL: none given), the most
 * specific one; NULL: none. */
struct ucm_id *ucm_port_listener(struct cm_service *s, uint64_t service_id, unsigned int device,
				 const struct cm_ip_addressing *ip);

/* --- address.c --- */

int ucm_bind(struct ucm_id *id, const union ucm_address *source);
/* Continues identifiers that wait for a next hop. */
void ucm_resolve_turn(struct cm_service *s);

/* --- route.c --- */

/* Sets the path to the destination, by the port's present attributes. */
void ucm_path_make(struct ucm_id *id);
void ucm_ah_attr(const struct cm_path *path, struct ib_uverbs_ah_attr *out);

/* --- events.c --- */

/* NULL: no memory, or the channel has too many. Not queued. */
struct ucm_event *ucm_event_new(struct ucm_id *id, uint32_t type, int status);
void ucm_event_post(struct ucm_event *e);
/* Creates and queues an event, unless there is no uid. */
void ucm_event_tell(struct ucm_id *id, uint32_t type, int status);
/* True: no more events may be created on request. */
bool ucm_events_full(const struct ucm_channel *ch);
/* Removes it from all lists and frees it. */
void ucm_event_free(struct ucm_event *e);
/* Moves events, including connection requests, to another channel, in order. */
void ucm_events_move(struct ucm_id *id, struct ucm_channel *to);
/* Drops events of an identifier, including connection requests; only m's if not NULL. */
void ucm_events_drop(struct ucm_id *id, const struct ucm_membership *m);
/* The private data of an event. */
void ucm_event_private(uint8_t *to, uint8_t *length, const uint8_t *data, unsigned int bytes);

/* --- requests.c, connecting.c, datagrams.c: between identifiers and the protocol --- */

extern const struct cm_ops ucm_cm_ops;
void *ucm_request(void *ctx, struct cm_connection *c, const struct cm_path *path,
		  const struct cm_message *m, uint16_t *reason);
void ucm_connection_event(void *ctx, void *owner, struct cm_connection *c,
			  const struct cm_event *e);
/* The private data of a REQ or SIDR_REQ: header and the program's. Returns its length; -EINVAL: too
 * long. */
int ucm_request_data(const struct ucm_id *id, const struct rdma_ucm_conn_param *p,
		     uint8_t data[CM_PRIVATE_MAX], uint16_t type);
int ucm_sidr_connect(struct ucm_id *id, const struct rdma_ucm_conn_param *p);
int ucm_sidr_accept(struct ucm_id *id, const struct rdma_ucm_conn_param *p);
int ucm_sidr_reject(struct ucm_id *id, const void *data, uint8_t bytes);
void ucm_sidr_event(struct ucm_id *id, const struct cm_event *e);
/* qkey 0: the default. 0; -EINVAL: it has another. */
int ucm_set_qkey(struct ucm_id *id, uint32_t qkey);

/* --- multicast.c --- */

void ucm_leave_all(struct ucm_id *id);

/* --- the commands, each in the file it belongs to --- */

#define COMMAND(NAME, name, body, body_least, response, response_least)                            \
	int ucm_do_##name(struct ucm_call *call, const struct body *in, struct response *out);
#include "commands.def"
int ucm_do_release_id(struct ucm_call *call, const struct rdma_ucm_destroy_id *in,
		      struct cm_channel_ticket *out);

#endif
