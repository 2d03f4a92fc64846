/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CM_CAPTURE_H
#define TESTS_UNIT_CM_CAPTURE_H
/* What two kernels said to each other while rping ran on them: tests/golden/cm_rping.pcap. */
#include <errno.h>
#include <string.h>

#include "cm/mad.h"
#include "golden.h"
#include "wire/encap.h"

enum { REQ, REP, RTU, DREQ, DREP, MESSAGES };

/* Fills messages[MESSAGES], in this order. 0; -errno. */
static inline int capture_load(struct cm_message *messages)
{
	struct golden golden;
	int count = 0;
	size_t c, i;

	if (golden_load(&golden, GOLDEN_DIR))
		return -ENOENT;
	for (c = 0; c < golden.count; c++) {
		for (i = 0; i < golden.captures[c].count; i++) {
			const struct golden_frame *g = &golden.captures[c].frames[i];
			struct wire_frame f;

			if (wire_parse_frame(g->bytes, g->length, &f) || f.h.dest_qp != 1)
				continue;
			if (count == MESSAGES || cm_mad_parse(g->bytes + f.payload_offset,
							 f.payload_bytes, &messages[count++]))
				count = MESSAGES + 1;
		}
	}
	golden_free(&golden);
	return count == MESSAGES ? 0 : -EINVAL;
}

#endif
