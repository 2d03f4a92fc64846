/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TARGET_H
#define TARGET_H
/* The daemon to query: as the command line or the environment name it, or the usual one. */
#include "host-abi/control.h"
#include "view.h"

/* Connects to it. 0 or -errno. */
int target_connect(const struct request *r, struct connection *c);
/* Prints where there is no daemon, or why not for us, by that -errno of ask_connect(). socket: as given;
 * NULL: as usual. */
void target_explain(const char *program, const char *socket, int error);
/* The same for this request. Returns EXIT_CODE_FAILURE. */
int target_missing(const struct request *r, int error);

/* Prints how the daemon has answered the request for a change: what ask() returned, and if that is 0 the
 * reply. not_allowed: the text for -EPERM. Exit code. */
int changed(const char *what, const char *not_allowed, int ret,
	    const struct control_change_reply *reply);

/* Connects, asks for that change, and prints as changed() how the daemon has answered. Exit code. */
int ask_change(const struct request *r, enum control_type type, const void *in, uint32_t bytes,
	       const char *what, const char *not_allowed);

#endif
