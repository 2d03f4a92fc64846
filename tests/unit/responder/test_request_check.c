/* SPDX-License-Identifier: BSD-3-Clause */
/* The header checks alone: each limit on both of its sides. */
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

static bool duplicate_allowed(uint32_t psn, uint32_t dma_len)
{
	a.headers.psn = psn & PSN_MASK;
	a.headers.dma_len = dma_len;
	return request_check_duplicate_read(&qp, &a);
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
