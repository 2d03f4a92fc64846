/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures over the control socket: who may, with what memory, and until when. */
#include "hca_test.h"
#include "host-abi/capture_ring.h"
#include "pipeline/stepping.h"
#include "raw_client.h"

enum { BYTES = 1 << 20 };

static const struct control_capture right = {.version = CONTROL_VERSION, .bytes = BYTES, .snap = 7};

static bool is_captured(void)
{
	return __atomic_load_n(&f.captured, __ATOMIC_ACQUIRE);
}

TEST(capture__lasts_as_long_as_its_connection)
{
	int fd = raw_connect(f.path), memory = raw_memfd(BYTES, RAW_SEALS);
	uint8_t byte = 0;

	assert_int_equal(raw_capture(fd, memory, &right), 0);
	assert_true(is_captured());
	assert_int_equal(pread(memory, &byte, 1, BYTES - 1), 1);
	assert_int_equal(byte, right.snap);
	/* one at a time on a connection */
	assert_int_equal(raw_capture(fd, memory, &right), -EBUSY);
	close(fd);
	assert_true(fixture_wait_clients(&f, 0));
	assert_false(is_captured());
	close(memory);
}

TEST(capture__and_device_on_one_connection)
{
	int memory = raw_memfd(BYTES, RAW_SEALS),
	    page = raw_memfd(sizeof(struct client_page), RAW_SEALS);
	int fd = raw_connect(f.path);
	struct control_hello_reply hello;

	assert_int_equal(raw_capture(fd, memory, &right), 0);
	assert_int_equal(raw_hello_with(fd, page, &hello), 0);
	/* only before a device is opened */
	raw_capture(fd, memory, &right);
	assert_true(fixture_wait_clients(&f, 0));
	assert_false(is_captured());
	close(fd);
	close(memory);
	close(page);
}

TEST(capture__refused)
{
	static const struct {
		const char *why;
		int answer, port_answer, seals;
		uint32_t version;
		uint64_t bytes;
		const char *device;
	} rows[] = {
		{"version", -EPROTO, 0, RAW_SEALS, CONTROL_VERSION + 1, BYTES, ""},
		{"no such HCA", -ENODEV, 0, RAW_SEALS, CONTROL_VERSION, BYTES, "none"},
		{"not sealed", -EINVAL, 0, F_SEAL_GROW, CONTROL_VERSION, BYTES, ""},
		{"another size", -EINVAL, 0, RAW_SEALS, CONTROL_VERSION, 2 * BYTES, ""},
		{"no bytes", -EINVAL, 0, RAW_SEALS, CONTROL_VERSION, 0, ""},
		{"too much", -EINVAL, 0, RAW_SEALS, CONTROL_VERSION, CAPTURE_BYTES_MAX + 4096, ""},
		{"too often", -EBUSY, -EBUSY, RAW_SEALS, CONTROL_VERSION, BYTES, ""},
	};
	int fd = raw_connect(f.path), memory;

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct control_capture in = {.version = rows[i].version, .bytes = rows[i].bytes};

		strcpy(in.device, rows[i].device);
		memory = raw_memfd(BYTES, rows[i].seals);
		f.capture_result = rows[i].port_answer;
		if (raw_capture(fd, memory, &in) != rows[i].answer)
			fail_msg("%s", rows[i].why);
		close(memory);
	}
	/* and nothing is left that would keep it from the next */
	f.capture_result = 0;
	memory = raw_memfd(BYTES, RAW_SEALS);
	assert_int_equal(raw_capture(fd, memory, &right), 0);
	close(memory);
	close(fd);
	assert_true(fixture_wait_clients(&f, 0));
}

TEST(capture__is_not_for_other_users)
{
	int memory = raw_memfd(BYTES, RAW_SEALS), fd;

	raw_be(65534);
	fd = raw_connect(f.path);
	raw_be(0);
	assert_int_equal(raw_capture(fd, memory, &right), -EPERM);
	assert_false(is_captured());
	close(fd);
	close(memory);
}

/* Who captures need not open a device as well. */
TEST_STATE(capture__may_be_silent, start_impatient, stop, NULL)
{
	int silent = raw_connect(f.path), memory = raw_memfd(BYTES, RAW_SEALS);
	int fd = raw_connect(f.path);

	assert_int_equal(raw_capture(fd, memory, &right), 0);
	assert_true(fixture_wait_clients(&f, 1));
	assert_true(is_captured());
	assert_int_equal(raw_receive(silent, NULL, 0), RAW_GONE);
	close(silent);
	close(fd);
	close(memory);
}

static int capture_channel(int fd, const char *channel)
{
	struct control_capture_channel in = {.capture = {CONTROL_VERSION, 0, BYTES, ""}};
	struct control_capture_reply out;
	int memory = raw_memfd(BYTES, RAW_SEALS), rc;

	memcpy(in.channel, channel, RTE_MIN(strlen(channel), sizeof(in.channel)));
	rc = raw_call(fd, CONTROL_CAPTURE_CHANNEL, &in, sizeof(in), &memory, 1, &out, sizeof(out));
	close(memory);
	return rc;
}

static bool is_tapped(void)
{
	return __atomic_load_n(&f.hca->engines[0].watched, __ATOMIC_ACQUIRE) & WATCH_STEPPED;
}

/* Only where debug is on, and as long as the connection. */
TEST(capture__of_channels)
{
	int fd = raw_connect(f.path), other = raw_connect(f.path);

	assert_int_equal(capture_channel(fd, "hp_ee"), -EACCES);
	__atomic_store_n(&f.may_stop, true, __ATOMIC_RELAXED);
	assert_int_equal(capture_channel(fd, "hp_eee"), -EINVAL);
	assert_int_equal(capture_channel(fd, ""), -EINVAL);
	assert_int_equal(capture_channel(fd, "0123456789abcdef"), -EINVAL);
	assert_false(is_tapped());
	assert_int_equal(capture_channel(fd, "hp_ee"), 0);
	assert_true(is_tapped());
	assert_false(is_captured());
	assert_int_equal(capture_channel(fd, "ee_respg"), -EBUSY); /* one on a connection */
	assert_int_equal(capture_channel(other, "hp_ee"), 0);
	close(other);
	assert_true(fixture_wait_clients(&f, 1));
	assert_true(is_tapped());
	close(fd);
	assert_true(fixture_wait_clients(&f, 0));
	assert_false(is_tapped());
}
