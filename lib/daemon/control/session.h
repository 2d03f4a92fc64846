/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_SESSION_H
#define CONTROL_SESSION_H
/* The session of a client: its requests and their answers. */
#include "control_priv.h"

/* One request: its reply body is written to `reply`. 0: done; -EAGAIN: pending, call again; other
 * -errno: the answer. */
struct call {
	struct client *client;
	const void *body;
	void *reply;	/* CONTROL_BYTES_MAX, zeroed */
	const int *fds; /* the number in the request's row; closed by the caller */
	int reply_fd;	/* >= 0: sent with the reply; closed by the caller */
	/* Not NULL: the reply, of text_bytes, instead; valid until it has been sent. */
	const char *text;
	uint32_t text_bytes;
};
struct request_row {
	const char *name;
	uint16_t body_bytes, reply_bytes;
	uint8_t fds;
	int (*run)(struct call *call);
};
extern const struct request_row request_rows[CONTROL_TYPE_END];

/* Reads and serves at most MESSAGES_PER_TURN requests. Returns their number; sets client->gone at
 * the end of the connection. */
unsigned int session_serve(struct client *client);
/* Has the client sent a message that has not been received yet? */
bool session_has_request(const struct client *client);
/* Retries the pending requests that are due. Returns how many were answered. */
unsigned int sessions_retry(struct control *c);
/* Drops the pending request of a client that is being destroyed. */
void session_forget(struct client *client);

/* Handlers of requests: objects.c, memory_windows.c, queue_pairs.c and so on. */
#define REQUEST(NAME, name, body, reply, fds) int run_##name(struct call *call);
#include "host-abi/control_requests.def"

#endif
