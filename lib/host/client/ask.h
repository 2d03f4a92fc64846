/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_ASK_H
#define CLIENT_ASK_H
/* The daemon's socket, below any context. */
#include <stdint.h>
#include "host-abi/control.h"

enum { ASK_PATH_BYTES = 108 };

/*
 * The path of the socket: `given`, or if that is NULL environment SOFTHCA_SOCKET; "", or not set:
 * where a daemon listens that nobody told us of. 0, -ENAMETOOLONG. It need not exist.
 */
int ask_socket_path(const char *given, char out[ASK_PATH_BYTES]);

/* Connects to it. The descriptor, the caller's; or -errno of the socket calls, -ENAMETOOLONG. */
int ask_connect(const char *socket_path);

/*
 * One request and its reply; one at a time over a descriptor. passed >= 0 goes with it; passed_out
 * not NULL: takes the descriptor of the reply, or -1. 0; -errno of the daemon; -ENOTCONN: it has
 * gone, or talks nonsense.
 */
int ask(int fd, enum control_type type, const void *body, uint32_t bytes, void *reply,
	uint32_t reply_bytes, int passed, int *passed_out);

#endif
