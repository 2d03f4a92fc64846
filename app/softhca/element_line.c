/* SPDX-License-Identifier: BSD-3-Clause */
/* See element_line.h. */
#include <string.h>
#include "base/pcapng.h"
#include "element_line.h"
#include "frame_line.h"
#include "host-abi/capture_element.h"
#include "trace_text.h"

/* False: the record was cut too short (-s), or is of another version. */
static bool read_element(const struct pcapng_frame *record, struct capture_element *e)
{
	if (record->captured < sizeof(*e))
		return false;
	memcpy(e, record->bytes, sizeof(*e));
	return e->version == CAPTURE_ELEMENT_VERSION;
}

void element_line(FILE *out, const struct pcapng_frame *record)
{
	struct capture_element e;
	struct trace_record what;
	char text[TRACE_TEXT_BYTES];

	print_time(out, record->time_ns);
	if (!read_element(record, &e)) {
		fprintf(out, " %u bytes\n", record->original);
		return;
	}
	what = (struct trace_record){.kind = e.kind,
				     .opcode = e.opcode,
				     .psn = e.psn,
				     .wqe = e.wqe,
				     .bytes = (uint16_t)e.length,
				     .message_bytes = e.length};
	trace_text(&what, text);
	fprintf(out, " %.12s %.8s > %.8s: QP %u, %s\n", e.channel, e.producer, e.consumer,
		(unsigned)e.qpn, text);
}

bool element_frame(const struct pcapng_frame *record, struct pcapng_frame *frame)
{
	struct capture_element e;

	if (!read_element(record, &e) || e.layer != CAPTURE_LAYER_ETHERNET)
		return false;
	*frame = *record;
	frame->bytes = (const uint8_t *)record->bytes + sizeof(e);
	frame->captured -= sizeof(e);
	frame->original -= sizeof(e);
	return true;
}
