/* SPDX-License-Identifier: BSD-3-Clause */
/* How losses are made good: what is sent again, how often, how soon. */
#include "rig.h"

enum { OUTSTANDING = 32, BYTES = 65536 };

struct loss {
	uint64_t from, count;
};

static bool lose(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	const struct loss *l = arg;

	return from == 0 && s->end[0].sent - l->from < l->count;
}

/* Keeps OUTSTANDING WRITEs of 16 packets going until `messages` have completed; from packet
 * `from` on, `count` packets are lost. */
static struct sim *stream(unsigned messages, uint64_t from, uint64_t count)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = {
		.opcode = USER_RDMA_WRITE, .remote = 1 << 20, .sge = {{0, BYTES, 0}}, .sges = 1};
	struct loss loss = {from, count};
	unsigned posted = 0, done = 0;
	struct sim *s;
	struct cqe c;

	p.mtu = 5;
	p.timeout = 14;
	p.packets = 16383;
	s = sim_create(&p);
	s->tap = lose;
	s->tap_arg = &loss;
	while (done < messages) {
		while (posted - done < OUTSTANDING && posted < messages) {
			sim_post(s, 0, 0, &wr);
			posted++;
		}
		sim_step(s);
		while (sim_poll_cq(s, 0, &c)) {
			assert_int_equal(c.opcode, USER_RDMA_WRITE);
			done++;
		}
	}
	s->tap = NULL;
	return s;
}

/* Packets made before the retransmission go before it, those made after it behind it: one loss is
 * one NAK, and no packet comes twice. */
static void recovery__one_loss_draws_one_nak_and_no_duplicate(void **state)
{
	for (unsigned at = 2000; at < 2064; at += 7) {
		struct sim *s = stream(400, at, 1);

		assert_int_equal(sim_counter(s, 0, COUNTER_nak_sequence_received), 1);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
		assert_int_equal(sim_counter(s, 1, COUNTER_duplicate_requests), 0);
		rig_end(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_TEST(recovery__one_loss_draws_one_nak_and_no_duplicate),
	};

	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
