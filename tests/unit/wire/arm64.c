/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The forms of the CRC that ARMv8 has, against one bit at a time, and which of them is chosen:
 * built by arm64.sh with a cross compiler, without cmocka or ISA-L. test_crc.c, which needs them,
 * compares the forms at every length; `make arm64` runs it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "guard.h"
#include "wire/crc.h"

enum {
	LENGTH_MAX = 4400,
	EACH_LENGTH_MAX = 1200, /* above, some lengths */
	HEADERS_MIN = 60,
};

static uint8_t bytes[LENGTH_MAX + 64], copied[LENGTH_MAX + 64];
static uint8_t *guard;

static unsigned long hidden; /* AT_HWCAP bits that crc.c does not see */

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);

/* What crc.c calls for getauxval(): the linker's --wrap. */
unsigned long __wrap_getauxval(unsigned long type)
{
	return __real_getauxval(type) & ~(type == AT_HWCAP ? hidden : 0);
}

/* CPUs by what they lack, and what is chosen on each. */
static const struct {
	unsigned long without;
	const char *chosen;
} cpus[] = {
	{0, "pmull"},
	{HWCAP_CRC32, "pmull"},
	{HWCAP_PMULL, "crc32"},
	{HWCAP_PMULL | HWCAP_CRC32, "portable"},
};

static bool chosen_by_cpu(unsigned int i)
{
	bool crc32 = !(cpus[i].without & HWCAP_CRC32);

	hidden = cpus[i].without;
	wire_crc_ops.name = NULL;
	wire_crc_init();
	printf("without %#lx: %s\n", hidden, wire_crc_name());
	return !strcmp(wire_crc_name(), cpus[i].chosen) &&
	       wire_crc_select("crc32") == (crc32 ? 0 : -ENOTSUP);
}

static uint32_t reference(uint32_t state, const uint8_t *p, size_t n)
{
	for (; n; n--, p++) {
		state ^= *p;
		for (unsigned i = 0; i < 8; i++)
			state = state >> 1 ^ (state & 1 ? 0xedb88320 : 0);
	}
	return state;
}

static bool copies(uint32_t state, const uint8_t *p, size_t n, uint32_t want)
{
	uint8_t *d = copied + rand() % 64;

	if (wire_crc_copy(state, d, p, n) != want || memcmp(d, p, n))
		return false;
	memset(copied, 0, sizeof(copied));
	return wire_crc_copy_nt(state, d, p, n) == want && !memcmp(d, p, n);
}

/* The masks are those that test_crc.c has compared with the standard's. */
static bool icrc_as_portable(const char *form, const uint8_t *p, unsigned n)
{
	uint32_t want[2];

	if (n < HEADERS_MIN)
		return true;
	wire_crc_select("portable");
	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++)
		want[ipv6] = wire_icrc(p, n, ipv6);
	wire_crc_select(form);
	return wire_icrc(p, n, false) == want[0] && wire_icrc(p, n, true) == want[1];
}

static bool right(const char *form, unsigned n)
{
	const uint8_t *p = bytes + rand() % 64;
	uint32_t state = (uint32_t)rand() * 2;
	uint32_t want = reference(state, p, n);
	unsigned head = (unsigned)rand() % (n + 1);

	return wire_crc(state, p, n) == want &&
	       wire_crc(state, guard_copy(guard, p, n), n) == want && copies(state, p, n, want) &&
	       wire_crc_combine(reference(state, p, head), reference(0, p + head, n - head),
				n - head) == want &&
	       icrc_as_portable(form, p, n);
}

static bool right_at_all_lengths(const char *form)
{
	unsigned n;

	if (wire_crc_select(form)) {
		printf("no %s here\n", form);
		return false;
	}
	for (n = 0; n <= LENGTH_MAX; n += n < EACH_LENGTH_MAX ? 1 : 1 + rand() % 16)
		if (!right(form, n)) {
			printf("%s is wrong, %u bytes\n", form, n);
			return false;
		}
	printf("%s is right\n", form);
	return true;
}

int main(void)
{
	const char *form;

	guard = guard_new();
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rand();
	for (unsigned i = 0; (form = wire_crc_form(i)); i++)
		if (!right_at_all_lengths(form))
			return 1;
	for (unsigned i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
		if (!chosen_by_cpu(i)) {
			printf("wrong choice\n");
			return 1;
		}
	return 0;
}
