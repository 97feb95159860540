/*
 * cpu_buffers.h - a graph's buffers as real bytes: those of drives in a file, all others in this machine's memory.
 *
 *	memory   [guard][pattern of the buffer ……………][guard]      GPU memory is a stretch of RAM like any other
 *	drive    one file, buffers one behind the other, from a multiple of a page each; read around the page cache
 *
 * The file loses its name as soon as it exists, so that nothing is left behind however the program ends. Staging buffers
 * begin as poison; afterwards each must hold what was copied into it last, and no guard may have changed.
 */
#ifndef SIM_REAL_CPU_BUFFERS_H
#define SIM_REAL_CPU_BUFFERS_H

#include <signal.h>

#include "sim/core/opg.h"

#define CPU_PAGE ((uint64_t)4096)

/* What a staging buffer must hold: bytes of `origin` from `at` on. */
struct cpu_content {
	int origin; /* OPG_NONE: that is not known */
	uint64_t at, bytes;
};

struct cpu_buffer {
	char *memory;           /* page-aligned, whole pages; NULL: it is in the file */
	uint64_t file_offset;
	struct cpu_content content;
};

struct cpu_buffers {
	const struct opg *g;
	struct cpu_buffer *at;  /* by buffer */
	int fd;                 /* -1: no drive */
	const char *dir;
};

/* Makes and fills all. dir: folder of the file. ERR_INPUT when they take more than the memory or the disk that is
   available. On failure nothing is left behind. */
int cpu_buffers_open(struct cpu_buffers *b, const struct opg *g, const char *dir, const volatile sig_atomic_t *interrupted,
	struct arena *a, struct err *err);
void cpu_buffers_close(struct cpu_buffers *b); /* again is allowed */

/* Copies len bytes of an operation, from its offset-th byte on; bounce: len bytes and two pages, page-aligned. Returns 0 or
   an errno. */
int cpu_buffers_copy(const struct cpu_buffers *b, const struct opg_op *o, uint64_t offset, uint64_t len, char *bounce);
/* The copy is done: what its target holds now. */
void cpu_buffers_copied(struct cpu_buffers *b, const struct opg_op *o);

/* ERR_IO when some byte is not what it must be. */
int cpu_buffers_check(const struct cpu_buffers *b, struct err *err);

/* Memory of the system's own, huge pages advised; NULL when there is none. */
void *cpu_map(uint64_t bytes);
void cpu_unmap(void *p, uint64_t bytes);

#endif
