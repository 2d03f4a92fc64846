/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_PAUSE_H
#define PMD_GLUE_PAUSE_H
/*
 * Pause frames, of links and of priorities (PFC), as drivers count them among their own statistics,
 * each under other names. Control thread.
 */
#include <stdint.h>

enum pause_kind { PAUSE_RX, PAUSE_TX, PAUSE_KINDS, PAUSE_NONE = PAUSE_KINDS };

enum { PAUSE_STATS_MAX = 32 };

/* The statistics of a driver that count them; all zero: none, as with kernel interfaces, memif. */
struct pause_stats {
	uint64_t id[PAUSE_STATS_MAX];
	uint8_t kind[PAUSE_STATS_MAX];
	unsigned int count;
};

/* What a statistic of that name counts. PAUSE_NONE also for sums and times, and for frames that end
 * a pause where those that begin it have a statistic of their own. */
enum pause_kind pause_kind_of(const char *name);

/* Finds those of a device. */
void pause_find(uint16_t eth_id, struct pause_stats *out);
/* Adds what they say. Nothing if there are none, or the driver does not answer. */
void pause_add(uint16_t eth_id, const struct pause_stats *s, uint64_t sum[PAUSE_KINDS]);

#endif
