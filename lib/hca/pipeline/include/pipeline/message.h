/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_MESSAGE_H
#define PIPELINE_MESSAGE_H
/*
 * The messages in the rings are mbufs. The parallel FIFOs of a hardware channel (metadata, payload,
 * scatter entries, atomics, remote address) are parts of one mbuf: payload in the data room,
 * headers in the headroom, metadata in the private area. The channel determines the form of the
 * private area, and what may be written:
 *
 *   DBP_WS WS_WP WP_WS WP_DP DP_RTC RTC_RRC   struct request      descriptor pool; data room: the
 *                                                                  units of the WQE
 *   RTC_RPG RRC_RPG RPG_TXA RESPG_TXA          struct packet       packet pool; data room: payload,
 *                                                                  later the frame
 *   HP_RRC HP_EE EE_RESPG                      struct arrival      the frame as received; its data
 *                                                                  room is not ours to write
 *   RTC_TC RRC_TC TC_RRC                       struct timer_event  event pool; data room unused
 *
 * A module that takes an mbuf from a ring owns it: it passes it on or frees it.
 *
 * A packet may stand for a train of several: train.h.
 *
 * Of struct rte_mbuf itself our code touches only these fields. Fields that are never written keep
 * the values of a free buffer of the pool, so that buffers may be taken and freed raw.
 *
 *   field                     written by
 *   buf_addr, buf_len,        none; in a clone its maker: HeaderParser (a datagram for several
 *   priv_size                 queue pairs), the ring port
 *   data_off, data_len,       ReqPktGen and RespPktGen, once, when they build the frame; the port
 *   pkt_len                   that received it. A sent frame is never changed: it may be sent
 *                             again, and on a ring port its receiver has the same one. Of a train,
 *                             pkt_len is the sum over its packets, data_len each
 *   ol_flags                  ReqPktGen and RespPktGen: 0 or marks (frame_marks.h), which ports
 *                             with a driver clear in received frames, and clones inherit
 *   refcnt                    RequesterTransControl: 2, for the wire and for MultiQueue;
 *                             RequesterRecvControl: one more, to send it again; a port: one more,
 *                             to capture, duplicate or loop it; each free subtracts one
 *   next, nb_segs             none: 1 segment. Ports drop received frames of several
 *   port                      the driver; never read
 *   packet_type, tx_offload   capture, in its own copies
 *   private area              two halves, below: request and packet are the sender's until the
 *                             frame cannot be sent again; arrival is the receiver's
 */
#include <stdint.h>
#include <rte_mbuf.h>
#include "base/limits.h"
#include "wire/crc.h"
#include "wire/headers.h"
#include "wire/error.h"

/*
 * The private area has two halves: the sender of a frame keeps what it needs to send it again in
 * the first, the receiver uses the second. So over a wire that passes the mbuf itself (the ring
 * port) both sides may hold the same mbuf, without a copy or a clone.
 */
#define MESSAGE_SENDER_BYTES 192
#define MESSAGE_PRIV_BYTES   384

/* A send request, from doorbell to segmentation (doc/modules.md#channels-table). */
struct request {
	uint32_t qpn; /* full 24 bits; a QP whose context has another number is not the one meant */
	uint8_t opcode;	 /* enum user_opcode */
	uint8_t service; /* enum qp_service, copied from the context by WQEParse */
	uint8_t flags;	 /* REQUEST_* */
	uint8_t outcome; /* enum wire_outcome: ReqState; not OK: a bad request that completes in its
			    turn */
	uint32_t wqe_offset; /* where its WQE lies in the send queue, bytes */
	uint16_t wqe_bytes;  /* of the WQE in the data room */
	uint16_t client;     /* index of the client that rang; DoorbellProcessing */
	uint32_t imm;	     /* immediate data (as on the wire) or key to invalidate */
	uint32_t length;     /* of the message, bytes */
	uint32_t rkey;
	uint16_t data_first; /* first data unit in the data room, bytes from its start; inline:
				first byte of data */
	uint8_t data_units;  /* data units; 0 when inline */
	uint8_t reserved0;
	uint64_t epoch; /* of the QP when the doorbell was taken: reveals what is left over from
			   before a reset */
	uint64_t raddr;
	uint64_t swap_add;
	uint16_t ud_offset; /* of the ud units in the data room */
	uint8_t sq_epoch;   /* of the QP when the doorbell was taken: what was rung for before
			       SQERR2RTS is flushed */
	uint8_t traits;	    /* enum user_trait of the opcode; WQEParse */
	uint32_t allowance; /* WS→WP: requests that WQEParse may make of this chain in one go */
	uint64_t compare;
	/* DataPack's cursor; RequesterTransControl advances it through dp_copy() */
	uint32_t sent_bytes;  /* of the message already segmented */
	uint32_t entry_bytes; /* of the current data unit already used */
	uint8_t entry;	      /* current data unit */
	uint8_t resolution;   /* enum rr_state of requester/request_resolution.h: how far the
				 completion of a UC or UD request is */
	uint8_t reserved1[6];
	uint64_t cq_place; /* reserved by it */
	struct rte_mbuf
		*next; /* in lists of one module (WQEScheduler's, RequesterTransControl's) */
};
#define REQUEST_FENCE	  0x01
#define REQUEST_INLINE	  0x02
#define REQUEST_SIGNALED  0x04
#define REQUEST_SOLICITED 0x08
#define REQUEST_CHAINED	  0x10 /* came back from WQEParse, not from a doorbell */
#define REQUEST_STARTED	  0x20 /* its first packet has been sent */
#define REQUEST_LIMITED	  0x40 /* it had no credit when it was judged (C9-162) */
#define REQUEST_LOCAL	  0x80 /* bind, local invalidate, fast registration: sends nothing */

/* A packet to send (doc/modules.md#channels-table). */
struct packet {
	uint32_t qpn; /* local */
	uint32_t payload_bytes;
	uint32_t payload_crc; /* raw CRC state of the payload from state 0; valid with PACKET_CRC */
	uint8_t flags;	      /* PACKET_* */
	uint8_t l3_offset, is_ipv6; /* of the frame; ReqPktGen */
	uint8_t turn;		    /* of the QP's way when it was made (struct qp_way) */
	uint32_t packets;	    /* more than 1: a train, payload_bytes each */
	bool icrcs;	/* of references and trains: they have ICRCs. For others the path decides */
	uint64_t epoch; /* of the QP when it was made: after a reset its number is the same */
	uint32_t wqe_offset; /* of the request that it is part of: for traces and captures. Not set
				in responses */
	struct wire_headers headers;
	/* UD only: where to. The template of the QP gives the rest. */
	uint8_t ud_dmac[6];
	uint8_t ud_sl, ud_tclass, ud_hops, ud_gid;
	uint8_t ud_dip[16];
	uint32_t ud_flow;
};
#define PACKET_CRC   0x01
#define PACKET_BUILT 0x02 /* the frame is complete: a retransmission, to be sent as it is */
#define PACKET_REF   0x04 /* with a reference in place of the payload: payload_ref.h */
#define PACKET_AGAIN                                                                               \
	0x10 /* the unit of the upper bits: how often its UDP source port was changed, mod 16 */
#define PACKET_TIMED 0x08 /* the time at which it leaves for the port is noted in its queue pair */

/* A packet received, from HeaderParser to RequesterRecvControl and ExecutionEngine
 * (doc/modules.md#channels-table); and a request from ExecutionEngine to RespPktGen. */
struct arrival {
	uint32_t qpn;		/* local, = headers.dest_qp */
	uint16_t payload_bytes; /* pad excluded */
	uint16_t l3_offset;	/* of the IP header */
	const uint8_t *payload; /* in the frame; elsewhere: see payload_elsewhere */
	uint32_t packets;	/* more than 1: a train, payload_bytes each */
	uint32_t payload_skip;	/* elsewhere: bytes to skip, of packets split off */
	const uint8_t *part;	/* of a train in parts: that of the second packet */
	uint16_t part_bytes;	/* from one part to the next */
	uint16_t part_headers;	/* bytes of extension headers in each */
	uint8_t is_ipv6;
	uint8_t singly; /* of a train: an ICRC was wrong, ExecutionEngine takes it packet by packet */
	uint8_t payload_elsewhere; /* the frame holds a reference, which payload_ref_follow()
				      resolves for the current poll */
	uint8_t response;	   /* EE→RESPG: enum response_kind */
	uint8_t congested; /* the network has marked it (CE); its receiver clears this once it has
			      taken note */
	uint32_t msn;	   /* EE→RESPG: AETH MSN of the (last) response */
	struct wire_headers headers;
	/* EE→RESPG */
	uint32_t response_psn; /* PSN of the (first) response packet */
	uint32_t length;       /* read: bytes to send */
	uint64_t va;	       /* read: from where */
	uint32_t rkey;
	uint8_t syndrome;    /* AETH syndrome of ack, nak; of atomic ack and the read's AETHs */
	uint8_t duplicate;   /* EE→RESPG: the request had been answered before, or is a FLUSH */
	uint16_t icrc_bytes; /* not 0: the ICRC is still to be checked; see arrival_intact() */
	uint64_t orig;	     /* atomic: the original value */
};
enum response_kind {
	RESPONSE_NONE,
	RESPONSE_ACK /* ACK or NAK by syndrome */,
	RESPONSE_READ,
	RESPONSE_ATOMIC,
	RESPONSE_SACK /* what is kept when it is made; never waits */
};

/* Timer commands and events (doc/modules.md#timercontrol): to TimerControl, "set this timer"; from
 * it, "this timer has expired". */
struct timer_event {
	uint32_t qpn;
	uint8_t timer;	/* enum timer_kind */
	uint8_t expiry; /* from it: enum timer_expiry */
	uint16_t reserved;
	uint64_t epoch;	   /* of the QP when it was made */
	uint64_t value_ns; /* to it: from now on */
};
enum timer_kind { TIMER_LOSS, TIMER_RNR };
enum timer_expiry { TIMER_EXPIRED, TIMER_PROBE, TIMER_GIVE_WAY };

_Static_assert(sizeof(struct request) <= MESSAGE_SENDER_BYTES, "fits its half");
_Static_assert(sizeof(struct packet) <= MESSAGE_SENDER_BYTES, "fits its half");
_Static_assert(sizeof(struct arrival) <= MESSAGE_PRIV_BYTES - MESSAGE_SENDER_BYTES,
	       "fits its half");
_Static_assert(MESSAGE_SENDER_BYTES % 64 == 0, "the halves share no cache line");

static inline struct request *request_of(struct rte_mbuf *m)
{
	return (struct request *)rte_mbuf_to_priv(m);
}

static inline struct packet *packet_of(struct rte_mbuf *m)
{
	return (struct packet *)rte_mbuf_to_priv(m);
}

static inline struct arrival *arrival_of(struct rte_mbuf *m)
{
	return (struct arrival *)((char *)rte_mbuf_to_priv(m) + MESSAGE_SENDER_BYTES);
}

/* Where a frame that is built in m has its payload: behind room for all headers. */
static inline uint8_t *payload_of(const struct rte_mbuf *m)
{
	return (uint8_t *)m->buf_addr + HEADROOM_BYTES;
}

/*
 * Checks the ICRC of a frame that holds its payload, if HeaderParser has left that to the copy:
 * right before the copy, so that the payload enters the cache only once. Must be called before
 * anything in the packet is trusted. HeaderParser has checked short frames; those with ICRC_OMITTED
 * need no check.
 */
static inline bool arrival_intact(struct rte_mbuf *m)
{
	struct arrival *a = arrival_of(m);
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, a->l3_offset);

	if (!a->icrc_bytes)
		return true;
	return wire_icrc(l3, a->icrc_bytes, a->is_ipv6) == wire_icrc_load(l3 + a->icrc_bytes);
}

static inline struct timer_event *timer_event_of(struct rte_mbuf *m)
{
	return (struct timer_event *)rte_mbuf_to_priv(m);
}

#endif
