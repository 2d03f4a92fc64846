/* SPDX-License-Identifier: BSD-3-Clause */
/* Every form of the CRC against ISA-L: all lengths, any alignment, nothing touched outside. */
#include <pthread.h>

#include "test.h"
#include <isa-l/crc.h>

#include "guard.h"
#include "wire/crc.h"
#include "wire/psn.h"
#include "wire/run.h"

enum { LENGTH_MAX = 5000 };

typedef uint32_t (*copy_function)(uint32_t, void *, const void *, size_t);

static uint8_t bytes[LENGTH_MAX + 128];
static uint32_t seed = 1;

static uint32_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static int setup(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)next_random();
	return 0;
}

/* Runs a test in each form that this CPU can do. */
static void each_form(void (*test)(void))
{
	const char *chosen = wire_crc_name();
	const char *form;
	unsigned int i;

	for (i = 0; (form = wire_crc_form(i)); i++) {
		int error = wire_crc_select(form);

		if (error) {
			assert_int_equal(error, -ENOTSUP);
			print_message("no %s here\n", form);
			continue;
		}
		assert_string_equal(wire_crc_name(), form);
		test();
	}
	assert_int_equal(wire_crc_select(chosen), 0);
}

static uint32_t reference(uint32_t state, const uint8_t *p, size_t n)
{
	return ~crc32_gzip_refl(~state, (unsigned char *)(uintptr_t)p, n);
}

static void all_lengths(void)
{
	uint8_t *guard = guard_new();
	size_t n;

	for (n = 0; n <= LENGTH_MAX; n++) {
		const uint8_t *p = bytes + next_random() % 64;
		uint32_t state = next_random();
		uint32_t want = reference(state, p, n);

		assert_int_equal(wire_crc(state, p, n), want);
		assert_int_equal(wire_crc(state, guard_copy(guard, p, n), n), want);
	}
	guard_free(guard);
}

TEST(crc__all_lengths)
{
	each_form(all_lengths);
}

static void copy_lengths(copy_function copy)
{
	static uint8_t dst[LENGTH_MAX + 256];
	uint8_t *source_guard = guard_new();
	uint8_t *dst_guard = guard_new();
	size_t n;

	for (n = 0; n <= LENGTH_MAX; n++) {
		const uint8_t *p = bytes + next_random() % 64;
		uint8_t *d = dst + 64 + next_random() % 64;
		uint32_t state = next_random();
		uint32_t want = reference(state, p, n);

		memset(dst, 0x5a, sizeof(dst));
		assert_int_equal(copy(state, d, p, n), want);
		assert_memory_equal(d, p, n);
		assert_true(d[-1] == 0x5a && d[n] == 0x5a);
		assert_int_equal(copy(state, dst_guard - n, guard_copy(source_guard, p, n), n),
				 want);
		assert_memory_equal(dst_guard - n, p, n);
	}
	guard_free(source_guard);
	guard_free(dst_guard);
}

static void copy_all_lengths(void)
{
	copy_lengths(wire_crc_ops.crc_copy);
}

static void copy_nt_all_lengths(void)
{
	copy_lengths(wire_crc_ops.crc_copy_nt);
}

TEST(crc_copy__all_lengths)
{
	each_form(copy_all_lengths);
}

TEST(crc_copy_nt__all_lengths)
{
	each_form(copy_nt_all_lengths);
}

/* A client that writes into its buffer while it is being read. */
static uint8_t shared[4096];
static volatile int stop;

static void *scribble(void *arg)
{
	volatile uint8_t *p = shared;
	size_t i;
	uint8_t v = 0;

	while (!stop)
		for (i = 0, v++; i < sizeof(shared); i++)
			p[i] = v;
	return NULL;
}

static void copy_of_changing_source(void)
{
	static uint8_t dst[sizeof(shared)];
	unsigned int i;

	for (i = 0; i < 4000; i++) {
		size_t n = 1 + next_random() % sizeof(shared);
		uint32_t state = wire_crc_copy(0, dst, shared, n);

		assert_int_equal(state, reference(0, dst, n));
		state = wire_crc_copy_nt(0, dst, shared, n);
		assert_int_equal(state, reference(0, dst, n));
	}
}

TEST(crc_copy__sums_what_it_stored)
{
	pthread_t thread;

	stop = 0;
	assert_int_equal(pthread_create(&thread, NULL, scribble, NULL), 0);
	each_form(copy_of_changing_source);
	stop = 1;
	pthread_join(thread, NULL);
}

static void combine_all_lengths(void)
{
	size_t n;

	for (n = 0; n <= LENGTH_MAX; n++) {
		size_t head = next_random() % 100;
		uint32_t state = next_random();
		uint32_t a = reference(state, bytes, head);
		uint32_t b = reference(0, bytes + head, n);

		assert_int_equal(wire_crc_combine(a, b, n), reference(a, bytes + head, n));
	}
}

TEST(crc_combine__all_lengths)
{
	each_form(combine_all_lengths);
}

/* The definition, written down plainly: 8 bytes of ff, masked headers, the rest. */
static uint32_t plain_icrc_state(const uint8_t *l3, size_t n, bool ipv6)
{
	uint8_t copy[LENGTH_MAX + 8];
	uint8_t *h = copy + 8;
	size_t udp = ipv6 ? 40 : 20;

	memset(copy, 0xff, 8);
	memcpy(h, l3, n);
	if (ipv6) {
		h[0] |= 0x0f;			  /* traffic class */
		h[1] = h[2] = h[3] = h[7] = 0xff; /* rest of it, flow label; hop limit */
	} else {
		h[1] = h[8] = h[10] = h[11] = 0xff; /* TOS, TTL, checksum */
	}
	h[udp + 6] = h[udp + 7] = h[udp + 12] = 0xff; /* UDP checksum; BTH byte 4 */
	return reference(WIRE_CRC_INIT, copy, n + 8);
}

static void icrc_all_lengths(void)
{
	uint8_t *guard = guard_new();
	unsigned int n;
	int ipv6;

	for (ipv6 = 0; ipv6 < 2; ipv6++) {
		for (n = ipv6 ? 60 : 40; n <= 4300; n++) {
			const uint8_t *p = bytes + next_random() % 64;
			uint32_t want = plain_icrc_state(p, n, ipv6);

			assert_int_equal(wire_icrc(p, n, ipv6), ~want);
			assert_int_equal(wire_icrc(guard_copy(guard, p, n), n, ipv6), ~want);
			assert_int_equal(wire_icrc_headers(p, n, ipv6), want);
		}
	}
	guard_free(guard);
}

TEST(icrc__all_lengths)
{
	each_form(icrc_all_lengths);
}

static void icrc_from_parts(void)
{
	unsigned int header_bytes;
	unsigned int n;
	int ipv6;

	for (ipv6 = 0; ipv6 < 2; ipv6++) {
		for (n = 0; n <= 4096; n += 4) {
			uint8_t payload[4096];
			uint32_t headers;
			uint32_t sum;

			header_bytes = (ipv6 ? 60 : 40) + next_random() % 8 * 4;
			headers = wire_icrc_headers(bytes, header_bytes, ipv6);
			sum = wire_crc_copy(0, payload, bytes + header_bytes, n);
			assert_int_equal(~wire_crc_combine(headers, sum, n),
					 wire_icrc(bytes, header_bytes + n, ipv6));
		}
	}
}

TEST(icrc__from_headers_and_copied_payload)
{
	each_form(icrc_from_parts);
}

/* Packets [index, index + n) of a train of `packets`. */
static const struct {
	uint32_t psn;
	uint16_t ip_id;
	uint8_t extension_bytes, index, n, packets;
} runs[] = {
	{0, 0, 0, 0, 32, 32},
	{PSN_MASK - 3, 0xfffd, 0, 0, 8, 8},
	{0x7fff0, 0x7ff0, 0, 0, 31, 32},
	{0xfffff8, 0xfff0, 0, 7, 20, 32},
	{0x123456, 0xabcd, 0, 31, 1, 32},
	{0x123456, 0xabcd, 16, 0, 1, 1},
	{0x123456, 0xabcd, 28, 0, 1, 2},
};

static void icrc_of_run(unsigned int row, bool ipv6, bool ackreq)
{
	uint32_t bth = wire_bth_at(ipv6), n = bth + WIRE_BTH_BYTES + runs[row].extension_bytes;
	uint32_t word = runs[row].psn | (ackreq ? (uint32_t)WIRE_BTH_ACKREQ << 24 : 0);
	uint8_t frame[128], one[128];
	uint32_t states[32], i, at;

	memcpy(frame, bytes, sizeof(frame));
	wire_put_be16(frame + bth + WIRE_BTH_ALIKE_BYTES, word >> 16);
	wire_put_be16(frame + bth + WIRE_BTH_ALIKE_BYTES + 2, word);
	wire_put_be16(frame + 4, runs[row].ip_id);
	wire_icrc_headers_run(frame, n, ipv6, runs[row].index, runs[row].n,
			      runs[row].index + runs[row].n == runs[row].packets, states);
	for (i = 0; i < runs[row].n; i++) {
		at = runs[row].index + i;
		memcpy(one, frame, sizeof(one));
		wire_take_place(one, ipv6, at, at + 1 == runs[row].packets);
		assert_int_equal(states[i], wire_icrc_headers(one, n, ipv6));
	}
}

TEST(icrc__headers_of_a_run)
{
	for (unsigned int i = 0; i < 4 * sizeof(runs) / sizeof(runs[0]); i++)
		icrc_of_run(i / 4, i & 1, i & 2);
}

TEST(icrc__stored_little_endian)
{
	uint8_t stored[4];

	wire_icrc_store(stored, 0x11223344);
	assert_memory_equal(stored, "\x44\x33\x22\x11", 4);
	assert_int_equal(wire_icrc_load(stored), 0x11223344);
}

TEST(select__unknown_name)
{
	const char *chosen = wire_crc_name();

	assert_int_equal(wire_crc_select("abacus"), -ENOENT);
	wire_crc_init();
	assert_string_equal(wire_crc_name(), chosen);
}

TEST_GROUP(.setup = setup);
