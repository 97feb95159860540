/*
 * gpu_drive.cu - from a drive to the GPU as engines do it: reads around the page cache into pinned buffers, each copied on
 * while the next is read. One thread a buffer.
 */
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "hw/cuda/failure.h"
#include "hw/cuda/gpu_calibrate.h"
#include "hw/cuda/host_memory.h"

static const uint64_t FILE_BYTES = (uint64_t)1 << 30, PIECE = (uint64_t)4 << 20;
/* A slow drive is read no longer for each number of threads, but once; and by no other number after so long. */
static const double ENOUGH_S = 4, ENOUGH_IN_ALL_S = 15;

struct drive_file {
	int fd;

	explicit drive_file(const std::string &dir)
	{
		std::string path = dir + "/offsim-cuda-XXXXXX";
		fd = mkostemp(&path[0], O_CLOEXEC);
		if (fd < 0)
			throw failure(EXIT_FAILED, "cannot make a file in '" + dir + "': " + std::strerror(errno));
		unlink(path.c_str());
	}

	~drive_file() { close(fd); }
	drive_file(const drive_file &) = delete;
	drive_file &operator=(const drive_file &) = delete;
};

/* How much of it was written: less when the drive is full. */
static uint64_t write_file(int fd, uint64_t bytes, char *piece, uint64_t *sum)
{
	for (uint64_t at = 0; at < bytes; at += PIECE) {
		if (interrupted)
			return at;
		host_fill(piece, PIECE, 5, at / 8);
		if (pwrite(fd, piece, PIECE, (off_t)at) != (ssize_t)PIECE)
			return at;
		*sum += host_checksum(piece, PIECE);
	}
	return bytes;
}

/* All of it, by this many threads, each with a buffer and a stream of its own. */
static double read_once(const calibration &c, int fd, uint64_t bytes, char *device, unsigned threads)
{
	std::vector<std::thread> thread;
	std::atomic<uint64_t> next{0};
	std::exception_ptr error;
	std::mutex lock;
	double begin_s = clock_now();

	for (unsigned t = 0; t < threads; t++)
		thread.emplace_back([&] {
			try {
				must(cudaSetDevice(c.device), "use a GPU");
				gpu_stream stream;
				gpu_memory pinned(true, PIECE);
				for (uint64_t at; (at = next.fetch_add(PIECE)) < bytes && !interrupted;) {
					ssize_t n = pread(fd, pinned.p, PIECE, (off_t)at);
					if (n != (ssize_t)PIECE)
						throw failure(EXIT_FAILED, std::string("cannot read the file: ") + (n < 0 ? std::strerror(errno) : "it ends too soon"));
					must(cudaMemcpyAsync(device + at, pinned.p, PIECE, cudaMemcpyDefault, stream), "copy");
					must(cudaStreamSynchronize(stream), "copy");
				}
			} catch (...) {
				std::lock_guard<std::mutex> held(lock);
				error = std::current_exception();
			}
		});
	for (std::thread &t : thread)
		t.join();
	if (error)
		std::rethrow_exception(error);
	return clock_now() - begin_s;
}

static void drive(calibration &c)
{
	uint64_t want = c.room(c.quick ? FILE_BYTES / 4 : FILE_BYTES), sum = 0;
	drive_file file(c.dir);
	gpu_memory piece(true, PIECE);
	double first_s = 0;

	if (want < PIECE)
		return c.skip("drive", "the GPU has no memory left for the file");
	uint64_t bytes = write_file(file.fd, want, piece.p, &sum);
	if (bytes < want)
		return c.skip("drive", "there is no room for the file in '" + c.dir + "'");
	if (fdatasync(file.fd) || fcntl(file.fd, F_SETFL, O_DIRECT))
		return c.skip("drive", "files in '" + c.dir + "' cannot be read around the page cache");
	gpu_memory device(false, bytes);
	for (unsigned threads : {1u, 2u, 4u, 8u}) {
		if (first_s > 0 && clock_now() - first_s > ENOUGH_IN_ALL_S) {
			c.skip("drive", "the drive is slow: not by " + std::to_string(threads) + " at once");
			continue;
		}
		gpu_sample s;
		s.part = "drive";
		s.bytes = bytes;
		s.threads = threads;
		must(cudaMemsetAsync(device.p, 0xa5, bytes, c.stream), "poison memory of a GPU");
		must(cudaStreamSynchronize(c.stream), "poison memory of a GPU");
		double begin_s = clock_now();
		first_s = first_s > 0 ? first_s : begin_s;
		for (int i = 0; i < c.repetitions(3) && (i == 0 || clock_now() - begin_s < ENOUGH_S); i++)
			s.seconds.push_back(read_once(c, file.fd, bytes, device.p, threads));
		if (c.device_checksum(device.p, bytes) != sum)
			s.fault = "the checksums of the two ends differ";
		c.add(s);
	}
}

const calibration_part drive_parts[] = {
	{"drive", "a file around the page cache through pinned buffers to the GPU, 1 to 8 at once", 14, 5, drive},
	{nullptr, nullptr, 0, 0, nullptr},
};
