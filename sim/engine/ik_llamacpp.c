/*
 * ik_llamacpp.c - ik_llama.cpp (ikawrakow/ik_llama.cpp 8337e4cd, August 2026): llama.cpp with kernels and types of its
 * own. What it does differently in time:
 *
 *	-rtr, *_r4    weights in interleaved rows: faster on the CPU; streamed to the GPU where it has kernels for them
 *	-mla 2, 3     latent cache; prompts are attended with unpacked heads; 3 by default since November 2025 (pull request 943)
 *	-fmoe         up, gate and activation of the experts are one kernel
 *	-ser K,T      no more than K experts a token
 *	-ot X=CPU     such weights are in pinned memory since March 2026 (pull request 1510), before in pageable, --no-mmap or not
 *	experts in RAM cross the link only from 32 experts / experts used rows on (pull request 520); -op switches that off
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/llamacpp.h"

/* In the order of LLAMACPP_MLA_... */
static const char *const mla_choices[] = {"auto", "0", "1", "2", "3", NULL};

static const struct param ik_flag[] = {
	LLAMACPP_FLAGS("2026-08", "512", ""),
	PARAM_FLAG(struct llamacpp_flags, rtr, "rtr", "no", "repack weights for the CPU when loading"),
	PARAM_FLAG(struct llamacpp_flags, fmoe, "fmoe", "no",
		"one kernel for up, gate and activation of experts; on by itself since November 2025"),
	PARAM_FLAG(struct llamacpp_flags, no_fmoe, "no-fmoe", "no", "not so"),
	PARAM_CHOICE(struct llamacpp_flags, mla, "mla", "auto", mla_choices,
		"0: keys and values of all heads in the cache; 1: latent vectors and, without -fa, a copy; 2, 3: latent vectors; auto: 3, "
		"0 before November 2025"),
	PARAM_TEXT(struct llamacpp_flags, ser, "ser", "", "K,T: at most K experts a token (T: 1)"),
	PARAM_TEXT(struct llamacpp_flags, op, "op", "",
		"OP,0|1,...: whether an operation on weights in RAM may run on the GPU; 26: dense, 27 and 29: experts"),
};

static const struct engine_alias ik_alias[] = {
	LLAMACPP_ALIASES, {"run-time-repack", "rtr"}, {"fused-moe", "fmoe"}, {"no-fused-moe", "no-fmoe"}, {"mla-use", "mla"},
	{"smart-expert-reduction", "ser"}, {"offload-policy", "op"}, {"moe-offload-min", "op-offload-min"},
};

/* common/common.cpp and examples/llama-bench of the same commit */
static const struct engine_ignored ik_ignored[] = {
	LLAMACPP_IGNORED, {"amb", true}, {"attention-max-batch", true}, {"attn-max-batch", true}, {"gr", ENGINE_MAY_VALUE},
	{"graph-reuse", ENGINE_MAY_VALUE}, {"no-gr", false}, {"no-graph-reuse", false}, {"ger", ENGINE_MAY_VALUE},
	{"grouped-expert-routing", false}, {"thp", ENGINE_MAY_VALUE}, {"transparent-huge-pages", false}, {"cuda", true},
	{"cuda-params", true}, {"warmup-batch", false}, {"wb", false}, {"rcache", ENGINE_MAY_VALUE}, {"rope-cache", false},
	{"mqkv", ENGINE_MAY_VALUE}, {"merge-qkv", false}, {"muge", ENGINE_MAY_VALUE}, {"merge-up-gate-experts", false},
	{"khad", false}, {"k-cache-hadamard", false}, {"vhad", false}, {"v-cache-hadamard", false}, {"ictk", true}, {"fdn", true},
	{"fused-delta-net", true}, {"vq", false}, {"validate-quants", false}, {"fit", ENGINE_MAY_VALUE}, {"fit-margin", true},
	{"gpu-fit-margin", true}, {"gfm", true}, {"wgt", true}, {"worst-graph-tokens", true}, {"crs", true},
	{"cache-ram-similarity", true}, {"ctx-checkpoints-interval", true}, {"log-format", true}, {"peg", false},
	{"minilog", false}, {"sas", ENGINE_MAY_VALUE}, {"scheduler-async", false}, {"ooae", false}, {"nrep", true},
	{"n-repetitions", true}, {"mea", true}, {"max-extra-alloc", true}, {"tgb", true}, {"threads-gen-batch", true},
	{"no-fug", ENGINE_NOT_MODELLED | ENGINE_MAY_VALUE}, {"no-fused-up-gate", ENGINE_NOT_MODELLED},
	{"no-ooae", ENGINE_NOT_MODELLED | ENGINE_MAY_VALUE}, {"no-offload-only-active-experts", ENGINE_NOT_MODELLED},
	{"dsa", ENGINE_NOT_MODELLED}, {"mtp", ENGINE_NOT_MODELLED}, {"multi-token-prediction", ENGINE_NOT_MODELLED},
	{"no-mtp", false}, {"smgs", ENGINE_NOT_MODELLED}, {"split-mode-graph-scheduling", ENGINE_NOT_MODELLED},
	{"max-gpu", ENGINE_NOT_MODELLED_VALUE}, {"defer-experts", ENGINE_NOT_MODELLED}, {"prefetch-experts", ENGINE_NOT_MODELLED},
};

/* -fmoe and -fa on by themselves: pull request 863; all layers on GPUs: 2209. */
static const struct llamacpp_fork ik = {.ik = true, .fmoe_from = "2025-11", .all_from = "2026-08", .graphs_from = "2026-01",
	.expert_graphs_from = "2025-09", .together_from = "2025-04", .late_from = "2025-06",
	.whole_from = "2024-04", .used_from = "2025-09", .flash_from = "2025-11", .overrides_pinned_from = "2026-04",
	.overrides_unmap = true, .blocks_from = "2025-06", .interleaved_from = "2025-06", .k_from = "2025-06", .delta_from = "2026-02",
	.fused_from = "2025-10", .rows_from = "2025-06", .mla_from = "2025-12"};

/* Pairs of numbers, separated by commas: how many there are, -1 when it is something else. */
static int count_pairs(const char *text)
{
	int n = 0, used;

	for (; *text; n++) {
		used = 0;
		sscanf(text, "%*u,%*g%n", &used);
		if (used == 0 || (text[used] && text[used] != ',') || (text[used] == ',' && !text[used + 1]))
			return -1;
		text += used + (text[used] == ',');
	}
	return n;
}

static int ik_adapt(const void *flags, struct model *m, struct err *err)
{
	const struct llamacpp_flags *f = flags;
	uint64_t n = strtoull(f->ser, NULL, 10);

	if (*f->ser && (count_pairs(f->ser) != 1 || n == 0))
		return err_set(err, ERR_INPUT, "flag 'ser' must be two numbers such as 4,1, not '%s'", f->ser);
	if (count_pairs(f->op) < 0)
		return err_set(err, ERR_INPUT, "flag 'op' must be pairs of numbers such as 27,0,29,0, not '%s'", f->op);
	if (llamacpp_adapt(&ik, f, m, err))
		return -1;
	return n ? engine_use_experts(m, n, err) : 0;
}

static int ik_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	return llamacpp_place(&ik, job, p, a, err);
}

static void *ik_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	return llamacpp_state_new(&ik, job, p, a);
}

const struct engine_ops engine_ik_llamacpp = {
	.name = "ik_llama.cpp",
	.version = "1",
	.help = "llama.cpp's fork by ikawrakow: own types and CPU kernels, streams experts only for many rows",
	.flag = ik_flag,
	.n_flags = ARRAY_LEN(ik_flag),
	.flags_size = sizeof(struct llamacpp_flags),
	.alias = ik_alias,
	.n_aliases = ARRAY_LEN(ik_alias),
	.ignored = ik_ignored,
	.n_ignored = ARRAY_LEN(ik_ignored),
	.dashes = true,
	.minus_unset = true,
	.bare = "fa",
	.repeats = "ot",
	.kernels = "ik_llama.cpp",
	.backend = llamacpp_backend,
	.overheads = true,
	.stepwise = true,
	.prefill_rows = llamacpp_prefill_rows,
	.adapt = ik_adapt,
	.place = ik_place,
	.state_new = ik_state_new,
	.lower = llamacpp_lower,
};
