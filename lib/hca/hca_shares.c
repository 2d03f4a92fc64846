/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engines of an HCA share out by themselves, for those who look: hca_share_total(),
 * hca_share_held(). Changes nothing. */
#include "hca/hca.h"
#include "requester/requester.h"

uint64_t hca_share_total(const struct hca *h, enum data_share which)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < h->config.engines; i++) {
		const struct engine *e = &h->engines[i];

		total += which == DATA_SHARE_descriptors ? e->descriptor_share
							 : requester_room(e, which);
	}
	return total;
}

static uint32_t descriptors_held(const struct engine *e, unsigned client)
{
	return __atomic_load_n(client == HCA_ALL_CLIENTS ? &e->held_total : &e->held[client],
			       __ATOMIC_RELAXED);
}

uint64_t hca_share_held(const struct hca *h, enum data_share which, unsigned client)
{
	uint64_t held = 0;

	for (unsigned i = 0; i < h->config.engines; i++) {
		const struct engine *e = &h->engines[i];

		held += which == DATA_SHARE_descriptors ? descriptors_held(e, client)
							: requester_kept(e, which, client);
	}
	return held;
}
