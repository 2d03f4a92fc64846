/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_STRANGER_H
#define UNIT_STRANGER_H
/*
 * Descriptors that a hostile program may pass: a process that queries the file behind one, or
 * closes the last copy, waits for a stranger who never answers. One at a time: processes inherit
 * descriptors.
 */
#include <stdbool.h>
#include <sys/types.h>

enum stranger_kind {
	STRANGER_PIPE_FULL,  /* its writing end; never read */
	STRANGER_PIPE_EMPTY, /* its reading end; never written */
	STRANGER_SOCKET,     /* TCP that lingers, with unread data */
	STRANGER_FUSE,	     /* a file of a file system whose server has fallen silent */
	STRANGER_OVERLAY, /* the same file below an overlay, which a user namespace suffices for */
	STRANGER_KINDS
};

struct stranger {
	int fd, other;	     /* other: what keeps it waiting; -1: none */
	pid_t server, asker; /* 0: none */
};

/* False: not possible here, such as FUSE where the kernel or a container forbids it. */
bool stranger_make(struct stranger *s, enum stranger_kind kind);

/* Does fstat() of it wait? Tries once, in a separate process. */
bool stranger_keeps_waiting(struct stranger *s);

/* Lets all that wait go, and closes it. */
void stranger_end(struct stranger *s);

#endif
