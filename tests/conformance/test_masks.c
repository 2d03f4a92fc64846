/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every operation kind under every loss of its first packets: all masks of the first FORWARD frames
 * of the requester and the first BACK frames of the responder. As many losses as there are retries
 * must be survived; with more, the operation may fail, once, in order, and only for that reason.
 * SOFTHCA_MASKS=forward,back asks for more bits (make soak).
 */
#include "rig.h"
#include "traffic.h"

enum { MTU = 1024, RETRIES = 7 };

static unsigned forward_bits = 7, back_bits = 5;

struct step {
	uint8_t opcode;
	uint32_t bytes;
};

/* Runs these operations, posted together, under every mask. */
static void all_masks(const char *name, const struct step *steps, unsigned count)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	static struct traffic t;
	struct sim *s;
	unsigned failures = 0;

	p.memory_bytes = TRAFFIC_MEMORY;
	p.retry_cnt = RETRIES;
	s = sim_create(&p);
	for (uint32_t m = 0; m < 1u << (forward_bits + back_bits); m++) {
		uint32_t forward = m & ((1u << forward_bits) - 1), back = m >> forward_bits;

		p.psn = (0xfffffe + m) & 0xffffff;
		p.seed = m + 1;
		sim_reset(s, &p);
		s->faults.drop_mask = forward;
		s->faults.drop_mask_b = back;
		traffic_begin(&t, s, "%s, masks %#x (requester), %#x (responder), bits %u,%u", name,
			      forward, back, forward_bits, back_bits);
		t.lost_max = RETRIES;
		for (unsigned i = 0; i < count; i++)
			traffic_add(&t, 0, 0, steps[i].opcode, steps[i].bytes);
		failures += !traffic_run(&t);
	}
	sim_destroy(s);
	print_message("%s: %u masks, %u of them more than the retries bear\n", name,
		      1u << (forward_bits + back_bits), failures);
}

#define MASKS(name, ...)                                                                           \
	TEST(masks__##name)                                                                        \
	{                                                                                          \
		const struct step steps[] = {__VA_ARGS__};                                         \
                                                                                                   \
		all_masks(#name, steps, sizeof(steps) / sizeof(steps[0]));                         \
	}

MASKS(send, {USER_SEND, 100})
MASKS(send_imm, {USER_SEND_IMM, 100})
MASKS(send_of_three, {USER_SEND, 2 * MTU + 5})
MASKS(write, {USER_RDMA_WRITE, MTU})
MASKS(write_of_three, {USER_RDMA_WRITE, 3 * MTU})
MASKS(write_imm, {USER_RDMA_WRITE_IMM, 77})
MASKS(read, {USER_RDMA_READ, 100})
MASKS(read_of_four, {USER_RDMA_READ, 3 * MTU + 1})
MASKS(compare_and_swap, {USER_ATOMIC_CS, 8})
MASKS(fetch_and_add, {USER_ATOMIC_FA, 8})
MASKS(four_in_flight, {USER_SEND, 2 * MTU}, {USER_RDMA_READ, 3 * MTU}, {USER_ATOMIC_FA, 8},
      {USER_RDMA_WRITE, 2 * MTU})

static int read_choice(void **state)
{
	const char *chosen = getenv("SOFTHCA_MASKS");

	return chosen && sscanf(chosen, "%u,%u", &forward_bits, &back_bits) != 2;
}

TEST_GROUP(.setup = read_choice);
