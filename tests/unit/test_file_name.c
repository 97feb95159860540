#include "models/file_name.h"

#include "tests/test.h"

static struct arena arena;

static const struct {
	const char *name, *model, *quant;
} names[] = {
	{"/data/UD-Q4_K_XL/DeepSeek-V3-0324-UD-Q4_K_XL-00001-of-00008.gguf", "deepseek-v3-0324", "ud-q4_k_xl"},
	{"models/llama-2-13b-chat.Q4_K_M.gguf", "llama-2-13b-chat", "q4_k_m"},
	{"F:\\llm\\Qwen3-30B-A3B-Q5_K_M.gguf", "qwen3-30b-a3b", "q5_k_m"},
	{"Qwen_Qwen3-0.6B-IQ4_NL.gguf", "qwen3-0.6b", "iq4_nl"},
	{"Qwen/Qwen3-30B-A3B-GPTQ-Int4", "qwen/qwen3-30b-a3b", "gptq-int4-g128"},
	{"/mnt/srv/Qwen2.5-32B-Instruct-AWQ/", "qwen2.5-32b-instruct", "awq-int4-g128"},
	{"ubergarm/DeepSeek-R1-0528-GGUF/DeepSeek-R1-0528-IQ4_K_R4-00001-of-00010.gguf", "deepseek-r1-0528", "custom-iq4_k_r4"},
	{"DeepSeek-V2-Lite-Chat.i1-Q4_K_M.gguf", "deepseek-v2-lite-chat", "q4_k_m"},
	{"/mnt/models/llama3.1-8b-instruct-exl3-4.00bpw", "llama3.1-8b", "exl3-4bpw"},
	{"/mnt/models/Llama-3.1-8B-Instruct-exl3-3.75bpw-h6", "llama-3.1-8b-instruct", "exl3-3.75bpw"},
	{"unsloth/gpt-oss-120b-F16.gguf", "gpt-oss-120b", "f16"},
	{"mistralai/Mistral-7B-v0.1", "mistralai/mistral-7b-v0.1", NULL},
	/* Whose size is in the name is another model. */
	{"DeepSeek-R1-Distill-Qwen-33B-Q4_K_M.gguf", NULL, "q4_k_m"},
	{"ggml-model-q4_0.gguf", NULL, "q4_0"},
	{"/", NULL, NULL},
	{".gguf", NULL, NULL},
	{"-", NULL, NULL},
	{"bpw", NULL, NULL},
	{"", NULL, NULL},
};

START_TEST(what_names_say)
{
	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct err err = {0};
		struct file_name f;

		assert_ok(file_name_read(names[i].name, &arena, &f, &err), err);
		ck_assert_msg(!f.model == !names[i].model && (!f.model || !strcmp(f.model, names[i].model)), "'%s': model '%s'",
			names[i].name, f.model ? f.model : "none");
		ck_assert_msg(!f.quant == !names[i].quant && (!f.quant || !strcmp(f.quant, names[i].quant)), "'%s': quant '%s'",
			names[i].name, f.quant ? f.quant : "none");
	}
	arena_release(&arena);
}
END_TEST

/* Looked up as none: each of its endings would be, in the square of its length. */
START_TEST(what_no_file_can_be_called)
{
	char name[100000 + sizeof("-q4_k_m")];
	struct err err = {0};
	struct file_name f;

	arena_init(&arena, NULL, NULL);
	memset(name, 'a', sizeof(name));
	memcpy(name + sizeof(name) - sizeof("-q4_k_m"), "-q4_k_m", sizeof("-q4_k_m"));
	assert_ok(file_name_read(name, &arena, &f, &err), err);
	ck_assert_ptr_null(f.model);
	ck_assert_ptr_null(f.quant);
	ck_assert_str_eq(f.said, name);
	assert_ok(file_name_read(name + sizeof(name) - 1 - 255, &arena, &f, &err), err);
	ck_assert_str_eq(f.quant, "q4_k_m");
	arena_release(&arena);
}
END_TEST

TEST_MAIN("file_name", what_names_say, what_no_file_can_be_called)
