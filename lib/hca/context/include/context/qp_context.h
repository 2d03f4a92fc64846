/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_QP_CONTEXT_H
#define CONTEXT_QP_CONTEXT_H
/*
 * CxtMgt: the QP contexts. One cache line (or a few) per writer; each field has exactly one writing
 * module, named at its group. Any module may read; fields that another lcore reads while they
 * change are accessed with __atomic builtins.
 *
 * `state` and `way` have several writers. The CEU makes every transition of `state` that a client
 * requests. RequesterRecvControl, ExecutionEngine and RespPktGen may move the QP to ERR with
 * qp_set_error(), as may any stage that loses one of its completions, with qp_completion_lost();
 * RequesterTransControl may move a UC or UD QP to SQE with qp_set_sqe(). Nothing else changes it.
 * path_migration.h says who changes `way`, and `timeout` with it. All of them use compare-and-swap
 * on the value they checked, so that no transition undoes another: ERR is left only through RST,
 * which the CEU enters when nothing in flight names the QP.
 *
 * A QPN has 24 bits: the low ones are the index in the table, the rest are random and change with
 * each reuse, so that QPNs cannot be guessed, and a packet or descriptor for a former QP finds
 * another number in the context and is dropped. The one exception is QP 1 (GSI), whose number the
 * standard fixes: its index is reserved.
 */
#include <stdint.h>
#include <rte_mbuf.h>
#include "base/icm.h"
#include "base/limits.h"
#include "congestion/delay.h"
#include "context/walk.h"
#include "host-abi/doorbell.h"
#include "host-abi/wqe.h"
#include "pipeline/engine.h"
#include "pipeline/wake_list.h"
#include "wire/encap.h"
#include "wire/opcode.h"

struct srq;

enum qp_state { QP_RST, QP_INIT, QP_RTR, QP_RTS, QP_SQE, QP_SQD, QP_ERR };
/* Index lists inside MultiQueue: see requester/multi_queue.h. */
struct mq_list {
	uint32_t head;	   /* consumer's; the producer sets it when the list is empty */
	uint32_t consumed; /* consumer */
	uint32_t tail;	   /* producer */
	uint32_t produced; /* producer */
};

/* A position in the two lists of packets: element, and its number in the list (free running). */
struct mq_cursor {
	uint32_t sw, sw_place, rd, rd_place;
};

/* A QP's place in one of the lists of qp_list.h. */
struct qp_link {
	uint32_t next;	      /* QP index */
	uint32_t before : 24; /* QP index; undefined for the first one */
	uint32_t listed : 8;  /* not 0 while it is in a list; 1, unless its module says which */
};
_Static_assert(sizeof(struct qp_link) == 8 && QPN_INDEX_BITS_MAX <= 24, "lists cost 8 bytes each");

/* What a QP sends through one module, as congestion control sees it. */
struct qp_flow {
	struct dcqcn cc;      /* first: the module asks for its rate whenever it serves the QP */
	uint32_t cnps;	      /* of qp.hp.cnps, taken into account */
	uint32_t slot;	      /* of the module's wheel (pacing.h), */
	struct qp_link waits; /* if it waits there */
	uint64_t next_ns;     /* limited: when it may send again */
};

/* Packets of a QP that came early and are kept (early.h). */
struct early_count {
	uint32_t first; /* none of them has a PSN before this; undefined if there are none */
	uint32_t kept;
};

/* ee.gap: 0 in order; else, until the expected PSN has come: */
enum ee_gap {
	EE_GAP_SEQUENCE = 1, /* a sequence NAK was sent: no other one */
	EE_GAP_RNR = 2,	     /* an RNR NAK was: the peer sends all again, so nothing is kept */
	EE_GAP_EARLY = 4,    /* packets behind it may be kept */
	EE_GAP_LATE = 8,     /* its NAK waits: ee_gap.late */
};
#define EE_GAP_SILENT (EE_GAP_SEQUENCE | EE_GAP_RNR) /* no NAK, no unsolicited ACK */

/* agreed: what the peer can do beyond the standard. Never set for other peers, which never see
 * it. */
enum qp_agreed {
	AGREED_REPEAT = 1,   /* selective repeat: doc/transport.md#between-equals */
	AGREED_ASKED = 0x80, /* the client has said what the peer can */
};

/* rrc.credits: the LSN granted by the newest AETH with credits, and: */
#define CREDITS_CAME	  (1u << 24) /* any such AETH has arrived */
#define CREDITS_UNLIMITED (1u << 25) /* no limit: 11111b received, or set by the peer's CM */

/* An atomic's result, kept for its duplicates. */
struct atomic_result {
	uint64_t psn; /* as ee_long_psn() counts it: never the same twice; 0: none */
	uint64_t orig;
};

/* What RespPktGen needs to know of a request whose answer waits: the packet has been freed. */
struct answer {
	struct answer *next;
	uint64_t va;   /* READ: from where */
	uint64_t orig; /* atomic: the original value */
	uint32_t qpn;
	uint32_t psn; /* of its first packet */
	uint32_t msn;
	uint32_t length; /* READ: bytes to send */
	uint32_t rkey;
	uint32_t done_bytes; /* of the READ, already sent */
	uint32_t done_packets;
	uint8_t response;  /* enum response_kind */
	uint8_t syndrome;  /* of an ACK or NAK; of an atomic's and a READ's ACKs */
	uint8_t duplicate; /* the request had been answered before */
	uint8_t resources; /* of max_dest_rd_atomic, that it holds: its own, and those of the
			      answers that it replaced */
	uint64_t reserved;
};
_Static_assert(sizeof(struct answer) == 64, "whole answers fit a cache line");

/* The state of ExecutionEngine's receive queue. */
enum ee_flushed {
	EE_NOT_FLUSHED,
	EE_FLUSHED, /* with an SRQ, in ERR: its descriptors were dropped, EQE_LAST_WQE was raised */
};

enum { PEER_TRUST = 4 }; /* rrc.peer_keeps of a peer known to keep what comes behind a gap */

/* A path of a QP's packets. */
struct qp_path {
	struct wire_template template; /* RC, UC: Ethernet … UDP of every packet; UD: without
					  destination */
	uint8_t peer_ip[16];	       /* RC, UC: packets must come from here; v4-mapped or IPv6 */
};

enum qp_migration {
#define STATE(id, text) MIGRATION_##id,
#include "context/path_migration.def"
};

/* Which of its paths a QP's packets take; one word, read and changed at once (path_migration.h). */
struct qp_way {
	uint8_t path, alternate; /* numbers of paths; the same: no alternate path is loaded */
	uint8_t migration;	 /* enum qp_migration */
	uint8_t turn; /* changes with path and MigReq: frames of another turn are not sent again */
} __rte_aligned(4);
_Static_assert(sizeof(struct qp_way) == 4, "one word, without padding");

struct qp {
	/* ---- CEU, while the QP is in RST, INIT (and AV fields until RTR); data path reads ---- */
	uint32_t qpn;	  /* 0: this context is free */
	uint8_t state;	  /* enum qp_state; atomic; writers: see above */
	uint8_t service;  /* enum qp_service */
	uint8_t mtu_code; /* 1..5 */
	uint8_t sq_epoch; /* bumped by SQERR2RTS; atomic */
	uint64_t epoch;	  /* number of this life, which a reset ends: no two lives of any QP of an
			     HCA have the same */
	uint16_t mtu_bytes;
	uint16_t pkey;
	uint16_t client;	      /* index of the client that owns it */
	uint8_t retry_cnt, rnr_retry; /* 3 bits each; rnr_retry 7: infinite */
	uint8_t timeout;	      /* 5 bits: 4.096 µs × 2^timeout, 0: off */
	uint8_t min_rnr_timer;	      /* 5 bits, code */
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t sq_signal_all;
	uint8_t alternate_timeout; /* timeout after a migration */
	uint8_t sqd_notify;	   /* EQE_SQ_DRAINED requested */
	uint8_t leaving; /* atomic: in ERR only to release resources before reset or destruction; no
				  EQE_LAST_WQE */
	uint32_t pd;
	uint32_t dest_qpn;
	uint32_t qkey;
	uint32_t cqn_snd, cqn_rcv;
	uint16_t engine;   /* index of the engine that owns it */
	uint16_t user;	   /* index of the user of its client, < USERS_MAX */
	uint16_t access;   /* enum access_flags: what peers may do through the QP */
	uint8_t sqd_turn;  /* atomic: number of this stay in SQD, never 0; changes on entry */
	uint8_t agreed;	   /* enum qp_agreed */
	struct qp_way way; /* atomic: which path; see path_migration.h */
	uint8_t *sq; /* send queue in the daemon's address space; its MR stays while the QP lives */
	uint32_t sq_bytes;
	uint32_t rq_stride;  /* bytes */
	uint8_t *rq;	     /* receive queue, rq_entries × rq_stride; NULL: none, or an SRQ */
	uint32_t rq_entries; /* power of two */
	uint32_t index;	     /* of this context in the table */
	struct qp_record *record; /* in client memory: read once, bound, never trusted */
	uint32_t sq_psn, rq_psn;  /* initial PSNs */
	struct srq *srq;	  /* source of receives, with rq_stride; NULL: rq */
	uint32_t rq_pd;		  /* of the local keys in receive descriptors: the SRQ's, or pd */
	uint8_t cc;		  /* atomic: enum congestion_control of the connection */
	uint8_t tclass;		  /* of its path, as its program asked for it */
	/* Packets are sent while the path changes: the CEU writes one that is not used and then
	 * changes `way`. Read through qp_path(). The third one: qp.third. */
	struct qp_path path[2] __rte_cache_aligned;

	struct wake_link wake[WAKE_COUNT]; /* wake_list.h */
	/* Bits 1 << enum wake_target, atomic: the modules that have released a QP whose qpn became
	 * 0. A number is reused only once all have: then nothing in flight, no list and no timer
	 * can name the QP. */
	uint32_t closed;
	/* HeaderParser (header_parse of any engine, hence atomic additions). No line of its own:
	 * see the size below. */
	struct {
		uint32_t refused;	   /* packets of another service, P_Key or address */
		uint32_t cnps;		   /* CNPs that have come for it, free running */
		uint8_t migration_refused; /* EQE_PATH_MIG_ERR was raised */
	} hp;
	/* Atomic: changes before a request completes without an acknowledgement, and before the QP
	 * is removed. From then on buffers may change while packets that refer to them are in
	 * flight (virt-to-phys/payload_ref.h). Never the same in two lives, nor 0 in any. */
	uint64_t payload_turn;
	/* The CEU's again: path number 2, for QPs that have an alternate path. */
	struct qp_path *third;

	/* ---- WQEScheduler, WQEParse, WQEIndicatorTable (doorbell_wqe) ---- */
	struct {
		struct rte_mbuf *head, *tail; /* doorbells waiting in turn */
		uint32_t issued;	      /* requests passed to DataPack, free running */
		struct qp_link ready;	      /* QPs with work */
		uint8_t chain;	     /* WQEIndicatorTable's flag: WQEParse is working on a chain */
		uint8_t parked;	     /* atomic: waits for RequesterTransControl to consume */
		uint8_t chain_ahead; /* how many of its last chain were parsed with the first */
	} ws __rte_cache_aligned;
	/* Link transmit of its engine, in the rest of that line: when the last timed packet left
	 * (path_delay.h), and its PSN; both atomic. */
	struct {
		uint64_t ns;
		uint32_t psn;
	} left;
	/* HeaderParser, also there: requests and responses with an earlier PSN may be from before
	 * the peer was ready to migrate; both atomic. */
	struct {
		uint32_t request, response;
	} armed;

	/* ---- RequesterTransControl (segmentation) ---- */
	struct {
		struct rte_mbuf *head, *tail; /* requests in turn */
		uint32_t next_psn;	      /* NPSN; atomic */
		uint32_t consumed; /* requests finished, free running; atomic; WQEScheduler reads */
		uint32_t ssn;	   /* send sequence number of the next request; atomic */
		uint32_t reads_issued; /* READ and atomic requests, free running; atomic */
		uint32_t since_ack;    /* packets since the last AckReq */
		uint8_t parked;	       /* atomic: enum park_reason; RequesterRecvControl wakes it */
		uint8_t flushing;      /* after a bad request: all later ones are flushed */
		uint8_t limited;       /* enum limited: a request without credit is in flight */
		uint8_t drained; /* atomic: sqd_turn when the queue was found drained, else 0 */
		struct qp_link active;	 /* QPs with requests */
		uint64_t busy_since_ns;	 /* when the QP last began to have packets outstanding;
					    atomic */
		uint64_t busy_missed_ns; /* engine_missed() then; atomic */
		uint32_t credits_seen;	 /* rrc.credits when last read */
		uint32_t lsn;	     /* its LSN, +1 per request sent since that needs no receive */
		struct qp_flow flow; /* its requests */
	} rtc __rte_cache_aligned;

	/* Round trips of single packets (path_delay.h), in the rest of that line. */
	struct {
		/* RequesterTransControl */
		uint32_t begun;	    /* timed so far, free running; atomic */
		uint32_t psn;	    /* of the last one, */
		uint32_t flight;    /* PSNs outstanding with it, */
		uint32_t taken;	    /* trip_end.samples that the flow knows of */
		uint64_t missed_ns; /* engine_missed() when it was timed */
		struct delay_control control;
		struct delay_meter path; /* RequesterRecvControl */
	} trip;

	/* ---- RequesterRecvControl (requester_recv) ---- */
	struct {
		uint32_t unacked_psn; /* UPSN; atomic */
		uint32_t reads_done;  /* READ and atomic requests completed, free running; atomic */
		uint32_t credits;     /* LSN, CREDITS_*; atomic; RequesterTransControl reads; the
					 CEU may add CREDITS_UNLIMITED */
		uint32_t credit_msn;  /* the MSN received with it */
		uint32_t window; /* PSNs that may be outstanding, in sixteenths, after a loss or RNR
				    NAK; 0: any number; atomic; RequesterTransControl reads */
		uint8_t retry_left, rnr_left;
		uint8_t path;		/* number of the path that retry_left is for */
		uint8_t rnr_waiting;	/* atomic: RNR timer runs, nothing may be sent */
		uint8_t fatal;		/* a request failed and completed: further errors do
						not complete it again */
		uint8_t proven;		/* atomic: the peer has answered since the last timeout */
		uint8_t retransmitting; /* atomic: go-back-N in progress, nothing new may be sent */
		uint8_t flushed;	/* a request failed: no later one succeeds */
		uint8_t peer_keeps; /* the peer keeps what comes behind a gap; up to PEER_TRUST */
		uint8_t one_missing : 1; /* only the packet before retransmit_end is sent again */
		uint8_t after_nak : 1;	 /* go-back-N because of the first NAK of a loss */
		uint8_t recovering : 1;	 /* recover_psn not reached yet */
		uint8_t guessed : 1;	 /* srtt_ns is a guess: probe_first_flight() */
		uint8_t selective : 2;	 /* what is missing before retransmit_end is sent again */
		uint8_t early_waits : 1; /* some of repeat.early may be kept */
		uint8_t probes;		 /* since the last progress; atomic; TimerControl reads */
		uint32_t retransmit_psn; /* go-back-N: next to retransmit */
		uint32_t retransmit_end; /* of the last one_missing */
		uint32_t retransmit_put; /* RRC_RPG's count of puts then */
		struct mq_cursor cursor; /* its position */
		uint32_t recover_psn;	 /* NPSN at the last loss */
		uint32_t ahead_psn;	 /* NPSN at the last repetition of one packet; atomic */
		uint32_t mark_psn; /* NPSN at the start of the round trip being measured, which ends
					when it is acknowledged */
		uint32_t srtt_ns;  /* smoothed round trip; 0: not known; atomic; TimerControl
				      reads */
		uint32_t nak_psn;  /* the last sequence NAK acted upon, plus one; 0: none */
		uint64_t mark_ns;  /* its start; 0: none is measured */
		uint64_t nak_ns;   /* and when */
		uint64_t resend_ns;    /* limited by congestion control: when it may send again */
		uint32_t read_packets; /* responses of the oldest READ that have arrived; atomic;
					  RequesterTransControl reads */
		uint32_t read_asked;   /* read_packets at the last re-request; 0: none */
		uint32_t gap_psn; /* a missing read response requested again, plus one; 0: none */
		uint32_t beyond;  /* bits: responses behind it that have come since, the first 32 */
		uint64_t answered_ns;	     /* when the peer last acknowledged something; atomic */
		uint64_t progress_ns;	     /* when an acknowledgement last advanced; atomic;
						TimerControl reads */
		uint64_t progress_missed_ns; /* engine_missed() then; atomic */
		struct rte_mbuf *bad_head, *bad_tail; /* bad requests not due yet */
		uint32_t entry_bytes;		      /* used of the first scatter entry */
		uint32_t scattered;		      /* bytes written of the current response */
		struct qp_link retransmit;	      /* QPs that retransmit */
		uint32_t marks; /* READ responses that the network had marked (CE), free running;
				   atomic; RespPktGen reads */
		struct qp_link lossy; /* QPs whose probes are due sooner than a timer can tell */
		uint32_t ghosts;      /* responses to PSNs not sent yet: stale, or forged */
	} rrc __rte_cache_aligned;

	/* RequesterRecvControl again: what the peer has, and which responses came early. Only
	 * losses touch these fields. Times as retransmission.c counts them. */
	struct {
		struct early_count early; /* responses that came ahead of missing ones */
		struct qp_link filled;	  /* QPs whose next response is among them */
		uint32_t seen_psn;   /* responses before this are missing, if they have not come */
		uint32_t ack_behind; /* the newest packet that was acknowledged behind an unanswered
					     READ, plus one; 0: none */
		uint32_t done_psn;   /* the peer has executed what is before this */
		uint32_t map_psn;    /* and of what follows this it keeps */
		uint64_t map[WIRE_SACK_BYTES / 8];
		uint32_t walked; /* when the last selective walk began */
		/* PSN of the READ whose responses the walk requests again although they have been
		 * requested before, plus one. */
		uint32_t late_psn;
	} repeat __rte_cache_aligned;
	struct walk rrc_walk; /* RequesterRecvControl: of middle READ responses */

	/* ---- MultiQueue lists: producer RequesterTransControl, consumer RequesterRecvControl ----
	 */
	struct {
		struct mq_list sw, rd,
			re; /* Send/Write packets, Read requests, Read scatter entries */
	} mq __rte_cache_aligned;
	/* RequesterRecvControl, of trip; all atomic */
	struct {
		uint32_t ended;	   /* of trip.begun */
		uint32_t samples;  /* those that RequesterTransControl should look at */
		uint32_t queue_ns; /* queueing delay of the last one, */
		uint32_t arrived;  /* and what was acknowledged in it, kbit/s */
	} trip_end;

	/* ---- TimerControl (requester_recv) ---- */
	struct {
		uint32_t next[2], prev[2]; /* wheel slot lists, by enum timer_kind */
		uint64_t deadline_ns[2];
		uint64_t probed_ns;	   /* the last probe */
		uint64_t probed_missed_ns; /* engine_missed() then */
		uint32_t slot[2];
		uint8_t armed[2]; /* atomic */
	} tc __rte_cache_aligned;

	/* ---- ExecutionEngine (responder_exec) ---- */
	struct {
		uint32_t expected_psn; /* EPSN; atomic: QUERY_QP reads */
		uint32_t msn;
		uint8_t gap;	      /* enum ee_gap */
		uint8_t message;      /* enum ee_message in progress */
		uint8_t ack_pending;  /* send an ACK at the end of this burst */
		uint8_t comm_est;     /* EQE_COMM_EST was raised */
		uint8_t atomic_next;  /* next index in results: qp_result() */
		uint8_t results_used; /* valid results, since the reset */
		uint8_t flushed; /* enum ee_flushed: the receive queue was flushed in ERR; atomic */
		uint8_t reads_issued; /* READs passed to RespPktGen, free running; see reads_done */
		uint8_t has_posted;   /* a receive has been seen; until then, ACKs look for none */
		uint8_t credits_granted; /* the last AETH granted credit for another message */
		uint32_t received_bytes; /* of the message in progress */
		uint32_t psn_laps;	 /* how often expected_psn has wrapped */
		uint32_t starved_since;	 /* the last hope for credits; as ee_time() counts */
		/* WriteAddrTable */
		uint64_t write_va;
		uint32_t write_rkey;
		uint32_t write_left;	/* bytes of RETH.DMALen still to arrive */
		struct qp_link starved; /* QPs whose peers have no credits: ee_credits.c */
		struct atomic_result results[RESULTS_KEPT];
		uint32_t refused; /* requests without the right key, invalid or not permitted */
		uint32_t ahead;	  /* requests beyond the expected PSN: packets lost, or guesses */
	} ee __rte_cache_aligned;

	/* ---- RQWQEManager (responder_exec) ---- */
	struct {
		uint32_t consumed; /* receive WQEs taken, free running */
		uint32_t fetched;  /* receive WQEs in the buffer, up to this free-running number */
		uint8_t open;	   /* a WQE is in use by a message */
		uint8_t entry;	   /* its current data unit */
		uint16_t unit;	   /* where that WQE starts in the buffer, bytes */
		uint32_t entry_bytes; /* of the current data unit already used */
		uint32_t length;      /* of the open WQE: sum of its data units */
		uint8_t buffer[RQ_FETCH_BYTES];
	} rwm __rte_cache_aligned;

	/* ExecutionEngine again: RQWQEManager's last line has room. Times as ee_time() counts them.
	 */
	struct {
		struct early_count early;
		struct qp_link late; /* QPs whose gap may still fill by itself */
		uint32_t since;	     /* when the gap was seen */
		uint32_t patience;   /* how long it may stay before it draws a NAK */
		uint32_t sample_psn; /* a gap that drew one, plus one; 0: none is observed */
		uint32_t sample_since;
		uint32_t sample_late; /* when it was filled; 0: it has not been */
		uint8_t in_vain;      /* NAKs in a row that were needless */
		uint8_t sack; /* a selective acknowledgement is due at the end of the burst */
	} ee_gap;
	struct walk ee_walk; /* of WRITEs of several packets */

	/* ---- RespPktGen (responder_exec) ---- */
	struct {
		struct answer *head, *tail; /* answers that wait, in the order of their PSNs */
		struct answer *free;	    /* places that were used before */
		struct qp_link active;	    /* QPs with waiting answers */
		uint16_t fresh;		    /* places used so far: qp_answers() */
		uint16_t others;	    /* answers that wait and hold no resource */
		uint8_t reads_done;	    /* free running */
		struct qp_flow flow;	    /* its READ responses */
		struct qp_link notify;	    /* QPs whose peers are to get a CNP */
		uint64_t cnp_ns;	    /* when the last one was sent; 0: none was */
		uint32_t marks_taken;	    /* of rrc.marks */
	} respg __rte_cache_aligned;
} __rte_cache_aligned;

/* Some 2 KiB besides its packets; twice that where DPDK takes a cache line to be 128 bytes
 * (arm64). */
_Static_assert(sizeof(struct qp) <= 33 * RTE_CACHE_LINE_SIZE, "a QP costs at most 33 lines");
#if RTE_CACHE_LINE_SIZE == 64
/* With an even number of them, the same field of all QPs would compete for two sets of a cache. */
_Static_assert(sizeof(struct qp) / RTE_CACHE_LINE_SIZE % 2 == 1, "an odd number of lines");
#endif

struct qp_table {
	struct icm icm; /* memory of the contexts */
	struct qp *qps;
	/* READS_MAX - RESULTS_KEPT per context: results that do not fit into it. Allocated on first
	 * write. ExecutionEngine's. */
	struct atomic_result *results;
	/* ANSWERS_MAX per context. Allocated on first write. RespPktGen's. */
	struct answer *answers;
	struct qp_path *third_paths; /* one per context. Allocated on first write. The CEU's. */
	uint32_t count;		     /* power of two */
	uint32_t mask;
};

/* Reserves address space for `count` contexts, a power of two; their memory is mapped by chunks. 0
 * or
 * -ENOMEM. Control thread. */
int qp_table_create(struct qp_table *t, uint32_t count);
void qp_table_destroy(struct qp_table *t);

/* True if none of the contexts [first, end), which are no longer used, is in a wake list: their
 * memory may be freed after the next quiescent state of all lcores. Control thread, after such a
 * state. */
bool qp_table_unlisted(const struct qp_table *t, uint32_t first, uint32_t end);

/* Gives back the memory of a QP's places for answers. The QP has left the data path, which may have
 * used them. Control thread. */
void qp_answers_release(const struct qp_table *t, const struct qp *q);

/* Detaches waiting arrivals from QPs that leave: the numbers may be reused at once, and nothing
 * would check the packets against the new path. One packet, or all in a ring. The stage that takes
 * them. */
void qp_disown(const struct qp_table *t, struct rte_mbuf *m);
void qp_disown_ring(const struct qp_table *t, const struct rte_ring *arrivals);

/* The context of a 24-bit number, or NULL. Any lcore. */
static inline struct qp *qp_find(const struct qp_table *t, uint32_t qpn)
{
	struct qp *q = &t->qps[qpn & t->mask];

	return likely(__atomic_load_n(&q->qpn, __ATOMIC_ACQUIRE) == qpn && qpn != 0) ? q : NULL;
}

/* Prefetches what the requester's modules read of a QP for each request, but its first lines, which
 * whoever has found it reads himself: of many QPs hardly any is in a cache. */
static inline void qp_prefetch_requester(const struct qp *q)
{
	const uint8_t *p = (const uint8_t *)q;

	rte_prefetch0(&q->path[0]);
	rte_prefetch0(&q->path[0].peer_ip);
	for (size_t at = offsetof(struct qp, wake); at < offsetof(struct qp, repeat);
	     at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(p + at);
	rte_prefetch0(&q->mq);
	rte_prefetch0(&q->tc);
}

/* Prefetches what whoever looks for a QP and its send queue reads of the QP that may have this
 * number. */
static inline void qp_prefetch_queue(const struct qp_table *t, uint32_t qpn)
{
	const struct qp *q = &t->qps[qpn & t->mask];

	rte_prefetch0(q);
	rte_prefetch0(&q->sq);
}

/* The same, and what WQEScheduler and WQEParse write. */
static inline void qp_prefetch_send_queue(const struct qp_table *t, uint32_t qpn)
{
	qp_prefetch_queue(t, qpn);
	rte_prefetch0(&t->qps[qpn & t->mask].ws);
}

/* Prefetches what HeaderParser and ExecutionEngine read of the QP that may have this number. */
static inline void qp_prefetch_responder(const struct qp_table *t, uint32_t qpn)
{
	const struct qp *q = &t->qps[qpn & t->mask];

	qp_prefetch_queue(t, qpn);
	rte_prefetch0(&q->path[0]);
	rte_prefetch0(&q->path[0].peer_ip);
	rte_prefetch0(&q->ee);
}

/* The number of a QP that a module still holds: 0 once the CEU has destroyed it. */
static inline uint32_t qp_number(const struct qp *q)
{
	return __atomic_load_n(&q->qpn, __ATOMIC_RELAXED);
}

/* Entry i of a QP's results, i < max_dest_rd_atomic. */
static inline struct atomic_result *qp_result(const struct qp_table *t, struct qp *q, unsigned i)
{
	if (likely(i < RESULTS_KEPT))
		return &q->ee.results[i];
	return &t->results[(size_t)q->index * (READS_MAX - RESULTS_KEPT) + i - RESULTS_KEPT];
}

/* The places for a QP's waiting answers, ANSWERS_MAX of them. */
static inline struct answer *qp_answers(const struct qp_table *t, const struct qp *q)
{
	return &t->answers[(size_t)q->index * ANSWERS_MAX];
}

static inline struct qp *qp_at(const struct qp_table *t, uint32_t index)
{
	return &t->qps[index];
}

static inline enum qp_state qp_state(const struct qp *q)
{
	return (enum qp_state)__atomic_load_n(&q->state, __ATOMIC_ACQUIRE);
}

static inline struct qp_way qp_way(const struct qp *q)
{
	struct qp_way way;

	__atomic_load(&q->way, &way, __ATOMIC_ACQUIRE);
	return way;
}

static inline bool qp_has_alternate(struct qp_way way)
{
	return way.alternate != way.path;
}

/* A path by its number. Any lcore; not to be kept across polls. */
static inline const struct qp_path *qp_path_at(const struct qp *q, unsigned number)
{
	return likely(number < RTE_DIM(q->path)) ? &q->path[number] : q->third;
}

/* The current path. Any lcore; not to be kept across polls. */
static inline const struct qp_path *qp_path(const struct qp *q)
{
	return qp_path_at(q, qp_way(q).path);
}

/* BTH.MigReq of what is sent. */
static inline uint8_t qp_migreq(struct qp_way way)
{
	return way.migration == MIGRATION_MIGRATED;
}

/* C9-150.2.1, C9-158.2.1: a QP's own receive queue grants end-to-end credits, an SRQ grants none.
 */
static inline bool qp_may_give_credits(const struct qp *q)
{
	return q->rq && q->service == SERVICE_RC;
}

/* May a send request be executed (else: held back in SQD, flushed in ERR and SQE, an error before)?
 */
static inline bool qp_sends(enum qp_state s)
{
	return s == QP_RTS || s == QP_SQD;
}

/* Invalidates the references to payload in all packets sent so far.
 * RequesterRecvControl; the CEU, when no lcore can find the QP any more. */
static inline void qp_payload_ends(struct qp *q)
{
	__atomic_fetch_add(&q->payload_turn, 1, __ATOMIC_SEQ_CST);
}

/* May packets be received as responder? */
static inline bool qp_receives(enum qp_state s)
{
	return s == QP_RTR || s == QP_RTS || s == QP_SQD || s == QP_SQE;
}

/* Has the CEU destroyed the QP? Then the module must release it. */
static inline bool qp_closing(const struct qp *q)
{
	return __atomic_load_n(&q->qpn, __ATOMIC_ACQUIRE) == 0;
}

static inline void qp_close(struct qp *q, enum wake_target module)
{
	__atomic_or_fetch(&q->closed, 1u << module, __ATOMIC_SEQ_CST);
}

#define QP_CLOSED_ALL ((1u << WAKE_COUNT) - 1)

/*
 * Moves a UC or UD QP to SQE: a send request has failed. Receiving continues; later requests are
 * flushed until the CEU restarts the send queue (SQERR2RTS). From RTS and SQD only: false if the QP
 * is in another state, which stays. Stage segmentation, which then checks ws.parked as after each
 * turn: in SQD, WQEScheduler may hold back requests that must be flushed.
 */
bool qp_set_sqe(struct qp *q);

/*
 * Moves the QP to ERR from any state but RST and wakes every module of its engine, so that all of
 * them flush. Data path or control thread. False if it was in ERR or RST already.
 */
bool qp_set_error(struct engine *e, struct qp *q);

/*
 * A completion of the QP was lost: its CQ has overrun. A queue whose completions cannot be reported
 * has failed (IBTA volume 1, 11.6.3.1, local work queue catastrophic error): the QP goes to ERR,
 * and the client gets one event. Any stage that completes.
 */
void qp_completion_lost(struct engine *e, struct counters *c, struct qp *q);

#endif
