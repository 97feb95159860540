/*
 * probe_part.h - from what was found to parts of the library, and to guesses where there is none: for hw/probe*, and for
 * the corpus of sim/run, whose machines are known by names alone.
 */
#ifndef HW_PROBE_PART_H
#define HW_PROBE_PART_H

#include "hw/probe_text.h"
#include "hw/profile.h"

/* hw/probe.yaml, and the library that its names are of. */
struct probe_library {
	struct arena *a;
	struct profile profile;
	const struct yaml_node *root;
};

struct probe_ram_guess {
	double capacity_bytes, per_core_bytes_s, spread;
	const struct yaml_node *most; /* by cores */
};
struct probe_modules_guess {
	const char *type;
	double rate_t_s;
	uint64_t channels; /* of one socket */
	uint64_t pcie_gen; /* of its lanes; 0: no card has a newer one */
};
struct probe_cpu_guess {
	double clock_hz, launch_s, spread, efficiency;
	double fp32, bf16, int8; /* operations a cycle and core */
};
struct probe_gpu_guess {
	const char *link; /* "pcie-4x16" */
	double bandwidth_per_byte, fp16_per_byte, fp32_per_byte, launch_s, reserved, spread;
};

int probe_library_open(struct probe_library *lib, struct arena *a, struct err *err);

/* The part that a device of this name is; NULL when there is none. bytes, when not 0, is its memory. */
int probe_find_part(struct probe_library *lib, enum hw_part_kind kind, const char *name, uint64_t bytes,
		    const char **part, struct err *err);
/* A part's numbers alone. */
int probe_part_numbers(struct probe_library *lib, enum hw_part_kind kind, const char *part,
		       struct profile_part_values *out, struct err *err);
/* A processor's; *name is a better one than "arm 0x41:0xd4f" where there is one. cores: of one socket. */
int probe_find_cpu(struct probe_library *lib, const char *model, unsigned cores, const char **name, const char **part,
		   struct err *err);
/* The part of memory that goes with a processor part; NULL when it is ordinary. */
int probe_find_dram(struct probe_library *lib, const char *cpu, uint64_t bytes, const char **part, struct err *err);

int probe_guess_ram(struct probe_library *lib, struct probe_ram_guess *out, struct err *err);
/* bytes/s of so many cores of an unknown machine. */
int probe_guess_bandwidth(const struct probe_ram_guess *guess, unsigned cores, double *bytes_s, struct err *err);
/* channels is 0 when the processor is not in the table (or NULL). */
int probe_guess_modules(struct probe_library *lib, const char *cpu, struct probe_modules_guess *out, struct err *err);
int probe_guess_cpu(struct probe_library *lib, const char *isa, struct probe_cpu_guess *out, struct err *err);
int probe_guess_gpu(struct probe_library *lib, struct probe_gpu_guess *out, struct err *err);

/* The part that joins GPUs of this compute capability where nvidia-smi says `word` ("NV18"); NULL when there is none. */
int probe_find_nvlink(struct probe_library *lib, const char *word, double compute, const char **part,
		      enum hw_link_between *between, struct err *err);
/* What a PCIe link of this generation and width carries to the device. */
int probe_link_rate(struct probe_library *lib, unsigned gen, unsigned width, struct hw_num *out, struct err *err);

#endif
