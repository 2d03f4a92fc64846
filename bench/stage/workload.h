/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_WORKLOAD_H
#define STAGE_WORKLOAD_H
/* The actions of the rig's client. */
#include "host-abi/wqe.h"

enum { WORKLOAD_POST = 32 }; /* messages posted at once, at most */

struct workload {
	const char *name;
	enum user_opcode opcode;
	uint32_t bytes;
	unsigned window; /* messages outstanding */
	unsigned list;	 /* descriptors of one doorbell */
};

static inline unsigned workload_post(const struct workload *w)
{
	return w->window < WORKLOAD_POST ? w->window : WORKLOAD_POST;
}

#endif
