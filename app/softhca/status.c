/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca status`: the daemon at a glance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "columns.h"
#include "pipeline/topology.h"
#include "table.h"
#include "top.h"
#include "view.h"
#include "watch.h"

enum { CPUS_MAX = 64 };

static void node_text(long long node, char text[CELL_BYTES])
{
	snprintf(text, CELL_BYTES, node < 0 ? "-" : "%lld", node);
}

/* The nodes of a port's engines, and their distances from the port: "0 1" and "10 21". */
static void print_engines(json_t *ports)
{
	char text[CELL_BYTES];
	struct table t;
	const char *hca;
	json_t *p;

	puts("\nengines");
	table_begin(&t, "hca|>engine|>node|>from the port");
	json_object_foreach(ports, hca, p)
	{
		const json_t *nodes = json_object_get(p, "engine_nodes");
		const json_t *distances = json_object_get(p, "distances");

		for (size_t i = 0; i < json_array_size(nodes); i++) {
			long long far = json_integer_value(json_array_get(distances, i));

			table_add(&t, "%s", hca);
			table_add(&t, "%zu", i);
			node_text(json_integer_value(json_array_get(nodes, i)), text);
			table_add(&t, "%s", text);
			node_text(far ? far : -1, text);
			table_add(&t, "%s", text);
		}
	}
	table_end(&t, stdout, "  ");
}

static void addresses_text(const json_t *port, char text[CELL_BYTES])
{
	const json_t *addresses = json_object_get(port, "addresses");
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < json_array_size(addresses) && used < CELL_BYTES; i++)
		used += snprintf(text + used, CELL_BYTES - used, "%s%s", i ? " " : "",
				 json_string_value(json_array_get(addresses, i)));
}

static void print_ports(json_t *ports)
{
	static const struct column columns[] = {PORT_VIEW(COLUMN)};
	const struct objects_table t = {"hca", columns, COUNT_OF(columns), "addresses",
					addresses_text};

	puts("\nports");
	print_objects(ports, &t, "  ");
}

static void add_traffic(struct table *t, const char *hca, const struct hca_rates *r)
{
	table_add(t, "%s", hca);
	table_add(t, "%.3f", r->out_gbps);
	table_add(t, "%.3f", r->in_gbps);
	table_add(t, "%.4f", r->out_mmsgs);
	table_add(t, "%.4f", r->in_mmsgs);
	table_add(t, "%.0f", r->retransmitted);
	table_add(t, "%.0f", r->dropped);
}

/* What the HCAs have done since the last look; at the first, only remembers it. */
static void print_traffic(struct connection *c, json_t *ports)
{
	const double seconds = watch_elapsed();
	struct table t;
	json_t *port;
	const char *hca;

	if (seconds > 0) {
		puts("\ntraffic");
		table_begin(&t, "hca|>Gbit/s out|>in|>Mmsg/s out|>in|>retrans/s|>drops/s");
	}
	json_object_foreach(ports, hca, port)
	{
		json_t *now = connection_ask(c, "counters", hca);
		const json_t *then = now ? watch_last(hca, now) : NULL;

		if (then && seconds > 0) {
			const struct hca_rates r = hca_rates_of(then, now, seconds);

			add_traffic(&t, hca, &r);
		}
		json_decref(now);
	}
	if (seconds > 0)
		table_end(&t, stdout, "  ");
}

/* "hca0.0.doorbell_wqe"; always with a dot. */
static const char *stage_at(const json_t *stages, size_t i)
{
	const char *text = json_string_value(json_array_get(stages, i));

	return text && strchr(text, '.') ? text : "?.?";
}

/* Stages of one engine together: "hca0.0: all" or "hca0.0: doorbell_wqe segmentation". */
static void stages_text(const json_t *lcore, char text[CELL_BYTES])
{
	const json_t *stages = json_object_get(lcore, "stages");
	size_t used = 0, count = json_array_size(stages), next;

	text[0] = '\0';
	for (size_t i = 0; i < count && used < CELL_BYTES; i = next) {
		const char *first = stage_at(stages, i);
		size_t length = strrchr(first, '.') - first + 1;

		for (next = i + 1; next < count; next++) {
			if (strncmp(stage_at(stages, next), first, length) != 0)
				break;
		}
		used += snprintf(text + used, CELL_BYTES - used, "%s%.*s:%s", i ? ", " : "",
				 (int)length - 1, first, next - i == STAGE_COUNT ? " all" : "");
		for (size_t k = i; k < next && next - i < STAGE_COUNT && used < CELL_BYTES; k++)
			used += snprintf(text + used, CELL_BYTES - used, " %s",
					 stage_at(stages, k) + length);
	}
}

static void print_lcores(json_t *lcores, const json_t *last, bool probe)
{
	static const struct column columns[] = {LCORE_VIEW(COLUMN)};
	const struct objects_table t = {">cpu", columns, COUNT_OF(columns), "stages", stages_text};
	unsigned cpus[CPUS_MAX], count = 0;
	const char *cpu;
	json_t *lcore;

	puts("\nlcores");
	print_changes(lcores, last, watch_elapsed(), &t, "  ");
	json_object_foreach(lcores, cpu, lcore)
	{
		if (count < CPUS_MAX)
			cpus[count++] = strtoul(cpu, NULL, 10);
	}
	warn_distance(cpus, count, probe);
}

/* Chunks of 256 KiB: used, of the maximum. */
static void print_contexts(json_t *hcas)
{
	static const char *const kinds[] = {"qps", "srqs", "cqs"};
	const char *hca;
	struct table t;
	json_t *h;

	table_begin(&t, "contexts, chunks|>QPs|>of|>SRQs|>of|>CQs|>of");
	json_object_foreach(hcas, hca, h)
	{
		table_add(&t, "%s", hca);
		for (unsigned i = 0; i < 3; i++) {
			const json_t *kind = json_object_get(h, kinds[i]);

			table_add(&t, "%llu", number_of(kind, "mapped"));
			table_add(&t, "%llu", number_of(kind, "chunks"));
		}
	}
	table_end(&t, stdout, "  ");
}

static void print_memory(const json_t *memory)
{
	static const struct column columns[] = {POOL_VIEW(COLUMN)};
	const struct objects_table t = {"buffers", columns, COUNT_OF(columns), NULL, NULL};

	printf("\nmemory  %llu MiB resident", number_of(memory, "resident_kib") / 1024);
	if (strcmp(text_of(memory, "hugepages"), "yes") == 0)
		puts(", plus hugepages");
	else
		printf(", no hugepages, %llu MiB reserved\n", number_of(memory, "reserved_mib"));
	print_objects(json_object_get(memory, "buffers"), &t, "  ");
	print_contexts(json_object_get(memory, "contexts"));
}

static void print_clients(const json_t *status)
{
	static const struct column columns[] = {CLIENT_VIEW(COLUMN)};
	const struct objects_table t = {NULL, columns, COUNT_OF(columns), NULL, NULL};
	unsigned long long count = number_of(status, "client_count");

	printf("\nclients  %llu\n", count);
	if (count == 0)
		return;
	print_objects(json_object_get(status, "clients"), &t, "  ");
	print_rest(json_object_get(status, "clients"), count);
}

static void print_status(struct connection *c, const struct request *r, json_t *status)
{
	printf("softhcad %s, process %llu, up for %llu s, socket %s, crc %s\n",
	       text_of(status, "version"), number_of(status, "pid"), number_of(status, "uptime_s"),
	       text_of(status, "socket"), text_of(status, "crc"));
	print_ports(json_object_get(status, "ports"));
	if (r->watch_s > 0)
		print_traffic(c, json_object_get(status, "ports"));
	print_engines(json_object_get(status, "ports"));
	print_lcores(json_object_get(status, "lcores"),
		     json_object_get(watch_last("", status), "lcores"), r->probe);
	print_memory(json_object_get(status, "memory"));
	print_clients(status);
}

int view_status(struct connection *c, const struct request *r)
{
	json_t *status = connection_ask(c, "status", NULL);

	if (!status)
		return EXIT_CODE_FAILURE;
	keep_hca(json_object_get(status, "ports"), NULL, r->hca);
	keep_hca(json_object_get(json_object_get(status, "memory"), "contexts"), NULL, r->hca);
	if (!print_json_answer(c, r, "/softhca/status", status))
		print_status(c, r, status);
	json_decref(status);
	return EXIT_CODE_OK;
}
