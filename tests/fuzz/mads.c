/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MADs of the connection manager: what is well formed means the same once it has been written again.
 *
 * Input: a MAD.
 */
#include "cm/mad.h"
#include "fuzz.h"

static void check_addresses(const uint8_t *bytes)
{
	struct cm_ip_addressing a;
	uint8_t again[CM_IP_BYTES];

	if (cm_ip_parse(bytes, &a) == 0) {
		cm_ip_build(&a, again);
		REQUIRE(!memcmp(again + 2, bytes + 2, 2)); /* the port */
		REQUIRE(!memcmp(again + 20, bytes + 20, 16) || a.version == 4);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_message m = {0}, again = {0};
	uint8_t mad[CM_MAD_BYTES];

	if (cm_mad_parse(data, size, &m) != CM_WELL_FORMED)
		return 0;
	REQUIRE(m.private_bytes <= cm_private_bytes(m.type));
	cm_mad_build(&m, mad);
	REQUIRE(cm_mad_parse(mad, sizeof(mad), &again) == CM_WELL_FORMED);
	REQUIRE(!memcmp(&again, &m, sizeof(m)));
	if (m.private_bytes >= CM_IP_BYTES)
		check_addresses(m.private_data);
	return 0;
}
