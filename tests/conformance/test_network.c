/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: test_conformance_network [long [FILE]]
 *        test_conformance_network link MBPS DELAY_US LOSS REORDER DUPLICATE CORRUPT
 *
 * Scenarios of many HCAs in a network, each a row of a table. As a test, their short forms: each
 * figure is at least as good as the row says that it must stay, with room for other seeds. `long` plays them for longer, from
 * several seeds, and prints the median of each figure beside what is wanted; FILE gets what
 * network.py draws. `link`: goodput in Mbit/s of 64-KiB WRITEs over one link of that rate and delay, whose
 * faults have these probabilities in both directions; of two daemons with the same settings it should be
 * the same. SOFTHCA_SEEDS=first,count: other seeds.
 */
#include "rig.h"
#include "scenario.h"

enum {
	FIGURES = 4,
	SEEDS_MAX = 64,
	LINK = 40000,
	/* payload that a link carries in packets of 4 KiB: Ethernet, IPv4, UDP, BTH, ICRC beside it */
	CARRIES = LINK * 4096ull / (4096 + 58 + SIM_GAP_BYTES),
};

#define STANDARD LOSS_RECOVERY_STANDARD
#define KEEP	 LOSS_RECOVERY_KEEP

struct row;
typedef void measure(const struct row *r, const struct scenario *c, uint64_t seed, FILE *points,
		     double figure[FIGURES]);

struct figure {
	const char *what;
	double floor, aim; /* that are wanted */
	double stays;	   /* at most or at least, in the short form; 0: not asserted */
	bool at_most;
};

struct row {
	const char *name;
	struct scenario scenario;
	unsigned brief_ms; /* run_ms of the short form; 0: as long */
	measure *measure;
	struct figure figure[FIGURES];
};

/* ---- measures ---- */

static void draw_rates(const struct row *r, const struct outcome *o, FILE *points)
{
	for (unsigned i = 0; points && i < o->flows; i++)
		for (unsigned ms = 0; ms < o->windows; ms++)
			fprintf(points, "rate,%s,%u,%u,%.3f\n", r->name, i, ms,
				scenario_mbps(o, i, ms, ms + 1) / 1000);
}

/* By how much of a fair share between n the one of them is off that is off most. */
static double unfair(const struct outcome *o, unsigned n, unsigned from_ms, unsigned to_ms)
{
	double fair = (double)CARRIES / n, most = 0, off;

	for (unsigned i = 0; i < n; i++) {
		off = scenario_mbps(o, i, from_ms, to_ms) / fair - 1;
		most = RTE_MAX(most, off < 0 ? -off : off);
	}
	return most;
}

/* Ten milliseconds, ten milliseconds after the number of flows has changed. */
static void fairness(const struct row *r, const struct scenario *c, uint64_t seed, FILE *points,
		     double figure[FIGURES])
{
	struct outcome *o = scenario_run(c, seed);
	unsigned n = c->senders;

	figure[0] = unfair(o, n - 1, c->joins_ms - 10, c->joins_ms);
	figure[1] = unfair(o, n, c->leaves_ms - 10, c->leaves_ms);
	figure[2] = unfair(o, n - 1, c->leaves_ms + 10, c->leaves_ms + 20);
	draw_rates(r, o, points);
	scenario_free(o);
}

/* Of what a sender would have if all had the same. */
static double least_share(const struct scenario *c, const struct outcome *o)
{
	double least = scenario_total_mbps(c, o), mean = least / c->senders;

	for (unsigned i = 0; i < c->senders; i++)
		least = RTE_MIN(least, scenario_mbps(o, i, c->warm_ms, c->warm_ms + c->run_ms));
	return least / mean;
}

/* The fair time of a message: all senders' at the rate of the link, and the way there and back. */
static double fair_ns(const struct scenario *c)
{
	return SCENARIO_BYTES * 8000.0 / CARRIES * c->senders * c->depth +
	       4.0 * c->network.delay_ns;
}

static double victim_mbps(const struct scenario *c, const struct outcome *o)
{
	return scenario_mbps(o, o->flows - 1, c->warm_ms, c->warm_ms + c->run_ms);
}

static void incast(const struct row *r, const struct scenario *c, uint64_t seed, FILE *points,
		   double figure[FIGURES])
{
	struct scenario alone = *c;
	struct outcome *o = scenario_run(c, seed), *without;

	alone.senders = 0;
	without = scenario_run(&alone, seed);
	figure[0] = scenario_total_mbps(c, o) / CARRIES;
	figure[1] = scenario_quantile(o, 0.999) / fair_ns(c);
	figure[2] = victim_mbps(c, o) / victim_mbps(&alone, without);
	figure[3] = least_share(c, o);
	for (unsigned i = 1; points && i < 1000; i++)
		fprintf(points, "time,%s,0,%.4f,%.3f\n", r->name,
			scenario_quantile(o, i / 1000.0) / fair_ns(c), i / 1000.0);
	scenario_free(without);
	scenario_free(o);
}

/* Share of the goodput without faults. */
static void goodput(const struct row *r, const struct scenario *c, uint64_t seed, FILE *points,
		    double figure[FIGURES])
{
	static const struct {
		enum loss_recovery sender, receiver;
		bool equal;
	} ends[] = {{STANDARD, STANDARD, false},
		    {STANDARD, KEEP, false},
		    {KEEP, KEEP, false},
		    {KEEP, KEEP, true}};
	struct scenario clean = *c, faulty = *c;
	struct outcome *o, *ideal;

	clean.faults = (struct sim_faults){0};
	clean.network.spray_ppm = 0;
	ideal = scenario_run(&clean, seed);
	for (unsigned i = 0; i < RTE_DIM(ends); i++) {
		faulty.sender = ends[i].sender;
		faulty.receiver = ends[i].receiver;
		faulty.equal = ends[i].equal;
		o = scenario_run(&faulty, seed);
		figure[i] = scenario_total_mbps(c, o) / scenario_total_mbps(c, ideal);
		scenario_free(o);
	}
	if (points)
		for (unsigned i = 0; i < RTE_DIM(ends); i++)
			fprintf(points, "share,%s,%u,%u,%.3f\n", r->name, i, c->faults.loss_ppm,
				figure[i]);
	scenario_free(ideal);
}

/* What is sent again although nothing is lost. */
static void in_vain(const struct row *r, const struct scenario *c, uint64_t seed, FILE *points,
		    double figure[FIGURES])
{
	struct outcome *o = scenario_run(c, seed);

	figure[0] = 1e6 * (double)o->again / (double)o->sent;
	assert_int_equal(o->dropped, 0);
	scenario_free(o);
}

static double mbps_of(const struct scenario *c, uint64_t seed)
{
	struct outcome *o = scenario_run(c, seed);
	double mbps = scenario_total_mbps(c, o);

	scenario_free(o);
	return mbps;
}

/*
 * Equals between which there are several ways, each as fast as their ports, none as long as another: goodput
 * when they spread, of that along one way; what is sent again in vain. The same ratio with losses. Then with
 * one way slow, of the goodput of a connection that has the misfortune to go there.
 */
static void spreading(const struct row *r, const struct scenario *c, uint64_t seed, FILE *points,
		      double figure[FIGURES])
{
	struct scenario one = *c, many = *c;
	double worst = 1e9, least = 1e9, again[FIGURES];

	one.spread = 1;
	in_vain(r, c, seed, points, again);
	figure[1] = again[0];
	figure[0] = mbps_of(&many, seed) / mbps_of(&one, seed);
	one.faults.loss_ppm = many.faults.loss_ppm = 10000;
	figure[2] = mbps_of(&many, seed) / mbps_of(&one, seed);
	one.faults.loss_ppm = many.faults.loss_ppm = 0;
	for (unsigned i = 0; i < c->network.spines; i++) {
		many.network.slow_mbps = one.network.slow_mbps = LINK / 10;
		many.network.slow_spine = one.network.slow_spine = i;
		worst = RTE_MIN(worst, mbps_of(&one, seed));
		least = RTE_MIN(least, mbps_of(&many, seed));
	}
	figure[3] = least / worst;
}

/* ---- the table ---- */

#define LINKS .port_mbps = LINK, .link_mbps = LINK, .queue_bytes = 32768, .delay_ns = 500
/* The marks of the paper on DCQCN. */
#define RED .kmin = 5000, .kmax = 200000, .pmax_ppm = 10000

#define NONE 1e-9 /* since 0 is not asserted */

#define PAIR(operation, ...)                                                                       \
	{                                                                                          \
		.opcode = USER_##operation, .network = {LINKS}, .senders = 1, .depth = 32,         \
		.warm_ms = 2, .run_ms = 60, .faults = {__VA_ARGS__},                               \
	}
#define SHARES(least_1, least_2, least_3, floor_1, aim_1, floor_3, aim_3)                          \
	{                                                                                          \
		{"standard to standard", 0, 0, 0, false},                                          \
			{"standard to keep", floor_1, aim_1, least_1, false},                      \
			{"keep to keep, unknown", 0, 0, least_2, false},                           \
			{"equals", floor_3, aim_3, least_3, false},                                \
	}

#define INCAST                                                                                     \
	.network = {LINKS, .kind = {.buffer_bytes = 512 << 10, .share_eighths = 8}},               \
	.senders = 16, .victim = true, .depth = 1, .sender = KEEP, .receiver = KEEP,               \
	.warm_ms = 10, .run_ms = 200
#define INCAST_FIGURES(goodput, times, victim, least)                                              \
	{"goodput of the link", 0.85, 0.95, goodput, false},                                       \
		{"99.9 % of the times, of the fair one", 5, 3, times, true},                       \
		{"a victim's goodput, of alone", 0.9, 0.98, victim, false},                        \
	{                                                                                          \
		"least sender, of an equal share", 0.5, 0.8, least, false                          \
	}

static const struct row rows[] = {
	{"two flows with DCQCN, and a third",
	 {.network = {LINKS, .kind = {.buffer_bytes = 12 << 20, RED}},
	  .senders = 3,
	  .depth = 8,
	  .cc = CC_DCQCN,
	  .sender = KEEP,
	  .receiver = KEEP,
	  .joins_ms = 20,
	  .leaves_ms = 40,
	  .run_ms = 60},
	 0,
	 fairness,
	 {{"two: off half, 10 ms on", 0.1, 0.1, 0.25, true},
	  {"three: off a third, 10 ms on", 0, 0, 0.25, true},
	  {"two again: off half, 10 ms on", 0.1, 0.1, 0.25, true}}},
	{"incast of 16, 512 KiB of buffer",
	 {.network = {LINKS, .kind = {.buffer_bytes = 512 << 10, .share_eighths = 8, RED}},
	  .senders = 16,
	  .victim = true,
	  .depth = 1,
	  .cc = CC_DCQCN,
	  .sender = KEEP,
	  .receiver = KEEP,
	  .warm_ms = 10,
	  .run_ms = 200},
	 20,
	 incast,
	 {{"goodput of the link", 0.85, 0.95, 0.95, false},
	  {"99.9 % of the times, of the fair one", 5, 3, 5, true},
	  {"a victim's goodput, of alone", 0.9, 0.98, 0.95, false},
	  {"least sender, of an equal share", 0.5, 0.8, 0.5, false}}},
	{"two flows with delay, and a third",
	 {.network = {LINKS, .kind = {.buffer_bytes = 12 << 20}},
	  .senders = 3,
	  .depth = 8,
	  .cc = CC_DELAY,
	  .sender = KEEP,
	  .receiver = KEEP,
	  .joins_ms = 20,
	  .leaves_ms = 40,
	  .run_ms = 60},
	 0,
	 fairness,
	 {{"two: off half, 10 ms on", 0.1, 0.1, 0.2, true},
	  {"three: off a third, 10 ms on", 0, 0, 0.25, true},
	  {"two again: off half, 10 ms on", 0.1, 0.1, 0.2, true}}},
	{"incast of 16, 512 KiB, no marks, delay",
	 {INCAST, .cc = CC_DELAY},
	 20,
	 incast,
	 {INCAST_FIGURES(0.5, 20, 0.95, 0)}},
	{"incast of 16, 512 KiB, no marks, auto",
	 {INCAST, .cc = CC_AUTO},
	 20,
	 incast,
	 {INCAST_FIGURES(0.5, 20, 0.95, 0)}},
	{"loss 10^-3", PAIR(RDMA_WRITE, .loss_ppm = 1000), 20, goodput,
	 SHARES(0.8, 0.85, 0.95, 0.9, 0.95, 0.97, 0.99)},
	{"loss 10^-2", PAIR(RDMA_WRITE, .loss_ppm = 10000), 20, goodput,
	 SHARES(0.65, 0.8, 0.88, 0.75, 0.85, 0.92, 0.96)},
	{"loss 3*10^-2", PAIR(RDMA_WRITE, .loss_ppm = 30000), 20, goodput,
	 SHARES(0.35, 0.55, 0.78, 0.5, 0.6, 0.85, 0.9)},
	{"READs, 10^-3 lost", PAIR(RDMA_READ, .loss_ppm = 1000), 10, goodput,
	 SHARES(0, 0, 0.9, 0, 0, 0.97, 0.99)},
	{"READs, 10^-2 lost", PAIR(RDMA_READ, .loss_ppm = 10000), 10, goodput,
	 SHARES(0, 0, 0.88, 0, 0, 0.92, 0.96)},
	{"READs, 3*10^-2 lost", PAIR(RDMA_READ, .loss_ppm = 30000), 10, goodput,
	 SHARES(0, 0, 0.75, 0, 0, 0.85, 0.9)},
	{"SENDs, 10^-3 lost", PAIR(SEND, .loss_ppm = 1000), 10, goodput,
	 SHARES(0, 0, 0.9, 0, 0, 0.97, 0.99)},
	{"SENDs, 10^-2 lost", PAIR(SEND, .loss_ppm = 10000), 10, goodput,
	 SHARES(0, 0, 0.88, 0, 0, 0.92, 0.96)},
	{"SENDs, 3*10^-2 lost", PAIR(SEND, .loss_ppm = 30000), 10, goodput,
	 SHARES(0, 0, 0.8, 0, 0, 0.85, 0.9)},
	{"5 % up to 32 packets late", PAIR(RDMA_WRITE, .reorder_ppm = 50000, .delay_ns = 32 * 836),
	 20, goodput, SHARES(0.75, 0.75, 0.9, 0.8, 0.9, 0.97, 0.99)},
	{"5 % by a way 32 packets longer",
	 {.network = {LINKS, .leaves = 2, .spines = 2, .spine_mbps = LINK, .detour_ns = 32 * 836,
		      .spray_ppm = 100000},
	  .senders = 1,
	  .depth = 32,
	  .warm_ms = 2,
	  .run_ms = 60},
	 20,
	 goodput,
	 SHARES(0.75, 0.75, 0.9, 0.8, 0.9, 0.97, 0.99)},
	{"8 ports over 4 ways of unequal length",
	 {.network = {LINKS, .leaves = 2, .spines = 4, .spine_mbps = LINK, .detour_ns = 8000,
		      .kind = {.buffer_bytes = 1 << 20}},
	  .senders = 1,
	  .depth = 32,
	  .equal = true,
	  .spread = 8,
	  .sender = KEEP,
	  .receiver = KEEP,
	  .warm_ms = 2,
	  .run_ms = 20},
	 5,
	 spreading,
	 {{"goodput, of one way", 0.97, 1, 0.97, false},
	  {"packets sent again, of 10^6", 1000, NONE, 1000, true},
	  {"goodput with 1 % lost, of one way", 0.9, 1, 0.7, false},
	  {"one way slow: of a connection along it", 1, 2, 1, false}}},
	{"16 senders, one of them late, no loss",
	 {.network = {LINKS},
	  .senders = 16,
	  .depth = 2,
	  .sender = KEEP,
	  .receiver = KEEP,
	  .joins_ms = 20,
	  .leaves_ms = 40,
	  .run_ms = 60},
	 30,
	 in_vain,
	 {{"packets sent again, of 10^6", NONE, NONE, NONE, true}}},
	/* The queue of its own port is thirty times as long as the path. */
	{"a sender on a link of 50 Mbit/s, no loss",
	 {.network = {.port_mbps = 50, .queue_bytes = 32768, .delay_ns = 1500000},
	  .senders = 1,
	  .depth = 8,
	  .sender = KEEP,
	  .receiver = KEEP,
	  .warm_ms = 500,
	  .run_ms = 3000,
	  .step_us = 10},
	 1000,
	 in_vain,
	 {{"packets sent again, of 10^6", 20000, 1000, 20000, true}}},
};

/* ---- tests ---- */

static uint64_t first_seed = 1;
static unsigned seeds;

static struct scenario brief(const struct row *r)
{
	struct scenario c = r->scenario;

	c.run_ms = r->brief_ms ? r->brief_ms : c.run_ms;
	return c;
}

static bool reaches(const struct figure *f, double value, double wanted)
{
	return f->at_most ? value <= wanted : value >= wanted;
}

static void stays(void **state)
{
	const struct row *r = *state;
	struct scenario c = brief(r);
	double figure[FIGURES] = {0};
	/* Marks are random: of who shares by them one seed says little. */
	unsigned n = seeds ? seeds : r->measure == fairness && c.cc == CC_DCQCN ? 5 : 1;

	for (uint64_t seed = first_seed; seed < first_seed + n; seed++) {
		printf("%s: SOFTHCA_SEEDS=%lu,1\n", r->name, (unsigned long)seed);
		r->measure(r, &c, seed, NULL, figure);
		for (unsigned i = 0; i < FIGURES && r->figure[i].what; i++) {
			printf("  %-40s %6.2f (%.2f)\n", r->figure[i].what, figure[i],
			       r->figure[i].stays);
			if (r->figure[i].stays > 0)
				assert_true(reaches(&r->figure[i], figure[i], r->figure[i].stays));
		}
	}
}

/* The same seed does the same. */
static void repeats(void **state)
{
	struct scenario c = brief(&rows[1]);
	struct outcome *a, *b;

	c.run_ms = 5;
	a = scenario_run(&c, 7);
	b = scenario_run(&c, 7);
	assert_memory_equal(a->messages, b->messages, sizeof(a->messages));
	assert_int_equal(a->times, b->times);
	assert_memory_equal(a->took_ns, b->took_ns, a->times * sizeof(*a->took_ns));
	scenario_free(a);
	scenario_free(b);
}

static int test(void)
{
	struct CMUnitTest tests[RTE_DIM(rows) + 1] = {cmocka_unit_test(repeats)};

	for (unsigned i = 0; i < RTE_DIM(rows); i++)
		tests[i + 1] = (struct CMUnitTest){.name = rows[i].name,
						   .test_func = stays,
						   .initial_state = (void *)&rows[i]};
	return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}

/* ---- at length ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const struct row *r, unsigned i, double *values, unsigned n)
{
	const struct figure *f = &r->figure[i];
	const char *verdict = "";
	double median;

	qsort(values, n, sizeof(*values), by_value);
	median = values[n / 2];
	if (f->floor > 0)
		verdict = reaches(f, median, f->aim)	 ? "as aimed"
			  : reaches(f, median, f->floor) ? "reached"
							 : "missed";
	printf("| %s | %s | %.3f | %.3f to %.3f | %.2f | %.2f | %s |\n", i ? "" : r->name, f->what,
	       median, values[0], values[n - 1], f->floor, f->aim, verdict);
	fflush(stdout);
}

static int at_length(const char *path)
{
	FILE *points = path ? fopen(path, "w") : NULL;
	unsigned n = seeds ? RTE_MIN(seeds, (unsigned)SEEDS_MAX) : 5;
	double values[FIGURES][SEEDS_MAX], figure[FIGURES] = {0};

	if (path && !points) {
		perror(path);
		return 1;
	}
	printf("seeds %lu to %lu; medians\n\n", (unsigned long)first_seed,
	       (unsigned long)(first_seed + n - 1));
	printf("| scenario | figure | | from, to | floor | aim | "
	       "|\n|---|---|--:|--:|--:|--:|---|\n");
	for (unsigned r = 0; r < RTE_DIM(rows); r++) {
		for (unsigned k = 0; k < n; k++) {
			rows[r].measure(&rows[r], &rows[r].scenario, first_seed + k,
					k ? NULL : points, figure);
			for (unsigned i = 0; i < FIGURES; i++)
				values[i][k] = figure[i];
		}
		for (unsigned i = 0; i < FIGURES && rows[r].figure[i].what; i++)
			print(&rows[r], i, values[i], n);
	}
	return points ? fclose(points) : 0;
}

/* ---- a link as settings describe it ---- */

static uint32_t ppm(const char *probability)
{
	return (uint32_t)(atof(probability) * 1e6 + 0.5);
}

/* The port is as fast as the link, with nothing behind it. */
static int play_link(char **argument)
{
	enum { FRAMES_LATE = 4, WARM_MS = 500, RUN_MS = 3000 };
	uint32_t mbps = (uint32_t)atoi(argument[0]);
	uint64_t frame_ns = (4096 + 58 + SIM_GAP_BYTES) * 8000ull / mbps;
	struct scenario c = {.network = {.port_mbps = mbps,
					 .queue_bytes = 32768,
					 .delay_ns = atoi(argument[1]) * 500ull},
			     .senders = 1,
			     .depth = 8,
			     .sender = KEEP,
			     .receiver = KEEP,
			     .warm_ms = WARM_MS,
			     .run_ms = RUN_MS,
			     .step_us = 10};
	struct outcome *o;

	c.faults = (struct sim_faults){.loss_ppm = ppm(argument[2]),
				       .reorder_ppm = ppm(argument[3]),
				       .duplicate_ppm = ppm(argument[4]),
				       .corrupt_ppm = ppm(argument[5]),
				       .delay_ns = FRAMES_LATE * frame_ns};
	o = scenario_run(&c, first_seed);
	printf("%.1f\n", scenario_total_mbps(&c, o));
	scenario_free(o);
	return 0;
}

int main(int argc, char **argv)
{
	const char *wanted = getenv("SOFTHCA_SEEDS");
	unsigned long first = 1;

	if (wanted && sscanf(wanted, "%lu,%u", &first, &seeds) != 2) {
		fprintf(stderr, "SOFTHCA_SEEDS=first,count\n");
		return 2;
	}
	first_seed = first;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 8 && !strcmp(argv[1], "link"))
		return play_link(argv + 2);
	return argc > 1 && !strcmp(argv[1], "long") ? at_length(argv[2]) : test();
}
