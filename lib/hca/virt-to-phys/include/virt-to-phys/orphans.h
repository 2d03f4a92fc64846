/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIRT_TO_PHYS_ORPHANS_H
#define VIRT_TO_PHYS_ORPHANS_H
/*
 * Packets whose payload lies with an HCA that is being removed (payload_ref.h). Nobody may follow
 * such a reference any more, as it leads through that HCA's tables, so every module that keeps
 * packets drops these, as if they had been lost on the wire. Control thread, while no lcore polls.
 */
#include "pipeline/message.h"
#include "virt-to-phys/payload_ref.h"

/* Frees those of the n packets that refer to the payload of `sender`, and closes the gaps. Returns
 * how many are left. */
static inline unsigned orphans_drop(struct rte_mbuf **m, unsigned n, const struct v2p *sender)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct arrival *a = arrival_of(m[i]);

		if (a->payload_elsewhere && payload_ref_is_of(a->payload, sender))
			rte_pktmbuf_free(m[i]);
		else
			m[left++] = m[i];
	}
	return left;
}

#endif
