/*
 * cmd_validate.c - `offsim validate`: predicted against measured, row by row, with a summary.
 */
#include <getopt.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "base/units.h"
#include "base/vec.h"
#include "sim/cmd/cmd_validate.h"
#include "sim/run/leave_out.h"

#define NOTED_TWINS 5

static void usage(void)
{
	puts("usage: offsim validate CORPUS.csv [--tier A,B] [--engine A,B] [-j N] [--max-median SHARE] [--json]\n"
	     "       offsim validate LLAMA-BENCH-OUTPUT --machine M [--model NAME] [OPTION]...\n"
	     "\n"
	     "Runs every row of a corpus of published measurements whose engine, model and machine are known, says why\n"
	     "for the others, and prints how far the predictions are off. Rows of a group (one owner's machine or thread)\n"
	     "share a weight of one. What llama-bench prints (-o json, jsonl, csv, sql, md) is taken as it is: each of its\n"
	     "tests is a row, of the machine that is named.\n"
	     "\n"
	     "  error         |predicted / measured - 1|, its median and 90th percentile\n"
	     "  bias          median of predicted / measured, less 1\n"
	     "  coverage 80   share of measured values inside the predicted 80 % intervals\n"
	     "  pair order    share of pairs of a group, 10 % apart when measured, that are predicted in that order\n"
	     "  thumb         the rule of thumb (active weights over the datasheet bandwidth of where they live, embedding left\n"
	     "                out) on the same decode rows, times the one factor that makes its median error smallest; its bias\n"
	     "                is without the factor\n"
	     "  above the bound  of a decode rate: measured above what the machine's datasheets allow\n"
	     "  remarks       facts that a row leaves open, filled by the same defaults for all\n"
	     "\n"
	     "      --tier A,B          tiers that are scored (default A,B)\n"
	     "      --engine A,B        only rows of these engines\n"
	     "      --machine M         llama-bench: the machine it ran on, a name from 'offsim hw list' or a path\n"
	     "      --model NAME        llama-bench: the model it ran, or one of several: then each row is of the one with so\n"
	     "                          many parameters (default: that among 'offsim model list')\n"
	     "      --max-median SHARE  exit 4 when the median error of any metric is larger (0.18 or 18%)\n"
	     "  -j, --jobs N            workers (default: one for each processor)\n"
	     "      --worst N           in place of all rows the N that are the most times off, either way, with their intervals\n"
	     "      --reasons FILE.csv  columns row and reason: of rows by id, or of groups, why; goes into the remarks\n"
	     "      --markdown          tables as Markdown, and one of the groups with the marks of 'offsim plot accuracy'\n"
	     "      --leave-one-out     fits the constants of hw/fitted.yaml again on all sources but one, source by source, and\n"
	     "                          prints the errors of its rows beside those of the constants as they are; some minutes\n"
	     "      --fitted FILE.yaml  other constants to fit\n"
	     "      --json              rows and summary as one JSON document; 'offsim plot accuracy' draws it\n"
	     "  -h, --help              this text\n"
	     "\n"
	     "example: offsim validate corpus.csv --engine llama.cpp\n"
	     "         offsim validate bench.jsonl --machine desktop-rtx4090-ddr5");
}

static double worst_median(const struct validate *v)
{
	double worst = 0;

	for (int m = 0; m < VALIDATE_METRIC_N; m++)
		if (v->summary[m].n && v->summary[m].median_abs_error > worst)
			worst = v->summary[m].median_abs_error;
	return worst;
}

/* "A,B" -> "AB" */
static void parse_tiers(const char *text, char *tiers, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		if (*text != ',')
			tiers[n++] = *text;
	tiers[n] = '\0';
}

struct args {
	struct validate_options o;
	struct {
		VEC(const char *);
	} models;
	char tiers[16];
	double max_median;
	const char *file;
	struct validate_show show;
	bool leave_out;
	const char *fitted;
	bool help;
};

/* -1 when all is well, else the exit status. */
static int parse_args(int argc, char **argv, struct args *args, struct arena *a)
{
	static const struct option options[] = {
		{"tier", required_argument, NULL, 't'},
		{"engine", required_argument, NULL, 'e'},
		{"machine", required_argument, NULL, 'M'},
		{"model", required_argument, NULL, 'l'},
		{"max-median", required_argument, NULL, 'm'},
		{"jobs", required_argument, NULL, 'j'},
		{"worst", required_argument, NULL, 'w'},
		{"reasons", required_argument, NULL, 'r'},
		{"markdown", no_argument, NULL, 'd'},
		{"leave-one-out", no_argument, NULL, 'L'},
		{"fitted", required_argument, NULL, 'f'},
		{"json", no_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct err err = {0};
	int c;

	while ((c = getopt_long(argc, argv, ":j:h", options, NULL)) != -1) {
		switch (c) {
		case 't':
			parse_tiers(optarg, args->tiers, sizeof(args->tiers));
			break;
		case 'e':
			args->o.engine = optarg;
			break;
		case 'M':
			args->o.machine = optarg;
			break;
		case 'l':
			VEC_PUSH(&args->models, a, optarg);
			break;
		case 'm':
			if (units_parse(optarg, UNIT_FRACTION, &args->max_median, &err))
				return cmd_usage_error("validate", "--max-median: %s", err.msg);
			if (args->max_median < 0)
				return cmd_usage_error("validate", "--max-median is an error, not less than nothing: '%s'", optarg);
			break;
		case 'j':
			if (cmd_parse_workers(optarg, &args->o.workers))
				return cmd_usage_error("validate", "-j wants a number from 1 to 1024, not '%s'", optarg);
			break;
		case 'w':
			if (cmd_parse_workers(optarg, &args->show.worst))
				return cmd_usage_error("validate", "--worst wants a number from 1 to 1024, not '%s'", optarg);
			break;
		case 'r':
			args->show.reasons = optarg;
			break;
		case 'd':
			args->show.markdown = true;
			break;
		case 'L':
			args->leave_out = true;
			break;
		case 'f':
			args->fitted = optarg;
			break;
		case 'o':
			args->show.json = true;
			break;
		case 'h':
			args->help = true;
			return -1;
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (argc - optind != 1)
		return cmd_usage_error("validate", "expected one file, not %d", argc - optind);
	args->file = argv[optind];
	args->o.model = args->models.at;
	args->o.n_models = args->models.n;
	args->show.one_machine = args->o.machine != NULL;
	if (args->show.reasons && !args->show.worst)
		return cmd_usage_error("validate", "--reasons are of the rows of --worst N");
	if (args->show.json && (args->show.worst || args->show.markdown))
		return cmd_usage_error("validate", "--json has all rows: give it, or --worst and --markdown");
	if (args->fitted && !args->leave_out)
		return cmd_usage_error("validate", "--fitted is of --leave-one-out");
	if (args->leave_out && (args->o.machine || args->show.json || args->show.worst))
		return cmd_usage_error("validate", "--leave-one-out is of a corpus, and goes without --machine, --json and --worst");
	return -1;
}

static void report_pass(void *ctx, size_t done, size_t of)
{
	(void)ctx;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%zu of %zu passes%s", done, of, done == of ? "\r\033[K" : "");
}

static int leave_one_out(const struct args *args, struct arena *a)
{
	struct leave_out_options o = {.validate = &args->o, .fitted = args->fitted, .report = report_pass};
	struct leave_out out;
	struct err err = {0};

	if (leave_out_run(args->file, &o, a, &out, &err))
		return cmd_fail(&err);
	validate_show_leave_out(&out, args->show.markdown);
	return EXIT_DONE;
}

static int no_rows(const struct args *args, const struct validate *v)
{
	const char *engine = args->o.engine;
	struct suggest near;
	char text[128];

	suggest_init(&near, engine ? engine : "");
	for (size_t i = 0; i < v->n; i++) {
		const struct validate_row *r = &v->row[i];
		if (r->status != VALIDATE_SKIPPED && !strchr(args->tiers, r->tier[0]))
			return cmd_usage_error("validate", "no row of tiers %s, but of tier %s, such as '%s': --tier %s", args->tiers, r->tier,
				r->id, r->tier);
		suggest_offer(&near, r->engine);
	}
	return cmd_usage_error("validate", "no row of tiers %s%s%s%s", args->tiers, engine ? " and engine " : "",
		engine ? engine : "", engine ? suggest_text(&near, text, sizeof(text)) : "");
}

/* Ids are what reasons and others' tables go by. */
static void note_twins(const struct validate *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		if (v->row[i].twin_line == 0 || n++ >= NOTED_TWINS)
			continue;
		fprintf(stderr, "offsim: note: %s: the id '%s' is that of line %d too; both rows count\n", v->row[i].where, v->row[i].id,
			v->row[i].twin_line);
	}
	if (n > NOTED_TWINS)
		fprintf(stderr, "offsim: note: and %zu rows more have the id of another\n", n - NOTED_TWINS);
}

static int validate(const struct args *args, struct arena *a)
{
	const struct validate_options *o = &args->o;
	struct validate v;
	struct err err = {0};

	if (validate_run(args->file, o, a, &v, &err))
		return cmd_fail(&err);
	note_twins(&v);
	if (validate_show(&v, &args->show, a, &err))
		return cmd_fail(&err);
	if (v.n_scored == 0 && o->machine)
		return cmd_usage_error("validate", "no row of '%s' can be run", args->file);
	if (v.n_scored == 0)
		return no_rows(args, &v);
	return worst_median(&v) > args->max_median ? EXIT_BOUND : EXIT_DONE;
}

int cmd_validate(int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct args args = {.o = {.workers = processors > 0 ? (unsigned)processors : 1, .interrupted = &cmd_interrupted},
		.tiers = "AB", .max_median = INFINITY};
	struct arena a;

	args.o.tiers = args.tiers;
	cmd_arena_init(&a);
	cmd_catch_interrupts();
	int status = parse_args(argc, argv, &args, &a);
	if (status < 0 && args.help) {
		usage();
		status = EXIT_DONE;
	} else if (status < 0) {
		status = args.leave_out ? leave_one_out(&args, &a) : validate(&args, &a);
	}
	arena_release(&a);
	return cmd_finish_stdout(status);
}
