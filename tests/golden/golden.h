/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GOLDEN_H
#define GOLDEN_H
/* Reader of the captures in this folder (classic pcap, Ethernet), for tests. */
#include <stddef.h>
#include <stdint.h>

struct golden_frame {
	const uint8_t *bytes; /* inside of the capture */
	unsigned int length;
};

struct golden_capture {
	char name[64]; /* file name without directory */
	struct golden_frame *frames;
	size_t count;
	uint8_t *file; /* the whole file; owned */
};

struct golden {
	struct golden_capture *captures; /* sorted by name */
	size_t count;
	size_t frame_count; /* of all captures */
};

/* The number of frames in a file; they are stored in frames[] unless that is NULL. -EINVAL: it is no
 * Ethernet pcap, or has a cut frame. */
long golden_walk(const uint8_t *file, size_t bytes, struct golden_frame *frames);

/*
 * Reads every *.pcap of a directory. Returns 0, or -errno: -ENOENT when there is none, -EINVAL for
 * a file that is no Ethernet pcap or has a cut frame. golden_free() after success only.
 */
int golden_load(struct golden *golden, const char *directory);
/* Frees what golden_load() read. */
void golden_free(struct golden *golden);

#endif
