/*
 * cost_cpu.h - how long a product of weights and rows, or attention to a cache, takes on a CPU.
 *
 *	bytes ─────────> DRAM: what a team of n threads reaches of it    memory = bytes / rate(n)
 *	multiply-adds ─> n threads x rate(type, rows) x clock(n)         dot    = multiply-adds / rate
 *
 *	time │╲ dot                                  rate of a thread │            ______ many rows
 *	     │ ╲                                                      │         __╱
 *	     │──╲___.... memory                               one row │________╱
 *	     └──────────── threads                                    └──────────────────── rows
 *
 *	time^3 = memory^3 + dot^3, and a barrier of all threads at the end
 *
 * The two overlap while one of them is short (threads read ahead), and add up in part where both are long. With few
 * rows each weight is read once but expanded for every row; so a second row costs a CPU nearly as much as the first
 * unless memory bound that one, or a kernel takes the two together:
 *
 *	time │          _.-'  row by row        time │  .            by blocks of four and sixteen: a row that is left over
 *	     │      _.-'  _..                        │ .: .   .      costs as much as one alone
 *	     │  _.-'_..-''    tiles                  │.: .: .:
 *	     └──────────────── rows                  └──────────────── rows
 *
 * Pure functions of a cost, a machine and a team: no clock, nothing is kept.
 */
#ifndef SIM_EXEC_COST_CPU_H
#define SIM_EXEC_COST_CPU_H

#include "models/kvcache.h"
#include "sim/exec/cost.h"

enum cost_binding {
	COST_UNBOUND,  /* pages lie where they were touched first, threads run anywhere */
	COST_SPREAD,   /* both spread over the sockets */
	COST_PINNED,   /* threads on one socket, pages as with COST_UNBOUND */
	COST_ISOLATED, /* both on one socket */
};

/* The threads that compute together. */
struct cost_team {
	double threads;      /* as many as there are */
	double workers;      /* cores' worth of them */
	double clock_hz;     /* of each */
	double dram_bytes_s; /* that they reach together */
	double barrier_s;    /* at the end of each operation */
	double experts_share; /* of that rate, reading single experts, where pages are on several sockets */
	double even_share;   /* where each thread gets as much to do, whether it shares its core or not */
	double many_share;   /* of that, in products of many rows: threads on several sockets get in each other's way */
	double attention_share; /* of the rates of attention that their program reaches; 0: all */
	double attention_share_many; /* the same, of as many queries as make tiles */
};

/* threads 0: one for each core. */
struct cost_team cost_cpu_team(const struct cost_cpu *c, const struct hw_machine *m, const struct hw_device *cpu,
	unsigned threads, enum cost_binding binding);

/* Seconds, each alone. */
struct cost_time {
	double memory_s, dot_s;
};

/* How a product takes its rows. */
enum cost_rows {
	COST_TOGETHER,
	COST_EXPERTS,    /* those of an expert together */
	COST_ONE_BY_ONE, /* of experts, at the rate of one row however many there are: llama.cpp's mul_mat_id */
};

/* bytes of weights of a type, multiply-adds over all rows (0: they are only read). */
struct cost_time cost_cpu_multiply(const struct cost_cpu *c, const struct cost_team *t, const struct quant_type *type,
	double bytes, double multiply_adds, enum cost_rows how);
/* bytes of cache; pairs of a query and an entry it looks at, over all queries, for each of the layer's heads. */
struct cost_time cost_cpu_attention(const struct cost_cpu *c, const struct cost_team *t, const struct model_layer *l,
	const struct kvcache_types *types, double bytes, double pairs, double queries);
/* Queries that look at the same entries, masked or not. */
struct cost_scores {
	double queries; /* over all sequences */
	double rows;    /* of one sequence, multiplied together */
	double entries; /* that each looks at */
};

/* The same by two products, all scores written between them (no flash attention). */
struct cost_time cost_cpu_scores(const struct cost_cpu *c, const struct cost_team *t, const struct model_layer *l,
	const struct kvcache_types *types, double bytes, const struct cost_scores *s);
/* What the two come to. */
double cost_cpu_seconds(const struct cost_cpu *c, struct cost_time time);

#endif
