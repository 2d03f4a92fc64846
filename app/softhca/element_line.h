/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ELEMENT_LINE_H
#define ELEMENT_LINE_H
/* A captured element of a channel: as a line of text, and the frame in it. */
#include <stdbool.h>
#include <stdio.h>

struct pcapng_frame;

/* Prints the time, the channel, who put and who took it, the queue pair, and what it is. */
void element_line(FILE *out, const struct pcapng_frame *element);

/* The Ethernet frame, or its first bytes, that the element carries. False: it has none. */
bool element_frame(const struct pcapng_frame *element, struct pcapng_frame *frame);

#endif
