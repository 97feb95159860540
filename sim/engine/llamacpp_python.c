/*
 * llamacpp_python.c - llama-cpp-python: llama.cpp by the keywords of its class Llama, with its defaults of 512 tokens of
 * context and of a batch and of no layer on the GPU (n_gpu_layers=0 in llama_cpp/llama.py). Its flags may be the text of the call: Llama(model_path="m.gguf", n_gpu_layers=20).
 */
#include "sim/engine/llamacpp.h"

static const struct param python_flag[] = {LLAMACPP_FLAGS("2026-08", "512", "0"), LLAMACPP_FIT_FLAG};

static const struct engine_alias python_alias[] = {
	LLAMACPP_ALIASES, {"n_gpu_layers", "ngl"}, {"n_ctx", "c"}, {"n_batch", "b"}, {"n_ubatch", "ub"},
	{"n_threads", "t"}, {"n_threads_batch", "tb"}, {"type_k", "ctk"}, {"type_v", "ctv"}, {"use_mmap", "mmap"},
	{"flash_attn", "fa"}, {"main_gpu", "mg"}, {"tensor_split", "ts"},
};

static const struct engine_ignored python_ignored[] = {
	LLAMACPP_IGNORED, {"model_path", true}, {"use_mlock", true}, {"logits_all", true},
	{"chat_format", true}, {"n_keep", true},
};

static const char *const llama_arguments[] = {"model_path", NULL};
static const struct python_function python_calls[] = {{.name = "Llama", .positional = llama_arguments}};

const struct engine_ops engine_llamacpp_python = {
	.name = "llama-cpp-python",
	.version = "1",
	.help = "llama.cpp by the keywords of Python: Llama(model_path, n_gpu_layers=20)",
	.flag = python_flag,
	.n_flags = ARRAY_LEN(python_flag),
	.flags_size = sizeof(struct llamacpp_flags),
	.alias = python_alias,
	.n_aliases = ARRAY_LEN(python_alias),
	.ignored = python_ignored,
	.n_ignored = ARRAY_LEN(python_ignored),
	.minus_unset = true,
	.bare = "fa",
	.repeats = "ot",
	.call = python_calls,
	.n_calls = ARRAY_LEN(python_calls),
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
