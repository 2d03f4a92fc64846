/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames into a whole HCA whose queue pairs are in all states.
 *
 * Input: frames, each behind its length (16 bits), whose top bit says that it comes in one burst with the
 * next. frames_mutator.c keeps most of them well formed.
 */
#include "world.h"

enum { INPUT_FRAME_BYTES = 1200, INPUT_FRAMES = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};

	world_start();
	for (unsigned int i = 0; b.left && i < INPUT_FRAMES; i++) {
		uint16_t length = fuzz_u16(&b);
		size_t bytes = length & ~WORLD_BURST;
		const uint8_t *frame = fuzz_take(&b, &bytes);

		if (bytes < 14 || bytes > INPUT_FRAME_BYTES)
			continue;
		sim_wire_send(world, 1, frame, (unsigned int)bytes);
		if (!(length & WORLD_BURST))
			world_run(1);
	}
	world_restore();
	return 0;
}
