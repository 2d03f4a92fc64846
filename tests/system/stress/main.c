/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: stress [--seconds N] [--seed S] [--clients N] [--threads N] [--patience N] [--kill]
 * Clients of the daemon at $SOFTHCA_SOCKET, whose HCAs left and right are joined, that create, use,
 * modify and destroy everything at random. Half of a client's threads share its contexts, the
 * others have their own and often close them with everything in them. --kill: one more client,
 * which is killed and started again all the time. --patience: after that many seconds without
 * progress a pair counts as stuck; $SOFTHCA_TOOL's report of it is printed. Exit status 0: success.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../../../bench/path/verify.h"
#include "stress.h"

enum { CLIENTS_MAX = 8, THREADS_MAX = 32, KILL_MS = 1500, ENOUGH = 20 };

uint64_t *tally;
unsigned patience_s = 60;

static struct {
	unsigned seconds, clients, threads;
	uint64_t seed;
	bool kill;
} options = {.seconds = 20, .clients = 2, .threads = 8};

void wrong(const char *format, ...)
{
	char text[400];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	fprintf(stderr, "stress: WRONG (seed %llu): %s\n", (unsigned long long)options.seed, text);
	add(TALLY_WRONG, 1);
	if (told(TALLY_WRONG) > ENOUGH) /* the daemon has died, most likely */
		_exit(1);
}

/* ---- one client ---- */

struct thread {
	pthread_t id;
	struct softhca_context *const *ctx;
	uint64_t seed, until_ns;
};

static void *thread_main(void *argument)
{
	struct thread *t = argument;

	world_run(t->ctx, t->seed, t->until_ns);
	return NULL;
}

static int client_main(unsigned number, uint64_t until_ns)
{
	unsigned threads = options.threads / options.clients;
	struct softhca_context *ctx[SIDES];
	struct thread thread[THREADS_MAX];

	if (contexts_open(ctx))
		return 1;
	for (unsigned i = 0; i < threads; i++) {
		thread[i] = (struct thread){.ctx = i % 2 ? NULL : ctx,
					    .seed = options.seed * 1000 + number * 100 + i,
					    .until_ns = until_ns};
		if (pthread_create(&thread[i].id, NULL, thread_main, &thread[i]))
			abort();
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i].id, NULL);
	for (unsigned side = 0; side < SIDES; side++)
		if (softhca_close(ctx[side]))
			wrong("close");
	return 0;
}

static pid_t start_client(unsigned number, uint64_t until_ns)
{
	pid_t pid = fork();

	if (pid == 0)
		exit(client_main(number, until_ns));
	return pid;
}

/* ---- all of them ---- */

/* Starts and kills a client until time is up. */
static void kill_clients(uint64_t until_ns)
{
	struct random r = {.state = verify_mix(~options.seed)};

	for (unsigned n = 0; !time_is_up(until_ns) && !told(TALLY_WRONG); n++) {
		struct timespec pause = {0};
		pid_t pid = start_client(10 + n, UINT64_MAX);

		pause.tv_nsec = (long)below(&r, KILL_MS) * 1000000 % 1000000000;
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static int wait_for(pid_t pid, unsigned number)
{
	int status = 0;

	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	wrong("client %u ended with status %#x", number, status);
	return 1;
}

static void report(void)
{
	static const char *const names[TALLY_COUNT] = {"requests posted",
						       "completed",
						       "in error",
						       "messages received",
						       "bytes verified",
						       "pairs made",
						       "ended with exact counts",
						       "flushed",
						       "reset",
						       "queue pairs destroyed under load",
						       "drains",
						       "regions",
						       "events",
						       "contexts closed as they were",
						       "windows and regions to be registered",
						       "of these bound or invalidated",
						       "requests through one",
						       "regions registered anew",
						       "CQs resized",
						       "send queues that failed and went on",
						       "CQs that overflowed",
						       "requests refused as they had to be",
						       "wrong"};

	printf("stress: seed %llu, %u s, %u clients, %u threads%s\n",
	       (unsigned long long)options.seed, options.seconds, options.clients, options.threads,
	       options.kill ? ", one killed again and again" : "");
	for (unsigned i = 0; i < TALLY_COUNT; i++)
		printf("%12llu %s\n", (unsigned long long)tally[i], names[i]);
}

static int run(void)
{
	uint64_t until_ns = clock_ns() + options.seconds * 1000000000ull;
	pid_t pid[CLIENTS_MAX];

	for (unsigned i = 0; i < options.clients; i++)
		pid[i] = start_client(i, until_ns);
	if (options.kill)
		kill_clients(until_ns);
	for (unsigned i = 0; i < options.clients; i++)
		wait_for(pid[i], i);
	report();
	if (!told(TALLY_WRONG) && !tally[TALLY_EXACT])
		wrong("no pair ended with exact counts");
	return tally[TALLY_WRONG] ? 1 : 0;
}

static int read_options(int argc, char **argv)
{
	static const struct option known[] = {{"seconds", required_argument, NULL, 's'},
					      {"seed", required_argument, NULL, 'r'},
					      {"clients", required_argument, NULL, 'c'},
					      {"threads", required_argument, NULL, 't'},
					      {"patience", required_argument, NULL, 'p'},
					      {"kill", no_argument, NULL, 'k'},
					      {0}};
	int o;

	while ((o = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (o == 's')
			options.seconds = (unsigned)atoi(optarg);
		else if (o == 'r')
			options.seed = strtoull(optarg, NULL, 0);
		else if (o == 'c')
			options.clients = (unsigned)atoi(optarg);
		else if (o == 't')
			options.threads = (unsigned)atoi(optarg);
		else if (o == 'p')
			patience_s = (unsigned)atoi(optarg);
		else if (o == 'k')
			options.kill = true;
		else
			return -1;
	}
	return optind == argc && options.clients >= 1 && options.clients <= CLIENTS_MAX &&
			       options.threads / options.clients <= THREADS_MAX
		       ? 0
		       : -1;
}

int main(int argc, char **argv)
{
	options.seed = (uint64_t)time(NULL);
	if (read_options(argc, argv)) {
		fprintf(stderr, "usage: stress [--seconds N] [--seed S] [--clients N] [--threads "
				"N] [--patience N] [--kill]\n");
		return 2;
	}
	tally = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED)
		return 2;
	printf("stress: seed %llu\n", (unsigned long long)options.seed);
	fflush(stdout);
	return run();
}
