#include "hw/cuda/executor.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <queue>
#include <sys/statvfs.h>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "hw/cuda/failure.h"
#include "hw/cuda/host_team.h"
#include "hw/cuda/host_work.h"

namespace {

const uint64_t PAGE = 4096, PIECE = (uint64_t)4 << 20, CHECK_PIECE = (uint64_t)16 << 20;
/* A kernel of the CPU is divided into this many pieces for each thread, or more. */
const uint64_t SHARES = 8, LARGEST_SHARE = (uint64_t)256 << 10;
/* Buffers are salted by their number; these are not numbers of buffers. */
const uint64_t SALT_GUARD = 0xfffff, SALT_POISON = 0xffffe;
/* Memory of a GPU is given out by pages of its own. */
const uint64_t GPU_PAGE = (uint64_t)2 << 20;
const int DRIVE = -2, NOWHERE = -1;
enum op_class { ON_DEVICE, ON_HOST, SOFT };
enum op_state : uint8_t { OP_NEW, OP_SUBMITTED, OP_ENDED };

/* What a buffer holds from its beginning on: these bytes of another as it was at first. */
struct content {
	int origin; /* NOWHERE: not known */
	uint64_t at, bytes;
};

struct placed_buffer {
	int device;       /* HOST, DRIVE, or a number */
	uint64_t padded;  /* whole pages */
	char *base;       /* in memory, between two guards of a page; NULL: in the file */
	uint64_t offset;  /* in the file */
	content holds;
};

/* Bytes `at` of one buffer to `into` of another, round neither's end. */
struct stretch {
	uint64_t at, into, len;
};

struct lane {
	std::vector<uint32_t> ops;
	int stream = -1;              /* of the backend; -1: it gives nothing to a device */
	int device = HOST;
	std::unique_ptr<host_team> team;
	char *bounce[2] = {};         /* pinned; for what is on a drive */
	std::vector<bool> seen;       /* by operation: what is submitted from now on comes after it */
	std::atomic<size_t> issued{0}; /* of ops: submitted, or ended on the host */
	size_t retired = 0;           /* of ops: known to have ended by whoever watches */
	double free_s = 0;            /* when the last one on the host ended */
};

struct csr {
	std::vector<uint32_t> first, to;
};

} /* namespace */

struct executor {
	const op_graph &g;
	backend &b;
	executor_options o;
	std::vector<op_class> kind;
	csr before;                      /* operation -> what it waits for, but the end of a step */
	csr soft_after;                  /* operation -> joins, steps and waits that wait for it, that of steps with it */
	std::vector<uint32_t> n_before;  /* of these */
	std::vector<placed_buffer> buffers;
	std::vector<std::unique_ptr<lane>> lanes; /* by unit, then one for what needs none */
	int fd = -1;
	/* the run at hand */
	std::vector<std::atomic<uint8_t>> state;
	std::vector<uint32_t> pending;
	std::vector<uint32_t> order;
	std::atomic<uint32_t> n_order{0};
	std::atomic<bool> go{false}, stop{false};
	std::mutex lock; /* of error */
	std::exception_ptr error;
	executor_times times;
	std::priority_queue<std::pair<double, uint32_t>, std::vector<std::pair<double, uint32_t>>, std::greater<>> clock;
	size_t n_ended = 0;
	double begin_s = 0;

	executor(const op_graph &graph, backend &hardware, const executor_options &options)
		: g(graph), b(hardware), o(options), state(graph.ops.size()) {}

	~executor()
	{
		if (fd >= 0)
			close(fd);
	}
};

/* ---- the graph ---- */

static int device_of_memory(const op_graph &g, int memory)
{
	int n = 0;

	if (g.memories[(size_t)memory].kind != MEMORY_GPU)
		return g.memories[(size_t)memory].kind == MEMORY_DRIVE ? DRIVE : HOST;
	for (const op_device &d : g.devices) {
		if (d.gpu && d.memory == memory)
			return n;
		n += d.gpu;
	}
	throw failure(EXIT_BAD_INPUT, "memory '" + g.memories[(size_t)memory].name + "' belongs to no GPU of the graph");
}

static int device_of_kernel(const op_graph &g, const op &o)
{
	int n = 0;

	if (!g.devices[(size_t)o.device].gpu)
		return HOST;
	for (int i = 0; i < o.device; i++)
		n += g.devices[(size_t)i].gpu;
	return n;
}

/* Where an operation is done: HOST, or on that device's stream. */
static int device_of(const executor &e, const op &o)
{
	if (o.kind == OP_KERNEL)
		return device_of_kernel(e.g, o);
	if (o.kind != OP_COPY)
		return HOST;
	int from = e.buffers[(size_t)o.from].device, to = e.buffers[(size_t)o.to].device;
	return from == DRIVE || to == DRIVE ? HOST : to >= 0 ? to : from;
}

static op_class class_of(const executor &e, const op &o)
{
	if (o.kind == OP_JOIN || o.kind == OP_STEP || (o.unit < 0 && !o.bytes && !(o.flops > 0)))
		return SOFT;
	return device_of(e, o) == HOST ? ON_HOST : ON_DEVICE;
}

static void make_dependencies(executor &e)
{
	const op_graph &g = e.g;
	std::vector<int64_t> last(g.units.size(), -1);
	size_t n = g.ops.size();

	e.before.first.assign(n + 1, 0);
	e.n_before.assign(n, 0);
	e.soft_after.first.assign(n + 1, 0);
	for (size_t id = 0; id < n; id++) {
		const op &o = g.ops[id];
		e.before.to.insert(e.before.to.end(), g.after.begin() + o.after_begin, g.after.begin() + o.after_end);
		if (o.stream >= 0) {
			if (last[(size_t)o.stream] >= 0)
				e.before.to.push_back((uint32_t)last[(size_t)o.stream]);
			last[(size_t)o.stream] = (int64_t)id;
		}
		e.before.first[id + 1] = (uint32_t)e.before.to.size();
	}
	/* The other way round, to what is soft: twice over all, to count and to place. */
	for (int place = 0; place < 2; place++) {
		auto edge = [&](uint32_t before, uint32_t after) {
			if (place)
				e.soft_after.to[e.soft_after.first[before]++] = after;
			else
				e.soft_after.first[before + 1]++, e.n_before[after]++;
		};
		for (uint32_t id = 0; id < n; id++) {
			if (e.kind[id] != SOFT)
				continue;
			for (uint32_t k = e.before.first[id]; k < e.before.first[id + 1]; k++)
				edge(e.before.to[k], id);
			if ((uint64_t)g.ops[id].step >= g.ahead)
				edge(g.step_end[(size_t)g.ops[id].step - g.ahead], id);
		}
		if (place) {
			for (size_t i = n; i > 0; i--)
				e.soft_after.first[i] = e.soft_after.first[i - 1];
			e.soft_after.first[0] = 0;
		} else {
			for (size_t i = 0; i < n; i++)
				e.soft_after.first[i + 1] += e.soft_after.first[i];
			e.soft_after.to.resize(e.soft_after.first[n]);
		}
	}
}

/* ---- buffers ---- */

static std::string size_text(uint64_t bytes)
{
	char text[32];

	if (bytes < (uint64_t)1 << 30)
		std::snprintf(text, sizeof(text), "%.1f MiB", (double)bytes / (1 << 20));
	else
		std::snprintf(text, sizeof(text), "%.2f GiB", (double)bytes / (1 << 30));
	return text;
}

static void check_room(const std::string &where, uint64_t need, uint64_t have)
{
	if (need > have)
		throw failure(EXIT_FAILED, "the buffers need " + size_text(need) + " of " + where + ", of which " + size_text(have) +
			" are free; a smaller model or a shorter context would do");
}

/* Memory is pageable when every copy says so of it, and no kernel reads it over the link. */
static std::vector<bool> find_pinned(const executor &e)
{
	std::vector<bool> pinned(e.g.buffers.size(), false), pageable(pinned);

	for (const op &o : e.g.ops)
		for (int buffer : {o.from, o.to})
			if (buffer >= 0 && device_of(e, o) != HOST)
				(o.pinned || o.kind == OP_KERNEL ? pinned : pageable)[(size_t)buffer] = true;
	for (size_t i = 0; i < pinned.size(); i++)
		pinned[i] = pinned[i] || (e.g.buffers[i].role == ROLE_STAGING && !pageable[i]);
	return pinned;
}

static void place_buffers(executor &e)
{
	std::vector<uint64_t> need((size_t)e.b.devices() + 1, 0); /* the host's last */
	uint64_t in_file = 0;

	for (const op_buffer &spec : e.g.buffers) {
		placed_buffer p = {device_of_memory(e.g, spec.memory), (spec.bytes + PAGE - 1) / PAGE * PAGE, nullptr, 0,
			{NOWHERE, 0, 0}};
		if (p.device >= e.b.devices())
			throw failure(EXIT_FAILED, "the graph has more GPUs than the " + std::to_string(e.b.devices()) + " of this machine");
		if (p.device == DRIVE) {
			p.offset = in_file;
			in_file += p.padded;
		} else {
			uint64_t taken = p.padded + 2 * PAGE;
			if (p.device != HOST && taken > GPU_PAGE / 2)
				taken = (taken + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE;
			need[p.device == HOST ? need.size() - 1 : (size_t)p.device] += taken;
		}
		e.buffers.push_back(p);
	}
	for (int d = 0; d < e.b.devices(); d++)
		check_room("memory of GPU " + std::to_string(d), need[(size_t)d], need[(size_t)d] ? e.b.memory_available(d) : 0);
	check_room("host memory", need.back(), e.b.memory_available(HOST));
	if (in_file) {
		struct statvfs fs;
		check_room("the drive of '" + e.o.dir + "'", in_file,
			statvfs(e.o.dir.c_str(), &fs) ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize);
	}
}

[[noreturn]] static void drive_failure(const executor &e, const char *what)
{
	throw failure(EXIT_FAILED, std::string("cannot ") + what + " a file in '" + e.o.dir + "': " + std::strerror(errno));
}

static void transfer(const executor &e, bool write, char *p, uint64_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = write ? pwrite(e.fd, p, len, (off_t)offset) : pread(e.fd, p, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : EIO;
			drive_failure(e, write ? "write" : "read");
		}
		p += n;
		len -= (uint64_t)n;
		offset += (uint64_t)n;
	}
}

static void open_file(executor &e)
{
	std::string path = e.o.dir + "/offsim-cuda-XXXXXX";

	e.fd = mkostemp(&path[0], O_CLOEXEC);
	if (e.fd < 0)
		drive_failure(e, "make");
	unlink(path.c_str());
	if (fcntl(e.fd, F_SETFL, fcntl(e.fd, F_GETFL) | O_DIRECT))
		throw failure(EXIT_FAILED, "files in '" + e.o.dir + "' cannot be read around the page cache; name a folder on a drive");
}

static void look_for_interrupt()
{
	if (interrupted)
		throw failure(EXIT_FAILED, "interrupted");
}

static void fill_buffer(executor &e, size_t i, bool pinned, host_team &all, char *piece)
{
	placed_buffer &p = e.buffers[i];
	uint64_t salt = e.g.buffers[i].role == ROLE_STAGING ? SALT_POISON : i;

	look_for_interrupt();
	p.holds = {e.g.buffers[i].role == ROLE_STAGING ? NOWHERE : (int)i, 0, 0};
	if (p.device == DRIVE) {
		for (uint64_t at = 0; at < p.padded; at += PIECE) {
			uint64_t n = std::min(PIECE, p.padded - at);
			look_for_interrupt();
			e.b.fill(HOST, piece, n, salt, at / 8);
			transfer(e, true, piece, n, p.offset + at);
		}
		return;
	}
	if (!p.base)
		p.base = e.b.take(p.device, pinned, p.padded + 2 * PAGE) + PAGE;
	e.b.fill(p.device, p.base - PAGE, PAGE, SALT_GUARD, 0);
	e.b.fill(p.device, p.base + p.padded, PAGE, SALT_GUARD, 0);
	if (p.device != HOST) {
		e.b.fill(p.device, p.base, p.padded, salt, 0);
		return;
	}
	std::atomic<uint64_t> next{0};
	all.run([&](unsigned) {
		for (uint64_t at; (at = next.fetch_add(PIECE)) < p.padded && !interrupted;)
			e.b.fill(HOST, p.base + at, std::min(PIECE, p.padded - at), salt, at / 8);
	});
}

static void fill_buffers(executor &e)
{
	std::vector<bool> pinned = find_pinned(e);
	host_team all(host_processors());
	char *piece = nullptr;

	for (const placed_buffer &p : e.buffers)
		if (p.device == DRIVE && e.fd < 0) {
			piece = e.b.take(HOST, false, PIECE);
			open_file(e);
		}
	for (size_t i = 0; i < e.buffers.size(); i++)
		fill_buffer(e, i, pinned[i], all, piece);
	/* What is still on its way to the drive would be in the way of reads. */
	if (e.fd >= 0 && fdatasync(e.fd))
		drive_failure(e, "write");
	look_for_interrupt();
}

/* ---- copies ---- */

template <class F> static void each_stretch(const executor &e, const op &o, uint64_t most, F fn)
{
	uint64_t from_bytes = e.g.buffers[(size_t)o.from].bytes, to_bytes = e.g.buffers[(size_t)o.to].bytes;

	for (uint64_t done = 0; done < o.bytes && !e.stop;) {
		uint64_t at = (o.at + done) % from_bytes, into = (o.into + done) % to_bytes;
		uint64_t len = std::min(std::min(o.bytes - done, most), std::min(from_bytes - at, to_bytes - into));
		fn(stretch{at, into, len});
		done += len;
	}
}

/* The whole pages around a stretch on the drive, from or to p: the byte `at` is at p[at % PAGE]. */
static void transfer_pages(const executor &e, int buffer, bool write, uint64_t at, uint64_t len, char *p)
{
	uint64_t first = at / PAGE * PAGE, last = (at + len + PAGE - 1) / PAGE * PAGE;

	transfer(e, write, p, last - first, e.buffers[(size_t)buffer].offset + first);
}

/* A pipeline of two: member 0 fills one of two pinned buffers while member 1 empties the other. */
static void copy_over_bounce(executor &e, lane &l, const op &o)
{
	const placed_buffer &from = e.buffers[(size_t)o.from], &to = e.buffers[(size_t)o.to];
	std::vector<stretch> parts;

	each_stretch(e, o, PIECE, [&](stretch s) { parts.push_back(s); });
	for (size_t round = 0; round <= parts.size() && !e.stop; round++) {
		std::exception_ptr bad[2];
		l.team->run([&](unsigned member) {
			try {
				if (member == 0 && round < parts.size()) {
					const stretch &s = parts[round];
					if (from.device == DRIVE)
						transfer_pages(e, o.from, false, s.at, s.len, l.bounce[round % 2]);
					else
						e.b.copy_now(l.bounce[round % 2] + s.into % PAGE, from.base + s.at, s.len);
				} else if (member == 1 && round > 0) {
					const stretch &s = parts[round - 1];
					if (to.device == DRIVE)
						transfer_pages(e, o.to, true, s.into, s.len, l.bounce[(round - 1) % 2]);
					else
						e.b.copy_now(to.base + s.into, l.bounce[(round - 1) % 2] + s.at % PAGE, s.len);
				}
			} catch (...) {
				bad[member] = std::current_exception();
			}
		});
		for (const std::exception_ptr &why : bad)
			if (why)
				std::rethrow_exception(why);
	}
}

/* A whole number of pages, to where pages begin: without a stop. What is read of the last one lies in the padding. */
static bool goes_straight(const executor &e, const op &o)
{
	return e.buffers[(size_t)o.from].device == DRIVE && e.buffers[(size_t)o.to].device == HOST && o.via < 0 &&
	       o.at % PAGE == 0 && o.into % PAGE == 0 && o.at + o.bytes <= e.g.buffers[(size_t)o.from].bytes &&
	       o.into + o.bytes <= e.g.buffers[(size_t)o.to].bytes;
}

static void copy_on_host(executor &e, lane &l, const op &o)
{
	const placed_buffer &from = e.buffers[(size_t)o.from], &to = e.buffers[(size_t)o.to];

	if (from.device == HOST && to.device == HOST)
		each_stretch(e, o, UINT64_MAX, [&](stretch s) { std::memmove(to.base + s.into, from.base + s.at, s.len); });
	else if (goes_straight(e, o))
		each_stretch(e, o, PIECE, [&](stretch s) { transfer_pages(e, o.from, false, s.at, s.len, to.base + s.into); });
	else
		copy_over_bounce(e, l, o);
}

static void copied(executor &e, const op &o)
{
	const content &from = e.buffers[(size_t)o.from].holds;
	content to = {from.origin, from.at + o.at, o.bytes};

	/* Not from where it is known on, or not all of it, or round again. */
	if (e.g.buffers[(size_t)o.to].role != ROLE_STAGING || o.into || o.bytes > e.g.buffers[(size_t)o.to].bytes ||
		(from.bytes && o.at + o.bytes > from.bytes))
		to.origin = NOWHERE;
	e.buffers[(size_t)o.to].holds = to;
}

/* ---- afterwards ---- */

[[noreturn]] static void wrong(const executor &e, size_t buffer, const char *what)
{
	throw failure(EXIT_FAILED, "buffer " + std::to_string(buffer) + " in " +
		e.g.memories[(size_t)e.g.buffers[buffer].memory].name + " " + what +
		": something was copied wrongly, or this machine's memory fails");
}

/* len bytes at p are those from byte `at` on of a buffer with this salt? */
static bool holds(const executor &e, const char *p, uint64_t at, uint64_t len, uint64_t salt, char *piece)
{
	e.b.copy_now(piece, p, len);
	for (uint64_t i = 0, n; i < len; i += n) {
		uint64_t word = op_pattern(salt, (at + i) / 8);
		uint64_t skip = (at + i) % 8;
		n = std::min(8 - skip, len - i);
		if (std::memcmp(piece + i, (const char *)&word + skip, n) != 0)
			return false;
	}
	return true;
}

static void check_buffers(const executor &e)
{
	std::vector<char> piece(CHECK_PIECE);

	for (size_t i = 0; i < e.buffers.size(); i++) {
		const placed_buffer &p = e.buffers[i];
		if (!p.base)
			continue;
		if (!holds(e, p.base - PAGE, 0, PAGE, SALT_GUARD, piece.data()) ||
			!holds(e, p.base + p.padded, 0, PAGE, SALT_GUARD, piece.data()))
			wrong(e, i, "was written beyond its ends");
		uint64_t size = p.holds.origin < 0 ? 1 : e.g.buffers[(size_t)p.holds.origin].bytes;
		for (uint64_t done = 0, n; p.holds.origin >= 0 && done < p.holds.bytes; done += n) {
			uint64_t at = (p.holds.at + done) % size;
			n = std::min(std::min(CHECK_PIECE, p.holds.bytes - done), size - at);
			if (!holds(e, p.base + done, at, n, (uint64_t)p.holds.origin, piece.data()))
				wrong(e, i, "does not hold what was copied into it");
		}
	}
}

/* When each one had its place, from what ended before; contents in the order in which copies ended; kernels read all. */
static void conclude(executor &e)
{
	executor_times &t = e.times;
	std::vector<double> free_s(e.lanes.size(), 0);
	std::vector<uint32_t> by_end(e.g.ops.size());

	for (uint32_t id = 0; id < e.g.ops.size(); id++) {
		const op &o = e.g.ops[id];
		double *free = &free_s[o.unit < 0 ? e.lanes.size() - 1 : (size_t)o.unit];
		double ready_s = e.kind[id] == SOFT ? 0 : *free;
		for (uint32_t k = e.before.first[id]; k < e.before.first[id + 1]; k++)
			ready_s = std::max(ready_s, t.end_s[e.before.to[k]]);
		if ((uint64_t)o.step >= e.g.ahead)
			ready_s = std::max(ready_s, t.end_s[e.g.step_end[(size_t)o.step - e.g.ahead]]);
		/* Two clocks may differ by a microsecond. */
		t.end_s[id] = std::max(t.end_s[id], ready_s);
		t.start_s[id] = ready_s;
		if (e.kind[id] != SOFT)
			*free = t.end_s[id];
		if (e.kind[id] == ON_DEVICE && o.kind == OP_KERNEL) {
			t.moved_bytes[id] = std::min(e.b.moved(id), o.bytes);
			if (t.moved_bytes[id] != o.bytes)
				throw failure(EXIT_FAILED, "operation " + std::to_string(id) + " read " + std::to_string(t.moved_bytes[id]) +
					" of " + std::to_string(o.bytes) + " bytes");
		} else {
			t.moved_bytes[id] = o.bytes;
		}
		by_end[id] = id;
	}
	std::stable_sort(by_end.begin(), by_end.end(), [&](uint32_t x, uint32_t y) { return t.end_s[x] < t.end_s[y]; });
	for (uint32_t id : by_end)
		if (e.g.ops[id].kind == OP_COPY && e.g.ops[id].bytes)
			copied(e, e.g.ops[id]);
	for (uint32_t id : by_end)
		if (e.kind[id] == SOFT)
			e.order[e.n_order++] = id;
	t.order = e.order;
}

/* ---- the threads of units ---- */

static double now(const executor &e)
{
	return clock_now() - e.begin_s;
}

/* False: it is over. */
static bool await(executor &e, uint32_t id, op_state state)
{
	for (unsigned i = 0; e.state[id].load(std::memory_order_acquire) < state; i++) {
		if (e.stop)
			return false;
		spin(i);
	}
	return true;
}

/* What the stream gets from here on comes after all that this operation waits for. Through joins, for a stream can wait
   for their parts and this thread need not. */
static bool order_stream(executor &e, lane &l, uint32_t id, std::vector<uint32_t> &stack)
{
	stack.assign(e.before.to.begin() + e.before.first[id], e.before.to.begin() + e.before.first[id + 1]);
	while (!stack.empty()) {
		uint32_t d = stack.back();
		const op &o = e.g.ops[d];
		stack.pop_back();
		if (l.seen[d])
			continue;
		l.seen[d] = true;
		if (e.state[d].load(std::memory_order_acquire) == OP_ENDED)
			continue;
		if (e.kind[d] == SOFT && !(o.latency_s > 0)) {
			stack.insert(stack.end(), e.before.to.begin() + e.before.first[d], e.before.to.begin() + e.before.first[d + 1]);
		} else if (e.kind[d] == ON_DEVICE) {
			if (!await(e, d, OP_SUBMITTED))
				return false;
			if (e.lanes[o.unit < 0 ? e.lanes.size() - 1 : (size_t)o.unit].get() != &l)
				e.b.after(l.stream, d);
		} else if (!await(e, d, OP_ENDED)) {
			return false;
		}
	}
	return true;
}

static void submit(executor &e, lane &l, uint32_t id)
{
	const op &o = e.g.ops[id];

	if (o.kind == OP_COPY) {
		const placed_buffer &from = e.buffers[(size_t)o.from], &to = e.buffers[(size_t)o.to];
		each_stretch(e, o, UINT64_MAX, [&](stretch s) { e.b.copy(l.stream, to.base + s.into, from.base + s.at, s.len); });
	} else {
		const placed_buffer *from = o.bytes ? &e.buffers[(size_t)o.from] : nullptr;
		e.b.kernel(l.stream, {from ? from->base : nullptr, from ? from->padded : 0, o.at, o.bytes, o.flops, o.fp32,
			o.latency_s, id});
	}
	e.b.mark(l.stream, id);
}

static void kernel_on_host(executor &e, lane &l, const op &o)
{
	static const char nothing[PAGE] = {};
	uint64_t bytes = (o.bytes + HOST_WORK_UNIT - 1) / HOST_WORK_UNIT * HOST_WORK_UNIT;
	uint64_t share = bytes / (SHARES * l.team->size()) / HOST_WORK_UNIT * HOST_WORK_UNIT;
	std::atomic<uint64_t> next{0};
	std::atomic<float> keep{0};

	share = std::min(std::max(share, HOST_WORK_UNIT * 64), LARGEST_SHARE);
	l.team->run([&](unsigned) {
		float sum = 0;
		if (!bytes)
			sum = host_work(nothing, 0, PAGE, o.flops / 2 / (PAGE / sizeof(float)) / l.team->size(), &e.stop);
		for (uint64_t at; (at = next.fetch_add(share)) < bytes && !e.stop;) {
			const placed_buffer &from = e.buffers[(size_t)o.from];
			for (uint64_t done = 0, n; done < std::min(share, bytes - at); done += n) {
				uint64_t place = (o.at / HOST_WORK_UNIT * HOST_WORK_UNIT + at + done) % from.padded;
				n = std::min(std::min(share, bytes - at) - done, from.padded - place);
				sum += host_work(from.base + place, at + done, n, o.flops / (double)bytes * 2, &e.stop);
			}
		}
		keep = sum;
	});
}

static bool do_on_host(executor &e, lane &l, uint32_t id)
{
	const op &o = e.g.ops[id];
	double ready_s = l.free_s;

	for (uint32_t k = e.before.first[id]; k < e.before.first[id + 1]; k++) {
		if (!await(e, e.before.to[k], OP_ENDED))
			return false;
		ready_s = std::max(ready_s, e.times.end_s[e.before.to[k]]);
	}
	for (unsigned i = 0; now(e) < ready_s + o.latency_s && !e.stop; i++)
		spin(i);
	if (o.kind == OP_COPY)
		copy_on_host(e, l, o);
	else if (o.kind == OP_KERNEL && (o.bytes || o.flops > 0))
		kernel_on_host(e, l, o);
	l.free_s = e.times.end_s[id] = now(e);
	return true;
}

static bool run_op(executor &e, lane &l, uint32_t id, uint32_t previous, std::vector<uint32_t> &stack)
{
	const op &o = e.g.ops[id];

	if ((uint64_t)o.step >= e.g.ahead && !await(e, e.g.step_end[(size_t)o.step - e.g.ahead], OP_ENDED))
		return false;
	if (e.kind[id] == ON_DEVICE) {
		if (!order_stream(e, l, id, stack))
			return false;
		e.order[e.n_order++] = id;
		submit(e, l, id);
		e.state[id].store(OP_SUBMITTED, std::memory_order_release);
		return true;
	}
	if (previous != id) {
		if (!await(e, previous, OP_ENDED))
			return false;
		l.free_s = e.times.end_s[previous];
	}
	e.order[e.n_order++] = id;
	if (!do_on_host(e, l, id))
		return false;
	e.state[id].store(OP_ENDED, std::memory_order_release);
	return true;
}

static void run_lane(executor &e, lane &l)
{
	std::vector<uint32_t> stack;

	while (!e.go)
		std::this_thread::yield();
	try {
		uint32_t previous = l.ops[0];
		for (uint32_t id : l.ops) {
			if (e.stop || !run_op(e, l, id, previous, stack))
				return;
			previous = id;
			l.issued.fetch_add(1, std::memory_order_release);
		}
	} catch (...) {
		std::lock_guard<std::mutex> held(e.lock);
		if (!e.error)
			e.error = std::current_exception();
		e.stop = true;
	}
}

/* ---- who watches ---- */

/* It has ended; so may joins and steps, and waits begin. */
static void ended(executor &e, uint32_t id)
{
	std::vector<uint32_t> stack = {id};

	while (!stack.empty()) {
		id = stack.back();
		stack.pop_back();
		e.n_ended++;
		for (uint32_t k = e.soft_after.first[id]; k < e.soft_after.first[id + 1]; k++) {
			uint32_t s = e.soft_after.to[k];
			/* Its end is the last of theirs, from which a wait is counted. */
			e.times.end_s[s] = std::max(e.times.end_s[s], e.times.end_s[id]);
			if (--e.pending[s])
				continue;
			if (e.g.ops[s].latency_s > 0) {
				e.clock.push({e.times.end_s[s] + e.g.ops[s].latency_s, s});
				continue;
			}
			e.state[s].store(OP_ENDED, std::memory_order_release);
			stack.push_back(s);
		}
	}
}

static bool look_at_lane(executor &e, lane &l)
{
	bool any = false;

	while (l.retired < l.issued.load(std::memory_order_acquire)) {
		uint32_t id = l.ops[l.retired];
		if (e.kind[id] == ON_DEVICE) {
			if (!e.b.passed(id))
				break;
			e.times.end_s[id] = e.b.seconds(id);
			e.state[id].store(OP_ENDED, std::memory_order_release);
		}
		l.retired++;
		ended(e, id);
		any = true;
	}
	return any;
}

static bool look_at_clock(executor &e)
{
	if (e.clock.empty() || now(e) < e.clock.top().first)
		return false;
	uint32_t id = e.clock.top().second;
	e.clock.pop();
	e.times.end_s[id] = now(e);
	e.state[id].store(OP_ENDED, std::memory_order_release);
	ended(e, id);
	return true;
}

static void watch(executor &e)
{
	/* Those that wait for nothing. */
	for (uint32_t id = 0; id < e.g.ops.size(); id++)
		if (e.kind[id] == SOFT && e.n_before[id] == 0) {
			if (e.g.ops[id].latency_s > 0) {
				e.clock.push({e.g.ops[id].latency_s, id});
				continue;
			}
			e.state[id].store(OP_ENDED, std::memory_order_release);
			ended(e, id);
		}
	for (unsigned i = 0; e.n_ended < e.g.ops.size() && !e.stop; i++) {
		bool any = look_at_clock(e);
		for (auto &l : e.lanes)
			any |= look_at_lane(e, *l);
		if (any)
			i = 0;
		spin(i);
		if (interrupted)
			e.stop = true;
	}
}

/* ---- all of it ---- */

static void plan_lane(executor &e, uint32_t id)
{
	const op &o = e.g.ops[id];
	lane &l = *e.lanes[o.unit < 0 ? e.lanes.size() - 1 : (size_t)o.unit];
	bool drive = o.kind == OP_COPY && (e.buffers[(size_t)o.from].device == DRIVE || e.buffers[(size_t)o.to].device == DRIVE);
	unsigned threads = 1;

	if (e.kind[id] == SOFT)
		return;
	l.ops.push_back(id);
	if (e.kind[id] == ON_DEVICE) {
		int device = device_of(e, o);
		if (device >= e.b.devices())
			throw failure(EXIT_FAILED, "the graph has more GPUs than the " + std::to_string(e.b.devices()) + " of this machine");
		if (l.stream < 0) {
			l.stream = e.b.open_stream(device);
			l.device = device;
		}
		if (o.kind == OP_KERNEL && l.device != device)
			throw failure(EXIT_BAD_INPUT, "operation " + std::to_string(id) + ": a unit that has operations of two GPUs");
		return;
	}
	if (drive) {
		threads = 2;
		for (char *&p : l.bounce)
			if (!p)
				p = e.b.take(HOST, true, PIECE + 2 * PAGE);
	} else if (o.kind == OP_KERNEL) {
		if (o.bytes && e.buffers[(size_t)o.from].device != HOST)
			throw failure(EXIT_BAD_INPUT, "operation " + std::to_string(id) + ": a processor's kernel that reads memory of a GPU");
		threads = e.o.threads ? e.o.threads : o.threads ? o.threads : host_processors();
	}
	if (!l.team || l.team->size() < threads)
		l.team.reset(new host_team(threads));
}

std::unique_ptr<executor, void (*)(executor *)> executor_open(const op_graph &g, backend &b, const executor_options &o)
{
	std::unique_ptr<executor, void (*)(executor *)> e(new executor(g, b, o), [](executor *x) { delete x; });

	if (g.buffers.size() >= SALT_POISON)
		throw failure(EXIT_BAD_INPUT, "a graph with more than a million buffers");
	place_buffers(*e);
	for (const op &x : g.ops)
		e->kind.push_back(class_of(*e, x));
	make_dependencies(*e);
	for (size_t i = 0; i <= g.units.size(); i++)
		e->lanes.emplace_back(new lane);
	for (uint32_t id = 0; id < g.ops.size(); id++)
		plan_lane(*e, id);
	fill_buffers(*e);
	return e;
}

static std::vector<int> event_streams(const executor &e)
{
	std::vector<int> stream(e.g.ops.size(), -1);

	for (const auto &l : e.lanes)
		for (uint32_t id : l->ops)
			if (e.kind[id] == ON_DEVICE)
				stream[id] = l->stream;
	return stream;
}

executor_times executor_run(executor &e)
{
	size_t n = e.g.ops.size();
	std::vector<std::thread> threads;

	e.times = {std::vector<double>(n, 0), std::vector<double>(n, 0), std::vector<uint64_t>(n, 0), {}};
	e.pending = e.n_before;
	e.order.assign(n, 0);
	e.n_order = 0;
	e.n_ended = 0;
	e.go = false;
	for (auto &s : e.state)
		s = OP_NEW;
	for (auto &l : e.lanes) {
		l->seen.assign(n, false);
		l->issued = 0;
		l->retired = 0;
		l->free_s = 0;
		if (!l->ops.empty())
			threads.emplace_back([&e, &l] { run_lane(e, *l); });
	}
	try {
		e.begin_s = e.b.begin(event_streams(e));
		e.go = true;
		watch(e);
	} catch (...) {
		e.error = std::current_exception();
		e.stop = true;
	}
	e.go = true;
	for (std::thread &t : threads)
		t.join();
	if (e.stop)
		e.b.abandon();
	if (e.error)
		std::rethrow_exception(e.error);
	look_for_interrupt();
	e.b.end();
	conclude(e);
	check_buffers(e);
	return e.times;
}
