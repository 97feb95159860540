/*
 * cmd_trace_import.c - `offsim trace import`: what others recorded, as a native trace.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "base/utf8.h"
#include "sim/cmd/cmd.h"
#include "sim/trace/trace_format.h"

static void usage(void)
{
	puts("usage: offsim trace import [--format FORMAT] FILE -o OUT.otr [OPTION]...\n"
	     "\n"
	     "Makes a native trace of one that others recorded. The file is read twice: once to check it to its end, once to\n"
	     "write; nothing is written of a file that is wrong. What was dropped or assumed is said, and kept in the trace.\n"
	     "\n"
	     "      --format FORMAT     what FILE is (default: guessed from how it begins, and said)\n"
	     "  -o, --output OUT.otr    the trace to write\n"
	     "      --source TEXT       where it comes from (default: FILE), and\n"
	     "      --licence TEXT      under which licence; both are kept in the trace\n"
	     "      --layers N          layers of the model, if the format does not say (default: as many as are seen)\n"
	     "      --experts N         experts of a layer, likewise\n"
	     "      --expert-bytes SIZE bytes of one expert, likewise (2919KiB)\n"
	     "      --decode-rows N     where phases are not recorded, passes of at most N rows are decode steps (default 1)\n"
	     "      --drop-warmup       leave out the leading rows of one constant routing\n"
	     "      --json              what was read as one JSON document\n"
	     "  -h, --help              this text\n"
	     "\n"
	     "formats:");
	for (size_t i = 0; i < trace_format_table_n; i++) {
		const struct trace_format *f = trace_format_table[i];
		printf("  %-19s %s, %s\n  %-19s %s\n", f->name, f->kind == OTR_STEPS ? "steps" : "requests", f->help, "", f->example);
	}
	puts("\nSGLang writes torch files; this makes JSON of one:\n"
	     "  python3 -c \"import json, sys, torch; json.dump(torch.load(sys.argv[1], weights_only=False), sys.stdout,\n"
	     "      default=lambda t: t.tolist())\" X.pt >X.json\n"
	     "Counts of how often experts were used (Fiddler, EPLB) are no traces: 'offsim trace gen --popularity' takes them.\n"
	     "\n"
	     "example: offsim trace import AzureLLMInferenceTrace_code.csv -o code.otr --licence CC-BY-4.0");
}

/* The sink: an .otr under way. */
struct output {
	const char *path;
	struct arena *arena;
	struct otr_writer *writer; /* NULL before begin */
};

static int begin(void *ctx, const struct otr_info *info, struct err *err)
{
	struct output *o = ctx;

	return otr_create(o->path, info, o->arena, &o->writer, err);
}

static int put_step(void *ctx, const struct trace_step *step, struct err *err)
{
	return otr_put_step(((struct output *)ctx)->writer, step, err);
}

static int put_request(void *ctx, const struct otr_request *request, struct err *err)
{
	return otr_put_request(((struct output *)ctx)->writer, request, err);
}

static void show_share(double share)
{
	fprintf(stderr, "\r%3.0f %%", 100 * share);
}

static void clear_share(const struct trace_import_options *o)
{
	if (o->report)
		fputs("\r     \r", stderr);
}

static uint64_t file_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void print_json(const struct trace_import_result *r, const char *out)
{
	const struct otr_info *info = &r->info;
	const struct trace_totals *t = &r->totals;
	json_t *root = json_pack("{s:s, s:b, s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "format", r->format->name, "guessed",
		r->guessed, "kind", info->kind == OTR_STEPS ? "steps" : "requests", "records", (json_int_t)t->n_records, "model",
		info->model, "source", info->source, "licence", info->licence, "note", info->note, "output", out, "source_bytes",
		(json_int_t)r->source_bytes, "bytes", (json_int_t)file_bytes(out));
	json_t *more = info->kind == OTR_STEPS ?
		json_pack("{s:I, s:I, s:I, s:I}", "layers", (json_int_t)info->n_layer, "prefill_steps", (json_int_t)t->n_prefill,
			"decode_steps", (json_int_t)t->n_decode, "accesses", (json_int_t)t->n_uses) :
		json_pack("{s:I, s:I, s:I, s:f}", "block_tokens", (json_int_t)info->block_tokens, "input_tokens",
			(json_int_t)t->input_tokens, "output_tokens", (json_int_t)t->output_tokens, "duration_s",
			(double)(t->last_ns - t->first_ns) * 1e-9);

	json_object_update(root, more);
	json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(more);
	json_decref(root);
}

/* What a text of the file's is. */
static void print_line(const char *title, const char *text)
{
	printf("%-9s ", title);
	utf8_print(text, stdout);
	putchar('\n');
}

static void print_text(const struct trace_import_result *r, const char *out)
{
	const struct otr_info *info = &r->info;
	const struct trace_totals *t = &r->totals;
	char from[32], to[32];

	if (*info->model)
		print_line("model", info->model);
	if (info->kind == OTR_STEPS) {
		printf("steps     %" PRIu64 ": %" PRIu64 " prefill, %" PRIu64 " decode\n", t->n_records, t->n_prefill, t->n_decode);
		printf("layers    %" PRIu32 "\n", info->n_layer);
		printf("uses      %" PRIu64 " of experts\n", t->n_uses);
	} else {
		printf("requests  %" PRIu64 " in %.9g s\n", t->n_records, (double)(t->last_ns - t->first_ns) * 1e-9);
		printf("tokens    %" PRIu64 " of prompts, %" PRIu64 " of output\n", t->input_tokens, t->output_tokens);
		if (info->block_tokens)
			printf("blocks    of %" PRIu32 " tokens\n", info->block_tokens);
	}
	print_line("licence", *info->licence ? info->licence : "not said (--licence)");
	print_line("note", info->note);
	printf("written   %s: %s from %s\n", out, units_format(to, sizeof(to), (double)file_bytes(out), UNIT_BYTES),
		units_format(from, sizeof(from), (double)r->source_bytes, UNIT_BYTES));
}

/* Written over, a file that is read would be lost. */
static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* "--layers 48" -> 48; returns 0 or -1. */
static int parse_count(const char *text, double max, uint64_t *out)
{
	double n;
	struct err err;

	if (units_parse(text, UNIT_COUNT, &n, &err) || n < 1 || n > max)
		return -1;
	*out = (uint64_t)n;
	return 0;
}

/* What it prints goes to stdout, unless it fails. */
static int import(const char *path, const char *out, const struct trace_import_options *o, bool json)
{
	struct arena a;
	struct output output = {.path = out, .arena = &a};
	const struct trace_sink sink = {&output, begin, put_step, put_request};
	struct trace_import_result r;
	struct err err = {0};
	int status = EXIT_DONE;

	cmd_arena_init(&a);
	int rc = trace_import(path, o, &sink, &a, &r, &err);
	clear_share(o);
	if (rc) {
		otr_abort(output.writer);
		status = cmd_fail(&err);
	} else if (otr_commit(output.writer, &err)) {
		status = cmd_fail(&err);
	} else {
		if (r.guessed)
			fprintf(stderr, "offsim: '%s' looks like %s (--format says otherwise)\n", path, r.format->name);
		(json ? print_json : print_text)(&r, out);
	}
	arena_release(&a);
	return cmd_finish_stdout(status);
}

int cmd_trace_import(int argc, char **argv)
{
	static const struct option options[] = {
		{"format", required_argument, NULL, 'f'},
		{"output", required_argument, NULL, 'o'},
		{"source", required_argument, NULL, 's'},
		{"licence", required_argument, NULL, 'l'},
		{"layers", required_argument, NULL, 'n'},
		{"experts", required_argument, NULL, 'e'},
		{"expert-bytes", required_argument, NULL, 'b'},
		{"decode-rows", required_argument, NULL, 'r'},
		{"drop-warmup", no_argument, NULL, 'w'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct trace_import_options o = {.interrupted = &cmd_interrupted};
	const char *out = NULL;
	bool json = false;
	uint64_t n;
	double bytes;
	struct err err = {0};
	int c;

	while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			o.format = trace_format_find(optarg, &err);
			if (!o.format)
				return cmd_usage_error("trace import", "%s", err.msg);
			break;
		case 'o':
			out = optarg;
			break;
		case 's':
			o.source = optarg;
			break;
		case 'l':
			o.licence = optarg;
			break;
		case 'n':
			if (parse_count(optarg, TRACE_MAX_LAYERS, &n))
				return cmd_usage_error("trace import", "--layers wants a number from 1 to %d, not '%s'", TRACE_MAX_LAYERS, optarg);
			o.n_layer = (uint32_t)n;
			break;
		case 'e':
			if (parse_count(optarg, TRACE_MAX_EXPERTS, &n))
				return cmd_usage_error("trace import", "--experts wants a number from 1 to %d, not '%s'", TRACE_MAX_EXPERTS,
					optarg);
			o.n_expert = (uint32_t)n;
			break;
		case 'b':
			if (units_parse(optarg, UNIT_BYTES, &bytes, &err) || bytes < 1 || bytes > 1e15)
				return cmd_usage_error("trace import", "--expert-bytes wants a size such as 2919KiB, not '%s'", optarg);
			o.expert_bytes = (uint64_t)bytes;
			break;
		case 'r':
			if (parse_count(optarg, 1e9, &o.decode_rows))
				return cmd_usage_error("trace import", "--decode-rows wants a number from 1 on, not '%s'", optarg);
			break;
		case 'w':
			o.drop_warmup = true;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (argc - optind != 1)
		return cmd_usage_error("trace import", "expected one FILE, not %d", argc - optind);
	if (!out)
		return cmd_usage_error("trace import", "where to? -o OUT.otr is missing");
	if (same_file(argv[optind], out))
		return cmd_usage_error("trace import", "-o '%s' is the file that is read", out);
	if (isatty(STDERR_FILENO) && !getenv("NO_COLOR"))
		o.report = show_share;
	cmd_catch_interrupts();
	return import(argv[optind], out, &o, json);
}
