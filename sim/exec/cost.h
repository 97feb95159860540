/*
 * cost.h - what an engine's kernels reach of what the hardware has.
 *
 * Bandwidth and arithmetic belong to the machine (hw/); that a 4-bit matrix-vector kernel reaches four fifths
 * of the first, or how many weights a CPU's thread multiplies in a cycle, belongs to the software. Those rates and
 * the fixed times between kernels are data, one file an engine (hw/kernels/NAME.yaml), each with spread and source.
 *
 * Of the CPU's tables, by instruction set and type of weights, a cost holds the one of its machine. Which row is a type's:
 *
 *	the machine's own cpu0.kernels.TYPE ─> the file's row for the type ─> its row for the class ─>
 *	the mean over the class's types, moved by `bits`
 *
 * An engine may reach the GPU in several ways. The group `gpu` then has `backends`, and each says what it does not have in
 * common with the group; a `before` of its own or of the one that it is `like` goes before that for builds before its month:
 *
 *	backends.NAME.before.2025-12 ─> backends.NAME ─> those of its `like` ─> gpu
 *
 * Where a machine was measured with some types, the others' rows move with them: by the mean ratio of what was
 * measured to the file's rows.
 */
#ifndef SIM_EXEC_COST_H
#define SIM_EXEC_COST_H

#include "hw/hw.h"
#include "models/model.h"

/* Types that kernels treat alike. */
enum cost_class {
	COST_16BIT, /* f32, f16, bf16: multiplied as they are */
	COST_8BIT,  /* q8_0, f8: one scale a block */
	COST_KQUANT, /* 2 to 6 bits with block scales: q4_0 … q6_k, iq4_nl, ternary ones, iq2_k … iq6_k */
	COST_TABLE, /* i-quants: looked up in tables of many values; trellises */
	COST_CLASS_N,
};

/* Multiply-adds a cycle of one thread of a CPU. */
struct cost_rate {
	const char *name;     /* of a type; of a class: only in tables */
	const struct quant_type *type; /* NULL: the row is of a class */
	double bits;          /* a weight */
	enum cost_class class;
	struct hw_num one;    /* with one row: each weight is expanded for each row */
	struct hw_num many;   /* with many rows: once for all of them */
	bool tiles;           /* of a cache: many queries read it by tiles */
	double early;         /* share of `many` that the program's kernels reach without those for blocks of rows: of few rows,
	                         and before it had them */
	double two;           /* times `one`, with two rows, and `many` from four on: tiles of any rows; 0: not so */
	double strided;       /* of a cache: more cycles for an entry's keys and values of 256 bytes, four times that of twice as many,
	                         where other heads' lie between them; 0: none */
	double four;          /* times `many`: rows are taken by sixteen, then by four, the rest one by one; 0: not so */
};

struct cost_cpu {
	struct hw_num read;           /* share of the DRAM rate, all threads */
	struct hw_num begin_s;        /* until the threads have come into an expert's matrices */
	struct hw_num read_experts;   /* of that, what reads of single experts reach; 0: all of it */
	struct hw_num read_strided;   /* of that, where weights are not laid out in the order in which they are read */
	struct hw_num dot_experts;    /* of the rates below, what products of many rows with experts reach; 0: all of it */
	struct hw_num overlap;        /* exponent: time^overlap = memory^overlap + dot^overlap */
	struct hw_num few_rows;       /* so many are multiplied one by one, */
	struct hw_num many_rows;      /* from so many on they are multiplied together, */
	struct hw_num block_rows;     /* and from so many on by kernels for blocks of rows; 0: always */
	struct hw_num all_threads;    /* two threads on each core, of what one on each does */
	struct hw_num unbound;        /* of one socket's rate, what threads of all reach of pages that lie as they fell */
	struct hw_num far_bound;      /* what a further socket adds to the first one's rate: pages and threads spread */
	struct hw_num far_experts;    /* of either, what reads of single experts reach; 0: all of it */
	struct hw_num far_many;       /* the same in products of many rows; 0: all of it */
	struct hw_num oversubscribed_s; /* a barrier of more threads than the hardware has */
	struct hw_num early_attention; /* share of the rates below that attention in old builds reached; 0: all of it */
	struct hw_num early_attention_many; /* the same, of many queries; 0: all */
	struct hw_num early_state_bytes_s; /* of recurrent state, updated by a graph of operations; 0: by one that reads and
	                                 writes it */
	struct hw_num entry_cycles;   /* attention, one query: for each entry and head, whatever its size */
	struct hw_num score_cycles;   /* attention that is not flash: the same, beside two products with weights of the cache's types */
	struct hw_num latent_cycles;  /* the same attention, MLA: to turn a value of a latent vector around, once for all heads */
	struct hw_num tile_rows;      /* from so many queries on a cache is read by tiles, if the engine has such for its type */
	struct hw_num bits[COST_CLASS_N]; /* types without a row: rate ~ bits^-this within a class */
	struct cost_rate *weights;    /* of types and of classes */
	int n_weights;
	struct cost_rate *cache;      /* of types of cache entries, and of classes */
	int n_cache;
};

struct cost {
	struct hw_num gpu_read[COST_CLASS_N];     /* share of memory rate, few rows */
	struct hw_num gpu_multiply[COST_CLASS_N]; /* share of the FP16 rate, many rows */
	struct hw_num gpu_bf16;                   /* of gpu_multiply, bfloat16 on a card without units for it; 0: all of it */
	struct hw_num gpu_bf16_experts;           /* of gpu_read, bfloat16 experts whatever the rows; 0: all of it */
	struct hw_num gpu_early;                  /* of that with quantised weights, where they are expanded to 16 bits first */
	struct hw_num scores;                     /* bytes of memory for each score, attention of many rows that is not flash */
	struct hw_num gpu_attention_many;         /* share of the FP16 rate, attention of many rows; 0: as products in 16 bits */
	struct hw_num gpu_mla;                    /* share of the FP16 rate, attention of many rows with MLA's heads; 0: as others */
	struct hw_num gpu_experts;                /* of gpu_multiply, many rows of each of several experts; 0: all of it */
	struct hw_num gpu_experts_16bit;          /* of that, weights that are not quantised; 0: all of it */
	struct hw_num gpu_expert_rows;            /* an expert's rows at which it reaches half of that; with few, a third */
	struct hw_num gpu_attention;              /* share of memory rate when reading the cache */
	struct hw_num gpu_attention_old;          /* the same before PyTorch had a kernel for it */
	struct hw_num gpu_broadcast;              /* the same in eager kernels that broadcast, or write every other row */
	struct hw_num gpu_kernel_s;               /* from one kernel to the next */
	const char *gpu_graphs_from;              /* YYYY-MM of builds with CUDA graphs on this card, "never"; NULL: all */
	bool gpu_vectors;                         /* attention of one row has kernels for vectors alone on this card */
	bool gpu_early_told;                      /* gpu_multiply is that of the backend's month, whatever the engine's own rule */
	struct hw_num gpu_early_kernel_s;         /* the same before an engine fused them; 0: as now */
	struct hw_num gpu_ungraphed_s;            /* more of each before an engine had CUDA graphs, on a card that has them */
	struct hw_num gpu_sync_s;                 /* the host waits for the GPU and goes on */
	struct hw_num copy_submit_s;              /* the host's part of one copy */
	struct hw_num gpu_alloc_s;                /* memory for one tensor, got and given back */
	struct hw_num gpu_early_state;            /* times that recurrent state is read or written by a graph of operations */
	struct hw_num gpu_scan_s;                 /* a recurrent layer's step for one token of a prompt, which follow each other; 0: nothing */
	struct hw_num gpu_early_scan_s;           /* the same by chunks, as a graph of operations; 0: as now */
	struct hw_num gpu_launch_s;               /* from one to the next where the host launches and nothing hides it; 0: the device's */
	struct hw_num unexplained;                /* deviation of measured times of decoding that no constant's spread covers */
	struct hw_num unexplained_prompt;         /* the same of prompts */
	struct hw_num paging;                     /* of what paging reads, the share that was wanted; 0: it does not page */
	struct hw_num step_s;                     /* the host between two steps: sampling, bookkeeping */
	struct hw_num step_old_s;                 /* the same in old builds */
	struct hw_num request_s;                  /* of a served request, before its first pass and behind it */
	struct hw_num sequence_old_s;             /* the host between two steps, for each sequence, in old builds */
	struct hw_num host_block_s;               /* to find a block of the cache by its tokens */
	struct hw_num host_load_s;                /* to have a sequence's blocks brought, before the pass that runs meanwhile */
	struct cost_cpu cpu;                      /* of an engine that computes there; else nothing but zeros */
	/* Groups that not every engine has, 0 where the file does not: eager, files, zero_copy, reduce,
	   host_memory, helpers. */
	struct hw_num host_op_s;                  /* the host's part of one operation, where it launches one by one */
	struct hw_num hook_operations;            /* what a hook around a module takes, of these */
	/* Linear layers that bitsandbytes has quantized: operations of the host for each beside the product, of LLM.int8 and
	   before 0.45, of 4 bits with one row and where they are expanded; values expanded for each FLOP in 32 bits. */
	struct hw_num bnb_int8, bnb_int8_old, bnb_4bit, bnb_expand_host, bnb_expand;
	struct hw_num layer_s;                    /* the host between two layers */
	struct hw_num zero_copy_pcie, zero_copy_c2c; /* share of the link's rate that loads of a kernel reach */
	struct hw_num zero_copy_remote;           /* the same of what copies reach of memory on another socket */
	struct hw_num zero_copy_rows;             /* of an expert, for which its weights are read once */
	/* Of all that lies there, so much is found through the mappings that a GPU keeps; of that rate, what loads beyond reach. */
	struct hw_num zero_copy_reach_bytes, zero_copy_beyond;
	/* All-reduce of two ranks, beside its bytes: over NVLink, PCIe from GPU to GPU, PCIe through host memory; what each
	   further rank adds there. */
	struct hw_num reduce_nvlink_s, reduce_pcie_s, reduce_host_s;
	struct hw_num reduce_nvlink_rank_s, reduce_pcie_rank_s, reduce_host_rank_s;
	/* What the main thread does itself, of the memory's rate: copies within it, attention in 32 bits. */
	struct hw_num host_copy, host_attention;
	struct hw_num page_cache_bytes_s;         /* a thread copies from the page cache to where it wants it */
	struct hw_num relay_bytes_s;              /* helpers copy from a pinned buffer to fresh memory */
};

/* By what an engine reaches the GPUs: cuda, hip, vulkan, metal. */
struct cost_backend {
	const char *name;  /* of gpu.backends; "auto": what is usual on the machine's card */
	char build[8];     /* YYYY-MM */
	bool bundled;      /* auto: what a program chooses that brings all of them */
	struct err_pos pos; /* where the name is written */
};

/* Reads hw/kernels/NAME.yaml for a machine. Every number must be there, and rows for the CPU's instruction set, but for groups
   that not every engine has: cpu and those behind it. As now, by what is usual on its card; or as then, by a backend. */
int cost_load(const char *name, const struct hw_machine *machine, struct arena *a, struct cost **out, struct err *err);
int cost_load_by(const char *name, const struct cost_backend *backend, const struct hw_machine *machine, struct arena *a,
	struct cost **out, struct err *err);
enum cost_class cost_class_of(const struct quant_type *type);
const char *cost_class_name(enum cost_class c);

/* The CPU's clock with all cores busy; where nobody knows it, what its FLOP/s would make it with AVX2. */
double cost_clock_hz(const struct hw_device *cpu);
/* The rate for a type: its row among these, else its class's, else the mean over its class. BUG when there is none of
   the class. bits: exponents by class. */
void cost_rate_for(const struct cost_rate *rows, int n_rows, const struct hw_num *bits, const struct quant_type *type,
	struct cost_rate *out);

/* Every number, named "kernels.gpu.read.kquant", "kernels.cpu.weights.q4_k.one", for sensitivity and the run key; as
   hw_numbers. */
size_t cost_numbers(struct cost *c, struct arena *a, struct hw_num_ref **out);
/* Whether such a name is that of a rate in multiply-adds a cycle. */
bool cost_is_rate(const char *name);
struct cost *cost_copy(const struct cost *c, struct arena *a);
/* Products of many rows as fast as they were with the kernels before. */
void cost_make_early(struct cost_cpu *c);
char *cost_canonical(const struct cost *c, struct arena *a);

#endif
