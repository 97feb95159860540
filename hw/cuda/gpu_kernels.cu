#include "hw/cuda/gpu.h"

#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <cmath>

#include "hw/cuda/failure.h"

static const int THREADS = 256, WARPS = THREADS / 32;
/* Vectors of 16 bytes that a warp loads before it looks at any: four a thread are in flight. */
static const uint64_t VECTORS_EACH = 4, VECTORS = 32 * VECTORS_EACH;
/* Independent chains of arithmetic, and the FLOPs of one round of a warp through them. */
static const int FMA_CHAINS = 8, MMA_CHAINS = 2;
static const double FMA_ROUND = 2.0 * 32 * FMA_CHAINS, MMA_ROUND = 2.0 * 16 * 16 * 16 * MMA_CHAINS;
static const double FEWEST_FLOPS = 1e6;
static const int LAUNCHES = 1000;
/* An idle GPU takes some tenths of a second of work to raise the clocks of processor, memory and link. */
static const double WARM_S = 0.5, WARM_LAUNCH_S = 2e-3;

/* ---- failures ---- */

static std::string version_text(int version)
{
	return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/* What can be done, where that is known. */
static std::string advice(cudaError_t rc)
{
	int driver = 0;

	switch (rc) {
	case cudaErrorInsufficientDriver:
	case cudaErrorUnsupportedPtxVersion:
	case cudaErrorCallRequiresNewerDriver:
		if (cudaDriverGetVersion(&driver) != cudaSuccess || !driver)
			return "; no driver of NVIDIA's can be loaded (libcuda.so.1; in a container: was it given the GPU?)";
		return "; the driver is for CUDA " + version_text(driver) + ", this program was built with " + version_text(CUDART_VERSION) +
			": take a newer driver, or build with a toolkit that is no newer than the driver";
	case cudaErrorNoKernelImageForDevice:
		return "; this program was built for other GPUs: make cuda CUDA_ARCHS=90 for one of compute capability 9.0";
	case cudaErrorDevicesUnavailable:
		return "; another program has the GPU to itself; CUDA_VISIBLE_DEVICES=1,2 would leave out the first";
	default:
		return "";
	}
}

void must(cudaError_t rc, const char *what)
{
	if (rc != cudaSuccess)
		throw failure(EXIT_FAILED, std::string("cannot ") + what + ": " + cudaGetErrorString(rc) + advice(rc));
}

bool must_unless(cudaError_t rc, cudaError_t but, const char *what)
{
	if (rc == but)
		cudaGetLastError();
	else
		must(rc, what);
	return rc == cudaSuccess;
}

double gpu_seconds(cudaEvent_t begin, cudaEvent_t end)
{
	float ms;

	must(cudaEventElapsedTime(&ms, begin, end), "read the time between events");
	return ms * 1e-3;
}

int gpu_count()
{
	int n = 0;
	cudaError_t rc = cudaGetDeviceCount(&n);

	if (rc != cudaSuccess)
		throw failure(EXIT_FAILED, std::string("no CUDA device: ") + cudaGetErrorString(rc) + advice(rc));
	if (n == 0)
		throw failure(EXIT_FAILED, "no CUDA device: the driver finds none");
	return n;
}

/* ---- reading ---- */

static __device__ uint64_t device_ns()
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

static __device__ void pass(uint64_t ns)
{
	uint64_t begin = device_ns();

	while (ns && device_ns() - begin < ns)
		__nanosleep(100);
}

struct arithmetic_fp32 {
	float x[FMA_CHAINS];

	__device__ explicit arithmetic_fp32(unsigned seed)
	{
		for (int i = 0; i < FMA_CHAINS; i++)
			x[i] = (float)(seed + i);
	}

	__device__ void round()
	{
		for (int i = 0; i < FMA_CHAINS; i++)
			x[i] = fmaf(x[i], 0.5f, 1.5f);
	}

	__device__ float result() const
	{
		float sum = 0;
		for (int i = 0; i < FMA_CHAINS; i++)
			sum += x[i];
		return sum;
	}
};

struct arithmetic_tensor {
	nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> a;
	nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, half, nvcuda::wmma::col_major> b;
	nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c[MMA_CHAINS];

	__device__ explicit arithmetic_tensor(unsigned seed)
	{
		nvcuda::wmma::fill_fragment(a, __float2half((float)(seed & 3)));
		nvcuda::wmma::fill_fragment(b, __float2half(0.25f));
		for (int i = 0; i < MMA_CHAINS; i++)
			nvcuda::wmma::fill_fragment(c[i], (float)i);
	}

	__device__ void round()
	{
		for (int i = 0; i < MMA_CHAINS; i++)
			nvcuda::wmma::mma_sync(c[i], a, b, c[i]);
	}

	__device__ float result() const
	{
		float sum = 0;
		for (int i = 0; i < MMA_CHAINS; i++)
			for (int k = 0; k < c[i].num_elements; k++)
				sum += c[i].x[k];
		return sum;
	}
};

struct read_args {
	const uint4 *base;
	uint64_t size, at, n;       /* vectors */
	uint64_t turns;             /* of a warp, over all warps */
	uint64_t rounds_a_turn;     /* of arithmetic, times 2^32 */
	uint64_t latency_ns;
	unsigned long long *loaded; /* bytes */
	unsigned *sink;
};

/* A turn: the warp loads its vectors, then computes. Turns are dealt to warps in order, so that all of them together go
   through memory from front to back. */
template <class arithmetic> static __global__ void __launch_bounds__(THREADS) read_kernel(read_args r)
{
	__shared__ unsigned long long counted;
	uint64_t warps = (uint64_t)gridDim.x * WARPS, credit = 0, mine = 0;
	unsigned lane = threadIdx.x % 32, sum = 0;
	bool wraps = r.at + r.n > r.size;
	/* The same for all of a warp: which of its threads holds what of a tile is not said. */
	arithmetic work(r.sink ? threadIdx.x / 32 : 0);

	if (threadIdx.x == 0) {
		counted = 0;
		pass(r.latency_ns);
	}
	__syncthreads();
	for (uint64_t turn = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32; turn < r.turns; turn += warps) {
		uint64_t first = turn * VECTORS + lane, from = r.at + first;
		uint4 v[VECTORS_EACH];
		/* A division a turn; a buffer, whole pages, is longer than one. */
		if (wraps)
			from %= r.size;
#pragma unroll
		for (uint64_t k = 0; k < VECTORS_EACH; k++) {
			uint64_t i = first + 32 * k, place = from + 32 * k;
			if (wraps && place >= r.size)
				place -= r.size;
			v[k] = i < r.n ? r.base[place] : make_uint4(0, 0, 0, 0);
			mine += i < r.n;
		}
#pragma unroll
		for (uint64_t k = 0; k < VECTORS_EACH; k++)
			sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
		/* The same for all of the warp, as tensor cores want it. */
		for (credit += r.rounds_a_turn; credit >> 32; credit -= (uint64_t)1 << 32)
			work.round();
	}
	atomicAdd(&counted, (unsigned long long)(mine * sizeof(uint4)));
	/* What the compiler must not know: that nobody wants the results. */
	if (r.n == UINT64_MAX)
		*r.sink = sum + __float_as_uint(work.result());
	__syncthreads();
	if (threadIdx.x == 0 && counted)
		atomicAdd(r.loaded, counted);
}

void gpu_reader::launch(cudaStream_t stream, const kernel_work &w, unsigned long long *loaded, unsigned *sink) const
{
	uint64_t most = (uint64_t)multiprocessors * (uint64_t)(w.fp32 ? blocks_fp32 : blocks_tensor);
	read_args r = {(const uint4 *)w.base, w.size / sizeof(uint4), w.at / sizeof(uint4),
		(w.bytes + sizeof(uint4) - 1) / sizeof(uint4), 0, 0, 0, loaded, sink};

	r.turns = (r.n + VECTORS - 1) / VECTORS;
	/* Much arithmetic on few bytes is for all. */
	if (w.flops > 0)
		r.turns = std::max(r.turns, most * WARPS);
	if (r.turns) {
		double rounds = w.flops / (w.fp32 ? FMA_ROUND : MMA_ROUND) / (double)r.turns;
		r.rounds_a_turn = (uint64_t)std::fmin(rounds * 4294967296.0, 9e18);
	}
	r.latency_ns = (uint64_t)std::fmax(0, (w.latency_s - launch_s) * 1e9);
	unsigned blocks = (unsigned)std::max<uint64_t>(1, std::min(most, (r.turns + WARPS - 1) / WARPS));
	if (w.fp32)
		read_kernel<arithmetic_fp32><<<blocks, THREADS, 0, stream>>>(r);
	else
		read_kernel<arithmetic_tensor><<<blocks, THREADS, 0, stream>>>(r);
	must(cudaGetLastError(), "launch a kernel that reads");
}

double gpu_reader::flops_of(cudaStream_t stream, double seconds, bool fp32) const
{
	double flops = FEWEST_FLOPS / 2, least_s;

	do {
		flops *= 2;
		least_s = INFINITY;
		/* The first one loads the program. */
		for (int i = 0; i < 2; i++) {
			double begin_s = clock_now();
			launch(stream, {nullptr, 0, 0, 0, flops, fp32, 0, 0}, nullptr, nullptr);
			must(cudaStreamSynchronize(stream), "run a kernel");
			least_s = std::fmin(least_s, clock_now() - begin_s);
		}
	} while (least_s < seconds);
	return flops;
}

void gpu_reader::open(int device, cudaStream_t stream)
{
	must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "count multiprocessors");
	must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_fp32, read_kernel<arithmetic_fp32>, THREADS, 0), "plan a kernel");
	must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_tensor, read_kernel<arithmetic_tensor>, THREADS, 0), "plan a kernel");
	double flops = flops_of(stream, WARM_LAUNCH_S, true);
	for (double begin_s = clock_now(); clock_now() - begin_s < WARM_S;) {
		launch(stream, {nullptr, 0, 0, 0, flops, true, 0, 0}, nullptr, nullptr);
		must(cudaStreamSynchronize(stream), "run a kernel");
	}
	gpu_event begin, end;
	/* The first ones load the program. */
	for (int round = 0; round < 2; round++) {
		begin.record(stream);
		for (int i = 0; i < LAUNCHES; i++)
			gpu_empty(stream);
		end.record(stream);
		must(cudaEventSynchronize(end), "launch empty kernels");
	}
	launch_s = gpu_seconds(begin, end) / LAUNCHES;
}

/* ---- small ones ---- */

static __global__ void empty_kernel() {}

void gpu_empty(cudaStream_t stream)
{
	empty_kernel<<<1, 1, 0, stream>>>();
	must(cudaGetLastError(), "launch an empty kernel");
}

static __global__ void spin_kernel(uint64_t ns)
{
	pass(ns);
}

void gpu_spin(cudaStream_t stream, double seconds)
{
	spin_kernel<<<1, 1, 0, stream>>>((uint64_t)(seconds * 1e9));
	must(cudaGetLastError(), "launch a kernel that waits");
}

static unsigned grid_of(uint64_t items)
{
	return (unsigned)std::max<uint64_t>(1, std::min<uint64_t>((items + THREADS - 1) / THREADS, 4096));
}

static __global__ void fill_kernel(uint64_t *p, uint64_t n, uint64_t salt, uint64_t first)
{
	uint64_t stride = (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
		p[i] = op_pattern(salt, first + i);
}

void gpu_fill(cudaStream_t stream, char *p, uint64_t bytes, uint64_t salt, uint64_t first)
{
	fill_kernel<<<grid_of(bytes / 8), THREADS, 0, stream>>>((uint64_t *)p, bytes / 8, salt, first);
	must(cudaGetLastError(), "launch a kernel that fills");
}

static __global__ void checksum_kernel(const uint64_t *p, uint64_t n, unsigned long long *sum)
{
	uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
	unsigned long long mine = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
		mine += p[i];
	atomicAdd(sum, mine);
}

void gpu_checksum(cudaStream_t stream, const char *p, uint64_t bytes, unsigned long long *sum)
{
	must(cudaMemsetAsync(sum, 0, sizeof(*sum), stream), "clear a sum");
	checksum_kernel<<<grid_of(bytes / 8), THREADS, 0, stream>>>((const uint64_t *)p, bytes / 8, sum);
	must(cudaGetLastError(), "launch a kernel that adds up");
}
