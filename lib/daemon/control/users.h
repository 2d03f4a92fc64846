/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_USERS_H
#define CONTROL_USERS_H
/* Divides the thread's time by user. */
#include "control_priv.h"

/* A user who has clients, whose descriptors are in an epoll set of his own. */
struct user {
	TAILQ_ENTRY(user) of_control;
	uint32_t uid;
	unsigned int clients, foreign; /* all; those that are other processes than this one */
	int epoll;
	bool ready;    /* its set is readable */
	bool deferred; /* its set is not polled: its requests are bulk and wait */
	/* In this turn: a request was served; the user's time was used up; requests were queued. */
	bool served, out_of_time, backlogged;
	unsigned int backlogged_turns; /* consecutive turns in which all three were true */
	uint64_t bulk_until_ns;	       /* until then its requests are bulk work */
	uint64_t refused_ns;	       /* when one of its requests was refused last */
};

/* Gives a new client its user, whose epoll set its descriptors join. 0, -ENOMEM, -EUSERS. */
int user_add_client(struct client *client);
void user_remove_client(struct client *client);
/* Notes whether the client has queued more requests behind the one just received. */
void user_check_backlog(const struct client *client);
/* One of the user's requests was refused. */
void user_note_refusal(struct user *u, uint64_t now);
/* Waits for a new connection, or for a request of a user who was connected at the end of the last
 * turn. UINT64_MAX: no timeout. Takes no lock. 1; 0: timeout; -errno. */
int users_wait(struct control *c, uint64_t timeout_ns);
/* The same at the beginning of a turn, without waiting, for all users; users_serve() then serves those
 * with requests. */
int users_poll(struct control *c);
/* Returns the number of requests served. */
unsigned int users_serve(struct control *c);
/* May this client be served in this turn? The caller then charges its user for the time since it
 * began. */
bool users_may_serve(struct client *client);
void users_charge(struct client *client, uint64_t since_ns);
/* The client's requests, found at arrived_ns, have been answered: its next one is expected soon. */
void users_note_answer(struct client *client, uint64_t arrived_ns);
/* May that user's pieces be populated or unmapped now? The caller then charges this turn's bulk
 * work for the time it took. */
bool users_bulk_allowed(struct control *c, const struct share_user *of);
void users_charge_bulk(struct control *c, uint64_t ns);
/* Begin a turn, at control.turn_begun_ns; end it. */
void users_turn_begin(struct control *c);
void users_turn_end(struct control *c);
/* Time until bulk work may continue; UINT64_MAX: there is none. */
uint64_t users_bulk_wait_ns(const struct control *c);

#endif
