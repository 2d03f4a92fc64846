/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_USERS_H
#define CONTROL_USERS_H
/* Divides the thread's time by user. */
#include "control_priv.h"

/* A user who has clients, whose descriptors are in an epoll set of his own. */
struct user {
	TAILQ_ENTRY(user) of_control;
	uint32_t uid;
	unsigned int clients, strangers; /* all; those of other processes than this one */
	int epoll;
	bool ready;    /* its set is readable */
	bool deferred; /* its set is not polled: its requests are bulk and wait */
	/* In this turn: some request was served; the user's part was used up; several requests were
	 * queued. */
	bool served, out_of_time, backlogged;
	unsigned int backlogged_turns; /* consecutive turns in which all three were true */
	uint64_t bulk_until_ns;	       /* until then its requests are bulk work */
	uint64_t refused_ns;	       /* when one of its requests was refused last */
};

/* Gives a new client its user, whose epoll set its descriptors join. 0, -ENOMEM, -EUSERS. */
int user_join(struct client *client);
void user_leave(struct client *client);
/* A request of this client has been received and is not answered yet: are more queued behind it? */
void user_check_backlog(const struct client *client);
/* One of its requests was refused. */
void user_refused(struct user *u, uint64_t now);
/* Waits for a request of a user who was connected at the end of the last turn, or for a connection.
 * UINT64_MAX: without limit. Takes no lock. 1; 0: timeout; -errno. */
int users_wait(struct control *c, uint64_t timeout_ns);
/* The same at the beginning of a turn, for all users. users_serve() then serves those who ask. */
int users_turn_wait(struct control *c, int timeout_ms);
/* Returns the number of requests. */
unsigned int users_serve(struct control *c);
/* May a client of this user be served in this turn? If so, users_served() tells since when it
 * was. */
bool users_may_serve(struct client *client);
void users_served(struct client *client, uint64_t since_ns);
/* Requests of this client have been answered; the first was there at asked_ns. */
void users_answered(struct client *client, uint64_t asked_ns);
/* May that user's pieces be populated or unmapped in this turn? The caller then reports the time it
 * took to users_bulk_done(). */
bool users_bulk_allowed(struct control *c, const struct share_user *of);
void users_bulk_done(struct control *c, uint64_t ns);
/* Begin a turn, at control.turned_ns, and end it. */
void users_turn_begin(struct control *c);
void users_turn_end(struct control *c);
/* Time until bulk work may go on; UINT64_MAX: there is none. */
uint64_t users_bulk_wait_ns(const struct control *c);

#endif
