/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: hostile [--seconds N] [--seed S] [--attack NAME] [QPN ...]
 * Attacks the daemon at $SOFTHCA_SOCKET, whose HCAs left and right are joined; QPNs: of others,
 * whom it should not be able to hurt. Each attack is a separate process, with a seed that is
 * printed if --attack names one; it is killed after a while. Exit status 0: it could attack, and
 * what had to be refused was.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "hostile.h"

uint32_t victims[VICTIMS_MAX];
unsigned victim_count;

static const struct attack {
	const char *name;
	void (*run)(struct attacker *a);
} attacks[] = {
	{"refusals", attack_refusals}, /* to its end */
	{"fields", attack_fields},	 {"wqes", attack_wqes},	      {"words", attack_words},
	{"receives", attack_receives},	 {"sockets", attack_sockets}, {"flips", attack_flips},
	{"doorbells", attack_doorbells}, {"memory", attack_memory},
};
enum { ATTACKS = sizeof(attacks) / sizeof(attacks[0]), TURN_MS = 700, REFUSALS_MS = 60000 };

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static pid_t start(const struct attack *attack, uint64_t seed)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct attacker a = {.state = seed << 32};

		objects_make(&a);
		attack->run(&a);
		exit(0);
	}
	return pid;
}

/* Ends it after its turn, unless it did. Its exit code; -1: it had to be ended. */
static int end(pid_t pid, unsigned turn_ms)
{
	uint64_t until = now_ms() + turn_ms;
	const struct timespec nap = {.tv_nsec = 10000000};
	int status = 0;

	while (now_ms() < until) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
		nanosleep(&nap, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

static int run(uint64_t seed, unsigned seconds, const char *only)
{
	uint64_t until = now_ms() + seconds * 1000ull;
	unsigned done[ATTACKS] = {0}, failed = 0, passed = 0, total = 0;

	for (uint64_t n = 0; now_ms() < until; n++) {
		const struct attack *attack = &attacks[n % ATTACKS];
		bool refusals = attack->run == attack_refusals;
		int code;

		if (only && strcmp(only, attack->name) != 0)
			continue;
		if (only)
			printf("hostile: %s, seed %llu\n", only, (unsigned long long)(seed + n));
		fflush(stdout);
		code = end(start(attack, seed + n), refusals ? REFUSALS_MS : TURN_MS);
		failed += code == SET_UP_FAILED;
		passed += refusals && code < 0;
		done[n % ATTACKS]++;
		total++;
	}
	for (unsigned i = 0; i < ATTACKS; i++)
		printf("%8u attacks on %s\n", done[i], attacks[i].name);
	printf("%8u of %u could not begin, %u met no refusal\n", failed, total, passed);
	return failed * 2 < total && passed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"seconds", required_argument, NULL, 's'},
					      {"seed", required_argument, NULL, 'r'},
					      {"attack", required_argument, NULL, 'a'},
					      {0}};
	unsigned seconds = 20;
	uint64_t seed = (uint64_t)time(NULL);
	const char *only = NULL;
	int o;

	while ((o = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (o == 's')
			seconds = (unsigned)atoi(optarg);
		else if (o == 'r')
			seed = strtoull(optarg, NULL, 0);
		else if (o == 'a')
			only = optarg;
		else
			return 2;
	}
	for (; optind < argc && victim_count < VICTIMS_MAX; optind++)
		victims[victim_count++] = (uint32_t)strtoul(argv[optind], NULL, 0);
	printf("hostile: seed %llu, %u s\n", (unsigned long long)seed, seconds);
	return run(seed, seconds, only);
}
