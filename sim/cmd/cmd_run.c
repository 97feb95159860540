/*
 * cmd_run.c - `offsim run`: simulate one scenario, print what came out and why, store it.
 */
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/run.h"
#include "sim/run/record.h"
#include "sim/run/trace_out.h"

static void usage(void)
{
	puts("usage: offsim run SCENARIO.yaml [--set KEY=VALUE]... [--db FILE | --no-db] [--json] [--seed N] [--exact]\n"
	     "                  [--trace-out FILE.otr]\n"
	     "\n"
	     "Simulates one scenario, prints the result, why it is so and what would change it, and stores it.\n"
	     "The table of resources is of the whole run, its prompt included, and says what sets the pace of each phase;\n"
	     "'why' and 'change' are of a decode step, or of the prefill where that takes longer.\n"
	     "\n"
	     "      --set KEY=VALUE  override a key ('offsim help keys' lists them)\n"
	     "      --db FILE        database to store in (default results.db)\n"
	     "      --no-db          do not store\n"
	     "      --json           one JSON document on standard output, SI units\n"
	     "      --seed N         of all random numbers (the scenario's key 'seed')\n"
	     "      --exact          simulate every decode step; without it, some stand for all where steps\n"
	     "                       differ by their context alone (tested to agree within 0.1 %)\n"
	     "      --trace-out FILE write the steps that were simulated; 'workload: {trace: FILE}' replays them\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "exit status: 0 done, 1 failed while running, 2 bad input, 3 the placement does not fit\n"
	     "\n"
	     "example: offsim run scenarios/headline.yaml --set flags.gpu-layers=40 --set workload.batch=8");
}

int cmd_run(int argc, char **argv)
{
	struct cmd_scenario c;
	int status = cmd_scenario_parse(&c, argc, argv, CMD_SCENARIO_RUN, usage);

	if (status >= 0)
		return status;

	struct err err = {0};
	struct result r;
	struct run_why why;
	struct timeline t;
	struct run_options options = {.exact = c.exact, .interval = true, .interrupted = &cmd_interrupted};
	if (cmd_scenario_load(&c, &err) || (c.trace_out && trace_out_check(c.scenario, c.trace_out, &err)) ||
		run_scenario(c.scenario, &options, &c.arena, &r, c.json ? NULL : &why, &err)) {
		status = cmd_fail(&err);
	} else {
		if (c.json)
			result_print_json(&r, stdout);
		else
			cmd_print_run(c.scenario, &r, &why);
		status = r.fits ? EXIT_DONE : EXIT_NO_FIT;
		if (c.db && ((r.fits && timeline_simulate(c.scenario, TIMELINE_STEPS, &cmd_interrupted, &c.arena, &t, &err)) ||
				    record_store(c.db, c.scenario, &r, r.fits ? &t : NULL, &c.arena, &err)))
			status = cmd_fail(&err);
		else if (c.db && !c.json)
			printf("stored: %s in %s\n", r.key, c.db);
		if (c.trace_out && status != EXIT_FAILED && trace_out(c.scenario, c.trace_out, &cmd_interrupted, &c.arena, &err))
			status = cmd_fail(&err);
		else if (c.trace_out && !c.json)
			printf("trace: %s\n", c.trace_out);
	}
	cmd_scenario_release(&c);
	return cmd_finish_stdout(status);
}
