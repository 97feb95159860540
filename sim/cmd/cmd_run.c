/*
 * cmd_run.c - `offsim run`: simulate one scenario, print what came out and why, store it.
 */
#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/run.h"
#include "sim/run/record.h"

static void usage(void)
{
	puts("usage: offsim run SCENARIO.yaml [--set KEY=VALUE]... [--db FILE | --no-db] [--json] [--seed N] [--exact]\n"
	     "\n"
	     "Simulates one scenario, prints the result, why it is so and what would change it, and stores it.\n"
	     "\n"
	     "      --set KEY=VALUE  override a key ('offsim help keys' lists them)\n"
	     "      --db FILE        database to store in (default results.db)\n"
	     "      --no-db          do not store\n"
	     "      --json           one JSON document on standard output, SI units\n"
	     "      --seed N         of all random numbers (the scenario's key 'seed')\n"
	     "      --exact          simulate every decode step; without it, some stand for all where steps\n"
	     "                       differ by their context alone (tested to agree within 0.1 %)\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "exit status: 0 done, 1 failed while running, 2 bad input, 3 the placement does not fit\n"
	     "\n"
	     "example: offsim run scenarios/headline.yaml --set flags.gpu-layers=40 --set workload.batch=8");
}

static void print_metric(const struct result *r, enum result_field_id f, const char *label)
{
	char value[32], low[32], high[32];

	if (!isfinite(r->value[f]))
		return;
	units_format(value, sizeof(value), r->value[f], result_fields[f].dim);
	printf("  %-12s %14s", label, value);
	if (isfinite(r->low80[f]))
		printf("   80 %%: %s .. %s", units_format(low, sizeof(low), r->low80[f], result_fields[f].dim),
			units_format(high, sizeof(high), r->high80[f], result_fields[f].dim));
	putchar('\n');
}

static void print_metrics(const struct result *r)
{
	print_metric(r, RESULT_DECODE_TOK_S, "decode");
	print_metric(r, RESULT_UPPER_BOUND_TOK_S, "  bound");
	print_metric(r, RESULT_TPOT_S, "  a step");
	print_metric(r, RESULT_PREFILL_TOK_S, "prefill");
	print_metric(r, RESULT_TTFT_S, "first token");
	print_metric(r, RESULT_TOTAL_S, "total");
	print_metric(r, RESULT_E2E_TOK_S, "end to end");
	putchar('\n');
}

static void print_table(const struct cmd_scenario *c, const struct result *r, const struct run_why *why)
{
	cmd_print_heading(c->scenario);
	if (r->fits) {
		print_metrics(r);
		cmd_print_resources(r);
	}
	cmd_print_memory(&r->memory);
	printf("\nwhy:    %s\n", why->why);
	if (why->change[0])
		printf("change: %s\n", why->change);
}

int cmd_run(int argc, char **argv)
{
	struct cmd_scenario c;
	int status = cmd_scenario_parse(&c, argc, argv, CMD_SCENARIO_RUN, usage);

	if (status >= 0)
		return status;
	cmd_catch_interrupts();

	struct err err = {0};
	struct result r;
	struct run_why why;
	struct run_options options = {.exact = c.exact, .interval = true, .interrupted = &cmd_interrupted};
	if (cmd_scenario_load(&c, &err) ||
		run_scenario(c.scenario, &options, &c.arena, &r, c.json ? NULL : &why, &err)) {
		status = cmd_fail(&err);
	} else {
		if (c.json)
			result_print_json(&r, stdout);
		else
			print_table(&c, &r, &why);
		status = r.fits ? EXIT_DONE : EXIT_NO_FIT;
		if (c.db && record_store(c.db, c.scenario, &r, &c.arena, &err))
			status = cmd_fail(&err);
		else if (c.db && !c.json)
			printf("stored: %s in %s\n", r.key, c.db);
	}
	cmd_scenario_release(&c);
	return cmd_finish_stdout(status);
}
