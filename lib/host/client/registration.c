/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shows the progress of a long registration on the terminal of a program that was started with
 * `softhca run -v`. Registering memory copies it the first time (share-in-place), a second or so
 * for each GB.
 */
#include <stdlib.h>
#include "base/monotonic.h"
#include "base/progress.h"
#include "share-in-place/sharing.h"
#include "context.h"
#include "registration.h"

void registration_show(struct progress *p, uint64_t now_ns, uint64_t done, uint64_t all)
{
	const double seconds = (double)(now_ns - p->begin_ns) * 1e-9;

	if (done == 0)
		progress_begin(p, now_ns);
	else if (done == all)
		progress_clear(p);
	else if (progress_is_due(p, now_ns))
		progress_write(p, now_ns, (double)done, (double)all, (double)done * 1e-9 / seconds,
			       "GB/s registered");
}

/* Under the lock of share-in-place. */
static void show_progress(uint64_t done, uint64_t all)
{
	static struct progress progress;

	registration_show(&progress, monotonic_ns(), done, all);
}

void registration_watch(void)
{
	const char *verbose = secure_getenv("SOFTHCA_VERBOSE");

	if (verbose && *verbose)
		__atomic_store_n(&sharing_progress, show_progress, __ATOMIC_RELAXED);
}
