/* SPDX-License-Identifier: BSD-3-Clause */
/* The header checks alone: each limit on both of its sides. */
#include <stdint.h>

#include "test.h"
#include "host-abi/control.h"
#include "request_check.h"

enum { MTU = 256 };

static const uint8_t all = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
static struct qp qp;
static struct arrival a;

static int setup(void **state)
{
	qp = (struct qp){.mtu_bytes = MTU, .max_dest_rd_atomic = 4, .access = all};
	a = (struct arrival){.headers = {.va = 4096}};
	return 0;
}

/* A packet of that many bytes, first or only with this DMA length. */
static bool allowed(uint8_t opcode, uint32_t bytes, uint32_t dma_len)
{
	enum wire_outcome o;

	a.headers.opcode = opcode;
	a.headers.dma_len = dma_len;
	a.payload_bytes = (uint16_t)bytes;
	o = request_check(&qp, &a, &wire_opcodes[opcode]);
	assert_true(o == OUTCOME_OK || o == OUTCOME_INVALID_REQUEST);
	return o == OUTCOME_OK;
}

/* One that continues the message in progress. */
static bool continues(uint8_t opcode, uint32_t bytes)
{
	return allowed(opcode, bytes, 0);
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, NULL)

/* Nothing of what the table says of such an opcode may be believed: it reads like a SEND's middle.
 */
TEST(c9_084__reserved_opcodes)
{
	for (unsigned message = EE_MESSAGE_NONE; message <= EE_MESSAGE_WRITE; message++) {
		qp.ee.message = (uint8_t)message;
		for (unsigned i = 0; i < 256; i++) {
			if (wire_opcodes[i].defined)
				continue;
			assert_false(allowed((uint8_t)i, 0, 0));
			assert_false(allowed((uint8_t)i, MTU, MTU));
		}
	}
}

TEST(c9_084__opcodes_that_are_no_requests)
{
	static const uint8_t opcodes[] = {WIRE_RC_ACK, WIRE_RC_ATOMIC_ACK, WIRE_RC_READ_RESP_ONLY,
					  WIRE_RC_READ_RESP_MIDDLE};

	for (unsigned message = EE_MESSAGE_NONE; message <= EE_MESSAGE_WRITE; message++) {
		qp.ee.message = (uint8_t)message;
		for (unsigned i = 0; i < sizeof(opcodes); i++)
			for (unsigned bytes = 0; bytes <= MTU; bytes += MTU)
				assert_false(allowed(opcodes[i], bytes, 0));
	}
}

TEST(c9_081__a_message_is_continued_or_begun)
{
	static const struct {
		uint8_t opcode, message, fits;
	} rows[] = {
		{WIRE_RC_SEND_FIRST, EE_MESSAGE_NONE, 1},
		{WIRE_RC_SEND_FIRST, EE_MESSAGE_SEND, 0},
		{WIRE_RC_SEND_FIRST, EE_MESSAGE_WRITE, 0},
		{WIRE_RC_SEND_MIDDLE, EE_MESSAGE_NONE, 0},
		{WIRE_RC_SEND_MIDDLE, EE_MESSAGE_SEND, 1},
		{WIRE_RC_SEND_MIDDLE, EE_MESSAGE_WRITE, 0},
		{WIRE_RC_WRITE_MIDDLE, EE_MESSAGE_NONE, 0},
		{WIRE_RC_WRITE_MIDDLE, EE_MESSAGE_SEND, 0},
		{WIRE_RC_WRITE_MIDDLE, EE_MESSAGE_WRITE, 1},
		{WIRE_RC_WRITE_FIRST, EE_MESSAGE_NONE, 1},
		{WIRE_RC_WRITE_FIRST, EE_MESSAGE_WRITE, 0},
		{WIRE_RC_WRITE_FIRST, EE_MESSAGE_SEND, 0},
	};

	qp.ee.write_left = 4 * MTU;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		qp.ee.message = rows[i].message;
		assert_int_equal(allowed(rows[i].opcode, MTU, 4 * MTU), rows[i].fits);
	}
}

TEST(c9_081__reads_and_atomics_stand_alone)
{
	assert_true(allowed(WIRE_RC_READ_REQUEST, 0, 1));
	assert_true(allowed(WIRE_RC_FETCH_ADD, 0, 0));
	for (unsigned message = EE_MESSAGE_SEND; message <= EE_MESSAGE_WRITE; message++) {
		qp.ee.message = (uint8_t)message;
		assert_false(allowed(WIRE_RC_READ_REQUEST, 0, 1));
		assert_false(allowed(WIRE_RC_FETCH_ADD, 0, 0));
		assert_false(allowed(WIRE_RC_CMP_SWAP, 0, 0));
	}
}

TEST(c9_092__length_of_an_only_packet)
{
	assert_true(allowed(WIRE_RC_SEND_ONLY, 0, 0));
	assert_true(allowed(WIRE_RC_SEND_ONLY, MTU, 0));
	assert_false(allowed(WIRE_RC_SEND_ONLY, MTU + 1, 0));
	assert_true(allowed(WIRE_RC_WRITE_ONLY, MTU, MTU));
	assert_false(allowed(WIRE_RC_WRITE_ONLY, MTU + 1, MTU + 1));
}

TEST(c9_092__length_of_a_last_packet)
{
	qp.ee.message = EE_MESSAGE_SEND;
	assert_false(continues(WIRE_RC_SEND_LAST, 0));
	assert_true(continues(WIRE_RC_SEND_LAST, 1));
	assert_true(continues(WIRE_RC_SEND_LAST, MTU));
	assert_false(continues(WIRE_RC_SEND_LAST, MTU + 1));
}

TEST(c9_092__length_of_a_first_or_middle_packet)
{
	static const uint32_t wrong[] = {0, MTU - 1, MTU + 1, 2 * MTU};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		qp.ee.message = EE_MESSAGE_NONE;
		assert_false(allowed(WIRE_RC_SEND_FIRST, wrong[i], 0));
		qp.ee.message = EE_MESSAGE_SEND;
		assert_false(continues(WIRE_RC_SEND_MIDDLE, wrong[i]));
	}
	assert_true(continues(WIRE_RC_SEND_MIDDLE, MTU));
}

TEST(length__no_payload_where_the_opcode_has_none)
{
	assert_false(allowed(WIRE_RC_READ_REQUEST, 4, 4));
	assert_false(allowed(WIRE_RC_FETCH_ADD, 8, 0));
}

TEST(c9_093__a_write_brings_what_was_announced)
{
	assert_true(allowed(WIRE_RC_WRITE_ONLY, 8, 8));
	assert_false(allowed(WIRE_RC_WRITE_ONLY, 8, 7));
	assert_false(allowed(WIRE_RC_WRITE_ONLY, 8, 9));
	assert_true(allowed(WIRE_RC_WRITE_FIRST, MTU, MTU + 1));
	assert_false(allowed(WIRE_RC_WRITE_FIRST, MTU, MTU));
	qp.ee.message = EE_MESSAGE_WRITE;
	qp.ee.write_left = MTU + 1;
	assert_true(continues(WIRE_RC_WRITE_MIDDLE, MTU));
	assert_false(continues(WIRE_RC_WRITE_LAST, MTU));
	qp.ee.write_left = MTU;
	assert_false(continues(WIRE_RC_WRITE_MIDDLE, MTU));
	assert_true(continues(WIRE_RC_WRITE_LAST, MTU));
	assert_false(continues(WIRE_RC_WRITE_LAST, MTU - 1));
}

TEST(c9_094__dma_length_of_two_to_the_31)
{
	assert_true(allowed(WIRE_RC_WRITE_FIRST, MTU, MESSAGE_BYTES_MAX));
	assert_false(allowed(WIRE_RC_WRITE_FIRST, MTU, MESSAGE_BYTES_MAX + 1));
	assert_true(allowed(WIRE_RC_READ_REQUEST, 0, MESSAGE_BYTES_MAX));
	assert_false(allowed(WIRE_RC_READ_REQUEST, 0, MESSAGE_BYTES_MAX + 1));
}

/* A SEND announces no length: what has come is counted. */
TEST(length__a_send_of_two_to_the_31)
{
	qp.ee.message = EE_MESSAGE_SEND;
	qp.ee.received_bytes = MESSAGE_BYTES_MAX - MTU;
	assert_true(continues(WIRE_RC_SEND_MIDDLE, MTU));
	assert_true(continues(WIRE_RC_SEND_LAST, MTU));
	qp.ee.received_bytes++;
	assert_false(continues(WIRE_RC_SEND_MIDDLE, MTU));
	assert_false(continues(WIRE_RC_SEND_LAST, MTU));
	assert_true(continues(WIRE_RC_SEND_LAST, MTU - 1));
	qp.ee.received_bytes = MESSAGE_BYTES_MAX; /* the message before: does not count any more */
	qp.ee.message = EE_MESSAGE_NONE;
	assert_true(allowed(WIRE_RC_SEND_FIRST, MTU, 0));
	assert_true(allowed(WIRE_RC_SEND_ONLY, MTU, 0));
}

TEST(c9_082__what_the_queue_pair_allows)
{
	static const uint8_t opcodes[] = {WIRE_RC_WRITE_ONLY, WIRE_RC_READ_REQUEST,
					  WIRE_RC_FETCH_ADD};
	static const uint8_t rights[] = {ACCESS_REMOTE_WRITE, ACCESS_REMOTE_READ,
					 ACCESS_REMOTE_ATOMIC};

	for (unsigned i = 0; i < 3; i++) {
		qp.access = all;
		assert_true(allowed(opcodes[i], 0, 0));
		qp.access = rights[i];
		assert_true(allowed(opcodes[i], 0, 0));
		qp.access = (uint8_t)(all & ~rights[i]);
		assert_false(allowed(opcodes[i], 0, 0));
	}
	qp.access = 0;
	assert_true(allowed(WIRE_RC_SEND_ONLY, MTU, 0));
}

TEST(c9_086__reads_and_atomics_outstanding)
{
	static const uint8_t opcodes[] = {WIRE_RC_READ_REQUEST, WIRE_RC_FETCH_ADD,
					  WIRE_RC_CMP_SWAP};

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		qp.max_dest_rd_atomic = READS_MAX;
		qp.respg.reads_done = 200; /* the counts wrap */
		qp.ee.reads_issued = (uint8_t)(200 + READS_MAX - 1);
		assert_true(allowed(opcodes[i], 0, 0));
		qp.ee.reads_issued++;
		assert_false(allowed(opcodes[i], 0, 0));
		qp.max_dest_rd_atomic = 4;
		qp.respg.reads_done = 254;
		qp.ee.reads_issued = 1;
		assert_true(allowed(opcodes[i], 0, 0));
		qp.ee.reads_issued++;
		assert_false(allowed(opcodes[i], 0, 0));
		qp.respg.reads_done++;
		assert_true(allowed(opcodes[i], 0, 0));
		qp.max_dest_rd_atomic = 0;
		assert_false(allowed(opcodes[i], 0, 0));
		qp.max_dest_rd_atomic = 4;
	}
}

TEST(atomic__address_of_eight_bytes)
{
	for (unsigned i = 0; i <= 8; i++) {
		a.headers.va = 4096 + i;
		assert_int_equal(allowed(WIRE_RC_FETCH_ADD, 0, 0), i % 8 == 0);
		assert_int_equal(allowed(WIRE_RC_CMP_SWAP, 0, 0), i % 8 == 0);
	}
}

static bool duplicate_allowed(uint32_t psn, uint32_t dma_len)
{
	a.headers.psn = psn & PSN_MASK;
	a.headers.dma_len = dma_len;
	return request_check_duplicate_read(&qp, &a);
}

TEST(c9_108__duplicate_read_within_what_was_executed)
{
	qp.ee.expected_psn = 2;
	assert_true(duplicate_allowed(1, 1));
	assert_true(duplicate_allowed(1, 0));
	assert_true(duplicate_allowed(1, MTU));
	assert_false(duplicate_allowed(1, MTU + 1));
	assert_true(duplicate_allowed(0xffffff, 3 * MTU));
	assert_false(duplicate_allowed(0xffffff, 3 * MTU + 1));
	qp.access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
	assert_false(duplicate_allowed(1, 1));
}

/* With a large MTU its packets would fit into the range executed. */
TEST(c9_108__duplicate_read_of_more_than_two_to_the_31)
{
	qp.mtu_bytes = 4096;
	qp.ee.expected_psn = PSN_WINDOW;
	assert_true(duplicate_allowed(0, MESSAGE_BYTES_MAX));
	assert_false(duplicate_allowed(0, MESSAGE_BYTES_MAX + 1));
	assert_false(duplicate_allowed(0, UINT32_MAX));
}
