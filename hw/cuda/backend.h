/*
 * backend.h - what the executor asks of the hardware: memory, streams, events. Two provide it: the GPUs of this machine
 * (cuda_backend.cu), and threads that stand for them (host_backend.cc), on which all the rest can be tested anywhere.
 *
 * A stream does what it is given in order and returns at once. Events are numbered by the caller and are used once a run.
 */
#ifndef HW_CUDA_BACKEND_H
#define HW_CUDA_BACKEND_H

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

static const int HOST = -1; /* in place of a device */

/* Reads, as a matrix product does: every byte once, and so much arithmetic spread over them. */
struct kernel_work {
	const char *base;          /* a buffer, padded to a multiple of 16 bytes */
	uint64_t size, at, bytes;  /* its padded size; beyond its end: round it again. 0 bytes: arithmetic alone */
	double flops;
	bool fp32;                 /* else on tensor cores */
	double latency_s;          /* that passes on the device first, launching included */
	uint32_t op;               /* for moved() */
};

struct backend {
	virtual ~backend() {}
	virtual std::string name() const = 0;
	virtual int devices() const = 0;
	virtual uint64_t memory_available(int device) = 0;
	/* HOST memory is pinned or pageable. Freed with the backend. */
	virtual char *take(int device, bool pinned, uint64_t bytes) = 0;
	/* Whole words of op_pattern(salt, i), i from `first` on; returns when they are there. */
	virtual void fill(int device, char *p, uint64_t bytes, uint64_t salt, uint64_t first) = 0;
	/* Between any two places; returns when it is done. */
	virtual void copy_now(char *to, const char *from, uint64_t bytes) = 0;

	virtual int open_stream(int device) = 0;
	/* From idle. event_stream: the stream on which each event will be marked; -1: it will not. Returns the time on the host's
	   clock from which seconds() count. */
	virtual double begin(const std::vector<int> &event_stream) = 0;
	virtual void copy(int stream, char *to, const char *from, uint64_t bytes) = 0;
	virtual void kernel(int stream, const kernel_work &w) = 0;
	virtual void mark(int stream, uint32_t event) = 0;
	virtual void after(int stream, uint32_t event) = 0; /* one that is marked */
	virtual bool passed(uint32_t event) = 0;
	virtual double seconds(uint32_t event) = 0;         /* from begin(); it has passed */
	/* Work that is left need not be done any more: another run will not come. */
	virtual void abandon() = 0;
	/* Until all streams are idle. */
	virtual void end() = 0;
	/* Bytes that the kernel of this operation, whose event has the same number, really loaded. */
	virtual uint64_t moved(uint32_t op) = 0;
};

std::unique_ptr<backend> open_host_backend();
std::unique_ptr<backend> open_cuda_backend();

inline double clock_now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* Word i of a buffer: different everywhere, so that a copy from the wrong place shows. */
#ifdef __CUDACC__
__host__ __device__
#endif
inline uint64_t op_pattern(uint64_t salt, uint64_t i)
{
	uint64_t z = (salt << 44 ^ i) * 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	return z ^ z >> 27;
}

#endif
