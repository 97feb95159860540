/*
 * cmd_trace_convert.c - `offsim trace convert`: native traces as lines of JSON, and back.
 */
#include <getopt.h>
#include <string.h>

#include "base/file.h"
#include "sim/cmd/cmd.h"
#include "sim/trace/trace_jsonl.h"

static void usage(void)
{
	puts("usage: offsim trace convert [--json] IN.otr OUT.jsonl\n"
	     "       offsim trace convert [--json] IN.jsonl OUT.otr\n"
	     "\n"
	     "Writes a native trace as lines of JSON, or the other way round; the names say which. Nothing is lost: there and back\n"
	     "gives the same file. The first line says what the trace is, each other one is a step or a request.\n"
	     "\n"
	     "      --json   what was written as one JSON document (to .otr)\n"
	     "  -h, --help   this text\n"
	     "\n"
	     "OUT may be '-': lines of JSON to standard output.\n"
	     "\n"
	     "example: offsim trace convert made.otr - | jq -c '.layers[]?.uses[]?.experts // empty' | head");
}

static int interrupted(struct err *err)
{
	return cmd_interrupted ? err_set(err, ERR_INTERRUPTED, "interrupted; nothing was written") : 0;
}

static int put_lines(struct otr_reader *r, FILE *to, struct err *err)
{
	union {
		struct trace_step step;
		struct otr_request request;
	} record;
	bool steps = otr_info(r)->kind == OTR_STEPS;
	int more;

	trace_jsonl_put_head(to, otr_info(r));
	while ((more = steps ? otr_next_step(r, &record.step, err) : otr_next_request(r, &record.request, err)) > 0) {
		if (interrupted(err))
			return -1;
		if (ferror(to))
			break;
		if (steps)
			trace_jsonl_put_step(to, &record.step);
		else
			trace_jsonl_put_request(to, &record.request);
	}
	return more < 0 ? -1 : 0;
}

static int to_lines(const char *in, const char *out, struct arena *a, struct err *err)
{
	struct otr_reader *r;
	struct file_out f = {.to = stdout};
	bool to_stdout = strcmp(out, "-") == 0;

	if (otr_open(in, a, &r, err))
		return -1;
	int rc = to_stdout ? 0 : file_out_open(&f, out, err);
	if (rc == 0) {
		rc = put_lines(r, f.to, err);
		if (rc == 0 && !to_stdout)
			rc = file_out_commit(&f, err);
		else if (!to_stdout)
			file_out_abort(&f);
	}
	otr_close(r);
	return rc;
}

static int get_lines(struct trace_jsonl *t, struct otr_writer *w, struct err *err)
{
	union {
		struct trace_step step;
		struct otr_request request;
	} record;
	bool steps = trace_jsonl_info(t)->kind == OTR_STEPS;
	int more;

	while ((more = steps ? trace_jsonl_next_step(t, &record.step, err) :
			       trace_jsonl_next_request(t, &record.request, err)) > 0) {
		if (interrupted(err) ||
			(steps ? otr_put_step(w, &record.step, err) : otr_put_request(w, &record.request, err)))
			return -1;
	}
	return more;
}

static int to_native(const char *in, const char *out, struct arena *a, struct err *err)
{
	struct trace_jsonl *t;
	struct otr_writer *w = NULL;

	if (trace_jsonl_open(in, a, &t, err))
		return -1;
	int rc = otr_create(out, trace_jsonl_info(t), a, &w, err);
	if (rc == 0) {
		rc = get_lines(t, w, err);
		if (rc == 0)
			rc = otr_commit(w, err);
		else
			otr_abort(w);
	}
	trace_jsonl_close(t);
	return rc;
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len > n && strcmp(name + len - n, suffix) == 0;
}

int cmd_trace_convert(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (c) {
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
	if (argc - optind != 2)
		return cmd_usage_error(argv[0], "expected two files, IN and OUT, not %d", argc - optind);

	const char *in = argv[optind], *out = argv[optind + 1];
	bool native = ends_in(out, ".otr");
	if (!(native ? ends_in(in, ".jsonl") : ends_in(in, ".otr") && (ends_in(out, ".jsonl") || strcmp(out, "-") == 0)))
		return cmd_usage_error(argv[0], "one of the files must be named .otr, the other .jsonl");
	if (json && !native)
		return cmd_usage_error(argv[0], "--json goes with a native trace as OUT; what else is written is JSON already");

	struct arena a;
	struct err err = {0};
	cmd_arena_init(&a);
	cmd_catch_interrupts();
	int rc = native ? to_native(in, out, &a, &err) : to_lines(in, out, &a, &err);
	arena_release(&a);
	if (rc)
		return cmd_fail(&err);
	return cmd_finish_stdout(native ? cmd_trace_report(out, json) : EXIT_DONE);
}
