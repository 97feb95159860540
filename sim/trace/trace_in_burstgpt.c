/*
 * trace_in_burstgpt.c - BurstGPT: "5,ChatGPT,472,18,490,Conversation log", times in seconds.
 *
 * Newer releases number the sessions.
 */
#include <string.h>

#include "base/intern.h"
#include "sim/trace/trace_format.h"

#define MAX_MODELS 8

enum { COL_TIME, COL_MODEL, COL_IN, COL_OUT, COL_TOTAL, COL_SESSION, COL_N };

static bool sniff(const struct trace_head *head)
{
	return trace_head_line_has(head, "Request tokens") && trace_head_line_has(head, "Response tokens");
}

static const char *model_names(const struct intern *models, struct arena *a)
{
	char *names = arena_strdup(a, models->n ? models->name[0] : "");

	for (uint32_t i = 1; i < models->n && i < MAX_MODELS; i++)
		names = arena_printf(a, "%s, %s", names, models->name[i]);
	return models->n > MAX_MODELS ? arena_printf(a, "%s, …", names) : names;
}

static int read_all(struct trace_import *im, struct err *err)
{
	static const char *const columns[] = {"Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens",
		"Session ID"};
	struct intern models, sessions;
	struct csv csv;
	struct csv_field f[COL_N];
	int more;

	intern_init(&models, im->arena);
	intern_init(&sessions, im->arena);
	if (csv_stream(&csv, &im->lines, columns, COL_N, 1, im->arena, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0) {
		struct otr_request r = {0};
		uint64_t total;
		if (trace_import_time(&csv, &f[COL_TIME], columns[COL_TIME], 9, &r.arrival_ns, err) ||
			trace_import_field(&csv, &f[COL_IN], columns[COL_IN], TRACE_MAX_TOKENS, &r.input_tokens, err) ||
			trace_import_field(&csv, &f[COL_OUT], columns[COL_OUT], TRACE_MAX_TOKENS, &r.output_tokens, err) ||
			trace_import_field(&csv, &f[COL_TOTAL], columns[COL_TOTAL], 2 * TRACE_MAX_TOKENS, &total, err))
			return -1;
		if (total != r.input_tokens + r.output_tokens)
			trace_import_remark(im, "requests whose total is not the sum of prompt and output", 1);
		intern_add(&models, f[COL_MODEL].text, f[COL_MODEL].len);
		if (f[COL_SESSION].text && f[COL_SESSION].len)
			r.session = intern_add(&sessions, f[COL_SESSION].text, f[COL_SESSION].len) + UINT64_C(1);
		if (trace_import_request(im, &r, err))
			return -1;
	}
	im->model = model_names(&models, im->arena);
	return more;
}

const struct trace_format trace_format_burstgpt = {
	.name = "burstgpt",
	.help = "HPMLL/BurstGPT",
	.example = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
	.kind = OTR_REQUESTS,
	.sniff = sniff,
	.read = read_all,
};
