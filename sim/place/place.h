/*
 * place.h - what lives where, who computes it, and does it fit. No clock here.
 *
 * A placement says for each tensor, and for each layer's KV cache, in which memory it lives, which device
 * computes with it, and how the bytes get there:
 *
 *	resident   the bytes are in the device's own memory            (also: the host computes what is in RAM)
 *	streamed   they cross the link into a staging buffer before each use
 *	zero-copy  the kernel itself reads them over the link
 *	cached     some are kept near the device in turn; the others cross when missed, or are computed where they are
 *	rows       the rows of a matrix (or the heads of a cache) are divided over several devices, each computes with its own
 *
 * Engines fill tensors and KV (place_tensor, place_kv), then place_finish books the ledger and sums the
 * tensors into parts: the bytes of one group of one layer that share memory, device and mode. Execution
 * only looks at parts.
 */
#ifndef SIM_PLACE_PLACE_H
#define SIM_PLACE_PLACE_H

#include "base/arena.h"
#include "hw/hw.h"
#include "models/kvcache.h"
#include "models/ledger.h"
#include "models/model.h"

enum place_mode { PLACE_RESIDENT, PLACE_STREAMED, PLACE_ZERO_COPY, PLACE_CACHED, PLACE_ROWS, PLACE_MODE_N };

/* Where something is (memory of the machine, -1: not placed yet), who computes with it, how it gets there. Cached: the home
   of all, and who computes with what is missed. */
struct place_spot {
	int16_t memory;
	int16_t device;
	enum place_mode mode;
};

struct place_part {
	struct place_spot spot;
	uint32_t n_tensors, n_matrices; /* experts: of one expert; the second without norms and biases */
	uint64_t params, bytes; /* experts: of all the layer's experts in this part */
	const struct quant_type *type; /* of its largest tensor */
};

/* Devices that matrices are divided over, and shares of the rows, cumulated: the last is 1. A divided tensor's spot is that
   of the device that has its inputs and gathers its results. When its memory is none of theirs, all shares lie there. */
#define PLACE_MAX_ROWS 16

struct place_rows {
	int n;
	struct place_spot spot[PLACE_MAX_ROWS];
	double upto[PLACE_MAX_ROWS];
	enum place_mode away; /* of shares that lie elsewhere: how they get to their device */
};

/* A whole number divided as the rows are: what the i-th device gets. */
uint64_t place_rows_share(const struct place_rows *rows, int i, uint64_t n);
/* The share of a layer's cache that each of n devices has, which divide its heads: a head is not divided, and what MLA keeps
   belongs to all heads. */
double place_heads_share(const struct model_layer *l, int n);

/* Rows here and elsewhere, and some that are not divided. */
#define PLACE_MAX_PARTS (2 * PLACE_MAX_ROWS + 4)

struct place_group {
	int n;
	struct place_part part[PLACE_MAX_PARTS];
};

#define PLACE_MAX_CACHES 2

/* A cache before the home of what is PLACE_CACHED. */
struct place_cached {
	int16_t memory;
	double share; /* of bytes used in decode, those that were there before their step, and nowhere nearer */
};

/* What each pass reads from files through the system's page cache (sim/exec/files.h). bytes 0: nothing. */
struct place_files {
	double bytes;
	uint64_t room;  /* of RAM, for the page cache */
	int16_t drive;
	bool kept, warm; /* all stays in RAM behind the first pass; was there before it */
};

struct expert_plan; /* sim/cache/expert_plan.h */

struct placement {
	const struct model *model;
	const struct hw_machine *machine;
	struct place_spot *tensor;           /* by tensor of the model */
	struct place_rows rows;              /* of tensors whose mode is PLACE_ROWS; each of their devices has a part */
	struct place_spot *kv;               /* by layer */
	struct kvcache_types kv_types;
	uint64_t kv_context;                 /* entries a sequence there is room for */
	uint64_t kv_sequences;
	struct place_group (*group)[MODEL_GROUP_N]; /* by layer; [n_layer] holds embedding and output */
	struct ledger ledger;                /* rows are the machine's memories, in order */
	double *remote_share;                /* by memory of a GPU: of what it reads of RAM, on a socket that is not its own */
	uint64_t ahead_bytes;                /* at most, fetched before a step begins: what staging buffers hold */
	struct place_cached cached[PLACE_MAX_CACHES]; /* nearest first */
	int n_cached;
	struct place_files files;
	int16_t cache_device;                /* that computes with what is cached in its own memory */
	bool uneven;                         /* decode steps differ by more than their context */
	const struct expert_plan *experts;   /* what was found where, of an engine that caches experts; else NULL */
	const void *engine;                  /* the engine's own, for its execution */
	const char *advice;                  /* what more would fit and the flag that does it; "" */
};

/* The memory of a tensor that the engine does not load at all (of a draft layer). */
#define PLACE_LEFT_OUT (-2)

/* Everything unplaced; the ledger holds each memory's reserve as overhead. */
void place_init(struct placement *p, const struct model *m, const struct hw_machine *hw, struct arena *a);

/* Places every tensor of one group of one layer (MODEL_NO_LAYER: embedding, output). */
void place_layer_group(struct placement *p, int layer, enum model_group g, struct place_spot spot);
/* Places a whole layer: its tensors and its KV cache. */
void place_layer(struct placement *p, int layer, struct place_spot weights, struct place_spot kv);

/* Books weights and KV into the ledger, sums parts. Every tensor must be placed or left out (BUG). The engine books activations
   and overhead itself. */
void place_finish(struct placement *p);

const char *place_mode_name(enum place_mode mode);

/* Bytes of weights of a layer, all groups; MODEL_NO_LAYER: embedding and output, tied ones once. */
uint64_t place_layer_bytes(const struct model *m, int layer);

#endif
