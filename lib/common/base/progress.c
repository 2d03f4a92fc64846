/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <unistd.h>
#include "base/progress.h"

#define FIRST_NS 1000000000ull
#define EVERY_NS 200000000ull
/* Erases to the right and returns to the first column, so that what is printed next replaces the
 * line. */
#define END_LINE "\033[K\r"

void progress_begin(struct progress *p, uint64_t now_ns)
{
	p->begin_ns = now_ns;
	p->next_ns = isatty(STDERR_FILENO) ? now_ns + FIRST_NS : UINT64_MAX;
}

void progress_write(struct progress *p, uint64_t now_ns, double done, double all, double rate,
		    const char *unit)
{
	const double share = done < all ? done / all : 1;
	const double elapsed_s = (double)(now_ns - p->begin_ns) * 1e-9;

	fprintf(stderr, "%3.0f %%  %.2f %s", share * 100, rate, unit);
	if (share > 0)
		fprintf(stderr, "  %.0f s left", elapsed_s / share - elapsed_s);
	fputs(END_LINE, stderr);
	p->next_ns = now_ns + EVERY_NS;
}

void progress_clear(const struct progress *p)
{
	if (p->next_ns != UINT64_MAX && p->next_ns > p->begin_ns + FIRST_NS)
		fputs(END_LINE, stderr);
}
