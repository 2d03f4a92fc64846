/* SPDX-License-Identifier: BSD-3-Clause */
/* What takes the control thread long, and is done bit by bit: bringing in the pages of mappings, and unmapping them. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "hca_test.h"
#include "raw_client.h"

static uint64_t mapped_bytes(void)
{
	struct share_info info;

	shares_info(f.shares, SHARE_mapped_bytes, 0, &info);
	return info.used;
}

static uint64_t populated; /* bytes; atomic */

int madvise(void *at, size_t bytes, int advice)
{
	if (advice == MADV_POPULATE_READ)
		__atomic_fetch_add(&populated, bytes, __ATOMIC_RELAXED);
	return (int)syscall(SYS_madvise, at, bytes, advice);
}

static void fill(int fd, uint64_t bytes)
{
	uint8_t *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	memset(all, 1, bytes);
	munmap(all, bytes);
}

/* Bringing pages in and unmapping them takes its user's part of each turn, and leaves the rest of it to others: many turns. */
TEST(time__of_large_memory_is_its_users)
{
	enum { RUNS = 15 };
	const uint64_t run = 2 << 20, bytes = RUNS * run;
	const struct control_piece whole = {.bytes = bytes};
	struct control_mr in = {.access = 1, .count = RUNS};
	int fd = raw_memfd(bytes, 0);
	uint64_t before, begun;
	uint32_t piece, lkey;
	struct raw r;

	fill(fd, bytes);
	r = raw_client_as(f.path, 1000);
	before = mapped_bytes();
	assert_int_equal(raw_add_piece(r.fd, fd, &whole, &piece), 0);
	in.pd = r.pd;
	for (uint32_t i = 0; i < RUNS; i++)
		in.run[i] = (struct control_run){piece, 0, bytes - (i + 1) * run, run};
	__atomic_store_n(&populated, 0, __ATOMIC_RELAXED);
	begun = fixture_turns();
	assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
	while (__atomic_load_n(&populated, __ATOMIC_RELAXED) < bytes)
		usleep(100);
	print_message("%u turns in, ", (unsigned int)(fixture_turns() - begun));
	assert_true(fixture_turns() - begun > 8);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, lkey), 0);
	begun = fixture_turns();
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
	while (mapped_bytes() > before)
		usleep(100);
	print_message("%u out\n", (unsigned int)(fixture_turns() - begun));
	assert_true(fixture_turns() - begun > 8);
	close(r.fd);
	close(fd);
}

/* The file mapped n times, and all of it brought in. */
static struct raw client_with(uid_t uid, int fd, uint64_t bytes, unsigned int n)
{
	const struct control_piece whole = {.bytes = bytes};
	struct raw r = raw_client_as(f.path, uid);
	struct control_mr in = {.pd = r.pd, .access = 1, .count = 1, .run = {{.bytes = bytes}}};
	uint32_t lkey;

	__atomic_store_n(&populated, 0, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(raw_add_piece(r.fd, fd, &whole, &in.run[0].piece), 0);
		assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
	}
	while (__atomic_load_n(&populated, __ATOMIC_RELAXED) < n * bytes)
		usleep(100);
	return r;
}

static uint64_t mapped_bytes_of(uid_t uid)
{
	struct share_holder h[1024];
	unsigned int n = shares_holders(f.shares, h, 1024);

	for (unsigned int i = 0; i < n && i < 1024; i++)
		if (h[i].row == SHARE_mapped_bytes && h[i].uid == uid && !h[i].pid)
			return h[i].held;
	return 0;
}

/* How much of 1000 is left when the last of 1001 goes; UINT64_MAX: not yet. As the control thread sees it, so that it
 * does not matter when this one runs. */
static uint64_t left;

int munmap(void *at, size_t bytes)
{
	if (__atomic_load_n(&left, __ATOMIC_RELAXED) == UINT64_MAX && !mapped_bytes_of(1001))
		__atomic_store_n(&left, mapped_bytes_of(1000), __ATOMIC_RELAXED);
	return (int)syscall(SYS_munmap, at, bytes);
}

/* Users take turns, not mappings: one who leaves many of them does not get more of the time than one who leaves a large one,
 * however many users there are. */
TEST(time__is_not_divided_by_mapping)
{
	enum { MANY = 400, CROWD = USERS_MAX };
	const uint64_t few = 512 << 10, bytes = 64 << 20;
	int small = raw_memfd(few, 0), large = raw_memfd(bytes, 0);
	/* While others are there, nobody gets more than his time. */
	int crowd[CROWD];
	struct raw many, one;
	uint64_t most;
	bool fair = false;

	for (unsigned int i = 0; i < CROWD; i++) {
		raw_be(2000 + i);
		crowd[i] = raw_connect(f.path);
	}
	raw_be(0);
	fill(small, few);
	fill(large, bytes);
	/* Who has the CPU taken away pays for that time, too: on a busy machine once is enough. */
	for (unsigned int tries = 5; tries && !fair; tries--) {
		many = client_with(1000, small, few, MANY);
		one = client_with(1001, large, bytes, 1);
		most = mapped_bytes_of(1000);
		fixture_hold();
		close(many.fd);
		close(one.fd);
		__atomic_store_n(&left, UINT64_MAX, __ATOMIC_RELAXED);
		fixture_resume();
		while (mapped_bytes_of(1000) || mapped_bytes_of(1001))
			usleep(100);
		fair = left > most / 4 && left <= most;
	}
	assert_true(fair);
	close(large);
	close(small);
	for (unsigned int i = 0; i < CROWD; i++)
		close(crowd[i]);
}
