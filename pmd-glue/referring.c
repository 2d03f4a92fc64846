/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that refer to their payload, over drivers that copy; see referring.h. */
#include <errno.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "base/assert.h"
#include "base/limits.h"
#include "pipeline/frame_marks.h"
#include "referring.h"

struct pieces {
	struct rte_mbuf payload, end;
};

struct referring {
	port_payload_place *find;
	struct pieces of[BURST]; /* of the frames of a burst */
};

_Static_assert(BURST <= 64, "a bit for each frame");

int referring_create(struct port_queue *q, port_payload_place *find)
{
	struct referring *r = rte_zmalloc_socket("referring", sizeof(*r), RTE_CACHE_LINE_SIZE,
						 q->port->config.socket);

	if (!r)
		return -ENOMEM;
	r->find = find;
	for (unsigned i = 0; i < BURST; i++) {
		r->of[i].payload.pool = r->of[i].end.pool = q->port->packet_pool;
		r->of[i].payload.nb_segs = r->of[i].end.nb_segs = 1;
		r->of[i].payload.next = &r->of[i].end;
	}
	q->referring = r;
	return 0;
}

void referring_destroy(struct port_queue *q)
{
	rte_free(q->referring);
	q->referring = NULL;
}

static void lay_piece(struct rte_mbuf *piece, const uint8_t *at, uint32_t bytes)
{
	piece->buf_addr = (uint8_t *)(uintptr_t)at;
	piece->data_len = (uint16_t)bytes;
	rte_mbuf_refcnt_set(piece, 2 * BURST); /* a burst may contain a frame again and again */
}

/* Takes a frame to pieces. 0; or what find() says: it is as before. */
static int take_apart(const struct referring *r, struct pieces *p, struct rte_mbuf *m)
{
	uint8_t *place = (uint8_t *)m->buf_addr + HEADROOM_BYTES;
	uint32_t headers = HEADROOM_BYTES - m->data_off, bytes;
	const uint8_t *at;
	int error = r->find(place, &at, &bytes);

	if (unlikely(error))
		return error;
	ASSERT(headers + bytes <= m->pkt_len);
	lay_piece(&p->payload, at, bytes);
	lay_piece(&p->end, place + bytes, m->pkt_len - headers - bytes);
	rte_mbuf_refcnt_update(m, 1);
	m->data_len = (uint16_t)headers;
	m->nb_segs = 3;
	m->next = &p->payload;
	return 0;
}

static void make_whole(struct rte_mbuf *m)
{
	m->next = NULL;
	m->nb_segs = 1;
	m->data_len = (uint16_t)m->pkt_len;
	rte_pktmbuf_free(m);
}

/* n: at most BURST. Returns how many are sent or dropped. */
static uint16_t send_some(struct port_queue *q, uint16_t device, struct rte_mbuf **frames,
			  uint16_t n)
{
	struct referring *r = q->referring;
	uint64_t apart = 0; /* by bit */
	uint16_t ready, sent;
	int error = 0;

	for (ready = 0; ready < n; ready++) {
		struct rte_mbuf *m = frames[ready];

		/* One that is sent twice in a burst is in pieces already. */
		if (!(m->ol_flags & PAYLOAD_REF) || m->nb_segs > 1)
			continue;
		error = take_apart(r, &r->of[ready], m);
		if (unlikely(error))
			break;
		apart |= 1ull << ready;
	}
	sent = ready ? rte_eth_tx_burst(device, q->id, frames, ready) : 0;
	for (; apart; apart &= apart - 1)
		make_whole(frames[rte_bsf64(apart)]);
	if (likely(error != -ENOENT) || sent < ready)
		return sent;
	queue_count(q, PORT_COUNTER_drop_tx_payload_gone, 1);
	rte_pktmbuf_free(frames[ready]);
	return sent + 1;
}

uint16_t referring_tx(struct port_queue *q, uint16_t device, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t done = 0, sent;

	do {
		sent = send_some(q, device, frames + done, RTE_MIN(n - done, (int)BURST));
		done += sent;
	} while (sent && done < n);
	return done;
}
