/*
 * host_team.h - threads that do one thing together again and again: between two they spin for a while, then sleep.
 */
#ifndef HW_CUDA_HOST_TEAM_H
#define HW_CUDA_HOST_TEAM_H

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

inline void spin(unsigned i)
{
	if (i > 2000) {
		std::this_thread::yield();
		return;
	}
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	asm volatile("yield");
#endif
}

/* Those that this process may use: of a container whose share is less than the machine, as many as make up its share. */
inline unsigned host_processors()
{
	unsigned n = std::max(1u, std::thread::hardware_concurrency());
	FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
	double quota, period;

	if (f && fscanf(f, "%lf %lf", &quota, &period) == 2 && quota >= 1 && period >= 1)
		n = (unsigned)std::min((double)n, std::ceil(quota / period));
	if (f)
		fclose(f);
	return n;
}

static const unsigned TEAM_SPINS = 4000;

/* The caller is its member 0. */
struct host_team {
	std::function<void(unsigned member)> work;
	std::atomic<uint64_t> round{0};
	std::atomic<unsigned> left{0};
	std::atomic<bool> stop{false};
	std::vector<std::thread> helper;

	explicit host_team(unsigned n)
	{
		for (unsigned m = 1; m < n; m++)
			helper.emplace_back([this, m] { help(m); });
	}

	~host_team()
	{
		stop = true;
		round.fetch_add(1, std::memory_order_release);
		round.notify_all();
		for (std::thread &t : helper)
			t.join();
	}

	void help(unsigned member)
	{
		for (uint64_t seen = 0;; seen++) {
			for (unsigned i = 0; i < TEAM_SPINS && round.load(std::memory_order_acquire) == seen; i++)
				spin(i);
			round.wait(seen, std::memory_order_acquire);
			if (stop)
				return;
			work(member);
			left.fetch_sub(1, std::memory_order_release);
		}
	}

	unsigned size() const { return (unsigned)helper.size() + 1; }

	void run(std::function<void(unsigned)> fn)
	{
		work = std::move(fn);
		left = (unsigned)helper.size();
		round.fetch_add(1, std::memory_order_release);
		round.notify_all();
		work(0);
		for (unsigned i = 0; left.load(std::memory_order_acquire); i++)
			spin(i);
	}
};

#endif
