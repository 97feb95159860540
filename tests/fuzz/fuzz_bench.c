/*
 * fuzz_bench.c - any bytes as the output of a benchmark program.
 *
 * The first byte chooses the reader, or that it is guessed; the rest is the text. What is read must keep its promises:
 * values positive and finite, a line inside the text, words, and a reason where nothing can be made of it.
 */
#include <math.h>
#include <string.h>

#include "hw/bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_lines(const uint8_t *data, size_t size)
{
	int n = 1;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

static void check_llama(const struct bench_llama *l)
{
	if (l->n_prompt < 0 || l->n_gen < 0 || l->n_depth < 0 || l->n_prompt + l->n_gen <= 0)
		BUG("a test of nothing");
	if (!l->model_type || !l->model_filename || !l->type_k || !l->type_v || !l->tensor_buft_overrides || !l->test_time)
		BUG("a text is missing");
}

static void check_row(const struct bench_row *r, int lines)
{
	if (!(r->value > 0) || !isfinite(r->value) || !(r->spread >= 0))
		BUG("%s is %g with a spread of %g", r->what, r->value, r->spread);
	if (r->line < 1 || r->line > lines)
		BUG("line %d of %d", r->line, lines);
	if ((r->kind == BENCH_OTHER) != (r->unused != NULL) || (r->kind == BENCH_TOKENS) != (r->llama != NULL))
		BUG("%s: kind %d", r->what, (int)r->kind);
	if (r->llama)
		check_llama(r->llama);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct bench b;
	struct err err = {0};

	if (size == 0)
		return 0;
	arena_init(&a, NULL, NULL);
	if (bench_read_text((const char *)data + 1, size - 1, "f", bench_format_at(data[0] % 8u), &a, &b, &err)) {
		if (err.code != ERR_INPUT || !err.msg[0])
			BUG("refused without a message");
	} else {
		const struct bench_row **row = arena_array(&a, const struct bench_row *, b.n);
		size_t *first = arena_array(&a, size_t, b.n);
		for (size_t i = 0; i < b.n; i++) {
			check_row(&b.at[i], count_lines(data + 1, size - 1));
			row[i] = &b.at[i];
		}
		bench_find_copies(row, b.n, &a, first);
		for (size_t i = 0; i < b.n; i++)
			if (first[i] > i || first[first[i]] != first[i])
				BUG("a copy of a later one");
	}
	arena_release(&a);
	return 0;
}
