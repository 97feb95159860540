/*
 * trace_in_moe_csv.c - llama-moe-trace of llama.cpp's forks: "position,layer,expert,expert,…", no header.
 *
 * The tool (examples/moe-trace in forks that carry an expert cache) writes a row for each token and layer, as the graph
 * is computed: all tokens of a micro-batch for one layer, then for the next. Positions of the prompt are negative.
 * Experts come in the router's order. A new pass begins where layers or, within a layer, positions go back.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/trace/trace_format.h"

struct moe_csv {
	struct trace_import *im;
	int64_t position, layer; /* of the row before */
	uint64_t n_rows, n_tokens; /* of its layer; of the fullest one of its pass */
	bool under_way;
};

static bool sniff(const struct trace_head *head)
{
	size_t n_commas = 0;

	for (size_t i = 0; i < head->first_len; i++) {
		if (!head->text[i] || !strchr("-0123456789,\r", head->text[i]))
			return false;
		n_commas += head->text[i] == ',';
	}
	return n_commas >= 2;
}

static int end_pass(struct moe_csv *m, struct err *err)
{
	if (!m->under_way)
		return 0;
	return trace_import_step(m->im, m->position < 0 ? TRACE_PREFILL : TRACE_DECODE, 1, m->n_tokens, err);
}

/* A row begins: does it belong to the pass under way? */
static int begin_row(struct moe_csv *m, int64_t position, int64_t layer, struct err *err)
{
	bool prompt = position < 0, was_prompt = m->position < 0;
	bool new_pass = !m->under_way || prompt != was_prompt || layer < m->layer ||
			(prompt ? layer == m->layer && position <= m->position : position != m->position);

	if (new_pass) {
		if (end_pass(m, err))
			return -1;
		if (m->under_way && (prompt ? !was_prompt : !was_prompt && position < m->position))
			trace_import_new_sequence(m->im);
		m->n_tokens = 0;
	}
	m->n_rows = new_pass || layer != m->layer ? 1 : m->n_rows + 1;
	if (m->n_rows > m->n_tokens)
		m->n_tokens = m->n_rows;
	m->position = position;
	m->layer = layer;
	m->under_way = true;
	return 0;
}

static int read_row(struct moe_csv *m, const char *line, struct err *err)
{
	struct trace_import *im = m->im;
	const char *at = line;
	int64_t position, layer, expert;
	uint32_t n = 0;

	if (trace_import_int(im, line, &at, &position, err))
		return -1;
	if (*at++ != ',')
		return trace_import_error(im, (int)(at - line), err, "a comma and a layer should follow");
	if (trace_import_int(im, line, &at, &layer, err))
		return -1;
	if (layer < 0)
		return trace_import_error(im, 0, err, "layer %" PRId64 " is negative", layer);
	if (begin_row(m, position, layer, err))
		return -1;
	for (; *at == ','; n++) {
		at++;
		if (trace_import_int(im, line, &at, &expert, err))
			return -1;
		if (expert < 0)
			return trace_import_error(im, 0, err, "expert %" PRId64 " is negative", expert);
		if (trace_import_use(im, (uint64_t)layer, (uint64_t)expert, 1, err))
			return -1;
	}
	if (*at)
		return trace_import_error(im, (int)(at - line) + 1, err, "'%.20s' where a comma or the end should be", at);
	if (im->n_expert_used == 0)
		im->n_expert_used = n;
	if (n == 0 || n != im->n_expert_used)
		return trace_import_error(im, 0, err, "%" PRIu32 " experts where the first row has %" PRIu32, n, im->n_expert_used);
	return 0;
}

static int read_all(struct trace_import *im, struct err *err)
{
	struct moe_csv m = {.im = im};
	char *text;
	size_t len;
	int more;

	while ((more = lines_next(&im->lines, &text, &len, err)) > 0)
		if (len && read_row(&m, text, err))
			return -1;
	return more < 0 ? -1 : end_pass(&m, err);
}

const struct trace_format trace_format_moe_csv = {
	.name = "moe-csv",
	.help = "llama-moe-trace of llama.cpp's forks: position,layer,experts",
	.example = "-29,0,83,102,60,49,19,22",
	.kind = OTR_STEPS,
	.one_sequence = true,
	.sniff = sniff,
	.read = read_all,
};
