/*
 * files.h - bytes that an engine reads from files through the system's page cache, again in each pass: np.memmap, safetensors,
 * anything mapped or read(). What is opened with O_DIRECT (libaio, GDS) does not come here.
 *
 *	first pass   drive ═══════> page cache ──copied by a thread──> the engine's memory
 *	later ones                  page cache ──copied by a thread──> the same, if RAM has room for all of the files;
 *	             drive ═══════> page cache ──────────────────────> if not: a pass over more than there is room for finds
 *	                                                               nothing, as what it wants next was dropped first
 *
 * The thread's copying sets the pace of both: no drive is faster than that.
 */
#ifndef SIM_EXEC_FILES_H
#define SIM_EXEC_FILES_H

#include "sim/exec/exec.h"

/* Of an engine's flags: what RAM holds of its files when it starts. */
enum files_at_start { FILES_COLD, FILES_WARM };
extern const char *const files_choices[];
#define FILES_FLAG(S, field)                                                                                      \
	PARAM_CHOICE(S, field, "page-cache", "cold", files_choices,                                                \
		"what RAM holds of the files when the first pass begins (not the engine's own): nothing, or, warm, all if there is " \
		"room")

/* Says that each pass reads so many bytes of files on a drive, after all else that needs RAM is booked; fills p->files. */
void files_book(struct placement *p, int drive, double bytes, int at_start);
/* Reads some of them into RAM, in the step with that number, in no stream. rate: of the thread, B/s. */
op_ref files_read(struct exec *x, double rate, uint64_t step, double bytes, op_ref after, op_ref after2);
/* Writes as many; gives back when the writer goes on. What RAM keeps is written back behind it. */
op_ref files_write(struct exec *x, double rate, double bytes, op_ref after, op_ref after2);
/* Reads what was written by files_write before. */
op_ref files_read_back(struct exec *x, double rate, double bytes, op_ref after, op_ref after2);

#endif
