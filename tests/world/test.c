/* SPDX-License-Identifier: BSD-3-Clause */
/* The main() of every test program: runs what test.h registered. */
#include <limits.h>
#include <malloc.h>
#include "test.h"

/* The linker sets them around the section. */
extern const struct test *__start_world_tests[] __attribute__((weak));
extern const struct test *__stop_world_tests[] __attribute__((weak));

static int by_line(const void *a, const void *b)
{
	return (*(const struct test *const *)a)->line - (*(const struct test *const *)b)->line;
}

int main(void)
{
	size_t count = (size_t)(__stop_world_tests - __start_world_tests);
	struct test_group group = &test_group ? test_group : (struct test_group){0};
	struct CMUnitTest *units = calloc(count, sizeof(*units));
	const char *name = program_invocation_short_name;
	int failed;

	if (count == 0 || !units)
		return 2;
	/* What a test frees the next one allocates: memory fresh from the kernel costs more than a
	 * test. */
	mallopt(M_MMAP_THRESHOLD, INT_MAX);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	qsort(__start_world_tests, count, sizeof(*__start_world_tests), by_line);
	for (size_t i = 0; i < count; i++)
		units[i] = __start_world_tests[i]->unit;
	failed = _cmocka_run_group_tests(name, units, count, group.setup, group.teardown);
	if (group.again)
		failed += _cmocka_run_group_tests(name, units, count, group.again, group.teardown);
	free(units);
	return failed;
}
