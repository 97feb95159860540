/*
 * host_backend.cc - threads that stand for GPUs: a stream is one, the memory is this machine's. As many devices as a graph
 * may ask for.
 */
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "hw/cuda/backend.h"
#include "hw/cuda/failure.h"
#include "hw/cuda/host_memory.h"
#include "hw/cuda/host_team.h"
#include "hw/cuda/host_work.h"

namespace {

const uint64_t PIECE = (uint64_t)1 << 20;

struct host_stream {
	std::mutex lock;
	std::condition_variable given;
	std::deque<std::function<void()>> queue;
	bool busy = false, stop = false;
	std::thread thread;

	host_stream() : thread([this] { run(); }) {}

	~host_stream()
	{
		{
			std::lock_guard<std::mutex> held(lock);
			stop = true;
		}
		given.notify_one();
		thread.join();
	}

	void run()
	{
		std::unique_lock<std::mutex> held(lock);
		for (;;) {
			given.wait(held, [this] { return stop || !queue.empty(); });
			if (queue.empty())
				return;
			std::function<void()> next = std::move(queue.front());
			queue.pop_front();
			busy = true;
			held.unlock();
			next();
			held.lock();
			busy = false;
		}
	}

	void give(std::function<void()> fn)
	{
		{
			std::lock_guard<std::mutex> held(lock);
			queue.push_back(std::move(fn));
		}
		given.notify_one();
	}

	bool idle()
	{
		std::lock_guard<std::mutex> held(lock);
		return queue.empty() && !busy;
	}
};

struct host_event {
	std::atomic<bool> passed{false};
	double at_s = 0;
};

struct host_backend : backend {
	std::vector<std::unique_ptr<host_stream>> streams;
	std::vector<host_event> events;
	std::vector<std::atomic<uint64_t>> loaded;
	std::vector<char *> memory;
	std::atomic<float> sink{0};
	std::atomic<bool> stop{false};
	char block[4096] = {};
	double begin_s = 0;

	~host_backend() override
	{
		stop = true;
		streams.clear();
		for (char *p : memory)
			std::free(p);
	}

	std::string name() const override { return "host threads in place of a GPU"; }
	int devices() const override { return 8; }

	uint64_t memory_available(int) override { return host_memory_available(); }

	char *take(int, bool, uint64_t bytes) override
	{
		char *p = (char *)std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
		if (!p)
			throw std::bad_alloc();
		memory.push_back(p);
		return p;
	}

	void fill(int, char *p, uint64_t bytes, uint64_t salt, uint64_t first) override { host_fill(p, bytes, salt, first); }

	void copy_now(char *to, const char *from, uint64_t bytes) override { std::memcpy(to, from, bytes); }

	int open_stream(int) override
	{
		streams.emplace_back(new host_stream);
		return (int)streams.size() - 1;
	}

	double begin(const std::vector<int> &event_stream) override
	{
		events = std::vector<host_event>(event_stream.size());
		loaded = std::vector<std::atomic<uint64_t>>(event_stream.size());
		begin_s = clock_now();
		return begin_s;
	}

	void copy(int stream, char *to, const char *from, uint64_t bytes) override
	{
		streams[(size_t)stream]->give([=] { std::memmove(to, from, bytes); });
	}

	void kernel(int stream, const kernel_work &w) override
	{
		streams[(size_t)stream]->give([=, this] {
			double until_s = clock_now() + w.latency_s;
			for (unsigned i = 0; clock_now() < until_s && !stop; i++)
				spin(i);
			uint64_t at = w.at / HOST_WORK_UNIT * HOST_WORK_UNIT, done = 0;
			uint64_t bytes = (w.bytes + HOST_WORK_UNIT - 1) / HOST_WORK_UNIT * HOST_WORK_UNIT;
			float sum = 0;
			if (!bytes)
				sum = host_work(block, 0, sizeof(block), w.flops / 2 / (sizeof(block) / sizeof(float)), &stop);
			for (uint64_t n; done < bytes && !stop; done += n, at = (at + n) % w.size) {
				n = std::min(std::min(bytes - done, w.size - at), PIECE);
				sum += host_work(w.base + at, done, n, w.flops / (double)bytes * 2, &stop);
				loaded[w.op] += n;
			}
			sink = sum;
		});
	}

	void mark(int stream, uint32_t event) override
	{
		streams[(size_t)stream]->give([=, this] {
			events[event].at_s = clock_now();
			events[event].passed.store(true, std::memory_order_release);
		});
	}

	void after(int stream, uint32_t event) override
	{
		streams[(size_t)stream]->give([=, this] {
			for (unsigned i = 0; !events[event].passed.load(std::memory_order_acquire) && !stop; i++)
				spin(i);
		});
	}

	bool passed(uint32_t event) override { return events[event].passed.load(std::memory_order_acquire); }
	double seconds(uint32_t event) override { return events[event].at_s - begin_s; }

	void abandon() override { stop = true; }

	void end() override
	{
		for (auto &s : streams)
			for (unsigned i = 0; !s->idle(); i++)
				spin(i);
	}

	uint64_t moved(uint32_t op) override { return loaded[op]; }
};

} /* namespace */

std::unique_ptr<backend> open_host_backend()
{
	return std::unique_ptr<backend>(new host_backend);
}
