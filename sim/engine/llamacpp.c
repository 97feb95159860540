/*
 * llamacpp.c - llama.cpp as of mid-2026 (ggml-org/ggml d99724f2, llama.cpp 4fc4ec554).
 *
 *	few rows (decode)     GPU layer:  [attn][kv][ffn] on the GPU
 *	                      CPU layer:  all of it on the CPU, one hidden vector crosses where the device changes
 *	                      CPU experts: … router on the GPU ─sync─ hidden D2H, experts on the CPU, H2D ─ …
 *	many rows (>= 32)     CPU-held weights cross the link one tensor at a time and are multiplied on the GPU:
 *	                      [copy][kernel][copy][kernel]: each copy waits and is waited for, nothing overlaps
 *	-sm row               each dense matrix: inputs to the other GPUs, all multiply their rows, results gathered:
 *	                      layer's GPU  [norms][rows of w_q]....wait[rows of w_k]....
 *	                      other GPU      [in][rows of w_q][out]   [in][rows of w_k][out]
 *
 * Layers, with their KV cache, are dealt to the GPUs by -ts, and hidden states cross where they change. Under -sm row the
 * same GPU has a layer's cache, norms and experts, and gathers (since pull request 10026; the help still says that -mg
 * does); of its dense matrices each GPU has the rows that -ts gives it. Inputs go as q8_1 where weights are quantised and
 * come back as f32, by the way there is from GPU to GPU: NVLink, else through host memory. There are no CUDA graphs then
 * (ggml-cuda.cu, ggml_cuda_op_mul_mat). Rows are not rounded to tiles, nor do many columns go in chunks of 128.
 *
 * One host thread submits everything in order, so a step is one chain. Weights are pageable under mmap (the
 * default) and pinned under --no-mmap. What kernels reach is in hw/kernels/llama.cpp.yaml.
 *
 * Old builds, by --build: before 2024-04 single products borrowed the GPU for many rows, [rows in][copy][kernel][results
 * back], and all between them stayed on the CPU; before 2025-08 all experts of a layer crossed, chosen or not. Without flash
 * attention (the default before 2025-09) scores are written and read: [scores][attention].
 */
#include <math.h>
#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/llamacpp.h"
#include "sim/exec/kernel.h"
#include "sim/exec/lower.h"

/* From so many rows on, weights held by the host are multiplied on the GPU (op_offload_min_batch_size). */
#define OFFLOAD_MIN_ROWS 32
/* Up to so many rows a GPU multiplies vectors (MMVQ_MAX_BATCH_SIZE). */
#define VECTOR_ROWS 8
/* The cache is allocated in pieces of so many entries. */
#define KV_PAD 256
#define HIDDEN_ELEMENT_BYTES 4
/* Times that the results of products cross a CPU's bus until the next product has them. */
#define READ_BETWEEN 3
/* A pass that wants so much of a layer's weights wants all. */
#define ALL_OF_IT 0.95
/* Numbers of operations as ik_llama.cpp's -op has them (pull request 405). */
enum { OP_MUL_MAT = 26, OP_MUL_MAT_ID = 27, OP_FUSED_UP_GATE = 29 };
/* Of ik_llama.cpp's -fmoe: up, gate and glu are one. */
#define FUSED_EXPERT_NODES 4
/* Inputs of quantised matrices: blocks of 32 bytes and two f16 (block_q8_1). */
#define Q8_1_BYTES (36.0 / 32)
#define F16_BYTES 2.0
/* Output rows of an expert in ik_llama.cpp that go to one thread together. */
#define EXPERT_BLOCK_ROWS 8
#define MAX_OVERRIDES 64

/* Graph nodes of one group of a layer, views aside, counted in build_attn, build_ffn and build_moe_ffn of
   src/llama-graph.cpp: a CUDA kernel on a GPU, a barrier of all threads on a CPU. The cache is read by one more. */
static const int group_nodes[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1,  /* get_rows */
	[MODEL_ATTN] = 11,  /* norm, mul, q, k, v, 2 rope, 2 set_rows, output, add */
	[MODEL_FFN] = 6,    /* norm, mul, gate and up, glu, down, add */
	[MODEL_ROUTER] = 7, /* norm, mul, logits, softmax, top-k, get_rows, normalise */
	[MODEL_SHARED] = 4, /* gate and up, glu, down, add */
	[MODEL_EXPERTS] = 6, /* up, gate, glu, down, weigh, add */
	[MODEL_OUTPUT] = 3, /* norm, mul, logits */
};

/* On a CPU as well, but there nothing is fused: by build_layer_attn and build_moe_ffn of the same commit. */
#define QK_NORM_NODES 4      /* two norms and their factors */
#define MLA_KERNELS 9        /* on a GPU, norms fused */
#define MLA_NODES 12         /* more than of plain attention: two low ranks with norms, absorbed heads, concatenations */
#define ROUTER_CPU_NODES 9   /* … the sum and the division apart */
#define EXPERT_CPU_NODES 4   /* up, gate, glu, down; the rest goes where the next layer is */
#define FUSED_EXPERT_CPU_NODES 2
/* Of a recurrent layer besides its matrices: gates, convolution, norms, update; as a graph of operations the last is many. */
#define STATE_NODES 11
#define EARLY_STATE_NODES 23 /* ggml-org/llama.cpp pull request 20091 */

const char *const llamacpp_load_choices[] = {"mmap", "none", NULL};
enum { SPLIT_LAYER, SPLIT_NONE, SPLIT_ROW };
const char *const llamacpp_split_choices[] = {"layer", "none", "row", NULL};
const char *const llamacpp_numa_choices[] = {"none", "distribute", "isolate", "numactl", NULL};
/* distribute pins threads, but pages lie where loading or the prompt touched them (issue 11744). numactl: as it was told
   to, which is to interleave in every guide to several sockets. */
static const enum cost_binding numa_binding[] = {COST_UNBOUND, COST_UNBOUND, COST_ISOLATED, COST_SPREAD};

static const struct param llamacpp_flag[] = {LLAMACPP_FLAGS("2026-08", "512")};
static const struct engine_alias llamacpp_alias[] = {LLAMACPP_ALIASES};
static const struct engine_ignored llamacpp_ignored[] = {LLAMACPP_IGNORED};

/* A buffer of -ot that is a GPU, whichever. */
#define ANY_GPU (-2)

struct override {
	regex_t regex;
	int16_t memory;
};

struct plan {
	const struct engine_job *job;
	const struct llamacpp_fork *fork;
	const struct llamacpp_flags *flags;
	struct kvcache_types kv_types;
	int n_gpus, gpu[LLAMACPP_MAX_GPUS];
	double share[LLAMACPP_MAX_GPUS]; /* of the layers on GPUs, cumulated */
	const double *below;  /* by layer: share of the GPUs' bytes that lie before its middle; NULL: layers count alike */
	int cpu, ram;
	uint32_t ngl;
	struct override *override;
	int n_overrides;
};

static bool is_since(const struct llamacpp_flags *f, const char *date)
{
	return date && strcmp(f->build, date) >= 0;
}

static struct place_spot on_device(const struct plan *plan, int device)
{
	return (struct place_spot){(int16_t)plan->job->machine->devices[device].memory, (int16_t)device, PLACE_RESIDENT};
}

/* The device of a layer; the output is layer n_layer. The last ngl are on GPUs, in order of the GPUs. */
static int layer_device(const struct plan *plan, uint32_t i)
{
	uint32_t n = plan->job->model->n_layer + 1;
	uint32_t start = n > plan->ngl ? n - plan->ngl : 0;

	if (plan->n_gpus == 0 || i < start)
		return plan->cpu;
	double where = plan->below ? plan->below[i] : ((double)(i - start) + 0.5) / (double)(n - start);
	for (int g = 0; g < plan->n_gpus - 1; g++)
		if (where < plan->share[g])
			return plan->gpu[g];
	return plan->gpu[plan->n_gpus - 1];
}

static const struct override *find_override(const struct plan *plan, const char *tensor)
{
	for (int i = 0; i < plan->n_overrides; i++)
		if (regexec(&plan->override[i].regex, tensor, 0, NULL, 0) == 0)
			return &plan->override[i];
	return NULL;
}

static bool experts_in_ram(const struct plan *plan, const struct model_tensor *t)
{
	return t->group == MODEL_EXPERTS &&
		(plan->flags->cpu_moe || (t->layer >= 0 && (uint64_t)t->layer < plan->flags->n_cpu_moe));
}

/* Split buffers hold what plain multiplications use: no experts, no tables, nothing of one dimension. */
static bool is_dense_matrix(const struct model_tensor *t)
{
	return t->group != MODEL_EMBED && t->group != MODEL_EXPERTS && t->shape[2] == 1 && model_tensor_is_matrix(t);
}

static struct place_spot tensor_spot(const struct plan *plan, const struct model_tensor *t)
{
	const struct hw_machine *hw = plan->job->machine;
	const struct override *o = find_override(plan, t->name);

	if (o && o->memory == ANY_GPU)
		return on_device(plan, plan->gpu[(t->layer < 0 ? 0 : t->layer) % plan->n_gpus]);
	if (o) {
		for (int g = 0; g < plan->n_gpus; g++)
			if (hw->devices[plan->gpu[g]].memory == o->memory)
				return on_device(plan, plan->gpu[g]);
		return on_device(plan, plan->cpu);
	}
	if (t->group == MODEL_EMBED || experts_in_ram(plan, t))
		return on_device(plan, plan->cpu);
	int device = layer_device(plan, t->layer < 0 ? plan->job->model->n_layer : (uint32_t)t->layer);
	struct place_spot spot = on_device(plan, device);
	if (plan->flags->sm == SPLIT_ROW && plan->n_gpus > 1 && device != plan->cpu && is_dense_matrix(t))
		spot.mode = PLACE_ROWS;
	return spot;
}

/* A mapped file that RAM does not hold. */
struct llamacpp_paging {
	int drive;
	bool experts; /* of routed experts alone: what every token wants stays in memory */
	double share; /* of the weights there that comes from the drive at each use, where a pass does not want them all */
};

static uint64_t pad(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Graph intermediates for one pass, in f32; logits for all its rows. Each GPU that computes reserves them. */
static void book_compute_buffers(const struct plan *plan, struct placement *p)
{
	const struct trace_workload *w = &plan->job->trace->workload;
	uint64_t rows = w->batch * (w->prompt > 1 ? w->prompt : 1);

	if (rows > plan->flags->ub)
		rows = plan->flags->ub;
	uint64_t bytes = model_activation_bytes(plan->job->model, rows, rows, HIDDEN_ELEMENT_BYTES);
	for (int g = 0; g < plan->n_gpus; g++)
		ledger_book(&p->ledger, plan->job->machine->devices[plan->gpu[g]].memory, LEDGER_ACTIVATION,
			"compute buffer", bytes);
	if (plan->n_gpus == 0)
		ledger_book(&p->ledger, plan->ram, LEDGER_ACTIVATION, "compute buffer", bytes);
}

/* Weights in RAM that many rows want are copied into the GPU's compute buffer, one tensor at a time. */
static void book_staging(const struct plan *plan, struct placement *p)
{
	const struct model *m = plan->job->model;
	uint64_t largest = 0;

	if (plan->n_gpus == 0 || plan->flags->no_op_offload)
		return;
	for (int i = 0; i < m->n_tensors; i++)
		if (p->tensor[i].device == plan->cpu && m->tensors[i].group != MODEL_EMBED && m->tensors[i].bytes > largest)
			largest = m->tensors[i].bytes;
	ledger_book(&p->ledger, plan->job->machine->devices[plan->gpu[0]].memory, LEDGER_OVERHEAD,
		"weights on their way", largest);
}

/* Weights, cache and compute buffer are one cudaMalloc each, in whole 2 MiB. */
static void book_rounding(const struct plan *plan, struct placement *p)
{
	const uint64_t round = 2 << 20;

	for (int g = 0; g < plan->n_gpus; g++) {
		int memory = plan->job->machine->devices[plan->gpu[g]].memory;
		uint64_t slack = 0;
		for (int c = 0; c < LEDGER_OVERHEAD; c++)
			slack += pad(p->ledger.row[memory].used_bytes[c], round) - p->ledger.row[memory].used_bytes[c];
		ledger_book(&p->ledger, memory, LEDGER_OVERHEAD, "allocator rounding", slack);
	}
}

static void book_again(struct placement *p, const struct place_spot *spot, uint64_t bytes)
{
	static const char what[] = "tied output, again";

	if (spot->mode != PLACE_ROWS)
		ledger_book(&p->ledger, spot->memory, LEDGER_WEIGHTS, what, bytes);
	for (int i = 0; i < p->rows.n && spot->mode == PLACE_ROWS; i++)
		ledger_book(&p->ledger, p->rows.spot[i].memory, LEDGER_WEIGHTS, what, place_rows_share(&p->rows, i, bytes));
}

static bool is_mapped(const struct llamacpp_flags *f)
{
	return f->mmap && !f->no_mmap && f->load_mode == 0;
}

/* Weights beyond the capacity of RAM stay in the file. Which pages the system keeps does not follow the model's order, so
   each use finds the same share of them there. */
static void page_out(const struct plan *plan, struct placement *p, struct arena *a)
{
	uint64_t missing = ledger_missing(&p->ledger, plan->ram), held = p->ledger.row[plan->ram].used_bytes[LEDGER_WEIGHTS];
	int drive = hw_first_memory(plan->job->machine, HW_MEMORY_DRIVE);

	if (!missing || drive < 0 || missing > held || !is_mapped(plan->flags))
		return;
	uint64_t experts = 0;
	for (int i = 0; i < p->model->n_tensors; i++)
		if (p->model->tensors[i].group == MODEL_EXPERTS && p->tensor[i].memory == plan->ram)
			experts += p->model->tensors[i].bytes;
	struct llamacpp_paging *paging = arena_new(a, struct llamacpp_paging);
	*paging = (struct llamacpp_paging){drive, experts >= missing, (double)missing / (double)(experts >= missing ? experts : held)};
	p->engine = paging;
	ledger_move(&p->ledger, plan->ram, drive, LEDGER_WEIGHTS, missing);
}

static void fill(const struct plan *plan, struct placement *p, struct arena *a)
{
	const struct model *m = plan->job->model;
	const struct trace_workload *w = &plan->job->trace->workload;
	uint64_t context = trace_max_context(plan->job->trace);

	place_init(p, m, plan->job->machine, a);
	if (plan->flags->c > context * w->batch)
		context = plan->flags->c / w->batch;
	p->kv_types = plan->kv_types;
	p->kv_context = pad(context, KV_PAD);
	p->kv_sequences = w->batch;
	p->rows.n = plan->n_gpus;
	for (int g = 0; g < plan->n_gpus; g++) {
		p->rows.spot[g] = on_device(plan, plan->gpu[g]);
		p->rows.spot[g].mode = PLACE_ROWS;
		p->rows.upto[g] = plan->share[g];
	}
	for (int i = 0; i < m->n_tensors; i++) {
		p->tensor[i] = tensor_spot(plan, &m->tensors[i]);
		/* A tied output is loaded once more where it is multiplied. */
		if (m->tensors[i].shared_storage && p->tensor[i].device != plan->cpu)
			book_again(p, &p->tensor[i], m->tensors[i].bytes);
	}
	for (uint32_t i = 0; i < m->n_layer; i++)
		p->kv[i] = on_device(plan, plan->flags->nkvo ? plan->cpu : layer_device(plan, i));
	place_finish(p);
	book_compute_buffers(plan, p);
	book_staging(plan, p);
	book_rounding(plan, p);
	page_out(plan, p, a);
}

static bool on_gpus(const struct plan *plan, const struct placement *p, int memory)
{
	return p->machine->memories[memory].kind == HW_MEMORY_GPU && plan->n_gpus > 0;
}

/* Deals the layers to the GPUs by what they have there instead of by number. Without -ts that is what --fit does, and who
   ran something that does not fit otherwise wrote a -ts. */
static void balance(struct plan *plan, const struct placement *p, struct arena *a)
{
	const struct model *m = plan->job->model;
	double *below = arena_array(a, double, m->n_layer + 1), *bytes = arena_array(a, double, m->n_layer + 1), sum = 0, at = 0;

	for (int i = 0; i < m->n_tensors; i++)
		if (on_gpus(plan, p, p->tensor[i].memory))
			bytes[m->tensors[i].layer < 0 ? (int)m->n_layer : m->tensors[i].layer] += (double)m->tensors[i].bytes;
	for (uint32_t i = 0; i < m->n_layer; i++)
		if (on_gpus(plan, p, p->kv[i].memory))
			bytes[i] += (double)(p->kv_sequences * kvcache_layer_bytes(&m->layers[i], p->kv_context, &p->kv_types));
	for (uint32_t i = 0; i <= m->n_layer; i++)
		sum += bytes[i];
	for (uint32_t i = 0; i <= m->n_layer; i++) {
		below[i] = (at + bytes[i] / 2) / sum;
		at += bytes[i];
	}
	plan->below = below;
}

static bool gpus_fit(const struct plan *plan, uint32_t ngl, uint64_t margin, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct plan tried = *plan;
	struct placement p;
	bool fits = true;

	tried.ngl = ngl;
	fill(&tried, &p, a);
	for (int g = 0; g < plan->n_gpus; g++) {
		int memory = plan->job->machine->devices[plan->gpu[g]].memory;
		fits &= ledger_missing(&p.ledger, memory) == 0 && ledger_free(&p.ledger, memory) >= margin;
	}
	arena_rewind(a, mark);
	return fits;
}

static uint32_t most_layers(const struct plan *plan, uint64_t margin, struct arena *a)
{
	uint32_t fits = 0, too_many = plan->job->model->n_layer + 2;

	while (too_many - fits > 1) {
		uint32_t middle = fits + (too_many - fits) / 2;
		if (gpus_fit(plan, middle, margin, a))
			fits = middle;
		else
			too_many = middle;
	}
	return fits;
}

/* -ngl auto with a mixture of experts: all layers on the GPUs, experts of as few as possible in RAM. False when that
   does not fit, or the program does not do it. */
static bool fit_experts(struct plan *plan, struct llamacpp_flags *fitted, struct arena *a)
{
	const struct model *m = plan->job->model;
	uint64_t margin = (uint64_t)plan->flags->fit_target_bytes, too_few = 0;
	struct plan tried = *plan;
	bool experts = false;

	for (uint32_t i = 0; i < m->n_layer; i++)
		experts |= m->layers[i].n_expert > 0;
	if (!experts || !is_since(plan->flags, plan->fork->fit_from) || gpus_fit(plan, plan->ngl, margin, a))
		return false;
	*fitted = *plan->flags;
	fitted->n_cpu_moe = m->n_layer;
	tried.flags = fitted;
	if (!gpus_fit(&tried, plan->ngl, margin, a))
		return false;
	for (uint64_t fits = m->n_layer; fits - too_few > 1;) {
		fitted->n_cpu_moe = too_few + (fits - too_few) / 2;
		*(gpus_fit(&tried, plan->ngl, margin, a) ? &fits : &too_few) = fitted->n_cpu_moe;
	}
	fitted->n_cpu_moe = too_few + 1;
	plan->flags = fitted;
	return true;
}

/* All layers are on the GPU: are experts in RAM that would fit there too? */
static const char *advise_experts(const struct plan *plan, struct arena *a)
{
	struct llamacpp_flags flags = *plan->flags;
	struct plan tried = *plan;
	uint64_t held = flags.cpu_moe ? plan->job->model->n_layer : flags.n_cpu_moe, fits = held, too_few = 0;

	if (held == 0)
		return "all layers are on the GPU";
	flags.cpu_moe = false;
	flags.n_cpu_moe = 0;
	tried.flags = &flags;
	if (gpus_fit(&tried, tried.ngl, 0, a))
		return "all experts would fit in GPU memory as well: leave out --cpu-moe and --n-cpu-moe";
	while (fits - too_few > 1) {
		flags.n_cpu_moe = too_few + (fits - too_few) / 2;
		if (gpus_fit(&tried, tried.ngl, 0, a))
			fits = flags.n_cpu_moe;
		else
			too_few = flags.n_cpu_moe;
	}
	if (fits == held)
		return "no further layer's experts fit in GPU memory";
	return arena_printf(a, "experts of more layers would fit in GPU memory: --n-cpu-moe %llu", (unsigned long long)fits);
}

static const char *advise(const struct plan *plan, const struct placement *p, struct arena *a)
{
	uint32_t all = plan->job->model->n_layer + 1, most;

	if (plan->n_gpus == 0)
		return ledger_fits(&p->ledger) ? "" : "more RAM, a shorter context or a smaller type is needed";
	most = most_layers(plan, 0, a);
	if (!ledger_fits(&p->ledger))
		return most < plan->ngl ? arena_printf(a, "-ngl %u would fit the GPU", most) :
					  "more RAM, a shorter context or a smaller type is needed";
	if (plan->ngl >= all)
		return advise_experts(plan, a);
	if (most > plan->ngl)
		return arena_printf(a, "-ngl %u would fit as well, %u layers more", most, most - plan->ngl);
	return arena_printf(a, "-ngl %u is the most that fits", plan->ngl);
}

/* POSIX has no \d, and no groups that do not capture. */
static const char *posix_regex(const char *text, struct arena *a)
{
	char *out = arena_alloc(a, 6 * strlen(text) + 1), *to = out;

	for (const char *p = text; *p; p++) {
		if (p[0] == '\\' && p[1] == 'd') {
			to = stpcpy(to, "[0-9]");
			p++;
		} else if (p[0] == '(' && p[1] == '?' && p[2] == ':') {
			*to++ = '(';
			p += 2;
		} else {
			*to++ = *p;
		}
	}
	return out;
}

static int override_memory(const struct plan *plan, const char *buffer, int16_t *memory, struct err *err)
{
	char *end;

	if (strcmp(buffer, "CPU") == 0) {
		*memory = (int16_t)plan->ram;
		return 0;
	}
	if (strcmp(buffer, "CUDA?") == 0 && plan->n_gpus) {
		*memory = ANY_GPU;
		return 0;
	}
	if (strncmp(buffer, "CUDA", 4) == 0) {
		long g = strtol(buffer + 4, &end, 10);
		if (buffer[4] && *end == '\0' && g >= 0 && g < plan->n_gpus) {
			*memory = (int16_t)plan->job->machine->devices[plan->gpu[g]].memory;
			return 0;
		}
	}
	return err_set(err, ERR_INPUT, "flag 'ot': no buffer '%s' on this machine; CPU or CUDA0 to CUDA%d", buffer,
		plan->n_gpus - 1);
}

static int parse_overrides(struct plan *plan, struct arena *a, struct err *err)
{
	char *text = arena_strdup(a, plan->flags->ot), *save;

	plan->override = arena_array(a, struct override, MAX_OVERRIDES);
	for (char *one = strtok_r(text, ",;", &save); one; one = strtok_r(NULL, ",;", &save)) {
		char *equals = strrchr(one, '=');
		struct override *o = &plan->override[plan->n_overrides];

		if (!equals || equals == one)
			return err_set(err, ERR_INPUT, "flag 'ot': '%s' is not REGEX=BUFFER", one);
		if (plan->n_overrides == MAX_OVERRIDES)
			return err_set(err, ERR_INPUT, "flag 'ot': more than %d overrides", MAX_OVERRIDES);
		*equals = '\0';
		if (override_memory(plan, equals + 1, &o->memory, err))
			return -1;
		int rc = regcomp(&o->regex, posix_regex(one, a), REG_EXTENDED | REG_NOSUB);
		if (rc) {
			char why[128];
			regerror(rc, &o->regex, why, sizeof(why));
			return err_set(err, ERR_INPUT, "flag 'ot': '%s': %s", one, why);
		}
		plan->n_overrides++;
	}
	return 0;
}

static int parse_split(struct plan *plan, struct arena *a, struct err *err)
{
	const struct hw_machine *hw = plan->job->machine;
	char *text = arena_strdup(a, plan->flags->sm == SPLIT_NONE ? "" : plan->flags->ts), *save;
	double part[LLAMACPP_MAX_GPUS], sum = 0;
	int n = 0;

	for (char *word = strtok_r(text, ",/", &save); word; word = strtok_r(NULL, ",/", &save)) {
		if (n == plan->n_gpus)
			return err_set(err, ERR_INPUT, "flag 'ts': more shares than the %d GPUs", plan->n_gpus);
		if (units_parse(word, UNIT_PLAIN, &part[n], err) || part[n] < 0)
			return err_set(err, ERR_INPUT, "flag 'ts': '%s' is no share", word);
		sum += part[n++];
	}
	if (n == 0)
		for (; n < plan->n_gpus; n++)
			sum += part[n] = (double)hw->memories[hw->devices[plan->gpu[n]].memory].capacity_bytes;
	for (; n < plan->n_gpus; n++)
		part[n] = 0;
	if (plan->n_gpus && !(sum > 0))
		return err_set(err, ERR_INPUT, "flag 'ts': the shares sum to nothing");
	for (int g = 0; g < plan->n_gpus; g++)
		plan->share[g] = (g ? plan->share[g - 1] : 0) + part[g] / sum;
	return 0;
}

static int parse_ngl(const char *text, uint32_t all, bool *automatic, uint32_t *ngl, struct err *err)
{
	double n;

	*automatic = strcmp(text, "auto") == 0;
	*ngl = all;
	if (*automatic || strcmp(text, "all") == 0)
		return 0;
	if (units_parse(text, UNIT_COUNT, &n, err))
		return err_set(err, ERR_INPUT, "flag 'ngl' must be a whole number, all or auto, not '%s'", text);
	if (n >= 0 && n < all)
		*ngl = (uint32_t)n;
	return 0;
}

static int cache_type(const char *flag, const char *name, const struct quant_type **type, struct err *err)
{
	if (quant_get(name, type, err))
		return err_prefix(err, "flag '%s'", flag);
	if (!(*type)->kv)
		return err_set(err, ERR_INPUT, "flag '%s': '%s' is no type of KV cache", flag, name);
	return 0;
}

static enum kvcache_form cache_form(const struct llamacpp_fork *fork, const struct llamacpp_flags *f)
{
	if (f->mla >= 2 || is_since(f, fork->latent_from))
		return KVCACHE_LATENT;
	return f->mla == 1 ? KVCACHE_LATENT_COPY : KVCACHE_HEADS;
}

static int plan_init(struct plan *plan, const struct llamacpp_fork *fork, const struct engine_job *job, struct arena *a,
	struct err *err)
{
	const struct llamacpp_flags *f = job->flags;
	const struct hw_machine *hw = job->machine;

	*plan = (struct plan){
		.job = job,
		.fork = fork,
		.flags = f,
		.cpu = hw_first_device(hw, HW_DEVICE_CPU),
		.ram = hw_first_memory(hw, HW_MEMORY_RAM),
	};
	for (int d = 0; d < hw->n_devices && plan->n_gpus < LLAMACPP_MAX_GPUS; d++)
		if (hw->devices[d].kind == HW_DEVICE_GPU)
			plan->gpu[plan->n_gpus++] = d;
	if (plan->n_gpus && f->mg >= (uint64_t)plan->n_gpus)
		return err_set(err, ERR_INPUT, "flag 'mg': no GPU %d; this machine has %d, counted from 0", (int)f->mg,
			plan->n_gpus);
	if (plan->n_gpus && f->sm == SPLIT_NONE) {
		plan->gpu[0] = plan->gpu[f->mg];
		plan->n_gpus = 1;
	}
	if (cache_type("ctk", f->ctk, &plan->kv_types.k, err) || cache_type("ctv", f->ctv, &plan->kv_types.v, err))
		return -1;
	plan->kv_types.form = cache_form(fork, f);
	return parse_overrides(plan, a, err) || parse_split(plan, a, err) ? -1 : 0;
}

/* Types that only a fork knows, or that no GGUF holds. */
static int check_types(const struct llamacpp_fork *fork, const struct model *m, struct err *err)
{
	for (int i = 0; i < m->n_tensors && !fork->ik; i++)
		if (m->tensors[i].type->family == QUANT_IK)
			return err_set(err, ERR_INPUT, "llama.cpp does not know type '%s' of '%s': it is ik_llama.cpp's",
				m->tensors[i].type->name, m->tensors[i].name);
	return 0;
}

int llamacpp_place(const struct llamacpp_fork *fork, const struct engine_job *job, struct placement *p, struct arena *a,
	struct err *err)
{
	struct llamacpp_flags fitted;
	struct plan plan;
	bool automatic;

	if (check_types(fork, job->model, err) || plan_init(&plan, fork, job, a, err) ||
		engine_check_build(plan.flags->build, err) ||
		parse_ngl(plan.flags->ngl, job->model->n_layer + 1, &automatic, &plan.ngl, err))
		return -1;
	if (plan.n_gpus == 0)
		plan.ngl = 0;
	else if (automatic && !fit_experts(&plan, &fitted, a))
		plan.ngl = most_layers(&plan, (uint64_t)plan.flags->fit_target_bytes, a);
	fill(&plan, p, a);
	if (!ledger_fits(&p->ledger) && plan.n_gpus > 1 && plan.flags->sm == SPLIT_LAYER && !*plan.flags->ts) {
		balance(&plan, p, a);
		fill(&plan, p, a);
	}
	p->advice = advise(&plan, p, a);
	for (int i = 0; i < plan.n_overrides; i++)
		regfree(&plan.override[i].regex);
	return 0;
}

uint64_t llamacpp_prefill_rows(const void *flags, const struct hw_machine *machine)
{
	const struct llamacpp_flags *f = flags;

	(void)machine;
	return f->ub < f->b ? f->ub : f->b;
}

struct llamacpp {
	const struct llamacpp_fork *fork;
	const struct llamacpp_flags *flags;
	const struct cost *cost;
	struct lower chain;
	int gpu;             /* that takes work from the host; -1: none */
	struct cost_team decode_team, prefill_team; /* the CPU's threads */
	struct cost_team team; /* of this step */
	bool pinned;
	bool offload;        /* this step: host-held weights are multiplied on the GPU */
	bool offload_experts; /* and experts */
	bool dense_may, experts_may; /* be multiplied there at all */
	bool whole;          /* and attention of their layers with them */
	bool used_only;      /* of experts those that were chosen alone are copied */
	bool graphs;         /* a CUDA graph for each split */
	bool cpu_worked;     /* this step: on more than the embedding, so that the GPU has several splits */
	bool drained;        /* the GPU waited for the host: what comes now is launched kernel by kernel, unhidden */
	bool *qk_norms;      /* by layer: queries and keys have norms of their own */
};

static bool has_tensor(const struct model *m, const struct model_layer *l, const char *part)
{
	for (int i = 0; i < l->n_tensors; i++)
		if (strstr(m->tensors[l->first_tensor + i].name, part))
			return true;
	return false;
}

/* Barriers of a CPU in one group of a layer. */
static int cpu_nodes(const struct llamacpp *s, enum model_group group, int layer)
{
	const struct placement *p = s->chain.x->placement;
	int nodes = group_nodes[group];

	if (layer < 0 || layer >= (int)p->model->n_layer)
		return nodes;
	const struct model_layer *l = &p->model->layers[layer];
	if (group == MODEL_ATTN)
		return nodes + (l->mla_dim_k ? MLA_NODES : s->qk_norms[layer] ? QK_NORM_NODES : 0);
	if (group == MODEL_ROUTER)
		return ROUTER_CPU_NODES;
	if (group != MODEL_EXPERTS)
		return nodes;
	nodes = s->flags->fmoe ? FUSED_EXPERT_CPU_NODES : EXPERT_CPU_NODES;
	if (p->machine->devices[p->kv[layer].device].kind == HW_DEVICE_CPU)
		nodes += s->fork->ik ? 2 : 1 + (int)l->n_expert_used; /* weighed, added one by one or by one operation */
	return nodes;
}

/* "26,0,27,0": operations that never (0) or always (1) go to the GPU when their weights are in RAM, by their numbers in
   ggml. */
static void read_policy(struct llamacpp *s)
{
	const char *at = s->flags->op ? s->flags->op : "";
	int number, on, used;

	s->dense_may = s->experts_may = s->gpu >= 0 && !s->flags->no_op_offload;
	for (; sscanf(at, "%d,%d%n", &number, &on, &used) == 2; at += used + (at[used] == ',')) {
		if (number == OP_MUL_MAT)
			s->dense_may &= on;
		else if (number == OP_MUL_MAT_ID || number == OP_FUSED_UP_GATE)
			s->experts_may &= on;
	}
}

/* Whether weights in RAM are in pinned memory. Those of overridden tensors were in the CPU's own buffers at first, whatever
   was said of mapping (pull request 14990; ik_llama.cpp's 1510). */
static bool weights_pinned(const struct llamacpp_fork *fork, const struct llamacpp_flags *f)
{
	bool overrides = *f->ot || f->cpu_moe || f->n_cpu_moe;

	if (f->no_pinned || (overrides && !is_since(f, fork->overrides_pinned_from)))
		return false;
	return !is_mapped(f) || (overrides && fork->overrides_unmap);
}

/* What kernels of its build reach. */
static const struct cost *cost_then(const struct llamacpp_fork *fork, const struct engine_job *job, struct arena *a)
{
	const struct llamacpp_flags *f = job->flags;
	bool early_gpu = fork->mmq_from && !is_since(f, fork->mmq_from);
	bool early_cpu = fork->blocks_from && !is_since(f, fork->blocks_from);
	bool early_experts = hw_num_value(&job->cost->gpu_early_experts) > 0 && fork->experts_from && !is_since(f, fork->experts_from);
	/* What is counted as kernels of a group took longer before the small ones among them were fused. */
	bool unfused = hw_num_value(&job->cost->gpu_early_kernel_s) > 0 && !is_since(f, fork->fused_from);
	struct cost *cost;

	if (!early_gpu && !early_cpu && !early_experts && !unfused)
		return job->cost;
	cost = cost_copy(job->cost, a);
	if (unfused)
		cost->gpu_kernel_s = cost->gpu_early_kernel_s;
	if (early_experts)
		cost->gpu_experts.measured *= hw_num_value(&cost->gpu_early_experts);
	for (int k = COST_16BIT + 1; k < COST_CLASS_N && early_gpu; k++)
		cost->gpu_multiply[k].measured *= hw_num_value(&cost->gpu_early);
	if (early_cpu)
		cost_make_early(&cost->cpu);
	return cost;
}

void *llamacpp_state_new(const struct llamacpp_fork *fork, const struct engine_job *job, const struct placement *p,
	struct arena *a)
{
	struct llamacpp *s = arena_new(a, struct llamacpp);
	const struct hw_device *cpu = &p->machine->devices[hw_first_device(p->machine, HW_DEVICE_CPU)];

	s->fork = fork;
	s->flags = job->flags;
	s->cost = cost_then(fork, job, a);
	const char *card = s->cost->gpu_graphs_from;
	s->graphs = is_since(s->flags, fork->graphs_from) && (!card || (isdigit((unsigned char)*card) && is_since(s->flags, card)));
	s->whole = is_since(s->flags, fork->whole_from);
	s->used_only = is_since(s->flags, fork->used_from);
	s->gpu = hw_first_device(job->machine, HW_DEVICE_GPU);
	/* GPUs are neighbours in the list of devices. */
	if (s->gpu >= 0 && s->flags->sm == SPLIT_NONE)
		s->gpu += (int)s->flags->mg;
	s->qk_norms = arena_array(a, bool, p->model->n_layer);
	for (uint32_t i = 0; i < p->model->n_layer; i++)
		s->qk_norms[i] = has_tensor(p->model, &p->model->layers[i], "attn_q_norm");
	read_policy(s);
	s->pinned = weights_pinned(fork, s->flags);
	s->decode_team = cost_cpu_team(&s->cost->cpu, p->machine, cpu, (unsigned)s->flags->t, numa_binding[s->flags->numa]);
	s->prefill_team = s->flags->tb ? cost_cpu_team(&s->cost->cpu, p->machine, cpu, (unsigned)s->flags->tb,
						 numa_binding[s->flags->numa]) :
					 s->decode_team;
	if (fork->tiles_from && !is_since(s->flags, fork->tiles_from)) {
		s->decode_team.attention_share = s->prefill_team.attention_share = hw_num_value(&s->cost->cpu.early_attention);
		s->decode_team.attention_share_many = s->prefill_team.attention_share_many =
			hw_num_value(&s->cost->cpu.early_attention_many);
	}
	s->chain.hidden_elem_bytes = HIDDEN_ELEMENT_BYTES;
	/* Each split begins with a wait for the other device and ends with one. */
	s->chain.crossing_s = hw_num_value(&s->cost->gpu_sync_s) + hw_num_value(&s->cost->copy_submit_s);
	return s;
}

static struct kernel_place on(const struct llamacpp *s, const struct hw_device *d)
{
	return (struct kernel_place){
		s->cost, s->chain.x->placement->machine, d, s->team, s->flags->sm == SPLIT_ROW || s->drained};
}

/* The share of a team that has work: an expert's output rows are dealt to all threads in equal numbers of blocks, so that
   the last threads get none (iqk_mul_mat.cpp, MulMat::mul_mat_NxM by threads). */
static double dealt_share(const struct llamacpp *s, double workers)
{
	const struct model *m = s->chain.x->placement->model;
	const struct model_layer *l = &m->layers[exec_tag_layer(s->chain.x->label)];
	double ideal = 0, taken = 0;

	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[l->first_tensor + i];
		if (t->group != MODEL_EXPERTS || !model_tensor_is_matrix(t))
			continue;
		double blocks = ceil((double)t->shape[1] / EXPERT_BLOCK_ROWS);
		ideal += blocks / workers;
		taken += ceil(blocks / workers);
	}
	return taken > 0 ? ideal / taken : 1;
}

/* One group, or one matrix of it, on one device. */
static op_ref multiply(struct llamacpp *s, int device, enum model_group group, const struct quant_type *type,
	double bytes, double flops, int nodes, double experts, op_ref after)
{
	struct exec *x = s->chain.x;
	struct kernel_place where = on(s, &x->placement->machine->devices[device]);
	/* On a CPU, mul_mat_id has kernels for blocks of rows in the fork alone; on a GPU few rows are vectors. */
	bool vectors = where.device->kind == HW_DEVICE_GPU && s->chain.step->n_tokens <= VECTOR_ROWS;
	enum cost_rows how = group != MODEL_EXPERTS || vectors ? COST_TOGETHER : s->fork->ik ? COST_EXPERTS : COST_ONE_BY_ONE;
	if (how == COST_EXPERTS && where.device->kind == HW_DEVICE_CPU)
		where.team.many_share *= dealt_share(s, where.team.workers);
	struct platform_work work = kernel_multiply(&where, type, bytes, flops, nodes, how);

	if (where.device->kind == HW_DEVICE_CPU)
		work.latency_s += experts * hw_num_value(&s->cost->cpu.begin_s);
	return exec_kernel(x, device, &work, after, 0);
}

/* A blocking copy: submitted, waited for. */
static void fetch(struct llamacpp *s, int from, int to, double bytes, bool pinned)
{
	struct exec *x = s->chain.x;

	s->chain.last = exec_wait(x, hw_num_value(&s->cost->copy_submit_s) + hw_num_value(&s->cost->gpu_sync_s),
		s->chain.last);
	s->chain.last = exec_copy(x, from, to, bytes, pinned, s->chain.last, 0);
}

/* One matrix whose rows are divided: `gather` has its inputs and gets its results. */
static void multiply_divided(struct llamacpp *s, const struct model_tensor *t, int gather, double flops_per_param, int nodes)
{
	struct exec *x = s->chain.x;
	const struct hw_machine *hw = x->placement->machine;
	const struct place_rows *rows = &x->placement->rows;
	double n = (double)s->chain.step->n_tokens;
	double input_bytes = n * (double)t->shape[0] *
		(cost_class_of(t->type) == COST_16BIT ? HIDDEN_ELEMENT_BYTES : Q8_1_BYTES);
	op_ref begin = s->chain.last, submitted = begin, done = 0;
	int home = hw->devices[gather].memory;

	for (int i = 0; i < rows->n; i++) {
		int device = rows->spot[i].device, memory = rows->spot[i].memory;
		double bytes = (double)place_rows_share(rows, i, t->bytes);
		double flops = flops_per_param * (double)place_rows_share(rows, i, t->params);
		double outputs = (double)place_rows_share(rows, i, t->shape[1]);

		if (bytes <= 0)
			continue;
		if (device == gather) {
			done = exec_join(x, done, multiply(s, device, t->group, t->type, bytes, flops, nodes, 0, begin));
			continue;
		}
		submitted = exec_wait(x, hw_num_value(&s->cost->copy_submit_s), submitted);
		exec_moves(x, EXEC_HIDDEN);
		op_ref at = exec_copy(x, home, memory, input_bytes, true, submitted, 0);
		exec_moves(x, EXEC_WEIGHTS);
		at = multiply(s, device, t->group, t->type, bytes, flops, 1, 0, at);
		exec_moves(x, EXEC_HIDDEN);
		done = exec_join(x, done, exec_copy(x, memory, home, n * outputs * HIDDEN_ELEMENT_BYTES, true, at, 0));
		exec_moves(x, EXEC_WEIGHTS);
	}
	s->chain.last = done;
}

/* Before whole layers went to the GPU, each of their products did alone: its rows there, its results back (ggml-cuda.cu
   before pull request 6083). Of a group's matrices in RAM: bytes of both, and how many there are. */
static int crossing_rows(const struct llamacpp *s, enum model_group group, double bytes[2])
{
	const struct placement *p = s->chain.x->placement;
	int layer = exec_tag_layer(s->chain.x->label);
	double rows = (double)s->chain.step->n_tokens;
	int n = 0;

	if (group == MODEL_EXPERTS)
		rows *= p->model->layers[layer].n_expert_used;
	bytes[0] = bytes[1] = 0;
	for (int i = 0; i < p->model->n_tensors; i++) {
		const struct model_tensor *t = &p->model->tensors[i];
		if (t->layer != layer || t->group != group || !model_tensor_is_matrix(t) ||
			p->machine->devices[p->tensor[i].device].kind != HW_DEVICE_CPU)
			continue;
		bytes[0] += rows * (double)t->shape[0] * HIDDEN_ELEMENT_BYTES;
		bytes[1] += rows * (double)t->shape[1] * HIDDEN_ELEMENT_BYTES;
		n++;
	}
	return n;
}

/* A group's products on the GPU while everything between them stays on the CPU. */
static void multiply_there(struct llamacpp *s, enum model_group group, const struct place_part *part, double bytes,
	double flops, double share_of_group)
{
	const struct hw_machine *hw = s->chain.x->placement->machine;
	int gpu = hw->devices[s->gpu].memory;
	const struct quant_type *f32 = quant_find("f32");
	double crossing[2], n = crossing_rows(s, group, crossing) * share_of_group;

	s->chain.last = exec_wait(s->chain.x, n * 2 * hw_num_value(&s->cost->copy_submit_s), s->chain.last);
	fetch(s, part->spot.memory, gpu, bytes, s->pinned);
	exec_moves(s->chain.x, EXEC_HIDDEN);
	fetch(s, part->spot.memory, gpu, crossing[0] * share_of_group, true);
	exec_moves(s->chain.x, EXEC_WEIGHTS);
	s->chain.last = multiply(s, s->gpu, group, part->type, bytes, flops, (int)lround(n), 0, s->chain.last);
	exec_moves(s->chain.x, EXEC_HIDDEN);
	fetch(s, gpu, part->spot.memory, crossing[1] * share_of_group, true);
	/* Norms, activations and sums read what came back, and write and read it once more. */
	s->chain.last = multiply(s, part->spot.device, group, f32, READ_BETWEEN * crossing[1] * share_of_group, 0,
		cpu_nodes(s, group, exec_tag_layer(s->chain.x->label)), 0, s->chain.last);
	exec_moves(s->chain.x, EXEC_WEIGHTS);
}

/* Hidden states go where they are needed. A GPU that gets them from the host has nothing else to do. */
static void move_to(struct llamacpp *s, int device)
{
	const struct hw_machine *hw = s->chain.x->placement->machine;

	if (device != s->chain.device)
		s->drained = hw->devices[device].kind == HW_DEVICE_GPU && !s->graphs && s->cpu_worked;
	lower_move_to(&s->chain, device);
}

/* What RAM does not hold of the mapped file is read again. Where each pass wants all of a layer, the pages that were used
   longest ago are the next to be wanted, and none is found. */
static void page_in(struct llamacpp *s, enum model_group group, int ram, double bytes, bool all)
{
	const struct llamacpp_paging *paging = s->chain.x->placement->engine;

	if (paging && (group == MODEL_EXPERTS || !paging->experts))
		s->chain.last = exec_copy(s->chain.x, paging->drive, ram,
			bytes * (all ? 1 : paging->share) / hw_num_value(&s->cost->paging), true, s->chain.last, 0);
}

/* Interleaved types that GPUs have kernels for (ik_llama.cpp's pull requests 461, 462, 492 and 494). */
static bool interleaved_on_gpus(const struct quant_type *type)
{
	static const char *const ends[] = {"_k_r4", "_ks_r4"};

	if (strcmp(type->name, "iq1_s_r4") == 0 || strcmp(type->name, "iq1_m_r4") == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (strncmp(type->name, "iq", 2) == 0 && strstr(type->name, ends[i]))
			return true;
	return false;
}

/* Whether weights of such a group in RAM are multiplied on the GPU in this step. What is laid out for the CPU when loading
   is in no buffer that the GPU is offered, and interleaved types had no kernels there for long. */
static bool streams(const struct llamacpp *s, enum model_group group, const struct quant_type *type)
{
	bool for_cpu = s->flags->rtr || (quant_ik_plain(type) != type &&
		!(is_since(s->flags, s->fork->interleaved_from) && interleaved_on_gpus(type)));

	if (group == MODEL_EMBED || (for_cpu && !s->flags->offload_min))
		return false;
	return group == MODEL_EXPERTS ? s->offload_experts : s->offload;
}

/* The divided matrices of a group, one after another. */
static void multiply_rows(struct llamacpp *s, enum model_group group, double flops_per_param, int nodes)
{
	const struct placement *p = s->chain.x->placement;
	int layer = exec_tag_layer(s->chain.x->label);

	for (int i = 0; i < p->model->n_tensors; i++) {
		const struct model_tensor *t = &p->model->tensors[i];
		if (t->layer != layer || t->group != group || p->tensor[i].mode != PLACE_ROWS)
			continue;
		move_to(s, p->tensor[i].device);
		multiply_divided(s, t, p->tensor[i].device, flops_per_param, nodes);
		nodes = 0;
	}
}

/* A recurrent layer's step, where its state is. What it takes in a prompt, chunk by chunk, is not known. */
static void run_state(struct llamacpp *s, int layer)
{
	struct exec *x = s->chain.x;
	const struct placement *p = x->placement;
	const struct model_layer *l = &p->model->layers[layer];
	int device = p->kv[layer].device;
	double rows = (double)s->chain.step->n_tokens;

	if (!l->state_bytes || s->chain.step->phase == TRACE_PREFILL)
		return;
	move_to(s, device);
	s->cpu_worked |= p->machine->devices[device].kind == HW_DEVICE_CPU;
	bool early = !is_since(s->flags, s->fork->delta_from);
	struct kernel_place where = on(s, &p->machine->devices[device]);
	struct platform_work work = kernel_state(&where, rows * (double)l->state_bytes, rows * l->state_flops,
		early ? EARLY_STATE_NODES : STATE_NODES, early);
	enum exec_of before = exec_moves(x, EXEC_CACHE);
	s->chain.last = exec_kernel(x, device, &work, s->chain.last, 0);
	exec_moves(x, before);
}

static void run_group(void *state, const struct place_group *g, enum model_group group, double share,
	double flops_per_param, double times)
{
	struct llamacpp *s = state;
	const struct hw_machine *hw = s->chain.x->placement->machine;
	const struct model *m = s->chain.x->placement->model;
	int layer = exec_tag_layer(s->chain.x->label), nodes = group_nodes[group], barriers = cpu_nodes(s, group, layer);
	uint64_t cpu_bytes = 0;
	bool rows = false;
	double params = 0;

	if (group == MODEL_EXPERTS && s->flags->fmoe)
		nodes = FUSED_EXPERT_NODES;
	if (group == MODEL_ATTN && layer < (int)m->n_layer && m->layers[layer].mla_dim_k)
		nodes += MLA_KERNELS;

	for (int i = 0; i < g->n; i++) {
		params += (double)g->part[i].params;
		cpu_bytes += hw->devices[g->part[i].spot.device].kind == HW_DEVICE_CPU ? g->part[i].bytes : 0;
	}
	for (int i = 0; i < g->n; i++) {
		const struct place_part *part = &g->part[i];
		int device = part->spot.device;
		double bytes = (double)part->bytes * share;

		if (part->spot.mode == PLACE_ROWS) {
			rows = true;
			continue;
		}
		const struct quant_type *type = part->type;
		if (s->flags->rtr && hw->devices[device].kind == HW_DEVICE_CPU)
			type = quant_ik_interleaved(type);
		if (hw->devices[device].kind == HW_DEVICE_CPU)
			page_in(s, group, part->spot.memory, bytes, share > ALL_OF_IT);
		if (streams(s, group, type) && hw->devices[device].kind == HW_DEVICE_CPU && !s->whole) {
			move_to(s, device);
			s->cpu_worked = true;
			multiply_there(s, group, part, bytes, flops_per_param * (double)part->params,
				(double)part->bytes / (double)cpu_bytes);
			nodes = 0;
			continue;
		}
		if (streams(s, group, type) && hw->devices[device].kind == HW_DEVICE_CPU) {
			device = s->gpu;
			move_to(s, device);
			fetch(s, part->spot.memory, hw->devices[device].memory, s->used_only ? bytes : (double)part->bytes, s->pinned);
		}
		move_to(s, device);
		s->cpu_worked |= hw->devices[device].kind == HW_DEVICE_CPU && group != MODEL_EMBED;
		s->chain.last = multiply(s, device, group, type, bytes, flops_per_param * (double)part->params,
			hw->devices[device].kind == HW_DEVICE_CPU ? barriers : nodes,
			group == MODEL_EXPERTS ? times * (double)part->params / params : 0, s->chain.last);
		nodes = barriers = 0;
	}
	if (rows)
		multiply_rows(s, group, flops_per_param, nodes);
	if (group == MODEL_ATTN && layer < (int)m->n_layer)
		run_state(s, layer);
}

/* Many rows attend to unpacked heads of a latent cache (-mla 2 and 3). */
static bool unpacks(const struct llamacpp *s, const struct model_layer *l, double rows)
{
	return l->mla_dim_k && s->fork->ik && s->flags->mla >= 2 && rows >= OFFLOAD_MIN_ROWS &&
		s->chain.x->placement->kv_types.form != KVCACHE_HEADS;
}

/* Keys and values of all heads from the latent vectors of older tokens; those of this step are counted with their weights. */
static void unpack(struct llamacpp *s, const struct kernel_place *where, int device, const struct model_layer *l, double held)
{
	double rope = (double)l->head_dim_k - l->head_dim_v;
	double flops = 2.0 * held * l->head_dim_v * l->n_head * (l->mla_dim_k - rope + l->mla_dim_v);
	struct platform_work work;

	if (held <= 0)
		return;
	work = kernel_multiply(where, quant_find("f16"), held * l->n_head * (l->mla_dim_k + l->mla_dim_v) * F16_BYTES, flops, 2,
		COST_TOGETHER);
	s->chain.last = exec_kernel(s->chain.x, device, &work, s->chain.last, 0);
}

/* The layer as its attention is computed: MLA with unpacked heads where the cache has them or they are made. */
static struct model_layer attended_layer(const struct llamacpp *s, const struct model_layer *l, double rows)
{
	struct model_layer heads = *l;

	if (l->mla_dim_k && (s->chain.x->placement->kv_types.form == KVCACHE_HEADS || unpacks(s, l, rows))) {
		heads.head_dim_k = l->mla_dim_k;
		heads.head_dim_v = l->mla_dim_v;
	}
	return heads;
}

static bool is_flash(const struct llamacpp *s)
{
	static const char *const on[] = {"on", "1", "yes", "true"};

	for (size_t i = 0; i < ARRAY_LEN(on); i++)
		if (strcmp(s->flags->fa, on[i]) == 0)
			return true;
	return strcmp(s->flags->fa, "auto") == 0 && is_since(s->flags, s->fork->flash_from);
}

/* What a backend has no kernels for is computed by the CPU: flash attention with MLA's heads, at first. */
static bool attended_on_gpus(const struct llamacpp *s, const struct model_layer *l)
{
	return !l->mla_dim_k || !s->fork->mla_flash_from || is_since(s->flags, s->fork->mla_flash_from) || !is_flash(s);
}

/* Without flash attention a device writes and reads the scores of many rows, of what they must not look at as well. */
static void write_scores(struct llamacpp *s, const struct kernel_place *where, int device, const struct model_layer *l,
	double rows, double entries)
{
	struct platform_work work = kernel_multiply(where, quant_find("f32"),
		rows * entries * l->n_head * hw_num_value(&s->cost->scores), 0, 2, COST_TOGETHER);

	s->chain.last = exec_kernel(s->chain.x, device, &work, s->chain.last, 0);
}

static void run_attention(void *state, const struct trace_access *read)
{
	struct llamacpp *s = state;
	struct exec *x = s->chain.x;
	const struct placement *p = x->placement;
	const struct model_layer *l = &p->model->layers[read->layer];
	const struct place_spot *kv = &p->kv[read->layer];
	double entry = (double)kvcache_token_bytes(l, &p->kv_types);
	double held = entry * (double)read->kv_tokens, fresh = entry * (double)read->tokens;
	int device = kv->device;
	bool there = attended_on_gpus(s, l);
	bool borrowed = there && s->offload && s->whole && !s->flags->nkvo &&
		p->machine->devices[device].kind == HW_DEVICE_CPU;

	if (!there && p->machine->devices[device].kind == HW_DEVICE_GPU) {
		int cpu = hw_first_device(p->machine, HW_DEVICE_CPU);
		fetch(s, kv->memory, p->machine->devices[cpu].memory, held + fresh, true);
		device = cpu;
	}
	if (borrowed) {
		/* The layer is computed on the GPU for once, with its cache as an input that is copied. */
		device = s->gpu;
		fetch(s, kv->memory, p->machine->devices[device].memory, held, true);
	}
	move_to(s, device);
	s->cpu_worked |= p->machine->devices[device].kind == HW_DEVICE_CPU;

	const struct hw_device *d = &p->machine->devices[device];
	struct kernel_place where = on(s, d);
	struct model_layer as = attended_layer(s, l, (double)read->tokens);
	if (unpacks(s, l, (double)read->tokens))
		unpack(s, &where, device, l, (double)read->kv_tokens);
	bool scores = read->tokens >= OFFLOAD_MIN_ROWS && !is_flash(s);
	double entries = (double)(read->kv_tokens + read->tokens) / (double)p->kv_sequences;
	if (scores)
		write_scores(s, &where, device, l, (double)read->tokens, entries);
	struct platform_work work = kernel_attention(&where, &as, &p->kv_types, held + fresh,
		scores ? (double)read->tokens * entries : read->kv_pairs, (double)read->tokens);
	s->chain.last = exec_kernel(x, device, &work, s->chain.last, 0);
	if (borrowed)
		fetch(s, d->memory, kv->memory, fresh, true);
}

static const struct lower_ops llamacpp_walk = {run_group, run_attention};

/* Rows from which experts in RAM cross the link: with fewer, each would serve too few rows. */
static double experts_from(const struct llamacpp *s)
{
	const struct model *m = s->chain.x->placement->model;

	if (s->flags->offload_min)
		return (double)s->flags->offload_min;
	for (uint32_t i = 0; i < m->n_layer && is_since(s->flags, s->fork->late_from); i++)
		if (m->layers[i].n_expert)
			return OFFLOAD_MIN_ROWS * (double)m->layers[i].n_expert / m->layers[i].n_expert_used;
	return OFFLOAD_MIN_ROWS;
}

/* The same of all else: the fork's switch is for experts alone. */
static double dense_from(const struct llamacpp *s)
{
	return s->flags->offload_min && !s->fork->ik ? (double)s->flags->offload_min : OFFLOAD_MIN_ROWS;
}

int llamacpp_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct llamacpp *s = state;

	(void)err;
	lower_begin(&s->chain, x, step);
	s->offload = s->dense_may && (double)step->n_tokens >= dense_from(s);
	s->offload_experts = s->experts_may && (double)step->n_tokens >= experts_from(s);
	s->team = step->phase == TRACE_PREFILL ? s->prefill_team : s->decode_team;
	s->drained = s->cpu_worked = false;
	lower_walk(&s->chain, s, &llamacpp_walk);
	/* Logits come back to the host, which samples. */
	s->chain.last = exec_wait(x, (s->gpu >= 0 ? hw_num_value(&s->cost->gpu_sync_s) : 0) +
			hw_num_value(&s->cost->step_s), s->chain.last);
	*last = s->chain.last;
	return 0;
}

void llamacpp_adapt(const struct llamacpp_fork *fork, const struct llamacpp_flags *f, struct model *m)
{
	for (uint32_t i = 0; i < m->n_layer && !is_since(f, fork->windows_from); i++)
		m->layers[i].window = 0;
}

static const struct llamacpp_fork mainline = {
	.graphs_from = "2026-01", .latent_from = "2025-05", .windows_from = "2025-05", .fit_from = "2025-12",
	.whole_from = "2024-04", .used_from = "2025-08", .tiles_from = "2026-01", .flash_from = "2025-09",
	.mla_flash_from = "2025-05", .overrides_pinned_from = "2025-08", .mmq_from = "2024-07", .experts_from = "2025-09",
	.delta_from = "2026-04", .fused_from = "2025-10"};

int llamacpp_mainline_adapt(const void *flags, struct model *m, struct err *err)
{
	(void)err;
	llamacpp_adapt(&mainline, flags, m);
	return 0;
}

int llamacpp_mainline_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	return llamacpp_place(&mainline, job, p, a, err);
}

void *llamacpp_mainline_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	return llamacpp_state_new(&mainline, job, p, a);
}

const struct engine_ops engine_llamacpp = {
	.name = "llama.cpp",
	.version = "2",
	.help = "as of mid-2026: layers by -ngl, experts by -ot, no overlap of copies and kernels",
	.flag = llamacpp_flag,
	.n_flags = ARRAY_LEN(llamacpp_flag),
	.flags_size = sizeof(struct llamacpp_flags),
	.alias = llamacpp_alias,
	.n_aliases = ARRAY_LEN(llamacpp_alias),
	.ignored = llamacpp_ignored,
	.n_ignored = ARRAY_LEN(llamacpp_ignored),
	.bare = "fa",
	.repeats = "ot",
	.kernels = "llama.cpp",
	.overheads = true,
	.stepwise = true,
	.prefill_rows = llamacpp_prefill_rows,
	.adapt = llamacpp_mainline_adapt,
	.place = llamacpp_mainline_place,
	.state_new = llamacpp_mainline_state_new,
	.lower = llamacpp_lower,
};
