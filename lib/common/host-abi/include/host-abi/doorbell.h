/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_DOORBELL_H
#define HOST_ABI_DOORBELL_H
/*
 * The doorbell and the page that carries it.
 *
 * A client has one UAR page of 4 KiB for each engine: a FIFO of 64-bit doorbells that only it
 * produces and only that engine's DoorbellProcessing consumes. A queue pair's doorbells go to its
 * engine, which the reply to CREATE_QP names; elsewhere they are refused. A doorbell names the first
 * descriptor of one post call; the descriptors' next units link the rest. Little-endian, written
 * with one 64-bit store (release).
 *
 *   word 0   31:8  offset of the first WQE in the send queue, 16-byte units
 *            7     phase (ours; reserved in the modelled hardware): the entry is valid when it
 *                  differs from the phase of the previous round; the first round has 1
 *            5     F, fence
 *            4:0   user opcode of that WQE
 *   word 1   31:8  QPN
 *            7:0   size of that WQE, 16-byte units
 */
#include <stdint.h>
#include <assert.h>

#define UAR_BYTES     4096
#define UAR_PAGES     8 /* of one client: engines that an HCA may have */
#define UAR_DOORBELLS 256

#define DOORBELL_OFFSET_SHIFT 8
#define DOORBELL_PHASE	      (1u << 7)
#define DOORBELL_FENCE	      (1u << 5)
#define DOORBELL_OPCODE_MASK  0x1fu
#define DOORBELL_QPN_SHIFT    8
#define DOORBELL_SIZE_MASK    0xffu

struct uar_page {
	uint32_t consumer_index; /* daemon writes: doorbells taken since the page was set up */
	uint8_t pad0[60];
	uint32_t daemon_asleep; /* daemon writes; nonzero: kick after the doorbell */
	/* Daemon writes: the CPU of the lcore that takes these doorbells, plus 1; 0: not known. A
	 * client that polls an empty CQ there yields. */
	uint32_t daemon_cpu;
	uint8_t pad1[56];
	uint32_t client_cpu;	/* client writes: where it rang last, plus 1; 0: not known */
	uint32_t client_yields; /* client writes; nonzero: it yields between polls of an empty CQ */
	uint8_t pad2[56];
	uint8_t reserved[UAR_BYTES - 192 - UAR_DOORBELLS * 8];
	uint64_t doorbell[UAR_DOORBELLS]; /* client writes */
};
static_assert(sizeof(struct uar_page) == UAR_BYTES, "one page");

#define EQ_ENTRIES 1024

/* Event types (EQE type byte). */
enum eqe_type {
	EQE_COMPLETION = 0x00, /* number = CQN */
	EQE_PATH_MIG = 0x01,   /* number = QPN, also below unless noted */
	EQE_COMM_EST = 0x02,
	EQE_SQ_DRAINED = 0x03,
	EQE_CQ_ERROR = 0x04, /* number = CQN */
	EQE_WQ_CATAS_ERROR = 0x05,
	EQE_LOCAL_CATAS_ERROR = 0x08, /* number = 0: the device */
	EQE_PORT_CHANGE = 0x09,	      /* number = 1: up, 0: down */
	EQE_GID_CHANGE = 0x0a,	      /* number = 0: the port's GIDs have changed */
	EQE_WQ_INVAL_REQ_ERROR = 0x10,
	EQE_WQ_ACCESS_ERROR = 0x11,
	/* ours: */
	EQE_SRQ_ERROR = 0x12,	 /* number = SRQN: failed, its count was impossible */
	EQE_LAST_WQE = 0x13,	 /* a QP with an SRQ, in ERR, has completed its last descriptor */
	EQE_PATH_MIG_ERR = 0x15, /* the peer asked for a path that is not the alternate one */
	EQE_SRQ_LIMIT = 0x14,	 /* number = SRQN: fewer descriptors than the limit are left */
};

/* An event queue entry, 16 bytes. */
struct eqe {
	uint32_t number;
	uint8_t type;
	uint8_t reserved[10];
	uint8_t owner; /* phase: valid when 1 in the first round of the ring, 0 in the second, and
				so on; memory starts as 0 */
};
static_assert(sizeof(struct eqe) == 16, "event queue entry");

/*
 * What a client shares with HELLO: one sealed memfd of exactly sizeof(struct client_page). The
 * daemon produces events, the client consumes them. After writing entries the daemon rings the
 * client's bell (control.h) if `waiting` is set, and clears it.
 */
struct client_page {
	struct uar_page uar[UAR_PAGES]; /* by engine; only those of its queue pairs are used */
	uint32_t eq_consumer;		/* client writes: entries taken, free running */
	uint32_t waiting; /* client sets before it sleeps on its bell; daemon clears */
	uint8_t pad[4088];
	struct eqe eq[EQ_ENTRIES];
};
static_assert(sizeof(struct client_page) == UAR_PAGES * UAR_BYTES + 4096 + EQ_ENTRIES * 16,
	      "client page layout");

/*
 * Doorbell records: 64-byte lines in client memory next to the queues, aligned to 64.
 */
struct qp_record {
	uint32_t rq_posted; /* client writes: receive WQEs posted since RST, free running */
	uint8_t pad[60];
};
static_assert(sizeof(struct qp_record) == 64, "one cache line");

struct srq_record {
	uint32_t posted; /* client writes: receive WQEs posted since creation, free running */
	uint8_t pad[60];
};
static_assert(sizeof(struct srq_record) == 64, "one cache line");

/*
 * Two cache lines: the index changes with every poll, arming is rare. A new value of either count
 * arms once; the event disarms both. So arming for solicited completions does not weaken a CQ that
 * is armed for any (IBTA 11.4.2.2).
 */
struct cq_record {
	uint32_t consumer_index; /* client writes: entries taken, free running */
	uint8_t pad0[60];
	uint32_t arm_next;	/* client writes: times armed for the next completion */
	uint32_t arm_solicited; /* client writes: times armed for the next solicited or failed */
	uint8_t pad1[56];
};
static_assert(sizeof(struct cq_record) == 128, "two cache lines");

#endif
