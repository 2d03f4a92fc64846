/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_CRC_H
#define WIRE_CRC_H
/*
 * CRC-32 (zlib's polynomial, reflected), alone, fused with a copy, and as the ICRC of RoCEv2.
 *
 * A state is the raw register: not inverted on input or output. A CRC begins with WIRE_CRC_INIT and
 * is ~state at the end. There are several forms behind one table of functions; the fastest that the
 * CPU supports is chosen before main(): "vpclmul512" (VPCLMULQDQ with AVX-512), "vpclmul256" (with
 * AVX2), "pclmul" (SSE4.1), "pmull" (ARMv8 with PMULL), "crc32" (ARMv8 with CRC32 only),
 * "portable".
 *
 * Ways to an ICRC:
 *  - small packet, all bytes in place: wire_icrc();
 *  - payload being copied: b = wire_crc_copy(0, ...) while copying, then
 *    ~wire_crc_combine(wire_icrc_headers(...), b, payload bytes), when there is no pad. Pad bytes:
 *    continue b over them with wire_crc(), or let them be part of the copy.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WIRE_CRC_INIT 0xffffffffu

/* The functions of one form; what each does is documented at the wrappers below. */
struct wire_crc_ops {
	const char *name;
	uint32_t (*crc)(uint32_t state, const void *p, size_t n);
	uint32_t (*crc_copy)(uint32_t state, void *dst, const void *src, size_t n);
	uint32_t (*crc_copy_nt)(uint32_t state, void *dst, const void *src, size_t n);
	uint32_t (*icrc)(const uint8_t *l3, unsigned int n, bool ipv6);
	uint32_t (*icrc_headers)(const uint8_t *l3, unsigned int header_bytes, bool ipv6);
	uint32_t (*combine)(uint32_t state_a, uint32_t crc_b, size_t len_b);
};

/* The chosen form. Written before main() and by wire_crc_select() only. */
extern struct wire_crc_ops wire_crc_ops;

/* Fills the tables and chooses the fastest form; idempotent. Runs automatically before main(). */
void wire_crc_init(void);
/*
 * Chooses a form by name: tests and benchmarks only, while no other thread computes. Returns 0,
 * -ENOENT (no such form), -ENOTSUP (this CPU cannot).
 */
int wire_crc_select(const char *name);
/* Name of the chosen form; static storage. */
const char *wire_crc_name(void);
/* Name of the i-th form in this build, fastest first; NULL after the last. */
const char *wire_crc_form(unsigned int i);

/* State after n more bytes. Any n, any alignment. */
static inline uint32_t wire_crc(uint32_t state, const void *p, size_t n)
{
	return wire_crc_ops.crc(state, p, n);
}

/*
 * Copies n bytes and returns the state after the bytes that were STORED: each source byte is loaded
 * once, so a client that changes its memory during the copy changes both alike. Exactly dst[0..n)
 * is written, exactly src[0..n) read. They must not overlap. Any n, any alignment.
 */
static inline uint32_t wire_crc_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return wire_crc_ops.crc_copy(state, dst, src, n);
}

/*
 * The same with non-temporal stores; for large messages whose destination lies in DRAM (measured:
 * 1.3 to 1.6 times as fast there, slower elsewhere). Such stores are NOT ordered with later ones:
 * call wire_crc_nt_fence() once, before another thread or process learns of the data (a CQE, an
 * ACK). A fence per packet would cost more than is gained. Short copies, and forms without such
 * stores, use ordinary ones.
 */
static inline uint32_t wire_crc_copy_nt(uint32_t state, void *dst, const void *src, size_t n)
{
	return wire_crc_ops.crc_copy_nt(state, dst, src, n);
}

/* Orders all earlier wire_crc_copy_nt() of this thread before its later stores. */
static inline void wire_crc_nt_fence(void)
{
#ifdef __x86_64__
	__builtin_ia32_sfence();
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/*
 * ICRC of a packet in one pass: l3 is the start of its IP header (IPv4 without options, or IPv6
 * without extension headers), n the bytes from there to the ICRC (at least IP + UDP + BTH). Fields
 * that routers may change count as ones. Only reads, and only l3[0..n). Store the
 * result little-endian: wire_icrc_store().
 */
static inline uint32_t wire_icrc(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return wire_crc_ops.icrc(l3, n, ipv6);
}

/* State (not inverted) after the masked headers only: header_bytes from the IP header on. */
static inline uint32_t wire_icrc_headers(const uint8_t *l3, unsigned int header_bytes, bool ipv6)
{
	return wire_crc_ops.icrc_headers(l3, header_bytes, ipv6);
}

/*
 * State after A followed by B: state_a after A, crc_b the state after B when it began with 0, len_b
 * the bytes of B (fast up to 4100).
 */
static inline uint32_t wire_crc_combine(uint32_t state_a, uint32_t crc_b, size_t len_b)
{
	return wire_crc_ops.combine(state_a, crc_b, len_b);
}

/* Stores an ICRC at the end of a packet, any alignment. */
static inline void wire_icrc_store(uint8_t *p, uint32_t icrc)
{
	p[0] = (uint8_t)icrc;
	p[1] = (uint8_t)(icrc >> 8);
	p[2] = (uint8_t)(icrc >> 16);
	p[3] = (uint8_t)(icrc >> 24);
}

/* Loads an ICRC from the end of a packet. */
static inline uint32_t wire_icrc_load(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
