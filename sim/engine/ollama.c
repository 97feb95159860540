/*
 * ollama.c - Ollama: llama.cpp under the names of its own options. It runs one llama.cpp process a model; num_gpu counts
 * layers as -ngl does, and without it as many are taken as fit.
 */
#include <stdio.h>

#include "sim/engine/llamacpp.h"

/* Of the llama.cpp within, against that of its month: the dates here against those of llamacpp.c. */
#define MONTHS_BEHIND 2

/* Layers go to the GPU as a whole, and its llama.cpp is some months old (ollama/ollama pull request 16150). Flash attention came
   model by model (12482, 12639); weights in RAM are never in pinned memory (16222). "If the user wants zero GPU layers, reset
   the gpu list to be CPU" (NewLlamaServer in llm/server.go), so that its llama.cpp has no GPU to bring them to. */
static const struct llamacpp_fork bundled = {
	.no_layers_no_gpu = true, .expert_graphs_from = "2025-06", .together_from = "2025-06", .graphs_from = "2026-03",
	.latent_from = "2025-07", .windows_from = "2025-07", .whole_from = "2024-06",
	.tiles_from = "2026-03", .delta_from = "2026-07", .fused_from = "2026-01", .mmq_from = "2024-08", .used_from = "2025-10",
	.flash_from = "2025-10", .mla_flash_from = "2025-07", .vectors_from = "2026-04"};

static int ollama_adapt(const void *flags, struct model *m, struct err *err)
{
	return llamacpp_adapt(&bundled, flags, m, err);
}

static int ollama_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	return llamacpp_place(&bundled, job, p, a, err);
}

static void *ollama_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	return llamacpp_state_new(&bundled, job, p, a);
}

/* Its llama.cpp is of some months before; it brings ROCm for AMD's cards, and Vulkan only where OLLAMA_VULKAN=1 asks for it
   (pull request 11835). */
static struct cost_backend ollama_backend(const void *flags)
{
	struct cost_backend out = llamacpp_backend(flags);
	unsigned year, month;

	if (sscanf(out.build, "%4u-%2u", &year, &month) == 2) {
		unsigned months = 12 * year + month - 1 - MONTHS_BEHIND;
		snprintf(out.build, sizeof(out.build), "%04u-%02u", months / 12 % 10000, months % 12 + 1);
	}
	out.bundled = true;
	return out;
}

static const struct param ollama_flag[] = {LLAMACPP_FLAGS("2026-08", "512", ""), LLAMACPP_FIT_FLAG};

static const struct engine_alias ollama_alias[] = {
	LLAMACPP_ALIASES, {"num_gpu", "ngl"}, {"num_ctx", "c"}, {"num_batch", "ub"}, {"num_thread", "t"},
	{"use_mmap", "mmap"}, {"main_gpu", "mg"},
};

static const struct engine_ignored ollama_ignored[] = {
	LLAMACPP_IGNORED, {"num_predict", true}, {"num_keep", true}, {"top_k", true},
	{"top_p", true}, {"keep_alive", true}, {"use_mlock", true}, {"keepalive", true}, {"think", false}, {"hidethinking", false},
	{"nowordwrap", false}, {"format", true}, {"insecure", false}, {"experimental", false},
};

const struct engine_ops engine_ollama = {
	.name = "ollama",
	.version = "1",
	.help = "llama.cpp under Ollama's names: num_gpu, num_ctx, num_batch, num_thread",
	.flag = ollama_flag,
	.n_flags = ARRAY_LEN(ollama_flag),
	.flags_size = sizeof(struct llamacpp_flags),
	.alias = ollama_alias,
	.n_aliases = ARRAY_LEN(ollama_alias),
	.ignored = ollama_ignored,
	.n_ignored = ARRAY_LEN(ollama_ignored),
	.dashes = true,
	.minus_unset = true,
	.bare = "fa",
	.repeats = "ot",
	.kernels = "llama.cpp",
	.backend = ollama_backend,
	.overheads = true,
	.stepwise = true,
	.prefill_rows = llamacpp_prefill_rows,
	.adapt = ollama_adapt,
	.place = ollama_place,
	.state_new = ollama_state_new,
	.lower = llamacpp_lower,
};
