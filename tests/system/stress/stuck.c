/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports a pair without progress: its state at the client and in the daemon, before anything is
 * done to it. Changes nothing.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "stress.h"

/* One report at a time: they are long. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void report_end(const struct pair *p, unsigned side, const char *what)
{
	const struct end *e = &p->end[side];

	wrong("%s: stuck: service %d, side %u, QP %u, state %s: %llu of %llu sends, %llu of %llu "
	      "receives%s",
	      what, p->type, side, softhca_qp_number(e->qp),
	      softhca_qp_state_str(softhca_qp_current_state(e->qp)),
	      (unsigned long long)e->completed, (unsigned long long)e->posted,
	      (unsigned long long)e->recv_completed, (unsigned long long)e->recv_posted,
	      e->box ? ", from an SRQ" : "");
	for (uint64_t seq = e->completed; seq < e->posted; seq++) {
		const struct op *op = &e->op[seq % WINDOW];

		fprintf(stderr, "  open: request %llu, kind %u, %u bytes%s\n",
			(unsigned long long)seq, op->kind, op->length,
			op->signaled ? "" : ", unsignaled");
	}
}

/* The queue's contents and users. */
static void report_box(const struct world *w, unsigned side)
{
	const struct srq_box *b = &w->box[side];
	struct softhca_srq_attr attr = {0};
	unsigned posted = 0;

	for (unsigned i = 0; i < BOX_SLOTS; i++)
		posted += b->posted[i];
	softhca_query_srq(b->srq, &attr);
	fprintf(stderr,
		"  SRQ of side %u: %u requests at most, %u posted and not taken, %u users; %u of "
		"%u buffers not back\n",
		side, attr.max_wr, attr.available, b->users, posted, BOX_SLOTS);
	for (unsigned i = 0; i < PAIRS; i++) {
		const struct end *e = &w->pair[i].end[side], *peer = &w->pair[i].end[!side];

		if (w->pair[i].live && e->qp && e->box == b)
			fprintf(stderr,
				"    used by pair %u, service %d, QP %u, state %s; its peer: %llu "
				"of %llu sends\n",
				i, w->pair[i].type, softhca_qp_number(e->qp),
				softhca_qp_state_str(softhca_qp_current_state(e->qp)),
				(unsigned long long)peer->completed,
				(unsigned long long)peer->posted);
	}
}

/* The daemon's view. */
static void ask(const char *arguments)
{
	const char *tool = getenv("SOFTHCA_TOOL"), *socket = getenv("SOFTHCA_SOCKET");
	char command[500];

	if (!tool || !socket)
		return;
	snprintf(command, sizeof(command), "%s --socket %s %s >&2", tool, socket, arguments);
	fprintf(stderr, "  %s\n", arguments);
	if (system(command))
		fprintf(stderr, "  (no answer)\n");
}

static void ask_all(const struct pair *p)
{
	static const char *const names[SIDES] = {"left", "right"};
	char text[60];

	for (unsigned side = 0; side < SIDES; side++) {
		snprintf(text, sizeof(text), "--hca %s --json qp %u", names[side],
			 softhca_qp_number(p->end[side].qp));
		ask(text);
	}
	ask("--json held");
	ask("--json fifos");
	ask("--json counters");
	ask("--json status");
}

void report_stuck(struct world *w, struct pair *p, const char *what)
{
	pthread_mutex_lock(&lock);
	for (unsigned side = 0; side < SIDES; side++)
		report_end(p, side, what);
	for (unsigned side = 0; side < SIDES; side++)
		if (p->end[side].box)
			report_box(w, side);
	ask_all(p);
	pthread_mutex_unlock(&lock);
}
