/*
 * trace_in_vllm_requests.c - a line for each request that vLLM served: {"request_id", "input_toks", "output_toks",
 * "arrival_time": s of the epoch, …}. The times measured (queued, first token, last token) are results, not a load.
 */
#include "base/json.h"
#include "sim/trace/trace_format.h"

static bool sniff(const struct trace_head *head)
{
	return trace_head_begins(head, '{') && trace_head_line_has(head, "\"request_id\"") &&
	       trace_head_line_has(head, "\"input_toks\"");
}

static int read_all(struct trace_import *im, struct err *err)
{
	json_t *o;
	int more;

	im->wall_clock = true;
	while ((more = trace_import_json(im, &o, err)) > 0) {
		struct otr_request r = {0};
		int rc = json_get_scaled(o, im->path, "arrival_time", 9, &r.arrival_ns, err) ||
				json_get_count(o, im->path, "input_toks", 0, TRACE_MAX_TOKENS, &r.input_tokens, err) ||
				json_get_count(o, im->path, "output_toks", 0, TRACE_MAX_TOKENS, &r.output_tokens, err) ?
			trace_import_at_line(im, err) :
			trace_import_request(im, &r, err);
		json_decref(o);
		if (rc)
			return -1;
	}
	return more;
}

const struct trace_format trace_format_vllm_requests = {
	.name = "vllm-requests",
	.help = "vLLM's record of each request, as LLMServingSim keeps it",
	.example = "{\"request_id\": \"bench-0\", \"input_toks\": 2361, \"output_toks\": 532, \"arrival_time\": 1777144890.5122073, …}",
	.kind = OTR_REQUESTS,
	.sniff = sniff,
	.read = read_all,
};
