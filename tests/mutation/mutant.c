/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads from the environment which mutant lives, which test of the program is to run and for how
 * much time of the processor, and writes down which answers each point gave and how much of that
 * time it took. See mutant.h.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "mutant.h"

unsigned mutant_alive = MUTANT_NONE;
unsigned char *mutant_answers;

#pragma weak cmocka_set_test_filter /* not all programs have cmocka */

static const char *record;

static void limit(int what, rlim_t most)
{
	setrlimit(what, &(struct rlimit){most, most});
}

__attribute__((constructor)) static void mutant_begin(void)
{
	const char *alive = getenv("MUTANT_ALIVE"), *test = getenv("MUTANT_TEST");
	const char *seconds = getenv("MUTANT_SECONDS");

	record = getenv("MUTANT_RECORD");
	if (alive)
		mutant_alive = (unsigned)atoi(alive);
	if (record)
		mutant_answers = calloc(1, MUTANT_POINTS);
	if (test && cmocka_set_test_filter)
		cmocka_set_test_filter(test);
	if (seconds)
		limit(RLIMIT_CPU, (rlim_t)atoi(seconds)); /* one that loops for ever is ended */
	limit(RLIMIT_CORE, 0);
}

__attribute__((destructor)) static void mutant_end(void)
{
	FILE *f = record ? fopen(record, "w") : NULL;
	double seconds = (double)clock() / CLOCKS_PER_SEC;

	if (!f)
		return;
	fwrite(mutant_answers, 1, MUTANT_POINTS, f);
	fwrite(&seconds, sizeof(seconds), 1, f);
	fclose(f);
}

/* EAL would share its memory with what is forked; without this it takes memory of its own. */
int memfd_create(const char *name, unsigned flags)
{
	if (getenv("MUTANT_SERVE") && strcmp(name, "nohuge") == 0)
		return -1;
	return (int)syscall(SYS_memfd_create, name, flags);
}

/* ---- MUTANT_SERVE: a process for each case and mutant, forked when DPDK has started ---- */

typedef int run_group(const char *name, const struct CMUnitTest *tests, size_t count,
		      CMFixtureFunction setup, CMFixtureFunction teardown);

struct order {
	unsigned mutant, seconds;
	char record[256], test[256]; /* "-": nothing is recorded */
};

static void obey(run_group *run, const struct CMUnitTest *tests, size_t count,
		 const struct order *o)
{
	int failed;

	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(2);
	mutant_alive = o->mutant;
	if (strcmp(o->record, "-") != 0) {
		record = o->record;
		mutant_answers = calloc(1, MUTANT_POINTS);
	}
	limit(RLIMIT_CPU, o->seconds);
	alarm(20 + 20 * o->seconds);
	cmocka_set_test_filter(o->test);
	failed = run("", tests, count, NULL, NULL);
	mutant_end();
	_exit(failed != 0);
}

/* Orders come by standard input; the answer to each: whether the test passed, and its CPU time. */
static void serve(run_group *run, const struct CMUnitTest *tests, size_t count,
		  CMFixtureFunction setup)
{
	struct order o;
	struct rusage used;
	int status;

	run("", tests, 1, setup, NULL);
	for (size_t i = 0; i < count; i++)
		printf("MUTANT case %s\n", tests[i].name);
	printf("MUTANT serves\n");
	fflush(NULL);
	while (scanf("%u %u %255s %255s", &o.mutant, &o.seconds, o.record, o.test) == 4) {
		pid_t child = fork();

		if (child == 0)
			obey(run, tests, count, &o);
		wait4(child, &status, 0, &used);
		printf("MUTANT %d %ld\n", status == 0,
		       (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
			       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000);
		fflush(stdout);
	}
	_exit(0);
}

/* Takes the place of cmocka's. */
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests,
			    const size_t count, CMFixtureFunction setup, CMFixtureFunction teardown)
{
	run_group *run = (run_group *)dlsym(RTLD_NEXT, "_cmocka_run_group_tests");

	if (getenv("MUTANT_SERVE"))
		serve(run, tests, count, setup);
	return run(name, tests, count, setup, teardown);
}
