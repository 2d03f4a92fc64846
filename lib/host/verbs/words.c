/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Enumerations as strings, rates as numbers. Scripts search programs' output for these strings,
 * which are those of every libibverbs.
 */
#include "handles.h"

#define WORD(table, i, otherwise)                                                                  \
	((size_t)(i) < sizeof(table) / sizeof((table)[0]) && (table)[i] ? (table)[i] : (otherwise))

VERBS_PUBLIC const char *ibv_node_type_str(enum ibv_node_type node_type)
{
	static const char *const words[] = {
		[IBV_NODE_CA] = "InfiniBand channel adapter",
		[IBV_NODE_SWITCH] = "InfiniBand switch",
		[IBV_NODE_ROUTER] = "InfiniBand router",
		[IBV_NODE_RNIC] = "iWARP NIC",
		[IBV_NODE_USNIC] = "usNIC",
		[IBV_NODE_USNIC_UDP] = "usNIC UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return WORD(words, node_type, "unknown");
}

VERBS_PUBLIC const char *ibv_port_state_str(enum ibv_port_state port_state)
{
	static const char *const words[] = {
		[IBV_PORT_NOP] = "no state change (NOP)",
		[IBV_PORT_DOWN] = "down",
		[IBV_PORT_INIT] = "init",
		[IBV_PORT_ARMED] = "armed",
		[IBV_PORT_ACTIVE] = "active",
		[IBV_PORT_ACTIVE_DEFER] = "active defer",
	};

	return WORD(words, port_state, "unknown");
}

VERBS_PUBLIC const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const words[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
		[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
		[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_PATH_MIG] = "path migrated",
		[IBV_EVENT_PATH_MIG_ERR] = "path migration request error",
		[IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_LID_CHANGE] = "LID change",
		[IBV_EVENT_PKEY_CHANGE] = "P_Key change",
		[IBV_EVENT_SM_CHANGE] = "SM change",
		[IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
		[IBV_EVENT_GID_CHANGE] = "GID table change",
		[IBV_EVENT_WQ_FATAL] = "WQ fatal",
	};

	return WORD(words, event, "unknown");
}

VERBS_PUBLIC const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	if (status == IBV_WC_TM_ERR)
		return "TM error";
	if (status == IBV_WC_TM_RNDV_INCOMPLETE)
		return "TM software rendezvous";
	return softhca_wc_status_str(status);
}

/* ---- rates ---- */

/* By code: as a rounded multiple of 2.5 Gbit/s, and in Mbit/s. */
static const struct {
	int multiple, mbps;
} rates[] = {
	[IBV_RATE_2_5_GBPS] = {1, 2500},       [IBV_RATE_5_GBPS] = {2, 5000},
	[IBV_RATE_10_GBPS] = {4, 10000},       [IBV_RATE_20_GBPS] = {8, 20000},
	[IBV_RATE_30_GBPS] = {12, 30000},      [IBV_RATE_40_GBPS] = {16, 40000},
	[IBV_RATE_60_GBPS] = {24, 60000},      [IBV_RATE_80_GBPS] = {32, 80000},
	[IBV_RATE_120_GBPS] = {48, 120000},    [IBV_RATE_14_GBPS] = {6, 14062},
	[IBV_RATE_56_GBPS] = {22, 56250},      [IBV_RATE_112_GBPS] = {45, 112500},
	[IBV_RATE_168_GBPS] = {67, 168750},    [IBV_RATE_25_GBPS] = {10, 25781},
	[IBV_RATE_100_GBPS] = {40, 103125},    [IBV_RATE_200_GBPS] = {80, 206250},
	[IBV_RATE_300_GBPS] = {120, 309375},   [IBV_RATE_28_GBPS] = {11, 28125},
	[IBV_RATE_50_GBPS] = {20, 53125},      [IBV_RATE_400_GBPS] = {160, 425000},
	[IBV_RATE_600_GBPS] = {240, 637500},   [IBV_RATE_800_GBPS] = {320, 850000},
	[IBV_RATE_1200_GBPS] = {480, 1275000},
};
#define RATES (sizeof(rates) / sizeof(rates[0]))

VERBS_PUBLIC int ibv_rate_to_mult(enum ibv_rate rate)
{
	return rate > 0 && (size_t)rate < RATES && rates[rate].multiple ? rates[rate].multiple : -1;
}

VERBS_PUBLIC enum ibv_rate mult_to_ibv_rate(int mult)
{
	for (size_t i = 0; mult > 0 && i < RATES; i++)
		if (rates[i].multiple == mult)
			return i;
	return IBV_RATE_MAX;
}

VERBS_PUBLIC int ibv_rate_to_mbps(enum ibv_rate rate)
{
	return rate > 0 && (size_t)rate < RATES && rates[rate].mbps ? rates[rate].mbps : -1;
}

VERBS_PUBLIC enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (size_t i = 0; mbps > 0 && i < RATES; i++)
		if (rates[i].mbps == mbps)
			return i;
	return IBV_RATE_MAX;
}
