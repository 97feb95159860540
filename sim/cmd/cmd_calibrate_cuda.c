/*
 * cmd_calibrate_cuda.c - `offsim calibrate cuda`: what offsim-cuda measures of the GPUs here, as a machine's profile.
 */
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "hw/hw.h"
#include "hw/measure_gpu.h"
#include "sim/cmd/cmd.h"
#include "sim/run/cuda_program.h"

static void usage(void)
{
	puts("usage: offsim calibrate cuda [-o PROFILE.yaml] [--machine M] [--raw RAW.json] [--keep RAW.json] [OPTION]...\n"
	     "\n"
	     "Runs offsim-cuda, a program of its own ('make cuda' builds it), which measures copies, memory, products and launches of\n"
	     "the GPUs of this machine in about a minute each, and fits constants of a profile to its samples.\n"
	     "\n"
	     "  -o, --output FILE    write the profile: offsim hw show ./FILE, machine: ./FILE in a scenario\n"
	     "      --machine M      a name or path that says what was not measured, such as the profile of 'calibrate all'\n"
	     "                       (default: generic parts)\n"
	     "      --raw FILE       fit these samples and measure nothing\n"
	     "      --keep FILE      keep the samples\n"
	     "      --only PART,...  measure these alone ('offsim-cuda calibrate --list' names them)\n"
	     "      --quick          a quarter of the repetitions\n"
	     "      --file DIR       folder on the drive to read from (the current one)\n"
	     "      --json           one JSON document\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "example: offsim calibrate cuda --machine ./my-machine.yaml -o my-machine-gpu.yaml --keep raw.json");
}

struct args {
	const char *output, *machine, *raw, *keep, *only, *dir;
	bool quick, json;
};

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},
	{"machine", required_argument, NULL, 'M'},
	{"raw", required_argument, NULL, 'r'},
	{"keep", required_argument, NULL, 'k'},
	{"only", required_argument, NULL, 'O'},
	{"file", required_argument, NULL, 'f'},
	{"quick", no_argument, NULL, 'q'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* -1 when all is well, else the exit status. */
static int parse(int argc, char **argv, struct args *args)
{
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		switch (c) {
		case 'o': args->output = optarg; break;
		case 'M': args->machine = optarg; break;
		case 'r': args->raw = optarg; break;
		case 'k': args->keep = optarg; break;
		case 'O': args->only = optarg; break;
		case 'f': args->dir = optarg; break;
		case 'q': args->quick = true; break;
		case 'j': args->json = true; break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (argc - optind != 1)
		return cmd_usage_error("calibrate", "'%s' goes not with cuda", argv[optind + 1]);
	if (args->raw && (args->keep || args->only || args->quick))
		return cmd_usage_error("calibrate", "--raw measures nothing: --%s does not go with it",
			args->keep ? "keep" : args->only ? "only" : "quick");
	return -1;
}

/* ---- telling ---- */

static void print_text(const struct gpu_fit *f)
{
	char text[32];

	for (size_t i = 0; i < f->devices.n; i++)
		printf("gpu%zu: %s, %s\n", i, f->devices.at[i].name,
			units_format(text, sizeof(text), (double)f->devices.at[i].memory_bytes, UNIT_BYTES));
	printf("measured %s%s%s\n\n", f->date, *f->host ? " on " : "", f->host);
	for (size_t i = 0; i < f->constants.n; i++) {
		const struct gpu_constant *c = &f->constants.at[i];
		printf("  %-34s %14s  %5.1f %%  %4zu repetitions: %s%s\n", c->name, units_format(text, sizeof(text), c->value, c->dim),
			100 * c->spread, c->n, c->what, c->n_points ? "; by size" : "");
	}
	for (size_t i = 0; i < f->notes.n; i++)
		printf("%snote: %s\n", i ? "" : "\n", f->notes.at[i]);
}

static int print_json(const struct gpu_fit *f, const char *output, struct err *err)
{
	json_t *constants = json_array(), *notes = json_array();

	for (size_t i = 0; i < f->constants.n; i++) {
		const struct gpu_constant *c = &f->constants.at[i];
		json_t *points = json_array();
		for (size_t k = 0; k < c->n_points; k++)
			json_array_append_new(points, json_pack("[f, f]", c->size_bytes[k], c->rate_bytes_s[k]));
		json_array_append_new(constants, json_pack("{s:s, s:s, s:f, s:f, s:I, s:s, s:o}", "name", c->name, "unit", units_base(c->dim),
			"value", c->value, "spread", c->spread, "repetitions", (json_int_t)c->n, "what", c->what, "points", points));
	}
	for (size_t i = 0; i < f->notes.n; i++)
		json_array_append_new(notes, json_string(f->notes.at[i]));
	json_t *doc = json_pack("{s:s, s:s, s:o, s:o, s:s?}", "date", f->date, "host", f->host, "constants", constants, "notes", notes,
		"profile", output);
	if (!doc)
		return err_set(err, ERR_NOMEM, "out of memory");
	json_dumpf(doc, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(doc);
	return 0;
}

/* ---- the command ---- */

static int measure(const struct args *args, struct cuda_program *p, struct arena *a, const char **raw, struct err *err)
{
	const char *argv[12];
	size_t n = 0;

	if (cuda_program_open(p, a, err))
		return -1;
	*raw = args->keep ? args->keep : cuda_program_file(p, "raw.json");
	argv[n++] = "calibrate";
	argv[n++] = "--output";
	argv[n++] = *raw;
	argv[n++] = "--dir";
	argv[n++] = args->dir ? args->dir : ".";
	if (args->only) {
		argv[n++] = "--only";
		argv[n++] = args->only;
	}
	if (args->quick)
		argv[n++] = "--quick";
	argv[n] = NULL;
	return cuda_program_run(p, argv, !isatty(STDERR_FILENO) || getenv("NO_COLOR"), &cmd_interrupted, err);
}

struct profile_text {
	char *text;
	size_t len;
};

static void write_text(FILE *to, void *ctx)
{
	const struct profile_text *t = ctx;

	fwrite(t->text, 1, t->len, to);
}

/* Made whole before the file is touched. A base that is a path is named from here, not from where the profile lies. */
static int write_profile(const struct gpu_fit *f, const struct args *args, struct arena *a, struct err *err)
{
	struct profile_text t = {0};
	const char *base = args->machine;
	char *whole = base && strchr(base, '/') ? realpath(base, NULL) : NULL;
	FILE *to = open_memstream(&t.text, &t.len);

	if (whole)
		base = arena_strdup(a, whole);
	free(whole);
	if (!to)
		return err_set(err, ERR_NOMEM, "out of memory");
	int rc = gpu_fit_write(f, base, to, a, err);
	if (fclose(to) && !rc)
		rc = err_set(err, ERR_NOMEM, "out of memory");
	if (!rc)
		rc = file_replace(args->output, write_text, &t, err);
	free(t.text);
	return rc;
}

static int calibrate(const struct args *args, struct arena *a)
{
	struct cuda_program p = {0};
	struct hw_machine *base;
	struct gpu_fit f;
	struct err err = {0};
	const char *raw = args->raw;

	/* Asked before a minute is spent. */
	if (args->machine && hw_machine_load(args->machine, a, &base, &err))
		return cmd_fail(&err);
	int rc = (!raw && measure(args, &p, a, &raw, &err)) || gpu_fit_read(raw, a, &f, &err);
	cuda_program_done(&p);
	if (rc || (args->output && write_profile(&f, args, a, &err)))
		return cmd_fail(&err);
	if (args->json)
		return print_json(&f, args->output, &err) ? cmd_fail(&err) : EXIT_DONE;
	print_text(&f);
	if (args->output)
		printf("\nprofile: %s (offsim hw show %s%s)\n", args->output, strchr(args->output, '/') ? "" : "./", args->output);
	return EXIT_DONE;
}

int cmd_calibrate_cuda(int argc, char **argv)
{
	struct args args = {0};
	struct arena a;
	int status = parse(argc, argv, &args);

	if (status >= 0)
		return status;
	cmd_catch_interrupts();
	cmd_arena_init(&a);
	status = cmd_finish_stdout(calibrate(&args, &a));
	arena_release(&a);
	return status;
}
