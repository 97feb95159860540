/*
 * bench_otr.c - accesses per CPU second of native traces: the decode steps of a model of 61 layers, 8 of 256 experts each,
 * with all their accesses.
 *
 *	bench_otr [STEPS]
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "sim/trace/otr.h"

#define LAYERS 61
#define EXPERTS 256
#define USED 8
#define KINDS 1024 /* different steps: more than a chunk holds, so that compression finds no repeats */

struct making {
	VEC(struct trace_access);
};

static struct trace_step make_step(gsl_rng *rng, struct arena *a)
{
	struct making m = {0};

	for (int16_t l = 0; l < LAYERS; l++) {
		struct trace_access access = {.layer = l, .group = MODEL_ATTN, .tokens = 1};
		VEC_PUSH(&m, a, access);
		access.kind = TRACE_KV_WRITE;
		VEC_PUSH(&m, a, access);
		access.kind = TRACE_KV_READ;
		VEC_PUSH(&m, a, access);
		access.kind = TRACE_WEIGHTS;
		access.group = MODEL_ROUTER;
		VEC_PUSH(&m, a, access);
		access.group = MODEL_SHARED;
		VEC_PUSH(&m, a, access);
		access.kind = TRACE_EXPERT;
		access.group = MODEL_EXPERTS;
		for (int e = 0; e < USED; e++) {
			access.expert = (uint32_t)gsl_rng_uniform_int(rng, EXPERTS);
			VEC_PUSH(&m, a, access);
		}
	}
	return (struct trace_step){.phase = TRACE_DECODE,
		.n_sequences = 1,
		.n_tokens = 1,
		.n_sampled = 1,
		.access = m.at,
		.n_access = m.n};
}

static int write_file(const char *path, uint64_t n_steps, struct arena *a, struct err *err)
{
	struct otr_layer layer[LAYERS];
	struct otr_info info = {.kind = OTR_STEPS, .model = "", .source = "", .licence = "", .note = "", .n_layer = LAYERS, .layer = layer};
	struct trace_step *step = arena_array(a, struct trace_step, KINDS);
	struct otr_writer *w;
	gsl_rng *rng = rng_new(1, 2, RNG_TEST);

	for (int i = 0; i < LAYERS; i++)
		layer[i] = (struct otr_layer){EXPERTS, USED, 24772608, 187105280};
	for (int i = 0; rng && i < KINDS; i++)
		step[i] = make_step(rng, a);
	if (!rng)
		return err_set(err, ERR_NOMEM, "out of memory");
	gsl_rng_free(rng);
	clock_t began = clock();
	if (otr_create(path, &info, a, &w, err))
		return -1;
	for (uint64_t i = 0; i < n_steps; i++) {
		struct trace_step *s = &step[i % KINDS];
		s->index = i;
		s->context = i;
		for (int l = 0; l < LAYERS; l++) {
			struct trace_access *kv = (struct trace_access *)&s->access[l * (5 + USED) + 2];
			kv->kv_tokens = i + 1;
			kv->kv_pairs = (double)(i + 1);
		}
		if (otr_put_step(w, s, err)) {
			otr_abort(w);
			return -1;
		}
	}
	if (otr_commit(w, err))
		return -1;
	double s = (double)(clock() - began) / CLOCKS_PER_SEC, n = (double)n_steps * LAYERS * (5 + USED);
	printf("native trace, writing\t%.1f\tmillion accesses/s of CPU\n", n / s / 1e6);
	return 0;
}

static int read_file(const char *path, struct arena *a, struct err *err)
{
	struct otr_reader *r;
	struct trace_step step;
	struct stat st;
	uint64_t n = 0, tokens = 0;
	int more;

	clock_t began = clock();
	if (otr_open(path, a, &r, err))
		return -1;
	while ((more = otr_next_step(r, &step, err)) > 0) {
		n += step.n_access;
		for (size_t i = 0; i < step.n_access; i++)
			tokens += step.access[i].tokens;
	}
	double s = (double)(clock() - began) / CLOCKS_PER_SEC;
	if (more == 0 && stat(path, &st) == 0) {
		printf("native trace, reading\t%.1f\tmillion accesses/s of CPU\n", (double)n / s / 1e6);
		printf("native trace, on disk\t%.0f\tbytes a step of 61 layers, 8 of 256 experts\n",
			(double)st.st_size / (double)otr_n_records(r));
	}
	otr_close(r);
	return more || tokens != n ? -1 : 0;
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/offsim-bench-XXXXXX";
	int fd = mkstemp(path);
	struct arena a;
	struct err err = {0};

	if (fd < 0)
		return 1;
	close(fd);
	arena_init(&a, NULL, NULL);
	int rc = write_file(path, argc > 1 ? strtoull(argv[1], NULL, 10) : 50000, &a, &err) || read_file(path, &a, &err);
	if (rc)
		err_print(&err, stderr);
	unlink(path);
	arena_release(&a);
	return rc;
}
