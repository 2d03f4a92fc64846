/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CM_CAPTURE_H
#define TESTS_UNIT_CM_CAPTURE_H
/* The messages of two kernels while rping ran on them: tests/golden/cm_rping.pcap. */
#include <errno.h>
#include <string.h>

#include "cm/mad.h"
#include "golden.h"
#include "wire/encap.h"

enum { REQ, REP, RTU, DREQ, DREP, MESSAGES };

/* Where capture_next() continues; zeroes: at the first frame. */
struct capture_place {
	size_t capture, frame;
};

/* The next MAD to QP 1 in all captures, inside of golden, and its frame; NULL: no more. */
static inline const uint8_t *capture_next(const struct golden *golden, struct capture_place *at,
					  struct wire_frame *f)
{
	for (; at->capture < golden->count; at->capture++, at->frame = 0) {
		const struct golden_capture *c = &golden->captures[at->capture];

		while (at->frame < c->count) {
			const struct golden_frame *g = &c->frames[at->frame++];

			if (!wire_parse_frame(g->bytes, g->length, f) && f->h.dest_qp == 1)
				return g->bytes + f->payload_offset;
		}
	}
	return NULL;
}

/* Fills messages[MESSAGES], in this order. 0; -errno. */
static inline int capture_load(struct cm_message *messages)
{
	struct capture_place at = {0, 0};
	struct golden golden;
	struct wire_frame f;
	const uint8_t *mad;
	int count = 0;

	if (golden_load(&golden, GOLDEN_DIR))
		return -ENOENT;
	while (count <= MESSAGES && (mad = capture_next(&golden, &at, &f)))
		if (count == MESSAGES || cm_mad_parse(mad, f.payload_bytes, &messages[count++]))
			count = MESSAGES + 1;
	golden_free(&golden);
	return count == MESSAGES ? 0 : -EINVAL;
}

#endif
