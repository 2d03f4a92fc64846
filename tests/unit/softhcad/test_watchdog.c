/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that stands still is noticed, by name, with its stack; one that waits for a hole in a file, too. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <rte_log.h>

#include "test.h"
#include "base/log.h"
#include "control/control.h"
#include "notify.h"
#include "watchdog.h"

static uint64_t turns;
static unsigned fed;
static pid_t waited; /* for a hole */

void notify_service(const char *state)
{
	__atomic_fetch_add(&fed, strcmp(state, "WATCHDOG=1") == 0, __ATOMIC_RELAXED);
}

void control_thread_waits(pid_t thread, uint64_t since_ns)
{
	__atomic_store_n(&waited, thread, __ATOMIC_RELAXED);
}

static struct watched watched_of_this_thread(void)
{
	return (struct watched){.name = "the test", .thread = gettid(), .turns = &turns};
}

TEST(watchdog__only_who_stands_still)
{
	struct watched w = watched_of_this_thread();

	assert_int_equal(watchdog_start(NULL, 0), 0); /* catches its signal */
	for (unsigned i = 0; i < 3 * WATCHDOG_LOOKS; i++, turns++)
		assert_false(watched_look(&w));
	turns++;
	for (unsigned i = 0; i < WATCHDOG_LOOKS; i++)
		assert_false(watched_look(&w));
	assert_true(watched_look(&w));
	assert_true(watched_look(&w));
	turns++;
	assert_false(watched_look(&w));
	watchdog_stop();
}

/* What it writes to stderr, once this thread has stood still. */
static void still_once(char *text, size_t bytes)
{
	char path[] = "/tmp/softhca-watchdog.XXXXXX";
	struct watched w = watched_of_this_thread();
	int log = mkstemp(path), before = dup(STDERR_FILENO);
	ssize_t n;

	assert_true(log >= 0 && before >= 0);
	unlink(path);
	rte_openlog_stream(stderr);
	dup2(log, STDERR_FILENO);
	for (unsigned i = 0; i <= 2 * WATCHDOG_LOOKS; i++)
		watched_look(&w);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	n = pread(log, text, bytes - 1, 0);
	close(log);
	assert_true(n > 0);
	text[n] = '\0';
}

TEST(watchdog__says_once_who_and_where)
{
	char text[8192];
	const char *name;

	assert_int_equal(watchdog_start(NULL, 0), 0); /* catches its signal */
	still_once(text, sizeof(text));
	watchdog_stop();
	name = strstr(text, "the test (thread ");
	assert_non_null(name);
	assert_null(strstr(name + 1, "the test (thread "));
	assert_non_null(strstr(name, "has stood still for 5000 ms"));
	assert_non_null(strstr(name, "test_softhcad_watchdog(")); /* a frame of this program */
}

TEST(watchdog__feeds_the_service_manager_while_all_goes_on)
{
	struct watched w = watched_of_this_thread();

	setenv("WATCHDOG_USEC", "1000000", 1);
	assert_int_equal(watchdog_start(&w, 1), 0);
	while (!__atomic_load_n(&fed, __ATOMIC_RELAXED))
		usleep(1000);
	watchdog_stop();
}

enum { HOLE_BYTES = 64 << 20 };

static void *punch(void *file)
{
	while (!__atomic_load_n(&waited, __ATOMIC_RELAXED)) {
		if (fallocate(*(int *)file, 0, 0, HOLE_BYTES) ||
		    fallocate(*(int *)file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			      HOLE_BYTES))
			return NULL;
	}
	return file;
}

TEST(watchdog__sees_who_waits_for_a_hole)
{
	struct watched w = watched_of_this_thread();
	int file = memfd_create("holes", MFD_CLOEXEC);
	volatile uint8_t *at;
	pthread_t puncher;
	void *punched;

	if (access("/proc/self/wchan", R_OK))
		skip();
	assert_int_equal(ftruncate(file, HOLE_BYTES), 0);
	at = mmap(NULL, HOLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(watchdog_start(&w, 1), 0);
	assert_int_equal(pthread_create(&puncher, NULL, punch, &file), 0);
	while (!__atomic_load_n(&waited, __ATOMIC_RELAXED))
		*at = 1;
	pthread_join(puncher, &punched);
	watchdog_stop();
	assert_non_null(punched);
	assert_int_equal(waited, gettid());
	munmap((void *)at, HOLE_BYTES);
	close(file);
}
