/*
 * queue.cc - streams, the link and the moments that events stand for.
 *
 * A stream's thread does an operation when its turn has come, which is seldom late and never early by much: only copies wait
 * for their time. Closed streams still do what they were given.
 */
#include "tests/cuda/stand_in.h"

#include <time.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

using namespace stand_in;

/* Of a processor, that this thread had. */
static double thread_s()
{
	timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct stand_in_stream {
	int device;
	std::atomic<bool> open{true};
	bool own = true; /* of the program, which must close it */
	std::mutex lock;
	std::condition_variable changed;
	std::deque<std::pair<double, operation>> queue; /* with when it was given */
	bool busy = false, stop = false;
	double free_s = 0; /* the last one's end */
	bool capturing = false, spoilt = false;
	std::vector<kernel> captured;
	std::thread thread;

	explicit stand_in_stream(int d) : device(d), thread([this] { run(); }) {}

	~stand_in_stream()
	{
		{
			std::lock_guard<std::mutex> held(lock);
			stop = true;
		}
		changed.notify_all();
		thread.join();
	}

	void run()
	{
		std::unique_lock<std::mutex> held(lock);
		for (;;) {
			changed.wait(held, [this] { return stop || !queue.empty(); });
			if (queue.empty())
				return;
			auto next = std::move(queue.front());
			queue.pop_front();
			busy = true;
			double begin_s = std::max(free_s, next.first);
			held.unlock();
			double before_s = thread_s(), end_s = next.second(begin_s);
			if (thread_s() - before_s > end_s - begin_s)
				end_s = std::max(end_s, now_s());
			next.second = nullptr;
			held.lock();
			free_s = end_s;
			busy = false;
			changed.notify_all();
		}
	}
};

namespace stand_in {

namespace {

/* One direction. */
struct way {
	std::mutex engine; /* one copy at a time */
	double free_s = 0;
	std::atomic<bool> moving{false};
};

struct device_link {
	way up, down;
};

struct queues {
	std::mutex lock;
	std::vector<std::unique_ptr<stand_in_stream>> streams;
	std::vector<std::unique_ptr<device_link>> links;
	std::map<std::pair<std::thread::id, int>, stand_in_stream *> of_thread;
	std::map<int, stand_in_stream *> of_device;
};

} /* namespace */

static queues &all()
{
	static queues &q = *new queues;
	return q;
}

/* ---- time ---- */

void hold(double until_s)
{
	for (double left_s; (left_s = until_s - now_s()) > 0;)
		if (left_s > 200e-6)
			std::this_thread::sleep_for(std::chrono::duration<double>(left_s - 100e-6));
		else if (left_s > 20e-6)
			std::this_thread::yield();
}

void moment::wait()
{
	reached.wait(false, std::memory_order_acquire);
	hold(at_s);
}

void moment::reach(double s)
{
	at_s = s;
	reached.store(true, std::memory_order_release);
	reached.notify_all();
}

/* ---- streams ---- */

void open_device(int device)
{
	queues &q = all();
	std::lock_guard<std::mutex> held(q.lock);

	while (q.links.size() <= (size_t)device)
		q.links.emplace_back(new device_link);
}

static stand_in_stream *add_stream(queues &q, int device, bool own)
{
	q.streams.emplace_back(new stand_in_stream(device));
	q.streams.back()->own = own;
	return q.streams.back().get();
}

stand_in_stream *open_stream(int device)
{
	queues &q = all();
	std::lock_guard<std::mutex> held(q.lock);

	return add_stream(q, device, true);
}

void close_stream(stand_in_stream *s)
{
	s->open = false;
}

int device_of(const stand_in_stream *s)
{
	return s->device;
}

bool is_open(const stand_in_stream *s)
{
	queues &q = all();
	std::lock_guard<std::mutex> held(q.lock);

	for (const auto &known : q.streams)
		if (known.get() == s)
			return s->open;
	return false;
}

stand_in_stream *stream_of(cudaStream_t s, int device)
{
	if (s && s != cudaStreamPerThread)
		return s;
	queues &q = all();
	std::lock_guard<std::mutex> held(q.lock);
	stand_in_stream *&known = s ? q.of_thread[{std::this_thread::get_id(), device}] : q.of_device[device];
	if (!known)
		known = add_stream(q, device, false);
	return known;
}

cudaError_t give(stand_in_stream *s, operation fn, double given_s)
{
	{
		std::lock_guard<std::mutex> held(s->lock);
		if (s->capturing) {
			s->spoilt = true;
			return cudaErrorStreamCaptureUnsupported;
		}
		s->queue.emplace_back(given_s, std::move(fn));
	}
	s->changed.notify_all();
	return cudaSuccess;
}

static double launched(const kernel &k, int device, double begin_s, double launch_s)
{
	return run_kernel(k, device, begin_s + launch_s);
}

cudaError_t give_kernel(stand_in_stream *s, kernel k)
{
	{
		std::lock_guard<std::mutex> held(s->lock);
		if (s->capturing) {
			s->captured.push_back(std::move(k));
			return cudaSuccess;
		}
	}
	return give(s, [=, device = s->device](double begin_s) { return launched(k, device, begin_s, cost_s(speeds::launch_s)); });
}

cudaError_t wait_for(stand_in_stream *s)
{
	std::unique_lock<std::mutex> held(s->lock);

	if (s->capturing) {
		s->spoilt = true;
		return cudaErrorStreamCaptureUnsupported;
	}
	s->changed.wait(held, [s] { return s->queue.empty() && !s->busy; });
	double until_s = s->free_s;
	held.unlock();
	hold(until_s);
	return cudaSuccess;
}

cudaError_t begin_capture(stand_in_stream *s)
{
	std::lock_guard<std::mutex> held(s->lock);

	if (s->capturing)
		return cudaErrorIllegalState;
	s->capturing = true;
	s->spoilt = false;
	s->captured.clear();
	return cudaSuccess;
}

cudaError_t end_capture(stand_in_stream *s, std::vector<kernel> *kernels)
{
	std::lock_guard<std::mutex> held(s->lock);

	if (!s->capturing)
		return cudaErrorIllegalState;
	s->capturing = false;
	*kernels = std::move(s->captured);
	return s->spoilt ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t give_graph(stand_in_stream *s, const std::vector<kernel> &kernels)
{
	return give(s, [=, device = s->device](double begin_s) {
		double at_s = begin_s + cost_s(speeds::graph_s);
		for (const kernel &k : kernels)
			at_s = launched(k, device, at_s, cost_s(speeds::graph_kernel_s));
		return at_s;
	});
}

bool is_idle(stand_in_stream *s)
{
	std::lock_guard<std::mutex> held(s->lock);

	return s->queue.empty() && !s->busy && now_s() >= s->free_s;
}

void wait_for_device(int device)
{
	std::vector<stand_in_stream *> mine;

	{
		queues &q = all();
		std::lock_guard<std::mutex> held(q.lock);
		for (const auto &s : q.streams)
			if (s->device == device)
				mine.push_back(s.get());
	}
	for (stand_in_stream *s : mine)
		wait_for(s);
}

void close_streams()
{
	queues &q = all();
	unsigned n = 0;

	for (const auto &s : q.streams)
		n += s->own && s->open;
	if (n)
		complain(std::to_string(n) + " streams were not given back");
	q.streams.clear();
}

/* ---- copies ---- */

/* Bytes that go at once at a speed that then is asked for again: those of so long. */
static const double PIECE_S = 0.5e-3;
/* What the host need not wait for when it gives pageable memory away. */
static const uint64_t STAGED = 64 << 10;

struct link_copy {
	bool up, pageable;
	char *to;
	const char *from;
	uint64_t bytes;
	moment *nearly; /* all but STAGED bytes; or NULL */
};

static double rate_now(const link_copy &c, const way &other)
{
	double alone = c.up ? c.pageable ? speeds::h2d_pageable_bytes_s : speeds::h2d_bytes_s
		: c.pageable ? speeds::d2h_pageable_bytes_s : speeds::d2h_bytes_s;

	return set().faster * (other.moving ? std::min(alone, speeds::both_bytes_s / 2) : alone);
}

static double over_link(const link_copy &c, device_link &l, double begin_s)
{
	way &mine = c.up ? l.up : l.down, &other = c.up ? l.down : l.up;
	std::lock_guard<std::mutex> engine(mine.engine);
	device_access access;
	double at_s = std::max(begin_s, mine.free_s) + cost_s(speeds::copy_latency_s);

	hold(at_s);
	mine.moving = true;
	for (uint64_t done = 0; done < c.bytes;) {
		double rate = rate_now(c, other);
		uint64_t n = std::min(c.bytes - done, (uint64_t)(rate * PIECE_S) + 1);
		at_s += (double)n / rate;
		hold(at_s);
		memcpy(c.to + done, c.from + done, n);
		done += n;
		if (c.nearly && !c.nearly->reached && c.bytes - done <= STAGED)
			c.nearly->reach(at_s);
	}
	mine.moving = false;
	mine.free_s = at_s;
	return at_s;
}

/* Pageable memory is read before the call ends, and then is the program's again; it is written before the call ends. */
static cudaError_t copy_pageable(stand_in_stream *s, link_copy c, device_link *l)
{
	if (!c.up) {
		cudaError_t rc = give(s, [=](double begin_s) { return over_link(c, *l, begin_s); });
		return rc ? rc : wait_for(s);
	}
	double given_s = now_s();
	auto staged = std::make_shared<std::vector<char>>(c.from, c.from + c.bytes);
	auto nearly = std::make_shared<moment>();
	c.from = staged->data();
	c.nearly = nearly.get();
	cudaError_t rc = give(s, [c, l, staged, nearly](double begin_s) { return over_link(c, *l, begin_s); }, given_s);
	if (!rc)
		nearly->wait();
	return rc;
}

static double direct_rate(int from, int to)
{
	if (from == to)
		return speeds::inside_bytes_s / 2;
	return reaches(from, to) || reaches(to, from) ? speeds::peer_bytes_s : speeds::peer_through_host_bytes_s;
}

cudaError_t copy(stand_in_stream *s, char *to, whereabouts to_at, const char *from, whereabouts from_at, uint64_t bytes)
{
	if (from_at.where == ON_DEVICE && to_at.where == ON_DEVICE) {
		double rate = direct_rate(from_at.device, to_at.device);
		return give(s, [=](double begin_s) {
			device_access access;
			memmove(to, from, bytes);
			return begin_s + cost_s(speeds::launch_s + (double)bytes / rate);
		});
	}
	/* Over no link, and waited for. */
	if (from_at.where != ON_DEVICE && to_at.where != ON_DEVICE) {
		cudaError_t rc = give(s, [=](double begin_s) {
			memmove(to, from, bytes);
			return begin_s;
		});
		return rc ? rc : wait_for(s);
	}
	bool up = to_at.where == ON_DEVICE;
	device_link *l = all().links[(size_t)(up ? to_at.device : from_at.device)].get();
	link_copy c = {up, (up ? from_at : to_at).where == PAGEABLE, to, from, bytes, nullptr};
	if (c.pageable)
		return copy_pageable(s, c, l);
	return give(s, [=](double begin_s) { return over_link(c, *l, begin_s); });
}

} /* namespace stand_in */
