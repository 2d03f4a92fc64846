/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca topology`: the pipeline, drawn from its table (pipeline/topology.def), as text or for
 * graphviz. */
#include <stdio.h>
#include <string.h>
#include "columns.h"
#include "pipeline/topology.h"
#include "view.h"

enum { BOX_COLUMNS = 90, TEXT_BYTES = 512 };

static const char *const arrows[FORM_COUNT] = {
	[FORM_WITHIN] = "-->", [FORM_BETWEEN] = "==>", [FORM_FROM_EACH] = "=>>"};

/* The channels that a module feeds, with their form's arrow, and the modules that it calls or is
 * called by: "--> tc   ==> rpg   <-> sem". */
static void outputs(unsigned module, char text[TEXT_BYTES])
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < CHANNEL_COUNT && used < TEXT_BYTES; i++) {
		const struct channel_info *c = &channel_infos[i];

		if (c->producer != module)
			continue;
		used += snprintf(text + used, TEXT_BYTES - used, "%s%s %s", used ? "   " : "",
				 arrows[channel_form(i)], module_infos[c->consumer].name);
	}
	for (unsigned i = 0; i < CALL_COUNT && used < TEXT_BYTES; i++) {
		const struct call_info *c = &call_infos[i];

		if (c->caller == module || c->called == module)
			used += snprintf(
				text + used, TEXT_BYTES - used, "%s<-> %s", used ? "   " : "",
				module_infos[c->caller == module ? c->called : c->caller].name);
	}
	if (!used && module == MODULE_TXA)
		snprintf(text, TEXT_BYTES, "==> port");
}

static void draw_line(char corner, const char *title)
{
	int used = printf("%c-%s%s%s", corner, *title ? " " : "", title, *title ? " " : "");

	while (used++ < BOX_COLUMNS - 1)
		putchar('-');
	printf("%c\n", corner);
}

static void draw_stage(unsigned stage)
{
	char title[TEXT_BYTES], text[TEXT_BYTES];

	snprintf(title, sizeof(title), "%s: %s", stage_infos[stage].name, stage_infos[stage].text);
	draw_line('+', title);
	for (unsigned m = 0; m < MODULE_COUNT; m++) {
		if (module_infos[m].stage != stage)
			continue;
		outputs(m, text);
		printf("| %-6s %-24s %-*s |\n", module_infos[m].name, module_infos[m].design_name,
		       BOX_COLUMNS - 36, text);
	}
}

static void topology_draw(void)
{
	puts("doorbells of the clients ==> dbp                                 frames from the "
	     "port ==> rxa");
	for (unsigned s = 0; s < STAGE_COUNT; s++)
		draw_stage(s);
	draw_line('+', "");
	puts("Channels are named rings: --> within a stage, plain; "
	     "==> to another stage, plain on one\n"
	     "lcore, else SP/SC; =>> the same, MP/SC with several engines. "
	     "<-> is a call, answered at once");
}

static void draw_dot(void)
{
	puts("digraph softhca {\n\trankdir=LR;\n\tnode [shape=box];");
	for (unsigned s = 0; s < STAGE_COUNT; s++) {
		printf("\tsubgraph cluster_%s {\n\t\tlabel=\"%s\";\n", stage_infos[s].name,
		       stage_infos[s].name);
		for (unsigned m = 0; m < MODULE_COUNT; m++) {
			if (module_infos[m].stage == s)
				printf("\t\t%s [label=\"%s\"];\n", module_infos[m].name,
				       module_infos[m].design_name);
		}
		puts("\t}");
	}
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		printf("\t%s -> %s [label=\"%s\"];\n", module_infos[channel_infos[i].producer].name,
		       module_infos[channel_infos[i].consumer].name, channel_infos[i].name);
	for (unsigned i = 0; i < CALL_COUNT; i++)
		printf("\t%s -> %s [label=\"%s\", dir=both];\n",
		       module_infos[call_infos[i].caller].name,
		       module_infos[call_infos[i].called].name, call_infos[i].name);
	puts("}");
}

/* "all on 3", or the CPU of each stage. */
static void cpus_text(const json_t *engine, char text[CELL_BYTES])
{
	const json_t *cpus = json_object_get(engine, "cpus");
	size_t used = 0;
	bool same = true;

	for (size_t i = 1; i < json_array_size(cpus); i++)
		same = same && json_equal(json_array_get(cpus, i), json_array_get(cpus, 0));
	if (same) {
		snprintf(text, CELL_BYTES, "all on %" JSON_INTEGER_FORMAT,
			 json_integer_value(json_array_get(cpus, 0)));
		return;
	}
	for (size_t i = 0; i < json_array_size(cpus) && i < STAGE_COUNT && used < CELL_BYTES; i++)
		used += snprintf(text + used, CELL_BYTES - used, "%s%s on %" JSON_INTEGER_FORMAT,
				 i ? ", " : "", stage_infos[i].name,
				 json_integer_value(json_array_get(cpus, i)));
}

/* The CPUs and node of each engine. */
static void print_places(json_t *engines)
{
	static const struct column columns[] = {ENGINE_VIEW(COLUMN)};
	const struct objects_table t = {"engine", columns, COUNT_OF(columns), "stages, CPUs",
					cpus_text};

	print_objects(engines, &t, "");
}

/* The drawing needs no daemon; if there is one, its placement is shown, too. */
static int draw_all(struct connection *c)
{
	json_t *answer;

	topology_draw();
	if (!c)
		return EXIT_CODE_OK;
	answer = connection_ask(c, "topology", NULL);
	if (!answer)
		return EXIT_CODE_FAILURE;
	puts("");
	print_places(json_object_get(answer, "engines"));
	json_decref(answer);
	return EXIT_CODE_OK;
}

int view_topology(struct connection *c, const struct request *r)
{
	json_t *answer;

	if (r->dot) {
		draw_dot();
		return EXIT_CODE_OK;
	}
	if (!r->json)
		return draw_all(c);
	answer = connection_ask(c, "topology", NULL);
	if (!answer)
		return EXIT_CODE_FAILURE;
	puts(c->answer);
	json_decref(answer);
	return EXIT_CODE_OK;
}
