/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of the CRC forms and the choice between them. Runs once before main(); the stages call the
 * forms themselves (crc_vector.h, crc_portable.c).
 */
#include "crc_internal.h"

#include <errno.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#define ONE 0x80000000u /* x^0, 32 bits reflected */

struct crc_tables crc_tables;
struct wire_crc_ops wire_crc_ops;

const uint8_t icrc_mask[2][ICRC_MASK_BYTES] __attribute__((aligned(64))) = {
	{
		[1] = 0xff, /* TOS */
		[8] = 0xff, /* TTL */
		[10] = 0xff,
		[11] = 0xff, /* header checksum */
		[26] = 0xff,
		[27] = 0xff, /* UDP checksum */
		[32] = 0xff, /* BTH byte 4: FECN, BECN, reserved */
	},
	{
		[0] = 0x0f,
		[1] = 0xff,
		[2] = 0xff,
		[3] = 0xff, /* traffic class, flow label */
		[7] = 0xff, /* hop limit */
		[46] = 0xff,
		[47] = 0xff, /* UDP checksum */
		[52] = 0xff, /* BTH byte 4 */
	},
};

static uint32_t times_x(uint32_t v)
{
	return (v >> 1) ^ (v & 1 ? CRC_POLY : 0);
}

static uint32_t divided_by_x(uint32_t v)
{
	return v & ONE ? (v ^ CRC_POLY) << 1 | 1 : v << 1;
}

static uint32_t times_x8(uint32_t v)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		v = times_x(v);
	return v;
}

uint32_t crc_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		product ^= a & ONE ? b : 0;
		a <<= 1;
		b = times_x(b);
	}
	return product;
}

uint32_t crc_shift_factor(size_t n)
{
	uint32_t square = ONE >> 8; /* x^8 */
	uint32_t factor = divided_by_x(ONE);

	if (n <= CRC_SHIFT_BYTES_MAX)
		return crc_tables.shift[n];
	for (; n; n >>= 1) {
		if (n & 1)
			factor = crc_multiply(factor, square);
		square = crc_multiply(square, square);
	}
	return factor;
}

/* Powers of x, one per byte of distance: x^(8m + 7) for m from POWER_FIRST on. */
enum {
	POWER_FIRST = -64,
	POWER_LAST = 16 * CRC_BLOCKS + 11,
	POWER_COUNT = POWER_LAST - POWER_FIRST + 1
};

static void fill_powers(uint32_t *powers)
{
	uint32_t v = ONE;
	int e;

	for (e = 0; e > 8 * POWER_FIRST + 7; e--)
		v = divided_by_x(v);
	for (e = 0; e < POWER_COUNT; e++) {
		powers[e] = v;
		v = times_x8(v);
	}
}

/* Multipliers that move a block forward by `bytes`, and by 32 bits more when `last`. */
static struct crc_fold fold_by(const uint32_t *powers, int bytes, int last)
{
	const uint32_t *p = powers - POWER_FIRST + bytes + (last ? 4 : 0);

	/* lower register half: x^(8*bytes + 64 - 1); upper: x^(8*bytes - 1) */
	return (struct crc_fold){(uint64_t)p[7] << 32, (uint64_t)p[-1] << 32};
}

static void fill_folds(void)
{
	uint32_t powers[POWER_COUNT];
	int row;
	int column;

	fill_powers(powers);
	for (row = 0; row < CRC_ROWS; row++)
		for (column = 0; column < CRC_COLUMNS; column++)
			crc_tables.finish[row][column] =
				fold_by(powers, row + 16 * (CRC_BLOCKS - 2 - column), 1);
	crc_tables.fold256 = fold_by(powers, 256, 0);
	crc_tables.fold128 = fold_by(powers, 128, 0);
	crc_tables.reduce = fold_by(powers, 0, 0);
}

static void fill_shift(void)
{
	uint32_t v = divided_by_x(ONE);
	unsigned int n;

	for (n = 0; n <= CRC_SHIFT_BYTES_MAX; n++) {
		crc_tables.shift[n] = v;
		v = times_x8(v);
	}
}

static void fill_slices(void)
{
	uint32_t(*slice)[256] = crc_tables.slice;
	unsigned int i;
	unsigned int s;

	for (i = 0; i < 256; i++)
		slice[0][i] = times_x8(i);
	for (s = 1; s < 16; s++)
		for (i = 0; i < 256; i++)
			slice[s][i] = (slice[s - 1][i] >> 8) ^ slice[0][slice[s - 1][i] & 0xff];
}

/*
 * Fastest first. The order of those for ARM has not been measured; the reason for it: with one
 * execution unit for each, PMULL and CRC32 both take eight bytes a cycle, but many newer cores
 * have more units for PMULL. And PMULL neither waits for the block before (in short packets) nor
 * needs tables to join sums.
 */
static const struct wire_crc_ops *const forms[] = {
#ifdef __x86_64__
	&crc_vpclmul512,
	&crc_vpclmul256,
	&crc_pclmul,
#endif
#ifdef __aarch64__
	&crc_pmull,
	/* for cores without the cryptographic extension, such as the Raspberry Pi 4's */
	&crc_crc32,
#endif
	&crc_portable,
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static bool cpu_can(const struct wire_crc_ops *form)
{
#ifdef __x86_64__
	__builtin_cpu_init();
	if (form == &crc_vpclmul512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("vpclmulqdq") &&
		       __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("bmi2");
	if (form == &crc_vpclmul256)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq") &&
		       __builtin_cpu_supports("pclmul");
	if (form == &crc_pclmul)
		return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
#ifdef __aarch64__
	if (form == &crc_pmull)
		return getauxval(AT_HWCAP) & HWCAP_PMULL;
	if (form == &crc_crc32)
		return getauxval(AT_HWCAP) & HWCAP_CRC32;
#endif
	return form == &crc_portable;
}

int wire_crc_select(const char *name)
{
	unsigned int i;

	for (i = 0; i < FORMS; i++) {
		if (strcmp(forms[i]->name, name))
			continue;
		if (!cpu_can(forms[i]))
			return -ENOTSUP;
		wire_crc_ops = *forms[i];
		return 0;
	}
	return -ENOENT;
}

const char *wire_crc_form(unsigned int i)
{
	return i < FORMS ? forms[i]->name : NULL;
}

const char *wire_crc_name(void)
{
	return wire_crc_ops.name;
}

__attribute__((constructor)) void wire_crc_init(void)
{
	unsigned int i = 0;

	if (wire_crc_ops.name)
		return;
	fill_folds();
	fill_shift();
	fill_slices();
#ifdef __aarch64__
	crc_crc32_fill();
#endif
	while (!cpu_can(forms[i]))
		i++;
	wire_crc_ops = *forms[i];
}
