/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TARGET_H
#define TARGET_H
/* The daemon to query: as the command line or the environment name it, or the usual one. */
#include "host-abi/control.h"
#include "view.h"

/* Connects to it. 0 or -errno. */
int target_connect(const struct request *r, struct connection *c);
/* Prints why ask_connect() failed with that -errno: there is no daemon, or it is not for us.
 * socket: as given; NULL: the default. */
void target_explain(const char *program, const char *socket, int error);
/* The same for this request. Returns EXIT_CODE_FAILURE. */
int target_missing(const struct request *r, int error);

/* Prints how the daemon has answered the request for a change: what ask() returned, and if that is
 * 0 the reply. not_allowed: the text for -EPERM. Exit code. */
int changed(const char *what, const char *not_allowed, int ret,
	    const struct control_change_reply *reply);

/* Connects, requests the change, and prints the daemon's answer as changed() does. Exit code. */
int ask_change(const struct request *r, enum control_type type, const void *in, uint32_t bytes,
	       const char *what, const char *not_allowed);

#endif
