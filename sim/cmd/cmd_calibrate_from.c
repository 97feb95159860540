/*
 * cmd_calibrate_from.c - `offsim calibrate --from`: other people's measurements into a machine's profile.
 */
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "base/vec.h"
#include "sim/cmd/cmd.h"
#include "sim/run/calibrate.h"

static void usage(void)
{
	puts("usage: offsim calibrate --from FILE... [--machine M] [--model NAME] [--format F] [-o PROFILE.yaml] [--json]\n"
	     "\n"
	     "Puts what other people's benchmark programs measured into the constants of a machine's profile. What nvbandwidth,\n"
	     "fio, STREAM and MLC measure is one constant each. Tests of llama-bench are simulated, and the constants they\n"
	     "depend on are fitted, the base profile's own values counting as measurements with their spread; what the tests\n"
	     "cannot tell apart is named and stays as it was. Numbers without a spread are taken as exact.\n"
	     "Without --machine the files are only read and listed.\n"
	     "\n"
	     "      --from FILE      may stand more than once, and before several files\n"
	     "      --machine M      the profile to begin with: a name from 'offsim hw list' or a path\n"
	     "      --model NAME     the model of llama-bench's tests, or one of several: then each test is of the one with so\n"
	     "                       many parameters (default: that among 'offsim model list')\n"
	     "      --format F       what the files are; guessed from what they hold when left out:");
	for (size_t i = 0; bench_format_at(i); i++)
		printf("                         %-12s %s\n", bench_format_at(i)->name, bench_format_at(i)->help);
	puts("  -o, --output FILE    write the profile; 'machine: FILE' in a scenario uses it\n"
	     "  -j, --jobs N         workers (default: one for each processor)\n"
	     "      --json           one JSON document\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "example: offsim calibrate --from nvbandwidth.json bench.jsonl --machine desktop-rtx4090-ddr5 -o mine.yaml");
}

struct files {
	VEC(const char *);
};

struct args {
	struct calibrate_options o;
	struct files files, models;
	const char *output;
	bool json, help;
};

/* ---- what was read ---- */

static const char *value_text(char *buf, size_t size, double value, enum unit_dim dim)
{
	if (!isfinite(value)) {
		snprintf(buf, size, "-");
		return buf;
	}
	return units_format(buf, size, value, dim);
}

static void print_row(const struct calibrate_row *r)
{
	char measured[40], before[40], after[40];
	enum unit_dim dim = r->bench->dim;

	printf("%s:%d: %s: %s", r->file, r->bench->line, r->bench->what,
		value_text(measured, sizeof(measured), r->bench->value, dim));
	if (r->unused)
		printf("  not used: %s\n", r->unused);
	else if (r->constant)
		printf("  -> %s\n", r->constant);
	else if (r->point >= 0)
		printf("  predicted %s, fitted %s (%+.1f %%)%s%s\n", value_text(before, sizeof(before), r->before, dim),
			value_text(after, sizeof(after), r->after, dim), 100 * (r->after / r->bench->value - 1),
			*r->model ? ", model " : "", r->model);
	else
		putchar('\n');
}

/* Measurements that no constant is made of, by file and reason: there may be hundreds. */
static void print_unused(const struct calibrate *c)
{
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct calibrate_row *r = &c->row[i];
		size_t n = 0;
		bool first = true;
		if (!r->unused || r->bench->llama)
			continue;
		for (size_t k = 0; k < c->n_rows; k++) {
			const struct calibrate_row *other = &c->row[k];
			if (!other->unused || other->bench->llama || strcmp(other->file, r->file) != 0 ||
				strcmp(other->unused, r->unused) != 0)
				continue;
			first &= k >= i;
			n++;
		}
		if (first)
			printf("%s: %zu not used (such as line %d, %s): %s\n", r->file, n, r->bench->line, r->bench->what,
				r->unused);
	}
}

static void print_constants(const struct calibrate *c)
{
	static const char *const states[] = {"measured", "fitted", "held"};
	char before[40], value[40];

	printf("\n%-32s %12s %7s %12s %7s  %-8s %5s\n", "constant", "before", "spread", "now", "spread", "", "rows");
	for (size_t i = 0; i < c->n_constants; i++) {
		const struct calibrate_constant *k = &c->constant[i];
		printf("%-32s %12s %6.1f%% %12s %6.1f%%  %-8s %5zu%s%s\n", k->name,
			value_text(before, sizeof(before), k->before, k->dim), 100 * k->before_spread,
			value_text(value, sizeof(value), k->value, k->dim), 100 * k->spread, states[k->state], k->n_rows,
			*k->why ? "  " : "", k->why);
	}
	if (c->n_tests)
		printf("\n%zu different tests of llama-bench; median error %.1f %% before, %.1f %% after\n", c->n_tests,
			100 * expm1(c->noise_before), 100 * expm1(c->noise_after));
}

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *text_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

static void print_json(const struct calibrate *c)
{
	static const char *const states[] = {"measured", "fitted", "held"};
	json_t *rows = json_array(), *constants = json_array();

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct calibrate_row *r = &c->row[i];
		json_array_append_new(rows,
			json_pack("{s:o, s:i, s:s, s:o, s:s, s:o, s:o, s:s, s:o, s:o}", "file", json_string_nocheck(r->file), "line",
				r->bench->line, "what", r->bench->what, "measured", number(r->bench->value), "unit",
				units_base(r->bench->dim), "unused", text_or_null(r->unused), "constant",
				text_or_null(r->constant), "model", r->model, "before", number(r->before), "after",
				number(r->after)));
	}
	for (size_t i = 0; i < c->n_constants; i++) {
		const struct calibrate_constant *k = &c->constant[i];
		json_array_append_new(constants,
			json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:s}", "name", k->name, "unit", units_base(k->dim),
				"state", states[k->state], "before", number(k->before), "before_spread",
				number(k->before_spread), "value", number(k->value), "spread", number(k->spread), "rows",
				(json_int_t)k->n_rows, "why", k->why));
	}
	json_t *root = json_pack("{s:o, s:o, s:I, s:o, s:o}", "rows", rows, "constants", constants, "tests",
		(json_int_t)c->n_tests, "median_abs_log_error_before", number(c->noise_before),
		"median_abs_log_error_after", number(c->noise_after));
	json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(root);
}

/* ---- the command ---- */

static const struct option options[] = {
	{"from", required_argument, NULL, 'F'},
	{"machine", required_argument, NULL, 'M'},
	{"model", required_argument, NULL, 'l'},
	{"format", required_argument, NULL, 'f'},
	{"output", required_argument, NULL, 'o'},
	{"jobs", required_argument, NULL, 'j'},
	{"json", no_argument, NULL, 'J'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* -1 when all is well, else the exit status. */
static int parse_args(int argc, char **argv, struct args *args, struct arena *a)
{
	struct err err;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, ":o:j:h", options, NULL)) != -1) {
		switch (c) {
		case 'F':
			VEC_PUSH(&args->files, a, optarg);
			break;
		case 'M':
			args->o.machine = optarg;
			break;
		case 'l':
			VEC_PUSH(&args->models, a, optarg);
			break;
		case 'f':
			if (bench_format_find(optarg, &args->o.format, &err))
				return cmd_usage_error("calibrate", "%s", err.msg);
			break;
		case 'o':
			args->output = optarg;
			break;
		case 'j':
			if (cmd_parse_workers(optarg, &args->o.workers))
				return cmd_usage_error("calibrate", "-j wants a number from 1 to 1024, not '%s'", optarg);
			break;
		case 'J':
			args->json = true;
			break;
		case 'h':
			args->help = true;
			break;
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (args->help)
		return -1;
	if (args->files.n == 0)
		return cmd_usage_error("calibrate", "no file: name some behind --from");
	for (int i = optind; i < argc; i++)
		VEC_PUSH(&args->files, a, argv[i]);
	if (args->output && !args->o.machine)
		return cmd_usage_error("calibrate", "a profile needs a base: name it with --machine");
	args->o.file = args->files.at;
	args->o.n_files = args->files.n;
	args->o.model = args->models.at;
	args->o.n_models = args->models.n;
	return -1;
}

/* How many there will be is not known: the fit ends when nothing moves any more. */
static void show_progress(void *ctx, size_t simulations)
{
	size_t *done = ctx;

	*done += simulations;
	fprintf(stderr, "\rfitting: %zu simulations", *done);
}

static int calibrate(struct args *args, struct arena *a)
{
	size_t simulations = 0;
	struct calibrate c;
	struct err err = {0};
	char date[16];
	time_t now = time(NULL);
	struct tm tm;

	if (isatty(STDERR_FILENO) && !getenv("NO_COLOR")) {
		args->o.report = show_progress;
		args->o.report_ctx = &simulations;
	}
	int rc = calibrate_run(&args->o, a, &c, &err);
	if (simulations)
		fputs("\r\033[K", stderr);
	if (rc)
		return cmd_fail(&err);
	strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &tm));
	if (args->output && calibrate_write(&c, date, args->output, a, &err))
		return cmd_fail(&err);
	if (args->json) {
		print_json(&c);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < c.n_rows; i++)
		if (c.row[i].bench->llama || !c.row[i].unused)
			print_row(&c.row[i]);
	print_unused(&c);
	if (c.n_constants)
		print_constants(&c);
	if (args->output)
		printf("\n%s: a profile; 'machine: %s' uses it\n", args->output, args->output);
	return EXIT_DONE;
}

int cmd_calibrate_from(int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct args args = {.o = {.workers = processors > 0 ? (unsigned)processors : 1, .interrupted = &cmd_interrupted}};
	struct arena a;

	cmd_arena_init(&a);
	cmd_catch_interrupts();
	int status = parse_args(argc, argv, &args, &a);
	if (status < 0 && args.help) {
		usage();
		status = EXIT_DONE;
	} else if (status < 0) {
		status = calibrate(&args, &a);
	}
	arena_release(&a);
	return cmd_finish_stdout(status);
}
