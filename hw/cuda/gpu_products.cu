/*
 * gpu_products.cu - matrix products by type: one row (GEMV, memory) and many (GEMM, arithmetic), by cuBLAS where its library
 * can be loaded, and by plain kernels. Elements of the result are compared with the CPU's.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <dlfcn.h>
#include <mma.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "hw/cuda/failure.h"
#include "hw/cuda/gpu_calibrate.h"

/* Inputs of the matrix of weights, and outputs but for one row: there it is larger, so that no cache holds it. Less where memory
   is short; never too few for a block of the kernel on tiles. */
static const int WIDTH = 8192, LEAST_WIDTH = 128;
static const uint64_t ONE_ROW_BYTES = (uint64_t)1 << 30;
static const int TILE = 16;
static const int CHECKED = 8; /* elements of each result */

/* ---- cuBLAS, by name ---- */

/* Of cublas_api.h, which has been so since CUDA 11. */
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, COMPUTE_32F = 68, COMPUTE_32I = 72, ALGO_DEFAULT = -1 };

struct cublas {
	void *library = nullptr, *handle = nullptr;
	int (*create)(void **);
	int (*destroy)(void *);
	int (*set_stream)(void *, cudaStream_t);
	int (*gemm)(void *, int, int, int, int, int, const void *, const void *, cudaDataType, int, const void *, cudaDataType,
		int, const void *, void *, cudaDataType, int, int, int);
	std::string why; /* there is none */

	template <class F> bool find(F *f, const char *name)
	{
		*f = (F)dlsym(library, name);
		if (!*f)
			why = std::string("its library has no ") + name;
		return *f != nullptr;
	}

	explicit cublas(cudaStream_t stream)
	{
		/* A toolkit's folder is not always one that is searched. */
		for (const char *dir : {"", "/usr/local/cuda/lib64/"})
			for (const char *name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"})
				if (!library)
					library = dlopen((std::string(dir) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
		if (!library)
			why = "no libcublas.so can be loaded";
		else if (find(&create, "cublasCreate_v2") && find(&destroy, "cublasDestroy_v2") &&
			find(&set_stream, "cublasSetStream_v2") && find(&gemm, "cublasGemmEx") &&
			(create(&handle) || set_stream(handle, stream)))
			why = "it does not start";
	}

	/* The library stays: unloading it under a live context is asking for trouble. */
	~cublas()
	{
		if (handle)
			destroy(handle);
	}
	cublas(const cublas &) = delete;
	cublas &operator=(const cublas &) = delete;
};

/* ---- types ---- */

struct type_fp32 { typedef float in, out; static const char *name() { return "fp32"; } static const int data = CUDA_R_32F, sum = CUDA_R_32F, compute = COMPUTE_32F; };
struct type_fp16 { typedef __half in, out; static const char *name() { return "fp16"; } static const int data = CUDA_R_16F, sum = CUDA_R_16F, compute = COMPUTE_32F; };
struct type_bf16 { typedef __nv_bfloat16 in, out; static const char *name() { return "bf16"; } static const int data = CUDA_R_16BF, sum = CUDA_R_16BF, compute = COMPUTE_32F; };
struct type_int8 { typedef signed char in; typedef int out; static const char *name() { return "int8"; } static const int data = CUDA_R_8I, sum = CUDA_R_32I, compute = COMPUTE_32I; };

template <class T> static __host__ __device__ float number(T x) { return (float)x; }
template <> __host__ __device__ float number(__half x) { return __half2float(x); }
template <> __host__ __device__ float number(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T> static __device__ T from_number(float x) { return (T)x; }
template <> __device__ __half from_number(float x) { return __float2half(x); }
template <> __device__ __nv_bfloat16 from_number(float x) { return __float2bfloat16(x); }

/* Small whole numbers, exact in every type, and so are the sums of one row of them in FP32. */
static __host__ __device__ float element(uint64_t i, unsigned salt)
{
	return (float)(op_pattern(salt, i) % 7) - 3;
}

template <class T> static __global__ void elements_kernel(T *p, uint64_t n, unsigned salt)
{
	uint64_t stride = (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
		p[i] = from_number<T>(element(i, salt));
}

template <class T> static void fill_elements(cudaStream_t s, char *p, uint64_t n, unsigned salt)
{
	elements_kernel<T><<<1024, 256, 0, s>>>((T *)p, n, salt);
	must(cudaGetLastError(), "launch a kernel that fills");
}

/* ---- plain kernels; weights (outputs, width), inputs (rows, width), results (rows, outputs), all row by row ---- */

template <class T> static __global__ void gemv_kernel(const typename T::in *w, const typename T::in *x, typename T::out *y, int width)
{
	const int each = 16 / sizeof(typename T::in);
	int row = (int)(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32), lane = (int)threadIdx.x % 32;
	const uint4 *a = (const uint4 *)(w + (uint64_t)row * (uint64_t)width), *b = (const uint4 *)x;
	float sum = 0;

	for (int i = lane; i < width / each; i += 32) {
		uint4 u = a[i], v = b[i];
		for (int k = 0; k < each; k++)
			sum += number(((const typename T::in *)&u)[k]) * number(((const typename T::in *)&v)[k]);
	}
	for (int d = 16; d; d /= 2)
		sum += __shfl_down_sync(0xffffffffu, sum, d);
	if (lane == 0)
		y[row] = from_number<typename T::out>(sum);
}

static __global__ void gemm_fp32_kernel(const float *w, const float *x, float *y, int width)
{
	__shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
	int i = (int)threadIdx.y, k = (int)threadIdx.x, row = (int)blockIdx.y * TILE + i, col = (int)blockIdx.x * TILE + k;
	float sum = 0;

	for (int at = 0; at < width; at += TILE) {
		a[i][k] = x[(uint64_t)row * width + at + k];
		b[i][k] = w[((uint64_t)blockIdx.x * TILE + i) * width + at + k];
		__syncthreads();
		for (int j = 0; j < TILE; j++)
			sum += a[i][j] * b[k][j];
		__syncthreads();
	}
	y[(uint64_t)row * width + col] = sum;
}

/* A warp a tile, operands from memory as they are. */
static __global__ void gemm_fp16_kernel(const half *w, const half *x, half *y, int width)
{
	using namespace nvcuda::wmma;
	uint64_t row = (uint64_t)blockIdx.y * TILE, col = ((uint64_t)blockIdx.x * blockDim.y + threadIdx.y) * TILE;
	fragment<matrix_a, TILE, TILE, TILE, half, row_major> a;
	fragment<matrix_b, TILE, TILE, TILE, half, col_major> b;
	fragment<accumulator, TILE, TILE, TILE, float> sum;
	fragment<accumulator, TILE, TILE, TILE, half> out;

	fill_fragment(sum, 0.0f);
	for (int at = 0; at < width; at += TILE) {
		load_matrix_sync(a, x + row * width + at, width);
		load_matrix_sync(b, w + col * width + at, width);
		mma_sync(sum, a, b, sum);
	}
	for (int i = 0; i < sum.num_elements; i++)
		out.x[i] = __float2half(sum.x[i]);
	store_matrix_sync(y + row * width + col, out, width, mem_row_major);
}

template <class T> static bool plain_gemm(cudaStream_t, const char *, const char *, char *, int, int)
{
	return false;
}

template <> bool plain_gemm<type_fp32>(cudaStream_t s, const char *w, const char *x, char *y, int rows, int width)
{
	gemm_fp32_kernel<<<dim3((unsigned)(width / TILE), (unsigned)(rows / TILE)), dim3(TILE, TILE), 0, s>>>((const float *)w, (const float *)x, (float *)y, width);
	return true;
}

template <> bool plain_gemm<type_fp16>(cudaStream_t s, const char *w, const char *x, char *y, int rows, int width)
{
	gemm_fp16_kernel<<<dim3((unsigned)(width / TILE / 8), (unsigned)(rows / TILE)), dim3(32, 8), 0, s>>>((const half *)w, (const half *)x, (half *)y, width);
	return true;
}

/* ---- measuring ---- */

template <class T> struct product {
	calibration &c;
	int rows, width, outputs;
	gpu_memory w, x, y;

	static uint64_t in_bytes(int n, int width) { return (uint64_t)n * (uint64_t)width * sizeof(typename T::in); }
	static uint64_t out_bytes(int n, int width) { return (uint64_t)n * (uint64_t)width * sizeof(typename T::out); }

	static int width_for(const calibration &c, int n)
	{
		int width = WIDTH;
		auto bytes = [&] { return in_bytes(width, width) + in_bytes(n, width) + out_bytes(n, width); };
		while (n > 1 && width > LEAST_WIDTH && c.room(bytes()) < bytes())
			width /= 2;
		return width;
	}

	product(calibration &cal, int n)
		: c(cal), rows(n), width(width_for(cal, n)), outputs(n > 1 ? width : (int)(cal.room(ONE_ROW_BYTES) / in_bytes(1, width))),
		  w(false, in_bytes(outputs, width)), x(false, in_bytes(n, width)), y(false, result_bytes())
	{
		fill_elements<typename T::in>(c.stream, w.p, (uint64_t)outputs * (uint64_t)width, 1);
		fill_elements<typename T::in>(c.stream, x.p, (uint64_t)rows * (uint64_t)width, 2);
		must(cudaStreamSynchronize(c.stream), "fill matrices");
	}

	uint64_t result_bytes() const { return out_bytes(rows, outputs); }

	/* Spread over the result. The type of the result rounds the sum. */
	std::string check() const
	{
		for (int i = 0; i < CHECKED; i++) {
			uint64_t row = (uint64_t)rows * (uint64_t)i / CHECKED, col = (uint64_t)outputs * (uint64_t)(2 * i + 1) / (2 * CHECKED);
			typename T::out got;
			double want = 0;
			must(cudaMemcpy(&got, y.p + (row * (uint64_t)outputs + col) * sizeof(got), sizeof(got), cudaMemcpyDefault), "read a result");
			for (uint64_t k = 0; k < (uint64_t)width; k++)
				want += (double)element(col * (uint64_t)width + k, 1) * element(row * (uint64_t)width + k, 2);
			if (!(std::fabs(number(got) - want) <= 0.01 * std::fabs(want) + 1)) {
				char text[80];
				std::snprintf(text, sizeof(text), "row %d, column %d is %g, not %g", (int)row, (int)col, (double)number(got), want);
				return text;
			}
		}
		return "";
	}

	template <class F> void time(const char *how, int repetitions, F fn)
	{
		gpu_sample s;
		s.part = rows == 1 ? "gemv" : "gemm";
		s.type = std::string(how) + " " + T::name();
		s.rows = (uint64_t)rows;
		s.bytes = in_bytes(outputs + rows, width) + result_bytes();
		s.flops = 2.0 * width * outputs * rows;
		must(cudaMemsetAsync(y.p, 0xff, result_bytes(), c.stream), "poison a result");
		c.time_queued(s, c.repetitions(repetitions), fn);
		s.fault = check();
		c.add(s);
	}

	void cublas_gemm(const cublas &b)
	{
		float one = 1, zero = 0;
		int ione = 1, izero = 0;
		bool whole = T::compute == COMPUTE_32I;
		/* Column by column, the result is (outputs, rows), of the transposed weights and the inputs. */
		auto fn = [&] {
			return b.gemm(b.handle, CUBLAS_OP_T, CUBLAS_OP_N, outputs, rows, width, whole ? (void *)&ione : (void *)&one, w.p,
				(cudaDataType)T::data, width, x.p, (cudaDataType)T::data, width, whole ? (void *)&izero : (void *)&zero, y.p,
				(cudaDataType)T::sum, outputs, T::compute, ALGO_DEFAULT);
		};
		int status = fn();
		if (status)
			return c.skip(rows == 1 ? "gemv" : "gemm", std::string("cuBLAS has none of ") + T::name() + " here: status " + std::to_string(status));
		time("cublas", 10, [&] {
			if (fn())
				throw failure(EXIT_FAILED, "cuBLAS fails at what it did before");
		});
	}
};

static bool has_type(const calibration &c, bool bf16)
{
	int major = 0;

	must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, c.device), "ask a GPU what it is");
	return !bf16 || major >= 8;
}

template <class T> static void gemv_of(calibration &c, const cublas &b)
{
	product<T> p(c, 1);

	p.time("plain", 10, [&] {
		gemv_kernel<T><<<(unsigned)p.outputs / 8, 256, 0, c.stream>>>((const typename T::in *)p.w.p, (const typename T::in *)p.x.p, (typename T::out *)p.y.p, p.width);
		must(cudaGetLastError(), "launch a product");
	});
	if (b.why.empty())
		p.cublas_gemm(b);
}

template <class T> static void gemm_of(calibration &c, const cublas &b, int rows, bool plain)
{
	product<T> p(c, rows);

	if (b.why.empty())
		p.cublas_gemm(b);
	if (plain)
		p.time("plain", 4, [&] {
			plain_gemm<T>(c.stream, p.w.p, p.x.p, p.y.p, rows, p.width);
			must(cudaGetLastError(), "launch a product");
		});
}

static void gemv(calibration &c)
{
	cublas b(c.stream);

	if (!b.why.empty())
		c.skip("gemv", "cuBLAS: " + b.why);
	gemv_of<type_fp32>(c, b);
	gemv_of<type_fp16>(c, b);
	if (has_type(c, true))
		gemv_of<type_bf16>(c, b);
	gemv_of<type_int8>(c, b);
}

/* Plain kernels are far slower: a few times at the smaller number of rows, to show that what the library does is right. */
static void gemm(calibration &c)
{
	cublas b(c.stream);

	if (!b.why.empty())
		c.skip("gemm", "cuBLAS: " + b.why);
	for (int rows : {512, 4096}) {
		gemm_of<type_fp32>(c, b, rows, rows == 512);
		gemm_of<type_fp16>(c, b, rows, rows == 512);
		if (has_type(c, true))
			gemm_of<type_bf16>(c, b, rows, false);
		gemm_of<type_int8>(c, b, rows, false);
	}
}

const calibration_part product_parts[] = {
	{"gemv", "weights times one row, by type, cuBLAS and plain", 3, 2, gemv},
	{"gemm", "weights times 512 and 4096 rows, by type", 8, 4, gemm},
	{nullptr, nullptr, 0, 0, nullptr},
};
