/* SPDX-License-Identifier: BSD-3-Clause */
/* Pause frames among a driver's own statistics: see the header. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "pause.h"

/* mlx5: rx_pause_ctrl_phy, rx_prio3_pause; i40e, ice: rx_xoff_packets, rx_priority3_xoff_packets;
 * ixgbe: rx_priority3_xoff_packets; e1000: rx_xoff_packets; bnxt: rx_pause_frames,
 * rx_pfc_frames. */
enum pause_kind pause_kind_of(const char *name)
{
	static const char *const counted[] = {"pause", "pfc", "xoff"};
	static const char *const others[] = {"duration", "transition", "xon",	"storm",
					     "discard",	 "bytes",      "_ena_", "watchdog"};
	enum pause_kind kind = !strncmp(name, "rx_", 3)	  ? PAUSE_RX
			       : !strncmp(name, "tx_", 3) ? PAUSE_TX
							  : PAUSE_NONE;
	bool is = false;

	for (unsigned int i = 0; i < RTE_DIM(others); i++)
		if (strstr(name, others[i]))
			return PAUSE_NONE;
	for (unsigned int i = 0; i < RTE_DIM(counted); i++)
		is |= strstr(name, counted[i]) != NULL;
	return is ? kind : PAUSE_NONE;
}

void pause_find(uint16_t eth_id, struct pause_stats *out)
{
	int n = rte_eth_xstats_get_names(eth_id, NULL, 0);
	struct rte_eth_xstat_name *names = n > 0 ? calloc((size_t)n, sizeof(*names)) : NULL;

	*out = (struct pause_stats){.count = 0};
	if (names)
		n = RTE_MIN(n, rte_eth_xstats_get_names(eth_id, names, (unsigned int)n));
	for (int i = 0; names && i < n && out->count < PAUSE_STATS_MAX; i++) {
		enum pause_kind kind = pause_kind_of(names[i].name);

		if (kind == PAUSE_NONE)
			continue;
		out->id[out->count] = (uint64_t)i;
		out->kind[out->count++] = (uint8_t)kind;
	}
	free(names);
}

void pause_add(uint16_t eth_id, const struct pause_stats *s, uint64_t sum[PAUSE_KINDS])
{
	uint64_t value[PAUSE_STATS_MAX];

	if (!s->count || rte_eth_xstats_get_by_id(eth_id, s->id, value, s->count) != (int)s->count)
		return;
	for (unsigned int i = 0; i < s->count; i++)
		sum[s->kind[i]] += value[i];
}
