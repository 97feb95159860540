/*
 * flexgen.c - FlexGen (FMInference/FlexLLMGen, 004ffef): a block of batches goes through the model layer by layer.
 *
 *	for each layer j, for each batch k of the block:
 *	  side     [weights of j + 1, all of them, when k = 0]
 *	  side     [cache of k + 1]
 *	  default  [hidden states of k - 1 out][of k + 1 in][compute k]
 *	  side     [new cache entries of k - 1 out]
 *	  ─────────────────────────────────────────────── wait for all of it
 *
 * Layers are an attention or an MLP each (--sep-layer), with the embeddings first and last. Weights cross once a block, so
 * they hide behind the first batch alone. Copies of side streams and of the default one share the copy engine: hidden states
 * wait behind weights. With one batch the cache of layer j + 1 is fetched while j computes; without --overlap everything goes
 * to the default stream.
 *
 * A share in --percent puts whole tensors somewhere, by the middle of their place in the layer. The cache of a batch is
 * divided by sequences. Memory for the cache is not pinned: what comes from there is copied to pinned memory by the
 * submitting thread first, what goes there is relayed by four helpers, as all that has to do with the disk, whose files are
 * mapped: RAM keeps them where it has room for all. With
 * --cpu-cache-compute the thread expands the cache to 32 bits and attends itself, in decoding.
 *
 * The program itself loads OPT alone; here any dense model goes through its schedule.
 */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "models/kvcache.h"
#include "sim/engine/engine_table.h"
#include "sim/exec/eager.h"
#include "sim/exec/files.h"

#define HIDDEN_ELEMENT_BYTES 2
/* Pinned memory of the four copy threads (pytorch_backend.py, copy_worker_func): 2^30 elements of 16 bits each. */
#define RELAY_BYTES (4ull << 31)

/* What eager PyTorch moves for one element, counted in the code: bytes read and written by one kernel after another.
   decompress() (compression.py): two shifts or masks of bytes, each written and copied into every other element, a division
   and an addition in place. Of weights every other row is written, of the cache every other element: memory then reads and
   writes whole sectors twice. compress(): minimum, maximum, four operations on all, a conversion, a shift and an or, of
   sectors read twice. */
#define DECOMPRESS_BYTES 13.0
#define DECOMPRESS_CACHE_BYTES 19.0
#define COMPRESS_BYTES 26.5
/* mha_gen(): keys and values are copied into the order that bmm wants, and read there. */
#define CACHE_BYTES 6.0
/* mha(): a score is written, masked, normalised and read: 2 + 4 + 4 + 2. */
#define SCORE_BYTES 12.0
/* On the CPU: from 16 bits into the workspace of 32 (load_cache); read there by attention. */
#define EXPAND_BYTES 6.0
#define CPU_CACHE_BYTES 4.0

/* Kernels of a layer, counted in pytorch_backend.py. */
#define EMBED_KERNELS 8
#define ATTENTION_KERNELS 30
#define MLP_KERNELS 6
#define OUTPUT_KERNELS 3
#define DECOMPRESS_KERNELS 6
#define COMPRESS_KERNELS 12
#define ATTENTION_MATRICES 4
#define MLP_MATRICES 2

enum debug_mode { DEBUG_NONE, DEBUG_FEWER_BATCH };
static const char *const debug_choices[] = {"none", "fewer_batch", NULL};

struct flexgen_flags {
	const char *percent;
	uint64_t gpu_batch_size, num_gpu_batches;
	bool compress_weight, compress_cache, cpu_cache_compute, overlap, pin_weight, sep_layer;
	int debug_mode, page_cache;
};

static const struct param flexgen_flag[] = {
	PARAM_TEXT(struct flexgen_flags, percent, "percent", "100 0 100 0 100 0",
		"shares of weights on the GPU and in RAM, of the cache, of hidden states; the rest is on disk"),
	PARAM_COUNT(struct flexgen_flags, gpu_batch_size, "gpu-batch-size", "4", 1, 1e6, "sequences of one batch"),
	PARAM_COUNT(struct flexgen_flags, num_gpu_batches, "num-gpu-batches", "1", 1, 1e4,
		"batches of the block; the workload's batch is as many times gpu-batch-size"),
	PARAM_FLAG(struct flexgen_flags, compress_weight, "compress-weight", "no",
		"weights are kept in 4 bits; the scenario's quant is flexgen-int4-g64"),
	PARAM_FLAG(struct flexgen_flags, compress_cache, "compress-cache", "no", "the cache is kept in 4 bits"),
	PARAM_FLAG(struct flexgen_flags, cpu_cache_compute, "cpu-cache-compute", "no",
		"the CPU attends to what is not in GPU memory, in decoding"),
	PARAM_FLAG(struct flexgen_flags, overlap, "overlap", "yes", "copies run beside computing"),
	PARAM_FLAG(struct flexgen_flags, pin_weight, "pin-weight", "yes", "weights in RAM are pinned"),
	PARAM_FLAG(struct flexgen_flags, sep_layer, "sep-layer", "yes", "attention and MLP are layers of their own"),
	PARAM_CHOICE(struct flexgen_flags, debug_mode, "debug-mode", "none", debug_choices,
		"fewer_batch: decoding is projected from the first token's layers, as its benchmarks do"),
	FILES_FLAG(struct flexgen_flags, page_cache),
};

/* argparse takes beginnings: its scripts say --cpu and --debug. */
static const struct engine_alias flexgen_alias[] = {{"cpu", "cpu-cache-compute"}, {"debug", "debug-mode"}};

static const struct engine_ignored flexgen_ignored[] = {
	{"model", true}, {"path", true}, {"offload-dir", true}, {"log-file", true}, {"no-log", false}, {"verbose", true},
	{"prompt-len", true}, {"gen-len", true}, {"cut-gen-len", true}, {"attn-sparsity", ENGINE_NOT_MODELLED_VALUE},
};

/* Sequences of one batch whose cache is in each memory. */
struct homes {
	uint64_t gpu, ram, disk;
};

struct plan {
	const struct flexgen_flags *flags;
	int gpu, gpu_memory, cpu, ram, drive; /* devices and memories; drive -1: none */
	double weight[3], cache[3];           /* shares on the GPU, in RAM, on disk; they sum to 100 */
	int hidden_memory;
	struct homes homes;
};

/* The next of the six numbers. */
static int next_share(const char *s, const char **at, double *share, struct err *err)
{
	const char *from = *at + strspn(*at, " \t,");
	size_t n = strcspn(from, " \t,");

	*at = from + n;
	if (n && number_parse(from, n, share) && *share >= 0 && *share <= 100)
		return 0;
	return err_set(err, ERR_INPUT, "flag 'percent' is six numbers from 0 to 100 (weights on the GPU and in RAM, cache, "
		"hidden states), not '%.60s'", s);
}

static int parse_percent(struct plan *plan, struct err *err)
{
	const char *at = plan->flags->percent;
	double share[3][3];

	for (int what = 0; what < 3; what++) {
		if (next_share(plan->flags->percent, &at, &share[what][0], err) ||
			next_share(plan->flags->percent, &at, &share[what][1], err))
			return -1;
		share[what][2] = 100 - share[what][0] - share[what][1];
		if (share[what][2] < 0)
			return err_set(err, ERR_INPUT, "flag 'percent': %g and %g are more than 100", share[what][0],
				share[what][1]);
		if (share[what][2] > 0 && plan->drive < 0)
			return err_set(err, ERR_INPUT, "flag 'percent': %g and %g leave %g for the disk, and the machine has no drive",
				share[what][0], share[what][1], share[what][2]);
	}
	if (at[strspn(at, " \t,")])
		return err_set(err, ERR_INPUT, "flag 'percent' is six numbers; '%.60s' is left", at + strspn(at, " \t,"));
	memcpy(plan->weight, share[0], sizeof(plan->weight));
	memcpy(plan->cache, share[1], sizeof(plan->cache));
	plan->hidden_memory = share[2][0] == 100 ? plan->gpu_memory : plan->ram;
	if (share[2][0] != 100 && share[2][1] != 100)
		return err_set(err, ERR_INPUT, "flag 'percent': hidden states are all on the GPU (100 0) or all in RAM (0 100)");
	return 0;
}

/* Sequences of a batch by where their cache is: whole ones, the last memory takes what is left (TorchMixedDevice). */
static int divide_cache(struct plan *plan, struct err *err)
{
	const struct flexgen_flags *f = plan->flags;
	uint64_t n = f->gpu_batch_size;
	struct homes *h = &plan->homes;

	h->gpu = (uint64_t)((double)n * plan->cache[0] / 100);
	h->ram = plan->cache[2] > 0 ? (uint64_t)((double)n * plan->cache[1] / 100) : n - h->gpu;
	h->disk = n - h->gpu - h->ram;
	bool mixed = plan->cache[0] != 100 && plan->cache[1] != 100 && plan->cache[2] != 100;
	if (mixed && f->compress_cache)
		return err_set(err, ERR_INPUT, "flag 'compress-cache' wants all of the cache in one memory");
	if (f->compress_cache && f->cpu_cache_compute)
		return err_set(err, ERR_INPUT, "flags 'compress-cache' and 'cpu-cache-compute' exclude each other");
	return 0;
}

static int check_model(const struct engine_job *job, const struct flexgen_flags *f, struct err *err)
{
	const struct model *m = job->model;
	bool int4 = strcmp(m->quant, "flexgen-int4-g64") == 0;

	for (uint32_t i = 0; i < m->n_layer; i++)
		if (m->layers[i].n_expert || m->layers[i].mla_dim_k || m->layers[i].state_bytes || m->layers[i].prefill_only ||
			m->layers[i].draft)
			return err_set(err, ERR_INPUT, "flexgen runs dense models with plain attention; layer %u of '%s' is not", i,
				m->name);
	if (f->compress_weight != int4)
		return err_set(err, ERR_INPUT, "%s", int4 ? "quant flexgen-int4-g64 goes with the flag 'compress-weight'" :
			"flag 'compress-weight' goes with quant: flexgen-int4-g64");
	if (!int4 && strcmp(m->quant, "f16") && strcmp(m->quant, "bf16"))
		return err_set(err, ERR_INPUT, "flexgen has weights of 16 bits, or flexgen-int4-g64, not %s", m->quant);
	if (job->trace->mixed)
		return err_set(err, ERR_INPUT, "flexgen runs a block of sequences from beginning to end; this trace mixes phases");
	if (job->trace->workload.batch != f->gpu_batch_size * f->num_gpu_batches)
		return err_set(err, ERR_INPUT,
			"the workload's batch is %llu, but gpu-batch-size x num-gpu-batches is %llu x %llu",
			(unsigned long long)job->trace->workload.batch, (unsigned long long)f->gpu_batch_size,
			(unsigned long long)f->num_gpu_batches);
	return 0;
}

static int plan_init(struct plan *plan, const struct engine_job *job, struct err *err)
{
	const struct hw_machine *hw = job->machine;
	int gpu = hw_first_device(hw, HW_DEVICE_GPU), cpu = hw_first_device(hw, HW_DEVICE_CPU);

	*plan = (struct plan){.flags = job->flags, .gpu = gpu, .cpu = cpu, .drive = hw_first_memory(hw, HW_MEMORY_DRIVE),
		.ram = hw_first_memory(hw, HW_MEMORY_RAM)};
	if (gpu < 0 || hw->memories[hw->devices[gpu].memory].kind != HW_MEMORY_GPU)
		return err_set(err, ERR_INPUT, "flexgen needs a GPU with memory of its own");
	plan->gpu_memory = hw->devices[gpu].memory;
	return check_model(job, plan->flags, err) || parse_percent(plan, err) || divide_cache(plan, err) ? -1 : 0;
}

/* ---- placement ---- */

static bool is_matrix(const struct model_tensor *t)
{
	return t->shape[1] > 1;
}

/* The order of its tensors in a layer: norms come after the matrices, but first in the output. */
static bool is_late(const struct model_tensor *t)
{
	return t->layer != MODEL_NO_LAYER && strstr(t->name, "_norm.") != NULL;
}

/* Attention and MLP are apart, or one layer of both. */
static bool same_layer(const struct plan *plan, const struct model_tensor *a, const struct model_tensor *b)
{
	if (a->layer != b->layer)
		return false;
	return a->group == b->group || (!plan->flags->sep_layer && a->layer != MODEL_NO_LAYER);
}

static struct place_spot weight_spot(const struct plan *plan, double middle)
{
	struct place_spot spot = {(int16_t)plan->gpu_memory, (int16_t)plan->gpu, PLACE_STREAMED};

	if (middle < plan->weight[2])
		spot.memory = (int16_t)plan->drive;
	else if (middle < plan->weight[2] + plan->weight[1])
		spot.memory = (int16_t)plan->ram;
	else
		spot.mode = PLACE_RESIDENT;
	return spot;
}

/* The weights of one layer, from its first tensor on: in order, disk first, by the middle of each. The output has the
   embedding again, whether tied or not. */
static void place_weights(const struct plan *plan, struct placement *p, int first)
{
	const struct model *m = p->model;
	const struct model_tensor *leader = &m->tensors[first];
	double total = 0, before = 0;

	for (int i = 0; i < m->n_tensors; i++)
		if (same_layer(plan, leader, &m->tensors[i]))
			total += (double)m->tensors[i].params;
	for (int late = 0; late < 2; late++) {
		for (int i = 0; i < m->n_tensors; i++) {
			const struct model_tensor *t = &m->tensors[i];
			if (!same_layer(plan, leader, t) || is_late(t) != late)
				continue;
			p->tensor[i] = weight_spot(plan, 100 * (before + (double)t->params / 2) / total);
			before += (double)t->params;
		}
	}
}

/* All tensors placed; each layer's by its first. A tied output is placed as a layer of its own. */
static void place_all_weights(const struct plan *plan, struct placement *p)
{
	for (int i = 0; i < p->model->n_tensors; i++)
		if (p->tensor[i].memory < 0)
			place_weights(plan, p, i);
}

static struct place_spot cache_spot(const struct plan *plan)
{
	int device = plan->flags->cpu_cache_compute && plan->homes.gpu == 0 ? plan->cpu : plan->gpu;
	struct place_spot spot = {(int16_t)plan->gpu_memory, (int16_t)device, PLACE_RESIDENT};

	if (plan->homes.gpu)
		return spot;
	spot.memory = (int16_t)(plan->homes.ram ? plan->ram : plan->drive);
	if (device == plan->gpu || spot.memory == plan->drive)
		spot.mode = PLACE_STREAMED;
	return spot;
}

/* The cache of whole sequences; place_finish books those in the first memory. */
static void book_cache(const struct plan *plan, struct placement *p)
{
	const struct homes *h = &plan->homes;
	uint64_t each = kvcache_bytes(p->model, p->kv_context, plan->flags->num_gpu_batches, &p->kv_types);

	if (h->gpu && h->ram)
		ledger_book(&p->ledger, plan->ram, LEDGER_KV, "KV cache and state", h->ram * each);
	if (h->disk && h->disk < plan->flags->gpu_batch_size)
		ledger_book(&p->ledger, plan->drive, LEDGER_KV, "KV cache and state", h->disk * each);
}

/* 16-bit bytes of the largest layer's weights, and as stored where they are streamed. */
static void largest_layer(const struct plan *plan, const struct placement *p, uint64_t *streamed, uint64_t *expanded)
{
	const struct model *m = p->model;

	*streamed = *expanded = 0;
	for (int i = 0; i < m->n_tensors; i++) {
		uint64_t stored = 0, wide = 0;
		for (int k = 0; k < m->n_tensors; k++) {
			if (!same_layer(plan, &m->tensors[i], &m->tensors[k]))
				continue;
			stored += p->tensor[k].mode == PLACE_STREAMED ? m->tensors[k].bytes : 0;
			wide += is_matrix(&m->tensors[k]) ? 2 * m->tensors[k].params : 0;
		}
		*streamed = stored > *streamed ? stored : *streamed;
		*expanded = wide > *expanded ? wide : *expanded;
		if (m->tensors[i].layer != MODEL_NO_LAYER && m->tensors[i].layer > 0)
			break; /* all layers are alike */
	}
}

static void book_gpu(const struct plan *plan, struct placement *p, const struct trace_workload *w)
{
	const struct model *m = p->model;
	const struct model_layer *l = &m->layers[0];
	const struct flexgen_flags *f = plan->flags;
	uint64_t rows = f->gpu_batch_size * (w->prompt ? w->prompt : 1), streamed, expanded;
	uint64_t scores = rows * (w->depth + (w->prompt ? w->prompt : 1)) * l->n_head * 2;
	uint64_t hidden = rows * m->hidden * HIDDEN_ELEMENT_BYTES;
	uint64_t wide = 2 * l->group[MODEL_FFN].params / m->hidden / MLP_MATRICES * rows + 2 * hidden;
	/* Scores before and after the mask or the softmax, beside input, q, k, v and their copies. */
	uint64_t attention = 2 * scores + 5 * hidden, logits = 2 * rows * m->vocab + hidden;
	uint64_t most = attention > wide ? attention : wide;

	largest_layer(plan, p, &streamed, &expanded);
	ledger_book(&p->ledger, plan->gpu_memory, LEDGER_OVERHEAD, "staging buffers", 2 * streamed);
	if (f->compress_weight)
		ledger_book(&p->ledger, plan->gpu_memory, LEDGER_OVERHEAD, "expanded weights", expanded);
	ledger_book(&p->ledger, plan->gpu_memory, LEDGER_ACTIVATION, "activations", most > logits ? most : logits);
	ledger_book(&p->ledger, plan->hidden_memory, LEDGER_ACTIVATION, "hidden states",
		f->num_gpu_batches * hidden);
	/* Decoding: this batch's cache and the next one's come, the former is expanded and put in order. */
	uint64_t elements = kvcache_bytes(m, p->kv_context, f->gpu_batch_size, KVCACHE_SAME(quant_find("f16"))) / m->n_layer / 2;
	uint64_t moved = (f->gpu_batch_size - plan->homes.gpu) * kvcache_bytes(m, p->kv_context, 1, &p->kv_types) / m->n_layer;
	uint64_t decoding = f->cpu_cache_compute ? 0 :
		2 * moved + elements * 2 * (f->compress_cache ? 2 : 1);
	uint64_t booked = p->ledger.row[plan->gpu_memory].used_bytes[LEDGER_ACTIVATION];
	if (decoding > booked)
		ledger_book(&p->ledger, plan->gpu_memory, LEDGER_ACTIVATION, "cache at work", decoding - booked);
}

static void book_host(const struct plan *plan, struct placement *p)
{
	const struct model *m = p->model;

	ledger_book(&p->ledger, plan->ram, LEDGER_OVERHEAD, "copy threads", RELAY_BYTES);
	if (plan->flags->cpu_cache_compute)
		ledger_book(&p->ledger, plan->ram, LEDGER_OVERHEAD, "attention workspace",
			(plan->flags->sep_layer ? 1 : 2) * 2 *
				kvcache_bytes(m, p->kv_context, plan->flags->gpu_batch_size,
					KVCACHE_SAME(quant_find("f16"))) / m->n_layer);
	/* The output has its own copy of a tied embedding. */
	for (int i = 0; i < m->n_tensors; i++)
		if (m->tensors[i].shared_storage)
			ledger_book(&p->ledger, p->tensor[i].memory, LEDGER_WEIGHTS, "embedding of the output", m->tensors[i].bytes);
}

/* All that is on disk, weights and cache, is np.memmap's (map_to_torch_tensor). */
static void book_files(const struct plan *plan, struct placement *p)
{
	const struct ledger_row *row = plan->drive >= 0 ? &p->ledger.row[plan->drive] : NULL;

	if (row)
		files_book(p, plan->drive, (double)(row->used_bytes[LEDGER_WEIGHTS] + row->used_bytes[LEDGER_KV]),
			plan->flags->page_cache);
}

static void fill(const struct plan *plan, const struct engine_job *job, struct placement *p, struct arena *a)
{
	const struct trace_workload *w = &job->trace->workload;

	place_init(p, job->model, job->machine, a);
	p->kv_types = *KVCACHE_SAME(quant_find(plan->flags->compress_cache ? "int4-g64" : "f16"));
	p->kv_context = w->depth + w->prompt + (w->generate ? w->generate - 1 : 0);
	place_all_weights(plan, p);
	for (uint32_t i = 0; i < job->model->n_layer; i++)
		p->kv[i] = cache_spot(plan);
	p->kv_sequences = plan->flags->num_gpu_batches *
		(plan->homes.gpu ? plan->homes.gpu : plan->homes.ram ? plan->homes.ram : plan->homes.disk);
	place_finish(p);
	book_cache(plan, p);
	book_gpu(plan, p, w);
	book_host(plan, p);
	book_files(plan, p);
}

/* The most of the weights that the GPU can hold, in whole percent; -1 when not even none. */
static int most_on_gpu(const struct plan *plan, const struct engine_job *job, struct arena *a)
{
	int fits = -1, too_many = 101;

	while (too_many - fits > 1) {
		int percent = fits + (too_many - fits) / 2;
		struct arena_mark mark = arena_mark(a);
		struct plan tried = *plan;
		struct placement p;

		tried.weight[0] = percent;
		tried.weight[1] = fmin(plan->weight[0] + plan->weight[1], 100) - percent;
		if (tried.weight[1] < 0)
			tried.weight[1] = 0;
		tried.weight[2] = 100 - tried.weight[0] - tried.weight[1];
		fill(&tried, job, &p, a);
		bool ok = ledger_missing(&p.ledger, plan->gpu_memory) == 0;
		arena_rewind(a, mark);
		*(ok ? &fits : &too_many) = percent;
	}
	return fits;
}

static uint64_t resident_bytes(const struct plan *plan, const struct placement *p)
{
	return p->ledger.row[plan->gpu_memory].used_bytes[LEDGER_WEIGHTS];
}

static const char *advise(const struct plan *plan, const struct engine_job *job, const struct placement *p, struct arena *a)
{
	int most = most_on_gpu(plan, job, a);

	if (most < 0)
		return "a smaller gpu-batch-size, or --percent with cache or hidden states in RAM, is needed";
	struct arena_mark mark = arena_mark(a);
	struct plan by_hand = *plan;
	struct placement tried;
	by_hand.weight[0] = most;
	by_hand.weight[1] = fmax(0, plan->weight[0] + plan->weight[1] - most);
	by_hand.weight[2] = 100 - by_hand.weight[0] - by_hand.weight[1];
	fill(&by_hand, job, &tried, a);
	uint64_t more = resident_bytes(plan, &tried), now = resident_bytes(plan, p);
	arena_rewind(a, mark);
	const char *flag = arena_printf(a, "--percent %d %g %g %g %s", most, by_hand.weight[1], plan->cache[0], plan->cache[1],
		plan->hidden_memory == plan->gpu_memory ? "100 0" : "0 100");
	if (ledger_missing(&p->ledger, plan->gpu_memory))
		return arena_printf(a, "%s would fit the GPU", flag);
	if (!ledger_fits(&p->ledger))
		return "RAM is short: more on disk (smaller second numbers of --percent), or a smaller block, is needed";
	if (more <= now)
		return "no further whole tensor of a layer fits in GPU memory";
	return arena_printf(a, "%s would keep %.1f GiB of weights on the GPU instead of %.1f", flag,
		(double)more / 1073741824.0, (double)now / 1073741824.0);
}

static int flexgen_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	struct plan *plan = arena_new(a, struct plan);

	if (plan_init(plan, job, err))
		return -1;
	fill(plan, job, p, a);
	p->engine = plan;
	p->advice = advise(plan, job, p, a);
	return 0;
}

/* ---- execution ---- */

/* What one of FlexGen's layers is: groups of a model's layer. */
struct stage {
	int layer; /* MODEL_NO_LAYER: embeddings */
	bool embed, attention, mlp, output;
};

struct flexgen {
	const struct flexgen_flags *flags;
	const struct plan *plan;
	struct eager e;
	struct stage *stage;
	int n_stages;
	bool decode;
	uint64_t step;            /* its number */
	uint64_t rows, entries;   /* of one batch: new rows; entries a sequence has with them */
	uint64_t new_entries;     /* of one sequence */
};

static void *flexgen_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct flexgen *s = arena_new(a, struct flexgen);

	s->flags = job->flags;
	s->plan = p->engine;
	eager_init(&s->e, job->cost, job->machine, !s->flags->overlap);
	s->stage = arena_array(a, struct stage, 2 * (size_t)p->model->n_layer + 2);
	return s;
}

/* The order of layers. A decode step that is projected has the mean of attention and MLP in place of the embeddings,
   which is one pair more. */
static void order_stages(struct flexgen *s, const struct model *m, bool projected)
{
	int n = 0, pairs = (int)m->n_layer + (projected ? 1 : 0);

	if (!projected)
		s->stage[n++] = (struct stage){.layer = MODEL_NO_LAYER, .embed = true};
	for (int i = 0; i < pairs; i++) {
		int layer = i % (int)m->n_layer;
		s->stage[n++] = (struct stage){.layer = layer, .attention = true, .mlp = !s->flags->sep_layer};
		if (s->flags->sep_layer)
			s->stage[n++] = (struct stage){.layer = layer, .mlp = true};
	}
	if (!projected)
		s->stage[n++] = (struct stage){.layer = MODEL_NO_LAYER, .output = true};
	s->n_stages = n;
}

static void label(struct flexgen *s, const struct stage *j, enum exec_of of)
{
	exec_label(s->e.x, j->layer, j->embed ? MODEL_EMBED : j->output ? MODEL_OUTPUT : j->attention ? MODEL_ATTN : MODEL_FFN);
	exec_moves(s->e.x, of);
}

/* From disk through a helper's pinned buffer, one hop after the other. */
static op_ref relay_in(struct flexgen *s, int to, double bytes, bool written)
{
	struct eager *e = &s->e;
	double rate = hw_num_value(&e->cost->page_cache_bytes_s);
	op_ref read = written ? files_read_back(e->x, rate, bytes, e->host, 0) :
				files_read(e->x, rate, s->step, bytes, e->host, 0);

	return to == e->ram ? read : exec_copy_aside(e->x, e->ram, to, bytes, true, read, 0);
}

/* From the GPU to a helper's pinned buffer, then to fresh memory of the cache, or to the disk. */
static op_ref relay_out(struct flexgen *s, int to, double bytes, op_ref after)
{
	struct eager *e = &s->e;
	op_ref out = exec_copy_aside(e->x, e->gpu_memory, e->ram, bytes, true, after, e->host);

	if (to != e->ram)
		return files_write(e->x, hw_num_value(&e->cost->page_cache_bytes_s), bytes, out, 0);
	return exec_wait(e->x, bytes / hw_num_value(&e->cost->relay_bytes_s), out);
}

/* Without overlap nothing is beside: the thread still joins its helpers before what needs them. */
static void by_helpers(struct flexgen *s, op_ref op)
{
	if (s->e.in_order)
		s->e.stream = exec_join(s->e.x, s->e.stream, op);
	else
		eager_beside(&s->e, op);
}

static void load_part(struct flexgen *s, const struct place_part *part)
{
	struct eager *e = &s->e;
	double bytes = (double)part->bytes;

	if (part->spot.memory == e->gpu_memory)
		return;
	if (part->spot.memory == s->plan->drive) {
		by_helpers(s, relay_in(s, e->gpu_memory, bytes, false));
		return;
	}
	if (!s->flags->pin_weight)
		eager_move(e, 2 * bytes);
	eager_copy_aside(e, e->ram, e->gpu_memory, bytes, true, part->n_tensors, 0);
}

static void load_group(struct flexgen *s, int layer, enum model_group group)
{
	const struct placement *p = s->e.x->placement;
	const struct place_group *g = &p->group[layer == MODEL_NO_LAYER ? (int)p->model->n_layer : layer][group];

	exec_label(s->e.x, layer, group);
	for (int i = 0; i < g->n; i++)
		load_part(s, &g->part[i]);
}

/* The whole of layer j. */
static void load_weight(struct flexgen *s, const struct stage *j)
{
	if (j->embed)
		load_group(s, j->layer, MODEL_EMBED);
	if (j->attention)
		load_group(s, j->layer, MODEL_ATTN);
	if (j->mlp)
		load_group(s, j->layer, MODEL_FFN);
	if (j->output)
		load_group(s, j->layer, MODEL_OUTPUT);
}

static double entry_bytes(const struct flexgen *s, int layer)
{
	const struct placement *p = s->e.x->placement;

	return (double)kvcache_token_bytes(&p->model->layers[layer], &p->kv_types);
}

static double entry_elements(const struct flexgen *s, int layer)
{
	const struct model_layer *l = &s->e.x->placement->model->layers[layer];

	return (double)(l->kv_k_elements + l->kv_v_elements);
}

/* The cache that one batch reads at layer j: to the GPU, or into the CPU's workspace. What is in GPU memory is read there. */
static void load_cache(struct flexgen *s, const struct stage *j)
{
	struct eager *e = &s->e;
	const struct homes *h = &s->plan->homes;

	if (!s->decode || !j->attention)
		return;
	label(s, j, EXEC_CACHE);
	double entries = (double)(s->entries - s->new_entries), each = entries * entry_bytes(s, j->layer);
	int to = s->flags->cpu_cache_compute ? e->ram : e->gpu_memory;
	if (h->disk)
		by_helpers(s, relay_in(s, to, (double)h->disk * each, true));
	if (!h->ram)
		return;
	if (s->flags->cpu_cache_compute) {
		eager_move(e, (double)h->ram * entries * entry_elements(s, j->layer) * EXPAND_BYTES);
	} else {
		eager_move(e, 2 * (double)h->ram * each);
		eager_copy_aside(e, e->ram, to, (double)h->ram * each, true, s->flags->compress_cache ? 4 : 2, 0);
	}
}

/* New entries of one batch to where its cache is. One row goes straight to memory that is not pinned, so the thread waits. */
static void store_cache(struct flexgen *s, const struct stage *j, op_ref after)
{
	struct eager *e = &s->e;
	const struct homes *h = &s->plan->homes;

	if (!j->attention)
		return;
	label(s, j, EXEC_CACHE);
	double each = (double)s->new_entries * entry_bytes(s, j->layer);
	if (h->gpu)
		eager_elementwise(e, 2 * (double)h->gpu * each, 2);
	if (h->disk)
		by_helpers(s, relay_out(s, s->plan->drive, (double)h->disk * each, after));
	if (!h->ram)
		return;
	if (s->decode)
		eager_copy_aside(e, e->gpu_memory, e->ram, (double)h->ram * each, false, s->flags->compress_cache ? 4 : 2, after);
	else
		by_helpers(s, relay_out(s, e->ram, (double)h->ram * each, after));
}

static void move_hidden(struct flexgen *s, int from, int to)
{
	if (from != to)
		eager_copy(&s->e, from, to, (double)s->rows * s->e.x->placement->model->hidden * HIDDEN_ELEMENT_BYTES, true, 1);
}

/* What layer j has made of a batch: to its home; tokens to the host, which waits for them. */
static void store_hidden(struct flexgen *s, const struct stage *j)
{
	label(s, j, EXEC_HIDDEN);
	if (!j->output) {
		move_hidden(s, s->e.gpu_memory, s->plan->hidden_memory);
		return;
	}
	eager_copy(&s->e, s->e.gpu_memory, s->e.ram, (double)s->flags->gpu_batch_size * 8, true, 1);
	eager_wait(&s->e, s->e.stream);
}

static void load_hidden(struct flexgen *s, const struct stage *j)
{
	label(s, j, EXEC_HIDDEN);
	if (j->embed)
		eager_copy(&s->e, s->e.ram, s->e.gpu_memory, (double)s->rows * 4, true, 1);
	else
		move_hidden(s, s->plan->hidden_memory, s->e.gpu_memory);
}

/* Multiplies rows with a group of 16-bit matrices, which are expanded before when they are compressed. */
static void multiply(struct flexgen *s, int layer, enum model_group group, double rows, double out_bytes, double matrices,
	double kernels)
{
	const struct placement *p = s->e.x->placement;
	const struct place_group *g = &p->group[layer == MODEL_NO_LAYER ? (int)p->model->n_layer : layer][group];
	double params = 0;

	for (int i = 0; i < g->n; i++)
		params += (double)g->part[i].params;
	exec_label(s->e.x, layer, group);
	if (s->flags->compress_weight)
		eager_broadcast(&s->e, params * DECOMPRESS_BYTES, matrices * DECOMPRESS_KERNELS);
	eager_multiply(&s->e, 2 * params + out_bytes, 2 * rows * params, kernels);
}

/* The embedding: all of it is expanded, some rows are read. */
static void embed(struct flexgen *s)
{
	const struct placement *p = s->e.x->placement;

	exec_label(s->e.x, MODEL_NO_LAYER, MODEL_EMBED);
	if (s->flags->compress_weight)
		eager_broadcast(&s->e, (double)p->model->embed.params * DECOMPRESS_BYTES, 2 * DECOMPRESS_KERNELS);
	eager_elementwise(&s->e, 7.0 * (double)s->rows * p->model->hidden * HIDDEN_ELEMENT_BYTES, EMBED_KERNELS);
}

/* Whole squares of scores, causal or not. */
static void attend_prompt(struct flexgen *s, int layer)
{
	const struct model_layer *l = &s->e.x->placement->model->layers[layer];
	double pairs = (double)s->rows * (double)s->entries;
	double made = (double)s->rows * entry_elements(s, layer);

	eager_attention(&s->e, pairs * l->n_head * SCORE_BYTES, model_attention_flops(l, 1, pairs), 0);
	if (s->flags->compress_cache)
		eager_elementwise(&s->e, made * COMPRESS_BYTES, 2 * COMPRESS_KERNELS);
}

/* The CPU attends to so many sequences, in 32 bits; q comes, the result goes. */
static void attend_on_cpu(struct flexgen *s, const struct model_layer *l, int layer, double sequences)
{
	struct eager *e = &s->e;
	double vectors = sequences * l->n_head * l->head_dim_k * HIDDEN_ELEMENT_BYTES;
	struct platform_work work = {
		.bytes = sequences * (double)s->entries * entry_elements(s, layer) * CPU_CACHE_BYTES,
		.flops = model_attention_flops(l, 1, sequences * (double)s->entries),
		.dtype = HW_FP32,
		.read_share = hw_num_value(&e->cost->host_attention),
	};

	eager_copy(e, e->gpu_memory, e->ram, 3 * vectors, false, 3); /* q, and k and v into the workspace */
	e->host = exec_kernel(e->x, e->cpu, &work, e->host, 0);
	eager_copy(e, e->ram, e->gpu_memory, 2 * vectors, false, 1);
}

static void attend(struct flexgen *s, int layer)
{
	const struct model_layer *l = &s->e.x->placement->model->layers[layer];
	const struct homes *h = &s->plan->homes;
	double on_cpu = s->flags->cpu_cache_compute ? (double)(h->ram + h->disk) : 0;
	double on_gpu = (double)s->flags->gpu_batch_size - on_cpu;
	double elements = on_gpu * (double)s->entries * entry_elements(s, layer);

	if (on_gpu > 0) {
		if (s->flags->compress_cache)
			eager_elementwise(&s->e, elements * DECOMPRESS_CACHE_BYTES, 2 * DECOMPRESS_KERNELS);
		eager_attention(&s->e, elements * CACHE_BYTES,
			model_attention_flops(l, 1, on_gpu * (double)s->entries), 0);
	}
	if (on_cpu > 0)
		attend_on_cpu(s, l, layer, on_cpu);
	if (s->flags->compress_cache)
		eager_elementwise(&s->e, (double)s->rows * entry_elements(s, layer) * COMPRESS_BYTES, 2 * COMPRESS_KERNELS);
}

static void compute(struct flexgen *s, const struct stage *j)
{
	const struct model *m = s->e.x->placement->model;

	if (j->embed)
		embed(s);
	if (j->attention) {
		/* Four products, with attention between the third and the last. */
		multiply(s, j->layer, MODEL_ATTN, (double)s->rows, 0, ATTENTION_MATRICES, ATTENTION_KERNELS);
		exec_moves(s->e.x, EXEC_CACHE);
		if (s->decode)
			attend(s, j->layer);
		else
			attend_prompt(s, j->layer);
	}
	if (j->mlp)
		multiply(s, j->layer, MODEL_FFN, (double)s->rows, 0, MLP_MATRICES, MLP_KERNELS);
	/* Every row gets its logits, in prefill too. */
	if (j->output)
		multiply(s, MODEL_NO_LAYER, MODEL_OUTPUT, (double)s->rows,
			(double)s->rows * m->vocab * HIDDEN_ELEMENT_BYTES, 1, OUTPUT_KERNELS);
}

/* generation_loop_overlap_multi_batch */
static void run_block(struct flexgen *s)
{
	int n = (int)s->flags->num_gpu_batches;
	op_ref made = 0; /* the end of what computed the batch before */

	for (int j = 0; j < s->n_stages; j++) {
		const struct stage *now = &s->stage[j], *next = &s->stage[(j + 1) % s->n_stages];
		for (int k = 0; k < n; k++) {
			const struct stage *then = k + 1 < n ? now : next;
			bool last = k + 1 == n && j + 1 == s->n_stages;
			const struct stage *before = k > 0 ? now : j > 0 ? &s->stage[j - 1] : NULL;
			if (k == 0)
				load_weight(s, next);
			if (!last)
				load_cache(s, then);
			if (before)
				store_hidden(s, before);
			load_hidden(s, then);
			compute(s, now);
			if (before)
				store_cache(s, before, made);
			made = s->e.stream;
			eager_sync(&s->e);
		}
	}
	store_hidden(s, &s->stage[s->n_stages - 1]);
}

/* generation_loop_overlap_single_batch */
static void run_single(struct flexgen *s)
{
	op_ref made = 0;

	for (int j = 0; j < s->n_stages; j++) {
		const struct stage *now = &s->stage[j];
		load_weight(s, &s->stage[(j + 1) % s->n_stages]);
		if (j + 1 < s->n_stages)
			load_cache(s, &s->stage[j + 1]);
		load_hidden(s, now);
		compute(s, now);
		if (j > 0)
			store_cache(s, &s->stage[j - 1], made);
		store_hidden(s, now);
		made = s->e.stream;
		eager_sync(&s->e);
	}
}

/* generation_loop_normal */
static void run_in_order(struct flexgen *s)
{
	for (int j = 0; j < s->n_stages; j++) {
		const struct stage *now = &s->stage[j];
		load_weight(s, now);
		for (uint64_t k = 0; k < s->flags->num_gpu_batches; k++) {
			load_cache(s, now);
			load_hidden(s, now);
			compute(s, now);
			store_hidden(s, now);
			store_cache(s, now, s->e.stream);
		}
	}
}

static int flexgen_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct flexgen *s = state;
	const struct trace_workload *w = &x->cursor.trace->workload;
	bool projected;

	(void)err;
	s->step = step->index;
	s->decode = step->phase == TRACE_DECODE;
	projected = s->decode && s->flags->debug_mode == DEBUG_FEWER_BATCH;
	s->rows = step->n_tokens / s->flags->num_gpu_batches;
	s->new_entries = step->n_tokens / step->n_sequences;
	s->entries = (projected ? w->depth + w->prompt : step->context) + s->new_entries;
	order_stages(s, x->placement->model, projected);
	eager_begin(&s->e, x);
	if (!s->flags->overlap)
		run_in_order(s);
	else if (s->flags->num_gpu_batches == 1)
		run_single(s);
	else
		run_block(s);
	*last = exec_join(x, s->e.host, s->e.stream);
	return 0;
}

const struct engine_ops engine_flexgen = {
	.name = "flexgen",
	.version = "1",
	.help = "FlexGen: a block of batches goes through each layer; weights cross once a block",
	.flag = flexgen_flag,
	.n_flags = ARRAY_LEN(flexgen_flag),
	.flags_size = sizeof(struct flexgen_flags),
	.alias = flexgen_alias,
	.n_aliases = ARRAY_LEN(flexgen_alias),
	.ignored = flexgen_ignored,
	.n_ignored = ARRAY_LEN(flexgen_ignored),
	.several = "percent",
	.kernels = "flexgen",
	.overheads = true,
	.place = flexgen_place,
	.state_new = flexgen_state_new,
	.lower = flexgen_lower,
};
