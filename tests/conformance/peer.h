/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFORMANCE_PEER_H
#define CONFORMANCE_PEER_H
/*
 * Helpers of the requester's tests: the rig, whose peer has announced that it
 * gives no credits; requests, and the packets expected for them; READ
 * responses. Path MTU 256, so that messages of many packets are short.
 */
#include "rig.h"

enum {
	PEER_PSN = 0x100,
	PEER_MTU = 256,
	PEER_FAR = 1 << 20, /* target of requests in the peer's memory */
	PEER_INTO = 1 << 19 /* target of the results of READs and atomics */
};

/* RC, MTU 256, both retry counters 7, a Loss timer of 67 ms. */
struct sim_params peer_params(void);
/* The rig with them; the peer has announced, by an unsolicited ACK, that it
 * gives no credits, and counts as one that answers (rrc.proven), so that much
 * may be outstanding. Memory of both sides is filled with a pattern. */
struct sim *peer_create(const struct sim_params *p);
struct sim *peer_make(void);
#define TEST_PEER(name) RIG_TEST(name, peer_make())
/* With parameters p: see RIG_TEST_WITH(). */
#define TEST_PEER_WITH(name, ...) RIG_TEST_WITH(name, peer_params(), peer_create, __VA_ARGS__)
/* The same, but the peer has sent nothing yet. */
struct sim *peer_create_without_credits(const struct sim_params *p);
#define TEST_PEER_SILENT(name, ...)                                                                \
	RIG_TEST_WITH(name, peer_params(), peer_create_without_credits, __VA_ARGS__)

/* A signaled request of that length: from memory at 0 (into PEER_INTO for READs
 * and atomics). */
struct sim_wr peer_wr(uint8_t opcode, uint32_t bytes);
/* Posts it on QP 0. */
uint32_t peer_post(struct sim *s, uint8_t opcode, uint32_t bytes);
/* These requests (struct sim_wr *) on QP 0: all are posted; the packets of each follow, from that PSN on; or both. What
 * expects returns the PSN behind them. */
#define peer_posts(s, ...)	     peer_post_list(s, PEER_LIST(__VA_ARGS__))
#define peer_expect_all(s, psn, ...) peer_expect_list(s, psn, PEER_LIST(__VA_ARGS__))
#define peer_sends(s, psn, ...)                                                                    \
	(peer_post_list(s, PEER_LIST(__VA_ARGS__)), peer_expect_all(s, psn, __VA_ARGS__))
#define PEER_LIST(...)                                                                             \
	(const struct sim_wr *const[]){__VA_ARGS__},                                               \
		sizeof((const struct sim_wr *const[]){__VA_ARGS__}) / sizeof(struct sim_wr *)
void peer_post_list(struct sim *s, const struct sim_wr *const *wr, unsigned n);
uint32_t peer_expect_list(struct sim *s, uint32_t psn, const struct sim_wr *const *wr, unsigned n);

/* A positive acknowledgement without credits on QP 0. */
void peer_ack(struct sim *s, uint32_t psn, uint32_t msn);
void peer_nak(struct sim *s, uint32_t psn, uint8_t code, uint32_t msn);
void peer_rnr(struct sim *s, uint32_t psn, uint8_t timer, uint32_t msn);
/* Responses first .. last (by index) of a READ of `bytes` at PEER_FAR with that
 * PSN. */
void peer_read_responses(struct sim *s, uint32_t psn, uint32_t bytes, uint32_t first, uint32_t last,
			 uint32_t msn);
/* One of nothing: the answer to FLUSH and ATOMIC WRITE. */
void peer_empty_response(struct sim *s, uint32_t psn, uint32_t msn);
void peer_atomic_response(struct sim *s, uint32_t psn, uint64_t orig, uint32_t msn);

/* The next packets are this request on QP 0, from that PSN on: opcodes,
 * lengths, pads, headers, payload. Returns the PSN behind it (behind its
 * responses, for a READ). *last: its last packet. */
uint32_t peer_expect(struct sim *s, const struct sim_wr *wr, uint32_t psn, struct rig_packet *last);
/* The same for packet number `from` on. */
uint32_t peer_expect_from(struct sim *s, const struct sim_wr *wr, uint32_t psn, uint32_t from,
			  struct rig_packet *last);

/* The completion of that request, in error. */
void peer_expect_error(struct sim *s, uint8_t syndrome, uint32_t wqe_offset);
/* That of request number `failed`, and then those behind it, to `end` - 1, which are flushed. */
void peer_expect_failed(struct sim *s, uint8_t syndrome, unsigned failed, unsigned end);
/* Bytes of a request's message. */
uint32_t peer_length(const struct sim_wr *wr);

#endif
