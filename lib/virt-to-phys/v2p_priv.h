/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef V2P_PRIV_H
#define V2P_PRIV_H
/* What the files of VirtToPhys share with each other and with nobody else. */
#include "virt-to-phys/v2p.h"

/* windows.c: an entry lies no longer over the memory of `parent` (0: it did not). */
void v2p_parent_release(struct v2p *v, uint32_t parent);

#endif
