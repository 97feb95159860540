/*
 * sglang_ignored.h - flags of sglang.launch_server that change no time and no memory here, for SGLang and for KTransformers, which
 * is started by it. From python/sglang/srt/server_args.py of August 2026.
 */
#ifndef SIM_ENGINE_SGLANG_IGNORED_H
#define SIM_ENGINE_SGLANG_IGNORED_H

#include "sim/engine/engine_table.h"

#define SGLANG_IGNORED \
	{"tokenizer-mode", true}, {"skip-tokenizer-init", false}, {"revision", true}, {"model-impl", true}, \
	{"is-embedding", false}, {"enable-multimodal", false}, {"model-loader-extra-config", true}, {"skip-server-warmup", false}, \
	{"warmups", true}, {"nccl-port", true}, {"enable-fp32-lm-head", false}, {"quantization-param-path", true}, \
	{"max-queued-requests", true}, {"max-total-tokens", true}, {"max-prefill-tokens", true}, {"schedule-policy", true}, \
	{"schedule-conservativeness", true}, {"enable-priority-scheduling", false}, {"swa-full-tokens-ratio", true}, \
	{"disable-hybrid-swa-memory", false}, {"radix-eviction-policy", true}, {"device", true}, {"stream-interval", true}, \
	{"watchdog-timeout", true}, {"dist-timeout", true}, {"download-dir", true}, {"base-gpu-id", true}, {"gpu-id-step", true}, \
	{"sleep-on-idle", false}, {"log-level-http", true}, {"log-requests", false}, {"log-requests-level", true}, \
	{"log-requests-format", true}, {"show-time-cost", false}, {"enable-metrics", false}, \
	{"enable-request-time-stats-logging", false}, {"decode-log-interval", true}, {"crash-dump-folder", true}, \
	{"enable-trace", false}, {"otlp-traces-endpoint", true}, {"enable-cache-report", false}, {"admin-api-key", true}, \
	{"completion-template", true}, {"hf-chat-template-name", true}, {"tool-server", true}, {"sampling-defaults", true}, \
	{"json-model-override-args", true}, {"preferred-sampling-params", true}, {"file-storage-path", true}, \
	{"sampling-backend", true}, {"grammar-backend", true}, {"mm-attention-backend", true}, \
	{"prefill-attention-backend", true}, {"decode-attention-backend", true}, {"fp8-gemm-backend", true}, \
	{"moe-runner-backend", true}, {"enable-flashinfer-mla", false}, {"disable-overlap-schedule", false}, \
	{"disable-overlap", false}, {"enable-mixed-chunk", false}, {"enable-p2p-check", false}, \
	{"disable-shared-experts-fusion", false}, {"cuda-graph-max-bs", true}, {"cuda-graph-bs", ENGINE_VALUES}, \
	{"disable-cuda-graph-padding", false}, {"disable-outlines-disk-cache", false}, {"enable-nan-detection", false}, \
	{"triton-attention-num-kv-splits", true}, {"num-continuous-decode-steps", true}, {"enable-memory-saver", false}, \
	{"delete-ckpt-after-loading", false}, {"weight-loader-disable-mmap", false}, {"load-balance-method", true}, \
	{"hicache-storage-backend", true}, {"hicache-storage-prefetch-policy", true}, \
	{"hicache-storage-backend-extra-config", true}, {"enable-dp-lm-head", false}, {"collect-tokens-histogram", false}, \
	{"dp", ENGINE_NOT_MODELLED_VALUE}, {"dp-size", ENGINE_NOT_MODELLED_VALUE}, \
	{"data-parallel-size", ENGINE_NOT_MODELLED_VALUE}, {"pp-size", ENGINE_NOT_MODELLED_VALUE}, \
	{"pipeline-parallel-size", ENGINE_NOT_MODELLED_VALUE}, {"ep", ENGINE_NOT_MODELLED_VALUE}, \
	{"ep-size", ENGINE_NOT_MODELLED_VALUE}, {"expert-parallel-size", ENGINE_NOT_MODELLED_VALUE}, \
	{"enable-ep-moe", ENGINE_NOT_MODELLED}, {"enable-dp-attention", ENGINE_NOT_MODELLED}, \
	{"moe-a2a-backend", ENGINE_NOT_MODELLED_VALUE}, {"deepep-mode", ENGINE_NOT_MODELLED_VALUE}, \
	{"enable-deepep-moe", ENGINE_NOT_MODELLED}, {"enable-eplb", ENGINE_NOT_MODELLED}, \
	{"init-expert-location", ENGINE_NOT_MODELLED_VALUE}, {"enable-two-batch-overlap", ENGINE_NOT_MODELLED}, \
	{"enable-torch-compile", ENGINE_NOT_MODELLED}, {"torch-compile-max-bs", true}, \
	{"enable-piecewise-cuda-graph", ENGINE_NOT_MODELLED}, {"dist-init-addr", ENGINE_NOT_MODELLED_VALUE}, \
	{"nccl-init-addr", ENGINE_NOT_MODELLED_VALUE}, {"nnodes", ENGINE_NOT_MODELLED_VALUE}, \
	{"node-rank", ENGINE_NOT_MODELLED_VALUE}, {"speculative-algorithm", ENGINE_NOT_MODELLED_VALUE}, \
	{"speculative-draft-model-path", ENGINE_NOT_MODELLED_VALUE}, {"speculative-draft", ENGINE_NOT_MODELLED_VALUE}, \
	{"speculative-num-steps", true}, {"speculative-eagle-topk", true}, {"speculative-num-draft-tokens", true}, \
	{"speculative-token-map", true}, {"enable-lora", ENGINE_NOT_MODELLED}, \
	{"lora-paths", ENGINE_NOT_MODELLED | ENGINE_VALUES}, {"lora-backend", true}, {"max-loras-per-batch", true}, \
	{"max-lora-rank", true}, {"disaggregation-mode", ENGINE_NOT_MODELLED_VALUE}

#endif
