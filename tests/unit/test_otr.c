#include "sim/trace/otr.h"

#include <sys/wait.h>

#include "base/file.h"
#include "base/rng.h"
#include "sim/trace/otr_code.h"
#include "sim/trace/trace_jsonl.h"
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

START_TEST(wide_numbers_of_experts)
{
	setup();
	struct otr_info info = info_of(3, 70000, 6);
	struct steps steps = wild_steps(200, 3, 70000);

	assert_reads(write_steps("wide.otr", &info, &steps), &steps);
	info.n_layer = 0; /* nothing is known of the layers */
	assert_reads(write_steps("unknown.otr", &info, &steps), &steps);
	teardown();
}
END_TEST

START_TEST(windows_cost_next_to_nothing)
{
	setup();
	struct shape shape = {48, 8, 2, 4, 6};
	struct otr_info info = info_of(48, 8, 2);
	struct steps steps = decode_steps(&shape, 50);
	struct otr_coder coder;
	struct otr_bytes bytes = {0};

	otr_coder_init(&coder, &info, &arena);
	for (size_t i = 0; i < steps.n; i++) {
		size_t before = bytes.n;
		ck_assert_int_eq(otr_encode_step(&coder, &steps.at[i], &bytes), 0);
		/* The numbers and tokens of 96 uses, and a dozen bytes, once every layer had a step of different tokens. */
		if (i > 20)
			ck_assert_uint_le(bytes.n - before, 48 * 2 * 2 + 12);
	}
	teardown();
}
END_TEST

START_TEST(keeps_the_head)
{
	setup();
	struct otr_info info = info_of(3, 8, 2);
	struct steps none = {0};
	struct otr_reader *r;
	struct err err = {0};

	info.experts_only = true;
	assert_ok(otr_open(write_steps("head.otr", &info, &none), &arena, &r, &err), err);
	const struct otr_info *got = otr_info(r);
	ck_assert_str_eq(got->model, info.model);
	ck_assert_str_eq(got->source, info.source);
	ck_assert_str_eq(got->licence, info.licence);
	ck_assert_str_eq(got->note, "");
	ck_assert_uint_eq(got->n_layer, 3);
	ck_assert_int_eq(memcmp(got->layer, info.layer, 3 * sizeof(*info.layer)), 0);
	ck_assert_int_eq(memcmp(&got->workload, &info.workload, sizeof(info.workload)), 0);
	ck_assert(got->experts_only);
	ck_assert_uint_eq(otr_n_records(r), 0);
	otr_close(r);
	teardown();
}
END_TEST

START_TEST(seeks_anywhere)
{
	setup();
	struct shape shape = {30, 64, 8, 2, 3};
	struct otr_info info = info_of(30, 64, 8);
	struct steps steps = decode_steps(&shape, 3000); /* several chunks */
	const char *path = write_steps("seek.otr", &info, &steps);
	struct otr_reader *r;
	struct trace_step step;
	struct err err = {0};
	gsl_rng *rng = rng_new(3, 1, RNG_TEST);

	assert_ok(otr_open(path, &arena, &r, &err), err);
	for (int i = 0; i < 60; i++) {
		uint64_t at = gsl_rng_uniform_int(rng, steps.n);
		assert_ok(otr_seek(r, at, &err), err);
		for (uint64_t k = at; k < at + 2 && k < steps.n; k++) {
			ck_assert_int_eq(otr_next_step(r, &step, &err), 1);
			assert_same_step(&step, &steps.at[k]);
		}
	}
	assert_ok(otr_seek(r, steps.n, &err), err);
	ck_assert_int_eq(otr_next_step(r, &step, &err), 0);
	ck_assert_int_eq(otr_seek(r, steps.n + 1, &err), -1);
	assert_err(err, ERR_INPUT, "has no record 3001, only 3000");
	otr_close(r);
	gsl_rng_free(rng);
	teardown();
}
END_TEST

START_TEST(memory_is_that_of_a_chunk)
{
	setup();
	struct shape shape = {30, 64, 8, 2, 3};
	struct otr_info info = info_of(30, 64, 8);
	struct steps steps = decode_steps(&shape, 500);
	struct otr_writer *w;
	struct otr_reader *r;
	struct trace_step step;
	struct arena own;
	struct err err = {0};
	const int times = 40;

	arena_init(&own, NULL, NULL);
	assert_ok(otr_create(path_of("long.otr"), &info, &own, &w, &err), err);
	for (size_t i = 0; i < steps.n * times; i++)
		assert_ok(otr_put_step(w, &steps.at[i % steps.n], &err), err);
	assert_ok(otr_commit(w, &err), err);
	ck_assert_uint_le(own.total_bytes, 4 << 20);
	arena_release(&own);
	assert_ok(otr_open(path_of("long.otr"), &own, &r, &err), err);
	uint64_t n = 0, accesses = 0;
	while (otr_next_step(r, &step, &err) > 0) {
		n++;
		accesses += step.n_access;
	}
	ck_assert_uint_eq(n, steps.n * times);
	ck_assert_uint_eq(accesses, otr_n_accesses(r));
	ck_assert_uint_le(own.total_bytes, 4 << 20);
	otr_close(r);
	arena_release(&own);
	teardown();
}
END_TEST

/* ---- requests ---- */

#define REQUESTS 20000

static struct otr_request request_at(uint64_t i, uint64_t *block)
{
	struct otr_request r = {
		.arrival_ns = i * 2385 + rng_mix(i) % 1000000,
		.input_tokens = rng_mix(i + 1) >> (i * 7 % 64),
		.output_tokens = i % 513,
		.session = i % 3 ? rng_mix(i / 10) : 0,
		.block = block,
		.n_blocks = i % 17,
	};

	for (size_t k = 0; k < r.n_blocks; k++)
		block[k] = i & 1 ? 46 + k + i / 8 * (k > 3) : rng_mix(i + k);
	return r;
}

START_TEST(keeps_requests)
{
	setup();
	const struct otr_info info = {.kind = OTR_REQUESTS,
		.model = "",
		.source = "x",
		.licence = "",
		.note = "",
		.block_tokens = 512};
	const char *path = path_of("requests.otr");
	uint64_t block[17];
	struct otr_request r, got;
	struct otr_writer *w;
	struct otr_reader *reader;
	struct err err = {0};

	assert_ok(otr_create(path, &info, &arena, &w, &err), err);
	for (uint64_t i = 0; i < REQUESTS; i++) {
		r = request_at(i, block);
		assert_ok(otr_put_request(w, &r, &err), err);
	}
	assert_ok(otr_commit(w, &err), err);
	assert_ok(otr_open(path, &arena, &reader, &err), err);
	ck_assert_uint_eq(otr_info(reader)->block_tokens, 512);
	for (uint64_t i = 0; i < REQUESTS; i++) {
		r = request_at(i, block);
		ck_assert_int_eq(otr_next_request(reader, &got, &err), 1);
		ck_assert_uint_eq(got.arrival_ns, r.arrival_ns);
		ck_assert_uint_eq(got.input_tokens, r.input_tokens);
		ck_assert_uint_eq(got.output_tokens, r.output_tokens);
		ck_assert_uint_eq(got.session, r.session);
		ck_assert_uint_eq(got.n_blocks, r.n_blocks);
		for (size_t k = 0; k < r.n_blocks; k++)
			ck_assert_uint_eq(got.block[k], r.block[k]);
	}
	ck_assert_int_eq(otr_next_request(reader, &got, &err), 0);
	otr_close(reader);
	teardown();
}
END_TEST

/* ---- lines of JSON ---- */

static const char *write_lines(const char *name, const struct otr_info *info, const struct steps *steps)
{
	const char *path = path_of(name);
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	trace_jsonl_put_head(f, info);
	for (size_t i = 0; i < steps->n; i++)
		trace_jsonl_put_step(f, &steps->at[i]);
	ck_assert_int_eq(fclose(f), 0);
	return path;
}

START_TEST(lines_keep_every_field)
{
	setup();
	struct otr_info info = info_of(5, 300, 4);
	info.note = "\"quoted\"\n\ttwo lines, \\ and \x01";
	struct steps steps = wild_steps(1000, 5, 300);
	struct trace_jsonl *t;
	struct trace_step step;
	struct err err = {0};

	assert_ok(trace_jsonl_open(write_lines("wild.jsonl", &info, &steps), &arena, &t, &err), err);
	const struct otr_info *got = trace_jsonl_info(t);
	ck_assert_str_eq(got->note, info.note);
	ck_assert_str_eq(got->model, info.model);
	ck_assert_int_eq(memcmp(&got->workload, &info.workload, sizeof(info.workload)), 0);
	ck_assert_int_eq(memcmp(got->layer, info.layer, 5 * sizeof(*info.layer)), 0);
	for (size_t i = 0; i < steps.n; i++) {
		int more = trace_jsonl_next_step(t, &step, &err);
		ck_assert_msg(more == 1, "step %zu: %d %s", i, more, err.msg);
		assert_same_step(&step, &steps.at[i]);
	}
	ck_assert_int_eq(trace_jsonl_next_step(t, &step, &err), 0);
	trace_jsonl_close(t);
	teardown();
}
END_TEST

START_TEST(lines_keep_requests)
{
	setup();
	const struct otr_info info = {.kind = OTR_REQUESTS, .model = "", .source = "x", .licence = "", .note = "", .block_tokens = 16};
	uint64_t block[17];
	struct otr_request r, got;
	struct trace_jsonl *t;
	struct err err = {0};
	FILE *f = fopen(path_of("r.jsonl"), "w");

	ck_assert_ptr_nonnull(f);
	trace_jsonl_put_head(f, &info);
	for (uint64_t i = 0; i < 300; i++) {
		r = request_at(i, block);
		trace_jsonl_put_request(f, &r);
	}
	ck_assert_int_eq(fclose(f), 0);
	assert_ok(trace_jsonl_open(path_of("r.jsonl"), &arena, &t, &err), err);
	for (uint64_t i = 0; i < 300; i++) {
		r = request_at(i, block);
		ck_assert_int_eq(trace_jsonl_next_request(t, &got, &err), 1);
		ck_assert_uint_eq(got.arrival_ns, r.arrival_ns);
		ck_assert_uint_eq(got.input_tokens, r.input_tokens);
		ck_assert_uint_eq(got.session, r.session);
		ck_assert_uint_eq(got.n_blocks, r.n_blocks);
		for (size_t k = 0; k < r.n_blocks; k++)
			ck_assert_uint_eq(got.block[k], r.block[k]);
	}
	ck_assert_int_eq(trace_jsonl_next_request(t, &got, &err), 0);
	trace_jsonl_close(t);
	teardown();
}
END_TEST

/* A step of one use, in an otherwise good file. */
static void assert_line_refused(const char *use, const char *want)
{
	struct otr_info info = info_of(2, 8, 2);
	struct steps none = {0};
	const char *path = write_lines("bad.jsonl", &info, &none);
	FILE *f = fopen(path, "a");
	struct trace_jsonl *t;
	struct trace_step step;
	struct err err = {0};

	fprintf(f,
		"{\"phase\":\"decode\",\"index\":0,\"n_sequences\":1,\"n_tokens\":1,\"n_sampled\":1,\"context\":0,"
		"\"layers\":[{\"layer\":0,\"uses\":[%s]}]}\n",
		use);
	fclose(f);
	assert_ok(trace_jsonl_open(path, &arena, &t, &err), err);
	ck_assert_int_eq(trace_jsonl_next_step(t, &step, &err), -1);
	assert_err(err, ERR_INPUT, want);
	ck_assert_int_eq(err.line, 2);
	trace_jsonl_close(t);
}

START_TEST(lines_that_are_wrong_are_refused)
{
	setup();
	assert_line_refused("{\"weights\":\"atn\",\"tokens\":1}", "'weights' is 'atn'; did you mean 'attn'?");
	assert_line_refused("{\"weights\":\"attn\",\"token\":1}", "unknown key 'token' in a use; did you mean 'tokens'?");
	assert_line_refused("{\"weights\":\"attn\",\"tokens\":-1}", "'tokens' is not there, or no whole number");
	assert_line_refused("{\"weights\":\"attn\",\"tokens\":\"18446744073709551616\"}",
		"'tokens' must be a whole number up to 18446744073709551615");
	assert_line_refused("{\"experts\":[],\"tokens\":1}", "'experts' is no list of numbers, or empty");
	assert_line_refused("{\"experts\":[1,2],\"tokens\":[1]}", "'tokens' is a list of 1, but 'experts' of 2");
	assert_line_refused("{\"experts\":[4294967296],\"tokens\":1}", "'experts' must be a whole number up to 4294967295");
	assert_line_refused("{\"kv_read\":\"attn\",\"tokens\":1,\"kv_pairs\":\"0xg\"}", "'kv_pairs' is not there, or no number");
	assert_line_refused("{}", "'group' is not there, or no text");
	teardown();
}
END_TEST

/* ---- the hash ---- */

static uint64_t hash_of(const struct otr_info *info, const struct steps *steps)
{
	struct otr_reader *r;
	struct err err = {0};

	assert_ok(otr_open(write_steps("hash.otr", info, steps), &arena, &r, &err), err);
	uint64_t h = otr_hash(r);
	otr_close(r);
	return h;
}

START_TEST(every_field_is_in_the_hash)
{
	setup();
	struct otr_info info = info_of(2, 8, 2);
	struct shape shape = {2, 8, 2, 1, 0};
	struct steps steps = decode_steps(&shape, 3);
	struct trace_step *s = &steps.at[1];
	struct trace_access *a = (struct trace_access *)&s->access[3]; /* a KV read */
	uint64_t before = hash_of(&info, &steps);

	ck_assert_uint_eq(hash_of(&info, &steps), before);
#define CHANGES(field, other)                                                                      \
	do {                                                                                       \
		__typeof__(field) kept_ = (field);                                                 \
		(field) = (other);                                                                 \
		ck_assert_msg(hash_of(&info, &steps) != before, #field);                           \
		(field) = kept_;                                                                   \
	} while (0)
	CHANGES(s->phase, TRACE_PREFILL);
	CHANGES(s->index, 77);
	CHANGES(s->n_sequences, 77);
	CHANGES(s->n_tokens, 77);
	CHANGES(s->n_sampled, 77);
	CHANGES(s->context, 77);
	CHANGES(s->n_access, s->n_access - 1);
	CHANGES(a->layer, 1);
	CHANGES(a->kind, TRACE_WEIGHTS);
	CHANGES(a->group, MODEL_FFN);
	CHANGES(a->expert, 77);
	CHANGES(a->tokens, 77);
	CHANGES(a->kv_tokens, 77);
	CHANGES(a->kv_pairs, 2.385);
	CHANGES(info.note, "other");
	CHANGES(info.layer[1].dense_bytes, 77);
	ck_assert_uint_eq(hash_of(&info, &steps), before);
	teardown();
}
END_TEST

/* ---- what is refused ---- */

/* Opens and reads all; the message, or NULL. */
static const char *read_fails(const char *path)
{
	struct otr_reader *r;
	struct trace_step step;
	struct err err = {0};
	int got = otr_open(path, &arena, &r, &err);

	if (got == 0) {
		while ((got = otr_next_step(r, &step, &err)) > 0)
			;
		otr_close(r);
	}
	if (got == 0)
		return NULL;
	ck_assert_str_eq(err.file, path);
	return arena_strdup(&arena, err.msg);
}

struct bytes {
	unsigned char *at;
	size_t n;
};

static const char *write_bytes(const unsigned char *p, size_t n)
{
	const char *path = path_of("changed.otr");
	FILE *f = fopen(path, "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(p, 1, n, f), n);
	fclose(f);
	return path;
}

static struct steps small_steps(void)
{
	struct shape shape = {2, 8, 2, 2, 0};

	return decode_steps(&shape, 5);
}

static struct bytes small_file(void)
{
	struct otr_info info = info_of(2, 8, 2);
	struct steps steps = small_steps();
	struct bytes b;
	char *text;
	struct err err = {0};

	assert_ok(file_read(write_steps("small.otr", &info, &steps), 1 << 20, &arena, &text, &b.n, &err), err);
	b.at = (unsigned char *)text;
	return b;
}

START_TEST(refuses_what_is_cut_off)
{
	setup();
	struct bytes b = small_file();

	for (size_t n = 0; n < b.n; n++) {
		struct arena_mark mark = arena_mark(&arena);
		const char *msg = read_fails(write_bytes(b.at, n));
		ck_assert_msg(msg && strstr(msg, " at byte "), "%zu of %zu bytes: %s", n, b.n, msg ? msg : "read");
		arena_rewind(&arena, mark);
	}
	teardown();
}
END_TEST

START_TEST(refuses_any_changed_bit_that_means_something)
{
	setup();
	struct bytes b = small_file();

	for (size_t i = 0; i < b.n * 8; i++) {
		struct arena_mark mark = arena_mark(&arena);
		b.at[i / 8] ^= (unsigned char)(1 << i % 8);
		const char *msg = read_fails(write_bytes(b.at, b.n));
		if (!msg) { /* a frame has bits that mean nothing, or may be said in two ways */
			struct steps steps = small_steps();
			assert_reads(path_of("changed.otr"), &steps);
		} else {
			ck_assert_msg(strstr(msg, " at byte "), "bit %zu of byte %zu: %s", i % 8, i / 8, msg);
		}
		b.at[i / 8] ^= (unsigned char)(1 << i % 8);
		arena_rewind(&arena, mark);
	}
	teardown();
}
END_TEST

START_TEST(says_what_is_wrong)
{
	setup();
	struct bytes b = small_file();

	ck_assert_str_eq(read_fails(write_bytes((const unsigned char *)"{\"model\": 1}", 12)),
		"is no native trace: no magic number at byte 0");
	b.at[8] = 2;
	ck_assert_str_eq(read_fails(write_bytes(b.at, b.n)),
		"is of version 2, newer than this program; this program reads version 1; at byte 8");
	b.at[8] = 1;
	ck_assert_str_eq(read_fails(write_bytes(b.at, b.n - 1)),
		arena_printf(&arena, "is cut off: it has no end at byte %zu", b.n - 1));
	b.at[b.n - 16 + 4] = 1; /* 4 GiB on */
	ck_assert_ptr_nonnull(strstr(read_fails(write_bytes(b.at, b.n)), "no room for a block INDX at byte 42949"));
	ck_assert_str_eq(read_fails(folder), "is no regular file");
	ck_assert_str_eq(read_fails(path_of("none.otr")), "cannot be opened: No such file or directory");
	teardown();
}
END_TEST

static int files_in_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "exit $(ls '%s' | wc -l)", folder);
	return WEXITSTATUS(system(command));
}

static void assert_refused(struct trace_step step, const char *want)
{
	struct otr_info info = info_of(2, 8, 2);
	struct otr_writer *w;
	struct err err = {0};

	assert_ok(otr_create(path_of("refused.otr"), &info, &arena, &w, &err), err);
	ck_assert_int_eq(otr_put_step(w, &step, &err), -1);
	assert_err(err, ERR_INPUT, want);
	ck_assert_int_eq(otr_commit(w, &err), -1);
	assert_err(err, ERR_IO, "cannot be written: not all records could be taken");
	ck_assert_int_eq(files_in_folder(), 0);
}

START_TEST(a_writer_takes_nothing_it_could_not_read)
{
	setup();
	struct trace_access a = {.layer = 2};
	struct trace_step step = {.phase = TRACE_DECODE, .access = &a, .n_access = 1};

	assert_refused(step, "cannot be written: it cannot hold layer 2 of 2, in record 0");
	a = (struct trace_access){.layer = 1, .kind = TRACE_EXPERT, .expert = 8};
	assert_refused(step, "cannot be written: it cannot hold expert 8 of 8 in layer 1, in record 0");
	a = (struct trace_access){.kind = 4};
	assert_refused(step, "cannot be written: it cannot hold an access of kind 4, in record 0");
	a = (struct trace_access){.group = MODEL_GROUP_N};
	assert_refused(step, "cannot be written: it cannot hold a tensor group 7, in record 0");
	teardown();
}
END_TEST

START_TEST(a_file_that_is_not_finished_is_not_there)
{
	setup();
	struct otr_info info = info_of(2, 8, 2);
	struct otr_writer *w;
	struct err err = {0};

	assert_ok(otr_create(path_of("x.otr"), &info, &arena, &w, &err), err);
	ck_assert_int_ne(access(path_of("x.otr"), F_OK), 0);
	otr_abort(w);
	ck_assert_int_eq(files_in_folder(), 0);
	ck_assert_int_eq(otr_create(folder, &info, &arena, &w, &err), -1);
	assert_err(err, ERR_IO, arena_printf(&arena, "cannot write '%s': it is a folder", folder));
	info.note = "\xff";
	ck_assert_int_eq(otr_create(path_of("x.otr"), &info, &arena, &w, &err), -1);
	assert_err(err, ERR_INPUT, "cannot be written: it cannot hold a text 'note' that is not UTF-8");
	ck_assert_int_eq(files_in_folder(), 0);
	otr_abort(NULL);
	otr_close(NULL);
	teardown();
}
END_TEST

TEST_MAIN("otr", keeps_every_field, a_decode_step_of_61_layers_is_small, wide_numbers_of_experts,
	windows_cost_next_to_nothing, keeps_the_head, seeks_anywhere, memory_is_that_of_a_chunk, keeps_requests,
	lines_keep_every_field, lines_keep_requests, lines_that_are_wrong_are_refused,
	every_field_is_in_the_hash, refuses_what_is_cut_off, refuses_any_changed_bit_that_means_something, says_what_is_wrong,
	a_writer_takes_nothing_it_could_not_read, a_file_that_is_not_finished_is_not_there)
