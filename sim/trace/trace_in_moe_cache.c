/*
 * trace_in_moe_cache.c - the routing log of jiro-prog/llamacpp-moe-expert-cache: "pass layer rows expert …".
 *
 * With one row the experts come in the router's order; with more, each distinct one once, by number, and how many rows
 * use it is not said. The phase is not said either: passes of at most --decode-rows rows are decode steps. Runs are
 * appended to one file, so the number of a pass may go back.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/trace/trace_format.h"

struct moe_cache {
	struct trace_import *im;
	int64_t pass, layer;
	uint64_t n_tokens; /* the most rows of a layer: the last one may see those alone that give output */
	bool under_way;
};

static bool sniff(const struct trace_head *head)
{
	size_t n_words = 0;

	for (size_t i = 0; i < head->first_len; i++) {
		if (!head->text[i] || !strchr("0123456789 \r", head->text[i]))
			return false;
		n_words += head->text[i] != ' ' && (i == 0 || head->text[i - 1] == ' ');
	}
	return n_words >= 4;
}

static int end_pass(struct moe_cache *m, struct err *err)
{
	if (!m->under_way)
		return 0;
	bool decode = m->n_tokens <= trace_import_decode_rows(m->im);
	return trace_import_step(m->im, decode ? TRACE_DECODE : TRACE_PREFILL, decode ? m->n_tokens : 1, m->n_tokens, err);
}

static int begin_layer(struct moe_cache *m, int64_t pass, int64_t layer, int64_t rows, struct err *err)
{
	if (!m->under_way || pass != m->pass || layer <= m->layer) {
		if (end_pass(m, err))
			return -1;
		if (m->under_way && pass < m->pass)
			trace_import_new_sequence(m->im);
		m->n_tokens = 0;
	}
	if ((uint64_t)rows > m->n_tokens)
		m->n_tokens = (uint64_t)rows;
	m->pass = pass;
	m->layer = layer;
	m->under_way = true;
	return 0;
}

static int read_line(struct moe_cache *m, const char *line, struct err *err)
{
	struct trace_import *im = m->im;
	const char *at = line;
	int64_t pass, layer, rows, expert;
	uint32_t n = 0;

	if (trace_import_int(im, line, &at, &pass, err) || trace_import_int(im, line, &at, &layer, err) ||
		trace_import_int(im, line, &at, &rows, err))
		return -1;
	if (pass < 0 || layer < 0 || rows < 1 || (uint64_t)rows > TRACE_MAX_TOKENS)
		return trace_import_error(im, 0, err, "pass, layer and rows must be whole numbers, and rows at least 1");
	if (begin_layer(m, pass, layer, rows, err))
		return -1;
	for (; at[strspn(at, " \t")]; n++) {
		if (trace_import_int(im, line, &at, &expert, err))
			return -1;
		if (expert < 0)
			return trace_import_error(im, 0, err, "expert %" PRId64 " is negative", expert);
		if (trace_import_use(im, (uint64_t)layer, (uint64_t)expert, 1, err))
			return -1;
	}
	if (n == 0)
		return trace_import_error(im, 0, err, "no experts");
	if (rows > 1) {
		trace_import_remark(im, "layers that several rows passed, where each expert is named once and taken as of one row", 1);
		return 0;
	}
	if (im->n_expert_used == 0)
		im->n_expert_used = n;
	if (n != im->n_expert_used)
		return trace_import_error(im, 0, err, "%" PRIu32 " experts for one row where others have %" PRIu32, n,
			im->n_expert_used);
	return 0;
}

static int read_all(struct trace_import *im, struct err *err)
{
	struct moe_cache m = {.im = im};
	char *text;
	size_t len;
	int more;

	while ((more = lines_next(&im->lines, &text, &len, err)) > 0)
		if (len && read_line(&m, text, err))
			return -1;
	return more < 0 ? -1 : end_pass(&m, err);
}

const struct trace_format trace_format_moe_cache = {
	.name = "llamacpp-moe-cache",
	.help = "jiro-prog/llamacpp-moe-expert-cache's log: pass layer rows experts",
	.example = "17 0 1 83 102 60 49 19 22",
	.kind = OTR_STEPS,
	.one_sequence = true,
	.guesses_phases = true,
	.sniff = sniff,
	.read = read_all,
};
