/*
 * cmd_calibrate.c - `offsim calibrate`: measure this machine, print every number with its interval, write its
 * profile.
 */
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/suggest.h"
#include "hw/measure.h"
#include "hw/measure_factor.h"
#include "sim/cmd/cmd.h"

#define SECONDS_A_PART 15
#define MIN_SECONDS 0.01
#define MAX_SECONDS 3600

static void usage(void)
{
	puts("usage: offsim calibrate [cpu|ram|disk|cuda|all] [-o PROFILE.yaml] [--time SECONDS] [--threads N] "
	     "[--file PATH] [--json]\n"
	     "\n"
	     "Measures this machine and prints each number with the interval in which the next repetition "
	     "falls with 80 %.\n"
	     "  ram    reads, writes and copies of DRAM by threads and NUMA node, and the latency of a load\n"
	     "  cpu    multiply-adds, products with weights by quantization type, instructions and threads, "
	     "and the cost of a\n"
	     "         barrier of all threads\n"
	     "  disk   reads of a file by block size and number at once, through the page cache and around "
	     "it\n"
	     "Other programs disturb: probes before and after each part tell, and then the intervals are "
	     "wider.\n"
	     "\n"
	     "  -o, --output FILE    write a machine profile: offsim hw show ./FILE, machine: ./FILE in a "
	     "scenario\n"
	     "  -t, --time SECONDS   for all parts together (default 15 a part)\n"
	     "      --threads N      no more than N threads (default: all)\n"
	     "      --file PATH      the folder on the drive in which to make a file (default the current "
	     "one; it is gone\n"
	     "                       afterwards), or a file or drive to read, which is left as it is\n"
	     "      --json           one JSON document: every repetition, fit and residual\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "'offsim calibrate cuda --help': measure GPUs. 'offsim calibrate --from FILE... --help': fit what others' benchmark\n"
	     "programs measured instead.\n"
	     "\n"
	     "A profile of one part stands on its own: what was not measured is left to generic parts, and "
	     "says so.\n"
	     "\n"
	     "example: offsim calibrate all -o my-machine.yaml --file /mnt/models");
}

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},
	{"time", required_argument, NULL, 't'},
	{"threads", required_argument, NULL, 'n'},
	{"file", required_argument, NULL, 'f'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct args {
	struct measure_options measure;
	const char *output;
	bool json;
};

static int parse_seconds(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end != text && !*end && *out >= MIN_SECONDS && *out <= MAX_SECONDS)
		return -1;
	return cmd_usage_error(
		"calibrate", "--time wants seconds from %g to %d, not '%s'", MIN_SECONDS, MAX_SECONDS, text);
}

static int parse_parts(int n, char **words, struct measure_options *o)
{
	struct suggest near;
	char hint[80];

	if (n > 1)
		return cmd_usage_error(
			"calibrate", "expected one of cpu, ram, disk and all, not %d words", n);
	for (int p = 0; p < MEASURE_PART_N; p++)
		o->part[p] = !n || !strcmp(words[0], "all") ||
			     !strcmp(words[0], measure_part_name((enum measure_part)p));
	if (o->part[MEASURE_RAM] || o->part[MEASURE_CPU] || o->part[MEASURE_DISK])
		return -1;
	suggest_init(&near, words[0]);
	suggest_offer(&near, "all");
	suggest_offer(&near, "cuda");
	for (int p = 0; p < MEASURE_PART_N; p++)
		suggest_offer(&near, measure_part_name((enum measure_part)p));
	return cmd_usage_error(
		"calibrate", "cannot measure '%.60s'%s", words[0], suggest_text(&near, hint, sizeof(hint)));
}

/* -1 when all is well, else the exit status. */
static int parse_args(int argc, char **argv, struct args *args)
{
	int c, status;

	optind = 0;
	while ((c = getopt_long(argc, argv, ":o:t:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			args->output = optarg;
			break;
		case 't':
			if ((status = parse_seconds(optarg, &args->measure.time_s)) >= 0)
				return status;
			break;
		case 'n':
			if (cmd_parse_workers(optarg, &args->measure.threads))
				return cmd_usage_error("calibrate",
					"--threads wants a number from 1 to 1024, not '%s'", optarg);
			break;
		case 'f':
			args->measure.file = optarg;
			break;
		case 'j':
			args->json = true;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if ((status = parse_parts(argc - optind, argv + optind, &args->measure)) >= 0)
		return status;
	if (args->measure.file && !args->measure.part[MEASURE_DISK])
		return cmd_usage_error("calibrate", "--file goes with disk");
	return -1;
}

/* ---- progress ---- */

static void show_bar(void *ctx, const char *doing, double share)
{
	char bar[31];

	(void)ctx;
	memset(bar, '.', sizeof(bar) - 1);
	memset(bar, '#', (size_t)(share * 30));
	bar[30] = '\0';
	fprintf(stderr, "\r[%s] %3.0f %%  %-6s", bar, share * 100, doing);
}

/* ---- for people ---- */

static char *text_of(struct arena *a, double value, enum unit_dim dim)
{
	char buf[32];

	return arena_strdup(a, units_format(buf, sizeof(buf), value, dim));
}

static void print_number(const struct measure_number *n, struct arena *a)
{
	printf("  %-30s %14s  %s to %s, %zu repetitions: %s\n", n->name, text_of(a, n->value, n->dim),
		text_of(a, n->interval80.low, n->dim), text_of(a, n->interval80.high, n->dim), n->sample.n,
		n->what);
}

static void print_host(const struct measurement *m, struct arena *a)
{
	const struct measure_host *h = &m->host;

	printf("%s: %u socket%s, %u cores, %u threads (%u used), %u NUMA node%s, %s of memory, %s of "
	       "last-level cache\n",
		h->cpu, h->sockets, h->sockets == 1 ? "" : "s", h->cores, h->threads, m->threads, h->nodes,
		h->nodes == 1 ? "" : "s", text_of(a, (double)h->memory_bytes, UNIT_BYTES),
		text_of(a, (double)h->last_cache_bytes, UNIT_BYTES));
}

static const struct measure_number *find_product(
	const struct measurement *m, enum kernel_type type, const char *phase, struct arena *a)
{
	return measure_find(m, MEASURE_CPU,
		arena_printf(a, "%s.%s.%s.t1", kernel_format[type].name, phase,
			kernel_level_name(kernel_best_level())));
}

/* "q4_0 decode  14.2 GB/s  x 1.42 = 20.2 GB/s; published 17.3 GB/s" */
static void print_ratio(const struct measurement *m, const struct measure_factors *f, enum kernel_type type,
	const char *phase, const struct measure_ratio *r, struct arena *a)
{
	const struct measure_number *ours = find_product(m, type, phase, a);
	const struct measure_number *fma = measure_find(
		m, MEASURE_CPU, arena_printf(a, "fma.%s.t1", kernel_level_name(kernel_best_level())));

	if (r->factor <= 0 && r->published <= 0)
		return;
	printf("  %-7s %-7s %14s", kernel_format[type].name, phase, text_of(a, ours->value, ours->dim));
	if (r->factor > 0)
		printf("  x %.2f = %s", r->factor, text_of(a, ours->value * r->factor, ours->dim));
	if (r->published > 0 && f->published_fp32 > 0) {
		double here = r->published * fma->value / f->published_fp32;
		printf("; published, at this processor's pace: %s, x %.2f", text_of(a, here, ours->dim),
			here / ours->value);
	}
	putchar('\n');
}

static int print_factors(const struct measurement *m, struct arena *a, struct err *err)
{
	struct measure_factors f;

	if (measure_factors_load(kernel_best_level(), a, &f, err))
		return -1;
	printf("\nllama.cpp's kernels against these, one thread, %s (hw/kernels/plain.yaml):\n",
		kernel_level_name(kernel_best_level()));
	for (int t = 0; t < KERNEL_TYPE_N; t++) {
		print_ratio(m, &f, (enum kernel_type)t, "decode", &f.decode[t], a);
		print_ratio(m, &f, (enum kernel_type)t, "prefill", &f.prefill[t], a);
	}
	return 0;
}

static int print_text(const struct measurement *m, struct arena *a, struct err *err)
{
	print_host(m, a);
	for (int p = 0; p < MEASURE_PART_N; p++) {
		enum measure_part part = (enum measure_part)p;
		if (!m->part[p])
			continue;
		printf("\n%s%s%s\n", measure_part_name(part), part == MEASURE_DISK ? ": " : "",
			part == MEASURE_DISK ? m->drive : "");
		for (size_t i = 0; i < m->numbers.n; i++)
			if (m->numbers.at[i].part == part)
				print_number(&m->numbers.at[i], a);
		for (size_t i = 0; i < m->fits.n; i++)
			if (m->fits.at[i].part == part)
				printf("  %s: %s\n", m->fits.at[i].what, m->fits.at[i].derived);
		if (part == MEASURE_CPU && print_factors(m, a, err))
			return -1;
	}
	for (size_t i = 0; i < m->notes.n; i++)
		printf("%snote: %s\n", i ? "" : "\n", m->notes.at[i]);
	return 0;
}

/* ---- for programs ---- */

static json_t *reals(const double *x, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_real(x[i]));
	return list;
}

static json_t *interval_json(struct stats_interval i)
{
	return json_pack("[f, f]", i.low, i.high);
}

static json_t *host_json(const struct measurement *m)
{
	const struct measure_host *h = &m->host;

	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I}", "cpu", h->cpu, "sockets",
		(int)h->sockets, "cores", (int)h->cores, "threads", (int)h->threads, "threads_used",
		(int)m->threads, "numa_nodes", (int)h->nodes, "memory_bytes", (json_int_t)h->memory_bytes,
		"last_cache_bytes", (json_int_t)h->last_cache_bytes);
}

static json_t *probe_json(const struct measure_probe *p)
{
	return json_pack("{s:f, s:f}", "fma_flops_s", p->fma_flops_s, "read_bytes_s", p->read_bytes_s);
}

static json_t *parts_json(const struct measurement *m)
{
	json_t *parts = json_array();

	for (int p = 0; p < MEASURE_PART_N; p++) {
		const struct measure_noise *n = &m->noise[p];
		if (m->part[p])
			json_array_append_new(
				parts, json_pack("{s:s, s:f, s:f, s:f, s:f, s:o, s:o}", "part",
					       measure_part_name((enum measure_part)p), "seconds", n->seconds,
					       "others_cores", n->others_cores, "steal_cores", n->steal_cores,
					       "widened", n->widened, "before", probe_json(&n->before),
					       "after", probe_json(&n->after)));
	}
	return parts;
}

static json_t *numbers_json(const struct measurement *m)
{
	json_t *numbers = json_array();

	for (size_t i = 0; i < m->numbers.n; i++) {
		const struct measure_number *n = &m->numbers.at[i];
		json_array_append_new(numbers,
			json_pack("{s:s, s:s, s:s, s:s, s:f, s:o, s:f, s:o}", "part",
				measure_part_name(n->part), "name", n->name, "what", n->what, "unit",
				units_base(n->dim), "value", n->value, "interval80",
				interval_json(n->interval80), "spread", stats_spread(n->value, n->interval80),
				"samples", reals(n->sample.at, n->sample.n)));
	}
	return numbers;
}

static json_t *fits_json(const struct measurement *m)
{
	json_t *fits = json_array();

	for (size_t i = 0; i < m->fits.n; i++) {
		const struct measure_fit *f = &m->fits.at[i];
		json_array_append_new(
			fits, json_pack("{s:s, s:s, s:s, s:s, s:f, s:o, s:f, s:o, s:o, s:o, s:o}", "part",
				      measure_part_name(f->part), "name", f->name, "what", f->what, "derived",
				      f->derived, "a", f->line.a, "a80", interval_json(f->line.a80), "b",
				      f->line.b, "b80", interval_json(f->line.b80), "x", reals(f->x, f->n),
				      "y", reals(f->y, f->n), "residuals", reals(f->line.residual, f->n)));
	}
	return fits;
}

static int print_json(const struct measurement *m, const char *output, struct err *err)
{
	json_t *notes = json_array();

	for (size_t i = 0; i < m->notes.n; i++)
		json_array_append_new(notes, json_string(m->notes.at[i]));
	json_t *doc = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:s?, s:s?}", "date", m->date, "host",
		host_json(m), "parts", parts_json(m), "numbers", numbers_json(m), "fits", fits_json(m),
		"notes", notes, "drive", m->drive, "profile", output);
	if (!doc)
		return err_set(err, ERR_NOMEM, "out of memory");
	json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(doc);
	return 0;
}

/* ---- the profile ---- */

static int write_output(const struct measurement *m, const char *path, struct arena *a, struct err *err)
{
	struct file_out f;

	if (file_out_open(&f, path, err))
		return -1;
	if (measure_write_profile(m, f.to, a, err)) {
		file_out_abort(&f);
		return -1;
	}
	return file_out_commit(&f, err);
}

static int calibrate(struct args *args, struct arena *a)
{
	struct measurement *m;
	struct err err;
	bool bar = isatty(STDERR_FILENO) && !getenv("NO_COLOR");

	/* It would be a pity afterwards. */
	if (args->output && file_out_check(args->output, &err))
		return cmd_fail(&err);
	args->measure.report = bar ? show_bar : NULL;
	int rc = measure_run(&args->measure, a, &m, &err);
	if (bar)
		fputs("\r\033[K", stderr);
	if (rc || (args->output && write_output(m, args->output, a, &err)) ||
		(args->json ? print_json(m, args->output, &err) : print_text(m, a, &err)))
		return cmd_fail(&err);
	if (!args->json && args->output)
		printf("\nprofile: %s (offsim hw show %s%s)\n", args->output,
			strchr(args->output, '/') ? "" : "./", args->output);
	return EXIT_DONE;
}

/* Fitting others' measurements is another command under the same name. */
static bool has_from(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--from", 6) == 0 && (argv[i][6] == '\0' || argv[i][6] == '='))
			return true;
	return false;
}

int cmd_calibrate(int argc, char **argv)
{
	if (has_from(argc, argv))
		return cmd_calibrate_from(argc, argv);
	if (argc > 1 && strcmp(argv[1], "cuda") == 0)
		return cmd_calibrate_cuda(argc, argv);

	struct args args = {.measure = {.interrupted = &cmd_interrupted}};
	struct arena a;
	int status = parse_args(argc, argv, &args);

	if (status >= 0)
		return status;
	if (args.measure.time_s == 0)
		for (int p = 0; p < MEASURE_PART_N; p++)
			args.measure.time_s += args.measure.part[p] ? SECONDS_A_PART : 0;
	cmd_catch_interrupts();
	cmd_arena_init(&a);
	status = cmd_finish_stdout(calibrate(&args, &a));
	arena_release(&a);
	return status;
}
