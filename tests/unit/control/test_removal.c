/* SPDX-License-Identifier: BSD-3-Clause */
/* A device is removed at the request of a client: what becomes of those that use it or look at it, and of
 * the others. */
#include "hca_test.h"
#include "host-abi/capture_ring.h"
#include "pipeline/stepping.h"
#include "raw_client.h"

enum { RING_BYTES = 1 << 20 };

static struct control_hello_reply opened;

static int start_two(void **state)
{
	int rc;

	fixture_devices = 2;
	rc = start(state);
	fixture_devices = 1;
	__atomic_store_n(&f.may_stop, true, __ATOMIC_RELAXED);
	return rc;
}

static int remove_hca(int fd, const char *name, struct control_change_reply *out)
{
	struct control_remove_hca in = {.version = CONTROL_VERSION};

	snprintf(in.device, sizeof(in.device), "%s", name);
	return raw_ask(fd, CONTROL_REMOVE_HCA, &in, out);
}

static int add_hca(int fd, const char *name, const char *settings, struct control_change_reply *out)
{
	struct control_add_hca in = {.version = CONTROL_VERSION};

	snprintf(in.device, sizeof(in.device), "%s", name);
	snprintf(in.settings, sizeof(in.settings), "%s", settings);
	return raw_ask(fd, CONTROL_ADD_HCA, &in, out);
}

static int reload(int fd, struct control_reload in, struct control_change_reply *out)
{
	return raw_ask(fd, CONTROL_RELOAD, &in, out);
}

static int hello(int fd, const char *name)
{
	struct control_hello in = {.version = CONTROL_VERSION};
	int page = raw_memfd(sizeof(struct client_page), RAW_SEALS), rc;

	snprintf(in.device, sizeof(in.device), "%s", name);
	rc = raw_call(fd, CONTROL_HELLO, &in, sizeof(in), &page, 1, &opened, sizeof(opened));
	close(page);
	return rc;
}

static void expect_end(int fd)
{
	assert_int_equal(raw_receive(fd, NULL, 0), RAW_GONE);
	close(fd);
}

TEST_STATE(remove__ends_all_who_use_it, start_two, stop, NULL)
{
	const struct control_capture captures = {
		.version = CONTROL_VERSION, .bytes = RING_BYTES, .device = "hca0"};
	const struct control_pause pauses = {
		.version = CONTROL_VERSION, .name = "ee", .device = "hca0"};
	struct control_list_devices first = {.version = CONTROL_VERSION};
	int user = raw_connect(f.path), looker = raw_connect(f.path), holder = raw_connect(f.path);
	int admin = raw_connect(f.path), memory = raw_memfd(RING_BYTES, RAW_SEALS);
	struct control_change_reply out;
	struct control_device_reply device;

	assert_int_equal(hello(user, "hca0"), 0);
	raw_mr(user, opened.queue_pd, raw_piece(user, 1 << 20), 4096, 0);
	assert_int_equal(raw_capture(looker, memory, &captures), 0);
	assert_int_equal(raw_ask(holder, CONTROL_PAUSE, &pauses, &out), 0);
	assert_int_equal(out.error, 0);
	assert_int_equal(remove_hca(admin, "hca0", &out), 0);
	assert_int_equal(out.error, 0);
	assert_non_null(strstr(out.text, "hca0 by "));
	expect_end(user);
	expect_end(looker);
	expect_end(holder);
	assert_null(f.captured);
	assert_int_equal(f.hca->engines->stepping->standing, 0);
	assert_true(fixture_wait_clients(&f, 1));
	/* The other one is now the first. */
	assert_int_equal(remove_hca(admin, "none", &out), 0);
	assert_int_equal(out.error, -ENODEV);
	assert_int_equal(raw_ask(admin, CONTROL_LIST_DEVICES, &first, &device), 0);
	assert_string_equal(device.device, "hca1");
	assert_int_equal(device.count, 1);
	first.index = 1;
	assert_int_equal(raw_ask(admin, CONTROL_LIST_DEVICES, &first, &device), -ENODEV);
	assert_int_equal(raw_capture(admin, memory, &captures), -ENODEV);
	assert_int_equal(hello(admin, "hca0"), -ENODEV);
	assert_int_equal(hello(admin, ""), 0);
	close(admin);
	close(memory);
}

TEST_STATE(remove__refused, start_two, stop, NULL)
{
	struct control_remove_hca in = {.version = CONTROL_VERSION + 1};
	struct control_change_reply out;
	int fd = raw_connect(f.path);

	assert_int_equal(raw_ask(fd, CONTROL_REMOVE_HCA, &in, &out), -EPROTO);
	in = (struct control_remove_hca){.version = CONTROL_VERSION, .reserved = 1};
	assert_int_equal(raw_ask(fd, CONTROL_REMOVE_HCA, &in, &out), -EINVAL);
	in.reserved = 0;
	memset(in.device, 'h', sizeof(in.device));
	assert_int_equal(raw_ask(fd, CONTROL_REMOVE_HCA, &in, &out), -EINVAL);
	close(fd);
	fd = raw_open(f.path, &(struct control_hello_reply){0});
	assert_int_equal(remove_hca(fd, "hca0", &out), RAW_GONE); /* not after HELLO */
	close(fd);
}

/* Its place is empty, and has all that the first one had. */
TEST_STATE(add__in_the_place_of_one_that_was_removed, start_two, stop, NULL)
{
	struct control_list_devices first = {.version = CONTROL_VERSION};
	int admin = raw_connect(f.path);
	struct control_change_reply out;
	struct control_device_reply device;

	for (unsigned i = 0; i < 3; i++) {
		int user = raw_connect(f.path);

		assert_int_equal(hello(user, "hca0"), 0);
		raw_mr(user, opened.queue_pd, raw_piece(user, 1 << 20), 4096, 0);
		assert_int_equal(remove_hca(admin, "hca0", &out), 0);
		expect_end(user);
		assert_int_equal(add_hca(admin, "hca2", "a=b", &out), 0);
		assert_int_equal(out.error, -EINVAL);
		assert_int_equal(add_hca(admin, "hca0", "a=b\nc=d", &out), 0);
		assert_int_equal(out.error, 0);
		assert_string_equal(out.text, "hca0: a=b\nc=d");
		assert_int_equal(raw_ask(admin, CONTROL_LIST_DEVICES, &first, &device), 0);
		assert_string_equal(device.device, "hca0");
		assert_int_equal(device.count, 2);
	}
	close(admin);
}

TEST_STATE(add__refused, start_two, stop, NULL)
{
	static const struct {
		struct control_add_hca in;
		int error;
	} rows[] = {
		{{.version = CONTROL_VERSION + 1}, -EPROTO},
		{{.version = CONTROL_VERSION, .reserved = 1}, -EINVAL},
		{{.version = CONTROL_VERSION, .device = {[0 ... 31] = 'h'}}, -EINVAL},
		{{.version = CONTROL_VERSION, .settings = {[0 ... 447] = 'h'}}, -EINVAL},
	};
	struct control_change_reply out;
	int fd = raw_connect(f.path);

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(raw_ask(fd, CONTROL_ADD_HCA, &rows[i].in, &out), rows[i].error);
	assert_int_equal(reload(fd, (struct control_reload){.version = CONTROL_VERSION + 1}, &out),
			 -EPROTO);
	assert_int_equal(reload(fd,
				(struct control_reload){.version = CONTROL_VERSION, .reserved = 1},
				&out),
			 -EINVAL);
	close(fd);
	fd = raw_open(f.path, &(struct control_hello_reply){0});
	assert_int_equal(add_hca(fd, "hca0", "", &out), RAW_GONE); /* not after HELLO */
	close(fd);
}

/* It waits for the answer, and is known again by its ticket; the next one begins anew. */
TEST_STATE(reload__is_answered_when_it_is_over, start_two, stop, NULL)
{
	struct control_change_reply out;
	int fd = raw_connect(f.path);

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(
			reload(fd, (struct control_reload){.version = CONTROL_VERSION}, &out), 0);
		assert_int_equal(out.error, -ENOENT);
		assert_string_equal(out.text, "asked 3 times");
	}
	close(fd);
}

/* Whoever asked need not wait. */
TEST_STATE(remove__goes_on_alone, start_two, stop, NULL)
{
	struct {
		struct control_header header;
		struct control_remove_hca body;
	} m = {.header = {.type = CONTROL_REMOVE_HCA, .length = sizeof(m.body)},
	       .body = {.version = CONTROL_VERSION, .device = "hca0"}};
	int user = raw_connect(f.path), fd = raw_connect(f.path);

	assert_int_equal(hello(user, "hca0"), 0);
	raw_send(fd, &m, sizeof(m), NULL, 0);
	close(fd);
	expect_end(user);
}
