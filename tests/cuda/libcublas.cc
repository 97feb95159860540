/*
 * libcublas.cc - a library of that name which hw/cuda can load: what it looks for there, as the stand-in would do it. Finds the
 * stand-in in the program that loads it.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tests/cuda/stand_in.h"

#include <memory>
#include <mutex>
#include <vector>

using namespace stand_in;

enum { NO_SUCH_PRODUCT = 15, TRANSPOSED = 1, AS_IT_IS = 0, SUM_FP32 = 68, SUM_INT32 = 72 };

namespace {

struct product {
	int m, n, k, lda, ldb, ldc;
	cudaDataType type;
	const char *a, *b;
	char *c;
};

struct library {
	cudaStream_t stream = nullptr;
	std::mutex lock;
	/* What was multiplied last, and what came of it: the same once more is not worked out again. */
	std::vector<char> a, b, c;
};

} /* namespace */

static size_t bytes_of(cudaDataType type)
{
	return type == CUDA_R_8I ? 1 : type == CUDA_R_32F || type == CUDA_R_32I ? 4 : 2;
}

static void read_row(float *to, const char *from, int n, cudaDataType type)
{
	for (int i = 0; i < n; i++)
		switch (type) {
		case CUDA_R_32F: to[i] = ((const float *)from)[i]; break;
		case CUDA_R_16F: to[i] = __half2float(((const half *)from)[i]); break;
		case CUDA_R_16BF: to[i] = __bfloat162float(((const __nv_bfloat16 *)from)[i]); break;
		default: to[i] = ((const signed char *)from)[i];
		}
}

static void write_number(char *to, size_t i, float x, cudaDataType type)
{
	switch (type) {
	case CUDA_R_32F: ((float *)to)[i] = x; break;
	case CUDA_R_16F: ((half *)to)[i] = __float2half(x); break;
	case CUDA_R_16BF: ((__nv_bfloat16 *)to)[i] = __float2bfloat16(x); break;
	default: ((int *)to)[i] = (int)x;
	}
}

/* Columns of a and of b lie in memory one behind the other. */
static void multiply(const product &p)
{
	std::vector<float> a((size_t)p.m * (size_t)p.k), b((size_t)p.k);
	size_t each = bytes_of(p.type);

	for (int i = 0; i < p.m; i++)
		read_row(&a[(size_t)i * (size_t)p.k], p.a + (size_t)i * (size_t)p.lda * each, p.k, p.type);
	for (int j = 0; j < p.n; j++) {
		read_row(b.data(), p.b + (size_t)j * (size_t)p.ldb * each, p.k, p.type);
		for (int i = 0; i < p.m; i++) {
			const float *row = &a[(size_t)i * (size_t)p.k];
			float sum = 0;
			for (int l = 0; l < p.k; l++)
				sum += row[l] * b[(size_t)l];
			write_number(p.c, (size_t)j * (size_t)p.ldc + (size_t)i, sum, p.type);
		}
	}
}

static double seconds_of(const product &p)
{
	double flops = 2.0 * p.m * p.n * p.k, bytes = (double)bytes_of(p.type) * p.m * p.k;
	double rate = p.type == CUDA_R_32F ? speeds::gemm_fp32_flop_s : p.type == CUDA_R_16F ? speeds::gemm_fp16_flop_s
		: p.type == CUDA_R_16BF ? speeds::gemm_bf16_flop_s : speeds::gemm_int8_flop_s;

	if (p.n == 1)
		return bytes / speeds::gemv_bytes_s;
	return flops / rate / (p.n <= 512 ? speeds::gemm_few_rows_share : 1);
}

static void run(library &l, const product &p)
{
	std::lock_guard<std::mutex> held(l.lock);
	device_access access;
	size_t each = bytes_of(p.type), out = (p.type == CUDA_R_8I ? 4 : each) * (size_t)p.ldc * (size_t)p.n;
	size_t a = each * (size_t)p.lda * (size_t)p.m, b = each * (size_t)p.ldb * (size_t)p.n;

	if (l.a.size() != a || l.b.size() != b || l.c.size() != out || memcmp(l.a.data(), p.a, a) || memcmp(l.b.data(), p.b, b)) {
		l.a.assign(p.a, p.a + a);
		l.b.assign(p.b, p.b + b);
		multiply(p);
		l.c.assign(p.c, p.c + out);
	}
	memcpy(p.c, l.c.data(), out);
}

extern "C" {

int cublasCreate_v2(void **handle)
{
	*handle = new library;
	return 0;
}

int cublasDestroy_v2(void *handle)
{
	delete (library *)handle;
	return 0;
}

int cublasSetStream_v2(void *handle, cudaStream_t stream)
{
	((library *)handle)->stream = stream;
	return 0;
}

int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, cudaDataType atype, int lda,
	const void *b, cudaDataType btype, int ldb, const void *beta, void *c, cudaDataType ctype, int ldc, int compute, int)
{
	library *l = (library *)handle;
	bool whole = atype == CUDA_R_8I;
	product p = {m, n, k, lda, ldb, ldc, atype, (const char *)a, (const char *)b, (char *)c};
	whereabouts at;

	if (ta != TRANSPOSED || tb != AS_IT_IS || atype != btype || ctype != (whole ? CUDA_R_32I : atype) ||
		compute != (whole ? SUM_INT32 : SUM_FP32) || lda < k || ldb < k || ldc < m)
		return NO_SUCH_PRODUCT;
	if (whole ? *(const int *)alpha != 1 || *(const int *)beta : *(const float *)alpha != 1 || *(const float *)beta != 0)
		return NO_SUCH_PRODUCT;
	/* Whole numbers in fours. */
	if (whole && (lda % 4 || ldb % 4))
		return NO_SUCH_PRODUCT;
	size_t each = bytes_of(atype);
	if (!find(a, each * (size_t)lda * (size_t)m, &at) || at.where != ON_DEVICE || !find(b, each * (size_t)ldb * (size_t)n, &at) ||
		at.where != ON_DEVICE || !find(c, (whole ? 4 : each) * (size_t)ldc * (size_t)n, &at) || at.where != ON_DEVICE)
		complain("a product of matrices that are not there");
	return give(stream_of(l->stream, 0), [=](double begin_s) {
		run(*l, p);
		return begin_s + cost_s(speeds::launch_s + seconds_of(p));
	});
}

} /* extern "C" */
