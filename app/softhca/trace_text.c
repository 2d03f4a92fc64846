/* SPDX-License-Identifier: BSD-3-Clause */
/* See trace_text.h. */
#include <stdio.h>
#include "trace_text.h"
#include "wire/opcode.h"

static const char *const kind_names[] = {
#define KIND(NAME, name) [TRACE_##NAME] = name,
#include "host-abi/capture_element.def"
};

/* ", 64 bytes", once that is known. */
static void request_text(const struct trace_record *r, char text[TRACE_TEXT_BYTES])
{
	char bytes[32] = "";

	if (r->message_bytes)
		snprintf(bytes, sizeof(bytes), ", %u bytes", (unsigned)r->message_bytes);
	snprintf(text, TRACE_TEXT_BYTES, "WQE at %u%s", (unsigned)r->wqe, bytes);
}

static void packet_text(const struct trace_record *r, char text[TRACE_TEXT_BYTES])
{
	const char *name = wire_opcode_name(r->opcode);
	char wqe[32] = "";

	if (r->wqe != TRACE_NO_WQE)
		snprintf(wqe, sizeof(wqe), ", WQE at %u", (unsigned)r->wqe);
	snprintf(text, TRACE_TEXT_BYTES, "%s, PSN %u, %u bytes%s", name ? name : "?",
		 (unsigned)r->psn, r->bytes, wqe);
}

void trace_text(const struct trace_record *r, char text[TRACE_TEXT_BYTES])
{
	if (r->kind == TRACE_REQUEST)
		request_text(r, text);
	else if (r->kind == TRACE_PACKET)
		packet_text(r, text);
	else
		snprintf(text, TRACE_TEXT_BYTES, "%s",
			 r->kind < sizeof(kind_names) / sizeof(kind_names[0]) ? kind_names[r->kind]
									      : "?");
}
