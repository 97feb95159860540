/*
 * gpu_copies.cu - copies between host memory and a GPU, and between GPUs: by size, pinned and pageable, both ways at once,
 * while the CPU uses its memory, and what it costs the host to submit one.
 */
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>

#include "hw/cuda/failure.h"
#include "hw/cuda/gpu_calibrate.h"
#include "hw/cuda/host_memory.h"
#include "hw/cuda/host_team.h"

static const uint64_t SMALLEST = 64, LARGEST = (uint64_t)256 << 20, LARGE = (uint64_t)64 << 20;
/* Small copies are timed so many at once. */
static const uint64_t AT_ONCE = 32, AT_ONCE_BYTES = (uint64_t)32 << 20;
static const uint64_t SUBMITS = 256;
/* Of each thread, twice: beyond its share of any cache. */
static const size_t LOAD_BYTES = 32 << 20;
/* Copies of a window: long enough that each thread copies several times in it. */
static const int LOAD_WINDOWS = 8, LOAD_COPIES = 40;

struct host_block {
	char *p;
	bool pinned;

	host_block(bool pin, uint64_t bytes) : p(nullptr), pinned(pin)
	{
		if (pinned)
			must(cudaHostAlloc((void **)&p, bytes, cudaHostAllocPortable), "pin host memory");
		else if (!(p = (char *)std::aligned_alloc(4096, bytes)))
			throw std::bad_alloc();
	}

	~host_block() { pinned ? (void)cudaFreeHost(p) : std::free(p); }
	host_block(const host_block &) = delete;
	host_block &operator=(const host_block &) = delete;
};

static void copy_async(const calibration &c, char *to, const char *from, uint64_t bytes)
{
	must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, c.stream), "copy");
}

/* From pattern to poison, then sums of both ends, by the CPU on the one and by the GPU on the other. */
static void check_copy(calibration &c, gpu_sample &s, char *host, char *device, bool to_device)
{
	if (to_device) {
		host_fill(host, s.bytes, s.bytes, 0);
		must(cudaMemsetAsync(device, 0xa5, s.bytes, c.stream), "poison memory of a GPU");
		copy_async(c, device, host, s.bytes);
	} else {
		gpu_fill(c.stream, device, s.bytes, s.bytes, 0);
		must(cudaStreamSynchronize(c.stream), "fill memory of a GPU");
		std::memset(host, 0xa5, s.bytes);
		copy_async(c, host, device, s.bytes);
	}
	must(cudaStreamSynchronize(c.stream), "copy");
	if (host_checksum(host, s.bytes) != c.device_checksum(device, s.bytes))
		s.fault = "the checksums of the two ends differ";
}

static void copies(calibration &c, const char *part, bool pinned, bool to_device)
{
	uint64_t largest = c.room(LARGEST);
	host_block host(pinned, largest);
	gpu_memory device(false, largest);

	host_fill(host.p, largest, 1, 0);
	for (uint64_t bytes = SMALLEST; bytes <= largest; bytes *= 4) {
		gpu_sample s;
		s.part = part;
		s.bytes = bytes;
		s.count = pinned ? std::max<uint64_t>(1, std::min(AT_ONCE, AT_ONCE_BYTES / bytes)) : 1;
		auto fn = [&] {
			for (uint64_t i = 0; i < s.count; i++)
				to_device ? copy_async(c, device.p, host.p, bytes) : copy_async(c, host.p, device.p, bytes);
		};
		int n = c.repetitions(bytes < ((uint64_t)1 << 20) ? 20 : 8);
		/* Pageable copies come back when they are (nearly) done: the stream must be idle before. Small pinned ones take
		   the host longer to submit than the device to do, so that its clock would show the former. */
		if (!pinned)
			c.time_waited(s, n, fn);
		else
			c.time_queued(s, n, fn);
		if (pinned && bytes < ((uint64_t)1 << 20))
			s.other_seconds.clear();
		check_copy(c, s, host.p, device.p, to_device);
		c.add(s);
	}
}

static void h2d(calibration &c) { copies(c, "h2d", true, true); }
static void d2h(calibration &c) { copies(c, "d2h", true, false); }

static void pageable(calibration &c)
{
	copies(c, "h2d_pageable", false, true);
	copies(c, "d2h_pageable", false, false);
}

/* ---- both ways ---- */

/* One way's copies, an event behind each. */
struct way {
	gpu_stream stream;
	std::deque<gpu_event> event;

	explicit way(int n) : event((size_t)n + 1) {}
};

/* Copies that were done `at_s` behind `origin`, the one on its way as the share of it. */
static double done_at(const way &w, cudaEvent_t origin, double at_s)
{
	for (size_t i = 1; i < w.event.size(); i++) {
		double end_s = gpu_seconds(origin, w.event[i]);
		if (end_s < at_s)
			continue;
		double begin_s = gpu_seconds(origin, w.event[i - 1]);
		return (double)(i - 1) + std::fmax(0, at_s - begin_s) / (end_s - begin_s);
	}
	return (double)w.event.size() - 1;
}

/* What both moved from when both had begun until the first had done all. */
static void both(calibration &c)
{
	const int n = 6;
	uint64_t bytes = c.room(LARGE);
	host_block from(true, bytes), to(true, bytes);
	gpu_memory in(false, bytes), out(false, bytes);
	way up(n), down(n);
	gpu_sample s;

	host_fill(from.p, bytes, 6, 0);
	std::memset(to.p, 0xa5, bytes);
	gpu_fill(c.stream, out.p, bytes, 7, 0);
	must(cudaStreamSynchronize(c.stream), "fill memory of a GPU");
	s.part = "both";
	s.bytes = bytes;
	for (int r = 0; r < c.repetitions(8) + 1; r++) {
		for (way *w : {&up, &down}) {
			gpu_spin(w->stream, 500e-6);
			w->event[0].record(w->stream);
		}
		for (int i = 1; i <= n; i++) {
			must(cudaMemcpyAsync(in.p, from.p, bytes, cudaMemcpyDefault, up.stream), "copy");
			up.event[(size_t)i].record(up.stream);
			must(cudaMemcpyAsync(to.p, out.p, bytes, cudaMemcpyDefault, down.stream), "copy");
			down.event[(size_t)i].record(down.stream);
		}
		must(cudaStreamSynchronize(up.stream), "copy");
		must(cudaStreamSynchronize(down.stream), "copy");
		if (r == 0)
			continue;
		cudaEvent_t origin = up.event[0];
		double begin_s = std::fmax(0, gpu_seconds(origin, down.event[0]));
		double end_s = std::fmin(gpu_seconds(origin, up.event.back()), gpu_seconds(origin, down.event.back()));
		double moved = done_at(up, origin, end_s) - done_at(up, origin, begin_s) + done_at(down, origin, end_s) -
			done_at(down, origin, begin_s);
		/* Seconds for one copy's bytes, whichever way they went. */
		s.seconds.push_back((end_s - begin_s) / moved);
	}
	if (host_checksum(from.p, bytes) != c.device_checksum(in.p, bytes) || host_checksum(to.p, bytes) != c.device_checksum(out.p, bytes))
		s.fault = "the checksums of the two ends differ";
	c.add(s);
}

/* ---- while the CPU uses its memory ---- */

static void loaded(calibration &c)
{
	unsigned threads = std::max(2u, host_processors()) - 1;
	uint64_t bytes = c.room(LARGE);
	host_block host(true, bytes);
	gpu_memory device(false, bytes);
	std::atomic<bool> stop{false};
	std::atomic<uint64_t> moved{0};
	std::atomic<unsigned> ready{0};
	std::vector<std::thread> others;
	gpu_sample s, load;

	threads = std::min(threads, 64u);
	for (unsigned i = 0; i < threads; i++)
		others.emplace_back([&] {
			std::vector<char> a(LOAD_BYTES, 1), b(LOAD_BYTES, 2);
			ready++;
			while (!stop) {
				std::memcpy(a.data(), b.data(), a.size());
				std::swap(a, b);
				moved += 2 * a.size();
			}
		});
	s.part = "h2d_loaded";
	s.bytes = bytes;
	load.part = "load";
	load.bytes = (uint64_t)1 << 30; /* as if always so many: what differs is the time */
	s.threads = load.threads = threads;
	auto end = [&] {
		stop = true;
		for (std::thread &t : others)
			t.join();
	};
	try {
		while (ready < threads)
			std::this_thread::yield();
		for (int i = 0; i < c.repetitions(LOAD_WINDOWS); i++) {
			gpu_sample once = s;
			uint64_t before = moved;
			double begin_s = clock_now();
			c.time_queued(once, LOAD_COPIES, [&] { copy_async(c, device.p, host.p, bytes); });
			load.seconds.push_back((clock_now() - begin_s) / (double)(moved - before) * (double)load.bytes);
			s.seconds.insert(s.seconds.end(), once.seconds.begin(), once.seconds.end());
			s.other_seconds.insert(s.other_seconds.end(), once.other_seconds.begin(), once.other_seconds.end());
		}
	} catch (...) {
		end();
		throw;
	}
	end();
	c.add(s);
	c.add(load);
}

/* ---- the host's part ---- */

static void submit(calibration &c)
{
	host_block host(true, 4096);
	gpu_memory device(false, 4096);
	gpu_sample s;

	s.part = "submit";
	s.bytes = SMALLEST;
	s.count = SUBMITS;
	for (int r = 0; r < c.repetitions(20) + 1; r++) {
		gpu_spin(c.stream, 20e-6 * SUBMITS);
		double begin_s = clock_now();
		for (uint64_t i = 0; i < SUBMITS; i++)
			copy_async(c, device.p, host.p, SMALLEST);
		double took_s = clock_now() - begin_s;
		bool ended = must_unless(cudaStreamQuery(c.stream), cudaErrorNotReady, "copy");
		must(cudaStreamSynchronize(c.stream), "copy");
		/* Else their own time may be in it. */
		if (r && !ended)
			s.seconds.push_back(took_s);
	}
	if (s.seconds.empty())
		return c.skip("submit", "the copies ended while they were submitted");
	c.add(s);
}

/* ---- between GPUs ---- */

static void peer(calibration &c)
{
	if (c.n_devices < 2)
		return c.skip("peer", "there is one GPU");
	uint64_t bytes = c.room(LARGE);
	gpu_memory here(false, bytes);
	gpu_fill(c.stream, here.p, bytes, 3, 0);
	for (int other = 0; other < c.n_devices; other++) {
		int can = 0;
		if (other == c.device)
			continue;
		must(cudaDeviceCanAccessPeer(&can, c.device, other), "ask for peers");
		if (can)
			must_unless(cudaDeviceEnablePeerAccess(other, 0), cudaErrorPeerAccessAlreadyEnabled, "reach another GPU");
		must(cudaSetDevice(other), "use a GPU");
		gpu_memory there(false, bytes);
		must(cudaSetDevice(c.device), "use a GPU");
		gpu_sample s;
		s.part = "peer";
		s.type = can ? "direct" : "through the host";
		s.peer = other;
		s.bytes = bytes;
		auto fn = [&] { must(cudaMemcpyPeerAsync(there.p, other, here.p, c.device, bytes, c.stream), "copy to another GPU"); };
		c.time_queued(s, c.repetitions(10), fn);
		std::vector<char> back(bytes);
		must(cudaMemcpy(back.data(), there.p, bytes, cudaMemcpyDefault), "copy");
		if (host_checksum(back.data(), bytes) != c.device_checksum(here.p, bytes))
			s.fault = "the checksums of the two ends differ";
		c.add(s);
	}
}

const calibration_part copy_parts[] = {
	{"h2d", "pinned host memory to GPU, 64 B to 256 MiB", 4, 2, h2d},
	{"d2h", "GPU to pinned host memory, the same sizes", 4, 2, d2h},
	{"pageable", "both ways from and to pageable memory, the same sizes", 8, 4, pageable},
	{"both", "both ways at once, pinned, 64 MiB", 2, 1, both},
	{"loaded", "host to GPU while the CPU copies in its memory", 3, 2, loaded},
	{"submit", "what one copy costs the host", 1, 1, submit},
	{"peer", "to each other GPU, 64 MiB", 2, 1, peer},
	{nullptr, nullptr, 0, 0, nullptr},
};
