/*
 * engine_table.h - the engines by name.
 *
 * An engine is one file: a table of its flags (which serves `flags:` in scenarios and the help), where it
 * puts things (place), and the order in which it moves and computes them (lower). To add one: write
 * sim/engine/NAME.c with `const struct engine_ops engine_NAME`, declare it here, add it to the array in
 * engine_table.c.
 */
#ifndef SIM_ENGINE_ENGINE_TABLE_H
#define SIM_ENGINE_ENGINE_TABLE_H

#include "base/param.h"
#include "sim/engine/python_call.h"
#include "sim/exec/cost.h"
#include "sim/exec/exec.h"

struct engine_job {
	const struct model *model;
	const struct hw_machine *machine;
	const struct cost *cost; /* what its kernels reach; NULL for an engine without `kernels` */
	const struct trace *trace;
	const void *flags; /* the engine's own struct */
	uint64_t seed;     /* of what the engine draws */
};

/* A second name of a flag. */
struct engine_alias {
	const char *name, *key;
};

/* A flag that is known and has no influence on time or memory; or has, and is not modelled: left out, which is told. */
#define ENGINE_VALUE true /* it takes one */
#define ENGINE_NOT_MODELLED 2u
#define ENGINE_VALUES (4u | ENGINE_VALUE) /* one or more */
#define ENGINE_MAY_VALUE 8u               /* one or none */
#define ENGINE_NOT_MODELLED_VALUE (ENGINE_NOT_MODELLED | ENGINE_VALUE)
struct engine_ignored {
	const char *name;
	unsigned kind;
};

/* Flags that were written and are left out, separated by commas; "" where there are none. */
struct engine_left_out {
	const char *ignored, *not_modelled;
};

struct engine_ops {
	const char *name;
	const char *version; /* of the model of the engine: part of the run key */
	const char *help;
	const struct param *flag;
	size_t n_flags, flags_size;
	const struct engine_alias *alias;
	size_t n_aliases;
	const struct engine_ignored *ignored;
	size_t n_ignored;
	const char *bare;     /* a flag that may stand without its value and then means "on"; NULL: none */
	const char *several;  /* a flag whose value is all the words up to the next flag; NULL: none */
	bool short_counts;    /* counts may be "32k", thousands, or "32K", times 1024; and so on */
	bool minus_unset;     /* a count of -1 is none given */
	bool dashes;          /* long flags may be written with underscores for them */
	const char *repeats;  /* a flag whose values add up, joined by commas; NULL: none */
	const struct python_function *call; /* its flags may be the text of a call of one of these */
	size_t n_calls;
	const char *kernels;  /* file of hw/kernels that says what its kernels reach; NULL: all there is */
	/* Which of that file's backends; NULL: it has none. */
	struct cost_backend (*backend)(const void *flags);
	bool overheads; /* pays latencies and launches */
	bool stepwise;  /* nothing of a step begins before the one before has ended, nor is left when it ends */
	/* Most rows of a prefill step on a machine; NULL, or 0: all in one. */
	uint64_t (*prefill_rows)(const void *flags, const struct hw_machine *machine);
	/* Changes what the flags make different in the layers: experts a token uses, windows; NULL: nothing. */
	int (*adapt)(const void *flags, struct model *m, struct err *err);
	/* Decides and books everything; a placement that does not fit is no error. */
	int (*place)(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err);
	/* State for one run of steps. */
	void *(*state_new)(const struct engine_job *job, const struct placement *p, struct arena *a);
	exec_lower_fn *lower;
};

extern const struct engine_ops engine_accelerate, engine_airllm, engine_deepspeed_tp, engine_ds4, engine_exllama,
	engine_expertcache, engine_fiddler, engine_flexgen, engine_ideal, engine_ik_llamacpp, engine_ktransformers,
	engine_llamacpp, engine_llamacpp_python, engine_ollama, engine_sequoia, engine_sglang, engine_transformers, engine_vllm,
	engine_zero_inference;

/* For adapt: so many experts a token; an error when a layer has fewer. */
int engine_use_experts(struct model *m, uint64_t n, struct err *err);

/* For place, of a flag `build`: a year, or a year and month, "2025-04"; they compare as text. */
int engine_check_build(const char *build, struct err *err);

/* The i-th engine, NULL past the end. */
const struct engine_ops *engine_at(size_t i);
/* By name, with an error that names the nearest. */
int engine_find(const char *name, const struct err_pos *pos, const struct engine_ops **out, struct err *err);

/* `flags:` as a person wrote it, a map or the text of a command line ("-ngl 40 -fa 1") or of a Python call, made into a map of
   flag names without dashes. The result can be overridden key by key and then goes to engine_flags_fill. */
int engine_flags_map(const struct engine_ops *e, const struct yaml_node *written, struct arena *a,
	struct yaml_node **out, struct engine_left_out *left, struct err *err);
/* The name under which the map holds a flag that may be written by an alias. */
const char *engine_flag_name(const struct engine_ops *e, const char *name);
/* Whether it has such a flag, or knows it as one without influence; the name without dashes. */
bool engine_knows_flag(const struct engine_ops *e, const char *name, struct arena *a);
int engine_flags_fill(const struct engine_ops *e, const struct yaml_node *map, struct arena *a, void **out,
	struct err *err);

#endif
