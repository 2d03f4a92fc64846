/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz entry of wire_parse_frame(): whatever arrives, no byte outside of it is read, and a frame
 * that is accepted is consistent; what wire_parse_next() lets pass behind it is what wire_parse_frame()
 * would say. mutate_golden.c drives it in ordinary test runs, too.
 */
#include "fuzz_parse_frame.h"
#include "../fuzz.h"
#include "wire/crc.h"
#include "wire/encap.h"
#include "wire/run.h"

/* Reserved bits of BTH, DETH and AETH may be anything on the wire; they are written 0. */
static void check_written_again(const uint8_t *bth, const struct wire_headers *h)
{
	uint8_t first[WIRE_TRANSPORT_BYTES_MAX];
	uint8_t second[WIRE_TRANSPORT_BYTES_MAX];
	struct wire_headers again;
	unsigned int bytes;
	unsigned int n;

	n = wire_write_transport(first, h);
	REQUIRE(wire_read_transport(first, n, &again, &bytes) == WIRE_OK && bytes == n);
	REQUIRE(!memcmp(&again, h, sizeof(again)));
	REQUIRE(wire_write_transport(second, &again) == n && !memcmp(first, second, n));
	REQUIRE(!memcmp(first, bth, 4) && !memcmp(first + 5, bth + 5, 3));
}

static void check_accepted(const uint8_t *frame, unsigned int bytes, const struct wire_frame *f)
{
	unsigned int payload_end = f->payload_offset + f->payload_bytes;

	REQUIRE(f->l3_offset == 14 || f->l3_offset == 18);
	REQUIRE(f->transport_offset > f->l3_offset);
	REQUIRE(f->payload_offset == f->transport_offset + wire_opcodes[f->h.opcode].header_bytes);
	REQUIRE(payload_end + f->h.pad == f->transport_end);
	REQUIRE(f->transport_end + (unsigned int)WIRE_ICRC_BYTES <= bytes);
	REQUIRE(wire_guess_qpn_at(frame, bytes) == f->transport_offset + 4u);
	REQUIRE(f->src_ip >= frame && f->dst_ip + f->ip_bytes <= frame + bytes);
	check_written_again(frame + f->transport_offset, &f->h);
	/* for its reads only */
	(void)wire_icrc(frame + f->l3_offset, f->transport_end - f->l3_offset, f->is_ipv6);
}

/* Another frame, but for a bit or two of its headers, behind this one. */
static void check_next(uint8_t *frame, unsigned int bytes, const struct wire_frame *f,
		       enum wire_error error)
{
	uint32_t some = wire_icrc_load(frame + bytes - WIRE_ICRC_BYTES) ^ bytes;
	unsigned int bits = 8 * f->payload_offset;
	uint8_t *next = malloc(bytes);
	struct wire_frame want, got = *f;

	if (!next)
		abort();
	memcpy(next, frame, bytes);
	for (unsigned int i = 0; i < 1 + (some & 1); i++) {
		unsigned int bit = (some >> (1 + 13 * i)) % bits;

		next[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	if (wire_parse_next(next, frame, &got)) {
		wire_read_differing(next + got.transport_offset, &got.h);
		REQUIRE(wire_parse_frame(next, bytes, &want) == error);
		REQUIRE(!memcmp(&got.h, &want.h, sizeof(got.h)));
		REQUIRE(got.tos == want.tos && got.ttl == want.ttl && got.sport == want.sport);
		REQUIRE(got.src_ip == want.src_ip && got.dst_ip == want.dst_ip);
	}
	free(next);
}

enum wire_error fuzz_parse_frame(const uint8_t *data, size_t size)
{
	uint8_t *frame = malloc(size ? size : 1);
	struct wire_frame f;
	enum wire_error error;

	if (!frame)
		abort();
	memcpy(frame, data, size);
	REQUIRE(wire_guess_qpn_at(frame, (unsigned int)size) + 4 <= size || size < 4);
	error = wire_parse_frame(frame, (unsigned int)size, &f);
	REQUIRE((unsigned int)error < WIRE_ERR_COUNT);
	if (error == WIRE_OK)
		check_accepted(frame, (unsigned int)size, &f);
	if (error == WIRE_ERR_OPCODE || error == WIRE_ERR_TVER)
		REQUIRE(f.transport_offset + WIRE_BTH_BYTES <= f.transport_end &&
			f.transport_end + (unsigned int)WIRE_ICRC_BYTES <= size);
	if (error == WIRE_OK || error == WIRE_ERR_OPCODE)
		check_next(frame, (unsigned int)size, &f, error);
	free(frame);
	return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_parse_frame(data, size);
	return 0;
}
