/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the packets of a train one by one, for code that wants to see each. Any lcore. */
#include "pipeline/train.h"
#include "wire/encap.h"

bool train_write_packet(uint8_t *frame, const struct rte_mbuf *m, uint32_t index, uint32_t *skip)
{
	const uint8_t *first = rte_pktmbuf_mtod(m, const uint8_t *), *part;
	uint32_t headers;
	struct wire_frame f;

	*skip = 0;
	memcpy(frame, first, m->data_len);
	if (frame_packets(m) == 1)
		return true;
	if (wire_parse_frame(first, m->data_len, &f) != WIRE_OK)
		return false;
	wire_take_place(frame, &f, index, index + 1 == frame_packets(m));
	if (m->ol_flags & PAYLOAD_REF) {
		*skip = index * f.payload_bytes;
	} else if (index) {
		headers = wire_extension_bytes(f.h.opcode);
		part = train_part(first + f.payload_offset, f.h.opcode, f.payload_bytes, index);
		memcpy(frame + f.payload_offset - headers, part, headers + f.payload_bytes);
	}
	return true;
}
