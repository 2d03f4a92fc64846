/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the connection manager to and from MADs: against the captures, against a second
 * table of all fields, and cut. Mutated: tests/fuzz/mads.c.
 */
#include "capture.h"
#include "golden_group.h"
#include "guard.h"
#include "mad_fields.h"
#include "xorshift.h"

enum { INFO_ROOM = 72, ROUNDS = 20000 };

static uint64_t random_state = 20261121;

static uint64_t random64(void)
{
	return xorshift(&random_state);
}

static unsigned int below(unsigned int n)
{
	return xorshift_below(&random_state, n);
}

static void fill(uint8_t *p, unsigned int n)
{
	while (n)
		p[--n] = (uint8_t)random64();
}

static uint64_t any_value(const struct mad_field *f)
{
	return mad_field_any(f, random64());
}

/* Any valid message of a type, with as much private data as it happens to have. */
static void random_message(struct cm_message *m, uint16_t type)
{
	mad_fill(m, type, any_value, fill);
	m->private_bytes = (uint8_t)below(cm_private_bytes(type) + 1);
	fill(m->private_data, m->private_bytes);
}

TEST(mad__sizes)
{
	static const uint8_t room[] = {
		[CM_REQ] = 92,	     [CM_MRA] = 222,  [CM_REJ] = 148,  [CM_REP] = 196,
		[CM_RTU] = 224,	     [CM_DREQ] = 220, [CM_DREP] = 224, [CM_SIDR_REQ] = 216,
		[CM_SIDR_REP] = 136, [CM_LAP] = 168,  [CM_APR] = 148,
	};
	unsigned int type;

	for (type = 0; type < 0x10000; type++) {
		bool known = type >= CM_REQ && type <= CM_APR;

		assert_int_equal(cm_private_bytes((uint16_t)type), known ? room[type] : 0);
		assert_int_equal(strcmp(cm_type_name((uint16_t)type), "?") != 0, known);
	}
	assert_string_equal(cm_type_name(CM_SIDR_REP), "SIDR_REP");
}

/* m as the receiver gets it, who does not know the length of the private data. */
static void as_received(struct cm_message *m)
{
	m->private_bytes = (uint8_t)cm_private_bytes(m->type);
}

static void round_trip(struct cm_message *m)
{
	uint8_t mad[CM_MAD_BYTES], again[CM_MAD_BYTES];
	struct cm_message back;

	memset(mad, 0xa5, sizeof(mad));
	memset(&back, 0xa5, sizeof(back));
	cm_mad_build(m, mad);
	assert_int_equal(cm_mad_parse(mad, sizeof(mad), &back), CM_WELL_FORMED);
	as_received(m);
	assert_memory_equal(&back, m, sizeof(back));
	cm_mad_build(&back, again);
	assert_memory_equal(again, mad, sizeof(mad));
}

TEST(mad__random_messages_come_back)
{
	struct cm_message m;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		random_message(&m, (uint16_t)(CM_REQ + i % (CM_APR - CM_REQ + 1)));
		round_trip(&m);
	}
}

/* Turns the field's bits of a MAD into v, bit by bit. */
static void poke(uint8_t *mad, const struct mad_field *f, uint64_t v)
{
	unsigned int i, bit;

	for (i = 0; i < f->bits; i++) {
		bit = f->first + f->bits - 1 - i;
		mad[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
		mad[bit / 8] |= (uint8_t)((v >> i & 1) << (7 - bit % 8));
	}
}

static void check_value(uint16_t type, const struct mad_field *f, uint64_t v)
{
	uint8_t mad[CM_MAD_BYTES], expected[CM_MAD_BYTES];
	struct cm_message m, back;

	mad_blank(&m, type);
	cm_mad_build(&m, expected);
	poke(expected, f, v);
	mad_field_set(&m, f, v);
	cm_mad_build(&m, mad);
	if (memcmp(mad, expected, sizeof(mad)))
		fail_msg("%s = %#llx of %s: other bits than the standard's", f->name,
			 (unsigned long long)v, cm_type_name(type));
	assert_int_equal(cm_mad_parse(mad, sizeof(mad), &back), CM_WELL_FORMED);
	as_received(&m);
	if (memcmp(&back, &m, sizeof(m)))
		fail_msg("%s = %#llx of %s: reads back as %#llx, or something else is different",
			 f->name, (unsigned long long)v, cm_type_name(type),
			 (unsigned long long)mad_field_get(&back, f));
}

/* Lowest, highest, and each single bit. */
TEST(mad__each_field_alone)
{
	unsigned int i, bit;
	uint16_t type;

	for (type = CM_REQ; type <= CM_APR; type++) {
		for (i = 0; i < MAD_FIELDS; i++) {
			const struct mad_field *f = &mad_fields[i];

			if (f->type && f->type != type)
				continue;
			check_value(type, f, f->from);
			check_value(type, f, mad_field_max(f));
			for (bit = 0; bit < f->bits && !f->to; bit++)
				check_value(type, f, 1ull << bit);
		}
	}
}

TEST(mad__reserved_values_refused)
{
	uint8_t mad[CM_MAD_BYTES];
	struct cm_message m, back;
	unsigned int i, v, refused = 0;

	for (i = 0; i < MAD_FIELDS; i++) {
		const struct mad_field *f = &mad_fields[i];

		for (v = 0; f->to && v < 1u << f->bits; v++) {
			bool good = v >= f->from && v <= f->to;

			mad_blank(&m, f->type);
			cm_mad_build(&m, mad);
			poke(mad, f, v);
			assert_int_equal(cm_mad_parse(mad, sizeof(mad), &back),
					 good ? CM_WELL_FORMED : CM_BAD_FIELD);
			refused += !good;
		}
	}
	assert_int_equal(refused, 11 + 1 + 1 + (127 - 72) + 2 * (255 - 72));
}

/* Bits that no field has change nothing of what is read. */
TEST(mad__reserved_bits_ignored)
{
	uint8_t mad[CM_MAD_BYTES], mask[CM_MAD_BYTES];
	struct cm_message m, back;
	unsigned int i, at;
	uint16_t type;

	for (type = CM_REQ; type <= CM_APR; type++) {
		mad_blank(&m, type);
		memset(mask, 0, sizeof(mask));
		for (i = 0; i < MAD_FIELDS; i++)
			if (!mad_fields[i].type || mad_fields[i].type == type)
				poke(mask, &mad_fields[i], ~0ull);
		memset(mask, 0xff, 4);
		memset(mask + 16, 0xff, 2);
		if (type == CM_REQ) {
			memset(mask + 24 + 56, 0xff, 32);
			memset(mask + 24 + 100, 0xff, 32);
		}
		cm_mad_build(&m, mad);
		for (at = 0; at < mad_layout(type).private_at; at++)
			mad[at] |= (uint8_t)~mask[at];
		assert_int_equal(cm_mad_parse(mad, sizeof(mad), &back), CM_WELL_FORMED);
		as_received(&m);
		assert_memory_equal(&back, &m, sizeof(m));
	}
}

/* Additional information and private data in full, each byte where it belongs. */
TEST(mad__blobs_in_place)
{
	uint8_t mad[CM_MAD_BYTES];
	struct cm_message m;
	uint16_t type;

	for (type = CM_REQ; type <= CM_APR; type++) {
		struct mad_layout layout = mad_layout(type);

		do
			random_message(&m, type);
		while (layout.info_at && mad_info_bytes(&m) != INFO_ROOM);
		m.private_bytes = (uint8_t)cm_private_bytes(type);
		fill(m.private_data, m.private_bytes);
		assert_int_equal(layout.private_at + m.private_bytes, CM_MAD_BYTES);
		cm_mad_build(&m, mad);
		assert_memory_equal(mad + layout.private_at, m.private_data, m.private_bytes);
		if (layout.info_at)
			assert_memory_equal(mad + layout.info_at, (uint8_t *)&m + layout.info,
					    INFO_ROOM);
		round_trip(&m);
	}
}

TEST(mad__header_checked)
{
	static const struct {
		uint8_t at, value;
		enum cm_malformed result;
	} rows[] = {
		{0, 2, CM_NO_CM_MAD},	{1, 0x81, CM_NO_CM_MAD}, /* subnet management */
		{1, 3, CM_NO_CM_MAD},	{2, 1, CM_NO_CM_MAD},	 {3, 1, CM_NOT_SEND}, /* Get() */
		{3, 0x81, CM_NOT_SEND}, /* GetResp() */
		{3, 0x83, CM_NOT_SEND}, {16, 1, CM_UNKNOWN},	 {17, 0x0f, CM_UNKNOWN},
		{17, 0x1b, CM_UNKNOWN}, {17, 0, CM_UNKNOWN},
	};
	uint8_t mad[CM_MAD_BYTES];
	struct cm_message m, back;
	unsigned int i;

	mad_blank(&m, CM_RTU);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cm_mad_build(&m, mad);
		mad[rows[i].at] = rows[i].value;
		assert_int_equal(cm_mad_parse(mad, sizeof(mad), &back), rows[i].result);
	}
}

/* Behind the guard nothing can be read: every length is refused before a byte is used. */
TEST(mad__cut_anywhere)
{
	uint8_t *guard = guard_new();
	uint8_t mad[CM_MAD_BYTES];
	struct cm_message m, back;
	uint16_t type;
	size_t n;

	for (type = CM_REQ; type <= CM_APR; type++) {
		random_message(&m, type);
		cm_mad_build(&m, mad);
		for (n = 0; n < CM_MAD_BYTES; n++)
			assert_int_equal(cm_mad_parse(guard_copy(guard, mad, n), n, &back),
					 CM_TOO_SHORT);
		assert_int_equal(cm_mad_parse(guard_copy(guard, mad, n), n, &back), CM_WELL_FORMED);
		assert_int_equal(cm_mad_parse(mad, 4096, &back), CM_WELL_FORMED);
	}
	guard_free(guard);
}

/* The capture of two kernels. */

/* Calls test for each MAD to QP 1 in the captures; how many there were. */
static unsigned int each_mad(void (*test)(const uint8_t *mad, unsigned int n, unsigned int count))
{
	struct capture_place at = {0, 0};
	unsigned int count = 0;
	struct wire_frame f;
	const uint8_t *mad;

	while ((mad = capture_next(&golden, &at, &f))) {
		assert_int_equal(f.h.qkey, CM_QKEY);
		test(mad, f.payload_bytes, count++);
	}
	return count;
}

static void check_rebuilt(const uint8_t *mad, unsigned int n, unsigned int count)
{
	static const uint16_t types[] = {CM_REQ, CM_REP, CM_RTU, CM_DREQ, CM_DREP};
	uint8_t built[CM_MAD_BYTES];
	struct cm_message m;

	assert_int_equal(n, CM_MAD_BYTES);
	assert_int_equal(cm_mad_parse(mad, n, &m), CM_WELL_FORMED);
	assert_int_equal(m.type, types[count]);
	assert_int_equal(m.transaction, 0x0000000244358f96);
	cm_mad_build(&m, built);
	assert_memory_equal(built, mad, CM_MAD_BYTES);
}

TEST(golden__rebuilt_byte_for_byte)
{
	assert_int_equal(each_mad(check_rebuilt), 5);
}

static const uint8_t first_ip[16] = {[10] = 0xff, 0xff, 10, 222, 0, 1};
static const uint8_t second_ip[16] = {[10] = 0xff, 0xff, 10, 222, 0, 2};

/* Not byte by byte: there is room between the fields. */
static void same_addresses(const struct cm_ip_addressing *a, const struct cm_ip_addressing *b)
{
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->source_port, b->source_port);
	assert_memory_equal(a->source, b->source, sizeof(a->source));
	assert_memory_equal(a->destination, b->destination, sizeof(a->destination));
}

TEST(ip__both_versions)
{
	static const uint8_t v6[16] = {0x20, 1, 0x0d, 0xb8, 4,	5,  6,	7,
				       8,    9, 10,   11,   12, 13, 14, 1};
	static const uint8_t expected4[CM_IP_BYTES] = {0, 0x40, 0x12,	   0x34, [16] = 10, 222,
						       0, 1,	[32] = 10, 222,	 0,	    2};
	struct cm_ip_addressing a = {.version = 4, .source_port = 0x1234}, back;
	uint8_t bytes[CM_IP_BYTES];

	memcpy(a.source, first_ip, 16);
	memcpy(a.destination, second_ip, 16);
	cm_ip_build(&a, bytes);
	assert_memory_equal(bytes, expected4, CM_IP_BYTES);
	assert_int_equal(cm_ip_parse(bytes, &back), 0);
	same_addresses(&back, &a);

	memcpy(a.source, v6, 16);
	a.version = 6;
	a.source_port = 0xffff;
	cm_ip_build(&a, bytes);
	assert_true(bytes[0] == 0 && bytes[1] == 0x60 && bytes[2] == 0xff && bytes[3] == 0xff);
	assert_memory_equal(bytes + 4, v6, 16);
	assert_memory_equal(bytes + 20, second_ip, 16); /* mapped, in a version 6: as it is */
	assert_int_equal(cm_ip_parse(bytes, &back), 0);
	same_addresses(&back, &a);
}

TEST(ip__strangers_refused)
{
	struct cm_ip_addressing a;
	uint8_t bytes[CM_IP_BYTES];
	unsigned int first, second;

	for (first = 0; first < 256; first++) {
		for (second = 0; second < 256; second++) {
			bool good = first < 16 && (second >> 4 == 4 || second >> 4 == 6);

			memset(bytes, 0x5a, sizeof(bytes));
			bytes[0] = (uint8_t)first;
			bytes[1] = (uint8_t)second;
			assert_int_equal(cm_ip_parse(bytes, &a), good ? 0 : -EPROTO);
		}
	}
}
