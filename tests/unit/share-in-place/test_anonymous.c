/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared anonymous memory has a file that can be passed on, and is otherwise what it always was. */
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include "../descriptors.h"
#include "fixture.h"

enum { BYTES = 8 * PAGE, RW = PROT_READ | PROT_WRITE, SHARED = MAP_SHARED | MAP_ANONYMOUS };

static uint8_t *map(size_t bytes, int flags)
{
	uint8_t *at = mmap(NULL, bytes, RW, SHARED | flags, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static bool has_a_file(const void *at)
{
	return strncmp(vma_at(at).path, "/memfd:", 7) == 0;
}

/* Only root may open the kernel's own file. */
static void become_ordinary(void)
{
	CHILD_IF(geteuid() == 0 && setresuid(65534, 65534, 65534));
}

/* The child registers; what its peer stores there the parent sees, and the other way round. */
static void over_a_fork(uint8_t *at, size_t bytes)
{
	struct sharing *s = NULL;

	fill(at, bytes, 1);
	if (in_child()) {
		struct view v;

		become_ordinary();
		CHILD_IF(sharing_get(at, bytes, true, &s));
		v = view_of(s, at);
		check(v.at, bytes, 1);
		fill(v.at, bytes, 2);
		check(at, bytes, 2);
		view_put(&v);
		_exit(0);
	}
	check(at, bytes, 2);
}

TEST(mapping__is_shared_by_parent_and_child)
{
	uint8_t *at = map(BYTES - 100, 0);
	struct view v = view_get(at, BYTES, true);

	assert_true(has_a_file(at));
	for (int i = 0; i < BYTES; i++)
		assert_int_equal(at[i], 0);
	over_a_fork(at, BYTES);
	if (in_child()) { /* the parent's registered memory */
		fill(at, BYTES, 3);
		munmap(at, BYTES);
		_exit(0);
	}
	both_ways(&v, at, BYTES, 3);
	view_put(&v);
	munmap(at, BYTES);
}

TEST(advice__means_what_it_did)
{
	uint8_t *at = map(BYTES, MAP_NORESERVE | MAP_POPULATE);

	fill(at, BYTES, 1);
	assert_int_equal(madvise(at, BYTES, MADV_DONTNEED), 0);
	check(at, BYTES, 1); /* the file has it */
	assert_int_equal(madvise(at, BYTES, MADV_REMOVE), 0);
	assert_int_equal(at[5 * PAGE + 5], 0);
	assert_int_equal(mprotect(at, PAGE, PROT_READ), 0);
	munmap(at, BYTES);
}

TEST(descriptor__goes_with_the_last_mapping)
{
	uint8_t *at = map(PAGE, 0), *gap;
	unsigned int before;

	munmap(at, PAGE);
	before = open_descriptors();
	/* in parts */
	at = map(BYTES, 0);
	assert_int_equal(open_descriptors(), before + 1);
	munmap(at, 4 * PAGE);
	munmap(at + 6 * PAGE, 2 * PAGE);
	assert_int_equal(open_descriptors(), before + 1);
	over_a_fork(at + 4 * PAGE, 2 * PAGE);
	munmap(at + 4 * PAGE, 2 * PAGE);
	assert_int_equal(open_descriptors(), before);
	/* moved, and a second mapping of the same */
	at = map(BYTES, 0);
	gap = map(BYTES, 0);
	assert_int_equal(open_descriptors(), before + 2);
	assert_true(mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, gap) == gap);
	assert_int_equal(open_descriptors(), before + 1);
	over_a_fork(gap, BYTES);
	at = mremap(gap, 0, BYTES, MREMAP_MAYMOVE);
	assert_true(at != MAP_FAILED);
	munmap(gap, BYTES);
	assert_int_equal(open_descriptors(), before + 1);
	/* something else takes its place */
	assert_true(mmap(at, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	assert_int_equal(open_descriptors(), before);
	munmap(at, BYTES);
}

/* A daemon closes descriptors that it does not know; the number is soon reused. */
TEST(descriptor__closed_by_the_program)
{
	uint8_t *at;
	if (in_child()) {
		at = map(BYTES, 0);
		CHILD_IF(close_range(3, ~0u, 0));
		fill(at, BYTES, 1);
		check(at, BYTES, 1);
		for (int fd = 0; fd >= 0 && fd < 5000; fd = dup(0))
			;
		munmap(at, BYTES);
		CHILD_IF(fcntl(4096, F_GETFD) < 0 && fcntl(512, F_GETFD) < 0);
		_exit(0);
	}
}

TEST(refusals__are_the_kernels)
{
	const struct rlimit little = {.rlim_cur = PAGE, .rlim_max = RLIM_INFINITY};
	uint8_t *at = map(BYTES, 0);
	struct rlimit was;

	assert_true(mmap(NULL, 0, RW, SHARED, -1, 0) == MAP_FAILED && errno == EINVAL);
	assert_true(mmap(NULL, PAGE, RW, SHARED, -1, 1) == MAP_FAILED && errno == EINVAL);
	assert_true(mmap(at + 1, PAGE, RW, SHARED | MAP_FIXED, -1, 0) == MAP_FAILED &&
		    errno == EINVAL);
	assert_true(mmap(at, PAGE, RW, SHARED | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED &&
		    errno == EEXIST);
	assert_true(mmap(NULL, 1ul << 60, RW, SHARED, -1, 0) == MAP_FAILED && errno == ENOMEM);
	munmap(at, BYTES);
	/* No file, no signal: the kernel's own. */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	at = map(BYTES, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_false(has_a_file(at));
	fill(at, BYTES, 1);
	munmap(at, BYTES);
}

TEST(many__all_of_them_work)
{
	enum { MANY = 300 };
	static uint8_t *at[MANY];
	const unsigned int before = open_descriptors();

	for (int i = 0; i < MANY; i++) {
		at[i] = map(PAGE, 0);
		fill(at[i], PAGE, (unsigned int)i);
	}
	assert_true(has_a_file(at[0]));
	for (int i = 0; i < MANY; i++) {
		check(at[i], PAGE, (unsigned int)i);
		munmap(at[i], PAGE);
	}
	assert_int_equal(open_descriptors(), before);
}

/* Of a System V segment the other side learns the number. */
TEST(segment__is_named)
{
	int id = shmget(IPC_PRIVATE, BYTES - 100, 0666);
	uint8_t *at = shmat(id, NULL, 0);
	struct sharing *s = NULL;
	pid_t child = fork();

	shmctl(id, IPC_RMID, NULL);
	if (child == 0) {
		become_ordinary();
		CHILD_IF(sharing_get(at + PAGE + 7, PAGE, true, &s));
		CHILD_IF(s->count != 1 || s->pieces[0].fd != -1);
		CHILD_IF(s->pieces[0].inode != (uint64_t)id || s->pieces[0].offset != PAGE);
		CHILD_IF(s->pieces[0].segment_bytes != BYTES || s->pieces[0].bytes != 2 * PAGE);
		sharing_put(s);
		CHILD_IF(!is_shared(at));
		_exit(0);
	}
	wait_for(child);
	shmdt(at);
}

TEST(huge__where_there_are_some)
{
	const size_t huge = 2 << 20;
	uint8_t *at = mmap(NULL, huge, RW, SHARED | MAP_HUGETLB, -1, 0);

	if (at == MAP_FAILED)
		skip();
	over_a_fork(at, huge);
	assert_int_equal(vma_at(at).end - vma_at(at).start, huge);
	munmap(at, huge);
}
