/*
 * trace_in_sglang.c - SGLang's ExpertDistributionRecorder, modes per_token and per_pass, as JSON.
 *
 * SGLang writes torch files (.pt); `offsim trace import --help` says how to make JSON of one. Read are records[]: rank (those of the first one's alone, for others saw the same tokens), forward_mode (2: decode,
 * 4: idle, all else: prefill; where it is missing --decode-rows decides), extend_seq_lens, and either
 *
 *	per_token   topk_ids_of_layer[layer][token][k], -1: unused           in order of use
 *	per_pass    global_physical_count[layer][expert]                     in order of the experts' numbers
 *
 * Physical experts are brought back to logical ones by last_physical_to_logical_map[layer][physical], if it is there.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "sim/trace/trace_format.h"

enum { FORWARD_DECODE = 2, FORWARD_IDLE = 4 };

struct sglang {
	struct trace_import *im;
	const json_t *map; /* NULL: physical experts are logical ones */
	size_t record;     /* under way, from 1 */
	uint64_t rank;     /* of the first record */
};

static bool sniff(const struct trace_head *head)
{
	return trace_head_begins(head, '{') && trace_head_has(head, "\"records\"") &&
	       (trace_head_has(head, "\"topk_ids_of_layer\"") || trace_head_has(head, "\"global_physical_count\"") ||
		       trace_head_has(head, "\"forward_pass_id\""));
}

static int wrong(const struct sglang *s, struct err *err, const char *what)
{
	return trace_import_error(s->im, 0, err, "record %zu: %s", s->record, what);
}

/* The experts of one layer, token by token; *n_tokens: how many there are. */
static int read_topk(struct sglang *s, size_t layer, const json_t *tokens, uint64_t *n_tokens, struct err *err)
{
	const json_t *token, *id;
	size_t t, k;

	if (!json_is_array(tokens))
		return wrong(s, err, "'topk_ids_of_layer' must be [layer][token][k]");
	json_array_foreach(tokens, t, token) {
		uint32_t n = 0;
		if (!json_is_array(token))
			return wrong(s, err, "'topk_ids_of_layer' must be [layer][token][k]");
		json_array_foreach(token, k, id) {
			json_int_t expert = json_integer_value(id);
			if (!json_is_integer(id) || expert < -1)
				return wrong(s, err, "'topk_ids_of_layer' must hold whole numbers, -1 or more");
			if (expert >= 0 && trace_import_use(s->im, layer, (uint64_t)expert, 1, err))
				return -1;
			n += expert >= 0;
		}
		if (n > s->im->n_expert_used)
			s->im->n_expert_used = n;
	}
	*n_tokens = t;
	return 0;
}

/* The number of a physical expert among the logical ones. */
static int logical(const struct sglang *s, size_t layer, size_t physical, uint64_t *expert, struct err *err)
{
	const json_t *to = json_array_get(json_array_get(s->map, layer), physical);

	*expert = physical;
	if (!s->map)
		return 0;
	if (!json_is_integer(to) || json_integer_value(to) < 0)
		return wrong(s, err, "an expert that 'last_physical_to_logical_map' does not have");
	*expert = (uint64_t)json_integer_value(to);
	return 0;
}

/* *n_uses: of all experts of the layer. */
static int read_counts(struct sglang *s, size_t layer, const json_t *counts, uint64_t *n_uses, struct err *err)
{
	const json_t *count;
	size_t e;

	*n_uses = 0;
	if (!json_is_array(counts))
		return wrong(s, err, "'global_physical_count' must be [layer][expert]");
	json_array_foreach(counts, e, count) {
		json_int_t n = json_integer_value(count);
		uint64_t expert;
		if (!json_is_integer(count) || n < 0 || (uint64_t)n > TRACE_MAX_TOKENS)
			return wrong(s, err, "'global_physical_count' must hold counts");
		if (n == 0)
			continue;
		*n_uses += (uint64_t)n;
		if (logical(s, layer, e, &expert, err) || trace_import_use(s->im, layer, expert, (uint64_t)n, err))
			return -1;
	}
	return 0;
}

static int read_experts(struct sglang *s, const json_t *o, uint64_t *n_tokens, struct err *err)
{
	const json_t *topk = json_object_get(o, "topk_ids_of_layer"), *counts = json_object_get(o, "global_physical_count");
	const json_t *layers = topk ? topk : counts, *of_layer;
	size_t layer;

	*n_tokens = 0;
	if (!json_is_array(layers))
		return wrong(s, err, "neither 'topk_ids_of_layer' nor 'global_physical_count'");
	if (!topk)
		trace_import_remark(s->im, "passes with counts alone: experts taken by number, rows as all uses of a layer", 1);
	json_array_foreach(layers, layer, of_layer) {
		uint64_t n = 0;
		if (topk ? read_topk(s, layer, of_layer, &n, err) : read_counts(s, layer, of_layer, &n, err))
			return -1;
		if (n > *n_tokens)
			*n_tokens = n;
	}
	return 0;
}

static int read_record(struct sglang *s, const json_t *o, struct err *err)
{
	struct trace_import *im = s->im;
	uint64_t n_tokens, mode, rank;
	const json_t *lens = json_object_get(o, "extend_seq_lens");

	if (!json_is_object(o))
		return wrong(s, err, "must be an object");
	if (json_get_count_or(o, im->path, "rank", 0, 0, UINT32_MAX, &rank, err) ||
		json_get_count_or(o, im->path, "forward_mode", 0, 0, UINT32_MAX, &mode, err))
		return err_prefix(err, "record %zu", s->record);
	if (s->record == 1)
		s->rank = rank;
	if (rank != s->rank) {
		trace_import_remark(im, "records of other ranks left out", 1);
		return 0;
	}
	if (read_experts(s, o, &n_tokens, err))
		return -1;
	if (n_tokens == 0 || mode == FORWARD_IDLE) {
		trace_import_remark(im, "records with no tokens left out", 1);
		trace_import_discard(im);
		return 0;
	}
	bool decode = mode ? mode == FORWARD_DECODE : n_tokens <= trace_import_decode_rows(im);
	uint64_t n_sequences = decode ? n_tokens : json_array_size(lens) ? json_array_size(lens) : 1;
	return trace_import_step(im, decode ? TRACE_DECODE : TRACE_PREFILL, n_sequences, n_tokens, err);
}

static int read_records(struct sglang *s, const json_t *root, struct err *err)
{
	const json_t *records = json_object_get(root, "records"), *map = json_object_get(root, "last_physical_to_logical_map"), *o;
	size_t i;

	if (!json_is_array(records))
		return trace_import_error(s->im, 0, err, "'records' must be an array (modes per_token and per_pass have it)");
	s->map = json_is_null(map) ? NULL : map;
	json_array_foreach(records, i, o) {
		s->record = i + 1;
		if (read_record(s, o, err))
			return -1;
	}
	return 0;
}

static int read_all(struct trace_import *im, struct err *err)
{
	struct sglang s = {.im = im};
	json_t *root;

	if (json_read_file(im->path, TRACE_MAX_DOCUMENT, &root, err))
		return -1;
	int rc = read_records(&s, root, err);
	json_decref(root);
	return rc;
}

const struct trace_format trace_format_sglang = {
	.name = "sglang-experts",
	.help = "SGLang's ExpertDistributionRecorder (per_token, per_pass), exported to JSON",
	.example = "{\"records\": [{\"forward_mode\": 2, \"topk_ids_of_layer\": [[[3, 12]]]}]}",
	.kind = OTR_STEPS,
	.guesses_phases = true,
	.sniff = sniff,
	.read = read_all,
};
