/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_MONOTONIC_H
#define BASE_MONOTONIC_H
#include <stdint.h>
#include <time.h>

/* Time of CLOCK_MONOTONIC, in ns. Any thread. */
static inline uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* For calls that take a time in that form. */
static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

#endif
