/*
 * trace_in_vllm_routing.c - routing logs of patched vLLMs: {"type": "meta", …}, then a line for each token and layer
 * logged, {"type": "route", "req_id", "token_idx", "layer", "topk_ids", "topk_weights"}.
 *
 * token_idx counts within a batch, so a batch ends where it or the layer does not go on; a pass is batches of rising
 * layers. req_id is no use: most logs give one to all. Neither phases nor sequences are said: a pass of at most
 * --decode-rows rows is a decode step. Logs begin with the passes in which vLLM measures its memory, whose tokens are
 * all the same and so is their routing: leading passes of which every row has the routing of the first row of its
 * layer. The first of them has more than one row, for a pass of one row is constant in any case.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "sim/trace/trace_format.h"

#define MAX_TOPK 256

struct routing {
	struct trace_import *im;
	int64_t layer, token; /* of the row before */
	uint64_t n_rows, n_tokens; /* of its batch; of the largest one of its pass */
	uint64_t n_pass_rows;
	bool under_way;
	bool warm;     /* only warm-up so far, */
	uint64_t n_warm; /* so many passes */
	bool constant; /* all rows of the pass under way have the routing of the first */
	struct {
		uint32_t n;
		uint32_t *expert;
	} first[TRACE_MAX_LAYERS];
};

static bool sniff(const struct trace_head *head)
{
	return trace_head_begins(head, '{') && trace_head_line_has(head, "\"type\"") && trace_head_has(head, "\"topk_ids\"");
}

static int end_pass(struct routing *r, struct err *err)
{
	struct trace_import *im = r->im;

	if (!r->under_way)
		return 0;
	r->warm = r->warm && r->constant && (r->n_warm > 0 || r->n_tokens > 1);
	if (r->warm) {
		r->n_warm++;
		trace_import_remark(im, im->options->drop_warmup ? "rows of warm-up left out" :
			"rows of one constant routing at the beginning, probably warm-up (--drop-warmup leaves them out)", r->n_pass_rows);
		if (im->options->drop_warmup) {
			trace_import_discard(im);
			return 0;
		}
	}
	bool decode = r->n_tokens <= trace_import_decode_rows(im);
	return trace_import_step(im, decode ? TRACE_DECODE : TRACE_PREFILL, decode ? r->n_tokens : 1, r->n_tokens, err);
}

static int begin_row(struct routing *r, int64_t layer, int64_t token, struct err *err)
{
	bool goes_on = r->under_way && layer == r->layer && token > r->token;

	if (!r->under_way || (!goes_on && layer <= r->layer)) {
		if (end_pass(r, err))
			return -1;
		r->n_tokens = r->n_pass_rows = 0;
		r->constant = true;
	}
	r->n_rows = goes_on ? r->n_rows + 1 : 1;
	if (r->n_rows > r->n_tokens)
		r->n_tokens = r->n_rows;
	r->n_pass_rows++;
	r->layer = layer;
	r->token = token;
	r->under_way = true;
	return 0;
}

/* Remembers the first row of a layer, and compares the others with it. */
static void compare(struct routing *r, uint64_t layer, const uint32_t *expert, uint32_t n)
{
	if (!r->first[layer].expert) {
		r->first[layer].expert = arena_array(r->im->arena, uint32_t, n);
		memcpy(r->first[layer].expert, expert, n * sizeof(*expert));
		r->first[layer].n = n;
	}
	r->constant = r->constant && r->first[layer].n == n && memcmp(r->first[layer].expert, expert, n * sizeof(*expert)) == 0;
}

static int read_route(struct routing *r, const json_t *o, struct err *err)
{
	struct trace_import *im = r->im;
	const json_t *list = json_object_get(o, "topk_ids"), *item;
	uint32_t expert[MAX_TOPK];
	uint64_t layer, token;
	size_t i;

	if (json_get_count(o, im->path, "layer", 0, TRACE_MAX_LAYERS - 1, &layer, err) ||
		json_get_count(o, im->path, "token_idx", 0, INT64_MAX, &token, err))
		return trace_import_at_line(im, err);
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > MAX_TOPK)
		return trace_import_error(im, 0, err, "'topk_ids' must be an array of 1 to %d experts", MAX_TOPK);
	json_array_foreach(list, i, item) {
		json_int_t id = json_integer_value(item);
		if (!json_is_integer(item) || id < 0 || id >= TRACE_MAX_EXPERTS)
			return trace_import_error(im, 0, err, "expert %zu of 'topk_ids' is no number of an expert", i + 1);
		expert[i] = (uint32_t)id;
	}
	if (begin_row(r, (int64_t)layer, (int64_t)token, err))
		return -1;
	compare(r, layer, expert, (uint32_t)i);
	if (i > im->n_expert_used)
		im->n_expert_used = (uint32_t)i;
	for (size_t k = 0; k < i; k++)
		if (trace_import_use(im, layer, expert[k], 1, err))
			return -1;
	return 0;
}

static int read_line(struct routing *r, const json_t *o, struct err *err)
{
	const char *type = json_string_value(json_object_get(o, "type")), *model;

	if (type && strcmp(type, "route") == 0)
		return read_route(r, o, err);
	if (!type || strcmp(type, "meta") != 0)
		return trace_import_error(r->im, 0, err, "'type' must be 'meta' or 'route', not '%s'", type ? type : "");
	if (json_get_text_or(o, r->im->path, "model_id", "", r->im->arena, &model, err))
		return trace_import_at_line(r->im, err);
	r->im->model = model;
	return 0;
}

static int read_all(struct trace_import *im, struct err *err)
{
	struct routing *r = arena_new(im->arena, struct routing);
	json_t *o;
	int more;

	r->im = im;
	r->warm = true;
	trace_import_remark(im, "passes and phases are guessed from the order of rows", 0);
	while ((more = trace_import_json(im, &o, err)) > 0) {
		int rc = read_line(r, o, err);
		json_decref(o);
		if (rc)
			return -1;
	}
	return more < 0 ? -1 : end_pass(r, err);
}

const struct trace_format trace_format_vllm_routing = {
	.name = "vllm-routing",
	.help = "routing logs of patched vLLMs (meta and route lines)",
	.example = "{\"type\": \"meta\", \"model_id\": \"Qwen/Qwen1.5-MoE-A2.7B-Chat\", \"layers_logged\": [0], …}",
	.kind = OTR_STEPS,
	.guesses_phases = true,
	.has_warmup = true,
	.sniff = sniff,
	.read = read_all,
};
