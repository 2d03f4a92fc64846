/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softhca-stage timer: stage requester_recv of an HCA without traffic, polled once for each tick of
 * a virtual clock. The timers come in through TimerControl's own channel. Rounds of the three loads
 * take turns and the quickest of each counts, so that what else the machine does hits all alike.
 */
#include <stdio.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include "hca/hca.h"
#include "link/link_port.h"
#include "pipeline/message.h"
#include "requester/requester.h"
#include "timer.h"

enum {
	QPS = 1 << 14,
	POOL = 1023,
	ROUNDS_MIN = 5,
	TICKS = 3 * 4096, /* of one measurement: three turns of the first wheel */
};

#define AHEAD_NS  (4096ull << 22) /* 17 s: transport timer 22; nothing comes due */
#define RATIO_MAX 2.0

static uint16_t no_frames(struct link_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	return 0;
}

static struct link_port no_port = {.rx_burst = no_frames, .tx_burst = no_frames};

static struct hca *make_hca(void)
{
	struct hca_config c;
	struct hca *h;

	hca_config_defaults(&c);
	snprintf(c.name, sizeof(c.name), "timers");
	c.qps = QPS;
	c.cqs = c.mpts = 64;
	c.link = &no_port;
	c.packets = rte_pktmbuf_pool_create("tp", POOL, 0, MESSAGE_PRIV_BYTES, PACKET_ROOM_BYTES,
					    SOCKET_ID_ANY);
	c.descriptors = rte_pktmbuf_pool_create("td", POOL, 0, MESSAGE_PRIV_BYTES,
						DESCRIPTOR_ROOM_BYTES, SOCKET_ID_ANY);
	if (!c.packets || !c.descriptors || hca_create(&c, &h))
		return NULL;
	/* All that TimerControl wants of a queue pair is that it exists. */
	for (uint32_t i = 0; i < QPS; i++) {
		struct qp *q = qp_at(&h->qps, i);

		q->index = i;
		q->qpn = 0x100000 | i;
	}
	return h;
}

static void set(struct engine *e, uint32_t index, enum timer_kind kind)
{
	struct channel *to = &e->channel[CHANNEL_RTC_TC];
	struct rte_mbuf *m;

	while (!channel_room(to) || !(m = rte_mbuf_raw_alloc(e->events)))
		hca_poll_stage(e, STAGE_REQUESTER_RECV);
	*timer_event_of(m) =
		(struct timer_event){.qpn = 0x100000 | index, .timer = kind, .value_ns = AHEAD_NS};
	channel_put_one(to, m);
}

/* Both timers of the first `count` queue pairs. */
static void set_all(struct engine *e, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		set(e, i, TIMER_LOSS);
		set(e, i, TIMER_RNR);
	}
	while (hca_poll_stage(e, STAGE_REQUESTER_RECV))
		;
}

/* They expire without effect: the queue pairs send nothing. */
static void expire_all(struct engine *e)
{
	e->now_ns += AHEAD_NS;
	while (requester_timers_armed(e)) {
		e->now_ns += e->settings.timer_tick_ns;
		hca_poll_stage(e, STAGE_REQUESTER_RECV);
	}
}

/* ns of one tick. */
static double measure(struct engine *e, uint32_t count)
{
	uint64_t before, cycles;

	set_all(e, count);
	before = rte_rdtsc();
	for (unsigned i = 0; i < TICKS; i++) {
		e->now_ns += e->settings.timer_tick_ns;
		hca_poll_stage(e, STAGE_REQUESTER_RECV);
	}
	cycles = rte_rdtsc() - before;
	expire_all(e);
	return (double)cycles / TICKS * 1e9 / (double)rte_get_tsc_hz();
}

int timer_main(unsigned ms)
{
	static const uint32_t counts[] = {0, 1 << 10, QPS};
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;
	double best[RTE_DIM(counts)] = {0};
	struct hca *h = make_hca();

	if (!h) {
		fprintf(stderr, "softhca-stage: HCA failed\n");
		return 1;
	}
	h->engines->now_ns = 1000000000;
	for (unsigned round = 0; round < ROUNDS_MIN || rte_rdtsc() < end; round++)
		for (unsigned i = 0; i < RTE_DIM(counts); i++) {
			double ns = measure(h->engines, counts[i]);

			best[i] = best[i] > 0 ? RTE_MIN(best[i], ns) : ns;
		}
	printf("queue pairs  timers armed  ns/tick  ratio\n");
	for (unsigned i = 0; i < RTE_DIM(counts); i++)
		printf("%11u  %12u  %7.1f  %5.2f\n", counts[i], 2 * counts[i], best[i],
		       best[i] / best[0]);
	return best[2] > RATIO_MAX * best[1]; /* with none armed a tick does not even look */
}
