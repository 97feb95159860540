/*
 * scenario.h - what is to be simulated, fully resolved.
 *
 * scenario.yaml + --set ──> tree ──> struct scenario: model and machine loaded, engine and its flags known,
 * every default written out. Const afterwards; shared by all runs of it.
 */
#ifndef SIM_RUN_SCENARIO_H
#define SIM_RUN_SCENARIO_H

#include "base/arena.h"
#include "base/err.h"
#include "base/param.h"
#include "hw/hw.h"
#include "models/model.h"
#include "sim/engine/engine_table.h"
#include "sim/trace/experts.h"
#include "sim/trace/experts_record.h"
#include "sim/trace/trace.h"

struct scenario_set {
	const char *key, *value; /* as given: "flags.gpu-layers", "40" */
	struct err_pos pos;      /* where it is written, which paths in it are relative to; no file: on the command line */
};

/* Which experts tokens hit. */
struct scenario_routing {
	const char *text;              /* as it is in the canonical text: "uniform", "{zipf: 0.8, locality: 0.3}" */
	const char *key;               /* the same, with a hash of a file's contents in place of its name */
	const struct experts *experts; /* by layer of the model */
	const struct experts_record *record; /* what was recorded instead; NULL: it is drawn */
	bool repeats;                  /* the workload has more tokens than the record, which begins again */
};

struct scenario {
	const char *file;         /* it was read from */
	const char *model_name, *quant, *machine_name, *engine_name;
	struct model *model;
	struct hw_machine *machine;
	const struct engine_ops *engine;
	void *flags;              /* the engine's own struct, filled through its table */
	struct engine_left_out left_out; /* flags that are known and change nothing here */
	struct cost *cost;        /* what the engine's kernels reach; NULL for one without such data */
	struct yaml_node *flags_node, *machine_node, *sweep;
	struct trace_workload workload;
	const struct trace *recorded; /* the workload is this; NULL: it is made up */
	const struct trace_workload *request; /* or these, one after another; `workload` has room for each of them */
	uint64_t n_requests;
	struct trace_workload mean_request;
	uint64_t requests_hash;
	struct scenario_routing routing;
	uint64_t seed;
	const struct scenario_set *set; /* overrides, in order; later ones win */
	size_t n_set;
	const char *canonical;    /* one line of YAML: names and values, defaults written out */
	char key[17];             /* hash over canonical text and the contents of machine and model */
};

/* Keys of a scenario, for `help keys`: one table a section. */
struct scenario_section {
	const char *prefix; /* "", "workload" */
	const struct param *table;
	size_t n;
};
extern const struct scenario_section scenario_sections[];
extern const size_t scenario_sections_n;

/* Reads path, applies the overrides ("KEY=VALUE" split by the caller), loads and checks everything. */
int scenario_load(const char *path, const struct scenario_set *set, size_t n_set, struct arena *a,
		  struct scenario **out, struct err *err);
/* The same from text; name stands for the file in messages, and paths in it are relative to where the user is. */
int scenario_load_text(const char *text, const char *name, struct arena *a, struct scenario **out, struct err *err);
/* The same with flags as a person typed them, from column col on; messages count in what was typed, and those on the text,
   which was made from options, have no line. Then the overrides. */
int scenario_load_typed(const char *text, const char *name, const char *flags, int col, const struct scenario_set *set,
	size_t n_set, struct arena *a, struct scenario **out, struct err *err);

#endif
