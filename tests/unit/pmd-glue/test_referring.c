/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that refer to their payload, over a driver: DPDK's null device, watched by a callback. */
#include <errno.h>
#include <rte_dev.h>
#include <rte_malloc.h>
#include "fixture.h"
#include "pipeline/frame_marks.h"
#include "referring.h"

enum { HEADERS = 54, PAYLOAD = 601, PAD = 3, END = PAD + 4, WHOLE = HEADERS + PAYLOAD + END };

/* What the tests' frames have in place of a reference. */
struct where {
	int error;
	const uint8_t *at;
};

static uint8_t memory[PAYLOAD], seen[BURST][WHOLE];
static unsigned calls, frames_seen, taken_at_most;

static int find(const uint8_t *place, const uint8_t **at, uint32_t *bytes)
{
	struct where w;

	memcpy(&w, place, sizeof(w));
	*at = w.at;
	*bytes = PAYLOAD;
	return w.error;
}

/* Reads as a driver does. It takes no more than it may: others stay the sender's. */
static uint16_t watch(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t n,
		      void *arg)
{
	(void)port, (void)queue, (void)arg;
	n = RTE_MIN(n, taken_at_most);
	calls++;
	for (unsigned i = 0; i < n; i++) {
		const void *read = rte_pktmbuf_read(frames[i], 0, WHOLE, seen[frames_seen]);

		assert_int_equal(frames[i]->pkt_len, WHOLE);
		assert_non_null(read);
		if (read != seen[frames_seen])
			memcpy(seen[frames_seen], read, WHOLE);
		frames_seen++;
	}
	return n;
}

static struct rte_mbuf *frame_of(bool refers, int error)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	struct where w = {error, memory};
	uint8_t *place = (uint8_t *)m->buf_addr + HEADROOM_BYTES;

	m->data_off = HEADROOM_BYTES - HEADERS;
	m->data_len = m->pkt_len = WHOLE;
	memset(rte_pktmbuf_mtod(m, uint8_t *), 0x11, WHOLE);
	if (refers) {
		m->ol_flags |= PAYLOAD_REF;
		memcpy(place, &w, sizeof(w));
	} else {
		memset(place, 0x22, PAYLOAD);
	}
	return m;
}

/*
 * Each row is a burst: w is a frame with its payload, r one that refers to it, R the frame before
 * once more, p one whose payload is not known yet, g one whose payload is gone.
 */
TEST(referring__reads_what_frames_refer_to)
{
	static const struct {
		const char *frames;
		unsigned room;		   /* of the driver */
		unsigned sent, seen, gone; /* sent: or dropped */
	} rows[] = {
		{"w", BURST, 1, 1, 0},	    {"rwr", BURST, 3, 3, 0}, {"rRRw", BURST, 4, 4, 0},
		{"rprr", BURST, 1, 1, 0},   {"p", BURST, 0, 0, 0},   {"g", BURST, 1, 0, 1},
		{"rgwggr", BURST, 6, 3, 3}, {"rrrr", 2, 4, 4, 0},    {"rwrr", 0, 0, 0, 0},
		{"rg", 0, 0, 0, 0},	    {"wgp", BURST, 2, 1, 1},
	};
	struct port *port = rte_zmalloc("port", sizeof(*port), RTE_CACHE_LINE_SIZE);
	struct port_config c = ring_config("e", "", 1);
	struct port *null;
	uint16_t id;

	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null0", ""), 0);
	c.type = PORT_PCI;
	strcpy(c.device, "net_null0");
	null = open_port(&c);
	assert_int_equal(port_refer(null, find), -ENOTSUP);
	assert_int_equal(rte_eth_dev_get_port_by_name(c.device, &id), 0);
	assert_non_null(rte_eth_add_tx_callback(id, 0, watch, NULL));
	memset(memory, 0x33, sizeof(memory));
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct port_queue *q = &port->queue[0];
		unsigned n = strlen(rows[i].frames);
		struct rte_mbuf *m[BURST];

		*port = (struct port){.packet_pool = packets, .config.socket = SOCKET_ID_ANY};
		q->port = port;
		assert_int_equal(referring_create(q, find), 0);
		calls = frames_seen = 0;
		taken_at_most = rows[i].room;
		for (unsigned k = 0; k < n; k++) {
			char kind = rows[i].frames[k];

			if (kind == 'R') {
				m[k] = m[k - 1];
				rte_mbuf_refcnt_update(m[k], 1);
				continue;
			}
			m[k] = frame_of(kind != 'w', kind == 'p'   ? -EAGAIN
						     : kind == 'g' ? -ENOENT
								   : 0);
		}
		if (referring_tx(q, id, m, n) != rows[i].sent || frames_seen != rows[i].seen ||
		    q->count[PORT_COUNTER_drop_tx_payload_gone] != rows[i].gone)
			fail_msg("row %u: %u seen", i, frames_seen);
		for (unsigned k = 0; k < frames_seen; k++) {
			assert_int_equal(seen[k][HEADERS - 1], 0x11);
			assert_in_range(seen[k][HEADERS], 0x22, 0x33);
			assert_int_equal(seen[k][HEADERS + PAYLOAD - 1], seen[k][HEADERS]);
			assert_int_equal(seen[k][HEADERS + PAYLOAD], 0x11);
		}
		for (unsigned k = rows[i].sent; k < n; k++) {
			assert_int_equal(m[k]->nb_segs, 1);
			assert_int_equal(m[k]->data_len, WHOLE);
			assert_null(m[k]->next);
			rte_pktmbuf_free(m[k]);
		}
		assert_no_leak();
		referring_destroy(q);
	}
	rte_free(port);
	port_destroy(null);
	assert_int_equal(rte_eal_hotplug_remove("vdev", c.device), 0);
}
