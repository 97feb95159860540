/*
 * bench.h - what other people's benchmark programs measured, as one plain list.
 *
 *	llama-bench  JSON, JSON lines, CSV, SQL, Markdown ─┐
 *	nvbandwidth  JSON                                  │     struct bench: a row a measurement, each with its
 *	fio          JSON                                  ├──>  kind, value in SI units, line, and what it is of
 *	STREAM, BabelStream's and SuperBench's GPU form    │
 *	Intel MLC    text                                  │
 *	vLLM         benchmark_serving's JSON             ─┘
 *
 * A reader is one file with one `const struct bench_format`, listed in bench.c. It finds fields by name, never by
 * position, and loses nothing: what was measured but says nothing of a machine's constants comes back with the reason in
 * `unused`. A row that cannot be read is an error at its line; nothing is shifted, nothing guessed.
 */
#ifndef HW_BENCH_H
#define HW_BENCH_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/units.h"

enum bench_kind {
	BENCH_H2D,           /* host to GPU, pinned, alone on its link */
	BENCH_D2H,           /* GPU to host, the same */
	BENCH_TWO_WAY,       /* sum of both directions at once */
	BENCH_GPU_MEMORY,    /* reads and writes of a GPU's own memory */
	BENCH_DRAM,          /* host memory, all threads */
	BENCH_DRIVE_READ,    /* large requests */
	BENCH_DRIVE_WRITE,
	BENCH_DRIVE_LATENCY, /* of one small read alone */
	BENCH_TOKENS,        /* tokens a second of a model: `llama` has the rest */
	BENCH_OTHER,         /* no constant of a machine: `unused` says why */
	BENCH_KIND_N,
};

/* One test of llama-bench. Fields that a file does not have keep what llama-bench would have meant without them. */
struct bench_llama {
	bool ik;                       /* of ik_llama.cpp, another engine */
	const char *model_filename;    /* "" when not stated, as all texts */
	const char *model_type;        /* "qwen2 7B Q4_K - Medium" */
	double model_size, model_n_params; /* bytes of tensors; 0: not stated */
	bool rounded;                  /* the two above come from a table for people: three digits */
	const char *cpu_info, *gpu_info, *backends;
	bool gpu;                      /* it ran with a GPU backend */
	int64_t n_batch, n_ubatch, n_threads; /* 0: not stated */
	const char *type_k, *type_v;   /* of the KV cache */
	int64_t n_gpu_layers;          /* -1: all that fit */
	int64_t n_cpu_moe;
	const char *split_mode, *tensor_split, *tensor_buft_overrides; /* "" when the default */
	bool no_kv_offload, no_op_offload, no_mmap;
	int64_t flash_attn;            /* -1: auto */
	int64_t n_prompt, n_gen, n_depth;
	const char *test_time;
};

struct bench_row {
	enum bench_kind kind;
	int line;                /* in the file */
	int device;              /* which GPU or drive, from 0 */
	double value;            /* SI units of dim */
	enum unit_dim dim;
	double spread;           /* relative standard deviation of its repetitions; 0: not stated */
	const char *what;        /* in words: "host_to_device_memcpy_ce, GPU 2" */
	const char *unused;      /* why it states no constant; NULL when it does */
	const struct bench_llama *llama; /* BENCH_TOKENS; else NULL */
};

struct bench_format;
struct bench {
	const char *file;
	const struct bench_format *format;
	struct bench_row *at;
	size_t n, cap;
};

/* What a reader gets: UTF-8 without a byte order mark, a NUL behind; it may be changed in place. */
struct bench_text {
	const char *file; /* for messages */
	char *s;
	size_t len;
	struct arena *a;
};

struct bench_format {
	const char *name;  /* for --format */
	const char *help;
	bool (*sniff)(const struct bench_text *t); /* looks as if it were written by this tool */
	int (*read)(struct bench_text *t, struct bench *out, struct err *err);
};

extern const struct bench_format bench_llama_bench, bench_nvbandwidth, bench_fio, bench_stream, bench_mlc, bench_vllm;

/* The i-th format, NULL past the end. */
const struct bench_format *bench_format_at(size_t i);
/* By name, with an error that names the nearest. */
int bench_format_find(const char *name, const struct bench_format **out, struct err *err);

/* format NULL: guessed from the content. A file without a measurement is an error. */
int bench_read_file(const char *path, const struct bench_format *format, struct arena *a, struct bench *out,
	struct err *err);
/* text is copied. */
int bench_read_text(const char *text, size_t len, const char *name, const struct bench_format *format,
	struct arena *a, struct bench *out, struct err *err);
/* Does it look like this format? Only looks into it; false when it is no plain file or cannot be read. */
bool bench_is(const char *path, const struct bench_format *format, struct arena *a);

/* first[i] is the index of the first row that is the same measurement as row i, i itself when none is before it: a file
   may be given twice or have been joined with itself. */
void bench_find_copies(const struct bench_row *const *row, size_t n, struct arena *a, size_t *first);

/* For readers. Adds a row; one whose value is not a positive finite number is an error at its line. */
int bench_add(struct bench *b, struct bench_text *t, const struct bench_row *row, struct err *err);
/* The line of the next place where word stands behind the cursor, which moves behind it; c NULL: the first place. Where
   there is none: the line the cursor is in. */
struct bench_cursor {
	size_t at;
	int lines; /* before it */
};
int bench_line_of(const struct bench_text *t, struct bench_cursor *c, const char *word);
bool bench_has(const struct bench_text *t, const char *word);
/* The line that *at begins with, its end replaced by a NUL, and *at moved behind it; NULL at the end of the text. */
char *bench_line(char **at);
/* What a number that is written as one has for its value: a JSON number, or a string that is one. */
struct json_t;
bool bench_json_number(const struct json_t *v, double *out);

#endif
