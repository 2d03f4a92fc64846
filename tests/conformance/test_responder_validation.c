/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's rules: what an HCA makes of requests, and what it answers. */
#include "rig.h"

enum { PSN = 0x100, AT = 4096 };

static void c9_079__gap_draws_a_nak_with_the_expected_psn(void **state)
{
	struct sim *s = rig_make(SERVICE_RC);

	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 100, 100);
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN + 2, AT + 100, 100, 100);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_expect_ack(s, PSN + 1, aeth_nak(AETH_NAK_SEQUENCE), 1);
	rig_silent(s, MS);
	assert_int_equal(s->node[0].memory[AT + 100], 0); /* not executed */
	assert_int_equal(sim_context(s, 0, 0)->ee.expected_psn, PSN + 1);
	rig_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_TEST(c9_079__gap_draws_a_nak_with_the_expected_psn),
	};

	return cmocka_run_group_tests_name("responder", tests, NULL, NULL);
}
