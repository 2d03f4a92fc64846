/* SPDX-License-Identifier: BSD-3-Clause */
/* Each kind of memory: shared with its contents, seen from both sides, private again afterwards
 * and as useful to the program as before. */
#include <malloc.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include "fixture.h"
#include "sharing_priv.h"

static uint8_t data[3 * PAGE] = {1};
static uint8_t bss[3 * PAGE];
static const uint8_t constant[2 * PAGE] = {[0] = 5, [PAGE] = 6};

static void *map(size_t bytes, int protection, int flags, int fd)
{
	void *at = mmap(NULL, bytes, protection, flags, fd, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static void private_there_and_back(uint8_t *at, size_t bytes)
{
	struct view v;

	fill(at, bytes, 1);
	v = view_get(at, bytes, true);
	assert_true(is_shared(at));
	both_ways(&v, at, bytes, 1);
	view_put(&v);
	assert_false(is_shared(at));
	check(at, bytes, 3);
	assert_int_equal(vma_at(at).protection, PROT_READ | PROT_WRITE);
	fill(at, bytes, 9);
	check(at, bytes, 9);
}

TEST(anonymous__there_and_back)
{
	uint8_t *at = map(64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	private_there_and_back(at, 64 * PAGE);
	private_there_and_back(at + 3, 1);
	private_there_and_back(at + PAGE - 1, 2);
	private_there_and_back(at + 5 * PAGE + 100, 10 * PAGE);
	madvise(at, 64 * PAGE, MADV_DONTNEED);
	for (size_t i = 0; i < 64 * PAGE; i++)
		assert_int_equal(at[i], 0);
	/* One mapping, as if nothing had been. */
	assert_true(vma_at(at).end - vma_at(at).start >= 64 * PAGE);
	munmap(at, 64 * PAGE);
}

static uint64_t told[8];
static unsigned int told_count;

static void hear(uint64_t done, uint64_t all)
{
	assert_int_equal(all, 65 << 20);
	assert_true(told_count < 8);
	told[told_count++] = done;
}

TEST(anonymous__tells_how_far_it_is)
{
	const uint64_t expected[] = {0, 64 << 20, 65 << 20, 65 << 20};
	uint8_t *at = map(65 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct view v;

	told_count = 0;
	sharing_progress = hear;
	v = view_get(at, 65 << 20, true);
	sharing_progress = NULL;
	assert_int_equal(told_count, 4);
	assert_memory_equal(told, expected, sizeof(expected));
	view_put(&v);
	munmap(at, 65 << 20);
}

TEST(data_and_bss__there_and_back)
{
	private_there_and_back(data + 7, 2 * PAGE);
	private_there_and_back(bss + 7, 2 * PAGE);
	private_there_and_back(data, 1);
}

TEST(heap__small_ones_share_pages)
{
	enum { N = 200, BYTES = 100 };
	uint8_t *at[N];
	struct view v[N];

	for (unsigned int i = 0; i < N; i++) {
		at[i] = malloc(BYTES);
		fill(at[i], BYTES, i);
	}
	for (unsigned int i = 0; i < N; i++)
		v[i] = view_get(at[i], BYTES, true);
	for (unsigned int i = 0; i < N; i++)
		both_ways(&v[i], at[i], BYTES, i);
	for (unsigned int i = 0; i < N; i += 2)
		view_put(&v[i]);
	for (unsigned int i = 1; i < N; i += 2)
		both_ways(&v[i], at[i], BYTES, i + 2);
	for (unsigned int i = 1; i < N; i += 2)
		view_put(&v[i]);
	for (unsigned int i = 0; i < N; i++) {
		assert_false(is_shared(at[i]));
		check(at[i], BYTES, i + 2 + 2 * (i % 2));
		free(at[i]);
	}
}

TEST(heap__realloc_free_trim_calloc)
{
	uint8_t *at = malloc(100000), *big = malloc(1 << 20), *again;
	struct view v;

	fill(at, 100000, 1);
	v = view_get(at, 100000, true);
	at = realloc(at, 120000); /* while it is registered */
	check(at, 100000, 1);
	view_put(&v);
	at = realloc(at, 130000);
	check(at, 100000, 1);
	free(at);
	malloc_trim(0);
	at = calloc(1, 130000);
	for (int i = 0; i < 130000; i++)
		assert_int_equal(at[i], 0);
	free(at);
	/* a chunk with its own mapping: grows by mremap() */
	fill(big, 1 << 20, 2);
	v = view_get(big, 1 << 20, true);
	again = realloc(big, 8 << 20);
	check(again, 1 << 20, 2);
	fill(again, 8 << 20, 4);
	if (is_shared(again)) /* an allocator may copy instead */
		check(v.at, 1 << 20, 4);
	view_put(&v);
	assert_false(is_shared(again));
	assert_false(is_shared(again + (4 << 20)));
	check(again, 8 << 20, 4);
	free(again);
}

TEST(overlapping__any_order)
{
	uint8_t *at = map(32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct view a, b, c;

	for (int order = 0; order < 3; order++) {
		fill(at, 32 * PAGE, 0);
		a = view_get(at, 10 * PAGE, true);
		b = view_get(at + 20 * PAGE, 5 * PAGE, true);
		c = view_get(at + 5 * PAGE, 20 * PAGE, true); /* over both and the gap */
		fill(at, 32 * PAGE, 1);
		check(a.at, 10 * PAGE, 1);
		assert_memory_equal(c.at, at + 5 * PAGE, 20 * PAGE);
		assert_memory_equal(b.at, at + 20 * PAGE, 5 * PAGE);
		c.at[15 * PAGE] ^= 0xff;
		assert_int_equal(b.at[0], c.at[15 * PAGE]);
		c.at[15 * PAGE] ^= 0xff;
		view_put(order == 0 ? &a : order == 1 ? &c : &b);
		assert_int_equal(is_shared(at), order != 0);
		assert_int_equal(is_shared(at + 12 * PAGE), order != 1);
		view_put(order == 0 ? &c : order == 1 ? &b : &a);
		view_put(order == 0 ? &b : order == 1 ? &a : &c);
		check(at, 32 * PAGE, 1);
		for (int i = 0; i < 32; i++)
			assert_false(is_shared(at + i * PAGE));
	}
	munmap(at, 32 * PAGE);
}

TEST(same__twice)
{
	uint8_t *at = map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct view a = view_get(at, PAGE, true), b = view_get(at, PAGE, true);

	assert_int_equal(a.s->pieces[0].offset, b.s->pieces[0].offset);
	view_put(&a);
	assert_true(is_shared(at));
	fill(at, PAGE, 0);
	both_ways(&b, at, PAGE, 0);
	view_put(&b);
	assert_false(is_shared(at));
	munmap(at, PAGE);
}

TEST(read_only__is_not_for_writing)
{
	uint8_t *at = map(2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct sharing *s;
	struct view v;

	fill(at, 2 * PAGE, 1);
	assert_int_equal(mprotect(at, PAGE, PROT_READ), 0);
	assert_int_equal(sharing_get(at, 2 * PAGE, true, &s), -EFAULT);
	assert_false(is_shared(at + PAGE));
	v = view_get(at, 2 * PAGE, false);
	assert_false(v.s->writable);
	check(v.at, 2 * PAGE, 1);
	for (unsigned int i = 0; i < v.s->count; i++)
		assert_true(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, v.s->pieces[i].fd,
				 0) == MAP_FAILED);
	/* The program itself may make it writable at any time. */
	assert_int_equal(mprotect(at, PAGE, PROT_READ | PROT_WRITE), 0);
	fill(at, PAGE, 2);
	check(v.at, PAGE, 2);
	view_put(&v);
	check(at, PAGE, 2);
	/* constants of the program */
	v = view_get(constant, sizeof(constant), false);
	assert_memory_equal(v.at, constant, sizeof(constant));
	view_put(&v);
	assert_int_equal(vma_at(constant).protection, PROT_READ);
	assert_int_equal(constant[PAGE], 6);
	munmap(at, 2 * PAGE);
}

TEST(nothing__is_refused)
{
	uint8_t *at = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct sharing *s;

	assert_int_equal(sharing_get(at, 0, true, &s), -EINVAL);
	assert_int_equal(sharing_get(at, SIZE_MAX - 100, true, &s), -EINVAL);
	assert_int_equal(sharing_get((void *)-100l, 50, true, &s), -EINVAL);
	assert_int_equal(sharing_get(NULL, 1, false, &s), -EFAULT);
	munmap(at + 3 * PAGE, PAGE);
	mprotect(at + 6 * PAGE, PAGE, PROT_NONE);
	assert_int_equal(sharing_get(at, 8 * PAGE, false, &s), -EFAULT);
	assert_int_equal(sharing_get(at + 3 * PAGE, 1, false, &s), -EFAULT);
	assert_int_equal(sharing_get(at + 6 * PAGE, 1, false, &s), -EFAULT);
	assert_false(is_shared(at)); /* nothing is left of what failed */
	munmap(at, 8 * PAGE);
}

TEST(private_file__there_and_back)
{
	char path[] = "/tmp/sharing-XXXXXX";
	int fd = mkstemp(path);
	uint8_t *at;
	char byte = 1;

	unlink(path);
	for (int i = 0; i < 4 * PAGE; i++)
		assert_int_equal(pwrite(fd, &byte, 1, i), 1);
	at = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	private_there_and_back(at, 4 * PAGE);
	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(byte, 1);
	munmap(at, 4 * PAGE);
	/* beyond the file's end there is nothing to be had */
	at = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	assert_int_equal(sharing_get(at + 6 * PAGE, 1, true, &(struct sharing *){0}), -EFAULT);
	munmap(at, 8 * PAGE);
	/* shared it cannot be */
	at = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	assert_int_equal(sharing_get(at, 1, true, &(struct sharing *){0}), -EOPNOTSUPP);
	munmap(at, 4 * PAGE);
	close(fd);
}

static void shared__passes_on_the_file(uint8_t *at, size_t bytes)
{
	struct view v;
	struct vma before = vma_at(at);

	fill(at, bytes, 1);
	v = view_get(at + 10, bytes - 20, true);
	assert_int_equal(vma_at(at).inode, before.inode);
	assert_int_equal(vma_at(at).start, before.start);
	v.base[0] ^= 0; /* the requested range begins at 10 */
	fill(v.base, bytes, 2);
	check(at, bytes, 2);
	sharing_close_files(v.s);
	view_put(&v);
	assert_true(is_shared(at));
}

TEST(shared__passed_on)
{
	int fd = memfd_create("theirs", MFD_CLOEXEC);
	uint8_t *at;

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	at = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	shared__passes_on_the_file(at, 4 * PAGE);
	munmap(at, 4 * PAGE);
	/* beyond its end, which may lie within a page */
	at = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	assert_int_equal(sharing_get(at, 8 * PAGE, true, &(struct sharing *){0}), -EFAULT);
	assert_int_equal(ftruncate(fd, PAGE + 16), 0);
	shared__passes_on_the_file(at, PAGE + 16);
	assert_int_equal(sharing_get(at, 2 * PAGE + 1, true, &(struct sharing *){0}), -EFAULT);
	munmap(at, 8 * PAGE);
	close(fd);
	fd = shm_open("/sharing-test", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0);
	at = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	close(fd);
	shared__passes_on_the_file(at, 4 * PAGE);
	shm_unlink("/sharing-test");
	munmap(at, 4 * PAGE);
	if (geteuid())
		return; /* the rest needs /proc/self/map_files */
	at = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	shared__passes_on_the_file(at, 4 * PAGE);
	munmap(at, 4 * PAGE);
	fd = shmget(IPC_PRIVATE, 4 * PAGE, 0600);
	at = shmat(fd, NULL, 0);
	shared__passes_on_the_file(at, 4 * PAGE);
	shmctl(fd, IPC_RMID, NULL);
	shmdt(at);
}

TEST(mixed__pieces_in_order)
{
	int fd = memfd_create("theirs", MFD_CLOEXEC);
	uint8_t *at = map(12 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct view v;

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	assert_true(mmap(at + 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) != MAP_FAILED);
	fill(at, 12 * PAGE, 1);
	v = view_get(at, 12 * PAGE, true);
	assert_int_equal(v.s->count, 3);
	both_ways(&v, at, 12 * PAGE, 1);
	view_put(&v);
	check(at, 12 * PAGE, 3);
	assert_false(is_shared(at));
	assert_true(is_shared(at + 4 * PAGE));
	munmap(at, 12 * PAGE);
	close(fd);
}

TEST(gone__is_left_alone)
{
	uint8_t *at = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct view v = view_get(at, 8 * PAGE, true);
	uint8_t *elsewhere;

	/* mapped anew in the middle, and moved, and unmapped */
	assert_true(mmap(at + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	at[2 * PAGE] = 77;
	munmap(at + 3 * PAGE, PAGE);
	at[5 * PAGE] = 55;
	elsewhere = mremap(at + 5 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			   map(PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	assert_true(elsewhere != MAP_FAILED && is_shared(elsewhere));
	view_put(&v);
	assert_int_equal(at[2 * PAGE], 77);
	assert_false(is_shared(at));
	assert_false(is_shared(at + 4 * PAGE));
	assert_false(is_shared(elsewhere));
	assert_int_equal(elsewhere[0], 55);
	munmap(at, 8 * PAGE);
	munmap(elsewhere, PAGE);
}

static unsigned long kilobytes_locked(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long kilobytes = 0;
	char text[128];

	while (file && fgets(text, sizeof(text), file))
		if (sscanf(text, "VmLck: %lu", &kilobytes) == 1)
			break;
	if (file)
		fclose(file);
	return kilobytes;
}

TEST(locked__stays_locked)
{
	uint8_t *at = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	unsigned long before;
	struct view v;

	if (mlock(at, 4 * PAGE) || !kilobytes_locked())
		skip(); /* not allowed, or a sanitizer's mlock() */
	before = kilobytes_locked();
	v = view_get(at, 4 * PAGE, true);
	assert_int_equal(kilobytes_locked(), before);
	view_put(&v);
	assert_int_equal(kilobytes_locked(), before);
	munmap(at, 4 * PAGE);
}

TEST(stack__of_this_thread)
{
	uint8_t here[3 * PAGE];
	struct view v;

	fill(here, sizeof(here), 1);
	for (unsigned int i = 1; i < 9; i += 2) {
		v = view_get(here, sizeof(here), true);
		both_ways(&v, here, sizeof(here), i);
		view_put(&v);
		check(here, sizeof(here), i + 2);
	}
	assert_false(is_shared(here));
}

static void *stack_in_thread(void *arg)
{
	for (int i = 0; i < 20; i++)
		stack__of_this_thread(arg);
	return NULL;
}

TEST(stack__of_a_thread)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, stack_in_thread, state), 0);
	pthread_join(t, NULL);
}

static unsigned int deep(unsigned int n)
{
	volatile uint8_t here[PAGE];

	here[n % PAGE] = (uint8_t)n;
	return n ? deep(n - 1) + here[n % PAGE] : 0;
}

TEST(stack__grows_while_shared)
{
	uint8_t here[PAGE] = {0};
	struct view v = view_get(here, sizeof(here), true);

	assert_true(deep(600) != 1);
	fill(here, sizeof(here), 3);
	both_ways(&v, here, sizeof(here), 3);
	view_put(&v);
	assert_true(deep(900) != 1);
}

/* Huge pages, where the system has some to give. Private ones become small ones. */
TEST(huge__private_and_shared)
{
	const size_t huge = 2 << 20;
	uint8_t *at = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	struct view v;

	if (at == MAP_FAILED || fd < 0)
		skip();
	fill(at, 2 * huge, 1);
	v = view_get(at + huge - 100, 50, true);
	assert_true(is_shared(at) && !is_shared(at + huge));
	at[huge - 99] = 33;
	assert_memory_equal(v.at, at + huge - 100, 50);
	view_put(&v);
	fill(at, 2 * huge, 2);
	v = view_get(at + huge - 100, 5000, true);
	assert_memory_equal(v.at, at + huge - 100, 5000);
	view_put(&v);
	check(at, 2 * huge, 2);
	munmap(at, 2 * huge);
	assert_int_equal(ftruncate(fd, 2 * (off_t)huge), 0);
	at = map(2 * huge, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	v = view_get(at + huge + 5000, 8192, true);
	assert_int_equal(v.s->addr, at + huge);
	assert_int_equal(v.s->bytes, huge);
	assert_int_equal(v.s->log_page, 21);
	at[huge + 5000] = 44;
	assert_int_equal(v.at[0], 44);
	view_put(&v);
	munmap(at, 2 * huge);
	close(fd);
}

/* The program may close the descriptor that tells the mappings, and give its number to a file. */
TEST(maps__number_of_the_descriptor_reused)
{
	static struct vma_reader r;
	uint8_t *at = map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int other;

	assert_int_equal(vma_open_kept(&r), 0);
	vma_close(&r);
	other = dup2(0, r.fd);
	assert_int_equal(other, r.fd);
	private_there_and_back(at, PAGE);
	assert_true(fcntl(other, F_GETFD) >= 0);
	close(other);
	munmap(at, PAGE);
}

/* What _Fork() makes has no handler that would forget it. */
static pid_t fork_and_look(void)
{
	static struct vma_reader r;
	struct vma v;
	uint8_t *at;
	pid_t child;

	if (vma_open_kept(&r))
		return -1;
	vma_close(&r);
	child = _Fork();
	if (child == 0) {
		at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHILD_IF(vma_open_kept(&r) || !vma_find(&r, (uintptr_t)at, &v));
		CHILD_IF(v.start > (uintptr_t)at);
		_exit(0);
	}
	return child;
}

TEST(maps__descriptor_of_the_parent)
{
	wait_for(fork_and_look());
}

/* Both are process 1, each in its own namespace. */
TEST(maps__descriptor_of_the_parent_by_the_same_number)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
			_exit(0); /* not allowed here */
		child = _Fork();
		if (child == 0) {
			CHILD_IF(unshare(CLONE_NEWPID));
			child = fork_and_look();
			CHILD_IF(waitpid(child, &status, 0) != child || status);
			_exit(0);
		}
		CHILD_IF(waitpid(child, &status, 0) != child || status);
		_exit(0);
	}
	wait_for(child);
}

static int with_text(void **state)
{
	vma_only_text = true;
	return 0;
}

static int keep_nothing(void **state)
{
	sharing_keep_max = 0;
	return 0;
}

/* Once more as on a kernel that cannot be asked for one mapping. */
TEST_GROUP(.setup = keep_nothing, .again = with_text);
