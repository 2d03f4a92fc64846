/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_BOND_H
#define PMD_GLUE_BOND_H
/*
 * Which of a port's two devices carry what it sends, as Linux's bonding decides: one of them until its link
 * is lost (active-backup), or all that have a link (balance-xor). A link that has returned must have been up
 * for `updelay` before it counts, lest one that flaps takes packets with it each time; unless there is no
 * other. Control thread; no system calls.
 */
#include <stdbool.h>
#include <stdint.h>

#include "pmd-glue/port.h"

enum { BOND_DEVICES = 2 };

struct bond {
	uint8_t used; /* bit i: device i carries traffic. Never 0, even if no link is up */
	uint8_t up;   /* bit i: its link was up at the last look */
	uint64_t settled_ms
		[BOND_DEVICES]; /* of those that are up: when they have been for long enough */
};

/* The device of a frame, if both carry traffic, by its UDP source port: a queue pair stays on one of them. With several ports in a row
 * (path_spread) it takes both in turns. */
static inline unsigned bond_way(uint16_t source_port)
{
	return source_port % BOND_DEVICES;
}

/* Before the first look: as if all links had been up for ever. */
static inline void bond_begin(struct bond *b, const struct port_config *c)
{
	*b = (struct bond){.used = c->bond_mode == BOND_BALANCE_XOR ? 3 : 1, .up = 3};
}

/* What bond_look() has found. Bits. */
enum bond_change {
	BOND_LEFT = 1,	 /* a device whose link was lost carries nothing any more */
	BOND_JOINED = 2, /* one carries traffic again, beside the other */
};

/* Looks at the links, bit i of `up` for device i, and decides again. Returns what has changed. Of c: the mode, and
 * updelay. */
unsigned bond_look(struct bond *b, const struct port_config *c, unsigned up, uint64_t now_ms);

#endif
