/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer with hundreds of queue pairs takes all it can get; beside it, one queue pair of another
 * client performs one operation after another. Its service is measured in rounds and in virtual
 * time: nothing depends on the speed of a machine.
 */
#include "requester/requester.h"
#include "rig.h"

enum {
	BUFFERS = 2047, /* packet buffers, in all */
	WIRE_ROOM = 64, /* frames on their way at most */
};

/* `qps` queue pairs, the last one the victim's. */
static struct sim_params crowd(unsigned qps)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.qps = qps;
	p.own = qps - 1;
	p.mtu = 5;
	p.packets = BUFFERS;
	p.no_credits = true;
	return p;
}

/* One READ of several packets; requests of a node lie side by side. */
static struct sim_wr read_of(uint32_t bytes)
{
	return (struct sim_wr){
		.opcode = USER_RDMA_READ, .remote = 1 << 20, .sge = {{0, bytes, 0}}, .sges = 1};
}

/* All requests of one side, as fast as its doorbells and completions allow. */
static void run_all(struct sim *s, unsigned qps, unsigned each, const struct sim_wr *wr)
{
	unsigned posted = 0, done = 0, all = qps * each;
	uint64_t end = s->now_ns + 100 * MS;
	struct cqe c;

	while (done < all) {
		for (unsigned n = 0; n < 32 && posted < all && posted - done < 900; n++, posted++)
			sim_post(s, 0, posted % qps, wr);
		sim_step(s);
		while (sim_poll_cq(s, 0, &c)) {
			assert_int_equal(c.opcode, wr->opcode);
			done++;
		}
		assert_true(s->now_ns < end);
	}
}

/* READs of 200 queue pairs wait at their peer, of each as many as may be outstanding, more than
 * there are packet buffers: none is turned away, so none has to be sent again. */
TEST(crowd__reads_of_many)
{
	struct sim_params p = crowd(201);
	struct sim_wr wr = read_of(16384);
	struct sim *s = sim_create(&p);

	s->wire_room = WIRE_ROOM;
	run_all(s, 200, 16, &wr);
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
	rig_end(s);
}
