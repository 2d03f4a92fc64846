/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounded stand-in for libFuzzer: changes golden frames at random and feeds them to the fuzz entry.
 * Usage: mutate_golden [iterations [seed]]. A run is determined by its seed, which is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_parse_frame.h"
#include "golden.h"
#include "wire/encap.h"

enum { FRAME_ROOM = 8192, HEADERS = 110 };

static uint64_t random_state;

static uint32_t next_random(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 16) % below;
}

/* Makes the IPv4 header checksum right, so that what lies behind it is reached too. */
static void repair(uint8_t *frame, size_t n)
{
	unsigned int l3 = n > 18 && frame[12] == 0x81 ? 18 : 14;
	uint32_t sum = 0;
	unsigned int i;

	if (n < l3 + WIRE_IPV4_BYTES || frame[l3] != 0x45)
		return;
	frame[l3 + 10] = frame[l3 + 11] = 0;
	for (i = 0; i < WIRE_IPV4_BYTES; i += 2)
		sum += (uint32_t)frame[l3 + i] << 8 | frame[l3 + i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	wire_put_be16(frame + l3 + 10, ~sum);
}

/* Puts a VLAN tag behind the MAC addresses. */
static size_t add_vlan(uint8_t *frame, size_t n)
{
	if (n < WIRE_ETHERNET_BYTES || n + WIRE_VLAN_BYTES > FRAME_ROOM)
		return n;
	memmove(frame + 16, frame + 12, n - 12);
	memcpy(frame + 12, "\x81\x00\x00\x05", 4);
	return n + WIRE_VLAN_BYTES;
}

/* Moves the end of frame, IP and UDP together: consistent lengths, another content. */
static size_t change_length(uint8_t *frame, size_t n)
{
	unsigned int bytes = 8 + next_random(80);

	if (n < 60 + WIRE_UDP_BYTES || frame[12] != 0x08)
		return next_random((uint32_t)n + 1);
	wire_put_be16(frame + 16, bytes + WIRE_IPV4_BYTES);
	wire_put_be16(frame + 38, bytes);
	return n;
}

static size_t mutate(uint8_t *frame, size_t n)
{
	unsigned int changes = 1 + next_random(4);

	while (changes--) {
		switch (next_random(6)) {
		case 0: /* a bit of the headers */
			if (n)
				frame[next_random(n < HEADERS ? (uint32_t)n : HEADERS)] ^=
					(uint8_t)(1u << next_random(8));
			break;
		case 1: /* a byte of the headers */
			if (n)
				frame[next_random(n < HEADERS ? (uint32_t)n : HEADERS)] =
					(uint8_t)next_random(256);
			break;
		case 2: /* a cut */
			n = next_random((uint32_t)n + 1);
			break;
		case 3:
			n = change_length(frame, n);
			break;
		case 4:
			n = add_vlan(frame, n);
			break;
		case 5: /* another opcode, wherever the BTH is in IPv4 and IPv6 */
			if (n > 62)
				frame[frame[12] == 0x08 ? 42 : 62] = (uint8_t)next_random(256);
			break;
		}
	}
	if (next_random(8))
		repair(frame, n);
	return n;
}

static const struct golden_frame *pick(const struct golden *golden)
{
	const struct golden_capture *capture;

	do
		capture = &golden->captures[next_random((uint32_t)golden->count)];
	while (!capture->count);
	return &capture->frames[next_random((uint32_t)capture->count)];
}

int main(int argc, char **argv)
{
	unsigned long iterations = argc > 1 ? strtoul(argv[1], NULL, 0) : 300000;
	unsigned long results[WIRE_ERR_COUNT] = {0};
	static uint8_t frame[FRAME_ROOM];
	struct golden golden;
	unsigned long i;
	int missing = 0;

	random_state = argc > 2 ? strtoull(argv[2], NULL, 0) : 20240607;
	printf("%lu iterations, seed %llu\n", iterations, (unsigned long long)random_state);
	random_state |= 1ull << 63; /* never 0 */
	fflush(stdout);
	if (golden_load(&golden, GOLDEN_DIR)) {
		fprintf(stderr, "no captures in %s\n", GOLDEN_DIR);
		return 2;
	}
	for (i = 0; i < iterations; i++) {
		const struct golden_frame *g = pick(&golden);

		memcpy(frame, g->bytes, g->length);
		results[fuzz_parse_frame(frame, mutate(frame, g->length))]++;
	}
	for (i = 0; i < WIRE_ERR_COUNT; i++) {
		printf("%-10s %lu\n", wire_error_name((enum wire_error)i), results[i]);
		missing += !results[i];
	}
	golden_free(&golden);
	/* a run of full length that never met one of the outcomes has stopped testing it */
	return iterations >= 300000 && missing ? 1 : 0;
}
