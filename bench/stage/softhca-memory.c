/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: softhca-memory [SOFTHCAD]
 * Resident memory of an idle daemon with its default configuration, and what a queue pair adds to
 * it. Starts the daemon, on its own socket. Exit code 1: more than 96 MiB.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#include "context/qp_context.h"
#include "softhca/softhca.h"

enum {
	QUEUE_PAIRS = 1000,
	RESIDENT_MIB_MAX = 96,
	START_TRIES = 500,
	PAUSE_US = 20000,
	SETTLE_US = 500000
};

static char folder[] = "/tmp/softhca-memory.XXXXXX";
static char socket_path[64];

/* Value of a line of /proc/PID/status, KiB; -1 if it cannot be read. */
static long status_kib(pid_t pid, const char *name)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && kib < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kib = strtol(line + strlen(name) + 1, NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

/* Resident memory without the clients' (their queues, as far as the daemon touched them), KiB. */
static long own_kib(pid_t pid)
{
	long clients = 0, kib;
	bool counts = false;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strchr(line, '-') && strstr(line, " r"))
			counts = strstr(line, "/memfd:softhca") != NULL;
		else if (counts && sscanf(line, "Rss: %ld", &kib) == 1)
			clients += kib;
	}
	if (f)
		fclose(f);
	return status_kib(pid, "VmRSS") - clients;
}

static pid_t start_daemon(const char *program)
{
	pid_t pid = fork();

	if (pid == 0) {
		setenv("RUNTIME_DIRECTORY", folder, 1);
		execl(program, program, "--socket", socket_path, "--set",
		      "daemon.log_level=warning", NULL);
		perror(program);
		_exit(127);
	}
	return pid;
}

static struct softhca_context *wait_for_daemon(pid_t pid)
{
	for (unsigned i = 0; i < START_TRIES && waitpid(pid, NULL, WNOHANG) == 0; i++) {
		struct softhca_context *ctx = softhca_open(socket_path, NULL);

		if (ctx)
			return ctx;
		usleep(PAUSE_US);
	}
	return NULL;
}

static int connect_one(struct softhca_pd *pd, struct softhca_cq *cq)
{
	struct softhca_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.type = SOFTHCA_QP_RC};
	struct softhca_qp *qp = softhca_create_qp(pd, &init);
	struct softhca_endpoint local;
	int error = qp ? softhca_local_endpoint(qp, 0, &local) : -errno;

	/* To itself: what counts is that the context is in RTS. */
	return error ? error : softhca_connect_qp(qp, &local, &local, NULL);
}

static int make_queue_pairs(struct softhca_context *ctx)
{
	struct softhca_pd *pd = softhca_alloc_pd(ctx);
	struct softhca_cq *cq = pd ? softhca_create_cq(ctx, QUEUE_PAIRS, NULL, NULL) : NULL;
	int error = cq ? 0 : -errno;

	for (unsigned i = 0; i < QUEUE_PAIRS && !error; i++)
		error = connect_one(pd, cq);
	if (error)
		fprintf(stderr, "softhca-memory: queue pairs: %s\n", strerror(-error));
	return error;
}

/* The context and, in the tables beside it, what has an entry for each QP. */
static void print_static(void)
{
	printf("queue pair context: %zu bytes, lists of MultiQueue (%zu bytes) included\n",
	       sizeof(struct qp), 3 * sizeof(struct mq_list));
}

static int measure(pid_t pid)
{
	struct softhca_context *ctx = wait_for_daemon(pid);
	long idle, before, own_before, after, own_after;

	if (!ctx) {
		fprintf(stderr, "softhca-memory: the daemon did not start\n");
		return 1;
	}
	softhca_close(ctx);
	usleep(SETTLE_US);
	idle = status_kib(pid, "VmRSS");
	printf("idle daemon: %.1f MiB resident (limit %d MiB)\n", (double)idle / 1024,
	       RESIDENT_MIB_MAX);
	print_static();
	ctx = softhca_open(socket_path, NULL);
	before = status_kib(pid, "VmRSS");
	own_before = own_kib(pid);
	if (!ctx || make_queue_pairs(ctx))
		return 1;
	usleep(SETTLE_US);
	after = status_kib(pid, "VmRSS");
	own_after = own_kib(pid);
	/* The rest are the client's queues, as far as the daemon has touched them. */
	printf("%d queue pairs in RTS: %.0f bytes each of the daemon's own memory, %.0f resident\n",
	       QUEUE_PAIRS, (double)(own_after - own_before) * 1024 / QUEUE_PAIRS,
	       (double)(after - before) * 1024 / QUEUE_PAIRS);
	softhca_close(ctx);
	return idle < 0 || idle > RESIDENT_MIB_MAX * 1024L;
}

static void remove_folder(void)
{
	char command[sizeof(folder) + 16];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		fprintf(stderr, "softhca-memory: %s stays behind\n", folder);
}

static void default_program(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX / 2);

	path[n > 0 ? n : 0] = 0;
	if (strrchr(path, '/'))
		*strrchr(path, '/') = 0;
	strcat(path, "/../../app/softhcad");
}

int main(int argc, char **argv)
{
	char program[PATH_MAX];
	int status = 1;
	pid_t pid;

	default_program(program);
	if (!mkdtemp(folder)) {
		perror(folder);
		return 1;
	}
	snprintf(socket_path, sizeof(socket_path), "%s/daemon.sock", folder);
	pid = start_daemon(argc > 1 ? argv[1] : program);
	if (pid > 0) {
		status = measure(pid);
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
	}
	remove_folder();
	return status;
}
