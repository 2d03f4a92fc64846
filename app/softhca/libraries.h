/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIBRARIES_H
#define LIBRARIES_H
/* What an unmodified program needs to find softhca's devices: two libraries and a socket. */
#include <limits.h>

#define DROP_IN "libibverbs.so.1"
#define PRELOAD "libsofthca-preload.so"

/* Absolute, without blanks and colons, which the dynamic loader would take for separators. */
struct libraries {
	char drop_in[PATH_MAX], preload[PATH_MAX];
	char folder[PATH_MAX]; /* of the drop-in: to be searched first */
};

/* Finds both in `folder`; NULL: in SOFTHCA_LIBDIR, else where they were installed or built. 0, or
 * -1 after printing why. */
int libraries_find(const char *folder, struct libraries *l);

/* The absolute path of a control socket; NULL or "": of the usual one. 0 or -ENAMETOOLONG. */
int socket_absolute(const char *given, char out[PATH_MAX]);

#endif
