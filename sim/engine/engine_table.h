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
#include "sim/exec/exec.h"

struct engine_job {
	const struct model *model;
	const struct hw_machine *machine;
	const struct trace *trace;
	const void *flags; /* the engine's own struct */
};

struct engine_ops {
	const char *name;
	const char *version; /* of the model of the engine: part of the run key */
	const char *help;
	const struct param *flag;
	size_t n_flags, flags_size;
	bool overheads; /* pays latencies and launches */
	/* Decides and books everything; a placement that does not fit is no error. */
	int (*place)(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err);
	/* State for one run of steps. */
	void *(*state_new)(const struct engine_job *job, const struct placement *p, struct arena *a);
	exec_lower_fn *lower;
};

extern const struct engine_ops engine_ideal;

/* The i-th engine, NULL past the end. */
const struct engine_ops *engine_at(size_t i);
/* By name, with an error that names the nearest. */
int engine_find(const char *name, const struct err_pos *pos, const struct engine_ops **out, struct err *err);

/* `flags:` as a person wrote it, a map or the text of a command line ("-ngl 40 -fa 1"), made into a map of
   flag names without dashes. The result can be overridden key by key and then goes to engine_flags_fill. */
int engine_flags_map(const struct engine_ops *e, const struct yaml_node *written, struct arena *a,
	struct yaml_node **out, struct err *err);
int engine_flags_fill(const struct engine_ops *e, const struct yaml_node *map, struct arena *a, void **out,
	struct err *err);

#endif
