/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEED_H
#define NEED_H
/* For programs of these tests: what cannot fail on a healthy machine, and what errno says if it does. */
#include <stdio.h>
#include <stdlib.h>

#define NEED(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #what);             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#endif
