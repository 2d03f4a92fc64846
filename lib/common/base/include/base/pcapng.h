/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_PCAPNG_H
#define BASE_PCAPNG_H
/*
 * Writes a capture of one interface in pcapng (draft-ietf-opsawg-pcapng). Functions return
 * 0, or -errno of the write, unless they say otherwise; any thread.
 */
#include <stdint.h>
#include <stdio.h>

enum { PCAPNG_NAME_BYTES = 48 };

enum pcapng_link { PCAPNG_ETHERNET = 1, PCAPNG_UPPER_PDU = 252 /* Wireshark's, with tags */ };

struct pcapng_frame {
	uint64_t time_ns; /* since 1970 */
	const void *bytes;
	uint32_t captured, original; /* bytes: in `bytes`, of the frame */
	uint32_t direction;	     /* 1: in, 2: out, 0: neither */
	uint32_t dropped;	     /* frames lost between the previous one and this */
};

/*
 * Opens the file at that path for writing, new or truncated. A capture holds what programs send
 * each other, keys included, so only this process's user may read it: an existing file is used only
 * if it belongs to that user, is a regular file, and has no other link. Never waits, as opening a
 * FIFO would. NULL with errno; EPERM: not such a file.
 */
FILE *pcapng_create(const char *path);

/* The section and its interface, of that name; `snap`: most bytes of a frame, 0: all. Flushes. */
int pcapng_begin(FILE *f, const char *name, enum pcapng_link link, uint32_t snap);

int pcapng_frame(FILE *f, const struct pcapng_frame *frame);

/* Ends the capture at time_ns: records how many frames the file has, and how many were dropped. */
int pcapng_end(FILE *f, uint64_t time_ns, uint64_t captured, uint64_t dropped);

#endif
