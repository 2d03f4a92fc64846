/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's rules: what an HCA sends, and what it makes of what comes back. */
#include "rig.h"

enum { PSN = 0x100, FAR = 1 << 20 };

static struct sim_wr write_of(uint32_t bytes)
{
	return (struct sim_wr){
		.opcode = USER_RDMA_WRITE, .remote = FAR, .sge = {{0, bytes, 0}}, .sges = 1};
}

static void c9_065__first_request_has_the_initial_psn(void **state)
{
	struct sim *s = rig_make(SERVICE_RC);
	struct sim_wr wr = write_of(64);
	uint32_t at = sim_post(s, 0, 0, &wr);

	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_ack(s, 0, PSN, aeth_ack(AETH_CREDIT_INVALID), 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, at);
	rig_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_TEST(c9_065__first_request_has_the_initial_psn),
	};

	return cmocka_run_group_tests_name("requester", tests, NULL, NULL);
}
