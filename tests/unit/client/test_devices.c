/* SPDX-License-Identifier: BSD-3-Clause */
/* What libsofthca reports about devices that are not open. */
#include "pair.h"

#undef TEST
#define TEST(name) TEST_STATE(name, start, stop, NULL)

TEST(devices__listed_without_opening)
{
	struct softhca_device_info list[3];

	memset(list, 0xee, sizeof(list));
	assert_int_equal(softhca_device_list(f.path, list, 3), 1);
	assert_string_equal(list[0].name, "hca0");
	assert_int_equal(list[0].guid, 0x1234);
	assert_int_equal(list[0].index, 0);
	assert_int_equal(list[0].port.state, SOFTHCA_PORT_ACTIVE);
	assert_int_equal(list[0].port.gid_count, 2);
	assert_int_equal(list[0].port.speed_mbps, 10000);
	assert_int_equal(list[1].name[0], (char)0xee);
	assert_int_equal(softhca_device_list(f.path, NULL, 0), 1);
	assert_true(fixture_wait_clients(&f, 0));
}

TEST(devices__of_the_socket_in_the_environment)
{
	struct softhca_device_info one;

	setenv("SOFTHCA_SOCKET", f.path, 1);
	assert_int_equal(softhca_device_list(NULL, &one, 1), 1);
	setenv("SOFTHCA_SOCKET", "/nowhere", 1);
	assert_int_equal(softhca_device_list(NULL, &one, 1), -ENOENT);
	unsetenv("SOFTHCA_SOCKET");
}

TEST(attributes__read_without_opening)
{
	char text[480];

	assert_int_equal(softhca_read_attribute(f.path, "hca0", "answer", text, sizeof(text)), 3);
	assert_memory_equal(text, "42\n", 3);
	assert_int_equal(softhca_read_attribute(f.path, "hca0", "answer", text, 2), -ENOSPC);
	assert_int_equal(softhca_read_attribute(f.path, "hca0", "x", text, 480), -ENOENT);
	assert_int_equal(softhca_read_attribute(f.path, "hca9", "answer", text, 480), -ENODEV);
	assert_int_equal(softhca_read_attribute("/nowhere", "hca0", "x", text, 480), -ENOENT);
}
