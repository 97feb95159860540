/*
 * llamacpp.h - what llama.cpp and the programs made of it share: flags, placement, lowering.
 *
 *	llama.cpp ──┬── llama-cpp-python, ollama   the same code under other names and defaults
 *	            └── ik_llama.cpp               its own kernels, types and rule for streaming experts
 *
 * Each of them is a table of flags made of these rows and its own, and a struct llamacpp_fork that says how its code
 * differs.
 */
#ifndef SIM_ENGINE_LLAMACPP_H
#define SIM_ENGINE_LLAMACPP_H

#include <string.h>

#include "sim/engine/engine_table.h"
#include "sim/engine/llamacpp_ignored.h"

#define LLAMACPP_MAX_GPUS PLACE_MAX_ROWS
#define LLAMACPP_HIDDEN_BYTES 4 /* of an element of a hidden state */

enum { LLAMACPP_SPLIT_LAYER, LLAMACPP_SPLIT_NONE, LLAMACPP_SPLIT_ROW };

struct llamacpp_flags {
	const char *ngl, *ot, *fa, *ctk, *ctv, *ts, *build, *backend, *dev, *fit, *override_kv, *fit_target;
	uint64_t n_cpu_moe, b, ub, t, tb, c, mg, offload_min;
	bool cpu_moe, nkvo, no_mmap, mmap, no_op_offload, no_pinned, one_socket;
	int load_mode, sm, numa;
	/* of ik_llama.cpp */
	const char *ser, *op;
	int mla; /* LLAMACPP_MLA_... */
	bool rtr, fmoe, no_fmoe;
};

/* As -mla says, from LLAMACPP_MLA_HEADS on. */
enum {
	LLAMACPP_MLA_AUTO,
	LLAMACPP_MLA_HEADS,  /* 0: keys and values of all heads in the cache */
	LLAMACPP_MLA_COPY,   /* 1: latent vectors and, without flash attention, a copy */
	LLAMACPP_MLA_LATENT, /* 2 */
	LLAMACPP_MLA_BOTH,   /* 3 */
};

/* Dates are YYYY-MM, as the flag `build`; NULL: never. */
struct llamacpp_fork {
	bool ik;                  /* its types, -mla, -rtr, -fmoe, -op */
	bool no_layers_no_gpu;    /* with none of its layers a GPU takes no part in prompts either */
	const char *graphs_from;  /* from then on each split of a step has a CUDA graph; before, a step of several has none */
	const char *first_graphs_from; /* from then on a step without splits has one; NULL: always */
	const char *all_from;     /* from then on all layers are on GPUs when -ngl is not given, before none; NULL: as many as fit */
	const char *fit_from;     /* from then on as many as fit, experts in RAM rather than layers */
	const char *fmoe_from;    /* from then on -fmoe is on */
	const char *whole_from;   /* from then on a layer whose weights cross the link is attended on the GPU as well */
	const char *used_from;    /* from then on of experts in RAM those alone cross the link that some row chose */
	const char *tiles_from;   /* from then on attention on the CPU is what hw/kernels says, before its `early` share; NULL:
	                             always */
	const char *fast_from;    /* from then on -t counts the fast cores of a hybrid processor alone; NULL: always */
	const char *delta_from;   /* from then on a step of recurrent state is one operation */
	const char *fused_from;   /* from then on small kernels of a GPU are fused: norms, routing, gates, sums of experts */
	const char *expert_graphs_from; /* from then on steps with experts on GPUs alone have CUDA graphs; NULL: always */
	const char *together_from; /* from then on a GPU has one kernel for all experts of a row, before the host read which they are
	                              and launched one for each; NULL: always */
	const char *vectors_from; /* from then on few rows with experts are multiplied as vectors on GPUs; NULL: never */
	const char *late_from;    /* from then on experts in RAM cross the link from 32 E / k rows on, not from 32 */
	const char *overrides_pinned_from; /* from then on weights that an override keeps in RAM may be in pinned memory */
	bool overrides_unmap;     /* then they are, mapped or not */
	const char *blocks_from;  /* from then on products of many rows on the CPU are as fast as hw/kernels says; NULL: always */
	const char *interleaved_from; /* from then on GPUs have kernels for some interleaved types */
	const char *k_from;       /* from then on GPUs have products of many rows with iq4_k and such; NULL: never, no other has them */
	const char *flash_from;   /* from then on -fa auto is on, before off */
	const char *mla_flash_from; /* from then on GPUs have flash attention for MLA (pull request 13306); NULL: always */
	const char *rows_from;    /* from then on a GPU's heads that share keys are rows of one product, of a cache in 16 bits; NULL:
	                             never */
	const char *mmq_from;     /* from then on quantised weights are multiplied as they are, before in 16 bits; NULL: always */
	const char *windows_from; /* from then on layers with a window keep and attend to no more than that */
	const char *latent_from;  /* from then on the cache of MLA holds latent vectors whatever the flags */
	const char *mla_from;     /* from then on it does unless flags say otherwise; NULL: never */
};

/* A mapped file that RAM does not hold: placement.engine, or NULL there. */
struct llamacpp_paging {
	int drive;
	bool experts; /* of routed experts alone: what every token wants stays in memory */
	double share; /* of the weights there that comes from the drive at each use, where a pass does not want them all */
};

/* Whether a build is of that date or later; date NULL: never. */
static inline bool llamacpp_is_since(const struct llamacpp_flags *f, const char *date)
{
	return date && strcmp(f->build, date) >= 0;
}

static inline int llamacpp_mla(const struct llamacpp_fork *fork, const struct llamacpp_flags *f)
{
	if (f->mla != LLAMACPP_MLA_AUTO)
		return f->mla;
	return llamacpp_is_since(f, fork->mla_from) ? LLAMACPP_MLA_BOTH : LLAMACPP_MLA_HEADS;
}

/* As llamacpp_load_choices has them. */
enum { LLAMACPP_LOAD_MMAP, LLAMACPP_LOAD_NONE, LLAMACPP_LOAD_AUTO, LLAMACPP_LOAD_MLOCK, LLAMACPP_LOAD_MMAP_MLOCK, LLAMACPP_LOAD_DIO };

static inline bool llamacpp_is_mapped(const struct llamacpp_flags *f)
{
	bool mode = f->load_mode == LLAMACPP_LOAD_MMAP || f->load_mode == LLAMACPP_LOAD_AUTO || f->load_mode == LLAMACPP_LOAD_MMAP_MLOCK;

	return f->mmap && !f->no_mmap && mode;
}

static inline bool llamacpp_fuses_experts(const struct llamacpp_fork *fork, const struct llamacpp_flags *f)
{
	return !f->no_fmoe && (f->fmoe || llamacpp_is_since(f, fork->fmoe_from));
}

/* Rows of a table of flags. */
#define LLAMACPP_FLAGS(build_def, ub_def, ngl_def) \
	PARAM_TEXT(struct llamacpp_flags, ngl, "ngl", ngl_def, \
		"layers on the GPU, the output counting as one; -1: all; auto: as many as fit; empty: as the program does, by date"), \
	PARAM_TEXT(struct llamacpp_flags, ot, "ot", "", "REGEX=CPU|CUDA0,... : where tensors with such names go"), \
	PARAM_COUNT(struct llamacpp_flags, n_cpu_moe, "n-cpu-moe", "0", 0, 65536, \
		"the first N layers keep their routed experts in RAM"), \
	PARAM_FLAG(struct llamacpp_flags, cpu_moe, "cpu-moe", "no", "all layers keep their routed experts in RAM"), \
	PARAM_FLAG(struct llamacpp_flags, nkvo, "nkvo", "no", "the KV cache stays in RAM, attention on the CPU"), \
	PARAM_COUNT(struct llamacpp_flags, b, "b", "2048", 1, 1e6, "logical batch"), \
	PARAM_COUNT(struct llamacpp_flags, ub, "ub", ub_def, 1, 1e6, "rows of one pass over the weights"), \
	PARAM_COUNT(struct llamacpp_flags, t, "t", "0", 0, 4096, \
		"CPU threads; 0: one for each core, of a hybrid processor for each fast one"), \
	PARAM_COUNT(struct llamacpp_flags, tb, "tb", "0", 0, 4096, "the same for prompts; 0: as -t"), \
	PARAM_CHOICE(struct llamacpp_flags, numa, "numa", "none", llamacpp_numa_choices, \
		"how threads are spread over the sockets"), \
	PARAM_FLAG(struct llamacpp_flags, one_socket, "one-socket", "no", \
		"as behind numactl --cpunodebind=N --membind=N: threads and memory on one socket"), \
	PARAM_TEXT(struct llamacpp_flags, fa, "fa", "auto", "flash attention: on, off, auto"), \
	PARAM_TEXT(struct llamacpp_flags, ctk, "ctk", "f16", "element type of keys in the cache"), \
	PARAM_TEXT(struct llamacpp_flags, ctv, "ctv", "f16", "element type of values in the cache"), \
	PARAM_COUNT(struct llamacpp_flags, c, "c", "0", 0, 1e9, "context allocated; 0: what the workload needs"), \
	PARAM_FLAG(struct llamacpp_flags, no_mmap, "no-mmap", "no", "read weights into pinned memory"), \
	PARAM_CHOICE(struct llamacpp_flags, load_mode, "load-mode", "mmap", llamacpp_load_choices, "none and dio are --no-mmap"), \
	PARAM_FLAG(struct llamacpp_flags, mmap, "mmap", "yes", "0 is --no-mmap (llama-bench)"), \
	PARAM_FLAG(struct llamacpp_flags, no_pinned, "no-pinned", "no", \
		"as with GGML_CUDA_NO_PINNED=1: host memory is pageable"), \
	PARAM_FLAG(struct llamacpp_flags, no_op_offload, "no-op-offload", "no", \
		"weights in RAM are never multiplied on the GPU"), \
	PARAM_COUNT(struct llamacpp_flags, offload_min, "op-offload-min", "0", 0, 1e9, \
		"rows from which weights in RAM are multiplied on the GPU (GGML_OP_OFFLOAD_MIN_BATCH); 0: the program's rule"), \
	PARAM_TEXT(struct llamacpp_flags, ts, "ts", "", \
		"share of the layers (sm row: and rows) on each GPU: 3,1; empty: by memory"), \
	PARAM_CHOICE(struct llamacpp_flags, sm, "sm", "layer", llamacpp_split_choices, \
		"how several GPUs split the model: by layers; one GPU has all; dense matrices by rows"), \
	PARAM_COUNT(struct llamacpp_flags, mg, "mg", "0", 0, LLAMACPP_MAX_GPUS - 1, \
		"which GPU has all with sm none; else without influence"), \
	PARAM_TEXT(struct llamacpp_flags, dev, "dev", "", "the GPUs that are used: CUDA0,CUDA1; none; empty: all"), \
	PARAM_TEXT(struct llamacpp_flags, override_kv, "override-kv", "", \
		"KEY=TYPE:VALUE,...: of the model; experts a token uses are felt (ARCH.expert_used_count=int:4)"), \
	PARAM_TEXT(struct llamacpp_flags, fit_target, "fit-target", "1024", \
		"MiB that -ngl auto leaves free on each GPU: 1024, or 512,2048"), \
	PARAM_TEXT(struct llamacpp_flags, build, "build", build_def, \
		"year and month of the program, 2025-04: some rules have changed"), \
	PARAM_TEXT(struct llamacpp_flags, backend, "backend", "auto", \
		"cuda, hip (or ROCm), vulkan, metal, ... (hw/kernels/llama.cpp.yaml); auto: what -dev says, else what is usual on the card")

/* Of llama.cpp itself: the fork's --fit is another. */
#define LLAMACPP_FIT_FLAG \
	PARAM_TEXT(struct llamacpp_flags, fit, "fit", "on", "off: -ngl auto is all layers, whether they fit or not")

#define LLAMACPP_ALIASES \
	{"gpu-layers", "ngl"}, {"n-gpu-layers", "ngl"}, {"override-tensor", "ot"}, {"ncmoe", "n-cpu-moe"}, \
	{"cmoe", "cpu-moe"}, {"no-kv-offload", "nkvo"}, {"batch-size", "b"}, {"ubatch-size", "ub"}, \
	{"threads", "t"}, {"threads-batch", "tb"}, {"flash-attn", "fa"}, {"cache-type-k", "ctk"}, \
	{"cache-type-v", "ctv"}, {"ctx-size", "c"}, {"tensor-split", "ts"}, {"split-mode", "sm"}, \
	{"main-gpu", "mg"}, {"lm", "load-mode"}, {"nopo", "no-op-offload"}, {"mmp", "mmap"}, \
	{"device", "dev"}, {"okv", "override-kv"}, {"fitt", "fit-target"}

extern const char *const llamacpp_load_choices[], *const llamacpp_split_choices[], *const llamacpp_numa_choices[];

bool llamacpp_is_flash(const struct llamacpp_fork *fork, const struct llamacpp_flags *f);

/* The functions of struct engine_ops, for a fork. */
int llamacpp_place(const struct llamacpp_fork *fork, const struct engine_job *job, struct placement *p, struct arena *a,
	struct err *err);
void *llamacpp_state_new(const struct llamacpp_fork *fork, const struct engine_job *job, const struct placement *p,
	struct arena *a);
/* Takes windows away where the program knew none, and what --override-kv says. */
int llamacpp_adapt(const struct llamacpp_fork *fork, const struct llamacpp_flags *f, struct model *m, struct err *err);
/* Of the flags backend, dev and build. */
struct cost_backend llamacpp_backend(const void *flags);
/* For llama.cpp itself, by whatever name. */
int llamacpp_mainline_adapt(const void *flags, struct model *m, struct err *err);
int llamacpp_mainline_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err);
void *llamacpp_mainline_state_new(const struct engine_job *job, const struct placement *p, struct arena *a);
exec_lower_fn llamacpp_lower;
uint64_t llamacpp_prefill_rows(const void *flags, const struct hw_machine *machine);

#endif
