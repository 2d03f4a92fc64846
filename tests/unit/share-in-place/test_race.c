/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory is shared and taken back hundreds of times while other threads store into it, by
 * instructions and by system calls: no store may be lost, no system call may fail for it.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include "fixture.h"
#include "sharing_priv.h"

enum { PAGES = 64, ROUNDS = 200, STORERS = 2, WORDS = PAGES * PAGE / 8 };

static uint64_t *memory;
static _Atomic bool stop;
static uint64_t stores, reads, born;

/* Each has its own words; each word counts its owner's turns. */
static void *store(void *arg)
{
	const size_t first = (size_t)(uintptr_t)arg;
	uint64_t turn = 0, n = 0;

	while (!stop) {
		for (size_t i = first; i < WORDS; i += STORERS + 1) {
			volatile uint64_t *at = &memory[i];

			if (*at != turn)
				fail_msg("word %zu is %lu in turn %lu", i, *at, turn);
			*at = turn + 1;
			n++;
		}
		turn++;
	}
	for (size_t i = first; i < WORDS; i += STORERS + 1)
		assert_int_equal(memory[i], turn);
	__atomic_add_fetch(&stores, n, __ATOMIC_RELAXED);
	return NULL;
}

/* The kernel stores, into the words that are left. */
static void *store_by_read(void *arg)
{
	uint64_t n = 0, word;
	int pair[2];

	assert_int_equal(pipe(pair), 0);
	while (!stop) {
		for (size_t i = STORERS; i < WORDS && !stop; i += STORERS + 1) {
			n++;
			assert_int_equal(write(pair[1], &n, 8), 8);
			if (read(pair[0], &memory[i], 8) != 8)
				fail_msg("read: %s", strerror(errno));
			word = ((volatile uint64_t *)memory)[i];
			if (word != n)
				fail_msg("read() stored %lu, not %lu", word, n);
		}
	}
	__atomic_add_fetch(&reads, n, __ATOMIC_RELAXED);
	close(pair[0]);
	close(pair[1]);
	return NULL;
}

/* Sleeps in a read() into the memory that comes to an end at any moment: never EINTR. */
static void *wait_in_read(void *arg)
{
	const int *fd = arg;
	uint8_t *at = (uint8_t *)memory + (PAGES + 1) * PAGE;

	for (uint8_t n = 1;; n++) {
		if (read(*fd, at, 1) != 1)
			fail_msg("read: %s", strerror(errno));
		if (*at == 0)
			return NULL;
		if (*at != n)
			fail_msg("%u came, not %u", *at, n);
		n = n == 255 ? 0 : n;
	}
}

/* Blocks whatever can be blocked. */
static void *store_deaf(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	return store(arg);
}

static void *live_shortly(void *arg)
{
	volatile uint8_t *at = arg;

	(*at)++;
	return NULL;
}

/* Threads that are born and die all the time. */
static void *bear(void *arg)
{
	uint8_t *at = (uint8_t *)memory + PAGES * PAGE + 64;
	pthread_t t;

	while (!stop) {
		uint8_t before = *at;

		assert_int_equal(pthread_create(&t, NULL, live_shortly, at), 0);
		pthread_join(t, NULL);
		assert_int_equal(*at, (uint8_t)(before + 1));
		born++;
	}
	return NULL;
}

TEST(swaps__lose_no_store)
{
	pthread_t t[5];
	uint8_t n = 1, zero = 0;
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	memory = mmap(NULL, (PAGES + 2) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	assert_true(memory != MAP_FAILED);
	assert_int_equal(pthread_create(&t[0], NULL, store, (void *)0), 0);
	assert_int_equal(pthread_create(&t[1], NULL, store_deaf, (void *)1), 0);
	assert_int_equal(pthread_create(&t[2], NULL, store_by_read, NULL), 0);
	assert_int_equal(pthread_create(&t[3], NULL, wait_in_read, &fd[0]), 0);
	assert_int_equal(pthread_create(&t[4], NULL, bear, NULL), 0);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		const size_t first = i * 7 % PAGES, pages = i % 3 ? PAGES + 2 - first : 1;
		struct sharing *s = NULL;

		assert_int_equal(
			sharing_get((uint8_t *)memory + first * PAGE, pages * PAGE, true, &s), 0);
		assert_int_equal(write(fd[1], &n, 1), 1);
		n = n == 255 ? 1 : (uint8_t)(n + 1);
		sharing_put(s);
	}
	stop = true;
	assert_int_equal(write(fd[1], &zero, 1), 1);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	print_message("%u swaps there and back, %lu stores, %lu by read(), %lu threads\n", ROUNDS,
		      stores, reads, born);
	munmap(memory, (PAGES + 2) * PAGE);
	close(fd[0]);
	close(fd[1]);
}

static void *work(void *arg)
{
	struct sharing_worker *w = sharing_worker_enter();
	uint64_t *words = arg;

	while (!stop) {
		struct timespec t = {.tv_nsec = 50000};

		sharing_worker_sleeps(w);
		nanosleep(&t, NULL);
		sharing_worker_wakes(w);
		for (int i = 0; i < 1000; i++)
			words[i]++;
	}
	sharing_worker_leave(w);
	return NULL;
}

TEST(workers__are_held)
{
	static uint64_t words[1000];
	pthread_t t;

	stop = false;
	assert_int_equal(pthread_create(&t, NULL, work, words), 0);
	for (int i = 0; i < 300; i++) {
		struct sharing *s = NULL;

		assert_int_equal(sharing_get(words, sizeof(words), true, &s), 0);
		sharing_put(s);
	}
	stop = true;
	pthread_join(t, NULL);
	for (int i = 1; i < 1000; i++)
		assert_int_equal(words[i], words[0]);
}

static void *share_often(void *arg)
{
	uint8_t *at = arg;

	for (int i = 0; i < 60; i++) {
		struct sharing *s = NULL;

		at[0] = (uint8_t)i;
		assert_int_equal(sharing_get(at, 100, true, &s), 0);
		at[1] = (uint8_t)i;
		sharing_put(s);
		assert_int_equal(at[0], at[1]);
	}
	return NULL;
}

/* Threads that share at the same time, what lies in the same pages. */
TEST(sharers__at_the_same_time)
{
	uint8_t *at = malloc(1000);
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, share_often, at + i * 300), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_false(is_shared(at));
	free(at);
}

/* The C library's own use of the signal continues. */
TEST(setuid__still_reaches_all)
{
	pthread_t t;

	stop = false;
	memory = calloc(WORDS, 8);
	assert_int_equal(pthread_create(&t, NULL, store, (void *)0), 0);
	for (int i = 0; i < 20; i++) {
		struct sharing *s = NULL;

		assert_int_equal(setgid(getgid()), 0);
		assert_int_equal(sharing_get(memory, PAGE, true, &s), 0);
		assert_int_equal(setgid(getgid()), 0);
		sharing_put(s);
	}
	stop = true;
	pthread_join(t, NULL);
	free(memory);
}

/* There and back each time. */
static int keep_nothing(void **state)
{
	sharing_keep_max = 0;
	return 0;
}

TEST_GROUP(.setup = keep_nothing);
