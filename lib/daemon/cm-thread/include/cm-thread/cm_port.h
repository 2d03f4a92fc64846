/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_PORT_H
#define CM_PORT_H
/*
 * QP 1 of one HCA: receives and sends MADs. A client of its own daemon, through libsofthca; opening
 * it, and restarting the send queue after a failure, wait for the control socket. So the control
 * thread must never wait for the thread that calls this. One thread at a time.
 *
 * A MAD may be lost at any time: senders repeat it. A MAD waits for a moment while its next hop is
 * being resolved or the send queue is full.
 */
#include "cm/connection.h"

struct cm_port;

struct cm_port_ops {
	/* Ethernet address of the next hop towards dgid. 0; -EAGAIN: being resolved, try
	 * again in a millisecond; -EHOSTUNREACH. Never blocks. */
	int (*resolve)(void *ctx, const uint8_t dgid[16], uint8_t mac[6]);
	/* Would resolve() start a new resolution? */
	bool (*would_ask)(void *ctx, const uint8_t dgid[16]);
	/* A MAD arrived; path: the way back to its sender. May call cm_port_send(). */
	void (*receive)(void *ctx, const struct cm_path *path, const uint8_t *mad, size_t bytes);
};

struct cm_port_counters {
#define CM_PORT_COUNTER(name, text) uint64_t name;
#include "cm-thread/cm_port.def"
};

/*
 * Creates QP 1 of `device` over a connected control socket, which the port owns from then on, also
 * on failure. index: for cm_path.device. 0, or libsofthca's error: -EBUSY (QP 1 is taken), -EPERM
 * (we are not the daemon), -ENOTCONN, -ENOMEM, ...
 */
int cm_port_open(int socket, const char *device, uint16_t index, const struct cm_port_ops *ops,
		 void *ctx, struct cm_port **out);
/* Drops waiting MADs. NULL is allowed. */
void cm_port_close(struct cm_port *p);

/* Asks the daemon for the GIDs of the device, which have changed. 0, or libsofthca's error. */
int cm_port_learn_gids(struct cm_port *p);

/* Readable when MADs have arrived; -1: the port is dead (logged). Owned by the port. */
int cm_port_fd(const struct cm_port *p);
/* Receives a bounded number of MADs, and sends waiting ones. */
void cm_port_turn(struct cm_port *p, uint64_t now_ns);
/* Instead of a turn, before the port is closed: receives nothing more. True: everything has been
 * sent, or nothing can be. */
bool cm_port_finish(struct cm_port *p, uint64_t now_ns);
/* Latest time of the next turn, in the caller's nanoseconds; UINT64_MAX: never. */
uint64_t cm_port_due(const struct cm_port *p, uint64_t now_ns);
/* Sends a MAD to QP 1 at the path's other end, from the path's GID, whatever its index is now. */
void cm_port_send(struct cm_port *p, uint64_t now_ns, const struct cm_path *path,
		  const uint8_t mad[CM_MAD_BYTES]);

const struct cm_port_counters *cm_port_counters(const struct cm_port *p);

#endif
