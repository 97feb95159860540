/*
 * stand_in.h - what the files of the stand-in share.
 *
 *	calls.cc   every call of the runtime: errors as CUDA keeps them, failures on request, the state of devices
 *	heap.cc    memory of GPUs and pinned memory: who may touch it, and what was touched beside it
 *	queue.cc   streams are threads; each operation has a begin and an end on a clock of its stream
 *	fibers.cc  blocks of threads
 *
 * Time: an operation begins when it was given and the one before it on its stream has ended, and lasts as long as speeds.def
 * says. Its thread does it at once, or later when the machine is busy; who waits for it, or asks for it, learns of it no sooner
 * than its end, and events mark ends, not when a thread got round to them. So little of the machine's noise is in what is
 * measured. What takes a processor longer than its time, even without others, lasts as long as it really took. Copies over a
 * link keep to the real clock, for how fast they go depends on what else goes on.
 */
#ifndef TESTS_CUDA_STAND_IN_H
#define TESTS_CUDA_STAND_IN_H

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace stand_in {

struct speeds {
#define SPEED(name, value) static constexpr double name = value;
#include "tests/cuda/speeds.def"
#undef SPEED
};

/* From the environment. */
struct settings {
	int devices;           /* STAND_IN_DEVICES=1 */
	uint64_t memory_bytes; /* STAND_IN_MEMORY=25 (MiB), of each, of which a context takes 9 */
	double faster;         /* STAND_IN_FASTER=1: everything, so many times */
	const char *fail;      /* STAND_IN_FAIL: see calls.cc */
};
const settings &set();

inline double now_s()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double cost_s(double seconds)
{
	return seconds / set().faster;
}

/* Until this time. */
void hold(double until_s);

/* A program that does what it must not, but can go on: said at once, and the exit status is 97. */
void complain(const std::string &what);

/* ---- heap.cc ---- */

enum place { PAGEABLE, PINNED, ON_DEVICE };

struct whereabouts {
	place where;
	int device;
	const char *begin;
	uint64_t bytes;
};

/* A thread that does a device's work while there is one of these: others must not touch a device's memory. */
struct device_access {
	int before;

	device_access();
	~device_access();
	device_access(const device_access &) = delete;
	device_access &operator=(const device_access &) = delete;
};

char *take(place where, int device, uint64_t bytes);
/* False: it is not there. */
bool give_back(place where, void *p);
/* False: the bytes begin in memory that was taken and go on behind its end, or it was given back. */
bool find(const void *p, uint64_t bytes, whereabouts *at);
uint64_t taken_bytes(int device);
/* Complains of what was not given back. */
void look_for_leaks();

/* ---- fibers.cc ---- */

struct kernel {
	dim3 grid, block;
	std::function<void()> thread;
};

/* Returns when it ends. */
double run_kernel(const kernel &k, int device, double begin_s);
int kernel_device(); /* of the one that this thread runs */

/* ---- queue.cc ---- */

/* A moment in a stream. */
struct moment {
	std::atomic<bool> reached{false};
	double at_s = 0;

	bool passed() const { return reached.load(std::memory_order_acquire) && now_s() >= at_s; }
	void wait();
	void reach(double s);
};

/* An operation: from when it may begin to when it ends. */
typedef std::function<double(double begin_s)> operation;

void open_device(int device); /* its link */
stand_in_stream *open_stream(int device);
void close_stream(stand_in_stream *s);
int device_of(const stand_in_stream *s);
bool is_open(const stand_in_stream *s);
/* NULL: the device's default stream; or the one of this thread. */
stand_in_stream *stream_of(cudaStream_t s, int device);
/* An error while it captures. */
cudaError_t give(stand_in_stream *s, operation fn, double given_s = now_s());
cudaError_t give_kernel(stand_in_stream *s, kernel k);
cudaError_t begin_capture(stand_in_stream *s);
cudaError_t end_capture(stand_in_stream *s, std::vector<kernel> *kernels);
cudaError_t give_graph(stand_in_stream *s, const std::vector<kernel> &kernels);
cudaError_t wait_for(stand_in_stream *s);
bool is_idle(stand_in_stream *s);
/* All streams of a device, closed ones too. */
void wait_for_device(int device);
/* Ends them all; complains of streams that were not given back. */
void close_streams();

/* The bytes must be there. */
cudaError_t copy(stand_in_stream *s, char *to, whereabouts to_at, const char *from, whereabouts from_at, uint64_t bytes);

/* ---- calls.cc ---- */

bool reaches(int device, int peer); /* peer access is enabled */

} /* namespace stand_in */

#endif
