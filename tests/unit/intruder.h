/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_INTRUDER_H
#define UNIT_INTRUDER_H
/*
 * Runs another lcore's work in the middle of a function, in one thread, so that each order is
 * tried. A test includes this and then the module's source, with macros that call other_lcore()
 * before each of its atomic operations; it sets the intruder, and the operation at which it runs.
 */
#include <stddef.h>

static void (*intruder)(void); /* the other lcore's work; NULL: done */
static unsigned intrude_at;    /* at which operation from now on */

static void other_lcore(void)
{
	void (*f)(void) = intruder;

	if (!f || intrude_at-- > 0)
		return;
	intruder = NULL;
	f();
}

#endif
