/* SPDX-License-Identifier: BSD-3-Clause */
/* See watch.h. */
#include <time.h>
#include <unistd.h>
#include "watch.h"

#define CLEAR_SCREEN "\033[H\033[2J"

static json_t *last, *current; /* answers by name, of the last round and of this one */
static double began_s, elapsed_s;

const json_t *watch_last(const char *name, json_t *answer)
{
	if (current)
		json_object_set(current, name, answer);
	return json_object_get(last, name);
}

double watch_elapsed(void)
{
	return elapsed_s;
}

static void begin_round(void)
{
	struct timespec t;
	double now_s;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now_s = t.tv_sec + t.tv_nsec * 1e-9;
	elapsed_s = began_s > 0 ? now_s - began_s : 0;
	began_s = now_s;
	json_decref(last);
	last = current;
	current = json_object();
}

int watch_run(const struct command *command, struct connection *c, const struct request *r)
{
	bool clear = isatty(STDOUT_FILENO) && !r->json;
	int code = EXIT_CODE_OK;

	for (unsigned i = 0; code == EXIT_CODE_OK && (!r->count || i < r->count); i++) {
		if (i)
			usleep(r->watch_s * 1000000);
		begin_round();
		if (clear)
			fputs(CLEAR_SCREEN, stdout);
		else if (i && !r->json)
			puts("");
		code = command->view(c, r);
		if (fflush(stdout))
			code = EXIT_CODE_FAILURE;
	}
	json_decref(last);
	json_decref(current);
	last = current = NULL;
	return code;
}
