/*
 * host_memory.h - this machine's memory: how much is left, and filling it.
 */
#ifndef HW_CUDA_HOST_MEMORY_H
#define HW_CUDA_HOST_MEMORY_H

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "hw/cuda/backend.h"

/* As /proc/meminfo has it, less a sixteenth (1 GiB at most), without which a machine swaps; no limit where there is none. */
inline uint64_t host_memory_available()
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[256];
	uint64_t kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	if (f)
		fclose(f);
	uint64_t bytes = kib << 10;
	return kib ? bytes - (bytes / 16 < (uint64_t)1 << 30 ? bytes / 16 : (uint64_t)1 << 30) : UINT64_MAX;
}

/* Words of op_pattern; bytes a multiple of 8. */
inline void host_fill(char *p, uint64_t bytes, uint64_t salt, uint64_t first)
{
	for (uint64_t i = 0; i < bytes / 8; i++) {
		uint64_t word = op_pattern(salt, first + i);
		std::memcpy(p + 8 * i, &word, 8);
	}
}

inline uint64_t host_checksum(const char *p, uint64_t bytes)
{
	uint64_t sum = 0, word;

	for (uint64_t i = 0; i < bytes / 8; i++) {
		std::memcpy(&word, p + 8 * i, 8);
		sum += word;
	}
	return sum;
}

#endif
