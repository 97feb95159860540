/*
 * opg.h - the operation graph of a few steps: what the simulator simulates is what real executors run.
 *
 *	scenario ─> exec ─> operations as they are added ─> struct opg ─> FILE.opg ─> struct opg ─┬─> opg_simulate
 *	                                                                                           └─> cpu_exec, offsim-cuda
 *
 * The file is text, a line an item; a line refers only to what stands above it, so that it can be used as it is read.
 * Lines that are empty or begin with "#" are nothing. All others are words with one space or more between them: what the
 * line says, for most a number (each kind counts from 0, so numbers are there to be referred to), and KEY=VALUE in any
 * order. A key that has a default may be left out; any other is an error. Numbers are decimal, lists have commas.
 *
 *	opg 1                                            the first line: the format's version
 *	about WORD TEXT                                  for people: model, quant, machine, engine, key. Any number of them
 *	steps count=7 first=2 end=5 ahead=2 phase=decode   how many; those that count are first .. end - 1, the others fill and
 *	                                                 empty the pipeline
 *	resource 0 name=ram rate=5.5e10                  what is shared: rate in bytes (arithmetic: FLOPs) a second
 *	memory 0 name=ram kind=ram                       kind: gpu, ram, drive
 *	device 0 name=cpu0 kind=cpu memory=0             kind: gpu, cpu; memory: that it computes from
 *	unit 0 name=cpu0                                 runs one operation at a time, in the order in which they become ready
 *	buffer 0 memory=0 bytes=4096 role=weights        role: weights, cache (KV), hidden (states), staging (where copies land).
 *	                                                 layer=-1 group=- type=- say what of
 *	copy 0 unit=0 from=0 to=1 bytes=4096 path=0:1,2:1 …
 *	kernel 1 unit=1 device=0 from=1 bytes=4096 flops=8192 path=0:1,3:2 …
 *	wait 2 latency=1000 …
 *	join 3 …
 *	step 4 tokens=1 …                                the end of a step; the next line belongs to the next step
 *	end 5                                            the last line: how many operations there were
 *
 * Operations of all kinds are numbered together, in the order in which they are added. Their keys:
 *
 *	after=0,2      waits for the end of these, all with lower numbers (default: nothing)
 *	unit=-1        waits for a place on it; -1: it needs none
 *	stream=-1      numbered as units: waits besides for the end of the last operation above in the same stream
 *	latency=0      picoseconds that pass first, once it has its place
 *	path=…         RESOURCE:WEIGHT,…: bytes then flow over these, shared max-min fairly with other flows; each byte takes
 *	               WEIGHT of the resource's rate
 *	cap=0          bytes a second that it gets at most; 0: no such limit. charge=-1: the resource that sets it
 *	amount=BYTES   what flows, where that is something else (arithmetic alone: FLOPs)
 *	bytes=0        bytes to move. More than the buffer holds: round it again
 *	from, at=0     buffer they are read from, and the place in it; a kernel's may be in another memory: it reads over the link
 *	to, into=0     copies: buffer they are written to, and the place in it
 *	pinned=1       0: through the driver's staging buffer, for its memory is pageable
 *	via=-1         memory that they are written to and read from on the way
 *	device, threads=0, flops=0, dtype=-    kernels: who, how many of its threads (0: all), arithmetic, type of its operands
 *	type=-         kernels: the type of weights that it expands as it multiplies; -: arithmetic alone
 *	layer=-1, group=-, of=weights          what it belongs to, and what its bytes are: weights, cache, hidden
 *
 * All operations of step k wait besides for the end of step k - ahead (the line `step`), as an engine submits work no
 * further ahead than that. An executor keeps for each operation a counter of what it waits for; ready operations queue at
 * their unit.
 */
#ifndef SIM_CORE_OPG_H
#define SIM_CORE_OPG_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/vec.h"
#include "sim/core/maxmin.h"
#include "sim/core/simtime.h"

#define OPG_VERSION 1
#define OPG_NONE (-1)

enum opg_memory_kind { OPG_MEMORY_GPU, OPG_MEMORY_RAM, OPG_MEMORY_DRIVE };
enum opg_device_kind { OPG_DEVICE_GPU, OPG_DEVICE_CPU };
enum opg_role { OPG_WEIGHTS, OPG_CACHE, OPG_HIDDEN, OPG_STAGING };
enum opg_kind { OPG_COPY, OPG_KERNEL, OPG_WAIT, OPG_JOIN, OPG_STEP, OPG_KIND_N };
enum opg_phase { OPG_PREFILL, OPG_DECODE };

extern const char *const opg_kind_names[]; /* NULL-terminated, as the others */
extern const char *const opg_role_names[];

struct opg_about {
	const char *word, *text;
};

struct opg_resource {
	const char *name;
	double rate; /* units a second, > 0 */
};

struct opg_memory {
	const char *name;
	int kind; /* enum opg_memory_kind */
};

struct opg_device {
	const char *name;
	int kind;
	int memory;
};

struct opg_unit {
	const char *name;
};

struct opg_buffer {
	int memory;
	uint64_t bytes; /* > 0 */
	int role;
	int layer;
	const char *group, *type; /* "-": none */
};

struct opg_op {
	int kind;
	int step;
	const uint32_t *after; /* numbers below its own; NULL where there is none */
	uint32_t n_after;
	int n_hops;
	const struct maxmin_hop *hop;
	int unit, stream;
	sim_time latency;
	double bytes, amount, cap;
	int charge;
	int from, to; /* buffers; OPG_NONE: none */
	uint64_t at, into;
	int pinned;
	int via; /* a memory */
	int device;
	uint64_t threads;
	double flops, tokens;
	const char *dtype, *type;
	int layer;
	const char *group;
	int of; /* enum opg_role: weights, cache, hidden */
};

struct opg_steps {
	uint64_t count, first, end, ahead;
	int phase;
};

struct opg {
	struct { VEC(struct opg_about); } about;
	struct opg_steps steps;
	struct { VEC(struct opg_resource); } resources;
	struct { VEC(struct opg_memory); } memories;
	struct { VEC(struct opg_device); } devices;
	struct { VEC(struct opg_unit); } units;
	struct { VEC(struct opg_buffer); } buffers;
	struct { VEC(struct opg_op); } ops;
	struct { VEC(uint32_t); } step_end; /* by step: its operation */
};

/* NULL when nothing is said of it. */
const char *opg_about(const struct opg *g, const char *word);

/* Whole files. What is read is complete and consistent: every number that refers to something refers to something above,
   rates and sizes are positive and finite. Complaints name line and column. */
int opg_read(const char *path, struct arena *a, struct opg **out, struct err *err);
int opg_write(const struct opg *g, const char *path, struct err *err);

/* When each operation got its place (its latency began), and when it ended, in picoseconds from the beginning; by
   number, in the arena. */
struct opg_times {
	sim_time *start, *end;
};

/* Simulates it, adding steps as the scenario's own simulation does: finish times are the same to the picosecond. */
int opg_simulate(const struct opg *g, const volatile sig_atomic_t *interrupted, struct arena *a, struct opg_times *out,
	struct err *err);

#endif
