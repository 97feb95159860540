#include "hw/cuda/host_work.h"

#include <cmath>
#include <cstring>

static const size_t LANES = HOST_WORK_UNIT / sizeof(float), ROWS = 4;
/* Between two looks at whether to stop. */
static const uint64_t BLOCK = 64 << 10;
static const unsigned MACS_AT_ONCE = 4096;

/* One build for each width of vectors, chosen when the program starts: before ThreadSanitizer has. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
static float work(const char *p, uint64_t len, unsigned macs)
{
	float sum[ROWS][LANES] = {}, x[LANES];

	for (uint64_t at = 0; at < len; at += sizeof(x)) {
		std::memcpy(x, p + at, sizeof(x));
		/* At least read. Any bits are numbers here; what comes of them does not matter. */
		for (unsigned i = 0; i < macs || i == 0; i++)
			for (size_t k = 0; k < LANES; k++)
				sum[i % ROWS][k] = sum[i % ROWS][k] * 0.5f + x[k];
	}
	float all = 0;
	for (size_t r = 0; r < ROWS; r++)
		for (size_t k = 0; k < LANES; k++)
			all += sum[r][k];
	return all;
}

float host_work(const char *p, uint64_t at, uint64_t len, double macs, const std::atomic<bool> *stop)
{
	float sum = 0;

	for (uint64_t done = 0, n; done < len && !*stop; done += n) {
		double block = (double)((at + done) / BLOCK);
		double left = std::floor((block + 1) * macs) - std::floor(block * macs);
		n = len - done < BLOCK ? len - done : BLOCK;
		do {
			double now = std::fmin(left, MACS_AT_ONCE);
			sum += work(p + done, n, (unsigned)now);
			left -= now;
		} while (left > 0 && !*stop);
	}
	return sum;
}
