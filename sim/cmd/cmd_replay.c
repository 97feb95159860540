/*
 * cmd_replay.c - `offsim replay`: a scenario's own operations, simulated and run for real, side by side.
 */
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/compare.h"
#include "sim/run/graph.h"
#include "sim/run/plain_kernels.h"

struct replay_args {
	struct cmd_scenario c;
	const char *on; /* "cpu", "cuda"; NULL: simulate only */
	bool plain;
	uint64_t steps, repeat, threads;
	const char *dir, *write, *operations, *between, *repetitions;
	double max_error; /* NAN: any */
};

static const struct param options_table[] = {
	PARAM_COUNT(struct replay_args, steps, "steps", "3", 1, 100000, "decode steps (prefill, where there are none) from the middle of the run"),
	PARAM_COUNT(struct replay_args, repeat, "repeat", "5", 1, 10000, "run them so often; medians are told"),
	PARAM_COUNT(struct replay_args, threads, "threads", "0", 0, CPU_EXEC_MAX_THREADS,
		"for kernels of a CPU; 0: as the engine has, else one a core"),
	PARAM_REAL(struct replay_args, max_error, "max-error", UNIT_FRACTION, NULL, 0, 1000,
		"status 4 when measured over simulated is further from 1"),
	PARAM_TEXT(struct replay_args, dir, "dir", ".", "folder for the file that stands for a drive; it is removed"),
	PARAM_TEXT(struct replay_args, write, "write", NULL, "write the graph to this file (.opg)"),
	PARAM_TEXT(struct replay_args, operations, "operations", NULL, "write every operation, measured and simulated, to this CSV"),
	PARAM_TEXT(struct replay_args, between, "between", NULL, "run this graph before, between and behind the repetitions (cpu)"),
	PARAM_TEXT(struct replay_args, repetitions, "repetitions", NULL, "write every repetition, and what ran between, to this CSV"),
};

static void usage(void)
{
	puts("usage: offsim replay SCENARIO.yaml|GRAPH.opg [--on cpu|cuda] [--write GRAPH.opg] [OPTION]...\n"
	     "\n"
	     "Takes the operations of a few steps of a scenario (what is copied and computed, how many bytes, in which order, what\n"
	     "waits for what) or reads them from a file, simulates them, and with --on cpu runs them on this machine: real\n"
	     "buffers in memory, a real file for what is on a drive, memcpy in place of the link, threads that read, multiply\n"
	     "and add in place of kernels. The scenario's machine should describe this machine; what an engine waits for is\n"
	     "waited for, and its kernels are simulated as those that run in their place. So what is compared is bytes, order and\n"
	     "contention.\n"
	     "--on cuda gives the same graph to offsim-cuda, a program of its own ('make cuda'): GPU memory, copy engines, streams\n"
	     "and kernels that load the same bytes.\n"
	     "\n"
	     "      --on cpu|cuda      run it here\n"
	     "      --plain            only simulate, but with the kernels that --on runs in place of an engine's");
	for (size_t i = 0; i < ARRAY_LEN(options_table); i++) {
		const struct param *p = &options_table[i];
		char option[32];
		snprintf(option, sizeof(option), "%s %s", p->key, p->kind == PARAM_KIND_TEXT ? "PATH" : "N");
		printf("      --%-16s %s", option, p->help);
		printf(p->def ? " (%s)\n" : "\n", p->def);
	}
	puts("      --set KEY=VALUE    override a key ('offsim help keys' lists them)\n"
	     "      --seed N           of all random numbers (the scenario's key 'seed')\n"
	     "      --db FILE          database to store what was measured in (results.db)\n"
	     "      --no-db            do not store\n"
	     "      --json             one JSON document on standard output, SI units\n"
	     "  -h, --help             this text\n"
	     "\n"
	     "exit status: 0 done, 1 failed while running, 2 bad input, 3 the placement does not fit, 4 --max-error was missed\n"
	     "\n"
	     "example: offsim replay scenarios/replay/cpu.yaml --on cpu --set machine=my-machine.yaml --max-error 10%");
}

enum { OPT_VALUE = 256 };

static int parse(int argc, char **argv, struct replay_args *r)
{
	static const struct option plain[] = {
		{"set", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'e'},
		{"db", required_argument, NULL, 'd'},
		{"no-db", no_argument, NULL, 'n'},
		{"on", required_argument, NULL, 'o'},
		{"plain", no_argument, NULL, 'p'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct option options[ARRAY_LEN(options_table) + ARRAY_LEN(plain)];
	struct cmd_scenario *c = &r->c;
	struct err err;
	int opt, index, status;

	for (size_t i = 0; i < ARRAY_LEN(options_table); i++)
		options[i] = (struct option){options_table[i].key, required_argument, NULL, OPT_VALUE};
	memcpy(options + ARRAY_LEN(options_table), plain, sizeof(plain));
	param_defaults(options_table, ARRAY_LEN(options_table), r, &c->arena);
	c->set = arena_array(&c->arena, struct scenario_set, (size_t)argc);
	while ((opt = getopt_long(argc, argv, ":h", options, &index)) != -1) {
		switch (opt) {
		case OPT_VALUE:
			if (param_set(&options_table[index], r, optarg, NULL, &c->arena, &err))
				return cmd_usage_error(argv[0], "%s", err.msg);
			break;
		case 's':
			status = cmd_add_set(c->set, &c->n_set, argv[0], optarg, &c->arena);
			if (status >= 0)
				return status;
			break;
		case 'e':
			c->set[c->n_set++] = (struct scenario_set){.key = "seed", .value = optarg};
			break;
		case 'd':
			c->db = optarg;
			break;
		case 'o':
			if (strcmp(optarg, "cpu") != 0 && strcmp(optarg, "cuda") != 0)
				return cmd_usage_error(argv[0], "--on wants cpu or cuda, not '%s'", optarg);
			r->on = optarg;
			break;
		case 'p':
			r->plain = true;
			break;
		case 'n':
			c->db = NULL;
			break;
		case 'j':
			c->json = true;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (argc - optind != 1)
		return cmd_usage_error(argv[0], "expected one SCENARIO.yaml or GRAPH.opg, not %d", argc - optind);
	if (!r->on && (r->operations || r->repetitions || isfinite(r->max_error)))
		return cmd_usage_error(argv[0], "--%s goes with --on",
			r->operations ? "operations" : r->repetitions ? "repetitions" : "max-error");
	if (r->between && (!r->on || strcmp(r->on, "cpu") != 0))
		return cmd_usage_error(argv[0], "--between goes with --on cpu");
	c->path = argv[optind];
	return -1;
}

static bool is_graph(const char *path)
{
	size_t len = strlen(path);

	return len > 4 && strcmp(path + len - 4, ".opg") == 0;
}

/* From a file, or from a scenario. Returns -1 to go on, else the exit status. */
static int get_graph(struct replay_args *r, struct opg **g)
{
	struct cmd_scenario *c = &r->c;
	struct placement p;
	struct err err = {0};

	if (is_graph(c->path)) {
		if (c->n_set)
			return cmd_usage_error("replay", "--set and --seed go with a scenario; '%s' is a graph", c->path);
		cmd_catch_interrupts();
		return opg_read(c->path, &c->arena, g, &err) ? cmd_fail(&err) : -1;
	}
	if (cmd_scenario_load(c, &err) || run_place(c->scenario, &p, &c->arena, &err))
		return cmd_fail(&err);
	if (!ledger_fits(&p.ledger)) {
		fprintf(stderr, "offsim: %s does not fit: nothing runs ('offsim place' says what is missing)\n", c->path);
		return EXIT_NO_FIT;
	}
	return graph_record(c->scenario, r->steps, &cmd_interrupted, &c->arena, g, &err) ? cmd_fail(&err) : -1;
}

struct measured {
	const struct compare *compare;
	struct arena *arena;
};

static void write_operations(FILE *to, void *ctx)
{
	struct measured *m = ctx;

	compare_print_operations(m->compare, m->arena, to);
}

static void write_repetitions(FILE *to, void *ctx)
{
	struct measured *m = ctx;

	compare_print_repetitions(m->compare, to);
}

static int write_measured(const struct replay_args *r, struct measured *m, struct err *err)
{
	if (r->operations && file_replace(r->operations, write_operations, m, err))
		return -1;
	return r->repetitions ? file_replace(r->repetitions, write_repetitions, m, err) : 0;
}

/* Runs it here, where that is asked for. */
static int measure(struct replay_args *r, struct compare *compare, struct err *err)
{
	struct arena *a = &r->c.arena;
	struct compare *between = r->between ? arena_new(a, struct compare) : NULL;
	struct compare_how how = {
		.repetitions = r->repeat,
		.cuda = r->on && strcmp(r->on, "cuda") == 0,
		.between = between,
		.exec = {(unsigned)r->threads, r->dir, &cmd_interrupted},
	};
	struct opg *g;

	if (!r->on)
		return 0;
	if (between && (opg_read(r->between, a, &g, err) || compare_simulate(g, &cmd_interrupted, a, between, err)))
		return -1;
	if (compare_measure(compare, &how, a, err))
		return -1;
	return write_measured(r, &(struct measured){compare, a}, err);
}

static void print_heading(const struct opg *g)
{
	static const char *const words[] = {"model", "quant", "machine", "engine"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (opg_about(g, words[i]))
			printf("%s%s %s", i ? ", " : "", words[i], opg_about(g, words[i]));
	printf("\n%zu operations in %d steps, %d of which count; %zu buffers\n\n", g->ops.n, (int)g->steps.count,
		(int)(g->steps.end - g->steps.first), g->buffers.n);
}

static int run(struct replay_args *r)
{
	struct cmd_scenario *c = &r->c;
	struct compare compare;
	struct err err = {0};
	struct opg *g;
	int status = get_graph(r, &g);

	if (status >= 0)
		return status;
	if (r->write && opg_write(g, r->write, &err))
		return cmd_fail(&err);
	if ((r->on || r->plain) && c->scenario)
		plain_kernels(c->scenario->machine, g, &c->arena);
	if (compare_simulate(g, &cmd_interrupted, &c->arena, &compare, &err) || measure(r, &compare, &err))
		return cmd_fail(&err);
	if (c->json) {
		compare_print_json(&compare, stdout);
	} else {
		print_heading(g);
		compare_print(&compare, stdout);
		if (r->write)
			printf("graph: %s\n", r->write);
		if (r->operations)
			printf("operations: %s\n", r->operations);
	}
	if (r->on && c->db) {
		if (compare_store(&compare, r->on, c->db, &c->arena, &err))
			return cmd_fail(&err);
		if (!c->json)
			printf("stored: %s in %s\n", opg_about(g, "key"), c->db);
	}
	if (r->on && fabs(compare.ratio - 1) > r->max_error) {
		fprintf(stderr, "offsim: measured over simulated is %.3f, further from 1 than %.3g\n", compare.ratio, r->max_error);
		return EXIT_BOUND;
	}
	return EXIT_DONE;
}

int cmd_replay(int argc, char **argv)
{
	struct replay_args r = {.c = {.db = "results.db"}};

	cmd_arena_init(&r.c.arena);
	int status = parse(argc, argv, &r);
	if (status < 0)
		status = cmd_finish_stdout(run(&r));
	cmd_scenario_release(&r.c);
	return status;
}
