/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_H
#define CM_SERVICE_H
/*
 * What a kernel has behind /dev/infiniband/rdma_cm: channels of programs (host-abi/cm_channel.h),
 * their identifiers (port spaces, addresses, routes, listening, connecting, multicast groups), and
 * their events. connection.h has the protocol with the peer.
 *
 * One thread, the daemon's CM thread. Never blocks: what takes time (a next hop, an answer) is
 * continued in cm_service_turn().
 */
#include "cm/connection.h"
#include "host-abi/control.h"

struct cm_service;
struct shares;

/* A device and its port, with the daemon's callbacks, called with ctx. None blocks. */
struct cm_device {
	char name[32];
	bool removed; /* the service's: nobody calls its functions any more */
	uint64_t guid;
	void *ctx;
	/* A snapshot of the port. */
	void (*port)(void *ctx, struct control_port_reply *out);
	/* GID `index`; 0, -ENOENT: past the end. */
	int (*gid)(void *ctx, uint32_t index, uint8_t gid[16]);
	/* The index of the GID from which the port would send to dgid, a unicast or multicast
	 * address; -ENETUNREACH: no route. */
	int (*source)(void *ctx, const uint8_t dgid[16]);
	/* Is the next hop towards dgid known? 0; -EAGAIN: being resolved, try again in a
	 * millisecond; -EHOSTUNREACH. */
	int (*resolve)(void *ctx, const uint8_t dgid[16]);
	/* Would resolve() ask the network? */
	bool (*would_ask)(void *ctx, const uint8_t dgid[16]);
	/* Sends a MAD from QP 1 to QP 1; may be lost. */
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES]);
	/* End-to-end credits of the user's queue pair qpn, if it exists. The first: does its
	 * receive queue grant them? The second: its peer's grants none. */
	bool (*gives_credits)(void *ctx, uint32_t user, uint32_t qpn);
	void (*peer_gives_no_credits)(void *ctx, uint32_t user, uint32_t qpn);
};

struct cm_service_limits {
	/* What programs share. NULL: a table of the service's own. */
	struct shares *shares;
	/* protocol.unanswered: 0: the total of SHARE_cm_requests. */
	struct cm_limits protocol;
};

/* A service without devices. limits may be NULL (none). NULL with errno: ENOMEM, or of
 * epoll_create1(). */
struct cm_service *cm_service_create(const struct cm_service_limits *limits);
/* Ends all channels. NULL is allowed. */
void cm_service_destroy(struct cm_service *s);

/* Makes a connected SOCK_SEQPACKET socket a channel and takes ownership of it. -EUSERS, -ENOMEM: it
 * stays the caller's. */
int cm_service_adopt(struct cm_service *s, int fd);
/* Readable when a channel has commands. Owned by the service. */
int cm_service_fd(const struct cm_service *s);
/* Serves ready channels (a bounded number of commands) and expired timers. Returns the latest time
 * of the next call; UINT64_MAX: never. */
uint64_t cm_service_turn(struct cm_service *s, uint64_t now);
/* A MAD arrived: as cm_receive(). */
void cm_service_receive(struct cm_service *s, uint64_t now, const struct cm_path *path,
			const uint8_t *mad, size_t bytes);

/* Adds a device, which is copied: listeners at any address are reached through it, too. i: below
 * HCA_MAX; unused, or removed before. */
void cm_service_add(struct cm_service *s, unsigned int i, const struct cm_device *device);

/*
 * A device is being removed: programs with identifiers on it get RDMA_CM_EVENT_DEVICE_REMOVAL and
 * can only destroy these; their connections are released, with a last message to the peers through
 * send(); requests that no program has seen yet are rejected. Listeners at any address stay.
 */
void cm_service_remove(struct cm_service *s, uint64_t now, unsigned int device);

/* For telemetry: fills up to n, returns the number of identifiers. */
struct cm_id_info {
	uint32_t id;
	int32_t pid;
	uint16_t port_space; /* RDMA_PS_* */
	char state[24];
	char device[32]; /* "" if none is chosen yet */
	uint8_t source[16], destination[16];
	uint16_t source_port, destination_port;
	uint32_t qpn;
};
unsigned int cm_service_ids(const struct cm_service *s, struct cm_id_info *info, unsigned int n);
const struct cm_counters *cm_service_counters(const struct cm_service *s);

#endif
