/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GOLDEN_GROUP_H
#define GOLDEN_GROUP_H
/* For a program of tests over all captures of this folder. */
#include "golden.h"
#include "test.h"

static struct golden golden; /* from golden_setup() to golden_teardown() */

static int golden_setup(void **state)
{
	return golden_load(&golden, GOLDEN_DIR);
}

static int golden_teardown(void **state)
{
	golden_free(&golden);
	return 0;
}

TEST_GROUP(.setup = golden_setup, .teardown = golden_teardown);

#endif
