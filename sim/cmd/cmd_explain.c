/*
 * cmd_explain.c - `offsim explain`: why a scenario is as fast as it is, and what would change it.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "sim/cmd/cmd_pasted.h"
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/run.h"

static void usage(void)
{
	puts("usage: offsim explain SCENARIO.yaml [--set KEY=VALUE]... [--seed N] [--json]\n"
	     "       offsim explain --machine M [--model NAME] [--quant Q] [OPTION]... -- ENGINE COMMAND LINE\n"
	     "\n"
	     "Simulates the scenario and says what sets the pace: the critical path by resource, of the whole run, its\n"
	     "prefill and its decode, how busy each one is, and what twice of each that matters would give. Nothing is stored.\n"
	     "\n"
	     "      --set KEY=VALUE  override a key of the scenario ('offsim help keys' lists them)\n"
	     "      --seed N         of all random numbers (the scenario's key 'seed')\n"
	     "      --json           critical path, gains and sentences as one JSON document\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "of a command line, as in 'offsim predict':");
	printf("%s"
	       "\n"
	       "exit status: 0 done, 1 failed while running, 2 bad input, 3 the placement does not fit\n"
	       "\n"
	       "example: offsim explain scenarios/headline.yaml --set flags.gpu-layers=30\n"
	       "         offsim explain --machine desktop-rtx4090-ddr5 -- llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf --cpu-moe\n",
		pasted_usage);
}

static void print_gains(const struct result *r, const struct run_why *why)
{
	char value[32];

	printf("  %-16s %14s %s\n", "twice as fast",
		why->metric == RESULT_PREFILL_TOK_S ? "prefill" : "decode", "becomes");
	for (int i = 0; i < why->n_gains; i++)
		printf("  %-16s %22s  %.2fx\n", why->gain[i].resource,
			units_format(value, sizeof(value), r->value[why->metric] * why->gain[i].factor,
				result_fields[why->metric].dim),
			why->gain[i].factor);
	putchar('\n');
}

static void print_text(const struct scenario *s, const struct result *r, const struct run_why *why)
{
	cmd_print_heading(s);
	if (r->fits) {
		cmd_print_resources(r);
		print_gains(r, why);
	} else {
		cmd_print_memory(&r->memory);
		putchar('\n');
	}
	printf("why:    %s\n", why->why);
	if (why->change[0])
		printf("change: %s\n", why->change);
}

static json_t *share(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static void add_critical(json_t *list, const char *resource, double critical, const double critical_of[2])
{
	json_array_append_new(list,
		json_pack("{s:s, s:f, s:o, s:o}", "resource", resource, "share", critical, "prefill_share",
			share(critical_of[TRACE_PREFILL]), "decode_share", share(critical_of[TRACE_DECODE])));
}

static void print_json(const struct result *r, const struct run_why *why)
{
	json_t *root = json_object(), *critical = json_array(), *gains = json_array();

	for (int i = 0; i < r->n_resources; i++)
		if (r->resource[i].critical > 0)
			add_critical(critical, r->resource[i].name, r->resource[i].critical, r->resource[i].critical_of);
	if (r->critical_overhead > 0)
		add_critical(critical, "overhead", r->critical_overhead, r->critical_overhead_of);
	for (int i = 0; i < why->n_gains; i++)
		json_array_append_new(gains, json_pack("{s:s, s:f}", "resource", why->gain[i].resource, "factor",
						     why->gain[i].factor));
	json_object_set_new(root, "fits", json_boolean(r->fits));
	json_object_set_new(root, "metric", json_string(result_fields[why->metric].name));
	json_object_set_new(root, "value", r->fits ? json_real(r->value[why->metric]) : json_null());
	json_object_set_new(root, "critical", critical);
	json_object_set_new(root, "gains", gains);
	json_object_set_new(root, "why", json_string(why->why));
	json_object_set_new(root, "change", json_string(why->change));
	json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	putchar('\n');
	json_decref(root);
}

static int explain(const struct scenario *s, bool exact, bool json, struct arena *a)
{
	struct err err = {0};
	struct result r;
	struct run_why why;
	struct run_options options = {.exact = exact, .gains = true, .interrupted = &cmd_interrupted};

	if (run_scenario(s, &options, a, &r, &why, &err))
		return cmd_fail(&err);
	if (json)
		print_json(&r, &why);
	else
		print_text(s, &r, &why);
	return r.fits ? EXIT_DONE : EXIT_NO_FIT;
}

static int explain_pasted(int argc, char **argv)
{
	struct pasted p;
	int status = pasted_parse(&p, argc, argv, usage);

	if (status >= 0)
		return status;
	status = pasted_load(&p);
	if (status < 0)
		status = explain(p.scenario, p.exact, p.json, &p.arena);
	pasted_release(&p);
	return cmd_finish_stdout(status);
}

int cmd_explain(int argc, char **argv)
{
	struct cmd_scenario c;
	struct err err = {0};

	if (pasted_is(argc, argv))
		return explain_pasted(argc, argv);
	int status = cmd_scenario_parse(&c, argc, argv, CMD_SCENARIO_EXPLAIN, usage);
	if (status >= 0)
		return status;
	status = cmd_scenario_load(&c, &err) ? cmd_fail(&err) : explain(c.scenario, false, c.json, &c.arena);
	cmd_scenario_release(&c);
	return cmd_finish_stdout(status);
}
