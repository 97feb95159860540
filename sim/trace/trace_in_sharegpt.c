/*
 * trace_in_sharegpt.c - lists made from ShareGPT, in three forms.
 *
 *	LLMServingSim's CSV and JSONL   arrival_time_ns, input_toks, output_toks
 *	ShareGPT's own JSON             [{"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", …}]}, …]
 *
 * In the last, every answer is a request whose prompt is all that was said before it; there are no times and no
 * tokens, so requests arrive at 0 and a token is taken as four characters.
 */
#include <string.h>

#include "base/json.h"
#include "sim/trace/trace_format.h"

static bool sniff(const struct trace_head *head)
{
	return trace_head_line_has(head, "arrival_time_ns") ||
	       (trace_head_has(head, "\"conversations\"") && (trace_head_begins(head, '[') || trace_head_begins(head, '{')));
}

static int read_csv(struct trace_import *im, struct err *err)
{
	static const char *const columns[] = {"arrival_time_ns", "input_toks", "output_toks"};
	struct csv csv;
	struct csv_field f[ARRAY_LEN(columns)];
	int more;

	if (csv_stream(&csv, &im->lines, columns, ARRAY_LEN(columns), 0, im->arena, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0) {
		struct otr_request r = {0};
		if (trace_import_time(&csv, &f[0], columns[0], 0, &r.arrival_ns, err) ||
			trace_import_field(&csv, &f[1], columns[1], TRACE_MAX_TOKENS, &r.input_tokens, err) ||
			trace_import_field(&csv, &f[2], columns[2], TRACE_MAX_TOKENS, &r.output_tokens, err) ||
			trace_import_request(im, &r, err))
			return -1;
	}
	return more;
}

static bool answers(const char *from)
{
	static const char *const names[] = {"gpt", "chatgpt", "assistant", "bard", "bing"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(from, names[i]) == 0)
			return true;
	return false;
}

/* number counts from 1. */
static int read_conversation(struct trace_import *im, const json_t *o, uint64_t number, struct err *err)
{
	const json_t *turns = json_object_get(o, "conversations"), *turn;
	struct otr_request r = {.session = number};
	bool open = false; /* something was said and not answered */
	size_t i;

	if (!json_is_array(turns))
		return trace_import_error(im, 0, err, "conversation %zu: 'conversations' must be an array", (size_t)number);
	json_array_foreach(turns, i, turn) {
		const char *from = json_string_value(json_object_get(turn, "from"));
		const json_t *value = json_object_get(turn, "value");
		if (!from || !json_is_string(value))
			return trace_import_error(im, 0, err, "conversation %zu: turn %zu must have 'from' and 'value'", (size_t)number,
				i + 1);
		r.output_tokens = trace_import_estimate(json_string_value(value), json_string_length(value));
		open = !answers(from);
		if (!open && trace_import_request(im, &r, err))
			return -1;
		r.input_tokens += r.output_tokens;
	}
	if (open)
		trace_import_remark(im, "conversations that end with no answer, whose last turn is left out", 1);
	if (turns && json_array_size(turns) == 0)
		trace_import_remark(im, "conversations with no turns", 1);
	return 0;
}

static void remark_estimate(struct trace_import *im)
{
	trace_import_remark(im, "tokens are taken as a quarter of the characters", 0);
	trace_import_remark(im, "no arrival times: all at 0", 0);
}

static int read_json_lines(struct trace_import *im, struct err *err)
{
	json_t *o;
	uint64_t n = 0;
	int more;

	while ((more = trace_import_json(im, &o, err)) > 0) {
		struct otr_request r = {0};
		int rc;
		if (json_object_get(o, "conversations")) {
			remark_estimate(im);
			rc = read_conversation(im, o, ++n, err);
		} else {
			rc = json_get_scaled(o, im->path, "arrival_time_ns", 0, &r.arrival_ns, err) ||
					json_get_count(o, im->path, "input_toks", 0, TRACE_MAX_TOKENS, &r.input_tokens, err) ||
					json_get_count(o, im->path, "output_toks", 0, TRACE_MAX_TOKENS, &r.output_tokens, err) ?
				trace_import_at_line(im, err) :
				trace_import_request(im, &r, err);
		}
		json_decref(o);
		if (rc)
			return -1;
	}
	return more;
}

static int read_document(struct trace_import *im, struct err *err)
{
	json_t *root, *o;
	size_t i;
	int rc = 0;

	if (json_read_any_file(im->path, TRACE_MAX_DOCUMENT, &root, err))
		return -1;
	remark_estimate(im);
	json_array_foreach(root, i, o) {
		if ((rc = read_conversation(im, o, i + 1, err)) != 0)
			break;
	}
	json_decref(root);
	return rc;
}

static int read_all(struct trace_import *im, struct err *err)
{
	struct trace_head head = {0};

	if (lines_head(&im->lines, 4096, &head.text, &head.len, err))
		return -1;
	if (trace_head_begins(&head, '['))
		return read_document(im, err);
	return trace_head_begins(&head, '{') ? read_json_lines(im, err) : read_csv(im, err);
}

const struct trace_format trace_format_sharegpt = {
	.name = "sharegpt",
	.help = "ShareGPT's conversations, or LLMServingSim's lists made from them (CSV, JSONL)",
	.example = "[{\"conversations\": [{\"from\": \"human\", \"value\": \"…\"}, …]}, …]   or   arrival_time_ns,input_toks,output_toks",
	.kind = OTR_REQUESTS,
	.sniff = sniff,
	.read = read_all,
};
