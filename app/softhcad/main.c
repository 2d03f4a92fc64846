/* SPDX-License-Identifier: BSD-3-Clause */
/* softhcad, the daemon: reads the configuration, starts everything, serves until SIGTERM or SIGINT,
 * stops everything. SIGHUP makes it read the configuration again. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <rte_lcore.h>
#include "base/log.h"
#include "lifecycle.h"
#include "eal.h"
#include "journal.h"
#include "log_stream.h"
#include "notify.h"
#include "options.h"
#include "placement.h"
#include "privileges.h"

static volatile int stop_requested, reload_requested;

static void request_stop(int number)
{
	stop_requested = number;
}

static void request_reload(int number)
{
	reload_requested = number;
}

/* Blocked in all threads until the control thread serves: then it only ends that thread's wait. */
static void mask_reload(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(how, &set, NULL);
}

/* Before any other thread exists. A second signal to stop kills the process, in case stopping
 * hangs. */
static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = request_reload};

	mask_reload(SIG_BLOCK);
	sigaction(SIGHUP, &action, NULL);
	action = (struct sigaction){.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	action = (struct sigaction){.sa_handler = SIG_IGN};
	sigaction(SIGPIPE, &action, NULL);
}

/* A client takes several descriptors, a channel of the connection manager one: allow the hard
 * limit, not the soft one, which suits programs that use select(). */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		LOG(WARNING, "cannot raise the limit on file descriptors: %s", strerror(errno));
}

static uint64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int daemon_serve(struct daemon *d, const struct config_cpus *cpus, uint64_t started_ms)
{
	if (daemon_start(d, cpus))
		return EXIT_CODE_FAILURE;
	LOG(NOTICE, "ready after %u ms", (unsigned)(monotonic_ms() - started_ms));
	notify_service("READY=1");
	mask_reload(SIG_UNBLOCK);
	daemon_run(d, &stop_requested, &reload_requested);
	LOG(NOTICE, "stopping: %s", strsignal(stop_requested));
	notify_service("STOPPING=1");
	daemon_stop(d);
	return EXIT_CODE_OK;
}

/* Runs the daemon with EAL's files in their folder. Returns the exit code. */
static int run_in_folder(struct daemon *d, const struct config_cpus *cpus, uint64_t started_ms)
{
	char path[PATHS_BYTES_MAX];
	int code;

	if (paths_runtime(d->config.daemon.socket, path, sizeof(path)) ||
	    runtime_folder_open(&d->runtime, path, d->config.daemon.prefix,
				privileges_user(&d->config)) ||
	    eal_start(&d->config, cpus, &d->memory_mib))
		return EXIT_CODE_FAILURE;
	code = daemon_serve(d, cpus, started_ms);
	runtime_folder_remove(&d->runtime);
	return code;
}

int main(int argc, char **argv)
{
	static struct daemon d;
	uint64_t started_ms = monotonic_ms();
	struct config_cpus cpus;

	catch_signals();
	switch (options_read(argc, argv, &d.options, &d.written, &d.config)) {
	case OPTIONS_DONE:
		return EXIT_CODE_OK;
	case OPTIONS_FAILED:
		return EXIT_CODE_FAILURE;
	case OPTIONS_USAGE:
		return EXIT_CODE_USAGE;
	case OPTIONS_RUN:
		break;
	}
	log_stream_open(JOURNAL_SOCKET);
	log_set_levels(&d.config.daemon.log_level);
	LOG(NOTICE, "softhcad %s", SOFTHCA_VERSION);
	raise_descriptors();
	privileges_limit(&d.config);
	if (placement_cpus(&d.config, "/sys", &cpus))
		return EXIT_CODE_USAGE;
	if (daemon_is_running(d.config.daemon.socket)) {
		LOG(ERR, "another daemon listens on %s", d.config.daemon.socket);
		return EXIT_CODE_FAILURE;
	}
	return run_in_folder(&d, &cpus, started_ms);
}
