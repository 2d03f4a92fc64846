/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: softhca-v2p [MILLISECONDS OF A MEASUREMENT]
 * Nanoseconds of a translation with all its checks, random keys: of entries that are cached, of
 * some that are not, with and without a prefetch some requests ahead (as the pipeline does by the
 * burst), and with misses that wait in their channel's place for the next poll; beside them one
 * access to DRAM, measured in the same run. And what the commands cost that
 * register 1 GiB in pages of 2 MiB. Without hugepages, devices, daemon.
 * Exits with 1 if anything takes longer than wanted; not if a time was given, as tests do: they see
 * that it runs, on whatever machine.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include "command/ceu.h"
#include "virt-to-phys/v2p.h"

enum { PD = 7, REGION = 4096, AHEAD = 8, BATCH = 4096, KEYS = 1 << 20, LOG_CHASE = 22 };

static double budget_s = 0.3;
static bool judged = true;
static struct counters counters;
static uint32_t keys[KEYS + AHEAD];

static double ns(uint64_t cycles, uint64_t n)
{
	return (double)cycles * 1e9 / (double)rte_get_tsc_hz() / (double)n;
}

static uint32_t draw(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 20);
}

/* A chain through 256 MiB, a line each: nothing helps the processor. */
static double dram_ns(void)
{
	const uint32_t lines = 1u << LOG_CHASE;
	uint32_t *memory = aligned_alloc(64, (size_t)lines * 64), at = 0;
	uint32_t *order = malloc(lines * sizeof(*order));
	uint64_t n = 0, begin, least = UINT64_MAX;

	for (uint32_t i = 0; i < lines; i++)
		order[i] = i;
	for (uint32_t i = lines - 1; i > 0; i--) {
		uint32_t j = draw() % (i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	for (uint32_t i = 0; i < lines; i++)
		memory[order[i] * 16u] = order[(i + 1) % lines];
	for (begin = rte_rdtsc(); rte_rdtsc() - begin < budget_s * (double)rte_get_tsc_hz(); n++) {
		uint64_t t = rte_rdtsc();

		for (unsigned i = 0; i < BATCH; i++)
			at = memory[at * 16u];
		t = rte_rdtsc() - t;
		least = t < least ? t : least;
	}
	if (at == UINT32_MAX) /* never: but the compiler must not know */
		puts("");
	free(order);
	free(memory);
	return ns(least, BATCH);
}

/* Cheapest of the batches: what the machine does besides is not counted. */
static double measure(struct v2p_port *port, bool ahead)
{
	uint64_t begin = rte_rdtsc(), least = UINT64_MAX, sum = 0;
	uint32_t at = 0;

	while (rte_rdtsc() - begin < budget_s * (double)rte_get_tsc_hz()) {
		uint64_t t = rte_rdtsc();

		for (unsigned i = 0; i < BATCH; i++, at = (at + 1) % KEYS) {
			uint8_t *addr;
			uint64_t run;

			if (ahead)
				v2p_prefetch(port->v2p, keys[at + AHEAD]);
			if (v2p_request(port, V2P_EE_DATA,
					&(struct v2p_access){.pd = PD,
							     .key = keys[at],
							     .va = 64,
							     .length = 1024,
							     .rights = ACCESS_REMOTE_WRITE},
					&addr, &run) != V2P_SUCCESS)
				abort();
			sum += (uintptr_t)addr;
		}
		t = rte_rdtsc() - t;
		least = t < least ? t : least;
	}
	if (sum == 1)
		puts("");
	return ns(least, BATCH);
}

/*
 * The same with misses that wait: a turn is a poll, and of each channel a burst of requests, as far
 * as the first that has to wait; with it the channel continues in the next turn. `ahead`: the turn
 * begins with a prefetch of the burst.
 */
static double measure_pending(struct v2p_port *port, unsigned channels, bool ahead)
{
	uint64_t begin = rte_rdtsc(), sum = 0;
	uint32_t next[V2P_CHANNELS] = {0};
	double least = 1e9;

	for (unsigned c = 0; c < channels; c++)
		next[c] = c * (KEYS / V2P_CHANNELS);
	while (rte_rdtsc() - begin < budget_s * (double)rte_get_tsc_hz()) {
		uint64_t t = rte_rdtsc(), done = 0;

		while (done < BATCH) {
			v2p_poll(port);
			for (unsigned c = 0; c < channels; c++) {
				unsigned i;

				for (i = 0; ahead && i < AHEAD; i++)
					v2p_prefetch(port->v2p, keys[next[c] + i]);
				for (i = 0; i < AHEAD; i++) {
					uint8_t *addr;
					uint64_t run;
					enum v2p_state s = v2p_request(
						port, (enum v2p_channel)(V2P_CHANNELS - 1 - c),
						&(struct v2p_access){.pd = PD,
								     .key = keys[next[c]],
								     .va = 64,
								     .length = 1024,
								     .rights = ACCESS_REMOTE_WRITE},
						&addr, &run);

					if (s == V2P_PENDING)
						break;
					if (s != V2P_SUCCESS)
						abort();
					sum += (uintptr_t)addr;
					next[c] = (next[c] + 1) % KEYS;
				}
				done += i;
			}
		}
		t = rte_rdtsc() - t;
		least = RTE_MIN(least, ns(t, done));
	}
	if (sum == 1)
		puts("");
	return least;
}

/* Misses refilled at once, and misses that wait, through the same calls. */
static void misses(struct v2p *v)
{
	static const unsigned channels[] = {1, 2, 7};

	for (unsigned pend = 0; pend < 2; pend++)
		for (unsigned i = 0; i < RTE_DIM(channels); i++) {
			struct v2p_port port = {
				.v2p = v, .counters = &counters, .pend_misses = pend};
			double alone = measure_pending(&port, channels[i], false);

			printf("    misses %s, %u channels: %6.1f ns, prefetched %6.1f ns\n",
			       pend ? "wait          " : "refill at once", channels[i], alone,
			       measure_pending(&port, channels[i], true));
		}
}

static int fill(struct v2p *v, uint32_t regions)
{
	for (uint32_t i = 0; i < regions; i++) {
		struct mpt_entry m = {.key = i << KEY_TAG_BITS | 0x5u << 28,
				      .pd = PD,
				      .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE,
				      .length = REGION,
				      .phys = (uint8_t *)((uintptr_t)(i + 1) * REGION)};

		if (v2p_write_mpt(v, &m))
			return -1;
	}
	for (uint32_t i = 0; i < KEYS; i++)
		keys[i] = draw() % regions << KEY_TAG_BITS | 0x5u << 28;
	for (uint32_t i = 0; i < AHEAD; i++)
		keys[KEYS + i] = keys[i];
	return 0;
}

static int translations(const char *what, uint32_t regions, uint32_t lines, double dram,
			double most)
{
	struct v2p_config c = {.name = "bench",
			       .mpts = regions,
			       .mtts = 1024,
			       .mpt_cache_lines = lines,
			       .mtt_cache_lines = 16,
			       .counters = &counters,
			       .socket = SOCKET_ID_ANY};
	struct v2p v;
	struct v2p_port port = {.v2p = &v, .counters = &counters};
	uint64_t asked, missed;
	double alone, ahead;

	if (v2p_create(&v, &c) || fill(&v, regions)) {
		fprintf(stderr, "softhca-v2p: no memory for %u regions\n", regions);
		return 1;
	}
	measure(&port, true); /* warm */
	asked = counter_read(&counters, COUNTER_v2p_ee_data);
	missed = counter_read(&counters, COUNTER_v2p_mpt_misses);
	alone = measure(&port, false);
	ahead = measure(&port, true);
	asked = counter_read(&counters, COUNTER_v2p_ee_data) - asked;
	missed = counter_read(&counters, COUNTER_v2p_mpt_misses) - missed;
	printf("%-34s %6.1f ns %5.2f of DRAM, prefetched %6.1f ns %5.2f, misses %3.0f %%", what,
	       alone, alone / dram, ahead, ahead / dram, 100.0 * (double)missed / (double)asked);
	if (most > 0)
		printf("  (wanted: <= %.0f ns)", most);
	puts("");
	if (lines < regions)
		misses(&v);
	v2p_destroy(&v);
	return judged && most > 0 && alone > most;
}

static int registration(void)
{
	static struct ceu_write_mtt mtt;
	struct qp_table qps;
	static struct completion completion;
	struct v2p_config c = {.name = "bench",
			       .mpts = 1 << 15,
			       .mtts = 1 << 18,
			       .mpt_cache_lines = V2P_MPT_CACHE_LINES,
			       .mtt_cache_lines = V2P_MTT_CACHE_LINES,
			       .counters = &counters,
			       .socket = SOCKET_ID_ANY};
	struct v2p v;
	struct ceu_config config = {
		.qps = &qps, .v2p = &v, .completion = &completion, .counters = &counters};
	struct mpt_entry m = {.key = 0x50000100,
			      .pd = PD,
			      .access = ACCESS_LOCAL_WRITE,
			      .flags = MPT_PAGES | MPT_OWNS_PAGES,
			      .length = 1ull << 30,
			      .log_page = 21};
	uint64_t t, first = 0, least = UINT64_MAX;
	struct ceu *ceu;

	if (v2p_create(&v, &c) || qp_table_create(&qps, 64) ||
	    completion_create(&completion, 64, 64, 64) || ceu_create(&config, &ceu) ||
	    ceu_start(ceu))
		return 1;
	for (unsigned i = 0; i < CEU_MTT_MAX; i++)
		mtt.page[i] = (uint64_t)(i + 1) * 2 << 21;
	for (unsigned i = 0; i < 20; i++) {
		t = rte_rdtsc();
		if (ceu_exec(ceu, CEU_WRITE_MTT, CEU_MTT_MAX, &mtt, sizeof(mtt), NULL, 0) ||
		    ceu_exec(ceu, CEU_SW2HW_MPT, v2p_index(&v, m.key), &m, sizeof(m), NULL, 0))
			return 1;
		t = rte_rdtsc() - t;
		first = first ? first : t;
		least = t < least ? t : least;
		if (ceu_exec(ceu, CEU_HW2SW_MPT, m.key, NULL, 0, NULL, 0))
			return 1;
	}
	printf("%-34s %6.1f us, the first %.1f us  (wanted: <= 1000 us)\n",
	       "1 GiB registered in 2-MiB pages", ns(least, 1000), ns(first, 1000));
	ceu_destroy(ceu);
	completion_destroy(&completion);
	qp_table_destroy(&qps);
	v2p_destroy(&v);
	return judged && ns(least, 1000) > 1000;
}

int main(int argc, char **argv)
{
	char *eal[] = {"softhca-v2p",
		       "--no-huge",
		       "-m",
		       "512",
		       "--no-pci",
		       "--no-shconf",
		       "--no-telemetry",
		       "--lcores=0@0",
		       "--log-level=lib.*:4",
		       NULL};
	double dram;
	int missed;

	if (argc > 1) {
		budget_s = atof(argv[1]) / 1000;
		judged = false;
	}
	if (rte_eal_init(9, eal) < 0)
		return 1;
	dram = dram_ns();
	printf("%-34s %6.1f ns\n", "one access to DRAM", dram);
	missed = translations("2^15 regions, all cached", 1 << 15, 1 << 15, dram, 25);
	missed |= translations("2^20 regions, all cached", 1 << 20, 1 << 20, dram, 60);
	missed |=
		translations("2^15 regions, default cache", 1 << 15, V2P_MPT_CACHE_LINES, dram, 0);
	missed |=
		translations("2^20 regions, default cache", 1 << 20, V2P_MPT_CACHE_LINES, dram, 0);
	return missed | registration();
}
