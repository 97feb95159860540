/*
 * trace_in_vidur.c - Vidur's lists of lengths, which have no times unless a column arrived_at (s) is there.
 */
#include "sim/trace/trace_format.h"

static bool sniff(const struct trace_head *head)
{
	return trace_head_line_has(head, "num_prefill_tokens") && trace_head_line_has(head, "num_decode_tokens");
}

static int read_all(struct trace_import *im, struct err *err)
{
	static const char *const columns[] = {"num_prefill_tokens", "num_decode_tokens", "arrived_at"};
	struct csv csv;
	struct csv_field f[ARRAY_LEN(columns)];
	int more;

	if (csv_stream(&csv, &im->lines, columns, ARRAY_LEN(columns), 1, im->arena, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0) {
		struct otr_request r = {0};
		if (!f[2].text)
			trace_import_remark(im, "no arrival times: all at 0", 0);
		if (trace_import_field(&csv, &f[0], columns[0], TRACE_MAX_TOKENS, &r.input_tokens, err) ||
			trace_import_field(&csv, &f[1], columns[1], TRACE_MAX_TOKENS, &r.output_tokens, err) ||
			(f[2].text && trace_import_time(&csv, &f[2], columns[2], 9, &r.arrival_ns, err)) ||
			trace_import_request(im, &r, err))
			return -1;
	}
	return more;
}

const struct trace_format trace_format_vidur = {
	.name = "vidur",
	.help = "microsoft/vidur's lengths of prompts and outputs",
	.example = "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio",
	.kind = OTR_REQUESTS,
	.sniff = sniff,
	.read = read_all,
};
