/*
 * cuda_runtime.h - what hw/cuda uses of CUDA's runtime and of its C++ for kernels, in plain C++ on threads and host memory:
 * -Itests/cuda has it found before a toolkit's. Values are those of CUDA 13.
 */
#ifndef TESTS_CUDA_CUDA_RUNTIME_H
#define TESTS_CUDA_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define CUDART_VERSION 13000

enum cudaError_t {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInvalidConfiguration = 9,
	cudaErrorInsufficientDriver = 35,
	cudaErrorCallRequiresNewerDriver = 36,
	cudaErrorDevicesUnavailable = 46,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorNoKernelImageForDevice = 209,
	cudaErrorPeerAccessUnsupported = 217,
	cudaErrorUnsupportedPtxVersion = 222,
	cudaErrorInvalidResourceHandle = 400,
	cudaErrorIllegalState = 401,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorLaunchOutOfResources = 701,
	cudaErrorPeerAccessAlreadyEnabled = 704,
	cudaErrorStreamCaptureUnsupported = 900,
	cudaErrorStreamCaptureInvalidated = 901,
	cudaErrorUnknown = 999,
};
enum cudaMemcpyKind {
	cudaMemcpyDefault = 4,
};
enum cudaDeviceAttr {
	cudaDevAttrClockRate = 13,
	cudaDevAttrMultiProcessorCount = 16,
	cudaDevAttrMemoryClockRate = 36,
	cudaDevAttrComputeCapabilityMajor = 75,
};
enum cudaStreamCaptureMode {
	cudaStreamCaptureModeThreadLocal = 1,
};
enum cudaDataType {
	CUDA_R_32F = 0,
	CUDA_R_16F = 2,
	CUDA_R_8I = 3,
	CUDA_R_32I = 10,
	CUDA_R_16BF = 14,
};

#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaStreamNonBlocking 0x01
#define cudaStreamPerThread ((cudaStream_t)0x2)

typedef struct stand_in_stream *cudaStream_t;
typedef struct stand_in_event *cudaEvent_t;
typedef struct stand_in_graph *cudaGraph_t;
typedef struct stand_in_graph *cudaGraphExec_t;

struct cudaDeviceProp {
	char name[256];
	int major, minor, multiProcessorCount, memoryBusWidth, asyncEngineCount, integrated, pageableMemoryAccess;
};

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);
cudaError_t cudaDeviceGetPCIBusId(char *text, int len, int device);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t rc);

cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMalloc(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* ---- kernels: a block's threads are fibers of one thread, its shared memory belongs to that thread ---- */

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __launch_bounds__(threads)

struct uint3 {
	unsigned x, y, z;
};

struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz) {}
};

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;

/* Plain accesses are not seen. Those of vectors are: they must be to memory that the kernel's GPU reaches, and are counted. */
struct stand_in_work {
	uint64_t device_bytes, host_bytes, peer_bytes;
	double fp32_flops, tensor_flops;
	uintptr_t stack, stack_bytes;         /* of the fiber: its own variables */
	uintptr_t memory, memory_bytes;       /* that was read last, and which count is its */
	uint64_t *memory_count;
};
extern constinit thread_local stand_in_work stand_in_done;

/* ThreadSanitizer takes fibers for threads: the counts are not theirs. */
#if defined(__SANITIZE_THREAD__)
#define STAND_IN_OWN __attribute__((no_sanitize_thread, noinline))
#else
#define STAND_IN_OWN
#endif

/* For kernels that cannot go on: says so and ends the program. */
[[noreturn]] void stand_in_wrong(const char *what);
void stand_in_load_elsewhere(const void *p, size_t bytes);

STAND_IN_OWN inline void stand_in_load(const void *p, size_t bytes)
{
	stand_in_work &d = stand_in_done;

	if ((uintptr_t)p - d.memory < d.memory_bytes)
		*d.memory_count += bytes;
	else if ((uintptr_t)p - d.stack >= d.stack_bytes)
		stand_in_load_elsewhere(p, bytes);
}

struct alignas(16) uint4 {
	unsigned x, y, z, w;

	uint4() = default;
	uint4(unsigned a, unsigned b, unsigned c, unsigned d) : x(a), y(b), z(c), w(d) {}
	uint4(const uint4 &o) { *this = o; }
	uint4 &operator=(const uint4 &o)
	{
		stand_in_load(&o, sizeof(o));
		x = o.x, y = o.y, z = o.z, w = o.w;
		return *this;
	}
};

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
	return uint4(x, y, z, w);
}

STAND_IN_OWN inline float stand_in_fmaf(float a, float b, float c)
{
	stand_in_done.fp32_flops += 2;
	return a * b + c;
}
#define fmaf stand_in_fmaf

inline unsigned __float_as_uint(float x)
{
	unsigned bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long x)
{
	return __atomic_fetch_add(p, x, __ATOMIC_RELAXED);
}

void __syncthreads();
float __shfl_down_sync(unsigned mask, float x, unsigned lanes);
void __nanosleep(unsigned ns);
uint64_t stand_in_globaltimer();

/* kernel<<<grid, block, shared, stream>>>(arguments) is made cuda_launch(kernel, grid, block, shared, stream)(arguments) by
   launches.sed. */
void stand_in_launch(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread);

template <class... P> auto cuda_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t, cudaStream_t stream)
{
	return [=](P... arguments) { stand_in_launch(grid, block, stream, [=] { kernel(arguments...); }); };
}

cudaError_t stand_in_occupancy(int *blocks);

template <class K> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, K, int, size_t)
{
	return stand_in_occupancy(blocks);
}

#endif
