#include "hw/cuda/gpu_calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include <unistd.h>

#include "hw/cuda/failure.h"
#include "hw/cuda/json_text.h"
#include "hw/cuda/output_file.h"

/* The two ways may differ by this share, and by this much a repetition (a wait of the host for the GPU). */
static const double AGREE_SHARE = 0.25, AGREE_S = 100e-6;
/* The stream is kept busy for what submitting took once, twice over, and this; no longer than that, in case it waits. */
static const double SUBMIT_FIRST_S = 50e-6, SUBMIT_MOST_S = 20e-3;
/* As many as a profile has. */
static const int MAX_DEVICES = 16;

static const calibration_part *const tables[] = {copy_parts, memory_parts, product_parts, drive_parts};

/* ---- what parts use ---- */

gpu_memory::gpu_memory(bool on_host, uint64_t bytes) : host(on_host)
{
	if (host)
		must(cudaHostAlloc((void **)&p, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "pin host memory");
	else
		must(cudaMalloc((void **)&p, bytes), "take memory of a GPU");
}

gpu_memory::~gpu_memory()
{
	host ? cudaFreeHost(p) : cudaFree(p);
}

double gpu_timer::seconds()
{
	must(cudaEventSynchronize(end), "wait for an event");
	return gpu_seconds(begin, end);
}

uint64_t calibration::room(uint64_t wanted) const
{
	size_t free, total;

	must(cudaMemGetInfo(&free, &total), "ask a GPU for its memory");
	uint64_t most = free / 4;
	/* Halves keep sizes round. */
	while (wanted > most && wanted > ((uint64_t)1 << 20))
		wanted /= 2;
	return wanted;
}

static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v.empty() ? 0 : (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

void calibration::add(gpu_sample s)
{
	double a = median(s.seconds), b = median(s.other_seconds);

	s.device = device;
	for (double x : s.seconds)
		if (!(x > 0) || !std::isfinite(x))
			return skip(s.part.c_str(), std::to_string(s.bytes) + " bytes took " + std::to_string(x) + " s");
	if (s.fault.empty() && !s.other_seconds.empty() && std::fabs(a - b) > AGREE_SHARE * std::fmax(a, b) + AGREE_S) {
		char text[128];
		std::snprintf(text, sizeof(text), "%.4g us one way, %.4g us the other", a * 1e6, b * 1e6);
		s.fault = text;
	}
	samples.push_back(std::move(s));
}

static void look_for_interrupt()
{
	if (interrupted)
		throw failure(EXIT_FAILED, "interrupted");
}

void calibration::time_queued(gpu_sample &s, int n, const std::function<void()> &fn)
{
	gpu_timer t;
	double submit_s = 0;

	for (int i = 0; i < WARM_UPS; i++) {
		double begin_s = clock_now();
		fn();
		submit_s = std::fmin(clock_now() - begin_s, SUBMIT_MOST_S);
		must(cudaStreamSynchronize(stream), "warm up");
	}
	for (int i = 0; i < n; i++) {
		look_for_interrupt();
		gpu_spin(stream, SUBMIT_FIRST_S + 2 * submit_s);
		t.begin.record(stream);
		fn();
		t.end.record(stream);
		s.seconds.push_back(t.seconds());
	}
	for (int i = 0; i < n; i++) {
		double begin_s = clock_now();
		fn();
		must(cudaStreamSynchronize(stream), "measure");
		s.other_seconds.push_back(clock_now() - begin_s);
	}
}

void calibration::time_waited(gpu_sample &s, int n, const std::function<void()> &fn)
{
	gpu_timer t;

	fn();
	must(cudaStreamSynchronize(stream), "warm up");
	for (int i = 0; i < n; i++) {
		look_for_interrupt();
		double begin_s = clock_now();
		t.begin.record(stream);
		fn();
		t.end.record(stream);
		must(cudaStreamSynchronize(stream), "measure");
		s.seconds.push_back(clock_now() - begin_s);
		s.other_seconds.push_back(t.seconds());
	}
}

uint64_t calibration::device_checksum(const char *p, uint64_t bytes)
{
	gpu_memory sum(false, sizeof(unsigned long long));
	unsigned long long here;

	gpu_checksum(stream, p, bytes, (unsigned long long *)sum.p);
	must(cudaMemcpyAsync(&here, sum.p, sizeof(here), cudaMemcpyDefault, stream), "read a sum");
	must(cudaStreamSynchronize(stream), "add up memory of a GPU");
	return here;
}

/* ---- the JSON ---- */

static std::string word_of(const std::string &path)
{
	std::ifstream file(path);
	std::string line;

	std::getline(file, line);
	return line;
}

/* "16.0 GT/s PCIe" -> 4; 0: not known. */
static int generation(const std::string &speed)
{
	static const double rates[] = {2.5, 5, 8, 16, 32, 64};
	double rate = strtod(speed.c_str(), nullptr);

	for (int i = 0; i < 6; i++)
		if (rate == rates[i])
			return i + 1;
	return 0;
}

static int attribute(cudaDeviceAttr which, int device)
{
	int value = 0;

	must(cudaDeviceGetAttribute(&value, which, device), "ask a GPU what it is");
	return value;
}

static gpu_device describe(int d)
{
	cudaDeviceProp p;
	char pci[32];
	size_t free, total;
	gpu_device g;

	must(cudaGetDeviceProperties(&p, d), "ask a GPU what it is");
	must(cudaDeviceGetPCIBusId(pci, sizeof(pci), d), "ask a GPU where it is");
	must(cudaMemGetInfo(&free, &total), "ask a GPU for its memory");
	for (char *c = pci; *c; c++)
		*c = (char)tolower(*c);
	g.name = p.name;
	g.pci = pci;
	g.major = p.major;
	g.minor = p.minor;
	g.multiprocessors = p.multiProcessorCount;
	g.bus_bits = p.memoryBusWidth;
	g.copy_engines = p.asyncEngineCount;
	g.clock_khz = attribute(cudaDevAttrClockRate, d);
	g.memory_clock_khz = attribute(cudaDevAttrMemoryClockRate, d);
	g.integrated = p.integrated != 0;
	g.pageable_access = p.pageableMemoryAccess != 0;
	g.memory_bytes = total;
	g.free_bytes = free;
	return g;
}

static void look_at_link(gpu_device &g)
{
	std::string sys = "/sys/bus/pci/devices/" + g.pci;
	int width = atoi(word_of(sys + "/current_link_width").c_str());

	g.pcie_gen = std::max(g.pcie_gen, generation(word_of(sys + "/current_link_speed")));
	/* A virtual one may say 63, or 255. */
	if (width <= 16)
		g.pcie_width = std::max(g.pcie_width, width);
}

static void put_device(FILE *to, const gpu_device &g, int d, const char *end)
{
	fprintf(to, "  {\"index\": %d, \"name\": %s, \"sm\": \"%d.%d\", \"multiprocessors\": %d, \"memory_bytes\": %llu, "
		"\"free_bytes\": %llu, \"clock_hz\": %.0f, \"memory_clock_hz\": %.0f, \"bus_bits\": %d, \"copy_engines\": %d, "
		"\"integrated\": %s, \"pageable_access\": %s, \"pci\": \"%s\", \"pcie_gen\": %d, \"pcie_width\": %d}%s\n",
		d, json_quoted(g.name).c_str(), g.major, g.minor, g.multiprocessors, (unsigned long long)g.memory_bytes,
		(unsigned long long)g.free_bytes, 1e3 * g.clock_khz, 1e3 * g.memory_clock_khz, g.bus_bits, g.copy_engines,
		g.integrated ? "true" : "false", g.pageable_access ? "true" : "false", g.pci.c_str(), g.pcie_gen, g.pcie_width, end);
}

static void put_reals(FILE *to, const char *key, const std::vector<double> &v)
{
	fprintf(to, ", \"%s\": [", key);
	for (size_t i = 0; i < v.size(); i++)
		fprintf(to, "%s%.9g", i ? ", " : "", v[i]);
	fputc(']', to);
}

static void put_sample(FILE *to, const gpu_sample &s, const char *end)
{
	fprintf(to, "  {\"part\": %s, \"device\": %d", json_quoted(s.part).c_str(), s.device);
	if (!s.type.empty())
		fprintf(to, ", \"type\": %s", json_quoted(s.type).c_str());
	if (s.peer >= 0)
		fprintf(to, ", \"peer\": %d", s.peer);
	if (s.rows)
		fprintf(to, ", \"rows\": %llu", (unsigned long long)s.rows);
	if (s.flops > 0)
		fprintf(to, ", \"flops\": %.15g", s.flops);
	if (s.threads)
		fprintf(to, ", \"threads\": %u", s.threads);
	fprintf(to, ", \"bytes\": %llu, \"count\": %llu", (unsigned long long)s.bytes, (unsigned long long)s.count);
	put_reals(to, "seconds", s.seconds);
	put_reals(to, "other_seconds", s.other_seconds);
	if (!s.fault.empty())
		fprintf(to, ", \"fault\": %s", json_quoted(s.fault).c_str());
	fprintf(to, "}%s\n", end);
}

static void put_raw(FILE *to, const calibration &c)
{
	int driver = 0;
	char date[32], host[256] = "";
	time_t now = time(nullptr);

	cudaDriverGetVersion(&driver);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	gethostname(host, sizeof(host) - 1);
	fprintf(to, "{\n \"format\": \"offsim-cuda raw 1\",\n \"date\": \"%s\",\n \"host\": %s,\n \"ram_bytes\": %llu,\n"
		" \"version\": \"%s\",\n \"driver\": %d,\n \"driver_text\": %s,\n \"runtime\": %d,\n \"quick\": %s,\n \"devices\": [\n",
		date, json_quoted(host).c_str(), (unsigned long long)sysconf(_SC_PHYS_PAGES) * (unsigned long long)sysconf(_SC_PAGESIZE),
		OFFSIM_VERSION, driver, json_quoted(word_of("/proc/driver/nvidia/version")).c_str(), CUDART_VERSION, c.quick ? "true" : "false");
	for (size_t d = 0; d < c.devices.size(); d++)
		put_device(to, c.devices[d], (int)d, d + 1 < c.devices.size() ? "," : "");
	fputs(" ],\n \"samples\": [\n", to);
	for (size_t i = 0; i < c.samples.size(); i++)
		put_sample(to, c.samples[i], i + 1 < c.samples.size() ? "," : "");
	fputs(" ],\n \"skipped\": [\n", to);
	for (size_t i = 0; i < c.skipped.size(); i++)
		fprintf(to, "  {\"part\": %s, \"why\": %s}%s\n", json_quoted(c.skipped[i].part).c_str(),
			json_quoted(c.skipped[i].why).c_str(), i + 1 < c.skipped.size() ? "," : "");
	fputs(" ]\n}\n", to);
}

/* ---- the command ---- */

static void usage()
{
	puts("usage: offsim-cuda calibrate [-o RAW.json] [--only PART,...] [--quick] [--dir DIR] [--list]\n"
	     "\n"
	     "Measures the GPUs of this machine (CUDA_VISIBLE_DEVICES=0: the first alone), each number in two ways, and writes every\n"
	     "repetition as JSON.\n"
	     "\n"
	     "  -o, --output FILE    the JSON; without it, a line a sample is all there is\n"
	     "      --only PART,...  these alone\n"
	     "      --quick          a quarter of the repetitions\n"
	     "      --dir DIR        folder on the drive to read from; the file is removed (.)\n"
	     "      --list           what would be measured and how long that takes; needs no GPU\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "example: offsim-cuda calibrate -o raw.json && offsim calibrate cuda --raw raw.json -o machine.yaml");
}

static bool wanted(const std::vector<std::string> &only, const char *name)
{
	return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
}

template <class F> static void each_part(F fn)
{
	for (const calibration_part *table : tables)
		for (const calibration_part *p = table; p->name; p++)
			fn(*p);
}

static std::vector<std::string> split_parts(const std::string &text)
{
	std::vector<std::string> parts;
	std::string known;

	each_part([&](const calibration_part &p) { known += (known.empty() ? "" : ", ") + std::string(p.name); });
	for (size_t at = 0; at <= text.size();) {
		size_t end = std::min(text.find(',', at), text.size());
		std::string name = text.substr(at, end - at);
		bool found = false;
		each_part([&](const calibration_part &p) { found |= name == p.name; });
		if (!found)
			throw failure(EXIT_BAD_INPUT, "--only: there is no part '" + name + "'; there are " + known);
		parts.push_back(name);
		at = end + 1;
	}
	return parts;
}

static void list(const std::vector<std::string> &only, bool quick)
{
	double sum = 0;

	each_part([&](const calibration_part &p) {
		if (!wanted(only, p.name))
			return;
		double s = quick ? p.quick_seconds : p.seconds;
		printf("%-10s %4.0f s  %s\n", p.name, s, p.what);
		sum += s;
	});
	printf("about %.0f s for each GPU\n", sum);
}

static void print_samples(const calibration &c, size_t from)
{
	for (size_t i = from; i < c.samples.size(); i++) {
		const gpu_sample &s = c.samples[i];
		double each = median(s.seconds) / (double)s.count;
		printf("gpu%d %-12s %-14s %12llu B %12.3f us", s.device, s.part.c_str(), s.type.c_str(), (unsigned long long)s.bytes, each * 1e6);
		if (s.flops > 0)
			printf(" %9.3f TFLOP/s", s.flops / each * 1e-12);
		else if (s.bytes)
			printf(" %9.3f GB/s", (double)s.bytes / each * 1e-9);
		printf("%s%s\n", s.fault.empty() ? "" : "  FAULT: ", s.fault.c_str());
	}
	fflush(stdout);
}

/* One that fails, for want of memory say, does not take the others with it. After what a GPU does not recover from they all
   say so, and what was measured before stays. */
static void try_part(calibration &c, const calibration_part &p)
{
	try {
		p.run(c);
	} catch (const failure &f) {
		c.skip(p.name, f.what());
	} catch (const std::exception &e) {
		c.skip(p.name, std::string("no memory or threads of the host are left: ") + e.what());
	}
	look_for_interrupt();
	/* What it left behind. */
	cudaSetDevice(c.device);
	cudaStreamSynchronize(c.stream);
	cudaGetLastError();
	look_at_link(c.devices.back());
}

/* Samples with a fault are not used, and a profile may lack what it needs for want of one: a moment's trouble is given another
   chance. */
static void run_part(calibration &c, const calibration_part &p)
{
	size_t before = c.samples.size();

	try_part(c, p);
	if (std::any_of(c.samples.begin() + (long)before, c.samples.end(), [](const gpu_sample &s) { return !s.fault.empty(); })) {
		print_samples(c, before);
		printf("%s once more\n", p.name);
		c.samples.erase(c.samples.begin() + (long)before, c.samples.end());
		try_part(c, p);
	}
	print_samples(c, before);
}

static void run_parts(calibration &c, const std::vector<std::string> &only)
{
	for (c.device = 0; c.device < c.n_devices; c.device++) {
		must(cudaSetDevice(c.device), "use a GPU");
		gpu_stream stream;
		c.stream = stream;
		c.reader.open(c.device, c.stream);
		c.devices.push_back(describe(c.device));
		each_part([&](const calibration_part &p) {
			if (wanted(only, p.name))
				run_part(c, p);
		});
	}
}

int calibrate_command(int argc, char **argv)
{
	std::vector<std::string> only;
	const char *output = nullptr;
	bool list_only = false;
	calibration c;

	for (int i = 1; i < argc; i++) {
		std::string word = argv[i];
		auto value = [&]() -> const char * {
			if (i + 1 == argc)
				throw failure(EXIT_BAD_INPUT, word + " wants a value");
			return argv[++i];
		};
		if (word == "-h" || word == "--help") {
			usage();
			return 0;
		}
		if (word == "-o" || word == "--output")
			output = value();
		else if (word == "--only")
			only = split_parts(value());
		else if (word == "--quick")
			c.quick = true;
		else if (word == "--dir")
			c.dir = value();
		else if (word == "--list")
			list_only = true;
		else
			throw failure(EXIT_BAD_INPUT, "calibrate has no option '" + word + "'; see offsim-cuda calibrate --help");
	}
	if (list_only) {
		list(only, c.quick);
		return 0;
	}
	catch_interrupts();
	int found = gpu_count();
	c.n_devices = std::min(found, MAX_DEVICES);
	if (found > c.n_devices)
		c.skip("all", std::to_string(found - c.n_devices) + " more GPUs: CUDA_VISIBLE_DEVICES chooses others");
	std::unique_ptr<output_file> out(output ? new output_file(output) : nullptr);
	run_parts(c, only);
	for (const gpu_skipped &s : c.skipped)
		printf("skipped %s: %s\n", s.part.c_str(), s.why.c_str());
	if (c.samples.empty())
		throw failure(EXIT_FAILED, "nothing could be measured" + (c.skipped.empty() ? "" : ": " + c.skipped[0].why));
	if (out) {
		put_raw(out->to, c);
		out->commit();
	}
	return 0;
}
