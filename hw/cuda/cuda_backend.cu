/*
 * cuda_backend.cu - the GPUs of this machine. Memory comes from cudaMalloc and cudaHostAlloc, never managed; streams do not
 * wait for the default stream; the time of an event is taken from one at the begin of the run on the same device.
 */
#include "hw/cuda/gpu.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>

#include "hw/cuda/failure.h"
#include "hw/cuda/host_memory.h"

namespace {

/* What a context takes besides, and what rounding may. */
const uint64_t GPU_MARGIN = (uint64_t)256 << 20;
/* How often the two clocks are laid side by side; the tightest counts. */
const int CLOCK_TRIES = 10;

struct cuda_stream {
	int device;
	gpu_stream stream;

	explicit cuda_stream(int d) : device(d) {}
};

struct cuda_gpu {
	bool opened = false;
	std::optional<gpu_stream> stream; /* for filling */
	gpu_reader reader;
	std::optional<gpu_event> base;
	double base_s;                    /* when that was, on the host's clock */
	unsigned *sink;
	unsigned long long *loaded = nullptr; /* by operation */
	std::vector<unsigned long long> loaded_here;
	std::deque<gpu_event> pool;
};

struct cuda_backend : backend {
	std::vector<cuda_gpu> gpus;
	std::deque<cuda_stream> streams;
	std::vector<cudaEvent_t> event; /* of the run; NULL: the host's own operation */
	std::vector<int> event_device;
	std::vector<std::pair<int, char *>> memory;
	std::vector<std::pair<char *, uint64_t>> pageable;
	uint32_t n_events = 0;
	double begin_s = 0;

	static void use(int device) { must(cudaSetDevice(device), "use a GPU"); }

	static void reach(int device, int peer)
	{
		int can = 0;
		must(cudaDeviceCanAccessPeer(&can, device, peer), "ask for peers");
		use(device);
		if (can)
			must(cudaDeviceEnablePeerAccess(peer, 0), "reach another GPU");
	}

	/* Makes it current. Others of this machine than the graph uses stay untouched: they may be at work for somebody else. */
	void open(int device)
	{
		cuda_gpu &g = gpus[(size_t)device];
		use(device);
		if (g.opened)
			return;
		g.stream.emplace();
		g.base.emplace();
		g.sink = (unsigned *)take_here(device, sizeof(*g.sink));
		g.reader.open(device, *g.stream);
		for (int peer = 0; peer < devices(); peer++)
			if (gpus[(size_t)peer].opened) {
				reach(peer, device);
				reach(device, peer);
			}
		g.opened = true;
	}

	/* On this device, which is current. */
	char *take_here(int device, uint64_t bytes)
	{
		char *p;
		must(cudaMalloc((void **)&p, bytes), "take memory of a GPU");
		memory.push_back({device, p});
		return p;
	}

	cuda_backend() : gpus((size_t)gpu_count()) {}

	~cuda_backend() override
	{
		for (auto &p : memory)
			p.first == HOST ? cudaFreeHost(p.second) : cudaFree(p.second);
		for (auto &p : pageable)
			munmap(p.first, p.second);
	}

	std::string name() const override
	{
		cudaDeviceProp p;
		std::string all;
		for (int d = 0; d < devices(); d++)
			if (gpus[(size_t)d].opened) {
				must(cudaGetDeviceProperties(&p, d), "ask a GPU what it is");
				all += (all.empty() ? "" : ", ") + std::string(p.name);
			}
		return all;
	}

	int devices() const override { return (int)gpus.size(); }

	uint64_t memory_available(int device) override
	{
		size_t free, total;
		if (device == HOST)
			return host_memory_available();
		open(device);
		must(cudaMemGetInfo(&free, &total), "ask a GPU for its memory");
		return free > GPU_MARGIN ? free - GPU_MARGIN : 0;
	}

	char *take(int device, bool pinned, uint64_t bytes) override
	{
		char *p;
		if (device != HOST) {
			open(device);
			p = take_here(device, bytes);
		} else if (pinned) {
			must(cudaHostAlloc((void **)&p, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "pin host memory");
			memory.push_back({HOST, p});
		} else {
			p = (char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (p == MAP_FAILED)
				throw std::bad_alloc();
			pageable.push_back({p, bytes});
		}
		return p;
	}

	void fill(int device, char *p, uint64_t bytes, uint64_t salt, uint64_t first) override
	{
		if (device == HOST) {
			host_fill(p, bytes, salt, first);
			return;
		}
		use(device);
		gpu_fill(*gpus[(size_t)device].stream, p, bytes, salt, first);
		must(cudaStreamSynchronize(*gpus[(size_t)device].stream), "fill memory of a GPU");
	}

	void copy_now(char *to, const char *from, uint64_t bytes) override
	{
		must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread), "copy");
		must(cudaStreamSynchronize(cudaStreamPerThread), "copy");
	}

	int open_stream(int device) override
	{
		open(device);
		streams.emplace_back(device);
		return (int)streams.size() - 1;
	}

	void lay_clocks(cuda_gpu &g)
	{
		double window_s = 1;
		gpu_event best;
		for (int i = 0; i < CLOCK_TRIES; i++) {
			double before_s = clock_now();
			best.record(*g.stream);
			must(cudaEventSynchronize(best), "wait for an event");
			double after_s = clock_now();
			if (after_s - before_s >= window_s && i)
				continue;
			window_s = after_s - before_s;
			g.base_s = (before_s + after_s) / 2;
			std::swap(g.base->event, best.event);
		}
	}

	double begin(const std::vector<int> &event_stream) override
	{
		std::vector<size_t> used(gpus.size(), 0);

		n_events = (uint32_t)event_stream.size();
		event.assign(n_events, nullptr);
		event_device.assign(n_events, HOST);
		for (uint32_t i = 0; i < n_events; i++) {
			if (event_stream[i] < 0)
				continue;
			int device = event_device[i] = streams[(size_t)event_stream[i]].device;
			cuda_gpu &g = gpus[(size_t)device];
			if (used[(size_t)device] == g.pool.size()) {
				use(device);
				g.pool.emplace_back();
			}
			event[i] = g.pool[used[(size_t)device]++];
		}
		for (size_t d = 0; d < gpus.size(); d++) {
			cuda_gpu &g = gpus[d];
			if (!g.opened)
				continue;
			use((int)d);
			if (!g.loaded)
				g.loaded = (unsigned long long *)take((int)d, false, n_events * sizeof(*g.loaded));
			must(cudaMemsetAsync(g.loaded, 0, n_events * sizeof(*g.loaded), *g.stream), "clear counters");
			must(cudaStreamSynchronize(*g.stream), "clear counters");
			lay_clocks(g);
		}
		begin_s = clock_now();
		return begin_s;
	}

	void copy(int stream, char *to, const char *from, uint64_t bytes) override
	{
		const cuda_stream &s = streams[(size_t)stream];
		use(s.device);
		must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s.stream), "copy");
	}

	void kernel(int stream, const kernel_work &w) override
	{
		const cuda_stream &s = streams[(size_t)stream];
		const cuda_gpu &g = gpus[(size_t)s.device];
		use(s.device);
		g.reader.launch(s.stream, w, g.loaded + w.op, g.sink);
	}

	void mark(int stream, uint32_t i) override
	{
		const cuda_stream &s = streams[(size_t)stream];
		use(s.device);
		must(cudaEventRecord(event[i], s.stream), "record an event");
	}

	void after(int stream, uint32_t i) override
	{
		must(cudaStreamWaitEvent(streams[(size_t)stream].stream, event[i], 0), "wait for an event");
	}

	bool passed(uint32_t i) override
	{
		return must_unless(cudaEventQuery(event[i]), cudaErrorNotReady, "run what the graph says");
	}

	double seconds(uint32_t i) override
	{
		const cuda_gpu &g = gpus[(size_t)event_device[i]];
		return g.base_s - begin_s + gpu_seconds(*g.base, event[i]);
	}

	/* A GPU cannot be stopped, but does not have much before it. */
	void abandon() override {}

	void end() override
	{
		for (size_t d = 0; d < gpus.size(); d++) {
			cuda_gpu &g = gpus[d];
			if (!g.opened)
				continue;
			use((int)d);
			must(cudaDeviceSynchronize(), "run what the graph says");
			g.loaded_here.resize(n_events);
			copy_now((char *)g.loaded_here.data(), (const char *)g.loaded, n_events * sizeof(*g.loaded));
		}
	}

	uint64_t moved(uint32_t op) override { return gpus[(size_t)event_device[op]].loaded_here[op]; }
};

} /* namespace */

std::unique_ptr<backend> open_cuda_backend()
{
	return std::unique_ptr<backend>(new cuda_backend);
}
