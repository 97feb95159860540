#include "sim/trace/otr.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/rng.h"
#include "sim/trace/otr_code.h"
#include "tests/test.h"

static struct arena arena;
static char folder[64];

static void setup(void)
{
	arena_init(&arena, NULL, NULL);
	strcpy(folder, "/tmp/offsim-otr-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
	arena_release(&arena);
}

static const char *path_of(const char *name)
{
	return arena_printf(&arena, "%s/%s", folder, name);
}

/* ---- steps to write ---- */

struct steps {
	VEC(struct trace_step);
};

static struct otr_info info_of(uint32_t n_layer, uint32_t n_expert, uint32_t n_used)
{
	struct otr_info info = {
		.kind = OTR_STEPS,
		.model = "Mixtrål 8×7B",
		.source = "someone/somewhere:a path",
		.licence = "CC-BY-4.0",
		.note = "",
		.n_layer = n_layer,
		.layer = arena_array(&arena, struct otr_layer, n_layer),
		.workload = {.batch = 3, .prompt = 517, .generate = 29, .depth = 11},
	};

	for (uint32_t i = 0; i < n_layer; i++)
		info.layer[i] = (struct otr_layer){n_expert, n_used, 123456789 + i, 987654321};
	return info;
}

struct shape {
	int n_layer;
	uint32_t n_expert, n_used;
	uint64_t batch;
	int window_every; /* layers; 0: none */
};

struct making {
	VEC(struct trace_access);
};

static void push(struct making *m, struct trace_access a)
{
	VEC_PUSH(m, &arena, a);
}

/* A decode step as a recorder would see it: experts in order of use. */
static struct trace_step decode_step(const struct shape *s, uint64_t index, gsl_rng *rng)
{
	struct making m = {0};
	uint64_t context = 517 + index;

	push(&m, (struct trace_access){.layer = MODEL_NO_LAYER, .group = MODEL_EMBED, .tokens = s->batch});
	for (int16_t l = 0; l < s->n_layer; l++) {
		uint64_t held = s->window_every && l % s->window_every ? 128 : context + 1;
		push(&m, (struct trace_access){.layer = l, .group = MODEL_ATTN, .tokens = s->batch});
		push(&m, (struct trace_access){
				 .layer = l, .kind = TRACE_KV_WRITE, .group = MODEL_ATTN, .tokens = s->batch});
		push(&m, (struct trace_access){.layer = l,
				 .kind = TRACE_KV_READ,
				 .group = MODEL_ATTN,
				 .tokens = s->batch,
				 .kv_tokens = s->batch * held,
				 .kv_pairs = (double)(s->batch * held)});
		push(&m, (struct trace_access){.layer = l, .group = MODEL_ROUTER, .tokens = s->batch});
		push(&m, (struct trace_access){.layer = l, .group = MODEL_SHARED, .tokens = s->batch});
		for (uint32_t e = 0; e < s->n_used; e++) {
			push(&m, (struct trace_access){.layer = l,
					 .kind = TRACE_EXPERT,
					 .group = MODEL_EXPERTS,
					 .expert = (uint32_t)gsl_rng_uniform_int(rng, s->n_expert),
					 .tokens = 1 + (s->batch > 1 ? gsl_rng_uniform_int(rng, s->batch) : 0)});
		}
	}
	push(&m, (struct trace_access){.layer = MODEL_NO_LAYER, .group = MODEL_OUTPUT, .tokens = s->batch});
	return (struct trace_step){.phase = TRACE_DECODE,
		.index = index,
		.n_sequences = s->batch,
		.n_tokens = s->batch,
		.n_sampled = s->batch,
		.context = context,
		.access = m.at,
		.n_access = m.n};
}

static struct steps decode_steps(const struct shape *s, uint64_t n)
{
	struct steps steps = {0};
	gsl_rng *rng = rng_new(7, (uint64_t)s->n_layer, RNG_TEST);

	for (uint64_t i = 0; i < n; i++)
		VEC_PUSH(&steps, &arena, decode_step(s, i, rng));
	gsl_rng_free(rng);
	return steps;
}

/* Any bits at all that a file may hold. */
static struct steps wild_steps(uint64_t n, uint32_t n_layer, uint32_t n_expert)
{
	struct steps steps = {0};
	gsl_rng *rng = rng_new(8, n, RNG_TEST);

	for (uint64_t i = 0; i < n; i++) {
		struct making m = {0};
		size_t n_access = gsl_rng_uniform_int(rng, 40);
		for (size_t k = 0; k < n_access; k++) {
			static const double odd[] = {0, -0.0, 2.385, 1e300, -17, 0x1p53, NAN, INFINITY, 12345678};
			struct trace_access a = {
				.layer = (int16_t)((int)gsl_rng_uniform_int(rng, n_layer + 1) - 1),
				.kind = (uint8_t)gsl_rng_uniform_int(rng, 4),
				.group = (uint8_t)gsl_rng_uniform_int(rng, MODEL_GROUP_N),
				.expert = (uint32_t)gsl_rng_uniform_int(rng, n_expert),
				.tokens = rng_mix(i * 1000 + k) >> gsl_rng_uniform_int(rng, 64),
			};
			if (gsl_rng_uniform_int(rng, 3) == 0) {
				a.kv_tokens = rng_mix(k) >> gsl_rng_uniform_int(rng, 64);
				a.kv_pairs = odd[gsl_rng_uniform_int(rng, ARRAY_LEN(odd))];
			}
			size_t repeats = a.kind == TRACE_EXPERT ? gsl_rng_uniform_int(rng, 5) + 1 : 1;
			for (size_t j = 0; j < repeats; j++) {
				push(&m, a);
				if (gsl_rng_uniform_int(rng, 2))
					a.expert = (uint32_t)gsl_rng_uniform_int(rng, n_expert);
			}
		}
		VEC_PUSH(&steps, &arena,
			((struct trace_step){
				.phase = (enum trace_phase)gsl_rng_uniform_int(rng, 2),
				.index = rng_mix(i) >> gsl_rng_uniform_int(rng, 64),
				.n_sequences = gsl_rng_uniform_int(rng, 3),
				.n_tokens = rng_mix(i + 1) >> gsl_rng_uniform_int(rng, 64),
				.n_sampled = gsl_rng_uniform_int(rng, 5),
				.context = rng_mix(i + 2) >> gsl_rng_uniform_int(rng, 64),
				.access = m.at,
				.n_access = m.n}));
	}
	gsl_rng_free(rng);
	return steps;
}

static const char *write_steps(const char *name, const struct otr_info *info, const struct steps *steps)
{
	struct otr_writer *w;
	struct err err = {0};
	const char *path = path_of(name);

	assert_ok(otr_create(path, info, &arena, &w, &err), err);
	for (size_t i = 0; i < steps->n; i++)
		assert_ok(otr_put_step(w, &steps->at[i], &err), err);
	assert_ok(otr_commit(w, &err), err);
	return path;
}

static void assert_same_step(const struct trace_step *got, const struct trace_step *want)
{
	ck_assert_uint_eq(got->phase, want->phase);
	ck_assert_uint_eq(got->index, want->index);
	ck_assert_uint_eq(got->n_sequences, want->n_sequences);
	ck_assert_uint_eq(got->n_tokens, want->n_tokens);
	ck_assert_uint_eq(got->n_sampled, want->n_sampled);
	ck_assert_uint_eq(got->context, want->context);
	ck_assert_uint_eq(got->n_access, want->n_access);
	for (size_t k = 0; k < want->n_access; k++) {
		const struct trace_access *a = &got->access[k], *b = &want->access[k];
		ck_assert_msg(a->layer == b->layer && a->kind == b->kind && a->group == b->group &&
				a->expert == b->expert && a->tokens == b->tokens &&
				a->kv_tokens == b->kv_tokens &&
				memcmp(&a->kv_pairs, &b->kv_pairs, sizeof(double)) == 0,
			"access %zu of %zu: layer %d kind %u group %u expert %u tokens %llu kv %llu %.17g, not "
			"%d %u %u %u %llu %llu %.17g",
			k, want->n_access, a->layer, a->kind, a->group, a->expert, (unsigned long long)a->tokens,
			(unsigned long long)a->kv_tokens, a->kv_pairs, b->layer, b->kind, b->group, b->expert,
			(unsigned long long)b->tokens, (unsigned long long)b->kv_tokens, b->kv_pairs);
	}
}

static void assert_reads(const char *path, const struct steps *steps)
{
	struct otr_reader *r;
	struct trace_step step;
	struct err err = {0};

	assert_ok(otr_open(path, &arena, &r, &err), err);
	ck_assert_uint_eq(otr_n_records(r), steps->n);
	for (size_t i = 0; i < steps->n; i++) {
		int got = otr_next_step(r, &step, &err);
		ck_assert_msg(got == 1, "step %zu: %d %s", i, got, err.msg);
		assert_same_step(&step, &steps->at[i]);
	}
	ck_assert_int_eq(otr_next_step(r, &step, &err), 0);
	otr_close(r);
}

START_TEST(keeps_every_field)
{
	setup();
	struct otr_info info = info_of(5, 300, 4);
	struct steps steps = wild_steps(3000, 5, 300);
	assert_reads(write_steps("wild.otr", &info, &steps), &steps);
	teardown();
}
END_TEST

START_TEST(a_decode_step_of_61_layers_is_small)
{
	setup();
	struct shape shape = {61, 256, 8, 1, 0};
	struct otr_info info = info_of(61, 256, 8);
	struct steps steps = decode_steps(&shape, 100);
	struct otr_coder coder;
	struct otr_bytes bytes = {0};
	size_t most = 0;

	otr_coder_init(&coder, &info, &arena);
	for (size_t i = 0; i < steps.n; i++) {
		size_t before = bytes.n;
		ck_assert_int_eq(otr_encode_step(&coder, &steps.at[i], &bytes), 0);
		if (i > 0 && bytes.n - before > most)
			most = bytes.n - before;
	}
	ck_assert_uint_le(most, 800);
	assert_reads(write_steps("small.otr", &info, &steps), &steps);
	teardown();
}
END_TEST

TEST_MAIN("otr", keeps_every_field, a_decode_step_of_61_layers_is_small)
