/*
 * cpu_team.h - threads that do one thing together, begun and met again in well under a microsecond: a barrier that spins.
 *
 * A team has a leader, which is the caller's own thread, and helpers. Who waits longer than some ten microseconds sleeps, and
 * spinning gives the processor away now and then: there may be more threads than processors.
 */
#ifndef SIM_REAL_CPU_TEAM_H
#define SIM_REAL_CPU_TEAM_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"

/* Spins before sleep; one is about 20 ns. */
#define CPU_TEAM_SPINS 2000

/* The i-th spin of a wait. */
static inline void cpu_team_spin(unsigned i)
{
	if (i % 64 == 63)
		sched_yield();
#if defined(__x86_64__) || defined(__i386__)
	else
		__builtin_ia32_pause();
#endif
}

/* member: 0 is the leader. */
typedef void cpu_team_fn(void *ctx, unsigned member);

struct cpu_helper {
	struct cpu_team *team;
	pthread_t thread;
	unsigned member;
};

struct cpu_team {
	unsigned n;                    /* members, the leader included */
	struct cpu_helper *helper;     /* n - 1; the caller's memory */
	const int *cpu;                /* by member: the processor that it stays on; NULL: any */
	cpu_team_fn *fn;               /* of the work at hand */
	void *ctx;
	_Atomic unsigned round, left;  /* round: of work; left: helpers still at it */
	atomic_bool quit;
	pthread_mutex_t lock;
	pthread_cond_t begun;
};

/* helper: room for n - 1. cpu: of n members, which the leader's thread must keep to by itself; NULL: none does. On failure
   nothing is left behind. */
int cpu_team_start(struct cpu_team *t, unsigned n, struct cpu_helper *helper, const int *cpu, struct err *err);
/* Calls fn for every member, for the leader in the caller's thread; returns when all are done. */
void cpu_team_run(struct cpu_team *t, cpu_team_fn *fn, void *ctx);
void cpu_team_stop(struct cpu_team *t);

#endif
