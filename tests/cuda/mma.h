/*
 * mma.h - products of 16 x 16 tiles by the 32 threads of a warp, each of which holds eight elements in a row of its own.
 */
#ifndef TESTS_CUDA_MMA_H
#define TESTS_CUDA_MMA_H

#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* Of a warp, which must all call it; all[i] is what thread i gave. One of them runs fn, then all go on. */
void stand_in_meet(void *mine, void (*fn)(void **all));
unsigned stand_in_lane();
/* Memory for tiles begins at multiples of 32 bytes, their rows at multiples of 16. */
void stand_in_tile(const void *p, size_t row_bytes);

namespace nvcuda::wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major };

template <class use, int m, int n, int k, class T, class layout = void> struct fragment {
	static_assert(m == 16 && n == 16 && k == 16);
	static const int num_elements = 8;
	T x[8];
};

inline float number_of(float x) { return x; }
inline float number_of(half x) { return __half2float(x); }

/* By all with one value, for which thread holds which element is not said. */
template <class use, class T, class layout, class V> void fill_fragment(fragment<use, 16, 16, 16, T, layout> &f, V value)
{
	for (T &x : f.x)
		x = value;
	float mine = number_of(value);
	stand_in_meet(&mine, [](void **all) {
		for (int i = 1; i < 32; i++)
			if (*(float *)all[i] != *(float *)all[0])
				stand_in_wrong("the threads of a warp fill a fragment with different values");
	});
}

template <class use, class T, class layout> void load_matrix_sync(fragment<use, 16, 16, 16, T, layout> &f, const T *p, unsigned row)
{
	stand_in_tile(p, row * sizeof(T));
	p += stand_in_lane() / 2 * (uint64_t)row + stand_in_lane() % 2 * 8;
	for (int i = 0; i < 8; i++)
		f.x[i] = p[i];
}

template <class T> void store_matrix_sync(T *p, const fragment<accumulator, 16, 16, 16, T> &f, unsigned row, layout_t)
{
	stand_in_tile(p, row * sizeof(T));
	p += stand_in_lane() / 2 * (uint64_t)row + stand_in_lane() % 2 * 8;
	for (int i = 0; i < 8; i++)
		p[i] = f.x[i];
}

typedef fragment<matrix_a, 16, 16, 16, half, row_major> tile_a;
typedef fragment<matrix_b, 16, 16, 16, half, col_major> tile_b;
typedef fragment<accumulator, 16, 16, 16, float> tile_sum;

struct multiplication {
	tile_sum *d;
	const tile_a *a;
	const tile_b *b;
	const tile_sum *c;
};

/* Row i of a and column i of b are with the threads 2 i and 2 i + 1. */
STAND_IN_OWN inline void multiply_tiles(void **all)
{
	float a[16][16], b[16][16], d[16][16];

	for (int lane = 0; lane < 32; lane++) {
		const multiplication &m = *(const multiplication *)all[lane];
		for (int i = 0; i < 8; i++) {
			a[lane / 2][lane % 2 * 8 + i] = __half2float(m.a->x[i]);
			b[lane % 2 * 8 + i][lane / 2] = __half2float(m.b->x[i]);
			d[lane / 2][lane % 2 * 8 + i] = m.c->x[i];
		}
	}
	for (int i = 0; i < 16; i++)
		for (int k = 0; k < 16; k++)
			for (int j = 0; j < 16; j++)
				d[i][j] += a[i][k] * b[k][j];
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 8; i++)
			((const multiplication *)all[lane])->d->x[i] = d[lane / 2][lane % 2 * 8 + i];
	stand_in_done.tensor_flops += 2.0 * 16 * 16 * 16;
}

inline void mma_sync(tile_sum &d, const tile_a &a, const tile_b &b, const tile_sum &c)
{
	multiplication mine = {&d, &a, &b, &c};

	stand_in_meet(&mine, multiply_tiles);
}

} /* namespace nvcuda::wmma */

#endif
