/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softhca-stage budget: where the cycles of a message go. The modules measure themselves as they do
 * for `softhca show runtime` (module_run.h), in rounds that take turns with rounds in which nothing
 * is measured, and with the ways to treat ICRC and payload.
 *
 * A measured poll costs more than its module does: part of the price lies between the two readings
 * of the TSC and is taken off the module, the other part outside and is taken off the rest of the
 * round. Both are the least that polling a module that does nothing costs, some hundred times in a
 * row in each turn, measured and not. In a real round the processor hides some of it: the residue
 * is the total of the other rounds less the sum of the table.
 */
#include <float.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include "../sort.h"
#include "budget.h"
#include "counted.h"
#include "limit_steps.h"
#include "pipeline/module_run.h"
#include "pipeline/topology.h"

enum {
	PACKET_BYTES = 4096, /* of the rig's path MTU */
	ROUND_PACKETS = 640, /* messages, if they are no longer than a packet */
	ROUNDS_MIN = 4,
	ROUNDS_MAX = 1024,
	PRICE_POLLS = 300,
	SIDES = 2,
};

static const char *const sides[SIDES] = {"requester", "responder"};

/* What the settings icrc and tx_copy amount to; the last is what they default to between HCAs of
 * one daemon. The model does what the first one does. */
static const struct way {
	const char *icrc, *copy;
	enum icrc_mode mode;
	bool refs;
} ways[] = {
	{"icrc", "copied", ICRC_ALWAYS, false},
	{"no icrc", "copied", ICRC_NEVER, false},
	{"icrc", "referred", ICRC_ALWAYS, true},
	{"no icrc", "referred", ICRC_NEVER, true},
};
enum { WAYS = sizeof(ways) / sizeof(*ways) };

/* THE table: which module does the work of a step of the model. */
static const struct {
	unsigned side;
	enum module_id module;
} place_of[LIMIT_STEP_COUNT] = {
	[LIMIT_REQUEST_ALLOC] = {0, MODULE_RTC}, [LIMIT_REQUEST_WQE] = {0, MODULE_WP},
	[LIMIT_REQUEST_COPY] = {0, MODULE_RTC},	 [LIMIT_REQUEST_HEADERS] = {0, MODULE_RPG},
	[LIMIT_REQUEST_ICRC] = {0, MODULE_RPG},	 [LIMIT_REQUEST_RING] = {0, MODULE_TXA},
	[LIMIT_ARRIVAL_RING] = {1, MODULE_HP},	 [LIMIT_ARRIVAL_ICRC] = {1, MODULE_HP},
	[LIMIT_ARRIVAL_PARSE] = {1, MODULE_HP},	 [LIMIT_ARRIVAL_CHECK] = {1, MODULE_EE},
	[LIMIT_ARRIVAL_STORE] = {1, MODULE_EE},	 [LIMIT_ARRIVAL_FREE] = {1, MODULE_EE},
	[LIMIT_ACK_ALLOC] = {1, MODULE_RESPG},	 [LIMIT_ACK_HEADERS] = {1, MODULE_RESPG},
	[LIMIT_ACK_ICRC] = {1, MODULE_RESPG},	 [LIMIT_ACK_RING] = {1, MODULE_TXA},
	[LIMIT_ANSWER_RING] = {0, MODULE_HP},	 [LIMIT_ANSWER_ICRC] = {0, MODULE_HP},
	[LIMIT_ANSWER_PARSE] = {0, MODULE_HP},	 [LIMIT_ANSWER_COMPLETE] = {0, MODULE_RRC},
	[LIMIT_ANSWER_FREE] = {0, MODULE_RRC},
};

/* Of a round, by message or packet; sort_quickest_tenth() knows the order. As measured, until
 * correct() takes the price of measuring off. */
struct sample {
	double total;
	double module[SIDES][MODULE_COUNT];
	double post, poll, rest; /* rest: of the total, less the others */
	double pairs;		 /* of readings around post and poll */
	double elements[SIDES][MODULE_COUNT];
	double busy[SIDES][MODULE_COUNT], polls[SIDES][MODULE_COUNT];
};

enum { SAMPLE_WIDTH = sizeof(struct sample) / sizeof(double) };

/* Cycles that measuring adds: in all, and to what is measured. */
struct price {
	double whole, inside;
};

struct budget {
	struct rig *rig;
	const struct workload *workload;
	unsigned packets;		 /* of a message */
	double plain;			 /* an empty poll that is not measured */
	struct price measured, pair;	 /* one that is; a pair of readings. The least seen */
	struct sample *samples[WAYS][2]; /* by "measured" */
	struct sample mean[WAYS][2];
	struct limit_steps model;
};

static void measure_modules(struct rig *r, bool on)
{
	for (unsigned i = 0; i < SIDES; i++) {
		struct engine *e = &r->side[i].hca->engines[0];

		if (on)
			memset(e->run, 0, sizeof(e->run));
		engine_watch(e, WATCH_TIMED, on);
	}
}

/* ---- the price of measuring ---- */

static __attribute__((noinline)) unsigned poll_nothing(struct engine *e)
{
	__asm__ volatile("" : : "r"(e) : "memory");
	return 0;
}

static double cycles_of_polls(struct engine *e)
{
	uint64_t before = rte_rdtsc();

	for (unsigned i = 0; i < PRICE_POLLS; i++)
		module_run(e, MODULE_DBP, poll_nothing);
	return (double)(rte_rdtsc() - before) / PRICE_POLLS;
}

static void keep_least(struct price *p, double whole, double inside)
{
	p->whole = RTE_MIN(p->whole, whole);
	p->inside = RTE_MIN(p->inside, inside);
}

static void look_at_prices(struct budget *b)
{
	struct engine *e = &b->rig->side[0].hca->engines[0];
	uint64_t before, inside = 0;
	double whole;

	b->plain = RTE_MIN(b->plain, cycles_of_polls(e));
	measure_modules(b->rig, true);
	whole = cycles_of_polls(e);
	measure_modules(b->rig, false);
	keep_least(&b->measured, whole, (double)e->run[MODULE_DBP].idle_cycles / PRICE_POLLS);
	before = rte_rdtsc();
	for (unsigned k = 0; k < PRICE_POLLS; k++) {
		uint64_t t = rte_rdtsc();

		inside += rte_rdtsc() - t;
	}
	whole = (double)(rte_rdtsc() - before) / PRICE_POLLS;
	keep_least(&b->pair, whole, (double)inside / PRICE_POLLS);
}

static struct price price_of_poll(const struct budget *b)
{
	return (struct price){b->measured.whole - b->plain, b->measured.inside};
}

/* The client reads the clock as often around its posts as around its polls. */
static void correct(const struct budget *b, struct sample *s)
{
	struct price poll = price_of_poll(b);

	s->post -= s->pairs / 2 * b->pair.inside;
	s->poll -= s->pairs / 2 * b->pair.inside;
	s->rest -= s->pairs * (b->pair.whole - b->pair.inside);
	s->total -= s->pairs * b->pair.whole;
	for (unsigned i = 0; i < SIDES; i++)
		for (unsigned k = 0; k < MODULE_COUNT; k++) {
			s->module[i][k] -= s->polls[i][k] * poll.inside;
			s->rest -= s->polls[i][k] * (poll.whole - poll.inside);
			s->total -= s->polls[i][k] * poll.whole;
		}
}

/* ---- the rounds ---- */

static void sample_modules(struct rig *r, struct sample *s)
{
	for (unsigned i = 0; i < SIDES; i++)
		for (unsigned k = 0; k < MODULE_COUNT; k++) {
			const struct module_run *run = &r->side[i].hca->engines[0].run[k];

			s->module[i][k] = (double)(run->cycles + run->idle_cycles);
			s->rest -= s->module[i][k];
			s->elements[i][k] = (double)run->elements;
			s->busy[i][k] = (double)run->busy_polls;
			s->polls[i][k] = (double)run->polls;
		}
}

static int sample_round(const struct budget *b, bool measured, struct sample *s)
{
	struct counted_client client = {0};
	uint64_t before;
	int err;

	*s = (struct sample){0};
	measure_modules(b->rig, measured);
	before = rte_rdtsc();
	err = counted_round(b->rig, b->workload, ROUND_PACKETS / b->packets,
			    measured ? &client : NULL);
	s->total = (double)(rte_rdtsc() - before);
	measure_modules(b->rig, false);
	s->post = (double)client.post_cycles;
	s->poll = (double)client.poll_cycles;
	s->pairs = (double)client.readings;
	s->rest = s->total - s->post - s->poll;
	if (measured)
		sample_modules(b->rig, s);
	for (unsigned i = 0; i < SAMPLE_WIDTH; i++)
		(&s->total)[i] /= ROUND_PACKETS;
	return err;
}

/* Three rounds: one with which the caches get used to this way, and one of either kind, which take
 * turns to be the earlier one. */
static int sample_way(const struct budget *b, unsigned way, unsigned turn)
{
	bool measured = turn & 1;

	for (unsigned i = 0; i < SIDES; i++) {
		b->rig->side[i].hca->engines[0].settings.icrc = ways[way].mode;
		b->rig->side[i].hca->engines[0].settings.payload_refs = ways[way].refs;
	}
	if (sample_round(b, measured, &b->samples[way][measured][turn]) ||
	    sample_round(b, measured, &b->samples[way][measured][turn]) ||
	    sample_round(b, !measured, &b->samples[way][!measured][turn]))
		return -1;
	return 0;
}

static int sample_all(struct budget *b, unsigned ms)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;
	unsigned n = 0;

	for (; n < ROUNDS_MIN || (n < ROUNDS_MAX && rte_rdtsc() < end); n++) {
		look_at_prices(b);
		for (unsigned i = 0; i < WAYS; i++)
			if (sample_way(b, i, n))
				return -1;
	}
	for (unsigned i = 0; i < WAYS; i++)
		for (unsigned k = 0; k < 2; k++) {
			sort_quickest_tenth(&b->samples[i][k]->total, n, SAMPLE_WIDTH,
					    &b->mean[i][k].total);
			if (k)
				correct(b, &b->mean[i][k]);
		}
	return 0;
}

/* Before and after the rounds; the quicker one counts, for the machine may have changed. */
static int measure_model(struct budget *b, unsigned ms)
{
	struct limit_steps now;

	if (b->packets > 1 ? limit_bulk_steps(ms, &now) : limit_messages_steps(ms, &now))
		return -1;
	if (b->model.total == 0 || now.total < b->model.total)
		b->model = now;
	return 0;
}

/* ---- the table ---- */

static void print_head(const struct budget *b)
{
	struct price poll = price_of_poll(b);

	printf("\n%s: cycles of a %s\n", b->workload->name, b->packets > 1 ? "packet" : "message");
	printf("  a measured poll costs %.1f more, %.1f of them inside the module: taken off\n",
	       poll.whole, poll.inside);
	if (b->workload->opcode != USER_RDMA_WRITE)
		printf("  the model is a 64-byte write all the same: compare sums rather than "
		       "rows\n");
	printf("%-10s %-8s %8s %7s", "", "", "elements", "empty");
	for (unsigned i = 0; i < WAYS; i++)
		printf(" %9s", ways[i].icrc);
	printf("\n%-10s %-8s %8s %7s", "side", "module", "/call", "polls");
	for (unsigned i = 0; i < WAYS; i++)
		printf(" %9s", ways[i].copy);
	printf(" %9s  its steps\n", "model");
}

/* Where a field is in a sample, which is nothing but doubles. */
#define AT(field) (offsetof(struct sample, field) / sizeof(double))

static double value(const struct budget *b, unsigned way, bool measured, size_t at)
{
	return (&b->mean[way][measured].total)[at];
}

static void print_row(const struct budget *b, const char *name, size_t at)
{
	printf("%-36s", name);
	for (unsigned i = 0; i < WAYS; i++)
		printf(" %9.1f", value(b, i, true, at));
}

static void print_steps(const struct budget *b, unsigned side, enum module_id id)
{
	double cycles = 0;
	bool any = false;

	for (unsigned i = 0; i < LIMIT_STEP_COUNT; i++)
		if (place_of[i].side == side && place_of[i].module == id && b->model.step[i] != 0) {
			cycles += b->model.step[i];
			any = true;
		}
	if (!any) {
		printf(" %9s\n", "-");
		return;
	}
	printf(" %9.1f ", cycles);
	for (unsigned i = 0; i < LIMIT_STEP_COUNT; i++)
		if (place_of[i].side == side && place_of[i].module == id && b->model.step[i] != 0)
			printf(" %s", limit_step_name(i));
	printf("\n");
}

static bool is_idle(const struct budget *b, unsigned side, enum module_id id)
{
	for (unsigned i = 0; i < WAYS; i++)
		if (b->mean[i][1].busy[side][id] > 0)
			return false;
	return true;
}

/* Modules that are polled and have nothing to do, such as a responder's for requests. */
static void print_idle(const struct budget *b, unsigned side)
{
	printf("%-10s %-25s", sides[side], "those without work");
	for (unsigned i = 0; i < WAYS; i++) {
		double cycles = 0;

		for (unsigned k = 0; k < MODULE_COUNT; k++)
			if (is_idle(b, side, k))
				cycles += b->mean[i][1].module[side][k];
		printf(" %9.1f", cycles);
	}
	printf(" %9s\n", "-");
}

static void print_modules(const struct budget *b, unsigned side)
{
	const struct sample *first = &b->mean[0][1];
	char name[64];

	for (unsigned k = 0; k < MODULE_COUNT; k++) {
		double busy = first->busy[side][k], polls = first->polls[side][k];

		if (is_idle(b, side, k))
			continue; /* or called, not polled: part of its caller */
		snprintf(name, sizeof(name), "%-10s %-8s %8.1f %6.0f%%", sides[side],
			 module_infos[k].name, busy > 0 ? first->elements[side][k] / busy : 0,
			 100 * (polls - busy) / polls);
		print_row(b, name, AT(module[0][0]) + side * MODULE_COUNT + k);
		print_steps(b, side, k);
	}
	print_idle(b, side);
}

/* The sum, what it should be, and what is between them; what a way saves against the first one. */
static void print_sums(const struct budget *b)
{
	double model = 0;

	for (unsigned i = 0; i < LIMIT_STEP_COUNT; i++)
		model += b->model.step[i];
	print_row(b, "sum", AT(total));
	printf(" %9.1f\n%-36s", model, "total, nothing measured");
	for (unsigned i = 0; i < WAYS; i++)
		printf(" %9.1f", value(b, i, false, AT(total)));
	printf(" %9.1f\n%-36s", b->model.total, "residue");
	for (unsigned i = 0; i < WAYS; i++)
		printf(" %+9.1f", value(b, i, false, AT(total)) - value(b, i, true, AT(total)));
	printf(" %+9.1f\n%-36s %9s", b->model.total - model, "saved against the first way", "-");
	for (unsigned i = 1; i < WAYS; i++)
		printf(" %9.1f", value(b, 0, false, AT(total)) - value(b, i, false, AT(total)));
	printf(" %9s\n", "-");
}

static void print_budget(const struct budget *b)
{
	print_head(b);
	for (unsigned i = 0; i < SIDES; i++)
		print_modules(b, i);
	print_row(b, "client     posts", AT(post));
	printf(" %9s\n", "-");
	print_row(b, "client     polls", AT(poll));
	printf(" %9s\n", "-");
	print_row(b, "the rest of the round", AT(rest));
	printf(" %9s\n", "-");
	print_sums(b);
}

int budget_print(struct rig *r, const struct workload *w, unsigned ms)
{
	struct budget b = {.rig = r,
			   .workload = w,
			   .packets = RTE_MAX(w->bytes / PACKET_BYTES, 1u),
			   .plain = DBL_MAX,
			   .measured = {DBL_MAX, DBL_MAX},
			   .pair = {DBL_MAX, DBL_MAX}};
	struct sample *samples = calloc(WAYS * 2 * ROUNDS_MAX, sizeof(*samples));
	int err = -1;

	if (!samples)
		return err;
	for (unsigned i = 0; i < WAYS * 2; i++)
		b.samples[i / 2][i % 2] = samples + i * ROUNDS_MAX;
	err = measure_model(&b, ms / 2 + 1) || sample_all(&b, ms) || measure_model(&b, ms / 2 + 1);
	if (!err)
		print_budget(&b);
	free(samples);
	return err ? -1 : 0;
}
