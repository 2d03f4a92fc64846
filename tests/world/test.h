/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_WORLD_TEST_H
#define TESTS_WORLD_TEST_H
/*
 * Tests that register themselves. A test program is its tests: no table of them, no main().
 *
 *	TEST(psn__wraps)
 *	{
 *		assert_int_equal(...);
 *	}
 *
 * They run in the order of the file, under cmocka. What most tests need of the C library comes with
 * this header. A fixture's header defines their setup and teardown:
 *
 *	#undef TEST
 *	#define TEST(name) TEST_WITH(name, fx_setup, fx_teardown)
 *
 * and the program, or its fixture, those of the whole group: TEST_GROUP(.setup = ...).
 * A program whose tests are rows of a table at run time writes its own main().
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The call returns NULL with that errno. */
#define assert_fails(call, error)                                                                  \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_null(call);                                                                 \
		assert_int_equal(errno, error);                                                    \
	} while (0)

/* One registered test; sorted by line. */
struct test {
	struct CMUnitTest unit;
	int line;
};

/* Functions before a program's first test and after its last; NULL: none. With `again`, all tests
 * run a second time, set up by that function. */
struct test_group {
	CMFixtureFunction setup, teardown, again;
};

extern const struct test_group test_group __attribute__((weak));

#define TEST_GROUP(...) const struct test_group test_group = {__VA_ARGS__}

/* A test without setup and teardown, unless a fixture's header redefines it. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
/* *state begins as the name of the test. */
#define TEST_WITH(name, setup, teardown) TEST_STATE(name, setup, teardown, #name)
/* *state begins as `initial`. */
#define TEST_STATE(name, setup, teardown, initial)                                                 \
	static void name(void **state);                                                            \
	TEST_AS(name, name, setup, teardown, initial)                                              \
	static void name(void **state)
/* Registers a function under a name, at file scope: once more, or with other arguments. */
#define TEST_AS(name, function, setup, teardown, initial)                                          \
	static const struct test name##_test = {                                                   \
		{#name, function, setup, teardown, (void *)(uintptr_t)(initial)}, __LINE__};       \
	static const struct test *const name##_at __attribute__((used, section("world_tests"))) =  \
		&name##_test;

#endif
