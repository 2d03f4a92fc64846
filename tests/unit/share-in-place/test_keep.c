/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is no longer shared stays in the pool for the next time, and the program sees no
 * difference. */
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "fixture.h"
#include "sharing_priv.h"

enum { BYTES = 16 * PAGE, RW = PROT_READ | PROT_WRITE, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };

static uint8_t *map(void)
{
	uint8_t *at = mmap(NULL, BYTES, RW, PRIVATE, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

/* Memory that was shared once: its offset in the pool. */
static uint64_t share(uint8_t *at, size_t bytes)
{
	struct view v = view_get(at, bytes, true);
	uint64_t offset = v.s->pieces[0].offset;

	view_put(&v);
	return offset;
}

static uint8_t *kept(unsigned int seed)
{
	uint8_t *at = map();

	fill(at, BYTES, seed);
	share(at, BYTES);
	assert_true(is_shared(at));
	return at;
}

static uint64_t pool_bytes(void)
{
	struct stat st;

	assert_int_equal(fstat(pool.fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

TEST(again__lies_where_it_was)
{
	uint8_t *at = kept(1);
	const uint64_t offset = share(at, BYTES);
	struct view v = view_get(at + PAGE + 7, PAGE, true);

	assert_int_equal(v.s->pieces[0].offset, offset + PAGE);
	check(at, BYTES, 1);
	fill(at + PAGE + 7, PAGE, 1);
	both_ways(&v, at + PAGE + 7, PAGE, 1);
	assert_int_equal(idle.bytes, BYTES - 2 * PAGE);
	view_put(&v);
	assert_int_equal(idle.bytes, BYTES);
	munmap(at, BYTES);
}

/* The guarantees that allocators rely on. */
TEST(dropped__reads_as_zeroes)
{
	static const int advice[] = {MADV_DONTNEED, MADV_FREE};

	for (unsigned int i = 0; i < 2; i++) {
		uint8_t *at = kept(1);

		assert_int_equal(madvise(at + PAGE, 4 * PAGE, advice[i]), 0);
		check(at, PAGE, 1);
		for (size_t n = PAGE; n < 5 * PAGE; n++)
			assert_int_equal(at[n], 0);
		assert_int_equal(at[5 * PAGE], (uint8_t)(5 * PAGE * 7 + (5 * PAGE >> 8) + 1));
		fill(at, BYTES, 4);
		share(at, BYTES);
		check(at, BYTES, 4);
		assert_int_equal(madvise(at, BYTES, advice[i]), 0);
		assert_false(is_shared(at));
		assert_int_equal(at[5], 0);
		assert_int_equal(idle.bytes, 0);
		assert_int_equal(pool_bytes(), 0);
		munmap(at, BYTES);
	}
}

/* The kernel drops what there is, and says that there is a hole. */
TEST(dropped__with_a_hole)
{
	uint8_t *at = kept(1);

	munmap(at + BYTES / 2, BYTES / 2);
	assert_true(madvise(at, BYTES, MADV_DONTNEED) < 0 && errno == ENOMEM);
	assert_int_equal(at[5], 0);
	munmap(at, BYTES);
}

static void *reclaim_always(void *done)
{
	while (!__atomic_load_n((bool *)done, __ATOMIC_RELAXED)) {
		sharing_lock();
		sharing_reclaim();
		sharing_unlock();
	}
	return NULL;
}

TEST(dropped__while_it_becomes_private)
{
	pthread_t other;
	bool done = false;

	assert_int_equal(pthread_create(&other, NULL, reclaim_always, &done), 0);
	for (int i = 0; i < 2000; i++) {
		uint8_t *at = map();

		memset(at, 1, BYTES);
		share(at, BYTES);
		assert_int_equal(madvise(at, BYTES, MADV_DONTNEED), 0);
		assert_int_equal(at[5], 0);
		munmap(at, BYTES);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
}

TEST(locked__is_not_dropped)
{
	uint8_t *at = kept(1);

	if (mlock(at, BYTES) || madvise(at, BYTES, MADV_DONTNEED) == 0)
		skip(); /* not allowed, or a sanitizer's mlock() */
	assert_int_equal(errno, EINVAL);
	check(at, BYTES, 1);
	munmap(at, BYTES);
}

/* Not of the pool: the advice is the kernel's. */
TEST(advice__about_other_memory)
{
	int fd = memfd_create("other", MFD_CLOEXEC);
	uint8_t *at, *pool_is_there = kept(1);

	assert_int_equal(ftruncate(fd, BYTES), 0);
	at = mmap(NULL, BYTES, RW, MAP_SHARED, fd, 0);
	fill(at, BYTES, 1);
	assert_int_equal(madvise(at, BYTES, MADV_DONTNEED), 0);
	check(at, BYTES, 1);
	assert_true(madvise(at, BYTES, MADV_FREE) < 0 && errno == EINVAL);
	munmap(at, BYTES);
	close(fd);
	munmap(pool_is_there, BYTES);
}

TEST(unmapped__is_freed)
{
	uint8_t *at = kept(1), *there = map();

	munmap(at, BYTES / 2);
	assert_int_equal(idle.bytes, BYTES);
	munmap(at + BYTES / 2, BYTES / 2);
	assert_int_equal(pool_bytes(), 0);
	/* something else in its place */
	at = kept(1);
	assert_true(mmap(at, BYTES, RW, PRIVATE | MAP_FIXED, -1, 0) == at);
	assert_int_equal(pool_bytes(), 0);
	fill(at, BYTES, 2);
	share(at, BYTES);
	/* moved, and unmapped there */
	assert_true(mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
	check(there, BYTES, 2);
	share(there, BYTES);
	assert_int_equal(pool_bytes(), BYTES);
	munmap(there, BYTES);
	/* without our knowledge: with the next memory that is unshared, or soon */
	at = kept(3);
	syscall(SYS_munmap, at, BYTES);
	sharing_keep_max = BYTES;
	at = kept(4);
	assert_int_equal(pool_bytes(), BYTES);
	sharing_keep_max = UINT64_MAX - 1;
	munmap(at, BYTES);
	assert_int_equal(idle.parts, 0);
}

/* Unmapped contents do not come back, nor do they take memory. */
TEST(unmapped__in_part)
{
	uint8_t *at = kept(1);

	assert_true(mremap(at, BYTES, BYTES / 2, 0) == at);
	assert_int_equal(pool_bytes(), BYTES / 2);
	munmap(at + 4 * PAGE, 4 * PAGE);
	assert_int_equal(pool_bytes(), 4 * PAGE);
	at = mremap(at, 4 * PAGE, BYTES, MREMAP_MAYMOVE);
	assert_true(at != MAP_FAILED);
	check(at, 4 * PAGE, 1);
	for (size_t n = 4 * PAGE; n < BYTES; n++)
		assert_int_equal(at[n], 0);
	munmap(at, BYTES);
	sharing_reclaim();
	assert_int_equal(pool_bytes(), 0);
}

TEST(moved__leaves_fresh_memory)
{
	uint8_t *at = kept(1);
	uint8_t *to = mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	if (to == MAP_FAILED)
		skip(); /* before Linux 5.13 */
	check(to, BYTES, 1);
	for (size_t n = 0; n < BYTES; n++)
		assert_int_equal(at[n], 0);
	fill(at, BYTES, 2);
	check(to, BYTES, 1);
	munmap(at, BYTES);
	munmap(to, BYTES);
	sharing_reclaim();
	assert_int_equal(pool_bytes(), 0);
}

/* As a daemon closes all: what is kept is private to the next fork's child nevertheless. */
TEST(pool__closed_by_the_program)
{
	if (in_child()) {
		uint8_t *at = kept(1), *more;

		close(pool.fd);
		close(pool.read_only_fd);
		more = kept(2);
		check(at, BYTES, 1);
		if (in_child()) {
			check(at, BYTES, 1);
			fill(at, BYTES, 3);
			fill(more, BYTES, 3);
			_exit(0);
		}
		check(at, BYTES, 1);
		check(more, BYTES, 2);
		_exit(0);
	}
}

/* A store beyond the limit would be a signal. */
TEST(file_size__limited_later)
{
	const struct rlimit little = {.rlim_cur = PAGE, .rlim_max = PAGE};
	if (in_child()) {
		uint8_t *at = kept(1), *more = map();
		struct sharing *s = NULL;

		CHILD_IF(setrlimit(RLIMIT_FSIZE, &little));
		CHILD_IF(sharing_get(more, BYTES, true, &s) != -EFBIG);
		CHILD_IF(sharing_get(at, BYTES, true, &s) != 0);
		sharing_put(s);
		sharing_reclaim();
		CHILD_IF(is_shared(at));
		_exit(0);
	}
}

TEST(limit__the_oldest_go)
{
	uint8_t *at[4];

	sharing_keep_max = 3 * BYTES;
	for (unsigned int i = 0; i < 3; i++)
		at[i] = kept(i);
	share(at[0], BYTES);
	at[3] = kept(3);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(is_shared(at[i]), i != 1);
		check(at[i], BYTES, i);
	}
	sharing_keep_max = UINT64_MAX - 1;
	for (unsigned int i = 0; i < 4; i++)
		munmap(at[i], BYTES);
	assert_int_equal(pool_bytes(), 0);
}

TEST(many__are_limited_in_number)
{
	enum { MANY = 1100 };
	uint8_t *at = mmap(NULL, 2 * MANY * PAGE, RW, PRIVATE, -1, 0);
	size_t heap;

	for (int i = 0; i < MANY; i++) {
		at[2 * i * PAGE] = (uint8_t)i;
		share(at + 2 * i * PAGE, PAGE);
	}
	assert_true(idle.parts <= 1024);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(at[2 * i * PAGE], (uint8_t)i);
	/* An allocator that unmaps holds its own lock. */
	heap = mallinfo2().uordblks;
	munmap(at, 2 * MANY * PAGE);
	assert_int_equal(mallinfo2().uordblks, heap);
	assert_int_equal(idle.parts, 0);
	assert_int_equal(pool_bytes(), 0);
}

TEST(fork__makes_it_private)
{
	uint8_t *at = kept(1);
	if (in_child()) {
		check(at, BYTES, 1);
		fill(at, BYTES, 2);
		_exit(0);
	}
	assert_false(is_shared(at));
	check(at, BYTES, 1);
	munmap(at, BYTES);
}

/* One mapping here, one file offset after the other for who maps it elsewhere. */
TEST(small_ones__lie_side_by_side)
{
	static uint8_t data[40 * PAGE] __attribute__((aligned(PAGE))) = {1};
	struct view v[20];

	fill(data, sizeof(data), 1);
	for (int i = 0; i < 20; i++)
		v[i] = view_get(data + 2 * i * PAGE, PAGE, true);
	for (int i = 1; i < 20; i++)
		assert_int_equal(v[i].s->pieces[0].offset, v[0].s->pieces[0].offset + i * PAGE);
	for (int i = 0; i < 20; i++)
		view_put(&v[i]);
	check(data, sizeof(data), 1);
	assert_int_equal(idle.parts, 20);
	sharing_reclaim();
	assert_int_equal(idle.parts, 0);
	assert_int_equal(pool_bytes(), 0);
	check(data, sizeof(data), 1);
	assert_false(is_shared(data));
}

/* A child that was made without fork() would run on it. */
TEST(stack__is_not_kept)
{
	uint8_t here[3 * PAGE];

	fill(here, sizeof(here), 1);
	share(here, sizeof(here));
	assert_false(is_shared(here));
	check(here, sizeof(here), 1);
}

TEST(not_interposed__nothing_is_kept)
{
	assert_true(interposed());
	sharing_keep_max = 0;
	for (int i = 0; i < 2; i++) {
		uint8_t *at = map();

		share(at, BYTES);
		assert_false(is_shared(at));
		munmap(at, BYTES);
	}
	sharing_keep_max = UINT64_MAX - 1;
}

static int keep_all(void **state)
{
	sharing_keep_max = UINT64_MAX - 1;
	return 0;
}

TEST_GROUP(.setup = keep_all);
