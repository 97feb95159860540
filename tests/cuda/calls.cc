/*
 * calls.cc - the calls: what each does once it is let, errors as the runtime keeps them (of each thread the last; after what a
 * GPU does not recover from, that one for ever), and failures on request:
 *
 *	STAND_IN_FAIL=CALL:N          the Nth use of it (cudaLaunchKernel: of a launch) fails with an error of its kind
 *	STAND_IN_FAIL=CALL:N:CODE     with this one; 700 stays
 *	STAND_IN_FAIL=new:FILE        every call that is reached by a way (functions that called each other, by address) which is
 *	                              not in FILE fails, and then is in it: run until nothing is new, each way has failed once
 */
#include "tests/cuda/stand_in.h"

#include <execinfo.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <vector>

using namespace stand_in;

extern char __executable_start, etext; /* of the linker */

struct stand_in_event {
	int device;
	std::mutex lock;
	std::shared_ptr<moment> last; /* NULL: never recorded */
};

struct stand_in_graph {
	std::vector<kernel> kernels;
};

namespace stand_in {

static const uint64_t CONTEXT_BYTES = (uint64_t)9 << 20;
static const int MOST_DEVICES = 32;
static const int MULTIPROCESSORS = 3, BLOCKS_EACH = 2;

namespace {

struct calls {
	settings set;
	std::mutex lock;
	std::map<std::string, unsigned> uses;
	std::set<std::string> ways;
	std::set<stand_in_event *> events;
	std::set<stand_in_graph *> graphs;
	std::atomic<bool> peers[MOST_DEVICES][MOST_DEVICES] = {};
	std::atomic<cudaError_t> for_ever{cudaSuccess};
	std::atomic<unsigned> complaints{0};

	calls();
};

} /* namespace */

static calls &all()
{
	static calls &c = *new calls;
	return c;
}

static thread_local int current = 0;
static thread_local cudaError_t last = cudaSuccess;

const settings &set()
{
	return all().set;
}

bool reaches(int device, int peer)
{
	return all().peers[device][peer];
}

void complain(const std::string &what)
{
	fprintf(stderr, "stand-in: %s\n", what.c_str());
	all().complaints++;
}

static double number_of(const char *name, double def)
{
	const char *text = getenv(name);

	return text && *text ? atof(text) : def;
}

/* What the program should have done by now. */
static void at_exit()
{
	calls &c = all();

	close_streams();
	if (!c.events.empty())
		complain(std::to_string(c.events.size()) + " events were not given back");
	if (!c.graphs.empty())
		complain(std::to_string(c.graphs.size()) + " graphs were not given back");
	look_for_leaks();
	if (c.complaints) {
		fflush(nullptr);
		_exit(97);
	}
}

calls::calls()
{
	set.devices = (int)number_of("STAND_IN_DEVICES", 1);
	set.memory_bytes = (uint64_t)number_of("STAND_IN_MEMORY", 25) << 20;
	set.faster = number_of("STAND_IN_FASTER", 1);
	set.fail = getenv("STAND_IN_FAIL");
	if (set.fail && strncmp(set.fail, "new:", 4) == 0)
		if (FILE *f = fopen(set.fail + 4, "re")) {
			char line[256];
			while (fgets(line, sizeof(line), f))
				ways.insert(std::string(line, strcspn(line, "\n")));
			fclose(f);
		}
	for (int d = 0; d < set.devices; d++)
		open_device(d);
	/* So that short waits are no longer than they are. */
	prctl(PR_SET_TIMERSLACK, 1);
	atexit(at_exit);
}

/* ---- failures ---- */

/* Of the program's own functions, for other addresses differ from run to run. */
static std::string way_here(const char *name)
{
	void *frames[32];
	int n = backtrace(frames, 32);
	uint64_t hash = 1469598103934665603u;

	for (int i = 0; i < n; i++)
		if ((char *)frames[i] >= &__executable_start && (char *)frames[i] < &etext)
			hash = (hash ^ (uint64_t)((char *)frames[i] - &__executable_start)) * 1099511628211u;
	char text[128];
	snprintf(text, sizeof(text), "%s %016llx", name, (unsigned long long)hash);
	return text;
}

static bool fails_as_new(calls &c, const char *name)
{
	std::string way = way_here(name);
	std::lock_guard<std::mutex> held(c.lock);

	if (!c.ways.insert(way).second)
		return false;
	if (FILE *f = fopen(c.set.fail + 4, "ae")) {
		fprintf(f, "%s\n", way.c_str());
		fclose(f);
	}
	return true;
}

/* An error that this use of a call is to have. */
static cudaError_t wanted(const char *name, cudaError_t kind)
{
	calls &c = all();
	const char *fail = c.set.fail;
	size_t n = strlen(name);

	if (!fail)
		return cudaSuccess;
	if (strncmp(fail, "new:", 4) == 0)
		return fails_as_new(c, name) ? kind : cudaSuccess;
	if (strncmp(fail, name, n) != 0 || fail[n] != ':')
		return cudaSuccess;
	std::lock_guard<std::mutex> held(c.lock);
	char *end;
	unsigned long which = strtoul(fail + n + 1, &end, 10);
	if (++c.uses[name] != which)
		return cudaSuccess;
	return *end == ':' ? (cudaError_t)atoi(end + 1) : kind;
}

static cudaError_t noted(cudaError_t rc)
{
	if (rc)
		last = rc;
	if (rc == cudaErrorIllegalAddress)
		all().for_ever = rc;
	return rc;
}

/* A call: one that fails does nothing. */
template <class F> static cudaError_t call(const char *name, cudaError_t kind, F fn)
{
	cudaError_t rc = all().for_ever;

	if (!rc)
		rc = wanted(name, kind);
	return noted(rc ? rc : fn());
}

/* One that waits or gives back: it tells of failures of what went before, and does what it should all the same. */
template <class F> static cudaError_t call_after(const char *name, F fn)
{
	cudaError_t before = all().for_ever, rc = wanted(name, cudaErrorUnknown), done = fn();

	return noted(before ? before : rc ? rc : done);
}

static bool is_device(int device)
{
	return device >= 0 && device < set().devices;
}

/* Of the program, open, or one of those that have no name. */
static stand_in_stream *known(cudaStream_t s)
{
	stand_in_stream *found = stream_of(s, current);

	if (is_open(found))
		return found;
	complain("a stream is used that is not there");
	return nullptr;
}

static bool is_known(cudaEvent_t e)
{
	calls &c = all();
	std::lock_guard<std::mutex> held(c.lock);

	if (c.events.count(e))
		return true;
	complain("an event is used that is not there");
	return false;
}

} /* namespace stand_in */

/* ---- devices ---- */

cudaError_t cudaDriverGetVersion(int *version)
{
	return call("cudaDriverGetVersion", cudaErrorUnknown, [&] {
		*version = set().devices ? CUDART_VERSION : 0;
		return cudaSuccess;
	});
}

cudaError_t cudaGetDeviceCount(int *n)
{
	return call("cudaGetDeviceCount", cudaErrorInsufficientDriver, [&] {
		*n = set().devices;
		return *n ? cudaSuccess : cudaErrorNoDevice;
	});
}

cudaError_t cudaSetDevice(int device)
{
	return call("cudaSetDevice", cudaErrorDevicesUnavailable, [&] {
		if (!is_device(device))
			return cudaErrorInvalidDevice;
		current = device;
		return cudaSuccess;
	});
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device)
{
	return call("cudaDeviceGetAttribute", cudaErrorUnknown, [&] {
		if (!is_device(device))
			return cudaErrorInvalidDevice;
		switch (which) {
		case cudaDevAttrClockRate: *value = 1234567; break;
		case cudaDevAttrMemoryClockRate: *value = 765432; break;
		case cudaDevAttrMultiProcessorCount: *value = MULTIPROCESSORS; break;
		case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
		default: return cudaErrorInvalidValue;
		}
		return cudaSuccess;
	});
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
	return call("cudaGetDeviceProperties", cudaErrorUnknown, [&] {
		if (!is_device(device))
			return cudaErrorInvalidDevice;
		*p = {{}, 9, 1, MULTIPROCESSORS, 384, 3, 0, 0};
		snprintf(p->name, sizeof(p->name), "Stand-in %d", device);
		return cudaSuccess;
	});
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int len, int device)
{
	return call("cudaDeviceGetPCIBusId", cudaErrorUnknown, [&] {
		if (!is_device(device))
			return cudaErrorInvalidDevice;
		/* Where no machine has anything. */
		return snprintf(text, (size_t)len, "FFFF:%02X:1F.0", 0xe0 + device) < len ? cudaSuccess : cudaErrorInvalidValue;
	});
}

/* The first two reach each other, no others do. */
static bool can_reach(int device, int peer)
{
	return device != peer && device < 2 && peer < 2;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	return call("cudaDeviceCanAccessPeer", cudaErrorUnknown, [&] {
		if (!is_device(device) || !is_device(peer))
			return cudaErrorInvalidDevice;
		*can = can_reach(device, peer);
		return cudaSuccess;
	});
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned)
{
	return call("cudaDeviceEnablePeerAccess", cudaErrorUnknown, [&] {
		if (!is_device(peer) || peer == current)
			return cudaErrorInvalidDevice;
		if (!can_reach(current, peer))
			return cudaErrorPeerAccessUnsupported;
		return all().peers[current][peer].exchange(true) ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess;
	});
}

cudaError_t cudaDeviceSynchronize()
{
	return call_after("cudaDeviceSynchronize", [] {
		wait_for_device(current);
		return cudaSuccess;
	});
}

cudaError_t stand_in_occupancy(int *blocks)
{
	return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", cudaErrorUnknown, [&] {
		*blocks = BLOCKS_EACH;
		return cudaSuccess;
	});
}

cudaError_t cudaGetLastError()
{
	cudaError_t rc = last;

	last = all().for_ever;
	return rc;
}

const char *cudaGetErrorString(cudaError_t rc)
{
	static thread_local char text[32];

	snprintf(text, sizeof(text), "error %d", (int)rc);
	return text;
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	return call("cudaMemGetInfo", cudaErrorUnknown, [&] {
		*total = set().memory_bytes;
		*free = set().memory_bytes - CONTEXT_BYTES - taken_bytes(current);
		return cudaSuccess;
	});
}

static cudaError_t take_for(void **p, place where, size_t bytes, double cost)
{
	double begin_s = now_s();

	if (where == ON_DEVICE && taken_bytes(current) + bytes > set().memory_bytes - CONTEXT_BYTES)
		return cudaErrorMemoryAllocation;
	*p = take(where, current, bytes);
	hold(begin_s + cost_s(cost));
	return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
	return call("cudaMalloc", cudaErrorMemoryAllocation, [&] { return take_for(p, ON_DEVICE, bytes, speeds::malloc_s); });
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
	return call("cudaHostAlloc", cudaErrorMemoryAllocation, [&] { return take_for(p, PINNED, bytes, 0); });
}

/* Work that may use it is done first. */
static cudaError_t free_from(void *p, place where, double cost)
{
	whereabouts at;

	if (!p)
		return cudaSuccess;
	for (int d = 0; d < set().devices; d++)
		if (!find(p, 1, &at) || at.where == PINNED || at.device == d)
			wait_for_device(d);
	double begin_s = now_s();
	bool was_there = give_back(where, p);
	hold(begin_s + cost_s(cost));
	return was_there ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaFree(void *p)
{
	return call_after("cudaFree", [&] { return free_from(p, ON_DEVICE, speeds::free_s); });
}

cudaError_t cudaFreeHost(void *p)
{
	return call_after("cudaFreeHost", [&] { return free_from(p, PINNED, 0); });
}

static bool is_there(const void *p, size_t bytes, whereabouts *at)
{
	if (find(p, bytes, at))
		return true;
	complain("a copy goes beyond the end of memory, or to what was given back");
	return false;
}

static cudaError_t copy_on(void *to, const void *from, size_t bytes, stand_in_stream *s)
{
	whereabouts to_at, from_at;

	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (!bytes)
		return cudaSuccess;
	if (!is_there(to, bytes, &to_at) || !is_there(from, bytes, &from_at))
		return cudaErrorInvalidValue;
	return copy(s, (char *)to, to_at, (const char *)from, from_at, bytes);
}

static cudaError_t copy_call(const char *name, void *to, const void *from, size_t bytes, cudaStream_t stream, bool waits)
{
	return call(name, cudaErrorUnknown, [&] {
		double begin_s = now_s();
		stand_in_stream *s = known(stream);
		cudaError_t rc = copy_on(to, from, bytes, s);
		if (waits && !rc)
			rc = wait_for(s);
		hold(begin_s + cost_s(speeds::copy_submit_s));
		return rc;
	});
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
	return copy_call("cudaMemcpy", to, from, bytes, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
	return copy_call("cudaMemcpyAsync", to, from, bytes, stream, false);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
	whereabouts to_at, from_at;

	if (find(to, bytes, &to_at) && find(from, bytes, &from_at) && (to_at.where != ON_DEVICE || to_at.device != to_device ||
		from_at.where != ON_DEVICE || from_at.device != from_device))
		complain("a copy between GPUs of memory that is not theirs");
	return copy_call("cudaMemcpyPeerAsync", to, from, bytes, stream, false);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
	return call("cudaMemsetAsync", cudaErrorUnknown, [&] {
		stand_in_stream *s = known(stream);
		whereabouts at;
		if (!s)
			return cudaErrorInvalidResourceHandle;
		if (!is_there(p, bytes, &at) || at.where == PAGEABLE)
			return cudaErrorInvalidValue;
		return give(s, [=](double begin_s) {
			device_access access;
			memset(p, value, bytes);
			return begin_s + cost_s(speeds::launch_s + (double)bytes / speeds::read_bytes_s);
		});
	});
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
	return call("cudaStreamCreateWithFlags", cudaErrorMemoryAllocation, [&] {
		*stream = open_stream(current);
		return cudaSuccess;
	});
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return call_after("cudaStreamDestroy", [&] {
		stand_in_stream *s = stream ? known(stream) : nullptr;
		if (!s)
			return cudaErrorInvalidResourceHandle;
		close_stream(s);
		return cudaSuccess;
	});
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return call_after("cudaStreamSynchronize", [&] {
		stand_in_stream *s = known(stream);
		if (!s)
			return cudaErrorInvalidResourceHandle;
		cudaError_t rc = wait_for(s);
		hold(now_s() + cost_s(speeds::wait_s));
		return rc;
	});
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return call_after("cudaStreamQuery", [&] {
		stand_in_stream *s = known(stream);
		return !s ? cudaErrorInvalidResourceHandle : is_idle(s) ? cudaSuccess : cudaErrorNotReady;
	});
}

static std::shared_ptr<moment> last_of(cudaEvent_t e)
{
	std::lock_guard<std::mutex> held(e->lock);

	return e->last;
}

/* Whatever device either is of. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
	return call("cudaStreamWaitEvent", cudaErrorUnknown, [&] {
		stand_in_stream *s = known(stream);
		if (!s || !is_known(event))
			return cudaErrorInvalidResourceHandle;
		std::shared_ptr<moment> m = last_of(event);
		if (!m)
			return cudaSuccess;
		return give(s, [m](double begin_s) {
			m->reached.wait(false, std::memory_order_acquire);
			return std::max(begin_s, m->at_s);
		});
	});
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return call("cudaEventCreate", cudaErrorMemoryAllocation, [&] {
		calls &c = all();
		std::lock_guard<std::mutex> held(c.lock);
		*event = new stand_in_event{current, {}, nullptr};
		c.events.insert(*event);
		return cudaSuccess;
	});
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	return call_after("cudaEventDestroy", [&] {
		if (!is_known(event))
			return cudaErrorInvalidResourceHandle;
		calls &c = all();
		std::lock_guard<std::mutex> held(c.lock);
		c.events.erase(event);
		delete event;
		return cudaSuccess;
	});
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return call("cudaEventRecord", cudaErrorUnknown, [&] {
		stand_in_stream *s = known(stream);
		if (!s || !is_known(event) || device_of(s) != event->device)
			return cudaErrorInvalidResourceHandle;
		auto m = std::make_shared<moment>();
		cudaError_t rc = give(s, [m](double begin_s) {
			m->reach(begin_s);
			return begin_s;
		});
		std::lock_guard<std::mutex> held(event->lock);
		if (!rc)
			event->last = m;
		return rc;
	});
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return call_after("cudaEventQuery", [&] {
		if (!is_known(event))
			return cudaErrorInvalidResourceHandle;
		std::shared_ptr<moment> m = last_of(event);
		return !m || m->passed() ? cudaSuccess : cudaErrorNotReady;
	});
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return call_after("cudaEventSynchronize", [&] {
		if (!is_known(event))
			return cudaErrorInvalidResourceHandle;
		if (std::shared_ptr<moment> m = last_of(event))
			m->wait();
		return cudaSuccess;
	});
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
	return call("cudaEventElapsedTime", cudaErrorUnknown, [&] {
		if (!is_known(begin) || !is_known(end) || begin->device != end->device)
			return cudaErrorInvalidResourceHandle;
		std::shared_ptr<moment> from = last_of(begin), to = last_of(end);
		if (!from || !to)
			return cudaErrorInvalidResourceHandle;
		if (!from->passed() || !to->passed())
			return cudaErrorNotReady;
		*ms = (float)((to->at_s - from->at_s) * 1e3);
		return cudaSuccess;
	});
}

/* ---- kernels and graphs ---- */

void stand_in_launch(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread)
{
	call("cudaLaunchKernel", cudaErrorLaunchOutOfResources, [&] {
		stand_in_stream *s = known(stream);
		uint64_t threads = (uint64_t)block.x * block.y * block.z;
		if (!s || device_of(s) != current)
			return cudaErrorInvalidResourceHandle;
		if (!threads || threads > 1024 || !grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535)
			return cudaErrorInvalidConfiguration;
		return give_kernel(s, {grid, block, std::move(thread)});
	});
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
	return call("cudaStreamBeginCapture", cudaErrorUnknown, [&] {
		stand_in_stream *s = known(stream);
		return s ? begin_capture(s) : cudaErrorInvalidResourceHandle;
	});
}

static cudaGraph_t add_graph(std::vector<kernel> kernels)
{
	calls &c = all();
	std::lock_guard<std::mutex> held(c.lock);
	cudaGraph_t g = new stand_in_graph{std::move(kernels)};

	c.graphs.insert(g);
	return g;
}

static bool remove_graph(cudaGraph_t g)
{
	calls &c = all();
	std::lock_guard<std::mutex> held(c.lock);

	if (!c.graphs.erase(g))
		return false;
	delete g;
	return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	return call_after("cudaStreamEndCapture", [&] {
		stand_in_stream *s = known(stream);
		std::vector<kernel> kernels;
		*graph = nullptr;
		cudaError_t rc = s ? end_capture(s, &kernels) : cudaErrorInvalidResourceHandle;
		if (!rc)
			*graph = add_graph(std::move(kernels));
		return rc;
	});
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long)
{
	return call("cudaGraphInstantiate", cudaErrorUnknown, [&] {
		*made = add_graph(graph->kernels);
		return cudaSuccess;
	});
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
	return call("cudaGraphLaunch", cudaErrorUnknown, [&] {
		stand_in_stream *s = known(stream);
		return s ? give_graph(s, graph->kernels) : cudaErrorInvalidResourceHandle;
	});
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
	return call_after("cudaGraphExecDestroy", [&] { return remove_graph(graph) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return call_after("cudaGraphDestroy", [&] { return remove_graph(graph) ? cudaSuccess : cudaErrorInvalidValue; });
}
