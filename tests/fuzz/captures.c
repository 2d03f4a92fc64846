/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures that tests read: each frame lies in the file.
 *
 * Input: a capture.
 */
#include "fuzz.h"
#include "golden.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file =
		malloc(size); /* ends with the input: a sanitizer sees what is read behind it */
	struct golden_frame *frames;
	long n;

	REQUIRE(file || !size);
	if (size)
		memcpy(file, data, size);
	n = golden_walk(file, size, NULL);
	frames = n > 0 ? calloc((size_t)n, sizeof(*frames)) : NULL;
	if (frames)
		REQUIRE(golden_walk(file, size, frames) == n);
	for (long i = 0; frames && i < n; i++)
		REQUIRE(frames[i].bytes >= file &&
			frames[i].bytes + frames[i].length <= file + size);
	free(frames);
	free(file);
	return 0;
}
