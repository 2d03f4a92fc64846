/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_ICRC_H
#define PIPELINE_ICRC_H
/*
 * ICRC as an offload. A frame that does not leave the memory of this daemon needs none, just as a
 * packet on a loopback device needs no checksum: the sender marks it instead of computing one, the
 * receiver trusts the mark instead of checking one.
 *
 * The mark, ICRC_OMITTED, is worth as much as the ICRC because nothing outside can set it, except a
 * memif peer that is trusted with that (frame_marks.h). Code that copies a marked frame to show or
 * change it (capture, impairment) completes the copy first.
 */
#include <rte_mbuf.h>
#include "pipeline/frame_marks.h"
#include "wire/crc.h"
#include "wire/encap.h"

/* When the ICRC of a frame that an HCA sends is computed. */
enum icrc_mode {
	ICRC_ALWAYS,	/* for every frame */
	ICRC_TO_OTHERS, /* not for those to the port's own MAC address, which come back at once */
	ICRC_NEVER,	/* for none: the peer, on this host, accepts frames without */
};

/* Does a frame with this encapsulation go without ICRC? Any stage. */
static inline bool icrc_omitted(enum icrc_mode mode, const struct wire_template *t)
{
	return mode == ICRC_NEVER || (mode == ICRC_TO_OTHERS && t->to_self);
}

/* Writes the ICRC of a frame of this daemon, its last four bytes. Any stage. */
static inline void icrc_put(uint8_t *frame, unsigned bytes)
{
	bool ipv6;
	unsigned end = bytes - WIRE_ICRC_BYTES, l3 = wire_l3_at(frame, &ipv6);

	wire_icrc_store(frame + end, wire_icrc(frame + l3, end - l3, ipv6));
}

/* Adds the ICRC to a frame of this daemon from which it was omitted; the frame is a private copy in
 * one segment. Nothing if it has one. Any stage. */
static inline void icrc_complete(struct rte_mbuf *m)
{
	if (!(m->ol_flags & ICRC_OMITTED))
		return;
	m->ol_flags &= ~ICRC_OMITTED;
	icrc_put(rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
}

#endif
