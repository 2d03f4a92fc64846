/* SPDX-License-Identifier: BSD-3-Clause */
/* port_join, port_leave, and the port's turn for its groups. Control thread. */
#include <errno.h>

#include "control.h"
#include "groups.h"

static void update_groups(struct port *port)
{
	if (port->driver->update_groups)
		port->driver->update_groups(port);
}

/* Frames to groups come back to the port while it listens to any. */
static void listen_if_joined(struct port *port)
{
	bool any = false;

	for (unsigned int i = 0; i < port->groups.count && !any; i++)
		any = port->groups.entry[i].users != 0;
	__atomic_store_n(&port->listens, any, __ATOMIC_RELAXED);
}

int port_join(struct port *port, const uint8_t ip[16])
{
	bool first;
	int error = membership_join(&port->groups, ip, port_now_ms(), &first);

	if (error || !first)
		return error;
	control_count(port, PORT_COUNTER_groups_joined);
	listen_if_joined(port);
	update_groups(port);
	return 0;
}

void port_leave(struct port *port, const uint8_t ip[16])
{
	if (!membership_leave(&port->groups, ip, port_now_ms()))
		return;
	control_count(port, PORT_COUNTER_groups_left);
	listen_if_joined(port);
	update_groups(port);
}

void groups_turn(struct port *port, uint64_t now_ms)
{
	struct membership_record records[MEMBERSHIP_RECORDS_MAX];
	unsigned int n;

	if (now_ms < port->groups.next_ms || !port_link_is_up(port))
		return;
	while ((n = membership_due(&port->groups, false, now_ms, records)) > 0)
		igmp_report(port, records, n);
	while ((n = membership_due(&port->groups, true, now_ms, records)) > 0)
		mld_report(port, records, n);
}
