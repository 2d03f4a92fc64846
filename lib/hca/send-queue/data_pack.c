/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DataPack (doc/modules.md#datapack): makes one gapless byte stream of a request's data units. The
 * hardware moves the bytes into a FIFO ahead of RequesterTransControl; here DataPack only
 * prefetches the translation of the first data unit, and RequesterTransControl copies each segment
 * when it may be sent (dp_copy()). So a queue pair that has to wait holds a descriptor and not a
 * megabyte, and each byte is copied once. Stage doorbell_wqe.
 */
#include "data_pack.h"
#include "send-queue/send_queue.h"
#include "virt-to-phys/v2p.h"

/* Will the request send bytes from the memory of its gather entries? */
static bool is_gathered(const struct request *r)
{
	return r->outcome == OUTCOME_OK && !(r->traits & USER_SCATTERS) &&
	       !(r->flags & REQUEST_INLINE) && r->length;
}

static __rte_noinline unsigned dp_work(struct engine *e)
{
	struct channel *in = &e->channel[CHANNEL_WP_DP], *out = &e->channel[CHANNEL_DP_RTC];
	unsigned room = RTE_MIN(channel_room(out), 2u * BURST);
	struct rte_mbuf *m[2 * BURST];
	unsigned n = channel_take(in, m, room);
	uint32_t lkey = 0; /* prefetched last */

	for (unsigned i = 0; i < n; i++) {
		if (!is_gathered(request_of(m[i])) || request_entries(m[i])->lkey == lkey)
			continue;
		lkey = request_entries(m[i])->lkey;
		v2p_prefetch(e->v2p, lkey);
	}
	if (n)
		channel_put(out, m, n);
	return n;
}

unsigned dp_poll(struct engine *e)
{
	return channel_idle(&e->channel[CHANNEL_WP_DP]) ? 0 : dp_work(e);
}
