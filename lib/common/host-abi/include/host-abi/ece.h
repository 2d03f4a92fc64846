/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_ECE_H
#define HOST_ABI_ECE_H
/*
 * Enhanced connection establishment: two queue pairs find out, by a vendor number and 32 bits of
 * options, that both can do more than the standard. ibv_query_ece() returns what a queue pair
 * offers; the connection manager carries it in REQ and REP (doc/transport.md#between-equals);
 * ibv_set_ece() takes what the peer has offered or agreed to.
 */

/* The device's maker: a locally administered OUI, ending in "SH", so that it is no one else's. */
#define ECE_VENDOR 0x025348u

/* Our options. Devices of other makers answer with their own options under the vendor number of the
 * request (librdmacm does that), so the upper half marks these as ours. */
#define ECE_MARK      0x53480000u
#define ECE_MARK_MASK 0xffff0000u
#define ECE_REPEAT    0x1u /* enum qp_agreed */

#endif
