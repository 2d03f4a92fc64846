/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca-perf: reads the command line and runs what it names. Exit code 0, 1 (failed), 2 (usage).
 */
#include <stdio.h>
#include "softhca/softhca.h"
#include "bw.h"
#include "dead_peer.h"
#include "demo.h"
#include "lat.h"
#include "options.h"
#include "report.h"
#include "soak.h"

/* One size or all, in one table. 0 or -1. */
static int run_sizes(struct session *s)
{
	const struct options *o = s->o;
	bool latency = o->mode == MODE_LAT;
	int (*one_size)(struct session *, uint32_t) = latency ? lat_one_size : bw_one_size;
	int error = 0;

	if (s->client)
		report_begin(o->json, latency, o->verify && !latency);
	if (!o->all_sizes)
		error = one_size(s, o->size);
	for (unsigned i = 1; o->all_sizes && i <= options_log_max(o) && !error; i++)
		error = one_size(s, 1u << i);
	if (s->client)
		report_end(o->json);
	return error;
}

static int run_session(const struct options *o)
{
	uint32_t largest = o->all_sizes ? 1u << options_log_max(o) : o->size;
	struct session s;
	int error = session_open(&s, o, bw_area_bytes(o, largest, o->verify && o->mode == MODE_BW));

	if (!error)
		error = run_sizes(&s);
	session_close(&s);
	return error;
}

static int run(const struct options *o)
{
	switch (o->mode) {
	case MODE_BW:
	case MODE_LAT:
		return run_session(o);
	case MODE_DEMO:
		return demo_main(o);
	case MODE_SOAK:
		return soak_main(o);
	case MODE_DEAD_PEER:
		return dead_peer_main(o);
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv);

	if (status)
		return status < 0 ? 2 : 0;
	return run(&o) ? 1 : 0;
}
