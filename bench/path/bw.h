/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_BW_H
#define PATH_BW_H
/* Throughput: as many messages outstanding as the queues take. */
#include "report.h"
#include "session.h"

struct bw_params {
	enum kind kind;
	uint32_t size;
	uint64_t messages; /* of each QP and direction; 0: for duration_ns */
	uint64_t duration_ns;
	bool bidirectional;
	bool verify; /* in rounds of as many messages as have slots: fill, transfer (timed), check
		      */
};

/* Area that a verified or unverified run of messages up to `size` wants, per QP. */
size_t bw_area_bytes(const struct options *o, uint32_t size, bool verify);

/* Runs it. 0 or -1 (said on stderr: failed, wrong data, messages missing, stuck). */
int bw_run(struct session *s, const struct bw_params *p, struct bw_result *result);

/* One size, printed. 0 or -1. */
int bw_one_size(struct session *s, uint32_t size);

#endif
