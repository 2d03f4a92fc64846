/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFORMANCE_RIG_H
#define CONFORMANCE_RIG_H
/*
 * One whole HCA (node 0 of a simulation) and a test that acts as its peer (node 1), packet by
 * packet: packets in, packets out, completions, events, context fields. Virtual time.
 *
 * A test is named after its rule: c9_079__..., see tests/conformance/rules; TEST() and RIG_TEST()
 * register it under this name for the matrix and the record of transitions.
 */
#include "test.h"
#include "pipeline/machine.h"
#include "sim.h"
#include "wire/aeth.h"
#include "wire/encap.h"
#include "wire/psn.h"

#define US 1000ull
#define MS 1000000ull

/* A packet that left the HCA, parsed; the frame stays valid until the next rig_recv(). */
struct rig_packet {
	struct wire_headers h;
	const uint8_t *payload;
	uint32_t bytes;
	uint64_t at_ns; /* when it left */
	uint16_t sport;
	uint8_t src_ip[16], dst_ip[16];
	uint8_t tos, ttl;
	int tci; /* of its VLAN tag; -1: it has none */
	bool icrc_right;
};

/* Makes the HCA under test with p->qps queue pairs, connected to the test. Initial PSNs of both
 * directions: p->psn. It does not probe before it knows a round trip: a test may take its time. */
struct sim *rig_create(const struct sim_params *p);
/* The same with the defaults except the service, and without end-to-end credits, so that there are
 * no unsolicited acknowledgements (C9-155: posting receives would cause one). */
struct sim *rig_make(enum qp_service service);
/* Asserts that nothing is left over (buffers, ring places), then destroys it. */
void rig_end(struct sim *s);

/* ---- packets into the HCA ---- */

/* A request or response for QP `qp` of the HCA with that opcode and PSN, P_Key, Q_Key and source
 * right, WRITE, READ and atomics at `remote` (offset in node 0's memory, its own key, dma_len);
 * SEND with invalidate: a fresh key that may be invalidated. */
struct wire_headers rig_headers(struct sim *s, unsigned qp, uint8_t opcode, uint32_t psn,
				uint64_t remote, uint32_t dma_len);

/* Sends it with a payload (NULL: a pattern). The HCA gets it with the next rig_recv(), rig_silent()
 * or sim_run(). h.pad is filled in unless rig_force_pad was set; a reserved opcode goes as a BTH
 * alone, then payload. Checksums and ICRC are right. */
void rig_send(struct sim *s, struct wire_headers h, const void *payload, uint32_t bytes);
/* For the next packet only: this pad count, whatever the length. */
void rig_force_pad(struct sim *s, unsigned pad);

/* For the next packet only: a wrong ICRC. */
void rig_bad_icrc(struct sim *s);

/* From now on, or no longer: along the alternate path. */
void rig_alternate(struct sim *s, bool alternate);
/* From its far end, but not to its near end. */
void rig_alternate_end(struct sim *s);

/* For the next packet only: this traffic class. */
void rig_traffic_class(struct sim *s, uint8_t traffic_class);

/* Shorthands. A request with AckReq set. */
void rig_request(struct sim *s, unsigned qp, uint8_t opcode, uint32_t psn, uint64_t remote,
		 uint32_t dma_len, uint32_t bytes);
void rig_write(struct sim *s, uint32_t psn, uint64_t remote, uint32_t bytes);
void rig_read(struct sim *s, uint32_t psn, uint64_t remote, uint32_t bytes);
/* A WRITE, which is acknowledged at once. */
void rig_written(struct sim *s, uint32_t psn, uint64_t remote, uint32_t bytes, uint32_t msn);
/* An acknowledgement with that syndrome (aeth_ack(31), aeth_nak(...), aeth_rnr(...)). */
void rig_ack(struct sim *s, unsigned qp, uint32_t psn, uint8_t syndrome, uint32_t msn);
/* A READ response with that payload (NULL: a pattern). */
void rig_read_response(struct sim *s, unsigned qp, uint8_t opcode, uint32_t psn, uint32_t msn,
		       const void *payload, uint32_t bytes);

/* ---- packets out of the HCA ---- */

/* The next packet; false: none within `ns`. */
bool rig_recv(struct sim *s, struct rig_packet *out, uint64_t ns);
/* The next packet must come within 1 ms and have this opcode and PSN. */
struct rig_packet rig_expect(struct sim *s, uint8_t opcode, uint32_t psn);
/* The next packet must be an Acknowledge with this PSN and syndrome (credits ignored for ACKs) and
 * MSN. */
struct rig_packet rig_expect_ack(struct sim *s, uint32_t psn, uint8_t syndrome, uint32_t msn);
/* The same, a NAK. */
struct rig_packet rig_expect_nak(struct sim *s, uint32_t psn, enum aeth_nak code, uint32_t msn);
/* The next packets must be the whole answer to a READ, of that many packets, from that PSN on. */
void rig_expect_responses(struct sim *s, uint32_t psn, uint32_t packets);
/* A READ response without payload, as FLUSH and ATOMIC WRITE draw it. */
void rig_expect_empty(struct sim *s, uint32_t psn, uint32_t msn);
/* No packet within `ns`. */
void rig_silent(struct sim *s, uint64_t ns);

/* ---- the client of the HCA ---- */

/* The next completion must come within 200 ms and be this one; opcode USER_INVALID: syndrome is
 * checked. */
struct cqe rig_expect_cqe(struct sim *s, uint8_t opcode, uint8_t syndrome, uint32_t wqe_offset);
/* Requests of QP 0 complete well, in order: those with the numbers `first` to `end` - 1, of one opcode... */
void rig_expect_same(struct sim *s, unsigned first, unsigned end, uint8_t opcode);
/* ... or those from number `first` on with these opcodes. */
#define rig_expect_done(s, first, ...)                                                             \
	rig_expect_list(s, first, (const uint8_t[]){__VA_ARGS__},                                  \
			sizeof((const uint8_t[]){__VA_ARGS__}))
void rig_expect_list(struct sim *s, unsigned first, const uint8_t *opcodes, unsigned n);
/* No completion is there now. */
void rig_no_cqe(struct sim *s);
/* Neither a packet nor a completion within `ns`. */
void rig_quiet(struct sim *s, uint64_t ns);
/* The next event must be there and be this one. */
void rig_expect_event(struct sim *s, enum eqe_type type, uint32_t number);
void rig_no_event(struct sim *s);

/* Moves the QP to RST and from there to RTS again, by s->params; packets, completions and events in
 * flight are dropped. */
void rig_reconnect(struct sim *s, unsigned qp);
/* Another key for `length` bytes of node 0's memory at `offset`, in its client's domain unless pd
 * is not 0; addresses as those of the memory. */
uint32_t rig_region(struct sim *s, uint64_t offset, uint64_t length, uint32_t access, uint32_t pd);
/* A key at node 1, if it is a whole HCA: the addresses of `bytes` of its memory from `offset` on are
 * those of its memory at `at`. */
uint32_t rig_peer_region(struct sim *s, uint64_t offset, uint64_t at, uint32_t bytes);
/* A key that a peer may invalidate, to be written and read. */
uint32_t rig_window(struct sim *s, uint64_t offset, uint64_t length);
/* Revokes a key (HW2SW_MPT). */
void rig_revoke(struct sim *s, uint32_t key);
/* Revokes the key of a READ of node 0's memory from its first byte on, whose FIRST response, with
 * PSN `psn`, was the last of the `received` ones; then inverts the memory. The responses that were
 * made by then must still come, with the old bytes. Returns the PSN of the first that was not. */
uint32_t rig_revoke_midway(struct sim *s, uint32_t key, uint32_t psn, uint32_t received);
/* Node 0's memory there holds what rig_send() sends without a payload; or nothing but zeros. */
void rig_holds_pattern(struct sim *s, uint64_t offset, uint32_t bytes);
void rig_untouched(struct sim *s, uint64_t offset, uint32_t bytes);
/* EPSN, state and MSN as the context has them. */
uint32_t rig_epsn(struct sim *s, unsigned qp);
enum qp_state rig_state(struct sim *s, unsigned qp);

/* The responder refused the request of that PSN fatally: a NAK, then silence; the QP is in ERR,
 * EPSN is unchanged, and its client has the event. */
void rig_expect_refusal(struct sim *s, unsigned qp, uint32_t psn, enum aeth_nak code, uint32_t msn);

/* ---- names ---- */

int rig_begin_test(void **state); /* gives the record of transitions the test's name */
#undef TEST
#define TEST(name) TEST_WITH(name, rig_begin_test, NULL)
/* A case on its own simulation, s, that `made` makes and `end` ends. */
#define SIM_TEST(name, made, end)                                                                  \
	static void name##_on(struct sim *s);                                                      \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct sim *s = made;                                                              \
                                                                                                   \
		name##_on(s);                                                                      \
		end(s);                                                                            \
	}                                                                                          \
	static void name##_on(struct sim *s)
/* On a rig. */
#define RIG_TEST(name, made) SIM_TEST(name, made, rig_end)
#define TEST_RC(name)	     RIG_TEST(name, rig_make(SERVICE_RC))
/* The same with parameters p, which begin as `defaults` and are then changed: TEST_RIG_WITH(name, p.psn = 5, p.mtu = 1). */
#define RIG_TEST_WITH(name, defaults, create, ...)                                                 \
	static struct sim *name##_made(void)                                                       \
	{                                                                                          \
		struct sim_params p = defaults;                                                    \
                                                                                                   \
		__VA_ARGS__;                                                                       \
		return create(&p);                                                                 \
	}                                                                                          \
	RIG_TEST(name, name##_made())
#define TEST_RIG_WITH(name, ...)                                                                   \
	RIG_TEST_WITH(name, (struct sim_params)SIM_PARAMS_DEFAULT, rig_create, __VA_ARGS__)
/* Settings for p.settings: the defaults, until the next call. */
struct engine_settings *rig_settings(void);

#endif
