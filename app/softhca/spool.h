/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPOOL_H
#define SPOOL_H
/*
 * Files that a thread of their own writes one after the other. Data not yet written waits in
 * memory, allocated as needed, so that the thread that fills the stream does not wait for a disk or
 * for the reader of a pipe. One thread calls all functions.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct spool;

/* Writes to that file (pcapng_create()), or to standard output if path is NULL. Up to `bytes`, or 2
 * MiB if that is more, may wait in memory. The caller keeps path. NULL, with errno. */
struct spool *spool_begin(const char *path, uint64_t bytes);

/* The stream of the next file, for which ftello() works; NULL, with errno. Its owner closes it. A
 * write to it fails with the error of an earlier one, or with ENOMEM where there was no room. */
FILE *spool_stream(struct spool *s);

/* Is there room for a MiB? */
bool spool_has_room(struct spool *s);

/* Why no file is written any more: -errno; 0: all is well. */
int spool_error(struct spool *s);

/* Completes FILE, which becomes FILE.1; the next stream writes a new FILE. */
void spool_turn(struct spool *s);

/* Waits until all is written, and frees it. The stream is closed. 0 or -errno. */
int spool_end(struct spool *s);

#endif
