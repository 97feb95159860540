/*
 * fibers.cc - the blocks of a kernel one after another, the threads of a block as fibers of the thread that runs it: each goes
 * on until it waits for others of its block or warp, or ends.
 *
 * Fibers switch by the compiler's own setjmp and longjmp, which save three registers and enter no kernel. ThreadSanitizer is
 * told of fibers but not that a switch orders them: barriers do that, so that it sees threads of a block race.
 */
#include <mma.h>

#include "tests/cuda/stand_in.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define ASAN(statement) statement
#else
#define ASAN(statement)
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define TSAN(statement) statement
#else
#define TSAN(statement)
#endif
#define PLAIN __attribute__((noinline, no_sanitize_address, no_sanitize_thread))
/* What all fibers do to what is of all. */
#if defined(__SANITIZE_THREAD__)
#define QUIET PLAIN
static const bool SEPARATE = true; /* a fiber for each thread, or it would not see them race */
#else
#define QUIET
static const bool SEPARATE = false;
#endif

constinit thread_local uint3 threadIdx, blockIdx;
constinit thread_local dim3 blockDim, gridDim;
constinit thread_local stand_in_work stand_in_done;

namespace stand_in {

static const size_t STACK = 256 << 10;
static const size_t COLOUR = 13 * 64;
static const unsigned WARP = 32, MOST = 1024;

namespace {

struct flow {
	void *at[5];
	bool begun = false;
	const void *stack = nullptr;
	size_t stack_bytes = 0;
	void *fake_stack = nullptr; /* of AddressSanitizer */
	void *fiber = nullptr;      /* of ThreadSanitizer */
};

/* Threads of a warp, or of a block: until as many as are in it have come. */
struct meeting {
	void *given[WARP];
	unsigned n, size, generation;
};

struct fiber : flow {
	char *map;
	ucontext_t first;
	unsigned index;
	uint3 thread;
	unsigned lane;
	uint64_t slept_ns;
	const unsigned *waits_on; /* until this is another number than generation; NULL: it has no thread */
	unsigned generation;
	meeting *warp;

	explicit fiber(unsigned i);
	~fiber();
};

/* Each fiber takes a thread, and the next one when that has ended; when it waits, another fiber goes on. */
struct block_runner {
	flow home;
	std::vector<std::unique_ptr<fiber>> fibers;
	const kernel *k = nullptr;
	fiber *now = nullptr;
	unsigned n = 0, n_begun = 0, n_fibers = 0;
	meeting warps[MOST / WARP], block;
	uint64_t begin_ns = 0, slept_ns = 0;
	int device = 0;
	char begun = 0, ended = 0; /* what ThreadSanitizer orders by */
};

} /* namespace */

static thread_local std::unique_ptr<block_runner> owned;
static constinit thread_local block_runner *runner = nullptr;

int kernel_device()
{
	return runner->device;
}

/* ---- switching ---- */

PLAIN static void jump(flow *to)
{
	if (to->begun)
		__builtin_longjmp(to->at, 1);
	to->begun = true;
	setcontext(&static_cast<fiber *>(to)->first);
}

PLAIN static void go(flow *from, flow *to)
{
	ASAN(__sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes));
	TSAN(__tsan_switch_to_fiber(to->fiber, __tsan_switch_to_fiber_no_sync));
	if (__builtin_setjmp(from->at) == 0)
		jump(to);
	ASAN(__sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr));
}

QUIET static void go_to_fiber(block_runner &r, flow *from, fiber *to)
{
	r.now = to;
	threadIdx = to->thread;
	stand_in_done.stack = (uintptr_t)to->stack;
	stand_in_done.stack_bytes = to->stack_bytes;
	go(from, to);
}

/* NULL: there is no other that can go on. */
QUIET static fiber *next_fiber(const block_runner &r)
{
	unsigned i = r.now->index;

	for (unsigned k = 1; k < r.n_fibers; k++) {
		i = i + 1 < r.n_fibers ? i + 1 : 0;
		fiber &f = *r.fibers[i];
		if (f.waits_on && *f.waits_on != f.generation)
			return &f;
	}
	return nullptr;
}

QUIET static void wait_on(block_runner &r, const meeting &m)
{
	fiber *f = r.now;

	f->waits_on = &m.generation;
	f->generation = m.generation;
	fiber *next = r.n_begun < r.n ? r.fibers[r.n_fibers++].get() : next_fiber(r);
	if (!next)
		stand_in_wrong("threads of a block wait for others of it that will not come");
	go_to_fiber(r, f, next);
}

QUIET static void pass(meeting &m)
{
	m.n = 0;
	m.generation++;
}

QUIET static void begin_thread(block_runner &r, fiber *f)
{
	unsigned i = r.n_begun++;
	static const unsigned none = 0;

	f->thread = {i % r.k->block.x, i / r.k->block.x % r.k->block.y, i / r.k->block.x / r.k->block.y};
	f->lane = i % WARP;
	f->warp = &r.warps[i / WARP];
	f->slept_ns = 0;
	f->waits_on = &none;
	threadIdx = f->thread;
}

/* Barriers do not wait for those that ended. */
QUIET static void end_thread(block_runner &r, fiber *f)
{
	r.slept_ns = std::max(r.slept_ns, f->slept_ns);
	f->waits_on = nullptr;
	if (--r.block.size && r.block.n == r.block.size)
		pass(r.block);
}

/* Where to once a fiber's thread has ended. One that has waited may find another thread to take up. */
QUIET static void go_on(block_runner &r, fiber *f)
{
	fiber *next = nullptr;

	if (!r.block.size)
		return go(f, &r.home);
	if (r.n_begun < r.n)
		next = r.fibers[r.n_fibers++].get();
	else if (!(next = next_fiber(r)))
		stand_in_wrong("threads of a block wait for others of it that will not come");
	go_to_fiber(r, f, next);
}

PLAIN static void run_fiber()
{
	block_runner &r = *runner;

	ASAN(__sanitizer_finish_switch_fiber(nullptr, r.now == r.fibers[0].get() ? &r.home.stack : nullptr,
		r.now == r.fibers[0].get() ? &r.home.stack_bytes : nullptr));
	for (;;) {
		fiber *f = r.now;
		do {
			begin_thread(r, f);
			TSAN(__tsan_acquire(&r.begun));
			r.k->thread();
			TSAN(__tsan_release(&r.ended));
			end_thread(r, f);
		} while (r.n_begun < r.n && !SEPARATE);
		go_on(r, f);
	}
}

fiber::fiber(unsigned i) : index(i), waits_on(nullptr)
{
	size_t bytes = STACK;

	map = (char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || mprotect(map, 4096, PROT_NONE))
		abort();
	stack = map;
	stack_bytes = bytes;
	getcontext(&first);
	first.uc_stack.ss_sp = map;
	/* Those at the same place of a page would drive each other out of the cache. */
	first.uc_stack.ss_size = bytes - index * COLOUR % (64 << 10);
	makecontext(&first, run_fiber, 0);
	TSAN(flow::fiber = __tsan_create_fiber(0));
}

fiber::~fiber()
{
	munmap(map, stack_bytes);
	TSAN(__tsan_destroy_fiber(flow::fiber));
}

/* ---- kernels ---- */

static unsigned threads_of(const kernel &k)
{
	return k.block.x * k.block.y * k.block.z;
}

PLAIN static void run_block(block_runner &r)
{
	for (unsigned w = 0; w * WARP < r.n; w++)
		r.warps[w] = {{}, 0, std::min(WARP, r.n - w * WARP), 0};
	r.block = {{}, 0, r.n, 0};
	r.n_begun = 0;
	r.n_fibers = 1;
	go_to_fiber(r, &r.home, r.fibers[0].get());
}

double run_kernel(const kernel &k, int device, double begin_s)
{
	if (!runner)
		owned.reset(runner = new block_runner);
	block_runner &r = *runner;
	stand_in_work &d = stand_in_done;
	device_access access;

	r.n = threads_of(k);
	while (r.fibers.size() < r.n)
		r.fibers.emplace_back(new fiber((unsigned)r.fibers.size()));
	TSAN(r.home.fiber = __tsan_get_current_fiber());
	r.home.begun = true;
	r.k = &k;
	r.device = device;
	r.begin_ns = (uint64_t)(begin_s * 1e9);
	r.slept_ns = 0;
	d = {};
	blockDim = k.block;
	gridDim = k.grid;
	TSAN(__tsan_release(&r.begun));
	for (unsigned z = 0; z < k.grid.z; z++)
		for (unsigned y = 0; y < k.grid.y; y++)
			for (unsigned x = 0; x < k.grid.x; x++) {
				blockIdx = {x, y, z};
				run_block(r);
			}
	TSAN(__tsan_acquire(&r.ended));
	double memory_s = (double)d.device_bytes / speeds::read_bytes_s + (double)d.host_bytes / speeds::zero_copy_bytes_s +
		(double)d.peer_bytes / speeds::peer_bytes_s;
	double flops_s = d.fp32_flops / speeds::fp32_flop_s + d.tensor_flops / speeds::tensor_flop_s;
	return begin_s + 1e-9 * (double)r.slept_ns + cost_s(std::max(memory_s, flops_s));
}

} /* namespace stand_in */

using namespace stand_in;

QUIET static void meet(meeting &m)
{
	if (++m.n == m.size)
		pass(m);
	else
		wait_on(*runner, m);
}

void __syncthreads()
{
	TSAN(__tsan_release(&runner->block));
	meet(runner->block);
	TSAN(__tsan_acquire(&runner->block));
}

QUIET void stand_in_meet(void *mine, void (*fn)(void **all))
{
	meeting &w = *runner->now->warp;

	w.given[runner->now->lane] = mine;
	TSAN(__tsan_release(&w));
	if (w.n + 1 == w.size) {
		if (w.size < WARP)
			stand_in_wrong("what takes a whole warp is done by less");
		TSAN(__tsan_acquire(&w));
		fn(w.given);
		TSAN(__tsan_release(&w));
	}
	meet(w);
	TSAN(__tsan_acquire(&w));
}

unsigned stand_in_lane()
{
	return runner->now->lane;
}

/* What each gives, and what it gets. */
struct shuffle {
	float x, y;
	unsigned lanes;
};

float __shfl_down_sync(unsigned mask, float x, unsigned lanes)
{
	shuffle mine = {x, x, lanes};

	if (mask != 0xffffffff)
		stand_in_wrong("a shuffle by a part of a warp");
	stand_in_meet(&mine, [](void **all) {
		for (unsigned i = 0; i < WARP; i++) {
			shuffle &s = *(shuffle *)all[i];
			if (i + s.lanes < WARP)
				s.y = ((shuffle *)all[i + s.lanes])->x;
		}
	});
	return mine.y;
}

void __nanosleep(unsigned ns)
{
	runner->now->slept_ns += ns;
}

/* Threads begin with their kernel, and only sleep takes them time. */
uint64_t stand_in_globaltimer()
{
	return runner->begin_ns + runner->now->slept_ns;
}

void stand_in_tile(const void *p, size_t row_bytes)
{
	if ((uintptr_t)p % 32 || row_bytes % 16)
		stand_in_wrong("a tile in memory does not begin where tiles must");
}

void stand_in_wrong(const char *what)
{
	std::fprintf(stderr, "stand-in: block %u,%u,%u, thread %u,%u,%u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
		threadIdx.y, threadIdx.z, what);
	abort();
}
