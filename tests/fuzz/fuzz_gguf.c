/*
 * fuzz_gguf.c - the beginning of a GGUF file -> header, all its values, model.
 *
 * The first four bytes are how many bytes of data the file has behind what is given, in units of 4 KiB, so
 * that tensors need not be there for their descriptions to be taken. They are zero, as in a file with a hole,
 * but limited to what memory holds.
 */
#include <string.h>

#include "models/kvcache.h"
#include "models/read_gguf.h"

#define MAX_HOLE (1 << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk_values(struct gguf *g)
{
	struct gguf_scalar s;
	struct gguf_walk w;
	struct err err = {0};

	for (size_t i = 0; i < g->n_values; i++) {
		uint64_t n = 0;
		int rc;

		if (gguf_find(g, g->values[i].key) != &g->values[i])
			BUG("a key is not found");
		gguf_walk(&w, g, &g->values[i]);
		while ((rc = gguf_next(&w, &s, &err)) > 0)
			n++;
		if (rc || n != g->values[i].n)
			BUG("a value was taken, but not again");
	}
}

static void use_model(const struct model *m, struct arena *a)
{
	/* a file may be of vectors alone, which cost no FLOPs */
	if (!(model_flops_per_token(m, 4096) >= 0) || m->params_active > m->params_total || !m->n_layer)
		BUG("a model of nothing");
	kvcache_bytes(m, 1000, 3, KVCACHE_SAME(quant_find("q8_0")));
	model_activation_bytes(m, 512, 1, 2);
	model_expert_bytes(&m->layers[m->n_layer - 1]);
	model_canonical(m, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char file[MAX_HOLE + (1 << 20)];
	struct arena arena;
	struct err err = {0};
	struct model *m;
	struct gguf g;
	uint32_t hole;

	if (size < 4 || size > 1 << 20)
		return 0;
	memcpy(&hole, data, 4);
	hole = hole % (MAX_HOLE / 4096) * 4096;
	data += 4;
	size -= 4;
	memcpy(file, data, size);
	memset(file + size, 0, hole);
	arena_init(&arena, NULL, NULL);
	if (!gguf_open_memory(file, size + hole, "fuzz", &arena, &g, &err)) {
		walk_values(&g);
		if (!read_gguf_open(&g, NULL, &m, &err))
			use_model(m, &arena);
		else if (err.code == ERR_NONE || !err.msg[0])
			BUG("failed without a message");
		if (!read_gguf_open(&g, "q4_0", &m, &err))
			use_model(m, &arena);
	} else if (err.code == ERR_NONE || !err.msg[0]) {
		BUG("failed without a message");
	}
	/* what is kept of a file is within a small factor of its size */
	if (arena.total_bytes > (UINT64_C(64) << 20) + 64 * (uint64_t)(size + hole))
		BUG("%zu bytes for a file of %zu", arena.total_bytes, size + hole);
	arena_release(&arena);
	return 0;
}
