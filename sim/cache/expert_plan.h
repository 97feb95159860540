/*
 * expert_plan.h - what each layer of each step finds where, when a trace runs through caches of experts.
 *
 *	step, layer: experts 3 7 9 ──> level 0 (GPU memory)  ──missed──> level 1 (RAM) ──missed──> home (drive)
 *	                    brought ahead ──────┘                           either level may be absent
 *
 * Made once from the whole trace before anything is timed: who is in a cache depends on the order of uses, not on
 * time, so any step can be simulated without those before it. What is missed is brought into every level it passes.
 */
#ifndef SIM_CACHE_EXPERT_PLAN_H
#define SIM_CACHE_EXPERT_PLAN_H

#include "sim/cache/cache_set.h"
#include "sim/trace/trace.h"

#define EXPERT_LEVELS 2

struct expert_level {
	const char *name;      /* of the memory it is in */
	const struct cache_ops *policy;
	enum cache_scope scope;
	uint64_t budget_bytes; /* 0: there is no such level */
	uint32_t slots;        /* experts each layer has room for, with scope CACHE_LAYER; 0: an equal share of the budget */
};

struct expert_plan_config {
	struct expert_level level[EXPERT_LEVELS]; /* nearest first; a level alone is level 0 */
	/* Before a layer's router has spoken, its experts are guessed and brought to level 0: each of those it will need
	   is guessed with this probability, and every miss of the guess is another expert brought for nothing. */
	double lookahead;
	uint64_t seed;
};

/* One layer of one step: how many experts. */
struct expert_found {
	uint16_t hit;      /* at level 0 */
	uint16_t early;    /* of these, brought ahead for this very use */
	uint16_t near;     /* missed at level 0, found in the next memory behind */
	uint16_t far;      /* missed there too */
	uint16_t ahead_near, ahead_far; /* brought ahead from there, right or wrong */
};

/* Sums over the steps of a phase. */
struct expert_sum {
	uint64_t lookups, hits;
	uint64_t read_bytes; /* brought in from behind, ahead of use or not */
	uint64_t used_bytes; /* looked up at level 0 */
	uint64_t held_bytes; /* of these, there before the step: at this level, and not nearer */
};

struct expert_plan {
	uint64_t n_steps;
	uint32_t n_layer;
	struct expert_found *found;             /* by step, then layer */
	int n_levels;
	const char *level_name[EXPERT_LEVELS];
	struct expert_sum sum[EXPERT_LEVELS][2]; /* by enum trace_phase */
};

/* Fails when a step of the trace cannot be made. The plan is the arena's. */
int expert_plan_make(const struct trace *t, const struct expert_plan_config *config, struct arena *a,
	struct expert_plan **out, struct err *err);

const struct expert_found *expert_plan_at(const struct expert_plan *p, uint64_t step, int layer);
/* The share of lookups that hit; NAN without any. */
double expert_plan_hit_rate(const struct expert_plan *p, int level, enum trace_phase phase);
/* The share of bytes used in that phase that this level had before their step, and none nearer: what is not brought from
   behind, however well it is guessed. 0 without any. */
double expert_plan_held_share(const struct expert_plan *p, int level, enum trace_phase phase);

#endif
