/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MUTANT_H
#define MUTANT_H
/*
 * Included by the copies of the sources that `mutate` makes: all mutants are in one build, and a
 * number chooses the active one. Never part of softhca itself.
 *
 * A condition c at point n becomes MUTANT_IF(n, c): mutant 2n forces it false, 2n + 1 true. It is
 * evaluated all the same, so its side effects remain.
 */
#include <stdbool.h>

extern unsigned mutant_alive;	      /* the mutant that lives; MUTANT_NONE: the program as it is */
extern unsigned char *mutant_answers; /* when recording: bits of the answers seen at each point */

#define MUTANT_NONE (~0U)

static inline bool mutant_if(unsigned point, bool answer)
{
	if (mutant_answers)
		mutant_answers[point] |= answer ? 2 : 1;
	return mutant_alive >> 1 == point ? mutant_alive & 1 : answer;
}

/* A choice between what is written and something else; 1 is recorded where the two differ. */
static inline bool mutant_or(unsigned point, bool answer, bool other)
{
	if (mutant_answers && answer != other)
		mutant_answers[point] |= 1;
	return mutant_alive == 2 * point ? other : answer;
}

/* Whether a call is made. */
static inline bool mutant_call(unsigned point)
{
	if (mutant_answers)
		mutant_answers[point] |= 1;
	return mutant_alive != 2 * point;
}

#define MUTANT_IF(point, c) mutant_if(point, !!(c))
#define MUTANT_COMPARE(point, a, op, b, other)                                                     \
	({                                                                                         \
		__auto_type mutant_a = (a) + 0;                                                    \
		__auto_type mutant_b = (b) + 0;                                                    \
		mutant_or(point, mutant_a op mutant_b, mutant_a other mutant_b);                   \
	})

#endif
