/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_CRC_INTERNAL_H
#define WIRE_CRC_INTERNAL_H
/*
 * What the forms of the CRC share; private to lib/common/wire.
 *
 * Arithmetic: polynomials over GF(2) modulo P = 0x104c11db7, reflected. In a register of w bits,
 * bit i stands for x^(w-1-i). The carry-less product of two 64-bit registers a and b, read as a
 * 128-bit register, is therefore a*b*x; and a 32-bit residue r in the upper half of a 64-bit
 * register is r. P has a constant term, so negative powers of x exist modulo P as well. That lets
 * one formula serve all lengths: a 16-byte block whose end lies d bytes before the end of the
 * message contributes block * x^(8d + 32), and d is negative for a block that is only partly filled
 * (from the left).
 */
#include "wire/crc.h"

enum {
	CRC_ROWS = 16,		      /* remainder of the length by 16 */
	CRC_BLOCKS = 32,	      /* most whole 16-byte blocks of a message + 1 */
	CRC_COLUMNS = CRC_BLOCKS + 3, /* 31 whole, one partly filled, then three empty */
	CRC_SHIFT_BYTES_MAX = 4100,
	CRC_STRIDE_MAX = 256, /* most that a vector form folds at a time */
	ICRC_MASKED_BYTES = 64,
	ICRC_MASK_BYTES = ICRC_MASKED_BYTES + CRC_STRIDE_MAX,
};

#define CRC_POLY       0xedb88320u    /* P without x^32, reflected */
#define CRC_BARRETT_MU 0x1f7011641ull /* x^64 / P, 33 bits reflected */
#define CRC_BARRETT_P  0x1db710641ull /* P, 33 bits reflected */

/* State after the eight ff bytes with which every ICRC begins; the test checks it. */
#define ICRC_START 0xdebb20e3u

/* The lower and upper 64 bits of a block; as multipliers: residues in the upper half of each. */
struct crc_fold {
	uint64_t lo;
	uint64_t hi;
};

struct crc_tables {
	/*
	 * finish[r][c]: multiplies a block of a message whose length is r modulo 16,
	 * followed by CRC_BLOCKS - 2 - c whole blocks, by x^(8d + 32).
	 */
	struct crc_fold finish[CRC_ROWS][CRC_COLUMNS] __attribute__((aligned(64)));
	struct crc_fold fold256;		 /* moves a block forward by 256 bytes */
	struct crc_fold fold128;		 /* the same by 128 bytes */
	struct crc_fold reduce;			 /* lo: x^64, from 96 bits to 64 */
	uint32_t shift[CRC_SHIFT_BYTES_MAX + 1]; /* x^(8n - 1) */
	uint32_t slice[16][256];
};

/* Filled before main(), read only afterwards. */
extern struct crc_tables crc_tables;

/*
 * Fields that routers may change count as ones: OR this over the first 64 bytes. [0] IPv4, [1]
 * IPv6. Followed by zeroes for forms that mask more.
 */
extern const uint8_t icrc_mask[2][ICRC_MASK_BYTES];

/* Multipliers for the first block of a message of n < 512 bytes; the next block's follow it. */
static inline const struct crc_fold *crc_finish(size_t n)
{
	return &crc_tables.finish[n % 16][CRC_BLOCKS - 1 - n / 16];
}

/* The next sizeof(type) bytes: loaded once, shifted into place, copied unless dst is NULL. */
#define CRC_PIECE(into, type, shift)                                                               \
	do {                                                                                       \
		type piece;                                                                        \
		memcpy(&piece, p, sizeof(piece));                                                  \
		__asm__("" : "+r"(piece));                                                         \
		p += sizeof(piece);                                                                \
		(into) |= (uint64_t)piece << (shift);                                              \
		if (dst) {                                                                         \
			memcpy(dst, &piece, sizeof(piece));                                        \
			dst += sizeof(piece);                                                      \
		}                                                                                  \
	} while (0)

/*
 * The two halves of a block of which only n = 0..15 bytes exist, padded with zeroes. For RoCE
 * packets n is 0, 4, 8 or 12. For little-endian machines.
 */
static inline __attribute__((always_inline)) struct crc_fold
crc_load_partial(const uint8_t *p, size_t n, uint8_t *dst)
{
	uint64_t whole = 0;
	uint64_t rest = 0;

	if (n & 8)
		CRC_PIECE(whole, uint64_t, 0);
	if (n & 4)
		CRC_PIECE(rest, uint32_t, 0);
	if (n & 2)
		CRC_PIECE(rest, uint16_t, (n & 4) * 8);
	if (n & 1)
		CRC_PIECE(rest, uint8_t, (n & 6) * 8);
	return n & 8 ? (struct crc_fold){whole, rest} : (struct crc_fold){rest, 0};
}

/* x^(8n - 1) modulo P. */
uint32_t crc_shift_factor(size_t n);
/* a * b modulo P, all 32 bits reflected. */
uint32_t crc_multiply(uint32_t a, uint32_t b);

extern const struct wire_crc_ops crc_portable;
#ifdef __aarch64__
extern const struct wire_crc_ops crc_pmull;
extern const struct wire_crc_ops crc_crc32;
void crc_crc32_fill(void); /* its tables */
#endif
#ifdef __x86_64__
extern const struct wire_crc_ops crc_pclmul;
extern const struct wire_crc_ops crc_vpclmul256;
extern const struct wire_crc_ops crc_vpclmul512;
uint32_t crc_combine_pclmul(uint32_t state_a, uint32_t crc_b, size_t len_b);
#endif

#endif
