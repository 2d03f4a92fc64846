/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H
/*
 * Shows the progress of a long run in one line on stderr: percent, rate, time left. Shows nothing
 * if stderr is no terminal, or if the run ends within a second. For one thread.
 */
#include <stdint.h>

struct progress {
	uint64_t begin_ns, next_ns; /* next_ns: when the line is due; UINT64_MAX: never */
};

void progress_begin(struct progress *p, uint64_t now_ns);
/* Writes the line: `done` of `all` (of whatever is counted; all > 0), at `rate` of that unit. */
void progress_write(struct progress *p, uint64_t now_ns, double done, double all, double rate,
		    const char *unit);
/* Erases the line; call it before anything else is printed. */
void progress_clear(const struct progress *p);

static inline int progress_is_due(const struct progress *p, uint64_t now_ns)
{
	return now_ns >= p->next_ns;
}

#endif
