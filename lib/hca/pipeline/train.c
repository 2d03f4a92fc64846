/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the packets of a train one by one, for code that wants to see each. Any lcore. */
#include "pipeline/train.h"
#include "wire/encap.h"

bool train_write_packet(uint8_t *frame, const struct rte_mbuf *m, uint32_t index, uint32_t *skip)
{
	const uint8_t *first = rte_pktmbuf_mtod(m, const uint8_t *), *payload, *part;
	uint32_t headers, bytes;
	struct wire_frame f;
	bool icrcs;

	*skip = 0;
	memcpy(frame, first, m->data_len);
	if (frame_packets(m) == 1)
		return true;
	if (wire_parse_frame(first, m->data_len, &f) != WIRE_OK)
		return false;
	icrcs = !(m->ol_flags & ICRC_OMITTED);
	payload = first + f.payload_offset;
	wire_take_place(frame + f.l3_offset, f.is_ipv6, index, index + 1 == frame_packets(m));
	if (m->ol_flags & PAYLOAD_REF) {
		*skip = index * f.payload_bytes;
		if (icrcs)
			memcpy(frame + f.transport_end, train_icrc(payload, index),
			       WIRE_ICRC_BYTES);
	} else if (index) {
		headers = wire_extension_bytes(f.h.opcode);
		bytes = icrcs ? f.transport_end - f.payload_offset + WIRE_ICRC_BYTES
			      : f.payload_bytes;
		part = payload +
		       train_part_at(train_parts(f.h.opcode, f.payload_bytes, icrcs), index);
		memcpy(frame + f.payload_offset - headers, part, headers + bytes);
	}
	return true;
}
