/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_RX_FRAMES_H
#define LINK_RX_FRAMES_H
/* Link receive (doc/modules.md#link-receive). Stage header_parse. */
#include <rte_mbuf.h>
#include "pipeline/engine.h"

/* Receives up to `room` frames, owned by the caller. Returns their number. */
unsigned rxa_take(struct engine *e, struct rte_mbuf **frames, unsigned room);

#endif
