/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The demonstration. Each row is run three times: in both directions at once with every byte
 * checked, in both directions at once against the clock, and back and forth for the latency.
 * The limit model runs before and after, when no traffic is there.
 */
#include <stdio.h>
#include "softhca/softhca.h"
#include "bw.h"
#include "demo.h"
#include "flow.h"
#include "lat.h"
#include "machine_limit.h"

enum {
	ROWS_MAX = 64,
	SIZES = 4,
	SMALL_BYTES = 64,
	BULK_BYTES = 4096,
	AREA_BYTES = 16 << 20,
	RX_DEPTH = 512,
	LATENCY_SHORT = 1000,
	LATENCY_LONG = 50,
	LONG_BYTES = 65536
};
#define STRETCH_NS 150000000ull

struct row {
	enum kind kind;
	uint8_t service;
	uint32_t size;
	struct bw_result checked, bw;
	struct lat_result lat;
};

struct demo {
	const struct options *o;
	struct row rows[ROWS_MAX];
	unsigned count;
};

static const char *const service_names[] = {"RC", "UC", "UD"};
static const uint32_t sizes[SIZES] = {8, 4096, 65536, 1 << 20};

static uint64_t slots_of(const struct options *o, uint32_t size)
{
	uint64_t n = AREA_BYTES / session_stride(o, size);

	return n < RX_DEPTH ? n : RX_DEPTH;
}

/* Everything that counts its messages, and so leaves no receive request behind. */
static int check_row(struct session *s, struct row *r)
{
	struct bw_params check = {.kind = r->kind,
				  .size = r->size,
				  .bidirectional = true,
				  .verify = true,
				  .messages = 2 * slots_of(s->o, r->size)};
	struct lat_params lat = {.kind = r->kind,
				 .size = r->size,
				 .iterations =
					 r->size >= LONG_BYTES ? LATENCY_LONG : LATENCY_SHORT};

	return bw_run(s, &check, &r->checked) || lat_run(s, &lat, &r->lat) ? -1 : 0;
}

static int time_row(struct session *s, struct row *r)
{
	struct bw_params timed = {
		.kind = r->kind, .size = r->size, .bidirectional = true, .duration_ns = STRETCH_NS};

	return bw_run(s, &timed, &r->bw);
}

static bool allowed(uint8_t service, enum kind kind, uint32_t size)
{
	const struct kind_info *k = &kinds[kind];

	if (k->bytes)
		return service == SOFTHCA_QP_RC && size == k->bytes;
	if (service == SOFTHCA_QP_UC)
		return kind == KIND_SEND || kind == KIND_WRITE;
	if (service == SOFTHCA_QP_UD)
		return kind == KIND_SEND && size <= UD_BYTES_MAX;
	return true;
}

static void add_rows(struct demo *d, uint8_t service)
{
	for (unsigned k = 0; k < KIND_COUNT; k++)
		for (unsigned i = 0; i < SIZES; i++)
			if (allowed(service, k, sizes[i]))
				d->rows[d->count++] = (struct row){
					.kind = k, .service = service, .size = sizes[i]};
}

static int run_service(struct demo *d, uint8_t service)
{
	struct options o = *d->o;
	unsigned first = d->count;
	struct session s;
	int error;

	o.service = service;
	o.qps = 1;
	o.post_list = 16;
	o.rx_depth = RX_DEPTH;
	o.inline_bytes = SMALL_BYTES;
	add_rows(d, service);
	error = session_open(&s, &o, AREA_BYTES);
	for (unsigned i = first; i < d->count && !error; i++)
		error = check_row(&s, &d->rows[i]);
	for (unsigned i = first; i < d->count && !error; i++)
		error = time_row(&s, &d->rows[i]);
	session_close(&s);
	return error;
}

static void print_size(uint32_t size)
{
	if (size >= 1 << 20)
		printf("%4u MiB", size >> 20);
	else if (size >= 1 << 10)
		printf("%4u KiB", size >> 10);
	else
		printf("%4u B  ", size);
}

/* Short messages are bounded by their number, long ones by their bytes. */
static double share(const struct row *r, const struct machine_limit *m)
{
	return r->size < BULK_BYTES ? bw_mpps(&r->bw) / m->messages_mpps
				    : bw_gbps(&r->bw) / m->bulk_gbps;
}

static void print_table(const struct demo *d, const struct machine_limit *m)
{
	printf("operation         size    Gbit/s    Mmsg/s  latency us  share of limit\n");
	for (unsigned i = 0; i < d->count; i++) {
		const struct row *r = &d->rows[i];

		printf("%s %-10s", service_names[r->service], kinds[r->kind].name);
		print_size(r->size);
		printf("  %8.2f  %8.4f  %10.2f", bw_gbps(&r->bw), bw_mpps(&r->bw), r->lat.median);
		if (m->bulk_gbps > 0)
			printf("  %12.0f %%", 100 * share(r, m));
		printf("\n");
	}
}

static void print_summary(const struct demo *d, const struct machine_limit *m)
{
	double messages = 0, bytes = 0;

	for (unsigned i = 0; i < d->count; i++) {
		messages += (double)d->rows[i].checked.messages;
		bytes += (double)d->rows[i].checked.messages * d->rows[i].size;
	}
	printf("\nRates: both directions at once, added up. Latency: half a round trip; READ and "
	       "atomics a whole one.\n");
	if (m->bulk_gbps > 0)
		printf("Limit, measured before and after: %.1f Gbit/s, %.2f Mmsg/s of 64 bytes "
		       "(one core plays both sides; core to core and back %.0f ns).\n",
		       m->bulk_gbps, m->messages_mpps, m->core_to_core_ns);
	printf("Verified: %.0f messages, %.2f GB, every byte right.\n", messages, bytes * 1e-9);
}

int demo_main(const struct options *o)
{
	struct demo d = {.o = o};
	struct machine_limit before = {0}, after = {0}, mean;
	bool limited = machine_limit_get(&before, o->limit) == 0;

	for (uint8_t service = SOFTHCA_QP_RC; service <= SOFTHCA_QP_UD; service++)
		if (run_service(&d, service))
			return -1;
	if (limited && machine_limit_get(&after, o->limit))
		after = before;
	mean = machine_limit_mean(&before, &after);
	print_table(&d, &mean);
	print_summary(&d, &mean);
	return 0;
}
