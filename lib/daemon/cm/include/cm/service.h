/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_H
#define CM_SERVICE_H
/*
 * What a kernel has behind /dev/infiniband/rdma_cm: channels of programs (host-abi/cm_channel.h),
 * their identifiers (port spaces, addresses, routes, listening, connecting, multicast groups), and
 * the events that tell of them. The protocol with the peer is connection.h's.
 *
 * One thread, the daemon's CM thread. Never waits: what takes time (a next hop, an answer) comes
 * back in cm_service_turn().
 */
#include "cm/connection.h"
#include "host-abi/control.h"

struct cm_service;

/* A device and its port, as the daemon knows them; ctx is given back. No call waits. */
struct cm_device {
	char name[32];
	uint64_t guid;
	void *ctx;
	/* The port as it is now. */
	void (*port)(void *ctx, struct control_port_reply *out);
	/* GID `index`; 0, -ENOENT: past the end. */
	int (*gid)(void *ctx, uint32_t index, uint8_t gid[16]);
	/* The GID that the port would send from to dgid, a unicast or multicast address: its index;
	 * -ENETUNREACH: it has no route there. */
	int (*source)(void *ctx, const uint8_t dgid[16]);
	/* Is the next hop towards dgid known? 0; -EAGAIN: being asked, ask again in a
	 * millisecond; -EHOSTUNREACH. */
	int (*resolve)(void *ctx, const uint8_t dgid[16]);
	/* Sends a MAD from QP 1 to QP 1; may get lost. */
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES]);
	/* End-to-end credits of the user's queue pair qpn, if there is such a one: does its receive
	 * queue give them? And: its peer's gives none. */
	bool (*gives_credits)(void *ctx, uint32_t user, uint32_t qpn);
	void (*peer_gives_no_credits)(void *ctx, uint32_t user, uint32_t qpn);
};

struct cm_service_limits {
	uint32_t channels; /* 0: 4096 */
	uint32_t ids;	   /* of one channel, memberships too; 0: 65536 */
	uint32_t events;   /* that wait in one channel, requests of strangers are dropped then; 0:
			      65536 */
	/* Of all channels together. One may have no more than are left for others, so that the
	 * first alone gets half. */
	uint32_t all_ids;	   /* 0, or more: 65536, since librdmacm knows numbers of 16 bits */
	uint32_t all_events;	   /* but those that tell of connections; 0: 131072 */
	struct cm_limits protocol; /* unanswered: 0: 8192, shared in the same way */
};

/* devices: copied. NULL with errno: ENOMEM, or of epoll_create1(). */
struct cm_service *cm_service_create(const struct cm_device *devices, unsigned int count,
				     const struct cm_service_limits *limits);
/* Ends all channels. NULL is allowed. */
void cm_service_destroy(struct cm_service *s);

/* A connected SOCK_SEQPACKET socket becomes a channel and the service's. 0; -EUSERS, -ENOMEM: it
 * stays the caller's. */
int cm_service_adopt(struct cm_service *s, int fd);
/* Readable when a channel has something to say. Stays the service's. */
int cm_service_fd(const struct cm_service *s);
/* Serves channels that have something to say (a bounded number of commands) and what is due.
 * Returns when it wants to be called next at the latest; UINT64_MAX: never. */
uint64_t cm_service_turn(struct cm_service *s, uint64_t now);
/* A MAD came: as cm_receive(). */
void cm_service_receive(struct cm_service *s, uint64_t now, const struct cm_path *path,
			const uint8_t *mad, size_t bytes);

/* For telemetry: fills up to n, returns how many identifiers there are. */
struct cm_id_info {
	uint32_t id;
	int32_t pid;
	uint16_t port_space; /* RDMA_PS_* */
	char state[24];
	char device[32]; /* "" while none is chosen */
	uint8_t source[16], destination[16];
	uint16_t source_port, destination_port;
	uint32_t qpn;
};
unsigned int cm_service_ids(const struct cm_service *s, struct cm_id_info *info, unsigned int n);
const struct cm_counters *cm_service_counters(const struct cm_service *s);

#endif
