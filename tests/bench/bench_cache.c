/*
 * bench_cache.c - accesses per CPU second of replaying a trace of experts: 48 layers, 8 of 128 experts each, half of which the
 * step before used too, through caches that hold three tenths of them.
 *
 *	bench_cache [STEPS [FILE]]     with FILE the trace is kept there
 */
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "sim/cache/replay.h"

#define LAYERS 48
#define EXPERTS 128
#define USED 8
#define EXPERT_BYTES 3059712

static void make_step(struct trace_access *access, gsl_rng *rng)
{
	for (int l = 0; l < LAYERS; l++) {
		for (int k = 0; k < USED; k++) {
			struct trace_access *x = &access[l * USED + k];
			/* Low numbers are popular. */
			uint32_t among = 1 + (uint32_t)gsl_rng_uniform_int(rng, EXPERTS);
			if (gsl_rng_uniform_int(rng, 2))
				x->expert = (uint32_t)gsl_rng_uniform_int(rng, among);
			x->kind = TRACE_EXPERT;
			x->group = MODEL_EXPERTS;
			x->layer = (int16_t)l;
			x->tokens = 1;
		}
	}
}

static int write_file(const char *path, uint64_t n_steps, struct arena *a, struct err *err)
{
	struct otr_layer layer[LAYERS];
	struct otr_info info = {.kind = OTR_STEPS, .model = "", .source = "", .licence = "", .note = "", .n_layer = LAYERS,
		.layer = layer, .experts_only = true};
	struct trace_access access[LAYERS * USED] = {0};
	struct trace_step step = {.phase = TRACE_DECODE, .n_sequences = 1, .n_tokens = 1, .n_sampled = 1, .access = access,
		.n_access = ARRAY_LEN(access)};
	struct otr_writer *w;
	gsl_rng *rng = rng_new(1, 3, RNG_TEST);

	for (int l = 0; l < LAYERS; l++)
		layer[l] = (struct otr_layer){EXPERTS, USED, EXPERT_BYTES, 0};
	if (!rng)
		return err_set(err, ERR_NOMEM, "out of memory");
	if (otr_create(path, &info, a, &w, err))
		return -1;
	for (uint64_t i = 0; i < n_steps; i++) {
		make_step(access, rng);
		step.index = step.context = i;
		if (otr_put_step(w, &step, err)) {
			otr_abort(w);
			return -1;
		}
	}
	gsl_rng_free(rng);
	return otr_commit(w, err);
}

static void print_rate(const char *what, uint64_t accesses, clock_t began)
{
	printf("%s\t%.1f\tmillion accesses/s of CPU\n", what,
		(double)accesses / ((double)(clock() - began) / CLOCKS_PER_SEC) / 1e6);
}

static int measure(const char *path, struct arena *a, struct err *err)
{
	struct survey_options options = {.future = true, .future_limit_bytes = UINT64_C(1) << 32};
	struct otr_reader *r;
	struct survey s;
	struct trace_step step;
	uint64_t n = 0;
	char what[64];
	int got;

	if (otr_open(path, a, &r, err))
		return -1;
	clock_t began = clock();
	while ((got = otr_next_step(r, &step, err)) > 0)
		n += step.n_access;
	print_rate("experts: reading alone", n, began);
	began = clock();
	if (got || survey_take(&s, r, &options, a, err))
		return -1;
	print_rate("experts: survey, with a future", n, began);
	for (size_t p = 0; cache_policy_at(p); p++) {
		for (int scope = 0; scope < 2; scope++) {
			struct replay x = {.policy = cache_policy_at(p), .scope = (enum cache_scope)scope,
				.size = UINT64_C(3) * LAYERS * EXPERTS * EXPERT_BYTES / 10};
			began = clock();
			if (replay_run(&x, 1, &s, r, &options.watch, a, err))
				return -1;
			snprintf(what, sizeof(what), "experts: %s, %s, %.1f %% hits", x.policy->name,
				cache_scope_name(x.scope), 100 * (double)x.hits / (double)x.lookups);
			print_rate(what, n, began);
		}
	}
	otr_close(r);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t n_steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
	char temporary[] = "/tmp/offsim-bench-XXXXXX";
	const char *path = argc > 2 ? argv[2] : temporary;
	struct arena a;
	struct err err;
	int rc;

	arena_init(&a, NULL, NULL);
	if (argc <= 2)
		close(mkstemp(temporary));
	rc = write_file(path, n_steps, &a, &err) || measure(path, &a, &err);
	if (rc)
		err_print(&err, stderr);
	if (argc <= 2)
		unlink(temporary);
	arena_release(&a);
	return rc != 0;
}
