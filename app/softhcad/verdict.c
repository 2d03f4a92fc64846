/* SPDX-License-Identifier: BSD-3-Clause */
/* See verdict.h. */
#include <errno.h>
#include <stdio.h>
#include "verdict.h"

uint32_t verdict_begin(struct verdicts *v, const char *text)
{
	if (!++v->tickets)
		v->tickets = 1;
	v->going = (struct verdict){.ticket = v->tickets};
	snprintf(v->going.text, sizeof(v->going.text), "%s", text);
	return v->going.ticket;
}

void verdict_fail(struct verdicts *v, int error, const char *text)
{
	if (!v->going.ticket || v->going.error)
		return;
	v->going.error = error;
	snprintf(v->going.text, sizeof(v->going.text), "%s", text);
}

void verdict_end(struct verdicts *v)
{
	if (!v->going.ticket)
		return;
	v->over[v->going.ticket % VERDICTS] = v->going;
	v->going.ticket = 0;
}

int verdict_of(const struct verdicts *v, uint32_t ticket, char *text, unsigned bytes)
{
	const struct verdict *over = &v->over[ticket % VERDICTS];

	if (v->going.ticket == ticket)
		return -EAGAIN;
	if (over->ticket != ticket) {
		snprintf(text, bytes, "done, but the daemon's log has to say how it ended");
		return -EIO;
	}
	snprintf(text, bytes, "%s", over->text);
	return over->error;
}
