/*
 * gguf.h - the header of a GGUF file (version 2 and 3; ggml-org/ggml, docs/gguf.md).
 *
 *	"GGUF" version │ counts │ key = value … │ tensor: name, shape, type, offset … │ padding │ data
 *	└─────────────────── read, through a small window ──────────────────┘        └ never read ┘
 *
 * Nothing that the file says is believed: a count is checked against the bytes that are left before memory is
 * taken for it, a string to be UTF-8, a tensor to lie inside the file and on no other one. Long arrays, such
 * as vocabularies, are walked over and not kept; they can be walked again while the file is open.
 * Messages end in "at byte N" of the file.
 */
#ifndef MODELS_GGUF_H
#define MODELS_GGUF_H

#include "base/arena.h"
#include "base/err.h"
#include "models/quant.h"

enum gguf_type {
	GGUF_U8,
	GGUF_I8,
	GGUF_U16,
	GGUF_I16,
	GGUF_U32,
	GGUF_I32,
	GGUF_F32,
	GGUF_BOOL,
	GGUF_TEXT,
	GGUF_ARRAY,
	GGUF_U64,
	GGUF_I64,
	GGUF_F64,
	GGUF_TYPE_N,
};

struct gguf_scalar {
	enum gguf_type type;
	union {
		uint64_t u;	  /* unsigned, and bool: 0 or 1 */
		int64_t i;	  /* signed */
		double f;	  /* float */
		const char *text; /* with a NUL behind, and perhaps some inside */
	};
	size_t len; /* of text */
};

struct gguf_value {
	const char *key;
	enum gguf_type type; /* of the value, or of the array's elements */
	bool array;
	uint64_t n;		   /* elements of the array; 1 of a scalar */
	uint64_t at;		   /* byte of the file where the value (or the first element) begins */
	struct gguf_scalar scalar; /* unless it is an array */
};

struct gguf_tensor {
	const char *name;
	uint32_t n_dims;
	uint64_t dim[4]; /* row length first; unused ones are 1 */
	const struct quant_type *type;
	uint64_t elements, bytes;
	uint64_t offset; /* in the file, not in its data section */
	uint64_t at;	 /* byte of the file where its description begins */
};

struct gguf {
	const char *path;
	struct arena *arena;
	uint32_t version;
	uint64_t alignment;
	uint64_t size;	  /* of the file */
	uint64_t data_at; /* byte of the file where the data section begins */
	struct gguf_value *values;
	size_t n_values;
	struct gguf_tensor *tensors;
	size_t n_tensors;
	/* private */
	struct intern *keys;
	const unsigned char *memory; /* the whole file, or NULL: */
	int fd;
	unsigned char *window; /* bytes window_at … window_at + window_n of it */
	uint64_t window_at;
	size_t window_n;
};

/* Everything is kept in the arena. The file stays open, for gguf_next, until gguf_close; after an error there
   is nothing to close. */
int gguf_open(const char *path, struct arena *a, struct gguf *g, struct err *err);
/* The same from memory, which must stay; name stands for the file in messages. */
int gguf_open_memory(
	const void *bytes, size_t size, const char *name, struct arena *a, struct gguf *g, struct err *err);
void gguf_close(struct gguf *g);

/* NULL when the file has no such key. */
const struct gguf_value *gguf_find(const struct gguf *g, const char *key);

/* The elements of an array (or the one of a scalar) in order:
	gguf_walk(&w, g, v);
	while ((rc = gguf_next(&w, &s, err)) > 0) … */
struct gguf_walk {
	struct gguf *g;
	enum gguf_type type;
	uint64_t left, at;
};
void gguf_walk(struct gguf_walk *w, struct gguf *g, const struct gguf_value *v);
/* 1: *out is the next element, text in the arena; 0: there is none; -1: the file cannot be read. */
int gguf_next(struct gguf_walk *w, struct gguf_scalar *out, struct err *err);

/* An error of this file at this byte; -1. */
int gguf_fault(const struct gguf *g, uint64_t at, struct err *err, const char *fmt, ...) PRINTF_LIKE(4, 5);

#endif
