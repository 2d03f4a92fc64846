/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_MEMIF_GATE_H
#define PMD_GLUE_MEMIF_GATE_H
/*
 * Keeps memif connections from changing under a data path that polls them.
 *
 * The memif driver of DPDK 22.11 sets up and tears down queues on EAL's interrupt thread, with no
 * regard to lcores inside its burst functions; a third of the disconnects crashed (limits.md 1).
 * While there is a memif port that thread is therefore kept waiting inside an alarm callback, the
 * gate, and let out only for windows, during which the data path is kept out of all memif ports:
 *
 *   control thread   takes the poll_lock of each queue of each memif port (the data path only
 *                    tries that lock, once per burst, and sees an idle wire when it fails),
 *   control thread   opens the gate;
 *   interrupt thread leaves the callback, having asked for it again MEMIF_WINDOW_US later, and
 *                    handles whatever its sockets have: connects, disconnects;
 *   interrupt thread enters the callback again: the window is over;
 *   control thread   releases the locks.
 *
 * Price: two uncontended atomic operations per burst on memif ports, a pause of about 0.1 ms (more
 * when the machine has no core left for the two threads) every MEMIF_PERIOD_UP_MS, and all other
 * work of EAL's interrupt thread waits for the next window. A peer's death is noticed at the next
 * window; until then its memory stays mapped, so polling it is harmless.
 *
 * Control thread only, but for the callback.
 */
#include <stdbool.h>
#include <stdint.h>

#include "port_internal.h"

enum {
	MEMIF_WINDOW_US = 50,
	MEMIF_PERIOD_UP_MS = 100, /* between windows while all memif links are up */
	MEMIF_PERIOD_DOWN_MS =
		5, /* and while one waits for its peer: connecting takes ~5 windows */
};

/* Shuts the gate if this is the first memif port. 0; -ENOMEM; -ENOTSUP: no interrupt thread. */
int memif_gate_join(struct port *port);

/* Opens it for good with the last one. Nothing if the port never joined. */
void memif_gate_leave(struct port *port);

/* Keeps the data path out of a port until memif_let_in: it sees an idle wire. Waits for a burst. */
void memif_keep_out(struct port *port);
void memif_let_in(struct port *port);

/* Whether the lcore of q may poll; if so it calls memif_leave afterwards. */
static inline bool memif_enter(struct port_queue *q)
{
	return !__atomic_load_n(&q->keep_out, __ATOMIC_RELAXED) &&
	       rte_spinlock_trylock(&q->poll_lock);
}

static inline void memif_leave(struct port_queue *q)
{
	rte_spinlock_unlock(&q->poll_lock);
}

/* One window if it is time for one. */
void memif_gate_poll(uint64_t now_ms);

#endif
