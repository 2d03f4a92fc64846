/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_EXCHANGE_H
#define PATH_EXCHANGE_H
/*
 * The TCP connection of the two processes: exchanges what QPs need to know of each other, and keeps
 * the two in step. In pair mode there is none (socket -1) and every function returns at once.
 */
#include <stdbool.h>
#include <stdint.h>
#include "softhca/softhca.h"

/* What one queue pair sends to the other. */
struct endpoint {
	struct softhca_endpoint qp;
	uint32_t rkey;
	uint64_t addr; /* of its area, see session.h */
};

/* Connects to host:port (repeating for some seconds), or, host NULL, waits for one client. The
 * socket or -1. */
int exchange_open(const char *host, uint16_t port);

/* Sends `mine`, receives `theirs`, n of each. 0 or -1 (said on stderr). */
int exchange_endpoints(int socket, const struct endpoint *mine, struct endpoint *theirs,
		       unsigned n);

/* A step that both must reach, with a number for the other: put without waiting, then get. 0 or
 * -1. */
int exchange_put(int socket, uint64_t value);
int exchange_get(int socket, uint64_t *value);
/* Has the other put something (or closed the connection)? */
bool exchange_waits(int socket);

/* put and get: both sides have arrived here. *theirs may be NULL. 0 or -1. */
int exchange_sync(int socket, uint64_t mine, uint64_t *theirs);

#endif
