/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_REGISTRATION_H
#define CLIENT_REGISTRATION_H
#include "client_priv.h"

/* Long registrations of this process are shown on a terminal, if SOFTHCA_VERBOSE is set. */
void registration_watch(void);
/* Shows that `done` of `all` bytes of a registration are shared at now_ns; 0: it begins; all: it
 * ends. For struct progress, include base/progress.h. */
struct progress;
void registration_show(struct progress *p, uint64_t now_ns, uint64_t done, uint64_t all);

#endif
