/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRAME_LINE_H
#define FRAME_LINE_H
/* A captured frame as a line of text. */
#include <stdint.h>
#include <stdio.h>

struct pcapng_frame;

/* Prints the time, the direction, who sends what to whom: opcode, queue pair, PSN, bytes of
 * payload, and the fields of the headers that follow. */
void frame_line(FILE *out, const struct pcapng_frame *frame);

/* Prints the local time of day, to the nanosecond. */
void print_time(FILE *out, uint64_t ns);

#endif
