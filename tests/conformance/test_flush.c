/* SPDX-License-Identifier: BSD-3-Clause */
/* FLUSH (annex A19 of the standard). The responder: valid requests, when it answers, duplicates.
 * The requester: its packets, retransmission, completion. */
#include "peer.h"

enum { PSN = 0x100, AT = 4096, BYTES = 1024 };
enum { ALL = WIRE_FLUSH_GLOBAL | WIRE_FLUSH_PERSISTENT };

/* ---- the responder ---- */

/* A rig whose queue pairs allow what `access` says beside READs, WRITEs and atomics. */
static struct sim *make(uint16_t access, uint8_t reads)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.no_credits = true;
	p.access |= access;
	p.max_rd_atomic = reads;
	return rig_create(&p);
}

#define TEST_FLUSH(name) RIG_TEST(name, make(ACCESS_FLUSH_GLOBAL, 16))

/* A FLUSH of BYTES bytes of a region that begins at AT and may be flushed. */
static struct wire_headers flush_headers(struct sim *s, uint32_t psn)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_FLUSH, psn, AT, 0);

	h.rkey = rig_region(s, AT, BYTES, ACCESS_FLUSH_GLOBAL, 0);
	h.swap_add = BYTES;
	h.compare = WIRE_FLUSH_GLOBAL;
	return h;
}

/* The WRITEs before it are acknowledged before, and their data are there when its answer is;
 * whatever holds them up. */
TEST_RIG_WITH(flush__is_answered_when_all_before_is_placed, p.no_credits = true,
	      p.access |= ACCESS_FLUSH_GLOBAL, p.paged = p.busy = true)
{
	struct wire_headers h = flush_headers(s, PSN);

	for (uint32_t i = 0; i < 64; i++) {
		struct wire_headers write = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, h.psn,
							AT + (uint64_t)i * BYTES, BYTES);

		rig_send(s, write, NULL, BYTES);
		h.psn++;
		rig_send(s, h, NULL, 0);
		rig_expect_empty(s, h.psn++, 2 * i + 2);
		rig_holds_pattern(s, AT + (uint64_t)i * BYTES, BYTES);
	}
	assert_int_equal(rig_epsn(s, 0), h.psn);
}

TEST(flush__what_is_answered)
{
	static const struct {
		const char *what;
		uint64_t at, bytes, feth;
	} rows[] = {
		{"a range", AT, BYTES, WIRE_FLUSH_GLOBAL},
		{"its last byte", AT + BYTES - 1, 1, WIRE_FLUSH_GLOBAL},
		{"no bytes, of which no address matters", 7, 0, WIRE_FLUSH_GLOBAL},
		{"a whole region, of which neither address nor length matters", 7, 1 << 31,
		 WIRE_FLUSH_GLOBAL | WIRE_FLUSH_REGION},
		{"what is reserved is set", AT, BYTES, 0xffffffc0 | WIRE_FLUSH_GLOBAL},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim *s = make(ACCESS_FLUSH_GLOBAL, 16);
		struct wire_headers h = flush_headers(s, PSN);

		print_message("%s\n", rows[i].what);
		h.va = s->node[0].va + rows[i].at;
		h.swap_add = rows[i].bytes;
		h.compare = rows[i].feth;
		rig_send(s, h, NULL, 0);
		rig_expect_empty(s, PSN, 1);
		rig_untouched(s, AT, BYTES);
		rig_end(s);
	}
}

/* oA19-2 (no payload), and what soft-RoCE refuses. */
TEST(flush__what_is_refused)
{
	static const struct {
		const char *what;
		uint64_t at, bytes, feth;
		uint16_t rights; /* of the queue pair; 0: to flush for everybody to see */
		uint32_t access; /* of the region; 0: the same */
		uint32_t payload;
		enum aeth_nak code;
	} rows[] = {
		{"payload", AT, BYTES, WIRE_FLUSH_GLOBAL, 0, 0, 4, AETH_NAK_INVALID_REQUEST},
		{"no placement type", AT, BYTES, 0, 0, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"an unknown one", AT, BYTES, 4 | WIRE_FLUSH_GLOBAL, 0, 0, 0,
		 AETH_NAK_INVALID_REQUEST},
		{"an unknown level", AT, BYTES, 2 << 4 | WIRE_FLUSH_GLOBAL, 0, 0, 0,
		 AETH_NAK_INVALID_REQUEST},
		{"too long", AT, (1ull << 31) + 1, WIRE_FLUSH_GLOBAL, 0, 0, 0,
		 AETH_NAK_INVALID_REQUEST},
		{"not allowed by the queue pair", AT, BYTES, WIRE_FLUSH_GLOBAL, ACCESS_REMOTE_WRITE,
		 0, 0, AETH_NAK_INVALID_REQUEST},
		{"one of two not allowed by it", AT, BYTES, ALL, 0, 0, 0, AETH_NAK_INVALID_REQUEST},
		{"not allowed by the region", AT, BYTES, WIRE_FLUSH_GLOBAL, 0,
		 ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, 0, AETH_NAK_REMOTE_ACCESS},
		{"persistent", AT, BYTES, WIRE_FLUSH_PERSISTENT,
		 ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT, 0, 0, AETH_NAK_REMOTE_ACCESS},
		{"both", AT, BYTES, ALL, ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT, 0, 0,
		 AETH_NAK_REMOTE_ACCESS},
		{"beyond the region", AT, BYTES + 1, WIRE_FLUSH_GLOBAL, 0, 0, 0,
		 AETH_NAK_REMOTE_ACCESS},
		{"before it", AT - 1, 1, WIRE_FLUSH_GLOBAL, 0, 0, 0, AETH_NAK_REMOTE_ACCESS},
		{"no bytes, not allowed", AT, 0, WIRE_FLUSH_GLOBAL, 0, ACCESS_REMOTE_READ, 0,
		 AETH_NAK_REMOTE_ACCESS},
		{"a whole region, not allowed", AT, BYTES, WIRE_FLUSH_GLOBAL | WIRE_FLUSH_REGION, 0,
		 ACCESS_REMOTE_READ, 0, AETH_NAK_REMOTE_ACCESS},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim *s = make(rows[i].rights ? rows[i].rights : ACCESS_FLUSH_GLOBAL, 16);
		struct wire_headers h = flush_headers(s, PSN);

		print_message("%s\n", rows[i].what);
		h.va = s->node[0].va + rows[i].at;
		h.swap_add = rows[i].bytes;
		h.compare = rows[i].feth;
		if (rows[i].access)
			h.rkey = rig_region(s, AT, BYTES, rows[i].access, 0);
		rig_send(s, h, NULL, rows[i].payload);
		rig_expect_refusal(s, 0, PSN, rows[i].code, 0);
		rig_end(s);
	}
}

/* C9-81: it is a separate message. */
TEST_FLUSH(flush__is_in_no_other_message)
{
	rig_request(s, 0, WIRE_RC_WRITE_FIRST, PSN, AT + 4096, 2048, 1024);
	rig_expect_ack(s, PSN, aeth_ack(0), 0);
	rig_send(s, flush_headers(s, PSN + 1), NULL, 0);
	rig_expect_refusal(s, 0, PSN + 1, AETH_NAK_INVALID_REQUEST, 0);
}

/* oA19-14, oA19-15: answered again, whatever became of the key, and however many there were since. */
RIG_TEST(flush__duplicates, make(ACCESS_FLUSH_GLOBAL, 4))
{
	struct wire_headers h = flush_headers(s, PSN);

	for (uint32_t i = 0; i < 6; i++, h.psn++) {
		rig_send(s, h, NULL, 0);
		rig_expect_empty(s, h.psn, i + 1);
	}
	rig_revoke(s, h.rkey);
	for (uint32_t i = 0; i < 6; i++) {
		h.psn = PSN + i;
		rig_send(s, h, NULL, 0);
		rig_expect_empty(s, h.psn, 6);
	}
	assert_int_equal(rig_epsn(s, 0), PSN + 6);
}

/* Peers that do not count it as a READ (soft-RoCE) may send any number: it takes no resource of a
 * READ, nor the place of an atomic's result. */
RIG_TEST(flush__takes_no_resource, make(ACCESS_FLUSH_GLOBAL, 1))
{
	enum { FLUSHES = 20, READ = 64 }; /* packets of the READ */
	struct wire_headers h = flush_headers(s, PSN + 1 + READ), atomic;
	struct rig_packet p;

	*(uint64_t *)(s->node[0].memory + AT) = 4711;
	atomic = rig_headers(s, 0, WIRE_RC_FETCH_ADD, PSN, AT, 0);
	atomic.swap_add = 1;
	rig_send(s, atomic, NULL, 0);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN + 1, AT, READ * 1024, 0);
	for (uint32_t i = 0; i < FLUSHES; i++, h.psn++)
		rig_send(s, h, NULL, 0);
	rig_expect_responses(s, PSN + 1, READ);
	for (uint32_t i = 0; i < FLUSHES; i++)
		rig_expect_empty(s, PSN + 1 + READ + i, 3 + i);
	rig_send(s, atomic, NULL, 0);
	p = rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN);
	assert_true(p.h.orig == 4711);
}

/* One that was another operation the first time gets nothing. */
TEST_FLUSH(flush__duplicate_of_another_kind)
{
	rig_send(s, flush_headers(s, PSN), NULL, 0);
	rig_expect_empty(s, PSN, 1);
	rig_send(s, rig_headers(s, 0, WIRE_RC_FETCH_ADD, PSN, AT, 0), NULL, 0);
	rig_silent(s, MS);
	rig_untouched(s, AT, 8);
}

/* ---- the requester ---- */

static struct sim_wr request(uint64_t bytes, uint64_t feth)
{
	struct sim_wr wr = peer_wr(USER_FLUSH, 0);

	wr.sges = 0;
	wr.swap_add = bytes;
	wr.compare = feth;
	return wr;
}

/* FETH, then RETH; no payload (oA19-2). Nothing but its answer completes it. */
TEST_PEER(flush__goes_out)
{
	static const struct {
		uint32_t bytes;
		uint8_t feth;
	} rows[] = {{0x10203040, 0x01}, {0, 0x02}, {0xffffffff, 0x13}};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_wr wr = request(rows[i].bytes, rows[i].feth);
		uint32_t at = sim_post(s, 0, 0, &wr);
		struct rig_packet p = rig_expect(s, 0x1c, PSN + i);
		const uint8_t feth[4] = {0, 0, 0, rows[i].feth};
		uint32_t length = __builtin_bswap32(rows[i].bytes);

		assert_int_equal(p.bytes, 0);
		assert_int_equal(p.h.ackreq, 1);
		assert_int_equal(p.h.va, (uintptr_t)s->node[1].memory + PEER_FAR);
		assert_int_equal(p.h.rkey, s->node[1].key);
		assert_memory_equal(p.payload - 20, feth, 4);
		assert_memory_equal(p.payload - 4, &length, 4);
		rig_quiet(s, 100 * US);
		peer_empty_response(s, PSN + i, i + 1);
		rig_expect_cqe(s, USER_FLUSH, 0, at);
	}
}

/* Lost, it is sent again unchanged, by the timer, or when a later request is acknowledged. */
TEST(flush__goes_again)
{
	for (int by_timer = 0; by_timer < 2; by_timer++) {
		struct sim *s = peer_make();
		struct sim_wr wr = request(4711, WIRE_FLUSH_GLOBAL | WIRE_FLUSH_REGION);
		struct sim_wr next = peer_wr(USER_SEND, 8);
		struct rig_packet p;

		sim_post(s, 0, 0, &wr);
		rig_expect(s, 0x1c, PSN);
		peer_sends(s, PSN + 1, &next);
		if (!by_timer)
			peer_ack(s, PSN + 1, 2);
		assert_true(rig_recv(s, &p, 200 * MS));
		assert_int_equal(p.h.opcode, 0x1c);
		assert_int_equal(p.h.psn, PSN);
		assert_int_equal(p.bytes, 0);
		assert_int_equal(p.h.va, (uintptr_t)s->node[1].memory + PEER_FAR);
		assert_int_equal(p.h.swap_add, 4711);
		assert_int_equal(p.h.compare, WIRE_FLUSH_GLOBAL | WIRE_FLUSH_REGION);
		assert_true(p.icrc_right);
		rig_expect(s, 0x04, PSN + 1);
		peer_empty_response(s, PSN, 1);
		peer_ack(s, PSN + 1, 2);
		rig_expect_done(s, 0, USER_FLUSH, USER_SEND);
		rig_end(s);
	}
}

/* Data have no place in it. */
TEST(flush__bad_requests)
{
	for (int is_inline = 0; is_inline < 2; is_inline++) {
		struct sim *s = peer_make();
		struct sim_wr wr = request(64, WIRE_FLUSH_GLOBAL);

		wr.sges = 1;
		wr.sge[0].length = 8;
		wr.is_inline = is_inline;
		peer_expect_error(s, SYNDROME_LOCAL_QP_OP, sim_post(s, 0, 0, &wr));
		rig_silent(s, MS);
		rig_end(s);
	}
}

/* No more are outstanding than the peer has resources for. */
TEST_PEER_WITH(flush__waits_for_a_resource, p.max_rd_atomic = 1)
{
	struct sim_wr wr = request(64, WIRE_FLUSH_GLOBAL);

	peer_posts(s, &wr, &wr);
	rig_expect(s, 0x1c, PSN);
	rig_silent(s, 100 * US);
	peer_empty_response(s, PSN, 1);
	rig_expect(s, 0x1c, PSN + 1);
	peer_empty_response(s, PSN + 1, 2);
	rig_expect_done(s, 0, USER_FLUSH, USER_FLUSH);
}
