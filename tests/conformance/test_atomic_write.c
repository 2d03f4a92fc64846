/* SPDX-License-Identifier: BSD-3-Clause */
/* ATOMIC WRITE (annex A19 of the standard). The responder: valid requests, ordering, answers,
 * duplicates. The requester: its packets, retransmission, completion. */
#include "peer.h"

enum { PSN = 0x100, AT = 4096 };
static const uint64_t VALUE = 0x1122334455667788;

/* ---- the responder ---- */

static uint64_t *word(struct sim *s)
{
	return (uint64_t *)(s->node[0].memory + AT);
}

static void write_word(struct sim *s, uint32_t psn, uint64_t value)
{
	rig_send(s, rig_headers(s, 0, WIRE_RC_ATOMIC_WRITE, psn, AT, sizeof(value)), &value,
		 sizeof(value));
}

TEST_RC(atomic_write__is_written_and_answered)
{
	write_word(s, PSN, VALUE);
	rig_expect_empty(s, PSN, 1);
	assert_true(*word(s) == VALUE);
	rig_untouched(s, AT - 8, 8);
	rig_untouched(s, AT + 8, 8);
	assert_int_equal(rig_epsn(s, 0), PSN + 1);
}

/* Earlier requests are acknowledged first, and a READ behind it returns the word. */
TEST_RC(atomic_write__keeps_the_order)
{
	struct rig_packet p;

	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64, 64);
	write_word(s, PSN + 1, VALUE);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN + 2, AT, 16, 0);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_expect_empty(s, PSN + 1, 2);
	p = rig_expect(s, WIRE_RC_READ_RESP_ONLY, PSN + 2);
	assert_memory_equal(p.payload, &VALUE, 8);
	assert_memory_equal(p.payload + 8, s->node[0].memory + AT + 8, 8);
}

/* oA19-28 and the checks of a WRITE. */
TEST(atomic_write__what_is_refused)
{
	static const struct {
		const char *what;
		uint32_t at, dma_len, bytes, access;
		uint32_t rights; /* of the queue pair; 0: all */
		enum aeth_nak code;
	} rows[] = {
		{"misaligned", AT + 4, 8, 8, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"misaligned by one", AT + 1, 8, 8, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"short", AT, 4, 4, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"nothing", AT, 0, 0, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"long", AT, 16, 16, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"longer than announced", AT, 8, 12, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"less than announced", AT, 8, 4, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"no right to write on the queue pair", AT, 8, 8, 0,
		 ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC, AETH_NAK_INVALID_REQUEST},
		{"no right to write in the region", AT, 8, 8,
		 ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC, 0,
		 AETH_NAK_REMOTE_ACCESS},
		{"outside of the region", AT + 64, 8, 8, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE,
		 0, AETH_NAK_REMOTE_ACCESS},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		struct wire_headers h;
		struct sim *s;

		p.no_credits = true;
		if (rows[i].rights)
			p.access = (uint16_t)rows[i].rights;
		s = rig_create(&p);
		h = rig_headers(s, 0, WIRE_RC_ATOMIC_WRITE, PSN, rows[i].at, rows[i].dma_len);
		if (rows[i].access)
			h.rkey = rig_region(s, AT, 64, rows[i].access, 0);
		print_message("%s\n", rows[i].what);
		rig_send(s, h, NULL, rows[i].bytes);
		rig_expect_refusal(s, 0, PSN, rows[i].code, 0);
		rig_untouched(s, AT, 128);
		rig_end(s);
	}
}

/* C9-81: it is a separate message. */
TEST_RC(atomic_write__is_in_no_other_message)
{
	rig_request(s, 0, WIRE_RC_WRITE_FIRST, PSN, AT + 4096, 2048, 1024);
	rig_expect_ack(s, PSN, aeth_ack(0), 0);
	write_word(s, PSN + 1, VALUE);
	rig_expect_refusal(s, 0, PSN + 1, AETH_NAK_INVALID_REQUEST, 0);
	rig_untouched(s, AT, 8);
}

/* C9-86: it takes one of the resources that READs and atomics take. */
TEST_RIG_WITH(atomic_write__takes_a_resource, p.no_credits = true, p.max_rd_atomic = 1, p.mtu = 1)
{
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN, AT, 1 << 20, 0);
	write_word(s, PSN + 4096, VALUE);
	rig_expect_responses(s, PSN, 4096);
	rig_expect_refusal(s, 0, PSN + 4096, AETH_NAK_INVALID_REQUEST, 1);
}

/* As of atomics (o9-66, o9-67): answered from what is remembered, not executed again. */
TEST_RIG_WITH(atomic_write__duplicates, p.no_credits = true, p.max_rd_atomic = 4)
{
	for (uint32_t i = 0; i < 5; i++) {
		write_word(s, PSN + i, VALUE + i);
		rig_expect_empty(s, PSN + i, i + 1);
	}
	*word(s) = 7;
	for (uint32_t i = 1; i < 5; i++) {
		write_word(s, PSN + i, VALUE + i);
		rig_expect_empty(s, PSN + i, 5);
	}
	write_word(s, PSN, VALUE); /* too long ago */
	rig_silent(s, MS);
	assert_true(*word(s) == 7);
	assert_int_equal(rig_epsn(s, 0), PSN + 5);
}

/* ---- the requester ---- */

/* From entries and inline; bytes beyond eight are not sent. */
TEST_PEER(atomic_write__sends_eight_bytes)
{
	static const struct {
		bool is_inline;
		unsigned sges;
		struct sim_sge sge[2];
	} rows[] = {{false, 1, {{64, 8, 0}}},
		    {true, 1, {{64, 8, 0}}},
		    {false, 2, {{64, 3, 0}, {67, 5, 0}}},
		    {false, 1, {{64, 100, 0}}},
		    {true, 1, {{64, 20, 0}}}};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_wr wr = {.opcode = USER_ATOMIC_WRITE,
				    .remote = PEER_FAR,
				    .is_inline = rows[i].is_inline,
				    .sges = rows[i].sges,
				    .sge = {rows[i].sge[0], rows[i].sge[1]}};
		uint32_t at = sim_post(s, 0, 0, &wr);
		struct rig_packet p = rig_expect(s, 0x1d, PSN + i);

		assert_int_equal(p.bytes, 8);
		assert_memory_equal(p.payload, s->node[0].memory + 64, 8);
		assert_int_equal(p.h.va, (uintptr_t)s->node[1].memory + PEER_FAR);
		assert_int_equal(p.h.rkey, s->node[1].key);
		assert_int_equal(p.h.dma_len, 8);
		assert_int_equal(p.h.ackreq, 1);
		assert_int_equal(sim_counter(s, 0, COUNTER_request_bytes), 8 * (i + 1));
		rig_quiet(s, 100 * US);
		peer_empty_response(s, PSN + i, i + 1);
		rig_expect_cqe(s, USER_ATOMIC_WRITE, 0, at);
	}
}

/* It is sent again with its original bytes, whatever the client has stored in its buffer since; an
 * acknowledgement of a later request shows that the answer was lost. */
TEST(atomic_write__goes_again)
{
	for (int by_timer = 0; by_timer < 2; by_timer++) {
		struct sim *s = peer_make();
		struct sim_wr wr = peer_wr(USER_ATOMIC_WRITE, 8), next = peer_wr(USER_SEND, 8);
		uint8_t data[8];
		struct rig_packet p;

		memcpy(data, s->node[0].memory, 8);
		peer_sends(s, PSN, &wr);
		peer_sends(s, PSN + 1, &next);
		memset(s->node[0].memory, 0xee, 8);
		if (!by_timer)
			peer_ack(s, PSN + 1, 2);
		assert_true(rig_recv(s, &p, 200 * MS));
		assert_int_equal(p.h.opcode, 0x1d);
		assert_int_equal(p.h.psn, PSN);
		assert_int_equal(p.h.dma_len, 8);
		assert_int_equal(p.bytes, 8);
		assert_memory_equal(p.payload, data, 8);
		assert_true(p.icrc_right);
		rig_expect(s, 0x04, PSN + 1);
		peer_empty_response(s, PSN, 1);
		peer_ack(s, PSN + 1, 2);
		rig_expect_done(s, 0, USER_ATOMIC_WRITE, USER_SEND);
		rig_end(s);
	}
}

TEST_PEER(atomic_write__wrong_answers)
{
	uint32_t at = peer_post(s, USER_ATOMIC_WRITE, 8);
	struct sim_wr wr = peer_wr(USER_ATOMIC_WRITE, 8);

	peer_expect(s, &wr, PSN, NULL);
	peer_atomic_response(s, PSN, 5, 1);
	sim_run(s, 100 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_resp_opcode), 1);
	rig_no_cqe(s);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_ONLY, PSN, 1, NULL, 8);
	peer_expect_error(s, SYNDROME_BAD_RESP, at);
}

TEST(atomic_write__bad_requests)
{
	static const struct {
		struct sim_sge sge;
		bool is_inline;
		uint8_t syndrome;
	} rows[] = {{{0, 7, 0}, false, SYNDROME_LOCAL_LENGTH},
		    {{0, 7, 0}, true, SYNDROME_LOCAL_LENGTH},
		    {{0, 0, 0}, false, SYNDROME_LOCAL_LENGTH},
		    {{0, 8, 0x1234}, false, SYNDROME_LOCAL_PROT}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim *s = peer_make();
		struct sim_wr wr = {.opcode = USER_ATOMIC_WRITE,
				    .remote = PEER_FAR,
				    .is_inline = rows[i].is_inline,
				    .sges = 1,
				    .sge = {rows[i].sge}};
		uint32_t at = sim_post(s, 0, 0, &wr);

		peer_expect_error(s, rows[i].syndrome, at);
		rig_silent(s, MS);
		rig_end(s);
	}
}

/* No more are outstanding than the peer has resources for. */
TEST_PEER_WITH(atomic_write__waits_for_a_resource, p.max_rd_atomic = 1)
{
	struct sim_wr wr = peer_wr(USER_ATOMIC_WRITE, 8);

	peer_posts(s, &wr, &wr);
	peer_expect(s, &wr, PSN, NULL);
	rig_silent(s, 100 * US);
	peer_empty_response(s, PSN, 1);
	peer_expect(s, &wr, PSN + 1, NULL);
	peer_empty_response(s, PSN + 1, 2);
	rig_expect_done(s, 0, USER_ATOMIC_WRITE, USER_ATOMIC_WRITE);
}
