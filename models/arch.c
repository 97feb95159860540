/*
 * arch.c - the table of architectures, and what they share: embedding, the order of a layer, output.
 *
 * Defaults are those of huggingface/transformers, src/transformers/models/NAME/configuration_NAME.py and
 * modeling_NAME.py (which projections are biased, which norms there are), names of tensors those of
 * ggml-org/llama.cpp, gguf-py/gguf/constants.py; families that GGUF does not know are named after its habits.
 */
#include "models/arch_hf.h"

#include <string.h>

/* clang-format off */
static const struct arch archs[] = {
	/* ---- dense ---- */
	{
		.name = "llama", .hf_type = "llama", .hf_class = "LlamaForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .ffn_bias_key = "mlp_bias",
	},
	{
		.name = "mistral", .hf_type = "mistral", .hf_class = "MistralForCausalLM",
		.window = ARCH_WINDOW_ALL,
	},
	{
		.name = "mistral3", .hf_type = "ministral3 mistral3", .hf_class = "Ministral3ForCausalLM",
		.window = ARCH_WINDOW_ALL,
	},
	{
		.name = "qwen2", .hf_type = "qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text",
		.hf_class = "Qwen2ForCausalLM",
		.bias = true,
		.window = ARCH_WINDOW_UPPER,
	},
	{
		.name = "qwen3", .hf_type = "qwen3 qwen3_vl_text", .hf_class = "Qwen3ForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .qk_norm = ARCH_QK_HEAD,
		.window = ARCH_WINDOW_UPPER,
	},
	{
		.name = "qwen", .hf_type = "qwen", .hf_class = "QWenLMHeadModel",
		.read = arch_read_qwen1, .fused_qkv = true, .bias = true,
	},
	{
		.name = "internlm2", .hf_type = "internlm2", .hf_class = "InternLM2ForCausalLM",
		.bias_key = "bias", .output_bias = true,
	},
	{
		.name = "baichuan", .hf_type = "baichuan",
		.hf_class = "BaichuanForCausalLM BaiChuanForCausalLM",
	},
	{
		.name = "minicpm", .hf_type = "minicpm", .hf_class = "MiniCPMForCausalLM",
		.tied = true, .moe = ARCH_MOE_MAY,
	},
	{
		.name = "smollm3", .hf_type = "smollm3", .hf_class = "SmolLM3ForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .ffn_bias_key = "mlp_bias",
		.tied = true, .window = ARCH_WINDOW_UPPER,
	},
	{
		.name = "granite", .hf_type = "granite", .hf_class = "GraniteForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .ffn_bias_key = "mlp_bias", .tied = true,
	},
	{
		.name = "exaone", .hf_type = "exaone", .hf_class = "ExaoneForCausalLM",
	},
	{
		.name = "exaone4", .hf_type = "exaone4", .hf_class = "Exaone4ForCausalLM",
		.norms = ARCH_NORMS_POST, .qk_norm = ARCH_QK_HEAD,
		.window = ARCH_WINDOW_PATTERN, .window_every = 4,
	},
	{
		.name = "seed_oss", .hf_type = "seed_oss", .hf_class = "SeedOssForCausalLM",
		.bias_key = "attention_bias", .bias = true,
	},
	{
		.name = "ernie4_5", .hf_type = "ernie4_5",
		.hf_class = "Ernie4_5ForCausalLM Ernie4_5_ForCausalLM",
		.bias_key = "use_bias", .output_bias = true, .ffn_bias_key = "use_bias", .tied = true,
	},
	{
		.name = "mimo", .hf_type = "mimo", .hf_class = "MiMoForCausalLM",
		.bias = true, .window = ARCH_WINDOW_UPPER, .draft = true,
	},
	{
		.name = "bitnet", .hf_type = "bitnet", .hf_class = "BitNetForCausalLM",
		.sub_norm = true, .tied = true,
	},
	{
		.name = "deci", .hf_type = "nemotron-nas deci", .hf_class = "DeciLMForCausalLM",
		.read = arch_read_deci, .bias_key = "attention_bias", .ffn_bias_key = "mlp_bias",
	},
	{
		.name = "nemotron", .hf_type = "nemotron", .hf_class = "NemotronForCausalLM",
		.bias_key = "attention_bias", .ffn_bias_key = "mlp_bias", .output_bias = true,
		.layer_norm = true, .plain_ffn = true,
	},
	{
		.name = "orion", .hf_type = "orion", .hf_class = "OrionForCausalLM",
		.layer_norm = true,
	},
	{
		.name = "stablelm", .hf_type = "stablelm stablelm_epoch", .hf_class = "StableLmForCausalLM",
		.bias_key = "use_qkv_bias", .layer_norm = true,
		.qk_norm = ARCH_QK_WIDTH, .qk_norm_key = "qk_layernorm",
	},
	{
		.name = "chatglm", .hf_type = "chatglm",
		.hf_class = "ChatGLMModel ChatGLMForConditionalGeneration",
		.fused_qkv = true, .fused_ffn = true, .bias_key = "add_qkv_bias",
		.ffn_bias_key = "add_bias_linear",
	},
	{
		.name = "glm4", .hf_type = "glm4 glm", .hf_class = "Glm4ForCausalLM",
		.norms = ARCH_NORMS_SANDWICH, .fused_ffn = true, .bias_key = "attention_bias",
	},
	{
		.name = "phi3", .hf_type = "phi3 phi4", .hf_class = "Phi3ForCausalLM",
		.fused_qkv = true, .fused_ffn = true, .window = ARCH_WINDOW_ALL,
	},
	{
		.name = "olmo", .hf_type = "olmo", .hf_class = "OlmoForCausalLM",
		.norms = ARCH_NORMS_NONE, .bias_key = "attention_bias",
	},
	{
		.name = "olmo2", .hf_type = "olmo2 olmo3", .hf_class = "Olmo2ForCausalLM Olmo3ForCausalLM",
		.norms = ARCH_NORMS_POST, .qk_norm = ARCH_QK_WIDTH, .bias_key = "attention_bias",
		.output_bias = true,
		.window = ARCH_WINDOW_PATTERN, .window_every = 4,
	},
	{
		.name = "gemma", .hf_type = "gemma", .hf_class = "GemmaForCausalLM",
		.tied = true,
	},
	{
		.name = "gemma2", .hf_type = "gemma2", .hf_class = "Gemma2ForCausalLM",
		.norms = ARCH_NORMS_SANDWICH, .tied = true,
		.window = ARCH_WINDOW_PATTERN, .window_every = 2,
	},
	{
		.name = "gemma3", .hf_type = "gemma3 gemma3_text", .hf_class = "Gemma3ForCausalLM",
		.norms = ARCH_NORMS_SANDWICH, .qk_norm = ARCH_QK_HEAD, .tied = true,
		.window = ARCH_WINDOW_PATTERN, .window_every = 6,
	},
	{
		.name = "gemma3n", .hf_type = "gemma3n gemma3n_text", .hf_class = "Gemma3nForCausalLM",
		.layer = arch_gemma3n_layer, .read = arch_read_gemma3n,
		.norms = ARCH_NORMS_SANDWICH, .qk_norm = ARCH_QK_HEAD, .tied = true,
		.window = ARCH_WINDOW_PATTERN, .window_every = 5,
	},
	{
		.name = "gemma4", .hf_type = "gemma4 gemma4_text", .hf_class = "Gemma4ForCausalLM",
		.layer = arch_gemma4_layer, .read = arch_read_gemma4,
		.norms = ARCH_NORMS_SANDWICH, .qk_norm = ARCH_QK_HEAD, .tied = true,
		.window = ARCH_WINDOW_PATTERN, .window_every = 6, .moe = ARCH_MOE_MAY,
	},
	/* ---- dense, of the older kind: LayerNorm, biases, up and down ---- */
	{
		/* not in GGUF */
		.name = "opt", .hf_type = "opt", .hf_class = "OPTForCausalLM",
		.bias_key = "enable_bias", .bias = true, .output_bias = true,
		.ffn_bias_key = "enable_bias", .ffn_bias = true,
		.tied = true, .layer_norm = true, .plain_ffn = true, .learned_position = true,
	},
	{
		.name = "bloom", .hf_type = "bloom", .hf_class = "BloomForCausalLM BloomModel",
		.bias = true, .output_bias = true, .ffn_bias = true, .fused_qkv = true,
		.tied = true, .layer_norm = true, .plain_ffn = true, .embed_norm = true,
	},
	{
		.name = "gpt2", .hf_type = "gpt2", .hf_class = "GPT2LMHeadModel",
		.read = arch_read_positions,
		.bias = true, .output_bias = true, .ffn_bias = true, .fused_qkv = true,
		.tied = true, .layer_norm = true, .plain_ffn = true,
	},
	{
		.name = "starcoder", .hf_type = "gpt_bigcode", .hf_class = "GPTBigCodeForCausalLM",
		.read = arch_read_positions,
		.bias = true, .output_bias = true, .ffn_bias = true, .fused_qkv = true,
		.tied = true, .layer_norm = true, .plain_ffn = true,
	},
	{
		.name = "starcoder2", .hf_type = "starcoder2", .hf_class = "Starcoder2ForCausalLM",
		.bias_key = "use_bias", .bias = true, .output_bias = true, .ffn_bias_key = "use_bias",
		.ffn_bias = true,
		.tied = true, .layer_norm = true, .plain_ffn = true, .window = ARCH_WINDOW_ALL,
	},
	{
		.name = "gptneox", .hf_type = "gpt_neox", .hf_class = "GPTNeoXForCausalLM",
		.bias_key = "attention_bias", .bias = true, .output_bias = true, .ffn_bias = true,
		.fused_qkv = true,
		.layer_norm = true, .plain_ffn = true,
	},
	{
		.name = "gptj", .hf_type = "gptj", .hf_class = "GPTJForCausalLM",
		.norms = ARCH_NORMS_PARALLEL, .ffn_bias = true, .layer_norm = true, .plain_ffn = true,
		.lm_head_bias = true,
	},
	{
		.name = "falcon", .hf_type = "falcon RefinedWeb RefinedWebModel",
		.hf_class = "FalconForCausalLM RWForCausalLM",
		.read = arch_read_falcon,
		.norms = ARCH_NORMS_PARALLEL, .bias_key = "bias", .output_bias = true, .ffn_bias_key = "bias",
		.fused_qkv = true, .layer_norm = true, .plain_ffn = true,
	},
	{
		.name = "mpt", .hf_type = "mpt", .hf_class = "MPTForCausalLM MptForCausalLM",
		.read = arch_read_mpt, .fused_qkv = true, .tied = true, .plain_ffn = true,
	},
	{
		.name = "phi2", .hf_type = "phi phi-msft", .hf_class = "PhiForCausalLM",
		.norms = ARCH_NORMS_PARALLEL, .bias = true, .output_bias = true, .ffn_bias = true,
		.fused_qkv = true,
		.layer_norm = true, .plain_ffn = true, .lm_head_bias = true,
	},
	{
		.name = "command-r", .hf_type = "cohere", .hf_class = "CohereForCausalLM",
		.norms = ARCH_NORMS_PARALLEL, .bias_key = "attention_bias", .output_bias = true, .tied = true,
		.qk_norm = ARCH_QK_WIDTH, .qk_norm_key = "use_qk_norm",
	},
	{
		.name = "cohere2", .hf_type = "cohere2", .hf_class = "Cohere2ForCausalLM",
		.norms = ARCH_NORMS_PARALLEL, .bias_key = "attention_bias", .output_bias = true, .tied = true,
		.window = ARCH_WINDOW_PATTERN, .window_every = 4,
	},
	/* ---- experts ---- */
	{
		.name = "mixtral", .hf_type = "mixtral", .hf_class = "MixtralForCausalLM",
		.window = ARCH_WINDOW_ALL, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "qwen2moe", .hf_type = "qwen2_moe", .hf_class = "Qwen2MoeForCausalLM",
		.bias_key = "qkv_bias", .bias = true,
		.window = ARCH_WINDOW_UPPER, .moe = ARCH_MOE_MUST, .shared_gate = true,
	},
	{
		.name = "qwen3moe", .hf_type = "qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text",
		.hf_class = "Qwen3MoeForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .qk_norm = ARCH_QK_HEAD,
		.window = ARCH_WINDOW_UPPER, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "gpt-oss", .hf_type = "gpt_oss", .hf_class = "GptOssForCausalLM",
		.bias_key = "attention_bias", .bias = true, .output_bias = true, .sinks = true,
		.ffn_norm = "post_attention_norm", .window = ARCH_WINDOW_PATTERN, .window_every = 2,
		.moe = ARCH_MOE_MUST, .router_linear_bias = true, .expert_bias = true,
	},
	{
		.name = "llama4", .hf_type = "llama4 llama4_text", .hf_class = "Llama4ForCausalLM",
		.read = arch_read_llama4, .bias_key = "attention_bias", .output_bias = true,
		.window = ARCH_WINDOW_CHUNK, .moe = ARCH_MOE_MAY,
	},
	{
		.name = "glm4moe", .hf_type = "glm4_moe glm4v_moe_text", .hf_class = "Glm4MoeForCausalLM",
		.bias_key = "attention_bias", .qk_norm = ARCH_QK_HEAD, .qk_norm_key = "use_qk_norm",
		.ffn_norm = "post_attention_norm", .moe = ARCH_MOE_MUST, .router_bias = true, .draft = true,
	},
	{
		.name = "minimax-m2", .hf_type = "minimax_m2", .hf_class = "MiniMaxM2ForCausalLM",
		.qk_norm = ARCH_QK_WIDTH, .moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		/* not in GGUF */
		.name = "minimax-m3", .hf_type = "minimax_m3 minimax_m3_text",
		.hf_class = "MiniMaxM3ForCausalLM",
		.read = arch_read_minimax, .qk_norm = ARCH_QK_HEAD, .moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		.name = "mimo2", .hf_type = "mimo_v2_flash mimo_v2", .hf_class = "MiMoV2FlashForCausalLM",
		.read = arch_read_mimo2, .bias_key = "attention_bias",
		.window = ARCH_WINDOW_PATTERN, .window_every = 6, .moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		.name = "step35", .hf_type = "step3p5 step3p7",
		.hf_class = "Step3p5ForCausalLM Step3p7FlashForCausalLM",
		.qk_norm = ARCH_QK_HEAD, .head_gate = true,
		.window = ARCH_WINDOW_PATTERN, .window_every = 4, .moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		.name = "laguna", .hf_type = "laguna", .hf_class = "LagunaForCausalLM",
		.read = arch_read_heads_per_layer, .qk_norm = ARCH_QK_HEAD, .head_gate = true,
		.window = ARCH_WINDOW_PATTERN, .window_every = 4, .moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		/* not in GGUF; the latent queries of Step-3 (arXiv 2507.19427) */
		.name = "step3", .hf_type = "step3_text step3_vl", .hf_class = "Step3TextForCausalLM",
		.read = arch_read_step3, .layer = arch_step3_layer, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "olmoe", .hf_type = "olmoe", .hf_class = "OlmoeForCausalLM",
		.qk_norm = ARCH_QK_WIDTH, .bias_key = "attention_bias", .output_bias = true,
		.moe = ARCH_MOE_MUST,
	},
	{
		.name = "granitemoe", .hf_type = "granitemoe granitemoeshared",
		.hf_class = "GraniteMoeForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .tied = true, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "phimoe", .hf_type = "phimoe grinmoe", .hf_class = "PhiMoEForCausalLM GRIN-MoE",
		.bias_key = "attention_bias", .bias = true, .output_bias = true, .layer_norm = true,
		.lm_head_bias = true, .window = ARCH_WINDOW_ALL, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "deepseek", .hf_type = "deepseek", .hf_class = "DeepseekForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "dots1", .hf_type = "dots1", .hf_class = "Dots1ForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .qk_norm = ARCH_QK_HEAD,
		.moe = ARCH_MOE_MUST,
		.router_bias = true,
	},
	{
		.name = "bailingmoe", .hf_type = "bailing_moe", .hf_class = "BailingMoeForCausalLM",
		.bias_key = "use_qkv_bias", .moe = ARCH_MOE_MUST,
	},
	{
		.name = "bailingmoe2", .hf_type = "bailing_moe_v2", .hf_class = "BailingMoeV2ForCausalLM",
		.bias_key = "use_qkv_bias", .fused_qkv = true, .qk_norm = ARCH_QK_HEAD,
		.moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		.name = "hunyuan-moe", .hf_type = "hunyuan_v1_moe hunyuan",
		.hf_class = "HunYuanMoEV1ForCausalLM",
		.bias_key = "attention_bias", .output_bias = true, .qk_norm = ARCH_QK_HEAD,
		.qk_norm_key = "use_qk_norm",
		.tied = true, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "ernie4_5-moe", .hf_type = "ernie4_5_moe", .hf_class = "Ernie4_5_MoeForCausalLM",
		.bias_key = "use_bias", .output_bias = true, .ffn_bias_key = "use_bias", .tied = true,
		.moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		.name = "grok", .hf_type = "grok grok-1",
		.hf_class = "Grok1ModelForCausalLM Grok1ForCausalLM",
		.norms = ARCH_NORMS_SANDWICH, .tied = true, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "dbrx", .hf_type = "dbrx", .hf_class = "DbrxForCausalLM",
		.fused_qkv = true, .ffn_norm = "attn_output_norm", .moe = ARCH_MOE_MUST,
	},
	{
		.name = "arctic", .hf_type = "arctic", .hf_class = "ArcticForCausalLM",
		.layer = arch_arctic_layer, .read = arch_read_arctic, .moe = ARCH_MOE_MUST,
	},
	{
		/* not in GGUF; all experts of a layer are slices of one feed-forward */
		.name = "llama_moe", .hf_type = "llama_moe", .hf_class = "LlamaMoEForCausalLM",
		.read = arch_read_llama_moe, .moe = ARCH_MOE_MUST,
	},
	{
		/* GGUF has the dense ones */
		.name = "xverse", .hf_type = "xverse xverse_moe", .hf_class = "XverseForCausalLM",
		.moe = ARCH_MOE_MAY,
	},
	/* ---- latent attention ---- */
	{
		.name = "deepseek2", .hf_type = "deepseek_v2 deepseek_v3 kimi_k2 youtu_llm",
		.hf_class = "DeepseekV2ForCausalLM DeepseekV3ForCausalLM",
		.mixer = ARCH_MLA, .read = arch_read_mla, .bias_key = "attention_bias", .output_bias = true,
		.moe = ARCH_MOE_MAY,
	},
	{
		/* GGUF: deepseek2 */
		.name = "glm4_moe_lite", .hf_type = "glm4_moe_lite", .hf_class = "Glm4MoeLiteForCausalLM",
		.mixer = ARCH_MLA, .read = arch_read_mla, .bias_key = "attention_bias", .output_bias = true,
		.moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		.name = "deepseek32", .hf_type = "deepseek_v32", .hf_class = "DeepseekV32ForCausalLM",
		.mixer = ARCH_MLA, .read = arch_read_mla, .bias_key = "attention_bias", .output_bias = true,
		.moe = ARCH_MOE_MUST,
	},
	{
		.name = "glm-dsa", .hf_type = "glm_moe_dsa", .hf_class = "GlmMoeDsaForCausalLM",
		.mixer = ARCH_MLA, .read = arch_read_mla, .bias_key = "attention_bias", .output_bias = true,
		.moe = ARCH_MOE_MUST, .draft = true,
	},
	{
		.name = "deepseek4", .hf_type = "deepseek_v4", .hf_class = "DeepseekV4ForCausalLM",
		.mixer = ARCH_CSA, .read = arch_read_csa, .moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		.name = "deepseek41", .hf_type = "deepseek_v41_text deepseek_v41",
		.hf_class = "DeepseekV41ForCausalLM",
		.mixer = ARCH_CSA, .read = arch_read_csa, .moe = ARCH_MOE_MUST, .router_bias = true,
	},
	{
		.name = "glm5-next", .hf_type = "glm5_next_text glm5_next", .hf_class = "Glm5NextForCausalLM",
		.mixer = ARCH_MLA, .read = arch_read_kimi_linear, .moe = ARCH_MOE_MUST, .router_bias = true,
		.draft = true,
	},
	{
		.name = "kimi-linear", .hf_type = "kimi_linear", .hf_class = "KimiLinearForCausalLM",
		.mixer = ARCH_MLA, .read = arch_read_kimi_linear, .moe = ARCH_MOE_MUST, .router_bias = true,
	},
	/* ---- state beside, or in place of, attention ---- */
	{
		.name = "qwen3next", .hf_type = "qwen3_next", .hf_class = "Qwen3NextForCausalLM",
		.read = arch_read_delta, .q_gate = true, .qk_norm = ARCH_QK_HEAD,
		.ffn_norm = "post_attention_norm",
		.moe = ARCH_MOE_MUST, .shared_gate = true,
	},
	{
		.name = "qwen35", .hf_type = "qwen3_5 qwen3_5_text", .hf_class = "Qwen3_5ForCausalLM",
		.read = arch_read_delta, .q_gate = true, .qk_norm = ARCH_QK_HEAD,
		.ffn_norm = "post_attention_norm",
	},
	{
		.name = "qwen35moe", .hf_type = "qwen3_5_moe qwen3_5_moe_text",
		.hf_class = "Qwen3_5MoeForCausalLM",
		.read = arch_read_delta, .q_gate = true, .qk_norm = ARCH_QK_HEAD,
		.ffn_norm = "post_attention_norm",
		.moe = ARCH_MOE_MUST, .shared_gate = true,
	},
	{
		.name = "qwen4exp", .hf_type = "qwen4_exp qwen4_exp_text", .hf_class = "Qwen4ExpForCausalLM",
		.read = arch_read_delta, .q_gate = true, .qk_norm = ARCH_QK_HEAD, .norms = ARCH_NORMS_NONE,
		.moe = ARCH_MOE_MUST, .shared_gate = true, .draft = true,
	},
	{
		.name = "jamba", .hf_type = "jamba", .hf_class = "JambaForCausalLM",
		.read = arch_read_jamba, .moe = ARCH_MOE_MAY,
	},
	{
		.name = "mamba", .hf_type = "mamba falcon_mamba",
		.hf_class = "MambaForCausalLM FalconMambaForCausalLM",
		.mixer = ARCH_MAMBA, .read = arch_read_mamba, .tied = true,
	},
	{
		.name = "mamba2", .hf_type = "mamba2", .hf_class = "Mamba2ForCausalLM",
		.mixer = ARCH_MAMBA2, .read = arch_read_mamba, .tied = true,
	},
	{
		.name = "nemotron_h", .hf_type = "nemotron_h", .hf_class = "NemotronHForCausalLM",
		.layer = arch_block_layer, .read = arch_read_nemotron_h, .bias_key = "attention_bias",
		.output_bias = true,
		.ffn_bias_key = "mlp_bias", .plain_ffn = true, .ffn_norm = "attn_norm", .moe = ARCH_MOE_MAY,
		.router_bias = true,
	},
	{
		.name = "granitehybrid", .hf_type = "granitemoehybrid",
		.hf_class = "GraniteMoeHybridForCausalLM",
		.read = arch_read_granite_hybrid, .bias_key = "attention_bias", .output_bias = true,
		.tied = true,
		.moe = ARCH_MOE_MAY,
	},
	{
		/* not in GGUF */
		.name = "minimax-m1", .hf_type = "minimax_m1 minimax_text_01 minimax",
		.hf_class = "MiniMaxM1ForCausalLM MiniMaxText01ForCausalLM MiniMaxForCausalLM",
		.read = arch_read_minimax, .moe = ARCH_MOE_MUST,
	},
	{
		.name = "lfm2", .hf_type = "lfm2", .hf_class = "Lfm2ForCausalLM",
		.read = arch_read_lfm2, .qk_norm = ARCH_QK_HEAD, .tied = true,
	},
	{
		.name = "lfm2moe", .hf_type = "lfm2_moe", .hf_class = "Lfm2MoeForCausalLM",
		.read = arch_read_lfm2, .qk_norm = ARCH_QK_HEAD, .tied = true, .moe = ARCH_MOE_MUST,
		.router_bias = true,
	},
	/* ---- encoder and decoder ---- */
	{
		.name = "t5", .hf_type = "t5 mt5 umt5",
		.hf_class = "T5ForConditionalGeneration MT5ForConditionalGeneration",
		.layer = arch_seq2seq_layer, .read = arch_read_t5, .tied = true, .plain_ffn = true,
	},
	{
		/* not in GGUF */
		.name = "switch_transformers", .hf_type = "switch_transformers",
		.hf_class = "SwitchTransformersForConditionalGeneration",
		.layer = arch_seq2seq_layer, .read = arch_read_t5, .tied = true, .plain_ffn = true,
		.moe = ARCH_MOE_MUST,
	},
	{
		/* not in GGUF */
		.name = "nllb-moe", .hf_type = "nllb-moe",
		.hf_class = "NllbMoeForConditionalGeneration NllbMoeModel",
		.layer = arch_seq2seq_layer, .read = arch_read_t5, .tied = true, .layer_norm = true,
		.plain_ffn = true,
		.bias = true, .output_bias = true, .ffn_bias = true, .expert_bias = true,
		.moe = ARCH_MOE_MUST,
	},
};
/* clang-format on */

const struct arch *arch_at(size_t i)
{
	return i < ARRAY_LEN(archs) ? &archs[i] : NULL;
}

const struct arch *arch_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(archs); i++) {
		if (!strcmp(archs[i].name, name))
			return &archs[i];
	}
	BUG("no architecture '%s'", name);
}

void arch_norm(
	struct build *b, const struct arch_config *c, enum model_group g, const char *name, uint64_t width)
{
	char full[64];

	if (c->arch->norms == ARCH_NORMS_NONE)
		return;
	snprintf(full, sizeof(full), "%s.weight", name);
	build_add(b, g, full, width, 1, 1);
	if (!c->arch->layer_norm)
		return;
	snprintf(full, sizeof(full), "%s.bias", name);
	build_add(b, g, full, width, 1, 1);
}

void arch_linear(struct build *b, enum model_group g, const char *name, uint64_t in, uint64_t out, bool bias)
{
	char full[64];

	snprintf(full, sizeof(full), "%s.weight", name);
	build_add(b, g, full, in, out, 1);
	if (!bias)
		return;
	snprintf(full, sizeof(full), "%s.bias", name);
	build_add(b, g, full, out, 1, 1);
}

/* Several residual streams in place of one. DeepSeek-V4 and GLM-5.3 (arXiv 2512.24880) mix them by one matrix
   of streams * hidden to streams weights in, streams out and streams^2 across; Qwen4 gates them at a low
   rank. */
void arch_streams(struct build *b, const struct arch_config *c, enum model_group g, const char *part)
{
	uint64_t n = c->streams, all = n * c->hidden, mix = (2 + n) * n;
	char name[32];

	if (!n)
		return;
	if (c->stream_rank) {
		snprintf(name, sizeof(name), "hc_%s_norm.weight", part);
		build_add(b, g, name, all, 1, 1);
		snprintf(name, sizeof(name), "hc_%s_down.weight", part);
		build_add(b, g, name, all, c->stream_rank, 1);
		snprintf(name, sizeof(name), "hc_%s_up.weight", part);
		build_add(b, g, name, c->stream_rank, all, 1);
		snprintf(name, sizeof(name), "hc_%s_inject.weight", part);
		build_add(b, g, name, all, n, 1);
		return;
	}
	snprintf(name, sizeof(name), "hc_%s_fn.weight", part);
	build_add(b, g, name, all, mix, 1);
	snprintf(name, sizeof(name), "hc_%s_base.weight", part);
	build_add(b, g, name, mix, 1, 1);
	snprintf(name, sizeof(name), "hc_%s_scale.weight", part);
	build_add(b, g, name, 3, 1, 1);
}

/* What joins an MTP head to the model: the embedding of the next token and the hidden state, each normed,
   into one; embedding and output are the model's own. */
static void draft_inputs(struct build *b, const struct arch_config *c)
{
	arch_linear(b, MODEL_ATTN, "nextn.eh_proj", 2 * (uint64_t)c->hidden, c->hidden, false);
	build_add(b, MODEL_ATTN, "nextn.enorm.weight", c->hidden, 1, 1);
	build_add(b, MODEL_ATTN, "nextn.hnorm.weight",
		(c->stream_rank ? c->streams : 1) * (uint64_t)c->hidden, 1, 1);
	if (!c->stream_rank)
		build_add(b, MODEL_ATTN, "nextn.shared_head_norm.weight", c->hidden, 1, 1);
}

void arch_layer(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	bool moe = shape->n_expert != 0;

	build_layer(b, layer)->draft = shape->draft;
	/* CSA has its streams ahead of its norm; glm5-next gives an MTP head none */
	if (shape->mixer != ARCH_CSA && (!shape->draft || c->stream_rank))
		arch_streams(b, c, MODEL_ATTN, "attn");
	switch (shape->mixer) {
	case ARCH_ATTENTION:
		arch_attention(b, c, layer);
		break;
	case ARCH_MLA:
		arch_mla(b, c, layer);
		break;
	case ARCH_CSA:
		arch_csa(b, c, layer);
		break;
	case ARCH_LINEAR:
		arch_norm(b, c, MODEL_ATTN, "attn_norm", c->hidden);
		arch_linear(b, MODEL_ATTN, "attn_output", c->hidden, c->hidden, false);
		break;
	case ARCH_NO_MIXER:
		break;
	default:
		arch_ssm(b, c, layer);
	}
	if (shape->draft)
		draft_inputs(b, c);
	if (!shape->draft || c->stream_rank)
		arch_streams(b, c, moe ? MODEL_ROUTER : MODEL_FFN, "ffn");
	if (moe)
		arch_moe(b, c, layer);
	else if (shape->ffn)
		arch_ffn(b, c, layer);
}

/* Tables that are looked up beside the embedding. */
static void extra_inputs(struct build *b, const struct arch_config *c)
{
	arch_gemma_inputs(b, c);
	if (c->table_width && c->table_rows[0] && c->table_layer[0] == MODEL_NO_LAYER)
		build_add(b, MODEL_EMBED, "per_layer_token_embd.weight", c->table_width, c->table_rows[0], 1);
}

static void output(struct build *b, const struct arch_config *c)
{
	if (c->streams && c->stream_rank) {
		uint64_t all = (uint64_t)c->streams * c->hidden;

		build_add(b, MODEL_OUTPUT, "output_hc_norm.weight", all, 1, 1);
		build_add(b, MODEL_OUTPUT, "output_hc_down.weight", all, c->stream_rank, 1);
		build_add(b, MODEL_OUTPUT, "output_hc_up.weight", c->stream_rank, all, 1);
	} else if (c->streams && c->hash_layers) {
		build_add(b, MODEL_OUTPUT, "output_hc_fn.weight", (uint64_t)c->streams * c->hidden,
			c->streams, 1);
		build_add(b, MODEL_OUTPUT, "output_hc_base.weight", c->streams, 1, 1);
		build_add(b, MODEL_OUTPUT, "output_hc_scale.weight", 1, 1, 1);
	}
	if (c->final_norm && c->n_encoder) {
		arch_norm(b, c, MODEL_OUTPUT, "enc.output_norm", c->hidden);
		arch_norm(b, c, MODEL_OUTPUT, "dec.output_norm", c->hidden);
	} else if (c->final_norm) {
		arch_norm(b, c, MODEL_OUTPUT, "output_norm", c->hidden);
	}
	if (c->embed_width != c->hidden)
		build_add(b, MODEL_OUTPUT, "output_proj.weight", c->hidden, c->embed_width, 1);
	build_add(b, MODEL_OUTPUT, "output.weight", c->embed_width, c->vocab, 1)->shared_storage = c->tied;
	if (c->lm_head_bias)
		build_add(b, MODEL_OUTPUT, "output.bias", c->vocab, 1, 1);
}

void arch_build(struct build *b, const struct arch_config *c)
{
	struct model *m = b->m;

	m->architecture = c->arch->name;
	m->hidden = c->hidden;
	m->vocab = c->vocab;
	m->context_max = c->context_max;
	m->tied_embeddings = c->tied;

	build_layer(b, MODEL_NO_LAYER);
	build_add(b, MODEL_EMBED, "token_embd.weight", c->embed_width, c->vocab, 1);
	if (c->n_position)
		build_add(b, MODEL_EMBED, "position_embd.weight", c->hidden, c->n_position, 1);
	if (c->embed_width != c->hidden)
		build_add(b, MODEL_EMBED, "token_embd_proj.weight", c->embed_width, c->hidden, 1);
	if (c->arch->embed_norm)
		arch_norm(b, c, MODEL_EMBED, "token_embd_norm", c->hidden);
	extra_inputs(b, c);
	for (uint32_t i = 0; i < c->n_layer; i++)
		(c->arch->layer ? c->arch->layer : arch_layer)(b, c, (int)i);
	build_layer(b, MODEL_NO_LAYER);
	output(b, c);
}
