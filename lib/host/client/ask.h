/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_ASK_H
#define CLIENT_ASK_H
/* The daemon's control socket, independent of any context. */
#include <stdint.h>
#include "host-abi/control.h"

enum { ASK_PATH_BYTES = 108 };

/*
 * The path of the socket: `given`, or if NULL the environment's SOFTHCA_SOCKET; if that is empty or
 * unset too, the default. The socket need not exist. 0, -ENAMETOOLONG.
 */
int ask_socket_path(const char *given, char out[ASK_PATH_BYTES]);

/* Connects to it. Returns a descriptor that the caller owns, an -errno of the socket calls, or
 * -ENAMETOOLONG. */
int ask_connect(const char *socket_path);

/*
 * Sends one request and waits for its reply; one at a time per descriptor. If passed >= 0 that
 * descriptor is sent along; if passed_out is not NULL it receives the reply's descriptor, or -1.
 * 0; -errno of the daemon; -ENOTCONN: it has died, or broke the protocol.
 */
int ask(int fd, enum control_type type, const void *body, uint32_t bytes, void *reply,
	uint32_t reply_bytes, int passed, int *passed_out);

#endif
