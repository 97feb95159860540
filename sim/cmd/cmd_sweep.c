/*
 * cmd_sweep.c - `offsim sweep`: the scenario's `sweep:` grid, in parallel, resumable.
 */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/sweep.h"

static void usage(void)
{
	puts("usage: offsim sweep SCENARIO.yaml [--db FILE] [-j N] [--shard I/N] [--set KEY=VALUE]... [--json]\n"
	     "\n"
	     "Simulates every point of the scenario's 'sweep:' grid that FILE does not hold yet. Stopped or killed, the\n"
	     "same command goes on where it was. Several may fill one FILE at once: each point is simulated by one of them.\n"
	     "A point that fails is stored with its message.\n"
	     "\n"
	     "  -j, --jobs N         workers (default: one for each processor)\n"
	     "      --db FILE        database to store in (default results.db)\n"
	     "      --shard I/N      only the I-th of N parts, I from 1; merge them afterwards\n"
	     "      --set KEY=VALUE  override a key at every point ('offsim help keys' lists them)\n"
	     "      --seed N         of all random numbers (the scenario's key 'seed')\n"
	     "      --json           {points, done, skipped, failed, wall_s, points_per_s} on standard output\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "  sweep: {flags.ngl: 0..81/9, machine.gpu0.link.gen: [3, 4, 5]}    FIRST..LAST/STEP, LAST included\n"
	     "\n"
	     "example: offsim sweep scenarios/pcie-generations.yaml --db sweep.db -j 2");
}

static double per_second(const struct sweep_progress *p)
{
	return p->wall_s > 0 ? (double)(p->done + p->failed) / p->wall_s : 0;
}

static void show_bar(void *ctx, const struct sweep_progress *p)
{
	uint64_t seen = p->done + p->skipped + p->failed;
	double share = p->points ? (double)seen / (double)p->points : 1, rate = per_second(p);
	char bar[31];

	(void)ctx;
	memset(bar, '.', sizeof(bar) - 1);
	memset(bar, '#', (size_t)(share * 30));
	bar[30] = '\0';
	fprintf(stderr, "\r[%s] %" PRIu64 "/%" PRIu64 "  %.0f points/s  %.0f s left   ", bar, seen, p->points, rate,
		rate > 0 ? (double)(p->points - seen) / rate : 0);
}

static int parse_shard(const char *text, struct sweep_options *o)
{
	char *end;

	o->shard = strtoull(text, &end, 10);
	if (end == text || *end != '/' || text[0] == '-')
		return -1;
	const char *n = end + 1;
	o->n_shards = strtoull(n, &end, 10);
	return end == n || *end || n[0] == '-' || o->shard < 1 || o->shard > o->n_shards ? -1 : 0;
}

static void print_summary(const struct sweep_progress *p, const char *db)
{
	printf("%" PRIu64 " points: %" PRIu64 " simulated, %" PRIu64 " there already, %" PRIu64 " failed, in %.2f s (%.0f a "
	       "second), stored in %s\n",
		p->points, p->done, p->skipped, p->failed, p->wall_s, per_second(p), db);
}

static void print_json(const struct sweep_progress *p)
{
	printf("{\"points\": %" PRIu64 ", \"done\": %" PRIu64 ", \"skipped\": %" PRIu64 ", \"failed\": %" PRIu64
	       ", \"wall_s\": %.6g, \"points_per_s\": %.6g}\n",
		p->points, p->done, p->skipped, p->failed, p->wall_s, per_second(p));
}

static int sweep(struct sweep_options *o, bool json, struct arena *a)
{
	struct scenario *base;
	struct sweep grid;
	struct sweep_progress progress = {0};
	struct err err = {0};
	bool bar = isatty(STDERR_FILENO) && !getenv("NO_COLOR");

	if (scenario_load(o->path, o->set, o->n_set, a, &base, &err))
		return cmd_fail(&err);
	if (!base->sweep) {
		struct err_pos pos = {o->path, 1, 1};
		err_at(&err, ERR_INPUT, &pos, "the scenario has no 'sweep'");
		return cmd_fail(&err);
	}
	if (sweep_parse(base->sweep, a, &grid, &err))
		return cmd_fail(&err);
	o->report = bar ? show_bar : NULL;
	int rc = sweep_run(&grid, o, &progress, &err);
	if (bar)
		fputc('\n', stderr);
	if (rc && err.code != ERR_INTERRUPTED)
		return cmd_fail(&err);
	if (json)
		print_json(&progress);
	else
		print_summary(&progress, o->db);
	if (progress.failed)
		fprintf(stderr, "offsim: %" PRIu64 " points failed; their messages: select message from run where status = "
				"'failed'\n", progress.failed);
	return rc ? cmd_fail(&err) : EXIT_DONE;
}

int cmd_sweep(int argc, char **argv)
{
	static const struct option options[] = {
		{"db", required_argument, NULL, 'd'},
		{"jobs", required_argument, NULL, 'j'},
		{"shard", required_argument, NULL, 's'},
		{"set", required_argument, NULL, 'k'},
		{"seed", required_argument, NULL, 'e'},
		{"json", no_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct sweep_options o = {
		.db = "results.db", .workers = processors > 0 ? (unsigned)processors : 1, .shard = 1, .n_shards = 1, .interrupted = &cmd_interrupted};
	bool json = false;
	struct arena a;
	int c, status = -1;

	cmd_arena_init(&a);
	struct scenario_set *set = arena_array(&a, struct scenario_set, (size_t)argc);
	while (status < 0 && (c = getopt_long(argc, argv, ":j:h", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			o.db = optarg;
			break;
		case 'j':
			if (cmd_parse_workers(optarg, &o.workers))
				status = cmd_usage_error("sweep", "-j wants a number from 1 to 1024, not '%s'", optarg);
			break;
		case 's':
			if (parse_shard(optarg, &o))
				status = cmd_usage_error("sweep", "--shard wants I/N with I from 1 to N, not '%s'", optarg);
			break;
		case 'e':
			set[o.n_set++] = (struct scenario_set){.key = "seed", .value = optarg};
			break;
		case 'k':
			status = cmd_add_set(set, &o.n_set, "sweep", optarg, &a);
			break;
		case 'o':
			json = true;
			break;
		case 'h':
			usage();
			status = cmd_finish_stdout(EXIT_DONE);
			break;
		default:
			status = cmd_bad_option(argv, options);
		}
	}
	if (status < 0 && argc - optind != 1)
		status = cmd_usage_error("sweep", "expected one SCENARIO.yaml, not %d", argc - optind);
	if (status < 0) {
		o.path = argv[optind];
		o.set = set;
		cmd_catch_interrupts();
		status = cmd_finish_stdout(sweep(&o, json, &a));
	}
	arena_release(&a);
	return status;
}
