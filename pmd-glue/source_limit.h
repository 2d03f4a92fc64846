/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_SOURCE_LIMIT_H
#define PMD_GLUE_SOURCE_LIMIT_H
/*
 * Limits how much non-RoCE traffic a source may send to the control thread: ARP, neighbour
 * discovery, echo, IGMP, MLD. Without a limit one neighbour could fill the ring to the control
 * thread, and nobody else's questions would be answered.
 *
 * Sources are told apart by their MAC address, hashed into a few buckets with a key that nobody
 * knows: a flood from one address costs only those few that share its bucket, and one from forged
 * addresses cannot send more than all buckets together. Queue's lcore.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	SOURCE_BUCKETS_LOG = 8,
	SOURCE_BURST = 64,	 /* frames that may come at once ... */
	SOURCE_PER_SECOND = 100, /* ... and then at this rate */
};

/* Each bucket is the time at which it will be empty, in TSC cycles. */
struct source_limit {
	uint64_t key; /* odd */
	uint64_t empty_at[1 << SOURCE_BUCKETS_LOG];
};

/* May this source, a MAC address as load_mac() has it, send another frame now? Counts it if so. */
static inline bool source_admit(struct source_limit *l, uint64_t mac, uint64_t now, uint64_t hz)
{
	uint64_t *empty_at = &l->empty_at[mac * l->key >> (64 - SOURCE_BUCKETS_LOG)];
	uint64_t frame = hz / SOURCE_PER_SECOND;

	if (*empty_at < now)
		*empty_at = now;
	if (*empty_at - now > (SOURCE_BURST - 1) * frame)
		return false;
	*empty_at += frame;
	return true;
}

#endif
