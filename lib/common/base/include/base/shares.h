/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_SHARES_H
#define BASE_SHARES_H
/*
 * How much each client and user holds of what clients share (shares.def). Everything is taken by
 * share_take() and returned by share_give(); nothing else decides.
 *
 * The rule for each row: part of the total is set aside as a reserve of SHARES_USERS assured parts.
 * A user holds his assured part from the reserve and everything beyond it from the rest, up to the
 * row's limit for one user; each of his clients holds at most the row's limit for one client. So
 * whatever the others do, each of the first SHARES_USERS users always gets his assured part, and
 * only root and the daemon's own user exceed the limit for one user
 * (doc/decisions/0022-shares-are-a-users.md has the proof).
 *
 * A user is a user ID in the daemon's namespace; it is forgotten when it has no client and holds
 * nothing.
 *
 * Any thread: a mutex guards each table, held for a few loads and stores. Not for the data path.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/limits.h"

enum {
	SHARES_USERS = 32, /* assured parts that a reserve consists of */
};

enum share {
#define SHARE(name, scope, total, reserve, user, client, refusal, attack, text) SHARE_##name,
#include "base/shares.def"
	SHARE_COUNT
};

/* What the data path shares out by itself (DATA_SHARE). */
enum data_share {
#define DATA_SHARE(name, user, client, floor, attack, text) DATA_SHARE_##name,
#include "base/shares.def"
	DATA_SHARE_COUNT
};

/* Refusals that are no errno: the connection ends; the request is ignored; it waits. */
enum { SHARE_CLOSED = 4096, SHARE_DROPPED, SHARE_LATER };

struct share_row {
	const char *name, *text;
	bool of_hca;
	uint64_t total;
	uint8_t reserve, user, client; /* percent of the total */
	int refusal;		       /* errno, SHARE_CLOSED or SHARE_DROPPED */
};
extern const struct share_row share_rows[SHARE_COUNT];

struct shares;
struct share_user;

/* A connection as a holder; embedded in the object of its owner. The fields are for shares.c. */
struct share_client {
	struct share_user *user; /* NULL: none, and it may take nothing */
	struct share_client *next, *prev;
	int32_t pid;
	unsigned int hca; /* whose rows of scope HCA it takes from; set before the first of them */
	uint64_t held[SHARE_COUNT], refused[SHARE_COUNT];
};

/* NULL: no memory. The user `owner`, and root, may have all but the reserves. */
struct shares *shares_create(uint32_t owner);
/* To be called when all clients have ended. Shares that have not been returned yet keep it alive.
 * NULL is allowed. */
void shares_destroy(struct shares *s);

/* Sets the total of a row; hca: 0 for those of scope DAEMON. At any time: what is held beyond a new
 * limit stays held, but nothing more is granted. */
void shares_set_total(struct shares *s, enum share row, unsigned int hca, uint64_t total);
uint64_t shares_total(struct shares *s, enum share row, unsigned int hca);
/* Sets the limit of one user in all rows, in percent; 0: as in the table. At any time. */
void shares_set_user_part(struct shares *s, unsigned int percent);

/* A new client of that user, which holds nothing. 0, -ENOMEM. */
int share_client_begin(struct shares *s, uint32_t uid, int32_t pid, struct share_client *c);
/* Its end: returns everything it still holds. A client that never began is allowed. */
void share_client_end(struct share_client *c);

/* A small number of its user, lowest first; another user may have it when that one is forgotten. */
unsigned int share_user_index(const struct share_client *c);

/* Takes n of a row. 0; -errno of the row (-EAGAIN for those that are no errno): counted as refused,
 * nothing has changed. */
int share_take(struct share_client *c, enum share row, uint64_t n);
/* Takes n unconditionally, for resources that cannot be refused but count. */
void share_add(struct share_client *c, enum share row, uint64_t n);
/* For users who may have no client any more: takes n in the user's own name (false: not now), and
 * gives them back. */
bool share_user_take(struct share_user *u, enum share row, uint64_t n);
void share_user_give(struct share_user *u, enum share row, uint64_t n);
/* The same as share_spend(). */
void share_user_spend(struct share_user *u, enum share row, uint64_t n);
/* For resources that are used up and refilled over time, such as CPU time: takes n as share_take()
 * does, or unconditionally after the fact. They are the user's, not the client's, until
 * share_refill(). */
int share_use(struct share_client *c, enum share row, uint64_t n);
void share_spend(struct share_client *c, enum share row, uint64_t n);
/* Refills every user's part; a user who has spent more than his limit still lacks the excess. True:
 * there is such a user. */
bool share_refill(struct shares *s, enum share row);
/* The same, but all users who have used any share one user's part. */
bool share_refill_together(struct shares *s, enum share row);
/* Would share_take() grant it now, or, `later`, once everything left by share_leave() has been
 * returned? Counts nothing. */
bool share_fits(struct share_client *c, enum share row, uint64_t n, bool later);
/* Returns n of what it took. */
void share_give(struct share_client *c, enum share row, uint64_t n);

/* How much of a row the client holds. Its owner's thread. */
uint64_t share_held(const struct share_client *c, enum share row);

/* For resources that take time to free, and may outlive their client: n of the client's become its
 * user's until share_return(). The user is kept until then. */
struct share_user *share_leave(struct share_client *c, enum share row, uint64_t n);
void share_return(struct share_user *u, enum share row, unsigned int hca, uint64_t n);

/* ---- what `softhca limits` shows ---- */

struct share_info {
	enum share row;
	unsigned int hca;
	uint64_t total, used, refused; /* refused: times */
	uint64_t reserve, assured, user_most, client_most;
};
/* The state of a row. */
void shares_info(struct shares *s, enum share row, unsigned int hca, struct share_info *out);

struct share_holder {
	enum share row;
	unsigned int hca;
	uint32_t uid;
	int32_t pid; /* of a client; 0: all of the user's */
	uint64_t held, most, refused;
};
/* Fills up to n with users, then clients, that hold something or were refused. Returns how many
 * there are. */
unsigned int shares_holders(struct shares *s, struct share_holder *out, unsigned int n);

#endif
