/*
 * ollama.c - Ollama: llama.cpp under the names of its own options. It runs one llama.cpp process a model; num_gpu counts
 * layers as -ngl does, and without it as many are taken as fit.
 */
#include "sim/engine/llamacpp.h"

static const struct param ollama_flag[] = {LLAMACPP_FLAGS("2026-08", "512")};

static const struct engine_alias ollama_alias[] = {
	LLAMACPP_ALIASES, {"num_gpu", "ngl"}, {"num_ctx", "c"}, {"num_batch", "ub"}, {"num_thread", "t"},
	{"use_mmap", "mmap"}, {"main_gpu", "mg"},
};

static const struct engine_ignored ollama_ignored[] = {
	LLAMACPP_IGNORED, {"num_predict", true}, {"num_keep", true}, {"temperature", true}, {"top_k", true},
	{"top_p", true}, {"keep_alive", true}, {"use_mlock", true},
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
