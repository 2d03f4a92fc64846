/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_FIXTURE_H
#define ENGINE_FIXTURE_H
/*
 * One HCA with one engine, queue pairs in RTS, memory, a completion queue and a port that only
 * records frames: a test puts elements into the rings of one module, polls only that module, and
 * checks the rings behind it. Everything is reached through `fx`. Teardown closes the queue pairs
 * and proves that every mbuf was freed.
 */
#include "test.h"
#include <rte_mempool.h>
#include "hca/hca.h"
#include "host-abi/control.h"
#include "host-abi/wqe.h"
#include "link/link_port.h"
#include "pipeline/message.h"
#include "wire/aeth.h"
#include "wire/crc.h"
#include "wire/encap.h"
#include "wire/psn.h"

enum {
	FX_QPS = 8,
	FX_QPN = 0xabc000, /* of queue pair i: FX_QPN + i + 1 */
	FX_DEST_QPN = 0x770000,
	FX_PD = 7,
	FX_MTU = 1024,
	FX_KEY = 0x1201,      /* FX_MEMORY_BYTES at FX_VA, every right */
	FX_READ_KEY = 0x2202, /* the same memory, no right to write */
	FX_HUGE_KEY = 0x3303, /* 4 GiB at FX_HUGE_VA, all of them the same address space as memory:
				 never touched beyond its first FX_MEMORY_BYTES */
	FX_CQN = 0x31,
	FX_CQ_LOG = 10,
	FX_CLIENT = 3,
	FX_VA = 0x100000,
	FX_MEMORY_BYTES = 1 << 20,
	FX_SQ_BYTES = 8192,
	FX_PSN = 0xfffff0, /* so that every longer test wraps */
	FX_PACKETS = 1023,
	FX_DESCRIPTORS = 1023,
	FX_PORT_FRAMES = 512,
};
#define FX_HUGE_VA 0x100000000ull

/* Time at which a test begins. */
#define FX_START_NS 1000000000ull

struct fx_port {
	struct link_port port;
	struct rte_mbuf *rx[FX_PORT_FRAMES]; /* to receive */
	unsigned rx_count, rx_next;
	struct rte_mbuf *tx[FX_PORT_FRAMES]; /* sent; the port's references */
	unsigned tx_count;
	unsigned tx_room; /* frames that it takes in one call */
};

struct fx {
	struct hca *h;
	struct engine *e;
	struct rte_mempool *packets, *descriptors;
	struct fx_port port;
	struct qp *qp[FX_QPS];
	uint8_t *sq[FX_QPS];
	uint8_t *memory;
	struct client_page *page;
	struct cqe *cq;
	struct cq_record cq_record;
	uint32_t cq_taken, eq_taken, doorbells;
};

extern struct fx *fx;

/* Options of a test, as its initial state (TEST_OPTIONS). */
struct fx_options {
	uint32_t qps;	  /* size of the table; 0: 64 */
	unsigned engines; /* 0: 1; the queue pairs belong to the first one */
	bool ipv6, vlan;
	uint32_t timer_slots, timer_tick_ns; /* 0: the default */
	const char *name;		     /* of the test, for the record of transitions */
};

int fx_setup(void **state);
int fx_teardown(void **state);

#undef TEST
#define TEST(f)			    TEST_OPTIONS(f, (&(struct fx_options){.name = #f}))
#define TEST_OPTIONS(name, options) TEST_STATE(name, fx_setup, fx_teardown, options)

/* The path of the queue pairs: from us to the peer, or back. */
struct wire_path fx_path(bool ipv6, bool vlan, bool towards_us);
/* Fills a context as the CEU would, RC in RTS. */
void fx_make_qp(struct qp *q, uint32_t qpn, uint32_t index);
/* Changes the service of a queue pair. */
void fx_service(unsigned qp, enum qp_service service);

/*
 * A request as DataPack passes it on: one data unit of `length` bytes at FX_VA (beyond
 * FX_MEMORY_BYTES: at FX_HUGE_VA), signalled, wqe_offset as given. Not put into a ring.
 */
struct rte_mbuf *fx_request(unsigned qp, uint8_t opcode, uint32_t length, uint32_t wqe_offset);

struct rte_mbuf *fx_take(enum channel_id from);
void fx_put(enum channel_id to, struct rte_mbuf *m);
unsigned fx_ring_count(enum channel_id which);
/* Puts mbufs of the descriptor pool into the ring until `room` places are left; fx_unfill() takes
 * out whatever is in it and frees it. */
void fx_fill(enum channel_id which, unsigned room);
void fx_unfill(enum channel_id which);

/* Takes all but `leave` of a pool's mbufs, and returns them. */
void fx_exhaust(struct rte_mempool *pool, unsigned leave);
void fx_refill(void);

/* Next completion or NULL; frees its place. */
const struct cqe *fx_cqe(void);
/* The next completion is a good one of that operation and WQE. */
void fx_assert_cqe(uint8_t opcode, uint32_t wqe_offset);
/* The next completion is that error of that WQE. */
void fx_assert_error(uint8_t syndrome, uint32_t wqe_offset);
void fx_assert_no_cqe(void);

uint8_t fx_pattern(uint8_t seed, uint32_t i);
void fx_fill_memory(uint32_t offset, uint32_t bytes, uint8_t seed);
/* machine_taken(), as it should be now; a release build counts no transitions. */
static inline void fx_assert_steps(uint64_t taken, uint64_t expected)
{
#ifdef SOFTHCA_DEBUG
	assert_true(taken == expected);
#else
#endif
}

void fx_assert_pattern(const uint8_t *p, uint32_t bytes, uint8_t seed);

uint64_t fx_counter(enum counter which);
#define fx_assert_counter(name, n) assert_int_equal(fx_counter(COUNTER_##name), n)

#endif
