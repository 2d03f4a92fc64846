/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H
/*
 * All compile-time limits of softhca, related by arithmetic. Run-time limits are settings
 * (config/settings.def) and never exceed these.
 */
enum {
	BURST = 64,	      /* elements a module takes from a ring in one step */
	HCA_MAX = 4,	      /* HCAs in one daemon */
	ENGINES_MAX = 8,      /* pipelines in one HCA */
	LCORES_MAX = 64,      /* lcores that may run stages */
	USERS_MAX = 256,      /* that the data path tells apart; all further ones count as one */
	CLIENTS_MAX = 2048,   /* doorbell pages of one HCA: 8 MiB of UAR space / 4 KiB */
	GID_TABLE_MAX = 16,   /* GIDs of a port */
	MTU_BYTES_MIN = 256,  /* smallest path MTU */
	MTU_BYTES_MAX = 4096, /* largest path MTU */
	PSN_BITS = 24,
	QPN_BITS = 24,
	CQN_BITS = 24,
	CQ_LOG_MAX = 24,	      /* log2 of the entries of one CQ */
	MULTICAST_QPN = 0xffffff,     /* of a datagram to a multicast group, not of a queue pair */
	MULTICAST_GROUPS_MAX = 8192,  /* groups of one HCA with attached queue pairs */
	MULTICAST_QPS_MAX = 128,      /* queue pairs of one group */
	MULTICAST_ATTACH_MAX = 32768, /* attachments of one HCA */
	QPN_INDEX_BITS_MAX = 17,      /* at least 7 bits of a QPN change on reuse */
	KEY_TAG_BITS = 8,	      /* the lowest bits of a key: v2p.h */
	KEY_INDEX_BITS_MAX = 20, /* at least 12 bits of a key change on reuse: the tag, and what
				   lies above the index */
	MTT_INDEX_BITS_MAX = 24, /* 64 GiB in pages of 4 KiB */
	WQE_UNIT_BYTES = 16,
	WQE_UNITS_MAX = 63, /* the size field nds has 6 bits */
	WQE_BYTES_MAX = WQE_UNITS_MAX * WQE_UNIT_BYTES,
	SGE_MAX = 30,		     /* data units of one WQE (doc/modules.md#rqwqemanager) */
	READS_MAX = 128,	     /* max_rd_atomic and max_dest_rd_atomic */
	ANSWERS_MAX = 3 * READS_MAX, /* of one QP that may wait to be sent */
	RESULTS_KEPT = 16,	     /* of atomics in a QP's context; others are kept elsewhere */
	RQ_FETCH_BYTES = 512,	/* one prefetch of RQWQEManager (doc/modules.md#rqwqemanager) */
	HEADROOM_BYTES = 128,	/* room for Ethernet .. AtomicETH in front of a payload */
	TRAIN_PACKETS_MAX = 32, /* packets that travel as one (pipeline/message.h) */
	FRAME_BYTES_MAX = HEADROOM_BYTES + MTU_BYTES_MAX + 4 /* ICRC */,
	PACKET_ROOM_BYTES = HEADROOM_BYTES + FRAME_BYTES_MAX + 60, /* mbuf data room */
	DESCRIPTOR_ROOM_BYTES = HEADROOM_BYTES + 1024,
};

/* Longest message: 2^31 bytes (C9-72). */
#define MESSAGE_BYTES_MAX (1u << 31)

_Static_assert(WQE_BYTES_MAX <= DESCRIPTOR_ROOM_BYTES - HEADROOM_BYTES, "a WQE fits its mbuf");
_Static_assert(PACKET_ROOM_BYTES % 64 == 0, "data rooms keep cache-line alignment");

#endif
