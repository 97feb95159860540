/*
 * cmd_scenario.h - what run, place and timeline share: their options, loading, and the tables they print.
 */
#ifndef SIM_CMD_CMD_SCENARIO_H
#define SIM_CMD_CMD_SCENARIO_H

#include "sim/cmd/cmd.h"
#include "sim/place/place.h"
#include "sim/run/run.h"
#include "sim/run/scenario.h"

enum { CMD_SCENARIO_PLACE = 1, CMD_SCENARIO_RUN = 2, CMD_SCENARIO_TIMELINE = 3, CMD_SCENARIO_EXPLAIN = 4 };

struct cmd_scenario {
	struct arena arena;
	const char *path;
	struct scenario_set *set; /* --set, in order; --seed is one too */
	size_t n_set;
	const char *db; /* NULL: --no-db */
	const char *out; /* NULL: no -o */
	const char *trace_out; /* NULL: none */
	bool json, exact;
	struct scenario *scenario;
};

/* Parses the command line of `which` command. Returns -1 to go on, else the exit status (help, bad usage). */
int cmd_scenario_parse(struct cmd_scenario *c, int argc, char **argv, int which, void (*usage)(void));
int cmd_scenario_load(struct cmd_scenario *c, struct err *err);
void cmd_scenario_release(struct cmd_scenario *c);

/* Enters KEY=VALUE as the next of n overrides. Returns -1 to go on, else the exit status of bad usage. */
int cmd_add_set(struct scenario_set *set, size_t *n, const char *command, const char *text, struct arena *a);

/* "llama-3.1-70b q4_0, 37.0 GiB, on desktop-rtx4090-ddr5 with engine ideal …" */
void cmd_print_heading(const struct scenario *s);
/* The ledger, one line a memory, and what is missing. */
void cmd_print_memory(const struct ledger *l);
/* Resources that were used: busy, utilised, what they moved, how much of the critical path they set. */
void cmd_print_resources(const struct result *r);
/* All that `offsim run` prints of a result. */
void cmd_print_run(const struct scenario *s, const struct result *r, const struct run_why *why);
void cmd_print_placement_json(const struct placement *p);

#endif
