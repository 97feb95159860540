/*
 * gpu_calibrate.h - `offsim-cuda calibrate`: raw samples of what the GPUs of this machine do, each measured in two ways.
 *
 *	table of parts ── for each GPU ──> samples: seconds of so many operations, and the same by the other way
 *
 * Nothing is fitted here: the JSON has every repetition, and 'offsim calibrate cuda' makes constants of it. Where the two ways
 * (events and the host's clock; bytes moved and their checksum) disagree, the sample says so in `fault` and is not used.
 */
#ifndef HW_CUDA_GPU_CALIBRATE_H
#define HW_CUDA_GPU_CALIBRATE_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hw/cuda/gpu.h"

struct gpu_sample {
	std::string part, type;            /* type: of operands, "cublas" or "plain" in front; "" where there is none */
	int device = 0, peer = -1;
	uint64_t bytes = 0;                /* of one operation */
	double flops = 0;
	uint64_t rows = 0;                 /* of a product */
	uint64_t count = 1;                /* operations in each repetition */
	unsigned threads = 0;              /* of the host that took part */
	std::vector<double> seconds;       /* by repetition, of all `count` */
	std::vector<double> other_seconds; /* measured the other way */
	std::string fault;
};

struct gpu_skipped {
	std::string part, why;
};

/* As it was asked when there was no failure yet, but for its link: at its fastest, for that of an idle GPU slows down. */
struct gpu_device {
	std::string name, pci;
	int major, minor, multiprocessors, bus_bits, copy_engines, clock_khz, memory_clock_khz, pcie_gen = 0, pcie_width = 0;
	bool integrated, pageable_access;
	uint64_t memory_bytes, free_bytes;
};

/* Memory of a device or pinned memory of the host, given back at its end. */
struct gpu_memory {
	char *p = nullptr;
	bool host;

	gpu_memory(bool on_host, uint64_t bytes);
	~gpu_memory();
	gpu_memory(const gpu_memory &) = delete;
	gpu_memory &operator=(const gpu_memory &) = delete;
};

struct gpu_timer {
	gpu_event begin, end;

	double seconds(); /* waits */
};

static const int WARM_UPS = 2;

struct calibration {
	bool quick = false;
	std::string dir = ".";
	int device = 0, n_devices = 1; /* the one at hand, which is current */
	cudaStream_t stream = nullptr; /* on it */
	gpu_reader reader;
	std::vector<gpu_device> devices;
	std::vector<gpu_sample> samples;
	std::vector<gpu_skipped> skipped;

	/* At most this; a share of what is free. */
	uint64_t room(uint64_t wanted) const;
	int repetitions(int full) const { return quick ? (full + 3) / 4 : full; }
	void skip(const char *part, const std::string &why) { skipped.push_back({part, why}); }
	void add(gpu_sample s);
	/* Times fn, which gives work to the stream, by events with the stream kept busy until all is queued, and then by the
	   host's clock without that; after WARM_UPS calls that are not timed. */
	void time_queued(gpu_sample &s, int n, const std::function<void()> &fn);
	/* Times fn by the host's clock around it and the end of its stream, and by events in the same repetition. */
	void time_waited(gpu_sample &s, int n, const std::function<void()> &fn);
	uint64_t device_checksum(const char *p, uint64_t bytes);
};

struct calibration_part {
	const char *name, *what;
	double seconds, quick_seconds; /* about, on a GPU */
	void (*run)(calibration &c);
};

extern const calibration_part copy_parts[], memory_parts[], product_parts[], drive_parts[]; /* end with a NULL name */

/* argv[0] is "calibrate". */
int calibrate_command(int argc, char **argv);

#endif
