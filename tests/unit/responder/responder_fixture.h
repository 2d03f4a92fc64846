/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_FIXTURE_H
#define RESPONDER_FIXTURE_H
/*
 * An engine with one responder and a few QPs. Everything is reached through `fx`. MTU 256; memory
 * registered twice: rkey with all rights, and read-only; receive queue of RQ_ENTRIES descriptors,
 * data units chosen by the test.
 */
#include "test.h"
#include <rte_mempool.h>
#include "base/counters.h"
#include "completion/completion.h"
#include "context/qp_context.h"
#include "host-abi/control.h"
#include "host-abi/wqe.h"
#include "pipeline/message.h"
#include "responder/responder.h"
#include "virt-to-phys/v2p.h"
#include "wire/aeth.h"
#include "wire/crc.h"
#include "wire/encap.h"
#include "wire/psn.h"

enum {
	FX_QPN = 0xabc01,
	FX_QPN2 = 0xabc02,
	FX_DEST_QPN = 0x77,
	FX_PD = 7,
	FX_MTU = 256,
	FX_KEY = 0x1201,
	FX_READ_KEY = 0x2202,
	FX_CQN = 0x31,
	FX_CLIENT = 3,
	FX_VA = 0x100000,
	FX_MEMORY_BYTES = 1 << 16,
	FX_RQ_ENTRIES = 4,
	FX_RQ_STRIDE = 64,
	FX_PSN = 0xfffffe, /* so that every longer test wraps */
	FX_FRAMES = 512,
};

/* A frame that was sent. */
struct fx_frame {
	struct wire_headers h;
	uint32_t bytes;
	uint8_t payload[4096];
};

struct fx {
	struct engine e;
	struct qp_table qps;
	struct v2p v2p;
	struct v2p_port port;
	struct completion completion;
	struct rte_mempool *rx;
	struct qp *qp, *qp2;
	uint8_t *memory;
	uint8_t rq[FX_RQ_ENTRIES * 512];
	struct qp_record record, record2;
	struct cqe cq[128];
	struct cq_record cq_record;
	uint32_t cq_taken;
	struct client_page *page;
	uint32_t eq_taken;
	struct fx_frame frames[FX_FRAMES];
	unsigned frame_count, frame_next;
	bool keep_rx; /* the frames are shared: check that they were not written to */
	bool ipv6;
};

extern struct fx *fx;

int fx_setup(void **state);
int fx_teardown(void **state);

/* The name goes to fx_setup(), for the record of transitions. */
#undef TEST
#define TEST(name) TEST_WITH(name, fx_setup, fx_teardown)

/* Puts a request into HP_EE: headers as they are except for dest_qp and pad; payload: a pattern
 * that begins with `seed`. */
void fx_send_to(uint32_t qpn, struct wire_headers h, uint32_t payload_bytes, uint8_t seed);
#define fx_send(bytes, seed, ...)                                                                  \
	fx_send_to(FX_QPN, (struct wire_headers){__VA_ARGS__}, bytes, seed)
/* A WRITE of four bytes to FX_VA that asks for an acknowledgement. */
struct wire_headers fx_write(uint32_t psn);
/* A READ request for that many packets, such a WRITE. */
void fx_send_read(uint32_t qpn, uint32_t psn, uint32_t packets);
void fx_send_write(uint32_t qpn, uint32_t psn, uint32_t key);
uint8_t fx_pattern(uint8_t seed, uint32_t i);
void fx_assert_pattern(const uint8_t *p, uint32_t bytes, uint8_t seed);

/* Polls the stage `times` times and collects its output. Returns the sum of the polls' results. */
unsigned fx_poll(unsigned times);
/* Collects the output so far. */
void fx_collect(void);
/* The next frame collected; fails the test if there is none. */
const struct fx_frame *fx_frame(void);
void fx_assert_no_frame(void);
/* The next frame is an Acknowledge with these. */
void fx_assert_ack(uint32_t psn, uint8_t syndrome, uint32_t msn);

/* Posts a receive descriptor with these data units. */
void fx_post(unsigned units, const struct wqe_data *data);
/* Posts one whose only data unit is `bytes` at FX_VA + offset. */
void fx_post_simple(uint32_t offset, uint32_t bytes);
/* The next completion; NULL if there is none. */
const struct cqe *fx_cqe(void);
void fx_assert_cqe(uint8_t opcode, uint32_t byte_count, uint32_t imm_or_error, uint32_t wqe_offset);
void fx_assert_no_cqe(void);
/* The next event is this one. */
void fx_assert_event(enum eqe_type type, uint32_t number);
void fx_assert_no_event(void);
uint64_t fx_counter(enum counter which);
#define fx_assert_counter(name, n) assert_int_equal(fx_counter(COUNTER_##name), n)

#endif
