/*
 * otr_code.h - the format of native trace files, version 1, and the coding of their records.
 *
 * The file. Numbers are little-endian; a varint is LEB128 (7 bits a byte, the lowest first); a difference is a varint of
 * the zigzag of (value - guess) modulo 2^64: 0, -1, 1, -2 become 0, 1, 2, 3.
 *
 *	0   89 4f 54 52 0d 0a 1a 0a     magic: "\x89OTR\r\n\x1a\n", which a transfer as text destroys
 *	8   u32                         version, 1
 *	12  block HEAD │ block RECS │ block RECS │ … │ block INDX │ tail
 *
 *	block   4 letters │ u32: bytes of the frame │ one zstd frame, with its content's size and its checksum
 *	tail    u64: where INDX begins │ 89 4f 54 52 45 4e 44 0a ("\x89OTREND\n")
 *
 *	HEAD    varints: kind (enum otr_kind), experts_only, block_tokens, batch, prompt, generate, depth;
 *	        4 texts (varint length, UTF-8): model, source, licence, note;
 *	        varint n_layer, and for each layer varints: n_expert, n_expert_used, expert_bytes, dense_bytes
 *	RECS    a chunk: records one after another. Nothing is guessed from another chunk
 *	INDX    u64 records │ u64 accesses │ u64 otr_hash │ u32 chunks │ for each: u64 where it begins, u64 its first record
 *
 * A step is a list of items: an item is one access, or a run of uses: accesses of experts of one layer, in order of use.
 *
 *	accesses  weights attn │ kv write │ kv read │ router │ expert 17 │ expert 3 │ expert 250 │ weights attn │ …
 *	items     0              1          2         3        4: run of 3                         5
 *
 * Item k is guessed from item k of the step before of its phase (so that runs may change their length). Only items that are
 * not as guessed are written, and the numbers of the experts:
 *
 *	step    flags │ fields that are not as guessed │ varint: bytes of the exceptions │ exceptions │ uses of all runs
 *	        flags: 1 phase (set: decode), then which differ: 2 index, 4 n_sequences, 8 n_tokens, 16 n_sampled, 32 context,
 *	        64 number of items; each as a difference, in this order.
 *	        Guesses: index that of the last step, of any phase, + 1; context + n_tokens / n_sequences of the step before; all
 *	        else as before; at first 0
 *	exception  varint: items as guessed before it │ flags │ what is not as guessed, in this order
 *	        1 layer, difference │ 2 byte: kind + 8 * group │ 4 byte, shape: 1 a run + 2 * width + 8 * varied │
 *	        8 uses of a run, else number of the expert, difference │ 16 tokens, difference │ 32 kv_tokens, difference │
 *	        64 kv_pairs, difference of whole numbers (a guess that is none counts as 0) or 128 the same, an IEEE 754 double
 *	        Items that the step before had none of are all written; their guess is the item before them, or zeros
 *	uses    of each run the numbers of its experts, 1, 2 or 4 bytes each (width 0, 1, 2), then, if the run is varied, a varint
 *	        each: its tokens. In a run that is not, all have the item's tokens
 *
 * Guesses of an item: tokens that were those of its step (n_tokens, else n_sampled) are those of this step; a KV read that held
 * what another had held (kv_tokens and kv_pairs) holds what that one now does, else it grew by as much (the last
 * four that differed are remembered). All else is as before. The tokens of a varied run are no part of it.
 *
 *	request   differences: arrival_ns from the request before, input_tokens and output_tokens from 0 (varints), session
 *	        from the request before │ varint n_blocks │ differences: the first block from the first of the last request that had
 *	        any, each other one from the one before it, plus 1
 */
#ifndef SIM_TRACE_OTR_CODE_H
#define SIM_TRACE_OTR_CODE_H

#include "sim/trace/otr.h"

#define OTR_MAGIC "\x89OTR\r\n\x1a\n"
#define OTR_TAIL_MAGIC "\x89OTREND\n"
#define OTR_VERSION 1

#define OTR_HEAD_AT 12      /* where the first block begins */
#define OTR_BLOCK_HEAD 8    /* bytes before its frame */
#define OTR_TAIL 16
#define OTR_INDEX_HEAD 28
#define OTR_INDEX_ROW 16

/* What a writer never exceeds and a reader never allocates beyond. */
#define OTR_HEAD_MAX (4 << 20)         /* bytes of a head */
#define OTR_TEXT_MAX (64 << 10)        /* bytes of a text in it */
#define OTR_CHUNK_MAX (64 << 20)       /* bytes of a chunk: for one of more than OTR_CHUNK_FULL, those of one record */
#define OTR_ACCESS_MAX (8 << 20)       /* accesses of a step */
#define OTR_ITEM_MAX (1 << 20)         /* items of a step */

/* A chunk that reaches either of these ends. */
#define OTR_CHUNK_FULL (256 << 10)     /* bytes */
#define OTR_CHUNK_ACCESSES (512 << 10) /* what a seek may have to read in vain */

struct otr_bytes {
	VEC(unsigned char);
};

/* Bytes being read; what lies behind them reads as 0 and sets bad. */
struct otr_input {
	const unsigned char *at, *end;
	bool bad;
};

void otr_put_u32(struct otr_bytes *to, struct arena *a, uint32_t v);
void otr_put_u64(struct otr_bytes *to, struct arena *a, uint64_t v);
uint32_t otr_get_u32(struct otr_input *from);
uint64_t otr_get_u64(struct otr_input *from);

struct otr_item {
	struct trace_access a; /* a run: expert 0 */
	uint32_t n;            /* uses of a run; 0: one access */
	uint8_t width;         /* a run: log2 of the bytes of an expert's number */
	bool varied;           /* a run whose uses have different tokens; those of a then mean nothing */
};

/* What records are guessed from. The same on both sides. */
struct otr_coder {
	struct arena *arena;
	const struct otr_info *info; /* bounds of what records may say */
	struct {
		struct trace_step step;
		struct {
			VEC(struct otr_item);
		} items;
	} before[2]; /* by phase */
	uint64_t next_index; /* of the step that follows the last one, whatever its phase */
	struct otr_request request_before;
	uint64_t first_block; /* of the last request that had any */

	struct {
		VEC(struct trace_access);
	} access; /* of the step decoded last */
	struct {
		VEC(uint64_t);
	} block;  /* of the request decoded last */
	struct otr_bytes exceptions, uses; /* of the step being encoded */
	char fault[160]; /* what is wrong with the record, when a function says -1 */
};

/* info must stay as long as the coder. */
void otr_coder_init(struct otr_coder *c, const struct otr_info *info, struct arena *a);
/* A new chunk. */
void otr_coder_reset(struct otr_coder *c);

/* Appends the record. After -1 (see fault) neither the coder nor the bytes are of use. */
int otr_encode_step(struct otr_coder *c, const struct trace_step *step, struct otr_bytes *to);
int otr_encode_request(struct otr_coder *c, const struct otr_request *r, struct otr_bytes *to);
/* Reads one record; what it points to is the coder's, until the next. */
int otr_decode_step(struct otr_coder *c, struct otr_input *from, struct trace_step *step);
int otr_decode_request(struct otr_coder *c, struct otr_input *from, struct otr_request *r);

/* The head's contents. Both check what a head may hold; fault: at least 160 bytes. */
int otr_encode_info(const struct otr_info *info, struct arena *a, struct otr_bytes *to, char *fault);
int otr_decode_info(struct otr_input *from, struct arena *a, struct otr_info *info, char *fault);

/* The hash of a file: that of its head's contents, then of every record. */
uint64_t otr_hash_info(const struct otr_bytes *head);
uint64_t otr_hash_step(uint64_t h, const struct trace_step *step);
uint64_t otr_hash_request(uint64_t h, const struct otr_request *r);

#endif
