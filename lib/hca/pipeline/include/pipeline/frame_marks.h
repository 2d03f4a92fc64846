/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_FRAME_MARKS_H
#define PIPELINE_FRAME_MARKS_H
/*
 * Marks of frames that stay in this daemon: what their sender has left out. Bits of
 * rte_mbuf.ol_flags, the highest of those that DPDK leaves to applications. Ports reserve them by
 * rte_mbuf_dynflag_register_bitnum().
 *
 * Nothing outside can set a mark: it is in the mbuf, no client has mbufs in its memory, and a port
 * with a driver clears it in every frame it receives; only memif with `icrc = never` gives
 * ICRC_OMITTED to frames with zeros in place of the ICRC.
 */
#include <rte_mbuf.h>

/* The last four bytes are zeros in place of the ICRC: pipeline/icrc.h. */
#define ICRC_OMITTED_BIT 40
#define ICRC_OMITTED	 (1ull << ICRC_OMITTED_BIT)

/* The payload stays in its client's memory; the frame carries a reference to it instead:
 * virt-to-phys/payload_ref.h. Over a driver, which copies what it sends at once, the payload takes
 * the place of the reference (pmd-glue/referring.h). Such a frame is never changed: if a port at
 * either end impairs frames, or captures all of them from the start, no references are sent
 * (config/config_check.c), and a port that begins to change frames later leaves those sent before
 * alone. A capture that begins later follows them. */
#define PAYLOAD_REF_BIT 39
#define PAYLOAD_REF	(1ull << PAYLOAD_REF_BIT)

/* It stands for several packets: train.h. */
#define FRAME_TRAIN_BIT 37
#define FRAME_TRAIN	(1ull << FRAME_TRAIN_BIT)

#define FRAME_MARKS (ICRC_OMITTED | PAYLOAD_REF | FRAME_TRAIN)

/* Only in the channel RPG_TXA, whose consumer clears it: see PACKET_TIMED. */
#define FRAME_TIMED (1ull << 38)

_Static_assert(FRAME_TRAIN >= RTE_MBUF_F_FIRST_FREE && ICRC_OMITTED <= RTE_MBUF_F_LAST_FREE,
	       "DPDK has no meaning for them");

#endif
