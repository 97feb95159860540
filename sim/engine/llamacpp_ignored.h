/*
 * llamacpp_ignored.h - flags that llama.cpp's programs know and that change no time and no memory here: what is sampled, what
 * is logged, how a server listens; and those of draft models, without which the prediction is made.
 *
 * From tools/server/README.md and tools/llama-bench/README.md of ggml-org/llama.cpp in August 2026, and what went out of use since
 * 2023.
 */
#ifndef SIM_ENGINE_LLAMACPP_IGNORED_H
#define SIM_ENGINE_LLAMACPP_IGNORED_H

#include "sim/engine/engine_table.h"

#define LLAMACPP_IGNORED \
	/* model, prompt, context */ \
	{"m", true}, {"model", true}, {"hf", true}, {"mu", true}, {"model-url", true}, {"hft", true}, {"hf-token", true}, \
	{"dr", true}, {"docker-repo", true}, {"mmproj", true}, {"mm", true}, {"mmproj-url", true}, {"mmproj-auto", false}, \
	{"no-mmproj", false}, {"mmproj-offload", false}, {"no-mmproj-offload", false}, {"image", true}, \
	{"image-min-tokens", true}, {"image-max-tokens", true}, {"p", true}, {"prompt", true}, {"f", true}, {"file", true}, \
	{"sys", true}, {"system-prompt", true}, {"n", true}, {"predict", true}, {"n-predict", true}, {"n-prompt", true}, \
	{"n-gen", true}, {"d", true}, {"keep", true}, {"swa-full", false}, {"context-shift", false}, {"no-context-shift", false}, \
	{"fit-ctx", true}, {"fitc", true}, {"ignore-eos", false}, {"e", false}, {"escape", false}, {"no-escape", false}, \
	{"rope-scaling", true}, {"rope-scale", true}, {"rope-freq-base", true}, {"rope-freq-scale", true}, \
	{"yarn-orig-ctx", true}, {"yarn-ext-factor", true}, {"yarn-attn-factor", true}, {"yarn-beta-slow", true}, \
	{"yarn-beta-fast", true}, {"defrag-thold", true}, {"dt", true}, {"gan", true}, {"gaw", true}, {"grp-attn-n", true}, \
	{"grp-attn-w", true}, {"lora", true}, {"lora-scaled", ENGINE_VALUES}, {"control-vector", true}, \
	{"control-vector-scaled", ENGINE_VALUES}, {"control-vector-layer-range", ENGINE_VALUES}, {"check-tensors", false}, \
	{"prompt-cache", true}, \
	/* how threads wait, how files are read */ \
	{"mlock", false}, {"dio", ENGINE_MAY_VALUE}, {"direct-io", ENGINE_MAY_VALUE}, {"ndio", false}, {"no-direct-io", false}, \
	{"prio", true}, {"poll", true}, {"prio-batch", true}, {"poll-batch", true}, {"C", true}, {"cpu-mask", true}, {"Cr", true}, \
	{"cpu-range", true}, {"cpu-strict", true}, {"Cb", true}, {"cpu-mask-batch", true}, {"Crb", true}, \
	{"cpu-range-batch", true}, {"cpu-strict-batch", true}, {"repack", false}, {"lzm", true}, {"lazy-mode", true}, \
	{"kvo", false}, {"kv-offload", false}, {"op-offload", false}, {"mul-mat-q", false}, {"mmq", false}, {"low-vram", false}, \
	{"lv", true}, \
	/* sampling */ \
	{"s", true}, {"seed", true}, {"temp", true}, {"temperature", true}, {"top-p", true}, {"top-k", true}, {"min-p", true}, \
	{"top-n-sigma", true}, {"top-nsigma", true}, {"xtc-probability", true}, {"xtc-threshold", true}, {"typical", true}, \
	{"typical-p", true}, {"tfs", true}, {"repeat-last-n", true}, {"repeat-penalty", true}, {"presence-penalty", true}, \
	{"frequency-penalty", true}, {"dry-multiplier", true}, {"dry-base", true}, {"dry-allowed-length", true}, \
	{"dry-penalty-last-n", true}, {"dry-sequence-breaker", true}, {"dynatemp-range", true}, {"dynatemp-exp", true}, \
	{"mirostat", true}, {"mirostat-lr", true}, {"mirostat-ent", true}, {"samplers", true}, {"sampler-seq", true}, \
	{"sampling-seq", true}, {"adaptive-target", true}, {"adaptive-decay", true}, {"l", true}, {"logit-bias", true}, \
	{"grammar", true}, {"grammar-file", true}, {"j", true}, {"json-schema", true}, {"jf", true}, {"json-schema-file", true}, \
	{"bs", false}, {"backend-sampling", false}, \
	/* logs and figures */ \
	{"log-disable", false}, {"log-file", true}, {"log-colors", ENGINE_MAY_VALUE}, {"log-prefix", false}, \
	{"no-log-prefix", false}, {"log-timestamps", false}, {"no-log-timestamps", false}, {"log-verbose", false}, \
	{"log-verbosity", true}, {"verbosity", true}, {"verbose", false}, {"v", false}, {"verbose-prompt", false}, \
	{"log-jsonl", false}, {"offline", false}, {"perf", false}, {"no-perf", false}, {"show-timings", false}, \
	{"color", ENGINE_MAY_VALUE}, {"co", ENGINE_MAY_VALUE}, {"simple-io", false}, {"no-display-prompt", false}, {"r", true}, \
	{"repetitions", true}, {"o", true}, {"output", true}, {"oe", true}, {"output-err", true}, {"pg", true}, {"gp", true}, \
	{"w", true}, {"delay", true}, {"progress", false}, {"no-warmup", false}, {"warmup", ENGINE_MAY_VALUE}, \
	{"output-format", true}, \
	/* programs to talk to */ \
	{"cnv", false}, {"conversation", false}, {"no-cnv", false}, {"no-conversation", false}, {"st", false}, \
	{"single-turn", false}, {"i", false}, {"interactive", false}, {"if", false}, {"interactive-first", false}, {"cml", false}, \
	{"ins", false}, {"instruct", false}, {"mli", false}, {"multiline-input", false}, {"reverse-prompt", true}, {"sp", false}, \
	{"special", false}, {"in-prefix", true}, {"in-suffix", true}, {"in-prefix-bos", false}, \
	/* servers */ \
	{"np", true}, {"parallel", true}, {"cont-batching", false}, {"cb", false}, {"nocb", false}, {"no-cont-batching", false}, \
	{"kvu", false}, {"kv-unified", false}, {"no-kvu", false}, {"no-kv-unified", false}, {"kv-unified-per-slot", true}, \
	{"ctxcp", true}, {"ctx-checkpoints", true}, {"swa-checkpoints", true}, {"cms", true}, {"checkpoint-min-step", true}, \
	{"cram", true}, {"cache-ram", true}, {"cache-idle-slots", false}, {"no-cache-idle-slots", false}, {"cache-prompt", false}, \
	{"no-cache-prompt", false}, {"cache-reuse", true}, {"slots", false}, {"no-slots", false}, {"slot-save-path", true}, \
	{"sps", true}, {"slot-prompt-similarity", true}, {"host", true}, {"port", true}, {"reuse-port", false}, {"path", true}, \
	{"api-prefix", true}, {"api-key", true}, {"api-key-file", true}, {"ssl-key-file", true}, {"ssl-cert-file", true}, \
	{"cors-origins", true}, {"ui", false}, {"webui", false}, {"no-ui", false}, {"no-webui", false}, {"webui-config", true}, \
	{"webui-mcp-proxy", false}, {"tools", true}, {"agent", false}, {"a", true}, {"alias", true}, {"tags", true}, {"to", true}, \
	{"timeout", true}, {"threads-http", true}, {"metrics", false}, {"props", false}, {"media-path", true}, \
	{"models-dir", true}, {"models-preset", true}, {"models-max", true}, {"models-autoload", false}, \
	{"no-models-autoload", false}, {"pooling", true}, {"embedding", false}, {"embeddings", false}, {"rerank", false}, \
	{"reranking", false}, {"sleep-idle-seconds", true}, {"spm-infill", false}, {"lcs", true}, {"lookup-cache-static", true}, \
	{"lcd", true}, {"lookup-cache-dynamic", true}, \
	/* chat */ \
	{"jinja", false}, {"no-jinja", false}, {"chat-template", true}, {"chat-template-file", true}, \
	{"chat-template-kwargs", true}, {"reasoning-format", true}, {"rea", ENGINE_MAY_VALUE}, {"reasoning", true}, \
	{"reasoning-budget", true}, {"reasoning-budget-message", true}, {"reasoning-effort", true}, {"reasoning-preserve", false}, \
	{"skip-chat-parsing", false}, {"prefill-assistant", false}, {"no-prefill-assistant", false}, \
	/* draft models: without one, the others say nothing */ \
	{"md", ENGINE_NOT_MODELLED_VALUE}, {"model-draft", ENGINE_NOT_MODELLED_VALUE}, {"hfd", ENGINE_NOT_MODELLED_VALUE}, \
	{"hfrd", ENGINE_NOT_MODELLED_VALUE}, {"hf-repo-draft", ENGINE_NOT_MODELLED_VALUE}, \
	{"spec-draft-model", ENGINE_NOT_MODELLED_VALUE}, {"spec-draft-hf", ENGINE_NOT_MODELLED_VALUE}, \
	{"spec-type", ENGINE_NOT_MODELLED_VALUE}, {"spec-default", ENGINE_NOT_MODELLED}, {"rpc", ENGINE_NOT_MODELLED_VALUE}, \
	{"no-repack", ENGINE_NOT_MODELLED}, {"nr", ENGINE_NOT_MODELLED}, {"no-host", ENGINE_NOT_MODELLED}, {"ngld", true}, \
	{"gpu-layers-draft", true}, {"n-gpu-layers-draft", true}, {"spec-draft-ngl", true}, {"devd", true}, \
	{"device-draft", true}, {"spec-draft-device", true}, {"cd", true}, {"ctx-size-draft", true}, {"td", true}, \
	{"threads-draft", true}, {"tbd", true}, {"threads-batch-draft", true}, {"draft", true}, {"draft-n", true}, \
	{"draft-max", true}, {"draft-min", true}, {"draft-n-min", true}, {"draft-p-min", true}, {"draft-p-split", true}, \
	{"spec-draft-n-max", true}, {"spec-draft-n-min", true}, {"spec-draft-p-min", true}, {"spec-draft-p-split", true}, \
	{"ctkd", true}, {"cache-type-k-draft", true}, {"ctvd", true}, {"cache-type-v-draft", true}, {"spec-draft-type-k", true}, \
	{"spec-draft-type-v", true}, {"otd", true}, {"override-tensor-draft", true}, {"cmoed", false}, {"cpu-moe-draft", false}, \
	{"spec-draft-cpu-moe", false}, {"ncmoed", true}, {"n-cpu-moe-draft", true}, {"spec-draft-n-cpu-moe", true}

#endif
