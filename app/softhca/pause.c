/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `softhca pause`, `step` and `resume`: stop modules of the pipeline, let them take elements one by
 * one, let them run again. A module stays paused while this process waits; with --keep, until
 * somebody resumes it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ask.h"
#include "commands.h"
#include "pipeline/topology.h"
#include "target.h"
#include "view.h"

static volatile sig_atomic_t told_to_end;

static void pause_on_signal(int number)
{
	(void)number;
	told_to_end = 1;
}

/* "[HCA.]NAME" */
static int pause_read_operand(const struct request *r, struct control_pause *in)
{
	const char *word = r->object ? r->object : "", *dot = strchr(word, '.');
	const char *hca = r->hca ? r->hca : "";
	const int length = dot ? (int)(dot - word) : (int)strlen(hca);
	const char *name = dot ? dot + 1 : word;

	if (length >= (int)sizeof(in->device) || strlen(name) >= sizeof(in->name))
		return failed(word, strerror(ENAMETOOLONG));
	snprintf(in->device, sizeof(in->device), "%.*s", length, dot ? word : hca);
	snprintf(in->name, sizeof(in->name), "%s", name);
	return name[0] ? refuse_module(name) : EXIT_CODE_OK;
}

static int pause_send_request(int daemon, enum control_type type, const struct control_pause *in)
{
	struct control_change_reply out = {0};
	int ret = ask(daemon, type, in, sizeof(*in), &out, sizeof(out), -1, NULL);

	return changed(in->name, ONLY_ADMINS_MAY("pause, step and resume modules"), ret, &out);
}

/* Connects, and asks for it. The connection becomes the caller's. Exit code. */
static int request(enum control_type type, const struct request *r, struct control_pause *in,
		   int *daemon)
{
	int code = pause_read_operand(r, in);

	*daemon = -1;
	if (code)
		return code;
	*daemon = ask_connect(r->socket);
	if (*daemon < 0)
		return target_missing(r, *daemon);
	return pause_send_request(*daemon, type, in);
}

/* Does it answer anything at all? It may still accept connections while it ends. */
static bool daemon_lives(const char *socket)
{
	const struct control_view nothing = {.version = CONTROL_VERSION};
	int daemon = ask_connect(socket), ret;
	char text[64];

	if (daemon < 0)
		return false;
	ret = ask_text(daemon, CONTROL_VIEW, &nothing, sizeof(nothing), text, sizeof(text));
	close(daemon);
	return ret != -ENOTCONN;
}

static const char *why_ended(const char *socket)
{
	return daemon_lives(socket)
		       ? "somebody else has resumed it, or keeps it paused, or debug is off"
		       : "the daemon has gone";
}

/* Returns when it is told to end or nothing is held any more. Signals are unblocked only while it
 * waits, so that none is missed. */
static void wait_here(int daemon, const char *socket)
{
	const struct sigaction end = {.sa_handler = pause_on_signal};
	struct pollfd fd = {.fd = daemon, .events = POLLIN};
	sigset_t none, those;

	sigemptyset(&none);
	sigemptyset(&those);
	sigaddset(&those, SIGINT);
	sigaddset(&those, SIGTERM);
	sigaddset(&those, SIGHUP);
	sigprocmask(SIG_BLOCK, &those, NULL);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	fputs("until this command ends (Ctrl-C), or 'softhca resume'\n", stderr);
	fflush(stdout);
	while (!told_to_end && ppoll(&fd, 1, NULL, &none) <= 0)
		;
	fprintf(stderr, "softhca: %s\n", poll(&fd, 1, 0) > 0 ? why_ended(socket) : "resumed");
}

int view_pause(struct connection *unused, const struct request *r)
{
	struct control_pause in = {.version = CONTROL_VERSION, .keep = r->keep};
	int daemon, code;

	(void)unused;
	if (!r->object) {
		fputs("softhca: pause what? 'softhca topology' draws stages and modules\n", stderr);
		return EXIT_CODE_USAGE;
	}
	code = request(CONTROL_PAUSE, r, &in, &daemon);
	if (!code && !r->keep)
		wait_here(daemon, r->socket);
	if (daemon >= 0)
		close(daemon);
	return code;
}

/* Exit code. */
static int read_steps(const char *text, uint32_t *steps)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*steps = (uint32_t)n;
	if (n > 0 && n <= CONTROL_STEPS_MAX && !*end && text[0] != '-')
		return EXIT_CODE_OK;
	fprintf(stderr, "softhca: '%s' is no number of steps from 1 to %d\n", text,
		CONTROL_STEPS_MAX);
	return EXIT_CODE_USAGE;
}

int view_step(struct connection *unused, const struct request *r)
{
	struct control_pause in = {.version = CONTROL_VERSION, .steps = 1};
	int code = r->value ? read_steps(r->value, &in.steps) : EXIT_CODE_OK, daemon = -1;

	(void)unused;
	if (!code)
		code = request(CONTROL_STEP, r, &in, &daemon);
	if (daemon >= 0)
		close(daemon);
	return code;
}

int view_resume(struct connection *unused, const struct request *r)
{
	struct control_pause in = {.version = CONTROL_VERSION};
	int daemon, code = request(CONTROL_RESUME, r, &in, &daemon);

	(void)unused;
	if (daemon >= 0)
		close(daemon);
	return code;
}
