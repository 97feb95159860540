/*
 * cpu_work.h - what the processors do in place of an engine's kernels: read bytes, multiply and add.
 */
#ifndef SIM_REAL_CPU_WORK_H
#define SIM_REAL_CPU_WORK_H

#include "base/base.h"

/* Of bytes that are computed with at once: they stay in the first cache. */
#define CPU_WORK_BLOCK 4096u

/* The compiler must work out x, though nobody reads it. */
#define CPU_KEEP(x) __asm__ volatile("" : : "m"(x))

/* Reads len bytes, and multiplies and adds each word of 4 bytes of them `macs` times (0: reads alone); 2 macs FLOPs
   a word. Words are float, as cpu_pattern makes them. Returns a number of no use, without which the compiler would leave
   all out. What of len is less than 512 bytes at its end is not read. */
float cpu_work(const void *p, size_t len, unsigned macs);

/* What a buffer holds: words that are floats from 1 to 2, none like its neighbours. from: of the buffer's bytes; neither
   from nor len need be whole words. */
void cpu_pattern(unsigned buffer, uint64_t from, void *to, size_t len);

/* How fast this machine is at this moment: one thread copies memory, then computes, for a tenth of a second in all. */
struct cpu_probe {
	double copy_bytes_s, flops_s;
};
/* scratch: two halves, larger than caches together. */
struct cpu_probe cpu_probe_run(void *scratch, size_t bytes);

double cpu_now(void); /* seconds of a clock that only goes forward */

#endif
