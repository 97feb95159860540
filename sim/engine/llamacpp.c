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
 * default) and pinned under --no-mmap. What kernels reach is in hw/kernels/llama.cpp.yaml; what lies where is decided in
 * llamacpp_place.c.
 *
 * Old builds, by --build: before 2024-04 single products borrowed the GPU for many rows, [rows in][copy][kernel][results
 * back], and all between them stayed on the CPU; before 2025-08 all experts of a layer crossed, chosen or not. Without flash
 * attention (the default before 2025-09) scores are written and read: [scores][attention].
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models/kvcache.h"
#include "sim/engine/llamacpp.h"
#include "sim/exec/kernel.h"
#include "sim/exec/lower.h"

/* From so many rows on, weights held by the host are multiplied on the GPU (op_offload_min_batch_size). */
#define OFFLOAD_MIN_ROWS 32
/* Up to so many rows a GPU multiplies vectors (MMVQ_MAX_BATCH_SIZE), and so many with experts, which it then reads for each
   row that uses them (MMVQ_MMID_MAX_BATCH_SIZE, pull request 18958). */
#define VECTOR_ROWS 8
#define EXPERT_VECTOR_ROWS 4
/* Products with experts of a layer: mul_mat_id of up, gate and down. */
#define EXPERT_MATRICES 3
/* Times that the results of products cross a CPU's bus until the next product has them. */
#define READ_BETWEEN 3
/* Numbers of operations as ik_llama.cpp's -op has them (pull request 405). */
enum { OP_MUL_MAT = 26, OP_MUL_MAT_ID = 27, OP_FUSED_UP_GATE = 29 };
/* Of ik_llama.cpp's -fmoe: up, gate and glu are one. */
#define FUSED_EXPERT_NODES 4
/* Inputs of quantised matrices: blocks of 32 bytes and two f16 (block_q8_1). */
#define Q8_1_BYTES (36.0 / 32)
#define F16_BYTES 2.0
#define F32_BYTES 4.0
/* Of a latent cache of ik_llama.cpp: rows from which it is unpacked, and operations that do it. */
#define UNPACK_MIN_ROWS 128
#define UNPACK_NODES 5
/* Entries that attention looks at are a multiple of this: get_n_kv of src/llama-kv-cache.cpp. */
#define CACHE_PAD 256
/* Output rows of an expert in ik_llama.cpp that go to one thread together. */
#define EXPERT_BLOCK_ROWS 8

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

const char *const llamacpp_load_choices[] = {"mmap", "none", "auto", "mlock", "mmap+mlock", "dio", NULL};
const char *const llamacpp_split_choices[] = {"layer", "none", "row", NULL};
const char *const llamacpp_numa_choices[] = {"none", "distribute", "isolate", "numactl", NULL};
/* distribute and isolate pin threads, but pages lie where loading, a prompt or an earlier run touched them (issue 11744; "it is
   recommended to drop the system page cache before using this", says the help). numactl: as it was told to, which is to
   interleave in every guide to several sockets. */
static const enum cost_binding numa_binding[] = {COST_UNBOUND, COST_UNBOUND, COST_PINNED, COST_SPREAD};

static const struct param llamacpp_flag[] = {LLAMACPP_FLAGS("2026-08", "512", ""), LLAMACPP_FIT_FLAG};
static const struct engine_alias llamacpp_alias[] = {LLAMACPP_ALIASES};
static const struct engine_ignored llamacpp_ignored[] = {LLAMACPP_IGNORED};

struct repacked {
	const struct quant_type *from, *to;
};

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
	bool together;       /* a GPU has one kernel for all experts of a row */
	bool vectors;        /* few rows with experts are multiplied as vectors on a GPU */
	bool fused;          /* small kernels of a GPU are one */
	bool graphs;         /* a CUDA graph for each split */
	bool cpu_worked;     /* this step: on more than the embedding, so that the GPU has several splits */
	bool drained;        /* the GPU waited for the host: what comes now is launched kernel by kernel, unhidden */
	bool *qk_norms;      /* by layer: queries and keys have norms of their own */
	struct repacked *repacked; /* what -rtr makes of the model's types */
	int n_repacked;
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
	nodes = llamacpp_fuses_experts(s->fork, s->flags) ? FUSED_EXPERT_CPU_NODES : EXPERT_CPU_NODES;
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

	bool idle = s->fork->no_layers_no_gpu && strcmp(s->flags->ngl, "0") == 0;
	s->dense_may = s->experts_may = s->gpu >= 0 && !s->flags->no_op_offload && !idle;
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

	if (f->no_pinned || (overrides && !llamacpp_is_since(f, fork->overrides_pinned_from)))
		return false;
	return !llamacpp_is_mapped(f) || (overrides && fork->overrides_unmap);
}

static bool has_experts(const struct model *m)
{
	for (uint32_t i = 0; i < m->n_layer; i++)
		if (m->layers[i].n_expert)
			return true;
	return false;
}

static const struct quant_type *repacked(const struct llamacpp *s, const struct quant_type *type)
{
	for (int i = 0; i < s->n_repacked; i++)
		if (s->repacked[i].from == type)
			return s->repacked[i].to;
	return type;
}

static void find_repacked(struct llamacpp *s, const struct model *m, struct arena *a)
{
	s->repacked = arena_array(a, struct repacked, (size_t)m->n_tensors);
	for (int i = 0; i < m->n_tensors && s->flags->rtr; i++) {
		const struct quant_type *to = quant_ik_interleaved(m->tensors[i].type);
		if (to != m->tensors[i].type && repacked(s, m->tensors[i].type) != to)
			s->repacked[s->n_repacked++] = (struct repacked){m->tensors[i].type, to};
	}
}

/* What kernels of its build reach. */
static const struct cost *cost_then(const struct llamacpp_fork *fork, const struct engine_job *job, struct arena *a)
{
	const struct llamacpp_flags *f = job->flags;
	bool early_gpu = fork->mmq_from && !llamacpp_is_since(f, fork->mmq_from) && !job->cost->gpu_early_told;
	bool early_cpu = fork->blocks_from && !llamacpp_is_since(f, fork->blocks_from);
	/* What is counted as kernels of a group took longer before the small ones among them were fused. */
	bool unfused = hw_num_value(&job->cost->gpu_early_kernel_s) > 0 && !llamacpp_is_since(f, fork->fused_from);
	const char *graphs_from = has_experts(job->model) ? fork->expert_graphs_from : fork->first_graphs_from;
	/* On cards that got graphs at once. */
	bool ungraphed = graphs_from && !llamacpp_is_since(f, graphs_from) && !job->cost->gpu_graphs_from;
	struct cost *cost;

	if (!early_gpu && !early_cpu && !unfused && !ungraphed)
		return job->cost;
	cost = cost_copy(job->cost, a);
	if (unfused)
		cost->gpu_kernel_s = cost->gpu_early_kernel_s;
	if (ungraphed)
		cost->gpu_kernel_s.measured = hw_num_value(&cost->gpu_kernel_s) + hw_num_value(&cost->gpu_ungraphed_s);
	for (int k = COST_16BIT + 1; k < COST_CLASS_N && early_gpu; k++)
		cost->gpu_multiply[k].measured *= hw_num_value(&cost->gpu_early);
	if (early_cpu)
		cost_make_early(&cost->cpu);
	return cost;
}

/* Slow cores hold up steps in which all threads have the same share, and are not counted (cpu_get_num_math of common.cpp,
   pull request 6414); on Windows every core is. 0: one for each core. */
static unsigned threads_then(const struct llamacpp *s, const struct hw_machine *m, const struct hw_device *cpu)
{
	bool since = !s->fork->fast_from || llamacpp_is_since(s->flags, s->fork->fast_from);

	if (s->flags->t || !since || strcmp(m->system, "windows") == 0)
		return (unsigned)s->flags->t;
	return cpu->fast_cores;
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
	s->graphs = llamacpp_is_since(s->flags, fork->graphs_from) && (!card || (isdigit((unsigned char)*card) && llamacpp_is_since(s->flags, card)));
	s->whole = llamacpp_is_since(s->flags, fork->whole_from);
	s->used_only = llamacpp_is_since(s->flags, fork->used_from);
	s->together = !fork->together_from || llamacpp_is_since(s->flags, fork->together_from);
	s->vectors = llamacpp_is_since(s->flags, fork->vectors_from);
	s->fused = llamacpp_is_since(s->flags, fork->fused_from);
	s->gpu = p->rows.n ? p->rows.spot[0].device : -1;
	s->qk_norms = arena_array(a, bool, p->model->n_layer);
	for (uint32_t i = 0; i < p->model->n_layer; i++)
		s->qk_norms[i] = has_tensor(p->model, &p->model->layers[i], "attn_q_norm");
	find_repacked(s, p->model, a);
	read_policy(s);
	s->pinned = weights_pinned(fork, s->flags);
	enum cost_binding binding = s->flags->one_socket ? COST_ISOLATED : numa_binding[s->flags->numa];
	s->decode_team = cost_cpu_team(&s->cost->cpu, p->machine, cpu, threads_then(s, p->machine, cpu), binding);
	s->prefill_team = s->decode_team;
	if (s->flags->tb)
		s->prefill_team = cost_cpu_team(&s->cost->cpu, p->machine, cpu, (unsigned)s->flags->tb, binding);
	if (fork->tiles_from && !llamacpp_is_since(s->flags, fork->tiles_from)) {
		s->decode_team.attention_share = s->prefill_team.attention_share = hw_num_value(&s->cost->cpu.early_attention);
		s->decode_team.attention_share_many = s->prefill_team.attention_share_many =
			hw_num_value(&s->cost->cpu.early_attention_many);
	}
	s->chain.hidden_elem_bytes = LLAMACPP_HIDDEN_BYTES;
	/* Each split begins with a wait for the other device and ends with one. */
	s->chain.crossing_s = hw_num_value(&s->cost->gpu_sync_s) + hw_num_value(&s->cost->copy_submit_s);
	return s;
}

/* ik_llama.cpp deals rows to all threads alike; who is done early helps nobody (iqk_mul_mat.cpp). */
static struct kernel_place on(const struct llamacpp *s, const struct hw_device *d)
{
	struct cost_team team = s->team;

	if (s->fork->ik && s->chain.step->phase == TRACE_PREFILL)
		team.workers *= team.even_share;
	return (struct kernel_place){s->cost, s->chain.x->placement->machine, d, team,
		s->flags->sm == LLAMACPP_SPLIT_ROW || s->drained,
		llamacpp_is_since(s->flags, s->fork->rows_from) && !s->cost->gpu_vectors};
}

/* The share of a team that has work: an expert's output rows are dealt to all threads in equal numbers of blocks, so that
   the last threads get none (iqk_mul_mat.cpp, MulMat::mul_mat_NxM by threads). */
static double dealt_share(const struct llamacpp *s, double threads)
{
	const struct model *m = s->chain.x->placement->model;
	const struct model_layer *l = &m->layers[exec_tag_layer(s->chain.x->label)];
	double ideal = 0, taken = 0;

	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[l->first_tensor + i];
		if (t->group != MODEL_EXPERTS || !model_tensor_is_matrix(t))
			continue;
		double blocks = ceil((double)t->shape[1] / EXPERT_BLOCK_ROWS);
		ideal += blocks / threads;
		taken += ceil(blocks / threads);
	}
	return taken > 0 ? ideal / taken : 1;
}

static bool expands(const struct llamacpp *s, const struct quant_type *type)
{
	if (s->chain.step->n_tokens <= VECTOR_ROWS)
		return false;
	return type->many_rows == QUANT_EXPANDED ||
		(type->many_rows == QUANT_ONCE_EXPANDED && !llamacpp_is_since(s->flags, s->fork->k_from));
}

/* One group, or one matrix of it, on one device. */
static op_ref multiply(struct llamacpp *s, int device, enum model_group group, const struct quant_type *type,
	double bytes, double flops, int nodes, double experts, op_ref after)
{
	struct exec *x = s->chain.x;
	struct kernel_place where = on(s, &x->placement->machine->devices[device]);
	/* On a CPU, mul_mat_id has kernels for blocks of rows in the fork alone; on a GPU few rows are vectors. */
	bool vectors = where.device->kind == HW_DEVICE_GPU && s->chain.step->n_tokens <= VECTOR_ROWS &&
		!(type == quant_bf16() && hw_num_value(&s->cost->gpu_bf16_experts) > 0);
	enum cost_rows how = group != MODEL_EXPERTS || vectors ? COST_TOGETHER : s->fork->ik ? COST_EXPERTS : COST_ONE_BY_ONE;
	if (how == COST_EXPERTS && where.device->kind == HW_DEVICE_CPU)
		where.team.many_share *= dealt_share(s, where.team.threads);
	struct platform_work work;

	if (where.device->kind == HW_DEVICE_GPU && expands(s, type)) {
		double expanded = bytes * 8 / quant_bits_per_weight(type) * F16_BYTES;
		type = quant_f16();
		work = kernel_multiply(&where, type, bytes + expanded, 0, 1, COST_TOGETHER);
		after = exec_kernel(x, device, &work, after, 0);
		bytes = expanded;
	}
	if (group == MODEL_EXPERTS && vectors && !s->together) {
		nodes += (int)lround(EXPERT_MATRICES * (experts - 1));
		after = exec_wait(x, EXPERT_MATRICES * hw_num_value(&s->cost->gpu_sync_s), after);
	}
	work = kernel_multiply(&where, type, bytes, flops, nodes, how);
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
		(cost_class_of(t->type) == COST_16BIT ? LLAMACPP_HIDDEN_BYTES : Q8_1_BYTES);
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
		done = exec_join(x, done, exec_copy(x, memory, home, n * outputs * LLAMACPP_HIDDEN_BYTES, true, at, 0));
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
		bytes[0] += rows * (double)t->shape[0] * LLAMACPP_HIDDEN_BYTES;
		bytes[1] += rows * (double)t->shape[1] * LLAMACPP_HIDDEN_BYTES;
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
	const struct quant_type *f32 = quant_f32();
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

/* What RAM does not hold of the mapped file is read again. Where each pass wants a larger share of a layer than RAM holds, the
   pages that were used longest ago are the next to be wanted, and none is found. */
static void page_in(struct llamacpp *s, enum model_group group, int ram, double bytes, double share)
{
	const struct llamacpp_paging *paging = s->chain.x->placement->engine;

	if (paging && (group == MODEL_EXPERTS || !paging->experts))
		s->chain.last = exec_copy(s->chain.x, paging->drive, ram,
			bytes * (share > 1 - paging->share ? 1 : paging->share) / hw_num_value(&s->cost->paging), true,
			s->chain.last, 0);
}

/* Times that a GPU reads the experts that are hit, of which each row uses its own. */
static double expert_reads(const struct llamacpp *s, double hits, double uses)
{
	return s->vectors && s->chain.step->n_tokens <= EXPERT_VECTOR_ROWS ? uses / hits : 1;
}

/* Whether weights of such a group in RAM are multiplied on the GPU in this step. What is laid out for the CPU when loading
   is in no buffer that the GPU is offered, and interleaved types had no kernels there for long. */
static bool streams(const struct llamacpp *s, enum model_group group, const struct quant_type *type)
{
	bool since = llamacpp_is_since(s->flags, s->fork->interleaved_from);
	bool for_cpu = s->flags->rtr || type->interleaved == QUANT_CPU_ONLY || (type->interleaved && !since);

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

/* A recurrent layer's step, where its state is. A GPU's kernel takes the tokens of a prompt one after another, those of all
   sequences and heads at once (ggml/src/ggml-cuda/gated_delta_net.cu). What a CPU takes for them is not known. */
static void run_state(struct llamacpp *s, int layer)
{
	struct exec *x = s->chain.x;
	const struct placement *p = x->placement;
	const struct model_layer *l = &p->model->layers[layer];
	int device = p->kv[layer].device;
	double rows = (double)s->chain.step->n_tokens, sequences = (double)s->chain.step->n_sequences;
	bool on_cpu = p->machine->devices[device].kind == HW_DEVICE_CPU, prompt = s->chain.step->phase == TRACE_PREFILL;
	bool early = !llamacpp_is_since(s->flags, s->fork->delta_from);
	int nodes = early ? EARLY_STATE_NODES : STATE_NODES;

	if (!l->state_bytes || (prompt && on_cpu))
		return;
	move_to(s, device);
	s->cpu_worked |= on_cpu;
	struct kernel_place where = on(s, &p->machine->devices[device]);
	struct platform_work work = prompt ?
		kernel_scan(&where, sequences * (double)l->state_bytes, nodes, rows / sequences, early) :
		kernel_state(&where, rows * (double)l->state_bytes, rows * l->state_flops, nodes, early);
	enum exec_of before = exec_moves(x, EXEC_CACHE);
	s->chain.last = exec_kernel(x, device, &work, s->chain.last, 0);
	exec_moves(x, before);
}

/* What is written and read again through a cache: all that it does not hold. */
static double beyond_cache(const struct hw_device *d, double bytes)
{
	return fmax(0, bytes - d->cache_bytes);
}

/* What many rows of experts move on a GPU between their products, in 32 bits: results of up and gate are written and read, what
   is made of them written and read; inputs are gathered, results weighed and summed, which is one kernel since small ones are
   fused. */
static void move_rows(struct llamacpp *s, int device, int layer, double share)
{
	struct exec *x = s->chain.x;
	const struct model *m = x->placement->model;
	const struct model_layer *l = &m->layers[layer];
	double inner = 0, passes = s->fused ? 3 : 5;

	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[l->first_tensor + i];
		if (t->group == MODEL_EXPERTS && model_tensor_is_matrix(t) && t->shape[0] != m->hidden)
			inner = (double)t->shape[0];
	}
	double rows = (double)s->chain.step->n_tokens * l->n_expert_used;
	struct kernel_place where = on(s, &x->placement->machine->devices[device]);
	double bytes = 3 * beyond_cache(where.device, rows * 2 * inner * F32_BYTES) +
		passes * beyond_cache(where.device, rows * m->hidden * F32_BYTES);
	struct platform_work work = kernel_multiply(&where, quant_f32(), share * bytes, 0, 0, COST_TOGETHER);
	if (bytes > 0)
		s->chain.last = exec_kernel(x, device, &work, s->chain.last, 0);
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

	if (group == MODEL_EXPERTS && llamacpp_fuses_experts(s->fork, s->flags))
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
		if (hw->devices[device].kind == HW_DEVICE_CPU)
			type = repacked(s, type);
		if (hw->devices[device].kind == HW_DEVICE_CPU)
			page_in(s, group, part->spot.memory, bytes, share);
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
		if (group == MODEL_EXPERTS && hw->devices[device].kind == HW_DEVICE_GPU)
			bytes *= expert_reads(s, times, flops_per_param / 2 * m->layers[layer].n_expert);
		move_to(s, device);
		s->cpu_worked |= hw->devices[device].kind == HW_DEVICE_CPU && group != MODEL_EMBED;
		s->chain.last = multiply(s, device, group, type, bytes, flops_per_param * (double)part->params,
			hw->devices[device].kind == HW_DEVICE_CPU ? barriers : nodes,
			group == MODEL_EXPERTS ? times * (double)part->params / params : 0, s->chain.last);
		if (group == MODEL_EXPERTS && hw->devices[device].kind == HW_DEVICE_GPU && s->chain.step->n_tokens > VECTOR_ROWS)
			move_rows(s, device, layer, (double)part->params / params);
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
	return l->mla_dim_k && s->fork->ik && llamacpp_mla(s->fork, s->flags) >= LLAMACPP_MLA_LATENT && rows >= UNPACK_MIN_ROWS &&
		s->chain.x->placement->kv_types.form != KVCACHE_HEADS;
}

/* Keys and values of all heads from the latent vectors, each pass anew (build_deepseek2 of ik_llama.cpp): a product in 32 bits,
   cast to 16; keys and their rotary part written together; both read by attention. Products of this step's own tokens are
   counted with their weights. */
static void unpack(struct llamacpp *s, const struct kernel_place *where, int device, const struct model_layer *l,
	const struct trace_access *read)
{
	double rope = (double)l->head_dim_k - l->head_dim_v, made = l->mla_dim_k - rope + l->mla_dim_v;
	double flops = 2.0 * (double)read->kv_tokens * l->head_dim_v * l->n_head * made;
	double bytes = made * (2 * F32_BYTES + F16_BYTES) + l->mla_dim_k * 2 * F16_BYTES + (l->mla_dim_k + l->mla_dim_v) * F16_BYTES;
	struct platform_work work;

	work = kernel_multiply(where, quant_f16(), (double)(read->kv_tokens + read->tokens) * l->n_head * bytes, flops,
		UNPACK_NODES, COST_TOGETHER);
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
	return llamacpp_is_flash(s->fork, s->flags);
}

/* What a backend has no kernels for is computed by the CPU: flash attention with MLA's heads, at first. */
static bool attended_on_gpus(const struct llamacpp *s, const struct model_layer *l)
{
	return !l->mla_dim_k || !s->fork->mla_flash_from || llamacpp_is_since(s->flags, s->fork->mla_flash_from) || !is_flash(s);
}

/* Without flash attention a device writes and reads the scores of many rows, of what they must not look at as well. */
static void write_scores(struct llamacpp *s, const struct kernel_place *where, int device, const struct model_layer *l,
	double rows, double entries)
{
	struct platform_work work = kernel_multiply(where, quant_f32(),
		rows * entries * l->n_head * hw_num_value(&s->cost->scores), 0, 2, COST_TOGETHER);

	s->chain.last = exec_kernel(s->chain.x, device, &work, s->chain.last, 0);
}

/* Without flash attention a CPU multiplies with the cache as with weights. What is known of builds before its flash attention
   had tiles is of their sum (early_attention). */
static bool by_products(const struct llamacpp *s, const struct hw_device *d)
{
	return d->kind == HW_DEVICE_CPU && !s->fork->ik && hw_num_value(&s->cost->cpu.score_cycles) > 0 &&
		!(s->team.attention_share > 0);
}

/* All cells up to the last one in use, by whole pads. */
static struct platform_work multiply_scores(const struct llamacpp *s, const struct kernel_place *where,
	const struct model_layer *l, double bytes, double entries, double queries)
{
	const struct placement *p = s->chain.x->placement;
	struct cost_scores scores = {
		.queries = queries,
		.rows = s->chain.step->phase == TRACE_PREFILL ? queries : fmax(queries / (double)p->kv_sequences, 1),
		.entries = ceil(entries / CACHE_PAD) * CACHE_PAD,
	};

	return kernel_scores(where, l, &p->kv_types, bytes, &scores);
}

/* Whether products of a layer's attention are done by the GPU with weights from RAM: what lies between them follows. */
static bool attention_streams(const struct llamacpp *s, int layer)
{
	const struct placement *p = s->chain.x->placement;
	const struct model_layer *l = &p->model->layers[layer];

	for (int i = l->first_tensor; i < l->first_tensor + l->n_tensors; i++) {
		const struct model_tensor *t = &p->model->tensors[i];
		if (t->group == MODEL_ATTN && p->machine->devices[p->tensor[i].device].kind == HW_DEVICE_CPU &&
			model_tensor_is_matrix(t) && streams(s, MODEL_ATTN, t->type))
			return true;
	}
	return false;
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
	bool borrowed = there && s->whole && !s->flags->nkvo && p->machine->devices[device].kind == HW_DEVICE_CPU &&
		attention_streams(s, (int)read->layer);

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
		unpack(s, &where, device, l, read);
	bool products = !is_flash(s) && by_products(s, d);
	bool scores = read->tokens >= OFFLOAD_MIN_ROWS && !is_flash(s) && !products;
	double entries = (double)(read->kv_tokens + read->tokens) / (double)p->kv_sequences;
	if (scores)
		write_scores(s, &where, device, l, (double)read->tokens, entries);
	struct platform_work work = kernel_attention(&where, &as, &p->kv_types, held + fresh,
		scores ? (double)read->tokens * entries : read->kv_pairs, (double)read->tokens);
	if (products)
		work = multiply_scores(s, &where, &as, held + fresh, entries, (double)read->tokens);
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
	for (uint32_t i = 0; i < m->n_layer && llamacpp_is_since(s->flags, s->fork->late_from); i++)
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

/* Backends as ggml and llama-bench call them. */
static const char *const backends[][2] = {
	{"CUDA", "cuda"}, {"ROCm", "hip"}, {"HIP", "hip"}, {"Vulkan", "vulkan"}, {"Metal", "metal"}, {"MTL", "metal"}};

static const char *backend_called(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(backends); i++)
		if (strcasecmp(name, backends[i][0]) == 0)
			return backends[i][1];
	return name;
}

/* Of a device, which is called as its backend and a number. NULL: none. */
static const char *backend_of_device(const char *dev)
{
	for (size_t i = 0; i < ARRAY_LEN(backends); i++)
		if (strncasecmp(dev, backends[i][0], strlen(backends[i][0])) == 0)
			return backends[i][1];
	return NULL;
}

struct cost_backend llamacpp_backend(const void *flags)
{
	const struct llamacpp_flags *f = flags;
	const char *named = strcmp(f->backend, "auto") == 0 ? backend_of_device(f->dev) : backend_called(f->backend);
	struct cost_backend out = {.name = named ? named : "auto"};

	snprintf(out.build, sizeof(out.build), "%.7s", f->build);
	return out;
}

int llamacpp_adapt(const struct llamacpp_fork *fork, const struct llamacpp_flags *f, struct model *m, struct err *err)
{
	static const char used[] = ".expert_used_count=int:";
	const char *at = strstr(f->override_kv, used);

	for (uint32_t i = 0; i < m->n_layer && !llamacpp_is_since(f, fork->windows_from); i++)
		m->layers[i].window = 0;
	if (!at)
		return 0;
	char *end;
	unsigned long n = strtoul(at + sizeof(used) - 1, &end, 10);
	if (n == 0 || (*end && *end != ','))
		return err_set(err, ERR_INPUT, "flag 'override-kv': '%s' is no number of experts", at + 1);
	return engine_use_experts(m, n, err);
}

static const struct llamacpp_fork mainline = {
	.first_graphs_from = "2024-05", .expert_graphs_from = "2025-05", .together_from = "2025-05", .graphs_from = "2026-01",
	.latent_from = "2025-05", .windows_from = "2025-05",
	.all_from = "2025-09", /* pull request 15434 */
	.fit_from = "2025-12", /* 16653 */
	.whole_from = "2024-04", .used_from = "2025-08", .tiles_from = "2026-01", .flash_from = "2025-09",
	.mla_flash_from = "2025-05", .overrides_pinned_from = "2025-08", .mmq_from = "2024-07",
	.delta_from = "2026-04", .fused_from = "2025-10", .fast_from = "2024-04", .vectors_from = "2026-02"};

int llamacpp_mainline_adapt(const void *flags, struct model *m, struct err *err)
{
	return llamacpp_adapt(&mainline, flags, m, err);
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
	.dashes = true,
	.minus_unset = true,
	.bare = "fa",
	.repeats = "ot",
	.kernels = "llama.cpp",
	.backend = llamacpp_backend,
	.overheads = true,
	.stepwise = true,
	.prefill_rows = llamacpp_prefill_rows,
	.adapt = llamacpp_mainline_adapt,
	.place = llamacpp_mainline_place,
	.state_new = llamacpp_mainline_state_new,
	.lower = llamacpp_lower,
};
