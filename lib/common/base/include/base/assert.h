/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H
/*
 * Assertions catch our own mistakes only: never assert on what a client or the wire supplied.
 * They cost nothing in a release build.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef SOFTHCA_DEBUG
#define ASSERT(cond)                                                                               \
	do {                                                                                       \
		if (__builtin_expect(!(cond), 0)) {                                                \
			fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", __FILE__, __LINE__,   \
				__func__, #cond);                                                  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)
#else
#define ASSERT(cond) ((void)sizeof(!(cond)))
#endif

#endif
