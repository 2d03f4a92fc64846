/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PENDING_H
#define PENDING_H
/*
 * Which HCAs are being added and removed. Nothing is added while one is being removed, and nothing
 * removed while one is being added; the configuration is read again when neither is going on, since
 * what it takes over replaces the section of an HCA that leaves. Control thread, under the daemon's
 * lock.
 */
#include <stdbool.h>

struct daemon;

/* The first section from i on whose HCA is yet to be created, or the number of sections. */
unsigned pending_section_from(const struct daemon *d, unsigned i);
/* Are HCAs being added? Being removed? Either? */
bool pending_additions(const struct daemon *d);
bool pending_removals(const struct daemon *d);
bool pending_changes(const struct daemon *d);

#endif
