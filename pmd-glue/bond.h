/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_BOND_H
#define PMD_GLUE_BOND_H
/*
 * Which of a port's two devices carry its traffic, decided as Linux's bonding does: one of them
 * until its link fails (active-backup), or all that have a link (balance-xor). A link that came
 * back is used after it has been up for `updelay`, so that a flapping one does not lose packets
 * each time, or at once if no other link is up. Control thread; no system calls.
 */
#include <stdbool.h>
#include <stdint.h>

#include "pmd-glue/port.h"

enum { BOND_DEVICES = 2 };

struct bond {
	uint8_t used; /* bit i: device i carries traffic. Never 0, even if no link is up */
	uint8_t up;   /* bit i: its link was up at the last look */
	/* Of links that are up: when they have been up for `updelay`. */
	uint64_t settled_ms[BOND_DEVICES];
};

/* The device that sends a frame if both carry traffic. A queue pair keeps its UDP source port, and
 * so its device; with several consecutive ports (path_spread) it alternates between both. */
static inline unsigned bond_device(uint16_t source_port)
{
	return source_port % BOND_DEVICES;
}

/* Before the first bond_update(): as if all links had always been up. */
static inline void bond_begin(struct bond *b, const struct port_config *c)
{
	*b = (struct bond){.used = c->bond_mode == BOND_BALANCE_XOR ? 3 : 1, .up = 3};
}

/* What bond_update() found. Bits. */
enum bond_change {
	BOND_LEFT = 1,	 /* a device whose link failed no longer carries traffic */
	BOND_JOINED = 2, /* a device carries traffic again, beside the other */
};

/* Decides again; bit i of `up`: the link of device i is up. Of c it reads bond_mode and updelay.
 * Returns what changed, bits of enum bond_change. */
unsigned bond_update(struct bond *b, const struct port_config *c, unsigned up, uint64_t now_ms);

#endif
