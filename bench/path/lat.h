/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_LAT_H
#define PATH_LAT_H
/* Latency: one message outstanding. SENDs and WRITEs go back and forth and half of that counts;
 * READs and atomics are whole round trips. */
#include "report.h"
#include "session.h"

struct lat_params {
	enum kind kind;
	uint32_t size;
	uint32_t iterations; /* after a tenth as many that do not count */
	bool verify;
};

/* 0 or -1. The client's result; the server's says nothing. */
int lat_run(struct session *s, const struct lat_params *p, struct lat_result *result);

/* One size, printed. 0 or -1. */
int lat_one_size(struct session *s, uint32_t size);

#endif
