/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of IP addresses in 16 bytes: version, group, host, at the borders of each range. */
#include "test.h"
#include <arpa/inet.h>
#include "base/ip.h"

/* As inet_pton() reads it; what has no colon is IPv4 and becomes v4-mapped. */
static const uint8_t *ip(const char *text)
{
	static uint8_t out[16];
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1)
		ip_map_v4(v4, out);
	else
		assert_int_equal(inet_pton(AF_INET6, text, out), 1);
	return out;
}

TEST(map_v4__is_as_text_has_it)
{
	uint8_t mapped[16], bytes[17] = {0, 10, 222, 0, 1};

	memset(mapped, 0xa5, sizeof(mapped));
	ip_map_v4(bytes + 1, mapped); /* of any alignment */
	assert_memory_equal(mapped, ip("::ffff:10.222.0.1"), 16);
	assert_memory_equal(mapped, ip("10.222.0.1"), 16);
}

TEST(is_v4_mapped__every_byte_of_the_prefix_counts)
{
	uint8_t other[16];

	assert_true(ip_is_v4_mapped(ip("0.0.0.0")));
	assert_true(ip_is_v4_mapped(ip("255.255.255.255")));
	assert_false(ip_is_v4_mapped(ip("::10.0.0.1")));
	assert_false(ip_is_v4_mapped(ip("::")));
	for (unsigned int i = 0; i < IP_V4_AT; i++) {
		memcpy(other, ip("10.0.0.1"), sizeof(other));
		other[i] ^= 0x10;
		assert_false(ip_is_v4_mapped(other));
	}
}

TEST(is_group__of_both_families)
{
	assert_true(ip_is_group(ip("ff00::")));
	assert_true(ip_is_group(ip("ff0e::1")));
	assert_true(ip_is_group(ip("224.0.0.0")));
	assert_true(ip_is_group(ip("239.255.255.255")));
	assert_false(ip_is_group(ip("223.255.255.255")));
	assert_false(ip_is_group(ip("240.0.0.0")));
	assert_false(ip_is_group(ip("255.255.255.255"))); /* broadcast */
	assert_false(ip_is_group(ip("feff::1")));
	assert_false(ip_is_group(ip("fd00::ffff:e000:1"))); /* not v4-mapped */
	assert_false(ip_is_group(ip("::224.0.0.1")));
}

TEST(is_host__of_both_families)
{
	assert_true(ip_is_host(ip("1.0.0.0")));
	assert_true(ip_is_host(ip("223.255.255.255")));
	assert_true(ip_is_host(ip("fe80::1")));
	assert_true(ip_is_host(ip("feff::")));
	assert_true(ip_is_host(ip("::1")));
	assert_false(ip_is_host(ip("0.255.255.255")));
	assert_false(ip_is_host(ip("224.0.0.1")));
	assert_false(ip_is_host(ip("240.0.0.1")));
	assert_false(ip_is_host(ip("255.255.255.255")));
	assert_false(ip_is_host(ip("::")));
	assert_false(ip_is_host(ip("ff02::1")));
}
