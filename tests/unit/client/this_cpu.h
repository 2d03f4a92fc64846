/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_THIS_CPU_H
#define CLIENT_THIS_CPU_H
#include <sched.h>

/* Keeps this thread on the CPU that it is on. Returns where else it might run, for
 * sched_setaffinity(). */
static inline cpu_set_t stay_on_this_cpu(void)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	return all;
}

#endif
