/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_MEMIF_GATE_H
#define PMD_GLUE_MEMIF_GATE_H
/*
 * Keeps memif connections from changing under a data path that polls them.
 *
 * The memif driver of DPDK 22.11 sets up and tears down queues on EAL's interrupt thread, with no
 * regard to lcores inside its burst functions; a third of the disconnects crashed (seen with DPDK
 * 22.11). While there is a memif port that thread is therefore kept waiting inside an alarm
 * callback, the gate, and may leave it only for windows, during which the data path is excluded
 * from all memif ports:
 *
 *   control thread   takes the poll_lock of each queue of each memif port (the data path only
 *                    tries that lock, once per burst, and sees an idle wire when it fails),
 *                    opens the gate and continues with other things;
 *   interrupt thread leaves the callback, having scheduled it again a window's length later, and
 *                    handles the events of its sockets: connects, disconnects;
 *   interrupt thread enters the callback again: the window is over;
 *   control thread   sees that at its next turn and releases the locks.
 *
 * Price: two uncontended atomic operations per burst on memif ports; a pause of one or two turns of
 * the control thread (1 to 2 ms) each MEMIF_PERIOD_UP_MS; and all other work of EAL's interrupt
 * thread (alarms, other drivers' interrupts) waits for the next window. A peer's death is noticed
 * at the next window; until then its memory stays mapped, so polling it is harmless.
 *
 * Control thread only, except the callback.
 */
#include <stdbool.h>
#include <stdint.h>

#include "port_internal.h"

enum {
	MEMIF_WINDOW_UP_US = 50, /* length of a window while some memif link is up */
	MEMIF_WINDOW_DOWN_US =
		5000,		    /* and while none is: nothing to poll, handshakes run through */
	MEMIF_PERIOD_UP_MS = 100,   /* between windows while all memif links are up */
	MEMIF_PERIOD_MIXED_MS = 10, /* and while some are; while none is: no pause */
};

/* Shuts the gate if this is the first memif port. 0; -ENOMEM; -ENOTSUP: no interrupt
 * thread. */
int memif_gate_join(struct port *port);

/* Opens the gate for good when the last one leaves. A no-op if the port never joined. */
void memif_gate_leave(struct port *port);

/* Is the caller EAL's interrupt thread? Any thread. */
bool memif_gate_in_interrupt(void);

/* Excludes the data path from a port until memif_admit(): it sees an idle wire. Waits for a
 * burst. A port that waits for its server stays excluded: EAL has nothing to poll there. */
void memif_exclude(struct port *port);
void memif_admit(struct port *port);

/* Whether the lcore of q may poll; if so it calls memif_leave afterwards. */
static inline bool memif_enter(struct port_queue *q)
{
	return !__atomic_load_n(&q->excluded, __ATOMIC_RELAXED) &&
	       rte_spinlock_trylock(&q->poll_lock);
}

static inline void memif_leave(struct port_queue *q)
{
	rte_spinlock_unlock(&q->poll_lock);
}

/*
 * The gate's turn: ends a window that is over, opens one if it is time. true: the gate is shut, the
 * control thread may call the drivers of memif ports; false: a window is open, hands off.
 */
bool memif_gate_poll(uint64_t now_ms);

/* Waits for the end of a window if one is open. */
void memif_gate_shut(void);

#endif
