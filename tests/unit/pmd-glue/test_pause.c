/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of drivers' statistics that count pause frames, and some that do not. */
#include "test.h"
#include "pause.h"

TEST(pause__names_of_drivers)
{
	static const struct {
		const char *name;
		enum pause_kind kind;
	} rows[] = {
		{"rx_pause_ctrl_phy", PAUSE_RX},
		{"tx_prio3_pause", PAUSE_TX},
		{"rx_prio3_pause_duration", PAUSE_NONE},
		{"rx_prio3_pause_transition", PAUSE_NONE},
		{"tx_pause_storm_warning_events", PAUSE_NONE},
		{"rx_xoff_packets", PAUSE_RX},
		{"rx_xon_packets", PAUSE_NONE},
		{"tx_priority7_xoff_packets", PAUSE_TX},
		{"tx_priority7_xon_to_xoff_packets", PAUSE_NONE},
		{"rx_pfc_frames", PAUSE_RX},
		{"rx_pfc_ena_frames_pri0", PAUSE_NONE},
		{"rx_good_packets", PAUSE_NONE},
		{"pause_frames", PAUSE_NONE},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (pause_kind_of(rows[i].name) != rows[i].kind)
			fail_msg("%s", rows[i].name);
}
