/*
 * gpu.h - what every file here that calls CUDA needs: calls that are checked, the kernels, devices in words.
 */
#ifndef HW_CUDA_GPU_H
#define HW_CUDA_GPU_H

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "hw/cuda/backend.h"

/* Throws a failure that says what could not be done and CUDA's reason. */
void must(cudaError_t rc, const char *what);

/* The same, but for a result that is an answer and no failure: then false. CUDA remembers it as one, and a launch that asks for
   the last error would find it there. */
bool must_unless(cudaError_t rc, cudaError_t but, const char *what);

/* On the current device; given back at their end. */
struct gpu_stream {
	cudaStream_t stream = nullptr;

	gpu_stream() { must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream"); }
	~gpu_stream() { cudaStreamDestroy(stream); }
	gpu_stream(const gpu_stream &) = delete;
	gpu_stream &operator=(const gpu_stream &) = delete;
	operator cudaStream_t() const { return stream; }
};

struct gpu_event {
	cudaEvent_t event = nullptr;

	gpu_event() { must(cudaEventCreate(&event), "make an event"); }
	~gpu_event() { cudaEventDestroy(event); }
	gpu_event(const gpu_event &) = delete;
	gpu_event &operator=(const gpu_event &) = delete;
	operator cudaEvent_t() const { return event; }
	void record(cudaStream_t s) const { must(cudaEventRecord(event, s), "record an event"); }
};

/* Both have passed. */
double gpu_seconds(cudaEvent_t begin, cudaEvent_t end);

/* How many there are; throws "no CUDA device", with the reason, when there is none. */
int gpu_count();

/* ---- kernels; all return at once, on the current device ---- */

/* kernel_work, latency launching included when launch_s is what a launch takes. loaded counts bytes; sink is never written.
   Both in the device's memory. */
struct gpu_reader {
	int multiprocessors = 0;
	int blocks_tensor = 0, blocks_fp32 = 0; /* that run at once on one of them */
	double launch_s = 0;

	/* Has it work until its clocks are up, then measures launch_s, on a stream of this device, which must be idle and current. */
	void open(int device, cudaStream_t stream);
	void launch(cudaStream_t stream, const kernel_work &w, unsigned long long *loaded, unsigned *sink) const;
	/* As many as take this GPU so long or up to twice as long, with launching and waiting. */
	double flops_of(cudaStream_t stream, double seconds, bool fp32) const;
};

void gpu_empty(cudaStream_t stream);
/* Keeps the stream busy so long, so that what is queued behind begins at once. */
void gpu_spin(cudaStream_t stream, double seconds);
/* bytes: a multiple of 8. */
void gpu_fill(cudaStream_t stream, char *p, uint64_t bytes, uint64_t salt, uint64_t first);
/* Adds up words; *sum is set to 0 before. */
void gpu_checksum(cudaStream_t stream, const char *p, uint64_t bytes, unsigned long long *sum);

#endif
