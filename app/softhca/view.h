/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEW_H
#define VIEW_H
/* What the command-line tool shows. Each view prints to stdout and returns an exit code. */
#include <stdbool.h>
#include "connection.h"

enum { EXIT_CODE_OK = 0, EXIT_CODE_FAILURE = 1, EXIT_CODE_USAGE = 2 };

enum { HCAS_MAX = 16, HCA_NAME_BYTES = 32 };

/* The request of the command line. */
struct request {
	const char *socket;	    /* of the daemon; NULL: as usual */
	const char *hca;	    /* NULL: all */
	const char *object, *value; /* the operands; NULL: none */
	const char *const *values;  /* the second and those that follow */
	unsigned value_count;
	bool json;	    /* print answers as received */
	bool all;	    /* counters, cm: including zeroes; limits: with their sentences */
	bool dot;	    /* topology: for graphviz */
	const char *listen; /* exporter, web: address and port */
	double interval_s;  /* runtime: how long to measure; top: between two looks */
	double watch_s;	    /* again after that time; 0: once */
	unsigned count;	    /* top, --watch: how many; 0: without end */
	bool batch;	    /* top: no terminal */
	const char *state;  /* qp, top: only those; NULL: all */
	unsigned pid;	    /* qp, top, clients: only those of that process; 0: all */
	const char *sort;   /* top: key of the queue pairs; NULL: the first */
	bool probe;	    /* status: measure the distances of the lcores */
	bool keep;	    /* pause: beyond the end of this process */
	const char *qp;	    /* trace: instead of the operand; NULL: none */
	unsigned wqe;	    /* trace: only that message, from 1; 0: all */
	/* capture */
	const char *filter;		 /* NULL: all frames */
	const char *file;		 /* pcapng; NULL: lines */
	unsigned frames, snaplen;	 /* 0: all; trace: messages */
	unsigned long long rotate_bytes; /* of a file; 0: without end */
	unsigned long long buffer_bytes; /* for frames that are not written yet */
};

/* Why the control socket refuses what only administrators may do. */
#define ONLY_ADMINS_MAY(what)                                                                      \
	"only root, the daemon's own user and members of its admin_group may " what " (EPERM)"

/* Prints what could not be done, and why. Returns EXIT_CODE_FAILURE. */
int failed(const char *what, const char *why);

/* Is r->state a queue pair's, or NULL? Exit code; prints why not. */
int check_state(const struct request *r);

/* All queue pairs of an HCA by their numbers, each with `pid` and `command` of its process, in one
 * answer; NULL after printing why not. */
json_t *qps_ask(struct connection *c, const char *hca);

/* The same of all clients. */
json_t *clients_ask(struct connection *c);

int view_status(struct connection *c, const struct request *r);
int view_clients(struct connection *c, const struct request *r);
/* The document of doc/json.md; NULL after printing why there is none. */
json_t *all_ask(struct connection *c, const struct request *r);
/* Prints it. */
int view_all(struct connection *c, const struct request *r);
int view_qp(struct connection *c, const struct request *r);
int view_fifos(struct connection *c, const struct request *r);
int view_counters(struct connection *c, const struct request *r);
int view_held(struct connection *c, const struct request *r);
int view_runtime(struct connection *c, const struct request *r);
int view_limits(struct connection *c, const struct request *r);
int view_cm(struct connection *c, const struct request *r);
int view_top(struct connection *c, const struct request *r);
/* Prints what the exporter serves, once. */
int view_metrics(struct connection *c, const struct request *r);
/* These need no daemon: c is NULL. */
int view_exporter(struct connection *c, const struct request *r);
int view_web(struct connection *c, const struct request *r);
/* Captures frames of a port, until it is told to end. */
int view_capture(struct connection *c, const struct request *r);
/* Modules of the pipeline stop, take elements one by one, run again. */
int view_pause(struct connection *c, const struct request *r);
int view_step(struct connection *c, const struct request *r);
int view_trace(struct connection *c, const struct request *r);
int view_resume(struct connection *c, const struct request *r);
int view_add(struct connection *c, const struct request *r);
int view_remove(struct connection *c, const struct request *r);
int view_reload(struct connection *c, const struct request *r);
int view_set(struct connection *c, const struct request *r);
/* Prints what a container needs. */
int view_cdi(struct connection *c, const struct request *r);
int view_help(struct connection *c, const struct request *r);
/* Needs a daemon only for json; c is NULL if there is none. */
int view_topology(struct connection *c, const struct request *r);

/* Calls show() for the requested HCA, or for each. Exit code. */
int for_each_hca(struct connection *c, const struct request *r,
		 int (*show)(struct connection *c, const struct request *r, const char *hca));

struct named_text {
	const char *name, *text; /* both NULL: the end */
};
/* The tables of counters: an HCA's, its port's, the connection manager's, its at each HCA. */
extern const struct named_text counter_texts[], port_counter_texts[], cm_counter_texts[],
	cm_port_counter_texts[];
/* Prints a table of the nonzero counters, or of all, with their sentences, and under --watch how
 * they have changed since `last`, which may be NULL. */
void print_counters(const json_t *counters, const json_t *last, const struct named_text *texts,
		    bool all);

/* distance.c: warns on stdout if two of these CPUs share no L3 cache; with probe also measures
 * them. */
void warn_distance(const unsigned *cpus, unsigned count, bool probe);

#endif
