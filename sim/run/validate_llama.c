/*
 * validate_llama.c - tests of llama-bench as rows. One file is one machine, so one group: pairs of it are ordered.
 */
#include <math.h>
#include <string.h>

#include "sim/engine/engine_table.h"
#include "sim/run/kernels.h"
#include "sim/run/llama_case.h"
#include "sim/run/validate_rows.h"

static enum validate_metric metric_of(enum result_field_id field)
{
	return field == RESULT_DECODE_TOK_S ? VALIDATE_DECODE : field == RESULT_PREFILL_TOK_S ? VALIDATE_PREFILL : VALIDATE_E2E;
}

/* The same test twice is the same point, not a pair. */
static const char *identity(const struct bench_row *b, const struct llama_case *c)
{
	return c->scenario ? c->scenario : b->what;
}

static void add_row(const struct bench *bench, const struct bench_row *b, const struct llama_case *c,
	const struct validate_options *o, struct arena *a, struct validate_rows *rows)
{
	struct validate_row row = {
		.id = arena_printf(a, "%d", b->line),
		.group = bench->file,
		.source = bench->file,
		.engine = b->llama->ik ? "ik_llama.cpp" : "llama.cpp",
		.model = b->what,
		.tier = "",
		.metric = metric_of(c->field),
		.scored = c->scenario != NULL,
		.status = c->scenario ? VALIDATE_OK : VALIDATE_SKIPPED,
		.reason = c->reason, .assumed = c->assumed, .identity = identity(b, c),
		.measured = b->value, .predicted = NAN, .low80 = NAN, .high80 = NAN, .upper_bound = NAN, .thumb = NAN,
		.scenario = c->scenario, .where = arena_printf(a, "%s:%d", bench->file, b->line), .field = c->field,
		.scale = c->scale,
	};

	if (!validate_wants(o, row.engine)) {
		row.status = VALIDATE_SKIPPED;
		row.reason = "of another engine";
		row.scored = false;
	}
	VEC_PUSH(rows, a, row);
}

int validate_read_llama(const char *path, const struct validate_options *o, struct arena *a, struct validate_rows *rows,
	struct err *err)
{
	struct llama_cards *cards;
	struct bench bench;
	struct hw_machine *m;
	struct cost *cost;

	if (!o->machine)
		return err_set(err, ERR_USAGE, "llama-bench does not say what machine it ran on: name one with --machine");
	/* The machine is loaded for each row again; what is wrong with it is said once. */
	if (hw_machine_load(o->machine, a, &m, err) || cost_load(engine_llamacpp.kernels, m, a, &cost, err) ||
		kernels_apply(m, engine_llamacpp.kernels, cost, a, err) ||
		bench_read_file(path, &bench_llama_bench, a, &bench, err) || llama_cards_load(o->model, o->n_models, a, &cards, err))
		return -1;
	const char *machine = llama_case_quoted(a, llama_case_named(a, o->machine));
	const struct bench_row **row = arena_array(a, const struct bench_row *, bench.n);
	size_t *first = arena_array(a, size_t, bench.n);
	for (size_t i = 0; i < bench.n; i++)
		row[i] = &bench.at[i];
	bench_find_copies(row, bench.n, a, first);
	for (size_t i = 0; i < bench.n; i++) {
		struct llama_case c;
		llama_case_make(bench.at[i].llama, machine, cards, a, &c);
		if (first[i] < i) {
			c.scenario = NULL;
			c.reason = arena_printf(a, "the same measurement as line %d", row[first[i]]->line);
		}
		add_row(&bench, &bench.at[i], &c, o, a, rows);
	}
	return 0;
}
