/*
 * cmd_timeline.c - `offsim timeline`: who used what from when to when, for Perfetto.
 */
#include "base/file.h"
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/timeline.h"

static void usage(void)
{
	puts("usage: offsim timeline SCENARIO.yaml -o OUT.json [--set KEY=VALUE]... [--seed N] [--json]\n"
	     "\n"
	     "Writes what each device, link and memory did in two steps from the middle of a run, as trace events that\n"
	     "https://ui.perfetto.dev and chrome://tracing open. The same as a picture: 'offsim run', then\n"
	     "'offsim plot timeline'.\n"
	     "\n"
	     "  -o, --output OUT     file to write\n"
	     "      --set KEY=VALUE  override a key ('offsim help keys' lists them)\n"
	     "      --seed N         of all random numbers (the scenario's key 'seed')\n"
	     "      --json           write it to standard output\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "exit status: 0 done, 1 failed while running, 2 bad input, 3 the placement does not fit\n"
	     "\n"
	     "example: offsim timeline scenarios/headline.yaml --set flags.gpu-layers=40 -o timeline.json");
}

struct output {
	const struct timeline *t;
	struct cmd_scenario *c;
};

static void write_json(FILE *to, void *ctx)
{
	struct output *o = ctx;

	timeline_print_json(o->t, o->c->scenario, &o->c->arena, to);
}

static int timeline(struct cmd_scenario *c)
{
	struct placement p;
	struct timeline t;
	struct err err = {0};
	struct output o = {&t, c};

	if (cmd_scenario_load(c, &err) || run_place(c->scenario, &p, &c->arena, &err))
		return cmd_fail(&err);
	if (!ledger_fits(&p.ledger)) {
		fprintf(stderr, "offsim: %s does not fit: nothing runs ('offsim place' says what is missing)\n", c->path);
		return EXIT_NO_FIT;
	}
	if (timeline_simulate(c->scenario, TIMELINE_STEPS, &cmd_interrupted, &c->arena, &t, &err))
		return cmd_fail(&err);
	if (c->json) {
		write_json(stdout, &o);
		return EXIT_DONE;
	}
	if (file_replace(c->out, write_json, &o, &err))
		return cmd_fail(&err);
	printf("%s: %zu spans of %d resources in %.6g ms\n", c->out, t.n, t.n_lanes,
		1e3 * sim_seconds(t.step_end[t.n_steps - 1]));
	return EXIT_DONE;
}

int cmd_timeline(int argc, char **argv)
{
	struct cmd_scenario c;
	int status = cmd_scenario_parse(&c, argc, argv, CMD_SCENARIO_TIMELINE, usage);

	if (status >= 0)
		return status;
	if (c.json == (c.out != NULL))
		status = cmd_usage_error(argv[0], "%s", c.json ? "give --json or -o OUT, not both" :
								 "where to? give -o OUT.json or --json");
	else
		status = timeline(&c);
	cmd_scenario_release(&c);
	return cmd_finish_stdout(status);
}
