/*
 * trace_in_mooncake.c - Mooncake's traces, and AIPerf's input type mooncake_trace, which adds keys of its own.
 *
 * One object a line: {"timestamp": ms, "input_length", "output_length", "hash_ids": one for each 512 tokens}. AIPerf's
 * may have text_input in place of input_length, session_id, and delay (ms after the answer before) in place of
 * timestamp. When that answer came is not known; the delay is counted from the request before it.
 */
#include <string.h>

#include "base/intern.h"
#include "base/json.h"
#include "sim/trace/trace_format.h"

#define BLOCK_TOKENS 512

struct mooncake {
	struct trace_import *im;
	struct intern sessions;
	struct {
		VEC(uint64_t);
	} last_ns; /* by session: arrival of its latest request */
};

static bool sniff(const struct trace_head *head)
{
	return trace_head_begins(head, '{') && trace_head_line_has(head, "\"output_length\"") &&
	       (trace_head_line_has(head, "\"input_length\"") || trace_head_line_has(head, "\"text_input\"")) &&
	       !trace_head_line_has(head, "\"chat_id\"");
}

static bool has(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return v && !json_is_null(v);
}

static int read_session(struct mooncake *m, const json_t *o, uint64_t *session, struct err *err)
{
	const json_t *id = json_object_get(o, "session_id");
	char number[32];

	*session = 0;
	if (!has(o, "session_id"))
		return 0;
	if (!json_is_string(id) && !json_is_integer(id))
		return trace_import_error(m->im, 0, err, "'session_id' must be a string or a whole number");
	if (json_is_integer(id))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(id));
	const char *text = json_is_string(id) ? json_string_value(id) : number;
	uint32_t i = intern_add(&m->sessions, text, strlen(text));
	if (i == m->last_ns.n)
		VEC_PUSH(&m->last_ns, m->im->arena, 0);
	*session = i + UINT64_C(1);
	return 0;
}

static int read_arrival(struct mooncake *m, const json_t *o, struct otr_request *r, struct err *err)
{
	uint64_t delay_ns;

	if (has(o, "timestamp") || !has(o, "delay"))
		return json_get_scaled(o, m->im->path, "timestamp", 6, &r->arrival_ns, err);
	if (json_get_scaled(o, m->im->path, "delay", 6, &delay_ns, err))
		return -1;
	uint64_t before = r->session ? m->last_ns.at[r->session - 1] : 0;
	if (__builtin_add_overflow(before, delay_ns, &r->arrival_ns))
		return trace_import_error(m->im, 0, err, "the delay is too large");
	trace_import_remark(m->im, "requests that come a delay after an answer, taken as after the request it answers", 1);
	return 0;
}

static int read_input(struct mooncake *m, const json_t *o, struct otr_request *r, struct err *err)
{
	const json_t *text = json_object_get(o, "text_input");

	if (!has(o, "text_input"))
		return json_get_count(o, m->im->path, "input_length", 0, TRACE_MAX_TOKENS, &r->input_tokens, err);
	if (!json_is_string(text))
		return trace_import_error(m->im, 0, err, "'text_input' must be a string");
	r->input_tokens = trace_import_estimate(json_string_value(text), json_string_length(text));
	trace_import_remark(m->im, "prompts given as text, their tokens taken as a quarter of the characters", 1);
	return 0;
}

static int read_request(struct mooncake *m, const json_t *o, struct err *err)
{
	struct trace_import *im = m->im;
	struct otr_request r = {0};

	if (read_session(m, o, &r.session, err) || read_arrival(m, o, &r, err) || read_input(m, o, &r, err) ||
		json_get_count(o, im->path, "output_length", 0, TRACE_MAX_TOKENS, &r.output_tokens, err) ||
		trace_import_blocks(im, o, "hash_ids", err))
		return trace_import_at_line(im, err);
	if (r.session)
		m->last_ns.at[r.session - 1] = r.arrival_ns;
	if (im->block.n)
		im->block_tokens = BLOCK_TOKENS;
	if (im->block.n && im->block.n != (r.input_tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS)
		trace_import_remark(im, "requests whose blocks are not as many as their prompt fills", 1);
	r.block = im->block.at;
	r.n_blocks = im->block.n;
	return trace_import_request(im, &r, err);
}

static int read_all(struct trace_import *im, struct err *err)
{
	struct mooncake m = {.im = im};
	json_t *o;
	int more;

	intern_init(&m.sessions, im->arena);
	while ((more = trace_import_json(im, &o, err)) > 0) {
		int rc = read_request(&m, o, err);
		json_decref(o);
		if (rc)
			return -1;
	}
	return more;
}

const struct trace_format trace_format_mooncake = {
	.name = "mooncake",
	.help = "kvcache-ai/Mooncake, and AIPerf's mooncake_trace",
	.example = "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1]}",
	.kind = OTR_REQUESTS,
	.sniff = sniff,
	.read = read_all,
};
