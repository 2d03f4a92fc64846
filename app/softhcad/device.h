/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_H
#define DEVICE_H
/* One HCA of the daemon with its port, of one section [hca NAME]. Control thread. */
#include <stdbool.h>
#include <stdint.h>
#include "command/ceu.h"
#include "config/config.h"
#include "control/control.h"
#include "hca/hca.h"
#include "pmd-glue/port.h"

struct lcores;
struct pools;

struct device {
	const struct hca_section *section;
	struct lcores *lcores; /* where it runs */
	struct port *port;
	struct hca *hca;
	struct ceu *ceu;
	int kick_fd; /* the control socket writes it when a client rings although we sleep; -1: not
		      * made */
	bool link_up;
};

/* Makes port, HCA and CEU. 0 or -errno, logged: nothing remains. */
int device_create(struct device *v, const struct hca_section *section, const struct pools *pools,
		  struct lcores *lcores);
void device_destroy(struct device *v);

/* Takes the link as it is: only what changes from now on is an event. Once all devices are made
 * (the other end of a ring is one), before a client is let in. */
void device_settle(struct device *v);

/* The port's turn: about every millisecond. Has the link gone up or down (v->link_up)? */
bool device_poll(struct device *v);

/* EUI-64 of its MAC address. */
uint64_t device_guid(const struct device *v);

/* An MTU as the standard codes it: 1 for 256 bytes to 5 for 4096, what lies between rounded down; 0
 * if not even 256 fits. */
uint8_t device_mtu_code(uint16_t bytes);

#endif
