/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOP_H
#define TOP_H
/* What `softhca top` shows: the difference of two looks at a daemon. */
#include "view.h"

/* One look: the daemon's answers, those of HCAs by their names, of engines by "HCA,ENGINE". */
struct look {
	double at_s; /* CLOCK_MONOTONIC */
	json_t *status, *counters, *qps, *fifos, *runtime;
};

enum top_sort { SORT_MESSAGES, SORT_QPN, SORT_PID, SORT_STATE, SORT_COUNT };
extern const char *const top_sorts[SORT_COUNT];

/* Which queue pairs are shown, and in which order. */
struct top_choice {
	enum top_sort sort;
	unsigned pid;	    /* of that process; 0: of all */
	const char *state;  /* in that one; NULL: in any */
	const char *filter; /* words, of which each is in the HCA's name, the QPN, service, state,
			     * process ID or name; "": all */
};

/* What an HCA did in a second. */
struct hca_rates {
	double out_gbps, in_gbps, out_mmsgs, in_mmsgs, retransmitted, dropped;
};
/* Between two answers to "counters". */
struct hca_rates hca_rates_of(const json_t *then, const json_t *now, double seconds);

/* Queries everything. False: the daemon did not answer; the look may be freed all the same. */
bool look_take(struct look *l, struct connection *c, const struct request *r);
void look_free(struct look *l);

/* Prints what happened between the two. rows: lines to use; 0: as many as there is to show. */
void top_print(FILE *out, const struct look *then, const struct look *now,
	       const struct top_choice *choice, unsigned rows);

#endif
