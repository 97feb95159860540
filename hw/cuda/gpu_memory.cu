/*
 * gpu_memory.cu - the GPU's own memory, zero-copy reads of the host's, arithmetic alone, launches, and taking memory.
 */
#include <algorithm>

#include "hw/cuda/failure.h"
#include "hw/cuda/gpu_calibrate.h"

static const uint64_t READ_BYTES = (uint64_t)2 << 30, COPY_BYTES = (uint64_t)1 << 30, HOST_BYTES = (uint64_t)256 << 20;
static const uint64_t LAUNCHES = 1000;
static const double ARITHMETIC_S = 5e-3;

/* The executor's own kernel: what it loads is counted, which is the other way. */
static void time_reads(calibration &c, gpu_sample &s, const kernel_work &w)
{
	gpu_memory loaded(false, sizeof(unsigned long long)), sink(false, sizeof(unsigned));
	unsigned long long here = 0;

	must(cudaMemsetAsync(loaded.p, 0, sizeof(here), c.stream), "clear a counter");
	c.time_queued(s, c.repetitions(12),
		[&] { c.reader.launch(c.stream, w, (unsigned long long *)loaded.p, (unsigned *)sink.p); });
	must(cudaMemcpy(&here, loaded.p, sizeof(here), cudaMemcpyDefault), "read a counter");
	if (here != w.bytes * (WARM_UPS + s.seconds.size() + s.other_seconds.size()))
		s.fault = "the kernel loaded another number of bytes than it should";
	c.add(s);
}

static void memory(calibration &c)
{
	uint64_t bytes = c.room(READ_BYTES), half = c.room(COPY_BYTES) / 2;
	gpu_sample read, copy;

	read.part = "read";
	read.bytes = bytes;
	{
		gpu_memory from(false, bytes);
		gpu_fill(c.stream, from.p, bytes, 1, 0);
		time_reads(c, read, {from.p, bytes, 0, bytes, 0, true, 0, 0});
	}
	gpu_memory from(false, half), to(false, half);
	gpu_fill(c.stream, from.p, half, 2, 0);
	copy.part = "copy";
	copy.bytes = 2 * half; /* read and written */
	c.time_queued(copy, c.repetitions(12),
		[&] { must(cudaMemcpyAsync(to.p, from.p, half, cudaMemcpyDefault, c.stream), "copy"); });
	if (c.device_checksum(from.p, half) != c.device_checksum(to.p, half))
		copy.fault = "the checksums of the two ends differ";
	c.add(copy);
}

static void zero_copy(calibration &c)
{
	uint64_t bytes = c.room(HOST_BYTES);
	gpu_memory host(true, bytes);
	gpu_sample s;

	gpu_fill(c.stream, host.p, bytes, 4, 0);
	s.part = "zero_copy";
	s.bytes = bytes;
	time_reads(c, s, {host.p, bytes, 0, bytes, 0, true, 0, 0});
}

static void arithmetic(calibration &c)
{
	for (bool fp32 : {true, false}) {
		gpu_sample s;
		s.part = "arithmetic";
		s.type = fp32 ? "fp32" : "fp16";
		s.flops = c.reader.flops_of(c.stream, ARITHMETIC_S, fp32);
		time_reads(c, s, {nullptr, 0, 0, 0, s.flops, fp32, 0, 0});
	}
}

/* Empty kernels. */
struct launch_graph {
	cudaStream_t stream;
	bool capturing = false;
	cudaGraph_t captured = nullptr;
	cudaGraphExec_t made = nullptr;

	explicit launch_graph(cudaStream_t s) : stream(s) {}

	~launch_graph()
	{
		if (capturing)
			cudaStreamEndCapture(stream, &captured);
		if (made)
			cudaGraphExecDestroy(made);
		if (captured)
			cudaGraphDestroy(captured);
	}
	launch_graph(const launch_graph &) = delete;
	launch_graph &operator=(const launch_graph &) = delete;

	void make()
	{
		must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin a graph");
		capturing = true;
		for (uint64_t i = 0; i < LAUNCHES; i++)
			gpu_empty(stream);
		capturing = false;
		must(cudaStreamEndCapture(stream, &captured), "end a graph");
		must(cudaGraphInstantiate(&made, captured, 0), "make a graph");
	}
};

static void launch(calibration &c)
{
	gpu_sample stream, graph, sync;
	launch_graph kernels(c.stream);

	stream.part = "launch";
	stream.count = LAUNCHES;
	/* The queue holds fewer than these: what is timed is the host and the device together, as an engine has it. */
	c.time_waited(stream, c.repetitions(20), [&] {
		for (uint64_t i = 0; i < LAUNCHES; i++)
			gpu_empty(c.stream);
	});
	c.add(stream);

	kernels.make();
	graph.part = "graph_launch";
	graph.count = LAUNCHES;
	c.time_waited(graph, c.repetitions(20), [&] { must(cudaGraphLaunch(kernels.made, c.stream), "launch a graph"); });
	c.add(graph);

	sync.part = "sync";
	for (int i = 0; i < c.repetitions(200); i++) {
		double begin_s = clock_now();
		gpu_empty(c.stream);
		must(cudaStreamSynchronize(c.stream), "wait for a kernel");
		sync.seconds.push_back(clock_now() - begin_s);
	}
	c.add(sync);
}

static void alloc(calibration &c)
{
	for (uint64_t bytes = (uint64_t)1 << 20; bytes <= c.room((uint64_t)256 << 20); bytes *= 16) {
		gpu_sample s;
		s.part = "alloc";
		s.bytes = bytes;
		for (int i = 0; i < c.repetitions(40); i++) {
			void *p;
			double begin_s = clock_now();
			must(cudaMalloc(&p, bytes), "take memory of a GPU");
			must(cudaFree(p), "give back memory of a GPU");
			s.seconds.push_back(clock_now() - begin_s);
		}
		c.add(s);
	}
}

const calibration_part memory_parts[] = {
	{"memory", "reads and copies of the GPU's own memory", 1, 1, memory},
	{"zero_copy", "a kernel reads pinned host memory", 2, 1, zero_copy},
	{"arithmetic", "multiply-adds alone, FP32 and on tensor cores", 1, 1, arithmetic},
	{"launch", "kernels in a stream, in a graph, and waited for", 1, 1, launch},
	{"alloc", "cudaMalloc and cudaFree", 1, 1, alloc},
	{nullptr, nullptr, 0, 0, nullptr},
};
