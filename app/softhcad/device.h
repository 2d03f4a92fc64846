/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_H
#define DEVICE_H
/* One HCA of the daemon with its port, from one section [hca NAME]. Control thread. */
#include <stdbool.h>
#include <stdint.h>
#include "command/ceu.h"
#include "config/config.h"
#include "control/control.h"
#include "hca/hca.h"
#include "pmd-glue/port.h"

struct lcores;
struct node_pools;
struct pools;

struct device {
	const struct hca_section *section; /* NULL: it has been removed, or never was */
	bool leaves;			   /* it is being removed */
	bool arrives;			   /* it is being added: the connection manager opens it */
	struct lcores *lcores;		   /* where it runs */
	struct pools *pools;
	struct node_pools *buffers[ENGINES_MAX]; /* where it has its part of them */
	struct port *port;
	struct hca *hca;
	struct ceu *ceu;
	int kicks;   /* an epoll set: what wakes lcores with doorbells of this HCA; -1: none */
	int kick_fd; /* one of its eventfds, the control thread's; -1: none */
	bool link_up;
	/* Modules of the engine are measured until then (softhca show runtime); 0: they are not. */
	uint64_t measured_until_ns[ENGINES_MAX];
};

/* Creates port, HCA and CEU. 0 or -errno, logged, with nothing left. */
int device_create(struct device *v, const struct hca_section *section, struct pools *pools,
		  struct lcores *lcores);
void device_destroy(struct device *v);

/* Takes a running device out of the lcores, which pause for it, and destroys it. Only they use it;
 * `others` are the daemon's devices. */
void device_remove(struct device *v, struct device *others, unsigned count);

/* Does its section have other addresses than its port? If so, device_move() moves the port to them
 * and tells neighbours; the lcores pause for it. device_change() has to follow: its own addresses
 * are admitted peers. */
bool device_moves(const struct device *v);
void device_move(struct device *v);

/* Its section has changed: applies what else a running daemon can. 0, -ENOMEM. */
int device_change(struct device *v);

/* Records the state of the link: only later changes are events. To be called when all devices exist
 * (one may be the other end of a ring), before clients are accepted. */
void device_settle(struct device *v);

/* Measures an engine's modules until there has been no query for MEASURED_S. Under the daemon's
 * lock. */
enum { MEASURED_S = 5 };
void device_measure(struct device *v, unsigned engine);

/* Polls the port and ends measurements, about every millisecond. Has the link state changed
 * (v->link_up)? */
bool device_poll(struct device *v);

/* EUI-64 of its MAC address. */
uint64_t device_guid(const struct device *v);

/* The standard's code of an MTU: 1 for 256 bytes to 5 for 4096, rounded down; 0 if not even 256
 * fits. */
uint8_t device_mtu_code(uint16_t bytes);

#endif
