/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEW_H
#define VIEW_H
/* What the command-line tool shows. Each view prints to stdout and returns an exit code. */
#include <stdbool.h>
#include "connection.h"

enum { EXIT_CODE_OK = 0, EXIT_CODE_FAILURE = 1, EXIT_CODE_USAGE = 2 };

enum { HCAS_MAX = 16, HCA_NAME_BYTES = 32 };

/* What the command line asked for. */
struct request {
	const char *hca;    /* NULL: all of them */
	const char *object; /* qp: the number; NULL: all */
	bool json;	    /* print answers as received */
	bool all;	    /* counters: also those that are 0, with their sentences */
	bool dot;	    /* topology: for graphviz */
	bool probe;	    /* status: measure how far the lcores are apart */
};

int view_status(struct connection *c, const struct request *r);
int view_qp(struct connection *c, const struct request *r);
int view_fifos(struct connection *c, const struct request *r);
int view_counters(struct connection *c, const struct request *r);
int view_held(struct connection *c, const struct request *r);
int view_cm(struct connection *c, const struct request *r);
/* Needs no daemon, but for json; c is NULL where there is none. */
int view_topology(struct connection *c, const struct request *r);

struct named_text {
	const char *name, *text; /* both NULL: the end */
};
/* A table of the counters that are not 0, or of all with what they count. */
void print_counters(const json_t *counters, const struct named_text *texts, bool all);

/* A number or a text of an answer; 0 or "" if it is not there. */
unsigned long long number_of(const json_t *object, const char *key);
const char *text_of(const json_t *object, const char *key);

/* Below a table of those of `count` that the daemon listed: how many more there are. */
void print_rest(const json_t *listed, unsigned long long count);

/* distance.c: warns on stdout if two of these CPUs share no L3 cache; with probe also measures
 * them. */
void warn_distance(const unsigned *cpus, unsigned count, bool probe);

#endif
