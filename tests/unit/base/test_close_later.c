/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing without waiting: all is closed, by one thread or many, whatever some of them wait for. */
#include <fcntl.h>
#include <poll.h>
#include "../descriptors.h"
#include "../lingering.h"
#include "base/close_later.h"
#include "base/shares.h"

enum { FILES = 500 };

/* Threads that were late have ended. */
static void wait_threads(unsigned int n)
{
	for (int i = 0; i < 5000 && folder_entries("/proc/self/task") > n; i++)
		poll(NULL, 0, 1);
	assert_true(folder_entries("/proc/self/task") <= n);
}

TEST(close_later__a_burst)
{
	unsigned int before = open_descriptors();

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < FILES; i++)
			close_later(open("/dev/null", O_RDONLY | O_CLOEXEC), NULL);
		close_later_finish();
		assert_int_equal(open_descriptors(), before);
	}
}

TEST(close_later__behind_some_that_wait)
{
	unsigned int before = open_descriptors(), threads = folder_entries("/proc/self/task");
	uint64_t begun = lingering_now_ms();
	int pair[2], peer[8], fd[8];
	char byte;

	for (int i = 0; i < 8; i++)
		fd[i] = lingering(&peer[i]);
	for (int i = 0; i < 8; i++)
		close_later(fd[i], NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	close_later(pair[1], NULL);
	assert_int_equal(recv(pair[0], &byte, 1, 0), 0); /* until it is closed */
	close(pair[0]);
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
	for (int i = 0; i < 8; i++)
		close(peer[i]);
	close_later_finish();
	assert_int_equal(open_descriptors(), before);
	wait_threads(threads);
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
}

/* Of a user who has sent many that take long, some hold a thread each; those of others are closed. */
TEST(close_later__of_many_users)
{
	enum { MANY = 80 };
	unsigned int before = open_descriptors();
	uint64_t begun = lingering_now_ms();
	struct shares *s = shares_create(0);
	struct share_client bad, good;
	int pair[2], peer[MANY], fd[MANY];
	struct share_info info;
	char byte;

	assert_int_equal(share_client_begin(s, 1000, 1, &bad), 0);
	assert_int_equal(share_client_begin(s, 1001, 2, &good), 0);
	for (int i = 0; i < MANY; i++)
		fd[i] = lingering(&peer[i]);
	for (int i = 0; i < MANY; i++)
		close_later(fd[i], &bad);
	share_client_end(&bad);
	for (int i = 0; i < 3 * FILES; i++)
		close_later(open("/dev/null", O_RDONLY | O_CLOEXEC), &good);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	close_later(pair[1], &good);
	assert_int_equal(recv(pair[0], &byte, 1, 0), 0); /* until it is closed */
	close(pair[0]);
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
	shares_info(s, SHARE_closings, 0, &info);
	assert_in_range(info.used, MANY, MANY + 1);
	for (int i = 0; i < MANY; i++)
		close(peer[i]);
	close_later_finish();
	assert_int_equal(open_descriptors(), before);
	share_client_end(&good);
	assert_int_equal(shares_holders(s, NULL, 0), 0);
	shares_destroy(s);
}
