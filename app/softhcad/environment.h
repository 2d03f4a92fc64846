/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H
/* `softhcad --check`: does this machine have what the configuration needs? Before EAL. */
#include "config/config.h"

/* Reports on stderr what is missing, with a remedy for each, and warns about what does not prevent
 * the daemon from starting. Opens and changes nothing that lasts; the configuration must have been
 * checked. Returns how many things are missing. */
unsigned environment_check(const struct config *c);

#endif
