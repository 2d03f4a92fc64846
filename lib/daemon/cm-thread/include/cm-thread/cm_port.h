/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_PORT_H
#define CM_PORT_H
/*
 * QP 1 of one HCA: takes MADs in, sends MADs out. A client of the daemon it runs in, by libsofthca;
 * opening, and taking the send queue up again after a failure, ask the control socket and wait for
 * its answer. So the control thread must never wait for the thread that calls this. One thread at a
 * time.
 *
 * A MAD may get lost at any time: who sends one repeats it. One whose next hop is being asked for,
 * or that finds the send queue full, waits for a moment.
 */
#include "cm/connection.h"

struct cm_port;

struct cm_port_ops {
	/* Ethernet address of the next hop towards dgid. 0; -EAGAIN: it is being asked, ask again
	 * in a millisecond; -EHOSTUNREACH. Never waits. */
	int (*resolve)(void *ctx, const uint8_t dgid[16], uint8_t mac[6]);
	/* Would resolve() ask somebody who is not being asked yet? */
	bool (*would_ask)(void *ctx, const uint8_t dgid[16]);
	/* A MAD came; path: the way back to its sender. May call cm_port_send(). */
	void (*receive)(void *ctx, const struct cm_path *path, const uint8_t *mad, size_t bytes);
};

struct cm_port_counters {
#define CM_PORT_COUNTER(name, text) uint64_t name;
#include "cm-thread/cm_port.def"
};

/*
 * Makes QP 1 of `device`, over a connected control socket, which is the port's from then on,
 * whatever comes of it. index: for cm_path.device. 0, or what libsofthca says: -EBUSY (somebody has
 * QP 1), -EPERM (we are not the daemon), -ENOTCONN, -ENOMEM, ...
 */
int cm_port_open(int socket, const char *device, uint16_t index, const struct cm_port_ops *ops,
		 void *ctx, struct cm_port **out);
/* What waits to be sent is forgotten. NULL is allowed. */
void cm_port_close(struct cm_port *p);

/* Readable when MADs have come; -1: the port is dead (logged), none will. Stays the port's. */
int cm_port_fd(const struct cm_port *p);
/* Takes in what has come (a bounded number), sends what waits. */
void cm_port_turn(struct cm_port *p, uint64_t now_ns);
/* When it wants its next turn at the latest, in the caller's nanoseconds; UINT64_MAX: never. */
uint64_t cm_port_due(const struct cm_port *p, uint64_t now_ns);
/* Sends a MAD to QP 1 at the path's other end. */
void cm_port_send(struct cm_port *p, uint64_t now_ns, const struct cm_path *path,
		  const uint8_t mad[CM_MAD_BYTES]);

const struct cm_port_counters *cm_port_counters(const struct cm_port *p);

#endif
