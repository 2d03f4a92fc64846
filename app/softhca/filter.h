/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILTER_H
#define FILTER_H
/* Which frames to capture: pcap-filter(7), the language of tcpdump. */
#include <stdbool.h>
#include "base/pcapng.h"

/* Prepares that filter; NULL: every frame passes. False: it is wrong, which has been printed. */
bool filter_set(const char *expression);

bool filter_passes(const struct pcapng_frame *frame);

#endif
