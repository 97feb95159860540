/*
 * fuzz_safetensors.c - the JSON of a safetensors file or of an index, and names of tensors.
 *
 * Before the JSON are 4 bytes: how long the data behind it is; the first of them odd: it is an index.
 */
#include <string.h>

#include "models/hf_names.h"
#include "models/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tensors(const struct safetensors *st, struct arena *a)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < st->n_tensors; i++) {
		const struct safetensors_tensor *t = &st->tensors[i];
		struct hf_name name;

		if (t->begin > t->end || t->begin < st->data_at || t->end > st->size)
			BUG("tensor '%s' is outside of the file", t->name);
		sum += t->end - t->begin;
		hf_name(t->name, i & 1, a, &name);
		if (!name.other && (!name.rest || !*name.rest || name.layer < MODEL_NO_LAYER))
			BUG("'%s' has no name", t->name);
	}
	if (sum != st->size - st->data_at)
		BUG("the file is not covered");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct safetensors_index index;
	struct safetensors st;
	struct arena arena;
	struct err err = {0};
	unsigned char *file;
	uint32_t n_data;
	int rc;

	if (size < 4 || size > 1 << 20)
		return 0;
	memcpy(&n_data, data, 4);
	data += 4;
	size -= 4;
	arena_init(&arena, NULL, NULL);
	if (n_data & 1) {
		rc = safetensors_index_memory((const char *)data, size, "fuzz", &arena, &index, &err);
		if (!rc && (!index.n_files || !index.n_tensors))
			BUG("an index of nothing");
	} else {
		file = arena_alloc(&arena, size + 9);
		for (int i = 0; i < 8; i++)
			file[i] = (unsigned char)((uint64_t)size >> 8 * i);
		memcpy(file + 8, data, size);
		rc = safetensors_open_memory(
			file, size + 8, size + 8 + n_data / 2, "fuzz", &arena, &st, &err);
		if (!rc)
			check_tensors(&st, &arena);
	}
	if (rc && (err.code == ERR_NONE || !err.msg[0]))
		BUG("failed without a message");
	arena_release(&arena);
	return 0;
}
