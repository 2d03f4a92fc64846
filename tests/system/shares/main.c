/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: shares SOCKET ATTACK|idle
 *        shares SOCKET victim SCHEDSTAT_OF_THE_LCORE SCHEDSTAT_OF_THE_CONTROL_THREAD
 * ATTACK: takes all that one can get of a row of shares.def (its column `attack`), says how much that is, and keeps it until it
 * is killed; what comes back by itself it takes again. idle: an honest neighbour in its place. victim: does what it reads.
 * Speaks the protocol by hand where the library would stop early.
 */
#include <sys/resource.h>
#include <time.h>
#include "shares.h"

#define NS_IN_S	      1e9
#define OWN_SCHEDSTAT "/proc/thread-self/schedstat"

const char *path;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- the victim ---- */

static int expect(const char *what, int rc)
{
	if (rc)
		printf("%s: %s; ", what, strerror(rc == RAW_GONE ? ECONNRESET : -rc));
	return rc != 0;
}

/* What one program needs, once more. */
static int one_more(void)
{
	struct rdma_ucm_listen listen = {.backlog = 4};
	int fd = connect_once(), cm, failed = 0;
	struct raw r;
	uint32_t id = 0;

	failed += expect("connection", fd < 0 ? -EUSERS : 0);
	if (fd < 0)
		return failed;
	r = raw_client(path); /* fails by itself */
	raw_piece(r.fd, 1 << 20);
	failed += expect("attachment", attach(&r, datagram_qp(&r), 1));
	cm = channel();
	failed += expect("channel", cm < 0 ? -EUSERS : 0);
	for (int k = 0; cm >= 0 && k < 4; k++)
		failed += expect("identifier", create_id(cm, &id));
	failed += expect("event", resolve(cm, id, 7174));
	failed += expect("identifier", create_id(cm, &id));
	listen.id = id;
	failed += expect("listener",
			 command(cm, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), NULL, 0));
	close(cm);
	close(r.fd);
	close(fd);
	return failed;
}

/* Is a neighbour asked for that nobody has asked for before? It does not exist. */
static int neighbour(void)
{
	struct control_hello_reply hello;
	int fd = open_once(&hello), rc;

	ask_for(fd, (uint32_t)getpid());
	rc = raw_receive(fd, NULL, 0);
	close(fd);
	return expect("neighbour", rc == -EHOSTUNREACH ? 0 : rc ? rc : -EEXIST);
}

/* Gives all of it back before it ends: what ends by itself takes a while, in which the next one
 * might find the share used up. */
static void tear_down(const struct raw *r)
{
	raw_number(r->fd, CONTROL_DESTROY_QP, r->qpn);
	raw_number(r->fd, CONTROL_DESTROY_SRQ, r->srqn);
	raw_number(r->fd, CONTROL_DESTROY_CQ, r->cqn);
	raw_number(r->fd, CONTROL_DEREG_MR, r->lkey);
	close(r->fd);
}

/* New connections, with an object of each kind, for so long. Returns their number. */
static uint64_t connections(uint64_t ns)
{
	uint64_t begun = now_ns(), n = 0;
	struct raw r;

	do {
		r = (struct raw){0};
		while ((r.fd = open_once(&r.hello)) < 0)
			usleep(500); /* those before it are still ending */
		raw_furnish(&r);
		tear_down(&r);
		n++;
	} while (now_ns() - begun < ns);
	return n;
}

/* What the kernel says of a thread: how long it ran, and how long it waited for a CPU; ns. */
struct sched {
	unsigned long long ran, waited;
};

static struct sched sched_of(const char *schedstat)
{
	FILE *file = fopen(schedstat, "r");
	struct sched s = {0, 0};

	if (file && fscanf(file, "%llu %llu", &s.ran, &s.waited) != 2)
		s = (struct sched){0, 0};
	if (file)
		fclose(file);
	return s;
}

/* How much it does in a second in which it is served: in which the daemon's thread that does it runs, or in which neither of them
 * waits for a CPU, if that is longer. So what else the machine does hardly counts. */
static void say_rate(uint64_t (*does)(uint64_t ns), const char *schedstat, unsigned int ms)
{
	const struct sched thread = sched_of(schedstat), own = sched_of(OWN_SCHEDSTAT);
	const uint64_t begun = now_ns();
	const double done = (double)does(ms * 1000000ull) * NS_IN_S;
	const struct sched thread_then = sched_of(schedstat), own_then = sched_of(OWN_SCHEDSTAT);
	const double ran = (double)(thread_then.ran - thread.ran);
	const double waited =
		(double)(thread_then.waited - thread.waited + own_then.waited - own.waited);
	const double passed = (double)(now_ns() - begun) - waited;

	printf("%.0f ", done / (passed > ran ? passed : ran + 1));
}

/* Does what it is told, a line each: `check ATTACK`: asks for a little of everything, as two
 * programs would; `rate [MS]`: the rates of bytes, then of connections, each for so long. */
static int victim(const char *lcore, const char *control)
{
	char line[64];

	if (!sched_of(lcore).ran || !sched_of(control).ran || !traffic_begin())
		return 1;
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		unsigned int ms = 50;
		int failed = 0;

		if (strncmp(line, "rate", 4) == 0) {
			(void)sscanf(line, "rate %u", &ms);
			say_rate(traffic, lcore, ms);
			say_rate(connections, control, ms);
			puts("");
			continue;
		}
		for (int i = 0; i < 2; i++)
			failed += one_more();
		if (strstr(line, "resolve"))
			failed += neighbour();
		puts(failed ? "failed" : "ok");
	}
	return 0;
}

/* ---- an honest neighbour ---- */

/* Holds what two programs need, and does nothing with it. */
static unsigned int be_idle(void)
{
	for (int i = 0; i < 2; i++)
		(void)raw_client(path);
	return 2;
}

/* `again`: what it does from then on, without end; NULL: nothing. */
static const struct {
	const char *name;
	unsigned int (*run)(void);
	void (*again)(void);
} attacks[] = {
	{"connect", attack_connect, NULL},
	{"linger", attack_linger, NULL},
	{"requests", attack_requests, again_requests},
	{"locks", attack_locks, again_locks},
	{"log", attack_log, again_log},
	{"resolve", attack_resolve, again_resolve},
	{"map", attack_map, NULL},
	{"register", attack_register, NULL},
	{"scatter", attack_scatter, NULL},
	{"objects", attack_objects, NULL},
	{"attach", attack_attach, NULL},
	{"cm_commands", attack_cm_commands, again_cm_commands},
	{"cm_channels", attack_cm_channels, NULL},
	{"cm_ids", attack_cm_ids, NULL},
	{"cm_ports", attack_cm_ports, NULL},
	{"cm_events", attack_cm_events, NULL},
	{"cm_requests", attack_cm_requests, NULL},
	{"silence", attack_silence, again_silence},
	{"holes", attack_holes, again_holes},
	{"idle", be_idle, NULL},
};

int main(int argc, char **argv)
{
	struct rlimit files;

	if (argc < 3)
		return 2;
	path = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("SOFTHCA_SOCKET", path, 1);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (strcmp(argv[2], "victim") == 0)
		return argc < 5 ? 2 : victim(argv[3], argv[4]);
	for (unsigned int i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(argv[2], attacks[i].name) != 0)
			continue;
		printf("took %u\n", attacks[i].run());
		puts("holding");
		while (attacks[i].again)
			attacks[i].again();
		pause();
	}
	return 2;
}
