/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_INTRUDER_H
#define UNIT_INTRUDER_H
/*
 * What another lcore does in the middle of a function, in one thread, so that each order
 * is tried. A test includes this and then the module's source, with macros that call other_lcore()
 * before each of its atomic operations; it sets the intruder, and at which operation it comes.
 */
#include <stddef.h>

static void (*intruder)(void); /* what the other lcore does; NULL: it has */
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
