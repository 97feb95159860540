#include "sim/real/cpu_team.h"

#include <string.h>

#include "hw/measure.h"

/* Waits for the round after `seen`. */
static void wait_for_work(struct cpu_team *t, unsigned seen)
{
	for (unsigned i = 0; i < CPU_TEAM_SPINS; i++) {
		if (atomic_load(&t->round) != seen)
			return;
		cpu_team_spin(i);
	}
	pthread_mutex_lock(&t->lock);
	while (atomic_load(&t->round) == seen)
		pthread_cond_wait(&t->begun, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

static void *help(void *ctx)
{
	struct cpu_helper *h = ctx;
	struct cpu_team *t = h->team;

	if (t->cpu)
		measure_pin(t->cpu[h->member]);
	for (unsigned round = 0;; round++) {
		wait_for_work(t, round);
		if (atomic_load(&t->quit))
			return NULL;
		t->fn(t->ctx, h->member);
		atomic_fetch_sub(&t->left, 1);
	}
}

static void begin(struct cpu_team *t)
{
	pthread_mutex_lock(&t->lock);
	atomic_fetch_add(&t->round, 1);
	pthread_cond_broadcast(&t->begun);
	pthread_mutex_unlock(&t->lock);
}

int cpu_team_start(struct cpu_team *t, unsigned n, struct cpu_helper *helper, const int *cpu, struct err *err)
{
	*t = (struct cpu_team){.n = 1, .helper = helper, .cpu = cpu};
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->begun, NULL);
	for (; t->n < n; t->n++) {
		struct cpu_helper *h = &helper[t->n - 1];
		*h = (struct cpu_helper){.team = t, .member = t->n};
		int rc = pthread_create(&h->thread, NULL, help, h);
		if (rc) {
			cpu_team_stop(t);
			return err_set(err, ERR_IO, "cannot start thread %u: %s", t->n, strerror(rc));
		}
	}
	return 0;
}

void cpu_team_run(struct cpu_team *t, cpu_team_fn *fn, void *ctx)
{
	if (t->n > 1) {
		t->fn = fn;
		t->ctx = ctx;
		atomic_store(&t->left, t->n - 1);
		begin(t);
	}
	fn(ctx, 0);
	for (unsigned i = 0; t->n > 1 && atomic_load(&t->left); i++)
		cpu_team_spin(i);
}

void cpu_team_stop(struct cpu_team *t)
{
	atomic_store(&t->quit, true);
	begin(t);
	for (unsigned i = 1; i < t->n; i++)
		pthread_join(t->helper[i - 1].thread, NULL);
	pthread_cond_destroy(&t->begun);
	pthread_mutex_destroy(&t->lock);
}
