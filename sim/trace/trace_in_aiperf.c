/*
 * trace_in_aiperf.c - sessions of agents, one a line, as AIPerf replays them.
 *
 * {"id", "block_size", "hash_id_scope": "local", "models": […], "requests": [{"t": s, "in", "out", "hash_ids"}, …]}.
 * A request of type "subagent" holds requests of its own on the same clock. With the scope "local" a hash means
 * something within its session only, so it is mixed with the session's number.
 */
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "sim/trace/trace_format.h"

#define MAX_NESTING 16

struct session {
	struct trace_import *im;
	uint64_t number; /* from 1 */
	bool local;
};

static bool sniff(const struct trace_head *head)
{
	return trace_head_begins(head, '{') && trace_head_line_has(head, "\"block_size\"") &&
	       trace_head_line_has(head, "\"requests\"");
}

static int read_request(struct session *s, const json_t *o, struct err *err)
{
	struct trace_import *im = s->im;
	struct otr_request r = {.session = s->number};

	if (json_get_scaled(o, im->path, "t", 9, &r.arrival_ns, err) ||
		json_get_count(o, im->path, "in", 0, TRACE_MAX_TOKENS, &r.input_tokens, err) ||
		json_get_count(o, im->path, "out", 0, TRACE_MAX_TOKENS, &r.output_tokens, err) ||
		trace_import_blocks(im, o, "hash_ids", err))
		return trace_import_at_line(im, err);
	for (size_t i = 0; s->local && i < im->block.n; i++)
		im->block.at[i] = hash_bytes(hash_bytes(HASH_INIT, &s->number, sizeof(s->number)), &im->block.at[i],
			sizeof(im->block.at[i]));
	r.block = im->block.at;
	r.n_blocks = im->block.n;
	return trace_import_request(im, &r, err);
}

static int read_requests(struct session *s, const json_t *o, int depth, struct err *err)
{
	const json_t *list = json_object_get(o, "requests"), *item;
	size_t i;

	if (!json_is_array(list))
		return trace_import_error(s->im, 0, err, "'requests' must be an array");
	if (depth == MAX_NESTING)
		return trace_import_error(s->im, 0, err, "agents within agents, more than %d deep", MAX_NESTING);
	json_array_foreach(list, i, item) {
		const char *type = json_string_value(json_object_get(item, "type"));
		if (!json_is_object(item))
			return trace_import_error(s->im, 0, err, "request %zu must be an object", i + 1);
		if (type && strcmp(type, "subagent") == 0 ? read_requests(s, item, depth + 1, err) : read_request(s, item, err))
			return -1;
	}
	return 0;
}

static int read_session(struct session *s, const json_t *o, struct err *err)
{
	struct trace_import *im = s->im;
	const json_t *scope = json_object_get(o, "hash_id_scope");
	const char *model = json_string_value(json_array_get(json_object_get(o, "models"), 0));
	uint64_t block_tokens;

	if (json_get_count(o, im->path, "block_size", 1, 1 << 20, &block_tokens, err))
		return trace_import_at_line(im, err);
	s->local = scope && json_is_string(scope) && strcmp(json_string_value(scope), "local") == 0;
	if (scope && !s->local && (!json_is_string(scope) || strcmp(json_string_value(scope), "global") != 0))
		return trace_import_error(im, 0, err, "'hash_id_scope' must be 'local' or 'global'");
	if (im->block_tokens && im->block_tokens != block_tokens)
		return trace_import_error(im, 0, err, "blocks of %d tokens behind a session with blocks of %d",
			(int)block_tokens, (int)im->block_tokens);
	im->block_tokens = (uint32_t)block_tokens;
	if (model && !*im->model)
		im->model = arena_strdup(im->arena, model);
	return read_requests(s, o, 0, err);
}

static int read_all(struct trace_import *im, struct err *err)
{
	struct session s = {.im = im};
	json_t *o;
	int more;

	trace_import_remark(im, "each session has a clock of its own, from 0", 0);
	while ((more = trace_import_json(im, &o, err)) > 0) {
		s.number++;
		int rc = read_session(&s, o, err);
		json_decref(o);
		if (rc)
			return -1;
	}
	return more;
}

const struct trace_format trace_format_aiperf_sessions = {
	.name = "aiperf-sessions",
	.help = "sessions of agents, as AIPerf replays them",
	.example = "{\"id\": \"a1\", \"block_size\": 64, \"hash_id_scope\": \"local\", \"requests\": [{\"t\": 0.5, \"in\": 70, \"out\": 9, …}]}",
	.kind = OTR_REQUESTS,
	.sniff = sniff,
	.read = read_all,
};
