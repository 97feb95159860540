#include "sim/run/constants.h"

#include <string.h>

void constants_init(struct constants *c, const struct simulate_job *job)
{
	*c = (struct constants){.machine = hw_machine_copy(job->placement->machine, job->arena)};
	c->n[0] = hw_numbers(c->machine, job->arena, &c->ref[0]);
	if (job->cost) {
		c->cost = cost_copy(job->cost, job->arena);
		c->n[1] = cost_numbers(c->cost, job->arena, &c->ref[1]);
	}
	for (int from = 0; from < 2; from++) {
		c->was[from] = arena_array(job->arena, struct hw_num, c->n[from]);
		c->taken[from] = arena_array(job->arena, bool, c->n[from]);
		for (size_t k = 0; k < c->n[from]; k++) {
			c->ref[from][k].num->taken = &c->taken[from][k];
			c->was[from][k] = *c->ref[from][k].num;
		}
	}
}

int constants_simulate(const struct simulate_job *job, const struct constants *c, enum simulate_effort effort,
	double value[RESULT_FIELD_N], struct err *err)
{
	struct placement p = *job->placement;
	struct simulate_job other = *job;
	struct outcome o;

	p.machine = c->machine;
	other.placement = &p;
	other.cost = c->cost;
	other.times_alone = true;
	if (simulate_all(&other, effort, &o, err))
		return -1;
	outcome_metrics(&o, value);
	return 0;
}

void constants_scale(struct hw_num *num, double factor)
{
	num->peak *= factor;
	num->measured *= factor;
}

const char *constants_behind_gpu(const char *name)
{
	return strncmp(name, "gpu", 3) == 0 ? name + 3 + strspn(name + 3, "0123456789") : name;
}
