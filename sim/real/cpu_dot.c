#include "sim/real/cpu_dot.h"

#include <string.h>

#define ROW_CHUNKS (CPU_DOT_ROW / KERNEL_CHUNK)

bool cpu_dot_init(struct cpu_dot *d, const char *type, struct arena *a)
{
	enum kernel_level level = kernel_best_level();
	struct kernel_tables *tables;
	void *inputs;
	int i = 0;

	while (i < KERNEL_TYPE_N && strcmp(kernel_format[i].name, type) != 0)
		i++;
	if (i == KERNEL_TYPE_N)
		return false;
	*d = (struct cpu_dot){
		.type = (enum kernel_type)i,
		.row_bytes = ROW_CHUNKS * kernel_format[i].chunk_bytes,
		.one = kernel_dot((enum kernel_type)i, level, 1),
		.many = kernel_dot((enum kernel_type)i, level, KERNEL_COLUMNS),
		.stride_bytes = ROW_CHUNKS * kernel_format[i].input_bytes,
	};
	d->tables = tables = arena_new(a, struct kernel_tables);
	kernel_tables_init(tables);
	d->inputs = inputs = arena_alloc_array(a, KERNEL_COLUMNS, d->stride_bytes);
	kernel_fill_inputs(d->type, (size_t)ROW_CHUNKS * KERNEL_COLUMNS, 1, inputs);
	return true;
}

double cpu_dot_flops_byte(const struct cpu_dot *d)
{
	return 2.0 * CPU_DOT_ROW / (double)d->row_bytes;
}

float cpu_dot(const struct cpu_dot *d, const void *weights, size_t len, uint64_t columns, const atomic_bool *stop)
{
	size_t chunk_bytes = kernel_format[d->type].chunk_bytes;
	float out[KERNEL_COLUMNS] = {0}, sum = 0;

	for (size_t at = 0; at < len && !atomic_load(stop); at += d->row_bytes) {
		const char *row = (const char *)weights + at;
		size_t n_chunks = (len - at < d->row_bytes ? len - at : d->row_bytes) / chunk_bytes;
		uint64_t left = columns;
		for (; left >= KERNEL_COLUMNS; left -= KERNEL_COLUMNS) {
			d->many(d->tables, n_chunks, row, d->inputs, d->stride_bytes, out);
			sum += out[0];
		}
		for (; left > 0; left--) {
			d->one(d->tables, n_chunks, row, d->inputs, d->stride_bytes, out);
			sum += out[0];
		}
	}
	return sum;
}
