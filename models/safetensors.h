/*
 * safetensors.h - the header of a safetensors file, and the index of one that is in parts.
 *
 *	N, 8 bytes │ N bytes of JSON: name -> dtype, shape, data_offsets │ data, never read
 *
 * (huggingface/safetensors, README.md.) The data must be covered without holes or overlaps, to the end of the
 * file. Messages end in "at byte N" of the file.
 */
#ifndef MODELS_SAFETENSORS_H
#define MODELS_SAFETENSORS_H

#include "base/arena.h"
#include "base/err.h"
#include "models/quant.h"

#define SAFETENSORS_MAX_DIMS 8

struct safetensors_tensor {
	const char *name;
	const struct quant_type *type;
	uint32_t n_dims;
	uint64_t dim[SAFETENSORS_MAX_DIMS]; /* as written: row length last */
	uint64_t elements;
	uint64_t begin, end; /* bytes of the file */
};

struct safetensors {
	const char *path;
	uint64_t size, data_at;
	struct safetensors_tensor *tensors; /* as in the header */
	size_t n_tensors;
};

int safetensors_open(const char *path, struct arena *a, struct safetensors *out, struct err *err);
/* The same from the beginning of a file (all of its header) of `size` bytes. */
int safetensors_open_memory(const void *bytes, size_t n, uint64_t size, const char *name, struct arena *a,
	struct safetensors *out, struct err *err);

/* model.safetensors.index.json */
struct safetensors_index {
	uint64_t total_size; /* bytes of all tensors; 0: it does not say */
	size_t n_tensors;
	const char **files; /* each once, in order of first mention */
	size_t n_files;
};

int safetensors_index(const char *path, struct arena *a, struct safetensors_index *out, struct err *err);
int safetensors_index_memory(const char *text, size_t len, const char *name, struct arena *a,
	struct safetensors_index *out, struct err *err);

#endif
