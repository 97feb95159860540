/*
 * cmd_validate.c - `offsim validate`: predicted against measured, row by row, with a summary.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "base/vec.h"
#include "sim/cmd/cmd.h"
#include "sim/run/validate.h"

static void usage(void)
{
	puts("usage: offsim validate CORPUS.csv [--tier A,B] [--engine NAME] [-j N] [--max-median SHARE] [--json]\n"
	     "       offsim validate LLAMA-BENCH-OUTPUT --machine M [--model NAME] [OPTIONS]\n"
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
	     "  remarks       facts that a row leaves open, filled by the same defaults for all\n"
	     "\n"
	     "      --tier A,B          tiers that are scored (default A,B)\n"
	     "      --engine A,B        only rows of these engines\n"
	     "      --machine M         llama-bench: the machine it ran on, a name from 'offsim hw list' or a path\n"
	     "      --model NAME        llama-bench: the model it ran, or one of several: then each row is of the one with so\n"
	     "                          many parameters (default: that among 'offsim model list')\n"
	     "      --max-median SHARE  exit 4 when the median error of any metric is larger (0.18 or 18%)\n"
	     "  -j N                    workers (default: one for each processor)\n"
	     "      --json              rows and summary as one JSON document\n"
	     "  -h, --help              this text\n"
	     "\n"
	     "example: offsim validate corpus.csv --engine llama.cpp\n"
	     "         offsim validate bench.jsonl --machine desktop-rtx4090-ddr5");
}

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static void print_json(const struct validate *v)
{
	json_t *root = json_object(), *rows = json_array(), *summary = json_object();

	for (size_t i = 0; i < v->n; i++) {
		const struct validate_row *r = &v->row[i];
		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "id", r->id, "status",
				validate_status_name(r->status), "reason", *r->reason ? r->reason : r->assumed, "predicted",
				number(r->predicted), "measured", number(r->measured), "low80", number(r->low80), "high80",
				number(r->high80)));
	}
	for (int m = 0; m < VALIDATE_METRIC_N; m++) {
		const struct validate_summary *s = &v->summary[m];
		json_object_set_new(summary, validate_metric_name((enum validate_metric)m),
			json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "n", (json_int_t)s->n, "groups",
				(json_int_t)s->n_groups, "median_abs_error", number(s->median_abs_error), "p90_abs_error",
				number(s->p90_abs_error), "bias", number(s->bias), "coverage80", number(s->coverage80),
				"pair_order", number(s->pair_order)));
	}
	json_object_set_new(root, "rows", rows);
	json_object_set_new(root, "summary", summary);
	if (v->thumb.n)
		json_object_set_new(root, "rule_of_thumb",
			json_pack("{s:I, s:o, s:o, s:o, s:o}", "n", (json_int_t)v->thumb.n, "bias", number(v->thumb.bias),
				"factor", number(v->thumb.factor), "median_abs_error", number(v->thumb.median_abs_error),
				"p90_abs_error", number(v->thumb.p90_abs_error)));
	json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(root);
}

/* Of a corpus, rows that were skipped are many and uninteresting; those of one's own file are few. */
static void print_rows(const struct validate *v, bool all)
{
	int width = 26;

	for (size_t i = 0; i < v->n && all; i++)
		if ((int)strlen(v->row[i].model) > width)
			width = strlen(v->row[i].model) < 60 ? (int)strlen(v->row[i].model) : 60;
	printf("%-7s %-16s %-*s %-8s %4s %11s %11s %7s  %s\n", "id", "engine", width, "model", "metric", "tier", "predicted",
		"measured", "ratio", "");
	for (size_t i = 0; i < v->n; i++) {
		const struct validate_row *r = &v->row[i];
		if (r->status == VALIDATE_SKIPPED && !all)
			continue;
		printf("%-7s %-16.16s %-*.*s %-8s %4s ", r->id, r->engine, width, width, r->model, validate_metric_name(r->metric), r->tier);
		if (r->status == VALIDATE_OK)
			printf("%11.4g %11.4g %7.2f  %s%s\n", r->predicted, r->measured, r->predicted / r->measured,
				r->metric == VALIDATE_DECODE && r->measured > r->upper_bound ? "above the bound! " : "",
				*r->assumed ? r->assumed : "");
		else
			printf("%11s %11.4g %7s  %s: %s\n", "-", r->measured, "-", validate_status_name(r->status), r->reason);
	}
}

static void print_thumb(const struct validate *v)
{
	const struct validate_thumb *t = &v->thumb;
	const struct validate_summary *s = &v->summary[VALIDATE_DECODE];

	if (t->n == 0)
		return;
	printf("thumb    %5zu %7zu %13.1f%% %11.1f%% %+7.1f%%   decode by the rule of thumb, times %.2f: offsim is %.1f times "
	       "better in the median, %.1f in the 90th percentile\n", t->n, s->n_groups, 100 * t->median_abs_error,
		100 * t->p90_abs_error, 100 * t->bias, t->factor, t->median_abs_error / s->median_abs_error,
		t->p90_abs_error / s->p90_abs_error);
}

static void print_summary(const struct validate *v, bool all)
{
	printf("\n%-8s %5s %7s %14s %12s %8s %12s %11s\n", "metric", "rows", "groups", "median error", "90 % error",
		"bias", "coverage 80", "pair order");
	for (int m = 0; m < VALIDATE_METRIC_N; m++) {
		const struct validate_summary *s = &v->summary[m];
		if (s->n == 0)
			continue;
		printf("%-8s %5zu %7zu %13.1f%% %11.1f%% %+7.1f%% %11.0f%%", validate_metric_name((enum validate_metric)m), s->n,
			s->n_groups, 100 * s->median_abs_error, 100 * s->p90_abs_error, 100 * s->bias, 100 * s->coverage80);
		if (isfinite(s->pair_order))
			printf(" %10.1f%%", 100 * s->pair_order);
		putchar('\n');
	}
	print_thumb(v);
	if (all) {
		printf("\n%zu of %zu rows ran\n", v->n_ran, v->n);
		return;
	}
	size_t skipped = 0;
	for (size_t i = 0; i < v->n; i++)
		skipped += v->row[i].status == VALIDATE_SKIPPED;
	printf("\n%zu of %zu rows of the scored tiers ran; %zu rows of engines that are not modelled, or were not asked for, "
	       "are not shown (--json has all)\n", v->n_ran, v->n_scored, skipped);
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
	bool json, help;
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
			break;
		case 'j':
			if (cmd_parse_workers(optarg, &args->o.workers))
				return cmd_usage_error("validate", "-j wants a number from 1 to 1024, not '%s'", optarg);
			break;
		case 'o':
			args->json = true;
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
	return -1;
}

static int validate(const struct args *args, struct arena *a)
{
	const struct validate_options *o = &args->o;
	struct validate v;
	struct err err = {0};

	if (validate_run(args->file, o, a, &v, &err))
		return cmd_fail(&err);
	if (args->json) {
		print_json(&v);
	} else {
		print_rows(&v, o->machine != NULL);
		print_summary(&v, o->machine != NULL);
	}
	if (v.n_scored == 0 && o->machine)
		return cmd_usage_error("validate", "no row of '%s' can be run", args->file);
	if (v.n_scored == 0)
		return cmd_usage_error("validate", "no row of tiers %s%s%s", args->tiers, o->engine ? " and engine " : "",
			o->engine ? o->engine : "");
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
		status = validate(&args, &a);
	}
	arena_release(&a);
	return cmd_finish_stdout(status);
}
