/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing that waits for a stranger happens in the control thread: descriptors of all kinds in each
 * place where a program can pass one. Another client does not notice. */
#include "../stranger.h"
#include "base/close_later.h"
#include "hca_test.h"
#include "raw_client.h"

enum { PATIENCE_MS = 5000 }; /* less than a stranger would keep us waiting */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* As a capture's memory; as the client's page; as memory, for reading only, too; where none belongs; left in the queue. */
static void pass_everywhere(int stranger)
{
	const struct control_header query = {.type = CONTROL_QUERY_PORT}, bad = {.type = 0};
	const int two[2] = {stranger, stranger};
	const struct control_capture capture = {.version = CONTROL_VERSION, .bytes = 1 << 20};
	struct control_hello_reply hello;
	int fd = raw_connect(f.path);

	assert_int_equal(raw_capture(fd, stranger, &capture), -EINVAL);
	assert_int_equal(raw_hello_with(fd, stranger, &hello), -EINVAL);
	close(fd);
	fd = raw_open(f.path, &hello);
	for (uint32_t flags = 0; flags <= PIECE_READ_ONLY; flags += PIECE_READ_ONLY) {
		const struct control_piece in = {.bytes = 4096, .flags = flags};

		assert_int_equal(raw_add_piece(fd, stranger, &in, NULL), -EINVAL);
	}
	raw_send(fd, &query, sizeof(query), two, 2);
	raw_send(fd, &bad, sizeof(bad), two, 2);
	assert_int_equal(raw_receive(fd, NULL, 0), RAW_GONE);
	close(fd);
}

static void nobody_waits_for(enum stranger_kind kind)
{
	uint64_t begun = now_ms();
	struct stranger s;
	struct raw bystander;

	if (!stranger_make(&s, kind)) {
		print_message("not possible here\n");
		skip();
	}
	if (kind == STRANGER_FUSE || kind == STRANGER_OVERLAY)
		assert_true(stranger_keeps_waiting(&s));
	bystander = raw_client(f.path);
	pass_everywhere(s.fd);
	assert_int_equal(raw_number(bystander.fd, CONTROL_DESTROY_QP, bystander.qpn), 0);
	close(bystander.fd);
	assert_true(fixture_wait_clients(&f, 0));
	assert_true(now_ms() - begun < PATIENCE_MS);
	stranger_end(&s);
	close_later_finish();
}

#define ROW(name, kind)                                                                            \
	TEST(name)                                                                                 \
	{                                                                                          \
		(void)state;                                                                       \
		nobody_waits_for(kind);                                                            \
	}
ROW(stranger__full_pipe, STRANGER_PIPE_FULL)
ROW(stranger__empty_pipe, STRANGER_PIPE_EMPTY)
ROW(stranger__socket_that_nobody_reads, STRANGER_SOCKET)
ROW(stranger__silent_fuse, STRANGER_FUSE)
ROW(stranger__overlay_on_silent_fuse, STRANGER_OVERLAY)
