/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICRCs of the headers of a run (wire/run.h). From one packet to the next, PSN and IPv4
 * identification count up by one: the ones at their low end flip, and the zero in front of them. A
 * CRC is linear, so how that changes it depends on the number of those ones alone. The tables are
 * filled before main() and only read afterwards.
 */
#include "wire/crc.h"
#include "wire/run.h"

#include "base/assert.h"
#include "bytes.h"
#include "wire/psn.h"

#define ACKREQ ((uint32_t)WIRE_BTH_ACKREQ << 24) /* in the word that ends with the PSN */

enum { PSN_BITS = 24, IP_ID_BITS = 16, IP_ID_AT = 4 };

static uint32_t psn_steps[PSN_BITS + 1];
static uint32_t ip_id_steps[IP_ID_BITS + 1];
static uint32_t ackreq_set;

/* What XORing `word` onto the 32 bits `at` bytes into IPv4 headers does to the state after them. */
static uint32_t change(unsigned int at, uint32_t word)
{
	uint8_t headers[WIRE_IPV4_BYTES + WIRE_UDP_BYTES + WIRE_BTH_BYTES] = {0};

	put_be32(headers + at, word);
	return wire_crc(0, headers, sizeof(headers));
}

__attribute__((constructor)) static void fill_steps(void)
{
	const unsigned int psn_at = wire_bth_at(false) + WIRE_BTH_ALIKE_BYTES;
	unsigned int ones;

	wire_crc_init();
	for (ones = 0; ones <= PSN_BITS; ones++)
		psn_steps[ones] = change(psn_at, ((2u << ones) - 1) & PSN_MASK);
	for (ones = 0; ones <= IP_ID_BITS; ones++)
		ip_id_steps[ones] = change(IP_ID_AT, ((2u << ones) - 1) << 16);
	ackreq_set = change(psn_at, ACKREQ);
}

void wire_icrc_headers_run(const uint8_t *l3, unsigned int header_bytes, bool ipv6, uint32_t index,
			   uint32_t n, bool end, uint32_t *states)
{
	unsigned int bth = wire_bth_at(ipv6), behind = header_bytes - bth - WIRE_BTH_BYTES;
	uint32_t word = get_be32(l3 + bth + WIRE_BTH_ALIKE_BYTES), psn = word & PSN_MASK;
	uint32_t ip_id = get_be16(l3 + IP_ID_AT), ask = 0, state, i;

	ASSERT(!behind || index + n == 1);
	if (word & ACKREQ)
		ask = behind ? wire_crc_combine(ackreq_set, 0, behind) : ackreq_set;
	state = wire_icrc_headers(l3, header_bytes, ipv6) ^ ask;
	for (i = 0; i < index + n; i++, psn++, ip_id++) {
		if (i >= index)
			states[i - index] = state;
		state ^= psn_steps[__builtin_ctz(~psn | 1u << PSN_BITS)];
		if (!ipv6)
			state ^= ip_id_steps[__builtin_ctz(~ip_id | 1u << IP_ID_BITS)];
	}
	if (end)
		states[n - 1] ^= ask;
}
