/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_ASK_H
#define CLIENT_ASK_H
/* The daemon's control socket, independent of any context. */
#include <stdbool.h>
#include <stdint.h>
#include "host-abi/control.h"

struct look;		/* base/look.h */
struct cm_channel_hcas; /* host-abi/cm_channel.h */

enum { ASK_PATH_BYTES = 108 };

/*
 * The path of the socket: `given`, or if NULL the environment's SOFTHCA_SOCKET; if that is empty or
 * unset too, the default. The socket need not exist. 0, -ENAMETOOLONG.
 */
int ask_socket_path(const char *given, char out[ASK_PATH_BYTES]);

/*
 * Is the process at the other end of this socket, connected to that path, to be trusted? Root and
 * this user are. So is the owner of the socket's folder: that of the system's daemon was created by
 * root, and naming another path means trusting its owner. The exception is the path of this user's
 * own daemon: without $XDG_RUNTIME_DIR it is in /tmp, where anybody might have created it first.
 */
bool ask_trusts(int fd, const char *socket_path);

/*
 * The HCAs that the environment leaves to this program: SOFTHCA_HCAS, names separated by commas.
 * Unset or empty: all. If there are more than CM_CHANNEL_HCAS, only the first ones.
 */
void ask_hcas(struct cm_channel_hcas *out);

/* Connects to it. Returns a descriptor that the caller owns, an -errno of the socket calls,
 * -ENAMETOOLONG, or -EPERM: the process that listens there is not to be trusted (ask_trusts()). */
int ask_connect(const char *socket_path);

/*
 * Sends one request and waits for its reply; one at a time per descriptor. If passed >= 0 that
 * descriptor is sent along; if passed_out is not NULL it receives the reply's descriptor, or -1. 0;
 * -errno of the daemon; -ENOTCONN: it has died, or broke the protocol; -ETIMEDOUT: no reply within
 * the descriptor's SO_RCVTIMEO. After either of the last two the descriptor is useless: a late
 * reply would be taken for the next one.
 */
int ask(int fd, enum control_type type, const void *body, uint32_t bytes, void *reply,
	uint32_t reply_bytes, int passed, int *passed_out);

/* The same for a descriptor that carries many requests: looks for the reply before it sleeps, if
 * *look, which belongs to the descriptor, says that this pays. */
int ask_looking(int fd, enum control_type type, const void *body, uint32_t bytes, void *reply,
		uint32_t reply_bytes, int passed, int *passed_out, struct look *look);

/* The same for a request whose reply is a text, not NUL-terminated, of at most `room` bytes (else
 * -ENOTCONN). Returns its length; -errno. */
int ask_text(int fd, enum control_type type, const void *body, uint32_t bytes, char *text,
	     size_t room);

#endif
