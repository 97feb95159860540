/*
 * trace_in_route.c - BigMoeOnEdge's "# route_trace v1": every expert that every token of a run chose, with byte sizes.
 *
 *	# route_trace v1
 *	# model=… arch=… n_layer=48 n_expert=128 n_expert_used=8
 *	# layer=0 expert_bytes=3059712 dense_bytes=11953152
 *	turn,phase,step,layer,slot,expert,…
 *
 * A row is one use, in order. All of a turn's phase 0 is one prefill step (there "step" is a token, and layers go
 * round it); in phase 1 every step is a decode step.
 */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "sim/trace/trace_format.h"

enum { COL_TURN, COL_PHASE, COL_STEP, COL_LAYER, COL_EXPERT, COL_N };

struct route {
	struct trace_import *im;
	uint32_t n_layer, n_expert, n_expert_used;
	uint64_t turn, phase, step; /* under way */
	bool under_way;
	struct {
		uint64_t step, n; /* the token seen last in a layer, and how many */
	} token[TRACE_MAX_LAYERS];
	uint64_t n_tokens; /* of the fullest layer: the last ones may see the last token alone */
	uint32_t n_layers_seen;
};

static bool sniff(const struct trace_head *head)
{
	return head->len > 14 && memcmp(head->text, "# route_trace ", 14) == 0;
}

/* The value of "key=" in a comment, as long as it has no spaces. */
static const char *value_of(const char *comment, const char *key, size_t *len)
{
	const char *p = strstr(comment, key);

	while (p && p[-1] != ' ')
		p = strstr(p + 1, key);
	if (!p)
		return NULL;
	p += strlen(key);
	*len = strcspn(p, " ");
	return p;
}

/* A missing key leaves *out. */
static int count_of(const struct trace_import *im, const char *comment, const char *key, uint64_t max, uint64_t *out,
	struct err *err)
{
	size_t len;
	const char *p = value_of(comment, key, &len);
	uint64_t n = 0;

	if (!p)
		return 0;
	if (number_scaled(p, len, 0, &n) != NUMBER_FINE || n > max)
		return trace_import_error(im, (int)(p - comment) + 1, err, "%s'%.*s' is not a whole number up to %" PRIu64, key,
			(int)(len < 64 ? len : 64), p, max);
	*out = n;
	return 0;
}

static int read_comment(struct route *r, const char *text, struct err *err)
{
	struct trace_import *im = r->im;
	uint64_t layer = UINT64_MAX, expert_bytes = 0, dense_bytes = 0;
	uint64_t n_layer = r->n_layer, n_expert = r->n_expert, n_used = r->n_expert_used;
	const char *model = strstr(text, " model="), *arch = strstr(text, " arch=");

	if (count_of(im, text, "layer=", TRACE_MAX_LAYERS - 1, &layer, err) ||
		count_of(im, text, "expert_bytes=", INT64_MAX, &expert_bytes, err) ||
		count_of(im, text, "dense_bytes=", INT64_MAX, &dense_bytes, err) ||
		count_of(im, text, "n_layer=", TRACE_MAX_LAYERS, &n_layer, err) ||
		count_of(im, text, "n_expert=", TRACE_MAX_EXPERTS, &n_expert, err) ||
		count_of(im, text, "n_expert_used=", TRACE_MAX_EXPERTS, &n_used, err))
		return -1;
	r->n_layer = (uint32_t)n_layer;
	r->n_expert = (uint32_t)n_expert;
	r->n_expert_used = (uint32_t)n_used;
	if (model) { /* a path may have spaces */
		model += strlen(" model=");
		im->model = arch > model ? arena_strndup(im->arena, model, (size_t)(arch - model)) : arena_strdup(im->arena, model);
	}
	if (layer == UINT64_MAX)
		return 0;
	struct otr_layer l = {r->n_expert, r->n_expert_used, expert_bytes, dense_bytes};
	if (layer >= r->n_layer)
		return trace_import_error(im, 1, err, "layer %" PRIu64 " of %" PRIu32, layer, r->n_layer);
	return trace_import_layer(im, layer, &l, err);
}

static int read_comments(struct route *r, struct err *err)
{
	char *text;
	size_t len;
	int more;

	while ((more = lines_next(&r->im->lines, &text, &len, err)) > 0 && text[0] == '#') {
		if (r->im->lines.line == 1 && strcmp(text, "# route_trace v1") != 0)
			return trace_import_error(r->im, 1, err, "'%.40s' is not '# route_trace v1'", text);
		if (read_comment(r, text, err))
			return -1;
	}
	if (more <= 0)
		return more;
	lines_again(&r->im->lines);
	/* Layers that have no line of their own */
	const struct otr_layer l = {.n_expert = r->n_expert, .n_expert_used = r->n_expert_used};
	for (uint32_t i = 0; i < r->n_layer; i++)
		if ((i >= r->im->layer.n || !r->im->layer.at[i].declared.n_expert) && trace_import_layer(r->im, i, &l, err))
			return -1;
	return 0;
}

static int end_step(struct route *r, struct err *err)
{
	if (!r->under_way)
		return 0;
	r->under_way = false;
	for (uint32_t i = 0; i < r->n_layers_seen; i++)
		r->token[i].n = 0;
	r->n_layers_seen = 0;
	uint64_t n = r->n_tokens;
	r->n_tokens = 0;
	return trace_import_step(r->im, r->phase ? TRACE_DECODE : TRACE_PREFILL, 1, n, err);
}

/* Counts the tokens that a layer sees. */
static void count_token(struct route *r, uint64_t layer, uint64_t step)
{
	if (r->token[layer].n == 0 || r->token[layer].step != step) {
		r->token[layer].step = step;
		r->token[layer].n++;
	}
	if (r->token[layer].n > r->n_tokens)
		r->n_tokens = r->token[layer].n;
	if (layer >= r->n_layers_seen)
		r->n_layers_seen = (uint32_t)layer + 1;
}

static int read_row(struct route *r, const struct csv *csv, const struct csv_field *f, struct err *err)
{
	static const char *const names[] = {"turn", "phase", "step", "layer", "expert"};
	uint64_t v[COL_N];

	for (int i = 0; i < COL_N; i++)
		if (trace_import_field(csv, &f[i], names[i], i == COL_PHASE ? 1 : i == COL_LAYER ? TRACE_MAX_LAYERS - 1 : INT64_MAX,
			    &v[i], err))
			return -1;
	bool new_turn = !r->under_way || v[COL_TURN] != r->turn;
	bool new_step = new_turn || v[COL_PHASE] != r->phase || (r->phase && v[COL_STEP] != r->step);
	if (r->under_way && (v[COL_TURN] < r->turn || (v[COL_TURN] == r->turn && v[COL_PHASE] < r->phase)))
		return csv_error(csv, &f[COL_TURN], err, "a turn that is over comes back");
	if (!new_turn && r->phase && v[COL_PHASE] && v[COL_STEP] < r->step)
		return csv_error(csv, &f[COL_STEP], err, "a step that is over comes back");
	if (new_step && end_step(r, err))
		return -1;
	if (new_turn)
		trace_import_new_sequence(r->im);
	r->turn = v[COL_TURN];
	r->phase = v[COL_PHASE];
	r->step = v[COL_STEP];
	r->under_way = true;
	count_token(r, v[COL_LAYER], v[COL_STEP]);
	return trace_import_use(r->im, v[COL_LAYER], v[COL_EXPERT], 1, err);
}

static int read_all(struct trace_import *im, struct err *err)
{
	static const char *const columns[] = {"turn", "phase", "step", "layer", "expert"};
	struct route *r = arena_new(im->arena, struct route);
	struct csv csv;
	struct csv_field f[COL_N];
	int more;

	r->im = im;
	if (read_comments(r, err) || csv_stream(&csv, &im->lines, columns, COL_N, 0, im->arena, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0)
		if (read_row(r, &csv, f, err))
			return -1;
	im->n_expert_used = r->n_expert_used;
	return more < 0 ? -1 : end_step(r, err);
}

const struct trace_format trace_format_route = {
	.name = "route-trace",
	.help = "Helldez/BigMoeOnEdge's routing trace, with byte sizes",
	.example = "# route_trace v1",
	.kind = OTR_STEPS,
	.one_sequence = true,
	.sniff = sniff,
	.read = read_all,
};
