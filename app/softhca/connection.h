/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONNECTION_H
#define CONNECTION_H
/* A connection to a daemon's control socket: one view, one JSON answer. */
#include <errno.h>
#include <stdbool.h>
#include <jansson.h>
#include "host-abi/control.h"

struct connection {
	int fd;					 /* -1: none, or there was no answer */
	int error;				 /* why the last question had none; 0 or -errno */
	char answer[CONTROL_TEXT_BYTES_MAX + 1]; /* the last one, as received, NUL-terminated */
};

/* Connects to that control socket (NULL: as usual). 0 or -errno of ask_connect(). */
int connection_open(struct connection *c, const char *socket);
void connection_close(struct connection *c);

/*
 * Asks for the view of that name with parameters (NULL or "": none). Returns it, to be freed with
 * json_decref(), or NULL after printing the reason to stderr.
 */
json_t *connection_ask(struct connection *c, const char *name, const char *parameters);

/* The same, but prints nothing if the reason is `expected`, an -errno. */
json_t *connection_try(struct connection *c, const char *name, const char *parameters,
		       int expected);

/* Had the last question no answer because there is no HCA of that name (any more)? */
static inline bool hca_has_gone(const struct connection *c)
{
	return c->error == -ENODEV;
}

/* The same of a view that shows a list in pages: `before` and the number where a page begins, from
 * 0, are its parameters. The pages' lists, dictionaries, are joined. */
json_t *connection_ask_pages(struct connection *c, const char *command, const char *before,
			     const char *list);

/* Prints that no HCA has this name. bytes: length of the name; < 0: up to its end. */
void print_no_hca(const char *hca, int bytes);

/* The engines of an HCA, one after the other. */
struct engines {
	const char *hca;
	unsigned next;
	unsigned long long count; /* 0: not known yet */
	char key[64];		  /* "HCA,ENGINE" of the last answer */
};

/*
 * The next engine's answer, owned by the caller; {.hca = NAME} begins with the first engine. NULL:
 * there are no more engines, or no answer, which has been printed; engines_done() tells which.
 */
json_t *engines_ask(struct engines *e, struct connection *c, const char *command);
static inline bool engines_done(const struct engines *e)
{
	return e->count && e->next >= e->count;
}

/* Puts the answers of all engines of the HCA into `to`, under their keys. False: one is missing. */
bool engines_ask_into(struct connection *c, json_t *to, const char *command, const char *hca);

/* Asks again for each of these answers, which it does not read. */
void engines_ask_again(struct connection *c, json_t *answers, const char *command);

/* As the first, but puts the answer into `to` under `parameters`. False: there is none. */
bool connection_ask_into(struct connection *c, json_t *to, const char *command,
			 const char *parameters);

#endif
