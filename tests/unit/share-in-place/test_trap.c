/* SPDX-License-Identifier: BSD-3-Clause */
/* Guarantees of a fork whose call is caught: the child's memory is of one moment, and nothing that
 * the C library does for the child reaches the parent. And the trap leaves no trace. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "fixture.h"
#include "trap.h"

static _Atomic bool stop;
static pthread_barrier_t barrier;

static void start(pthread_t *t, void *(*run)(void *arg), void *arg)
{
	stop = false;
	assert_int_equal(pthread_create(t, NULL, run, arg), 0);
}

static void end(pthread_t t)
{
	stop = true;
	pthread_join(t, NULL);
}

/* ---- other threads ---- */

/* A thread's first frames are beside its descriptor, its first memory beside its arena. */
static void *share_a_little(void *arg)
{
	char *heap = calloc(1, 64), stack[64] = {0};
	struct view h = view_get(heap, 64, true), s = view_get(stack, 64, true);

	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	view_put(&h);
	view_put(&s);
	free(heap);
	return NULL;
}

/* The child's C library ends the other threads: not those of the parent. */
TEST(other_threads__are_not_ended)
{
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 2);
	start(&t, share_a_little, NULL);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		wait_for(child);
	}
	assert_int_equal(pthread_tryjoin_np(t, NULL), EBUSY);
	pthread_barrier_wait(&barrier);
	pthread_join(t, NULL);
}

enum { FAR = 8 << 20 };

/* The first word is never behind the last, nor by more than one before it. */
static void *count(void *arg)
{
	uint8_t *at = arg;
	volatile uint64_t *first = (volatile uint64_t *)at;
	volatile uint64_t *last = (volatile uint64_t *)(at + FAR - 8);

	while (!stop) {
		(*first)++;
		(*last)++;
	}
	return NULL;
}

TEST(child__is_of_one_moment)
{
	uint8_t *at = mmap(NULL, FAR, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct view v;
	pthread_t t;

	memset(at, 0, FAR);
	v = view_get(at, FAR, true);
	start(&t, count, at);
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (child == 0)
			CHILD_IF(*(uint64_t *)at - *(uint64_t *)(at + FAR - 8) > 1);
		if (child == 0)
			_exit(0);
		wait_for(child);
	}
	end(t);
	view_put(&v);
	munmap(at, FAR);
}

/* Keeps the allocator's lists changing. */
static void *allocate(void *arg)
{
	void *at[64] = {NULL};

	for (unsigned int i = 0; !stop; i++) {
		free(at[i * 7 % 64]);
		at[i * 7 % 64] = malloc(1100 + i * 37 % 3000);
	}
	for (unsigned int i = 0; i < 64; i++)
		free(at[i]);
	return NULL;
}

/* The allocator's lists lie between the registered memory, its roots elsewhere. */
TEST(child__can_allocate)
{
	struct view v[32];
	void *at[32];
	pthread_t t;

	mallopt(M_ARENA_MAX, 1);
	start(&t, allocate, NULL);
	for (int i = 0; i < 32; i++) {
		at[i] = calloc(1, 4000);
		v[i] = view_get(at[i], 4000, true);
	}
	for (int i = 0; i < 30; i++) {
		pid_t child = fork();

		if (child == 0) {
			alarm(20);
			for (int n = 0; n < 1000; n++)
				free(malloc((size_t)n * 13 % 5000));
			_exit(0);
		}
		wait_for(child);
	}
	end(t);
	for (int i = 0; i < 32; i++) {
		view_put(&v[i]);
		free(at[i]);
	}
}

/* ---- the thread's own ---- */

/* The frames of fork() itself lie in registered memory. */
static void __attribute__((noinline)) fork_often(void)
{
	volatile unsigned int n = 0;

	for (unsigned int i = 0; i < 20; i++) {
		pid_t child = fork();

		n++;
		if (child == 0)
			_exit(n != i + 1);
		wait_for(child);
		assert_int_equal(n, i + 1);
	}
}

static void *fork_on_shared_stack(void *stack)
{
	struct view v = view_get(stack, 256 << 10, true);

	fork_often();
	view_put(&v);
	return NULL;
}

TEST(stack__registered_as_a_whole)
{
	void *stack =
		mmap(NULL, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, 256 << 10), 0);
	assert_int_equal(pthread_create(&t, &attr, fork_on_shared_stack, stack), 0);
	pthread_join(t, NULL);
	pthread_attr_destroy(&attr);
	munmap(stack, 256 << 10);
}

TEST(child__without_descriptors)
{
	uint8_t *at = calloc(1, 10000);
	struct view v = view_get(at, 10000, true);
	struct rlimit old, none;
	int stored[2], fd;
	pid_t child;
	char byte;

	assert_int_equal(pipe(stored), 0);
	getrlimit(RLIMIT_NOFILE, &old);
	none = (struct rlimit){.rlim_cur = 64, .rlim_max = old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	while ((fd = dup(1)) >= 0)
		;
	child = fork();
	if (child == 0) {
		CHILD_IF(read(stored[0], &byte, 1) != 1);
		CHILD_IF(at[0] || at[9999]);
		_exit(0);
	}
	fill(at, 10000, 2);
	assert_int_equal(write(stored[1], "", 1), 1);
	wait_for(child);
	for (fd = 63; fd > stored[1]; fd--)
		close(fd);
	setrlimit(RLIMIT_NOFILE, &old);
	close(stored[0]);
	close(stored[1]);
	both_ways(&v, at, 10000, 2);
	view_put(&v);
	free(at);
}

/* As daemons close all; something else has the number now. The last test: what is shared stays so.
 */
TEST(child__of_a_lost_pool)
{
	uint8_t *at =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct view v = view_get(at, 4 * PAGE, true);
	int other = open("/dev/zero", O_RDWR), stored[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(stored), 0);
	fill(at, 4 * PAGE, 1);
	assert_true(dup2(other, v.s->pieces[0].fd) >= 0);
	child = fork();
	if (child == 0) {
		CHILD_IF(read(stored[0], &byte, 1) != 1);
		CHILD_IF(is_shared(at) || at[5] != 5 * 7 + 1 || at[3 * PAGE] != 3 * 16 + 1);
		_exit(0);
	}
	fill(at, 4 * PAGE, 2);
	assert_int_equal(write(stored[1], "", 1), 1);
	wait_for(child);
	both_ways(&v, at, 4 * PAGE, 2);
	view_put(&v);
	check(at, 4 * PAGE, 4);
	close(other);
	close(stored[0]);
	close(stored[1]);
}

/* ---- the trap ---- */

/* A handler that runs between the trap and the call: registered before ours. */
static bool busy, bears, wrong;

static void *nothing(void *arg)
{
	return arg;
}

static void be_busy(void)
{
	sigset_t set, was, now;
	pthread_t t;

	if (!busy)
		return;
	wrong |= getppid() <= 0;
	wrong |= mmap(NULL, 1, PROT_READ, MAP_SHARED, -1, 0) != MAP_FAILED || errno != EBADF;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, &was);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	wrong |= !sigismember(&was, SIGUSR1) || sigismember(&now, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (bears)
		wrong |= pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL);
}

static void __attribute__((constructor(101))) come_before(void)
{
	pthread_atfork(be_busy, NULL, NULL);
}

static void fork_traceless(void)
{
	struct sigaction before, after;
	sigset_t mask, is;
	bool same;
	pid_t child;

	sigemptyset(&mask);
	sigaddset(&mask, SIGSYS);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGSYS, NULL, &before);
	child = fork();
	pthread_sigmask(SIG_SETMASK, NULL, &is);
	sigaction(SIGSYS, NULL, &after);
	same = before.sa_handler == after.sa_handler;
	for (int sig = 1; sig < SIGRTMIN; sig++)
		same &= sigismember(&mask, sig) == sigismember(&is, sig);
	if (child == 0)
		_exit(!same || wrong);
	wait_for(child);
	sigemptyset(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	assert_true(same);
	assert_false(wrong);
}

TEST(trap__leaves_no_trace)
{
	uint8_t heap[100] = {0};
	struct view v = view_get(heap, 100, true);

	fork_traceless();
	busy = true;
	fork_traceless();
	bears = true;
	fork_traceless();
	busy = bears = false;
	view_put(&v);
}

/* A child of a child, and a child that is not made. */
TEST(forks__of_any_kind)
{
	uint8_t *heap = calloc(1, 100);
	struct view v = view_get(heap, 100, true);
	struct rlimit old, none = {0};
	pid_t child = fork();

	if (child == 0) {
		child = fork();
		if (child == 0)
			_exit(0);
		wait_for(child);
		v = view_get(heap, 100, true);
		child = fork();
		if (child == 0)
			_exit(0);
		wait_for(child);
		_exit(0);
	}
	wait_for(child);
	signal(SIGCHLD, SIG_IGN);
	child = fork();
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), -1);
	signal(SIGCHLD, SIG_DFL);
	if (getuid()) {
		getrlimit(RLIMIT_NPROC, &old);
		none.rlim_max = old.rlim_max;
		setrlimit(RLIMIT_NPROC, &none);
		assert_int_equal(fork(), -1);
		setrlimit(RLIMIT_NPROC, &old);
	}
	fill(heap, 100, 1);
	both_ways(&v, heap, 100, 1);
	view_put(&v);
	free(heap);
}

/* Linux 5.11, x86-64. */
static bool possible(void)
{
	char selector = 0;

	if (prctl(59, 1, 0, 0, &selector))
		return false;
	prctl(59, 0, 0, 0, 0);
	return true;
}

static int skip_if_impossible(void **state)
{
	if (!possible())
		exit(77);
	return 0;
}

TEST_GROUP(.setup = skip_if_impossible);
