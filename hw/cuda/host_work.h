/*
 * host_work.h - what a CPU does for a kernel of a graph: it loads every byte, and multiplies and adds.
 */
#ifndef HW_CUDA_HOST_WORK_H
#define HW_CUDA_HOST_WORK_H

#include <atomic>
#include <cstddef>
#include <cstdint>

static const uint64_t HOST_WORK_UNIT = 64;

/* len bytes at p, a multiple of HOST_WORK_UNIT; macs multiply-adds for each float in it, over all of them as exactly as
   whole multiply-adds a unit allow. `at` says where p is in the whole, for that. Ends early once *stop. */
float host_work(const char *p, uint64_t at, uint64_t len, double macs, const std::atomic<bool> *stop);

#endif
