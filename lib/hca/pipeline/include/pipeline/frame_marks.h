/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_FRAME_MARKS_H
#define PIPELINE_FRAME_MARKS_H
/*
 * What a frame that stays in this daemon may lack: marks of its sender in rte_mbuf.ol_flags, the
 * highest of the bits that DPDK leaves to applications. Ports reserve them by
 * rte_mbuf_dynflag_register_bitnum().
 *
 * Nobody outside can set a mark: it lies in the mbuf, no client has mbufs in its memory, and a port
 * with a driver clears it in all that it receives.
 */
#include <rte_mbuf.h>

/* The last four bytes are zeroes in place of the ICRC: pipeline/icrc.h. */
#define ICRC_OMITTED_BIT 40
#define ICRC_OMITTED	 (1ull << ICRC_OMITTED_BIT)

/* The payload is in its client's memory, and in its place stands where: virt-to-phys/payload_ref.h.
 * Such a frame has no ICRC either, and nobody captures or changes it: its sender makes none if a
 * port at either end does (config/config_check.c). */
#define PAYLOAD_REF_BIT 39
#define PAYLOAD_REF	(1ull << PAYLOAD_REF_BIT)

#define FRAME_MARKS (ICRC_OMITTED | PAYLOAD_REF)

_Static_assert(PAYLOAD_REF >= RTE_MBUF_F_FIRST_FREE && ICRC_OMITTED <= RTE_MBUF_F_LAST_FREE,
	       "DPDK has no meaning for them");

#endif
