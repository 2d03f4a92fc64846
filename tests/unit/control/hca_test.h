/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_TEST_H
#define HCA_TEST_H
/* For test programs each of whose tests has a daemon of its own (hca_fixture.h): f is that of the
 * test that runs, and the one that libraries find. TEST_STATE(name, start, stop, totals) changes
 * what clients share (struct fixture_total). */
#include "test.h"
#include "hca_fixture.h"

static struct fixture f;

static int start(void **state)
{
	fixture_start(&f, *state, true);
	setenv("SOFTHCA_SOCKET", f.path, 1);
	return 0;
}

/* Of a daemon that ends connections which say nothing for half a second. */
static inline int start_impatient(void **state)
{
	int rc;

	fixture_hello_ms = 500;
	rc = start(state);
	fixture_hello_ms = 0;
	return rc;
}

static int stop(void **state)
{
	fixture_stop(&f);
	return 0;
}

#undef TEST
#define TEST(name) TEST_STATE(name, start, stop, NULL)

#endif
