/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, sentences and sums of a port's counters, from the one list. Control thread. */
#include "port_internal.h"

static const char *const names[PORT_COUNTER_COUNT] = {
#define PORT_COUNTER(name, text) [PORT_COUNTER_##name] = #name,
#include "pmd-glue/port_counters.def"
#undef PORT_COUNTER
};

uint64_t port_counter(const struct port *port, unsigned int i)
{
	uint64_t sum = __atomic_load_n(&port->control_count[i], __ATOMIC_RELAXED);

	for (unsigned int q = 0; q < port->config.queues; q++)
		sum += __atomic_load_n(&port->queue[q].count[i], __ATOMIC_RELAXED);
	return sum;
}

const char *port_counter_name(unsigned int i)
{
	return names[i];
}
