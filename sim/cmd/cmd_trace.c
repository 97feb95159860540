/*
 * cmd_trace.c - `offsim trace`: what can be done with traces, one file each.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/trace/otr.h"

/* To add one: declare it in cmd.h, add a row. */
static const struct cmd verbs[] = {
	{"gen", cmd_trace_gen, "make up a trace: steps with drawn experts, or requests"},
	{"import", cmd_trace_import, "a trace that others recorded, as a native one"},
	{"info", cmd_trace_info, "what a trace holds, and how often caches of given sizes would hit"},
	{"convert", cmd_trace_convert, "a native trace (.otr) as lines of JSON (.jsonl), or back"},
};

static void usage(void)
{
	puts("usage: offsim trace VERB [OPTION]...\n"
	     "\n"
	     "A trace says what a model touched, step by step, or which requests came when; a native one is a file *.otr.\n");
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		printf("  %-9s %s\n", verbs[i].name, verbs[i].help);
	puts("\n"
	     "'offsim trace VERB --help' says more of each. In a scenario, 'workload: {trace: FILE.otr}' runs the steps of one.\n"
	     "\n"
	     "example: offsim trace gen --model qwen3-30b-a3b --zipf 0.8 -o made.otr\n"
	     "         offsim trace import conversation_trace.jsonl -o mooncake.otr\n"
	     "         offsim trace info mooncake.otr --cache 10000blocks,50000blocks\n"
	     "         offsim trace convert made.otr - | head -n 2");
}

int cmd_trace(int argc, char **argv)
{
	struct suggest s;
	char near[128];

	if (argc < 2)
		return cmd_usage_error("trace", "say what to do");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage();
		return cmd_finish_stdout(EXIT_DONE);
	}
	suggest_init(&s, argv[1]);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(verbs[i].name, argv[1]) == 0) {
			char name[32];
			snprintf(name, sizeof(name), "trace %s", verbs[i].name);
			argv[1] = name;
			return verbs[i].run(argc - 1, argv + 1);
		}
		suggest_offer(&s, verbs[i].name);
	}
	return cmd_usage_error("trace", "cannot '%.60s'%s", argv[1], suggest_text(&s, near, sizeof(near)));
}

static int print_report(const struct otr_reader *r, const char *path, bool json, struct err *err)
{
	bool steps = otr_info(r)->kind == OTR_STEPS;
	char bytes[32], hash[17];

	snprintf(hash, sizeof(hash), "%016" PRIx64, otr_hash(r));
	if (!json) {
		printf("%s: %" PRIu64 " %s", path, otr_n_records(r), steps ? "steps" : "requests");
		if (steps)
			printf(", %" PRIu64 " accesses", otr_n_accesses(r));
		printf(", %s\n", units_format(bytes, sizeof(bytes), (double)otr_file_bytes(r), UNIT_BYTES));
		return 0;
	}
	json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "output", path, "kind", steps ? "steps" : "requests", "records",
		(json_int_t)otr_n_records(r), "accesses", (json_int_t)otr_n_accesses(r), "bytes",
		(json_int_t)otr_file_bytes(r), "hash", hash);
	if (!o)
		return err_set(err, ERR_NOMEM, "out of memory");
	json_dumpf(o, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(o);
	return 0;
}

int cmd_trace_report(const char *path, bool json)
{
	struct arena a;
	struct otr_reader *r;
	struct err err = {0};

	cmd_arena_init(&a);
	int rc = otr_open(path, &a, &r, &err);
	if (rc == 0) {
		rc = print_report(r, path, json, &err);
		otr_close(r);
	}
	arena_release(&a);
	return rc ? cmd_fail(&err) : EXIT_DONE;
}
