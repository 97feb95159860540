/*
 * heap.cc - memory that GPUs know: each piece between pages that nobody may touch, its end at the end of a page but for what
 * alignment wants; the rest of its pages has a pattern that must still be there when it is given back. It is full of poison at
 * first, and never there again afterwards. Where the processor has protection keys, the memory of a GPU can be touched by the
 * threads of its streams alone, as on a machine that has a GPU.
 */
#include "tests/cuda/stand_in.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace stand_in {

static const uint64_t ALIGNED = 256;
static const unsigned char BESIDE = 0x5b, POISON = 0xd7;

namespace {

struct piece {
	char *map;         /* a page that nobody may touch, pages, another such page */
	uint64_t map_bytes, bytes;
	place where;
	int device;
	bool given_back;
};

struct heap {
	std::mutex lock;
	std::map<uintptr_t, piece> pieces; /* by where they begin */
	int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
};

} /* namespace */

static heap &all()
{
	static heap &h = *new heap;
	return h;
}

static uint64_t page()
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

device_access::device_access() : before(all().key < 0 ? 0 : pkey_get(all().key))
{
	if (all().key >= 0)
		pkey_set(all().key, 0);
}

device_access::~device_access()
{
	if (all().key >= 0)
		pkey_set(all().key, (unsigned)before);
}

/* fn(begin, bytes) for what of its pages is before and behind it. */
template <class F> static void each_side(const piece &p, char *begin, F fn)
{
	char *first = p.map + page(), *last = p.map + p.map_bytes - page();

	fn(first, (uint64_t)(begin - first));
	fn(begin + p.bytes, (uint64_t)(last - begin) - p.bytes);
}

char *take(place where, int device, uint64_t bytes)
{
	heap &h = all();
	uint64_t rounded = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED, inner = (rounded + page() - 1) / page() * page();
	piece p = {nullptr, inner + 2 * page(), bytes, where, device, false};

	p.map = (char *)mmap(nullptr, p.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p.map == MAP_FAILED)
		return nullptr;
	char *first = p.map + page(), *begin = first + inner - rounded;
	bool guarded = where == ON_DEVICE && h.key >= 0;
	if (guarded ? pkey_mprotect(first, inner, PROT_READ | PROT_WRITE, h.key) : mprotect(first, inner, PROT_READ | PROT_WRITE)) {
		munmap(p.map, p.map_bytes);
		return nullptr;
	}
	device_access access;
	memset(begin, POISON, bytes);
	each_side(p, begin, [](char *side, uint64_t n) {
		memset(side, BESIDE, n);
		ASAN_POISON_MEMORY_REGION(side, n);
	});
	std::lock_guard<std::mutex> held(h.lock);
	h.pieces[(uintptr_t)begin] = p;
	return begin;
}

bool give_back(place where, void *at)
{
	heap &h = all();
	std::lock_guard<std::mutex> held(h.lock);
	auto found = h.pieces.find((uintptr_t)at);

	if (found == h.pieces.end() || found->second.given_back || found->second.where != where) {
		complain(found == h.pieces.end() ? "memory is given back that was never taken" : found->second.given_back
			? "memory is given back twice" : "memory of a GPU is given back as pinned, or the other way round");
		return false;
	}
	piece &p = found->second;
	device_access access;
	each_side(p, (char *)at, [](char *side, uint64_t n) {
		ASAN_UNPOISON_MEMORY_REGION(side, n);
		for (uint64_t i = 0; i < n; i++)
			if ((unsigned char)side[i] != BESIDE)
				return complain("something was written beside memory of a GPU or pinned memory");
	});
	/* The addresses stay taken. */
	if (mmap(p.map, p.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	p.given_back = true;
	return true;
}

bool find(const void *at, uint64_t bytes, whereabouts *where)
{
	heap &h = all();
	std::lock_guard<std::mutex> held(h.lock);
	auto next = h.pieces.upper_bound((uintptr_t)at);

	*where = {PAGEABLE, 0, nullptr, 0};
	if (next == h.pieces.begin())
		return true;
	auto found = std::prev(next);
	const piece &p = found->second;
	if ((const char *)at >= p.map + p.map_bytes)
		return true;
	*where = {p.where, p.device, (const char *)found->first, p.bytes};
	return !p.given_back && (uintptr_t)at - found->first <= p.bytes && bytes <= p.bytes - ((uintptr_t)at - found->first);
}

uint64_t taken_bytes(int device)
{
	heap &h = all();
	std::lock_guard<std::mutex> held(h.lock);
	uint64_t sum = 0;

	for (const auto &p : h.pieces)
		if (!p.second.given_back && p.second.where == ON_DEVICE && p.second.device == device)
			sum += p.second.map_bytes - 2 * page();
	return sum;
}

void look_for_leaks()
{
	heap &h = all();
	uint64_t n = 0, sum = 0;

	for (const auto &p : h.pieces)
		if (!p.second.given_back)
			n++, sum += p.second.bytes;
	if (n)
		complain(std::to_string(n) + " pieces of memory, " + std::to_string(sum) + " bytes, were not given back");
}

} /* namespace stand_in */

void stand_in_load_elsewhere(const void *p, size_t bytes)
{
	using namespace stand_in;
	stand_in_work &d = stand_in_done;
	whereabouts at;
	int device = kernel_device();

	if (!find(p, bytes, &at) || at.where == PAGEABLE)
		stand_in_wrong("a kernel reads what is no memory that its GPU knows");
	if (at.where == ON_DEVICE && at.device != device && !reaches(device, at.device))
		stand_in_wrong("a kernel reads memory of a GPU that its own does not reach");
	/* The next ones will be near. */
	d.memory = (uintptr_t)at.begin;
	d.memory_bytes = at.bytes >= bytes ? at.bytes - bytes + 1 : 0;
	d.memory_count = at.where == PINNED ? &d.host_bytes : at.device == device ? &d.device_bytes : &d.peer_bytes;
	*d.memory_count += bytes;
}
