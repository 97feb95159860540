/*
 * offsim.c - the public library over the run layer.
 *
 * Arenas never return NULL; where the command line exits, the library must come back. This file holds the one setjmp of the
 * program: each call that allocates runs under guard().
 */
#include "sim/offsim.h"

#include <math.h>
#include <setjmp.h>
#include <string.h>

#include "base/vec.h"
#include "sim/run/run.h"

struct offsim_scenario {
	struct arena arena;
	const char *path;
	struct {
		VEC(struct scenario_set);
	} set;
};

struct guard {
	jmp_buf env;
};

static void out_of_memory(void *ctx)
{
	struct guard *g = ctx;

	longjmp(g->env, 1);
}

static int give_error(struct offsim_err *out, const struct err *err)
{
	if (!out)
		return -1;
	if (err->file[0] && err->line)
		snprintf(out->text, sizeof(out->text), "%s:%d:%d: %s", err->file, err->line, err->col, err->msg);
	else if (err->file[0])
		snprintf(out->text, sizeof(out->text), "%s: %s", err->file, err->msg);
	else
		snprintf(out->text, sizeof(out->text), "%s", err->msg);
	return -1;
}

static int no_memory(struct offsim_err *out)
{
	struct err err;

	err_set(&err, ERR_NOMEM, "out of memory");
	return give_error(out, &err);
}

int offsim_load(const char *path, struct offsim_scenario **out, struct offsim_err *err)
{
	struct offsim_scenario *s = calloc(1, sizeof(*s));
	struct guard guard;

	if (!s)
		return no_memory(err);
	arena_init(&s->arena, out_of_memory, &guard);
	if (setjmp(guard.env)) {
		offsim_free(s);
		return no_memory(err);
	}
	s->path = arena_strdup(&s->arena, path);
	*out = s;
	return 0;
}

int offsim_set(struct offsim_scenario *s, const char *key, const char *value, struct offsim_err *err)
{
	struct guard guard;

	s->arena.nomem_ctx = &guard;
	if (setjmp(guard.env))
		return no_memory(err);

	struct scenario_set set = {.key = arena_strdup(&s->arena, key), .value = arena_strdup(&s->arena, value)};
	VEC_PUSH(&s->set, &s->arena, set);
	return 0;
}

static void give_result(struct offsim_result *out, const struct result *r)
{
	*out = (struct offsim_result){
		.fits = r->fits,
		.decode_tok_s = r->value[RESULT_DECODE_TOK_S],
		.prefill_tok_s = r->value[RESULT_PREFILL_TOK_S],
		.e2e_tok_s = r->value[RESULT_E2E_TOK_S],
		.ttft_s = r->value[RESULT_TTFT_S],
		.tpot_s = r->value[RESULT_TPOT_S],
		.total_s = r->value[RESULT_TOTAL_S],
		.upper_bound_tok_s = r->value[RESULT_UPPER_BOUND_TOK_S],
	};
	memcpy(out->key, r->key, sizeof(out->key));
}

int offsim_run(const struct offsim_scenario *s, struct offsim_result *out, struct offsim_err *err)
{
	struct arena arena;
	struct guard guard;
	struct scenario *loaded;
	struct result result;
	struct err fault = {0};
	struct run_options options = {0};

	arena_init(&arena, out_of_memory, &guard);
	if (setjmp(guard.env)) {
		arena_release(&arena);
		return no_memory(err);
	}
	int rc = scenario_load(s->path, s->set.at, s->set.n, &arena, &loaded, &fault) ||
		run_scenario(loaded, &options, &arena, &result, NULL, &fault);
	arena_release(&arena);
	if (rc)
		return give_error(err, &fault);
	give_result(out, &result);
	return 0;
}

void offsim_free(struct offsim_scenario *s)
{
	if (!s)
		return;
	arena_release(&s->arena);
	free(s);
}
