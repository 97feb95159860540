/*
 * fuzz_config.c - text of a config.json -> model, and everything that is computed from a model.
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I. … tests/fuzz/fuzz_config.c models/x.c base/x.c
 *	./fuzz_config tests/fuzz/corpus/config
 *
 * The first byte chooses the quant; the rest is the text.
 */
#include "models/kvcache.h"
#include "models/read_hf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const quants[] = {
		NULL, "q4_k", "iq3_s", "q8_0", "f8_e4m3", "q4_k_m", "nvfp4", "i8"};
	struct arena arena;
	struct err err = {0};
	struct model *m;

	if (!size)
		return 0;
	arena_init(&arena, NULL, NULL);
	if (!read_hf_text((const char *)data + 1, size - 1, "fuzz", quants[data[0] % ARRAY_LEN(quants)],
		    &arena, &m, &err)) {
		double flops = model_flops_per_token(m, 4096);

		if (!(flops > 0) || !m->params_total || m->params_active > m->params_total ||
			!m->weights_bytes)
			BUG("a model of nothing");
		kvcache_bytes(m, 1000, 3, KVCACHE_SAME(quant_find("q8_0")));
		model_activation_bytes(m, 512, 1, 2);
		model_expert_bytes(&m->layers[m->n_layer - 1]);
		model_canonical(m, &arena);
	} else if (err.code == ERR_NONE || !err.msg[0]) {
		BUG("failed without a message");
	}
	arena_release(&arena);
	return 0;
}
