/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_MACHINE_LIMIT_H
#define PATH_MACHINE_LIMIT_H
/* The machine's limits from bench/limit's program, which is run, or whose output is read. */

struct machine_limit {
	double bulk_gbps;	/* payload, one core plays both sides */
	double messages_mpps;	/* the same, 64-byte messages */
	double core_to_core_ns; /* round trip of a cache line; 0: not known */
};

/*
 * Reads the file that softhca-limit's output was kept in, or, NULL, runs softhca-limit (beside this
 * program, or in ../limit, or the one that SOFTHCA_LIMIT names); it wants a core for a second.
 * 0, or -1: not to be had (said on stderr).
 */
int machine_limit_get(struct machine_limit *m, const char *file);

/* The mean of two, because machines change while one measures. */
struct machine_limit machine_limit_mean(const struct machine_limit *a,
					const struct machine_limit *b);

#endif
