/*
 * airllm.c - AirLLM (5765c21, air_llm/airllm/airllm_base.py).
 *
 *	worker   [read 1]        [read 2]             one file a layer, embedding and output too, for every forward pass
 *	host       [copy 0]···clean[copy 1]···clean    clean: garbage collection, caches emptied
 *	gpu               [layer 0]       [layer 1]
 *
 * While a layer is copied and computed, a worker thread reads the next file. It asks for pinned memory and drops what it
 * gets, so that copies are from pageable memory all the same. With compression nothing is read ahead. Files are mapped
 * (safetensors), so a second pass finds in the page cache what RAM has room for. The cache of keys and values is on the GPU.
 * What kernels reach and what a layer costs is in hw/kernels/pytorch.yaml.
 */
#include "models/kvcache.h"
#include "sim/engine/divide.h"
#include "sim/engine/transformers.h"
#include "sim/exec/files.h"

#define HIDDEN_ELEMENT_BYTES 2


static const char *const compressions[] = {"none", "4bit", "8bit", NULL};

struct airllm_flags {
	int compression, page_cache;
	bool prefetching;
};

static const struct param airllm_flag[] = {
	PARAM_CHOICE(struct airllm_flags, compression, "compression", "none", compressions,
		"4bit, 8bit: nothing is read ahead; the scenario's quant is what counts"),
	PARAM_FLAG(struct airllm_flags, prefetching, "prefetching", "yes", "the next file is read while a layer runs"),
	FILES_FLAG(struct airllm_flags, page_cache),
};

static const struct engine_ignored airllm_ignored[] = {
	{"max_seq_len", true}, {"layer_shards_saving_path", true}, {"hf_token", true}, {"delete_original", true},
	{"profiling_mode", true}, {"dtype", true},
};

static int airllm_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct trace_workload *w = &job->trace->workload;
	int drive = hw_first_memory(job->machine, HW_MEMORY_DRIVE), ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	uint64_t rows = w->batch * (w->prompt ? w->prompt : 1), largest = job->model->embed.bytes;
	double files = 0;

	if (drive < 0)
		return err_set(err, ERR_INPUT, "the machine has no drive, from which airllm reads every layer");
	if (divide_init(p, job, 1, "", a, err))
		return -1;
	p->kv_types = *KVCACHE_SAME(quant_find("f16"));
	p->kv_sequences = w->batch;
	p->kv_context = trace_max_context(job->trace);
	divide_resident(p);
	for (int t = 0; t < job->model->n_tensors; t++) {
		if (p->tensor[t].memory == PLACE_LEFT_OUT)
			continue;
		p->tensor[t] = divide_away(p, drive, PLACE_STREAMED);
		files += (double)job->model->tensors[t].bytes;
	}
	for (uint32_t i = 0; i < job->model->n_layer; i++) {
		uint64_t bytes = place_layer_bytes(job->model, (int)i);
		largest = bytes > largest ? bytes : largest;
	}
	place_finish(p);
	divide_book(p, LEDGER_OVERHEAD, "layer at hand", largest);
	ledger_book(&p->ledger, ram, LEDGER_OVERHEAD, "layer read, layer at hand", 2 * largest);
	divide_book(p, LEDGER_ACTIVATION, "activations",
		model_activation_bytes(job->model, rows, w->batch, HIDDEN_ELEMENT_BYTES));
	files_book(p, drive, files, ((const struct airllm_flags *)job->flags)->page_cache);
	if (!ledger_fits(&p->ledger))
		p->advice = "a shorter context, a smaller batch or a smaller type is needed";
	return 0;
}

struct airllm {
	const struct cost *cost;
	struct ranks ranks;
	bool ahead;
	int ram;
	op_ref read, used; /* the last file read; what its layer waited for before it could be read in turn */
};

/* A file's bytes into memory, to the GPU; the next file may be read from then on. */
static void fetch(struct airllm *s, double bytes)
{
	struct ranks *r = &s->ranks;
	struct exec *x = r->walk.x;

	s->read = files_read(x, hw_num_value(&s->cost->page_cache_bytes_s), r->walk.step->index, bytes, s->read,
		s->ahead ? s->used : r->last[0]);
	op_ref begun = exec_join(x, s->read, r->last[0]);
	s->used = begun;
	r->last[0] = exec_copy(x, s->ram, x->placement->rows.spot[0].memory, bytes, false, begun, 0);
}

/* Behind a file's layer: the host waits for it and cleans up. */
static void clean(struct airllm *s)
{
	struct ranks *r = &s->ranks;

	r->host = r->last[0] =
		exec_wait(r->walk.x, hw_num_value(&s->cost->gpu_sync_s) + hw_num_value(&s->cost->layer_s), r->last[0]);
}

static void layer_begin(void *engine, int layer)
{
	struct airllm *s = engine;

	fetch(s, divide_streamed_bytes(s->ranks.walk.x->placement, layer, 0));
}

static void layer_end(void *engine, int layer)
{
	(void)layer;
	clean(engine);
}

static bool group(void *engine, const struct place_group *g, enum model_group which, double share, double flops_per_param,
	double times)
{
	struct airllm *s = engine;

	(void)share;
	(void)flops_per_param;
	(void)times;
	if (which != MODEL_EMBED && which != MODEL_OUTPUT)
		return false;
	if (which == MODEL_OUTPUT)
		clean(s);
	fetch(s, (double)g->part[0].bytes);
	return false;
}

static void *airllm_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	static const struct ranks_ops ops = {layer_begin, layer_end, group};
	const struct airllm_flags *f = job->flags;
	struct airllm *s = arena_new(a, struct airllm);

	s->cost = job->cost;
	s->ahead = f->prefetching && f->compression == 0;
	s->ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	transformers_ranks_init(&s->ranks, job->cost, p);
	s->ranks.ops = &ops;
	s->ranks.engine = s;
	return s;
}

static int airllm_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct airllm *s = state;

	(void)err;
	/* Nothing is read ahead from one pass to the next. */
	s->read = s->used = x->step_end;
	*last = transformers_step(&s->ranks, x, step);
	return 0;
}

const struct engine_ops engine_airllm = {
	.name = "airllm",
	.version = "1",
	.help = "AirLLM: one layer at a time from disk, the next one read meanwhile",
	.flag = airllm_flag,
	.n_flags = ARRAY_LEN(airllm_flag),
	.flags_size = sizeof(struct airllm_flags),
	.ignored = airllm_ignored,
	.n_ignored = ARRAY_LEN(airllm_ignored),
	.kernels = "pytorch",
	.overheads = true,
	.place = airllm_place,
	.state_new = airllm_state_new,
	.lower = airllm_lower,
};
