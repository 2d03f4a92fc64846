/* SPDX-License-Identifier: BSD-3-Clause */
/* fork() with shared memory: the child has its own copy of the contents, the parent continues
 * sharing. Once with the call that makes the child caught, once by handlers alone. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include "fixture.h"
#include "trap.h"

extern char **environ;
static uint8_t data[PAGE] = {1};

static bool is_filled(const uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != (uint8_t)(i * 7 + (i >> 8) + seed))
			return false;
	return true;
}

static bool pool_is_gone(const void *at)
{
	return !is_shared(at);
}

/* Heap, .data, stack and constants at once; the parent has stored before the child looks. */
TEST(child__has_its_own)
{
	static const uint8_t constant[PAGE] = {7};
	uint8_t *heap = malloc(100000), stack[2 * PAGE];
	struct view h, d, s, c;
	int stored[2];
	char byte;

	for (int round = 0; round < 10; round++) {
		pid_t child;

		assert_int_equal(pipe(stored), 0);

		fill(heap, 100000, 1);
		fill(data, PAGE, 2);
		fill(stack, sizeof(stack), 3);
		h = view_get(heap, 100000, true);
		d = view_get(data, PAGE, true);
		s = view_get(stack, sizeof(stack), true);
		c = view_get(constant, PAGE, false);
		child = fork();
		if (child == 0) {
			CHILD_IF(read(stored[0], &byte, 1) != 1);
			CHILD_IF(!is_filled(heap, 100000, 1));
			CHILD_IF(!is_filled(data, PAGE, 2));
			CHILD_IF(!is_filled(stack, sizeof(stack), 3));
			CHILD_IF(constant[0] != 7);
			CHILD_IF(!pool_is_gone(heap) || !pool_is_gone(data) ||
				 !pool_is_gone(stack) || !pool_is_gone(constant));
			fill(heap, 100000, 11);
			fill(data, PAGE, 12);
			fill(stack, sizeof(stack), 13);
			/* It may share in its turn. */
			h = view_get(heap, 100000, true);
			CHILD_IF(!is_filled(h.at, 100000, 11));
			view_put(&h);
			CHILD_IF(!is_filled(heap, 100000, 11));
			_exit(0);
		}
		fill(heap, 100000, 4);
		fill(data, PAGE, 5);
		fill(stack, sizeof(stack), 6);
		assert_int_equal(write(stored[1], "", 1), 1);
		wait_for(child);
		close(stored[0]);
		close(stored[1]);
		both_ways(&h, heap, 100000, 4);
		both_ways(&d, data, PAGE, 5);
		both_ways(&s, stack, sizeof(stack), 6);
		assert_true(is_shared(heap) && is_shared(stack));
		view_put(&h);
		view_put(&d);
		view_put(&s);
		view_put(&c);
		check(heap, 100000, 6);
		check(stack, sizeof(stack), 8);
	}
	free(heap);
}

static _Atomic bool stop;

/* The daemon: writes into registered memory whatever its owner does. */
static void *daemon_writes(void *arg)
{
	const struct view *v = arg;
	uint64_t n = 0;

	while (!stop) {
		((volatile uint64_t *)v->at)[0] = ++n;
		for (int i = 1; i < 10; i++)
			((volatile uint64_t *)v->at)[i] = n;
	}
	return NULL;
}

/* On the stack, beside variables that change all the time: what the daemon writes is not lost,
 * nor is anything of the thread's own. */
TEST(stack__while_the_daemon_writes)
{
	volatile uint64_t before = 0, words[10] = {0}, after = 0;
	struct view v;
	pthread_t t;

	v = view_get((const void *)words, sizeof(words), true);
	stop = false;
	assert_int_equal(pthread_create(&t, NULL, daemon_writes, &v), 0);
	for (int i = 0; i < 30; i++) {
		pid_t child;

		before++;
		child = fork();
		if (child == 0)
			_exit(before == after + 1 && before == (uint64_t)i + 1 ? 0 : 1);
		after++;
		wait_for(child);
		assert_int_equal(before, after);
	}
	stop = true;
	pthread_join(t, NULL);
	for (int i = 1; i < 10; i++)
		assert_int_equal(words[i], words[0]);
	assert_memory_equal(v.at, (const void *)words, sizeof(words));
	view_put(&v);
}

static void *fork_in_thread(void *arg)
{
	child__has_its_own(arg);
	return NULL;
}

TEST(thread__forks)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, fork_in_thread, state), 0);
	pthread_join(t, NULL);
}

/* A child that dies before it has copied, and one that is not waited for. */
TEST(child__killed_at_any_moment)
{
	uint8_t *at =
		mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct view v;

	memset(at, 1, 8 << 20);
	v = view_get(at, 8 << 20, true);
	for (int i = 0; i < 20; i++) {
		pid_t killer = fork(), self = getppid();

		(void)self;
		if (killer == 0)
			_exit(0);
		kill(killer, SIGKILL);
		waitpid(killer, NULL, 0);
		at[i] = 9;
		assert_int_equal(v.at[i], 9);
	}
	view_put(&v);
	munmap(at, 8 << 20);
}

TEST(spawn__needs_nothing)
{
	char *argv[] = {"true", NULL};
	uint8_t *heap = calloc(1, 1000), stack[100] = {0};
	struct view h = view_get(heap, 1000, true), s = view_get(stack, 100, true);
	pid_t child;

	for (int i = 0; i < 10; i++) {
		assert_int_equal(posix_spawnp(&child, "true", NULL, NULL, argv, environ), 0);
		wait_for(child);
	}
	assert_int_equal(system("true"), 0);
	fill(heap, 1000, 1);
	both_ways(&h, heap, 1000, 1);
	view_put(&h);
	view_put(&s);
	free(heap);
}

static void *store(void *arg)
{
	volatile uint64_t *words = arg;

	for (uint64_t n = 0; !stop; n++) {
		if (words[0] != n || words[500] != n)
			fail_msg("a store of turn %lu is lost", n);
		words[0] = words[500] = n + 1;
	}
	return NULL;
}

/* Threads that store continue while another forks. */
TEST(others__store_on)
{
	uint64_t *words = calloc(1000, 8);
	struct view v = view_get(words, 8000, true);
	pthread_t t;

	stop = false;
	assert_int_equal(pthread_create(&t, NULL, store, words), 0);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(!pool_is_gone(words));
		wait_for(child);
	}
	stop = true;
	pthread_join(t, NULL);
	assert_memory_equal(v.at, words, 8000);
	view_put(&v);
	free(words);
}

static int without_trap(void **state)
{
	trap_never = true;
	return 0;
}

TEST_GROUP(.again = without_trap);
