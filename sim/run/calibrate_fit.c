#include "sim/run/calibrate_fit.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_statistics.h>
#include <gsl/gsl_sort.h>

#include "sim/run/run.h"

/* Farther than this factor from the prior nothing is tried: rates must stay rates that a simulation can hold. */
#define FARTHEST 30.0
/* Step of the derivatives: as wide as the constant is uncertain, for what limits a step changes abruptly. */
#define STEP_SHARE 0.25
#define STEP_MIN 0.01
#define STEP_MAX 0.1
/* A constant whose spread, tried both ways, moves a point by less than this has no influence on it. */
#define INFLUENCE 1e-4
/* Two constants correlated by more are not told apart; one known this much as before is not known better. */
#define SAME_CORRELATION 0.95
#define SAME_SPREAD 0.9
/* Huber's: residuals beyond so many deviations count by their size, not its square. */
#define HUBER 1.345
#define MAX_ITERATIONS 30
#define MAX_ROUNDS 4

/* ---- simulations, many at a time ---- */

/* One point with one constant (-1: none) moved by `by` on top of x. */
struct task {
	size_t point;
	int constant;
	double by;
	double log_predicted;
};

struct batch {
	const struct fit *fit;
	struct task *task;
	size_t n;
	atomic_size_t next;
	pthread_mutex_t lock; /* of err */
	struct err *err;
	bool failed;
};

static void scale(struct hw_num *num, double factor)
{
	num->peak *= factor;
	num->measured *= factor;
}

static double bounded(double x)
{
	return fmin(fmax(x, -log(FARTHEST)), log(FARTHEST));
}

static int simulate(const struct fit *f, struct task *t, struct arena *a, struct err *err)
{
	const struct fit_point *p = &f->point[t->point];
	struct run_options o = {.quick = true, .interrupted = f->interrupted};
	struct scenario s = *p->scenario;
	struct hw_num_ref *ref[2];
	size_t n[2];
	struct result r;

	s.machine = hw_machine_copy(s.machine, a);
	s.cost = cost_copy(s.cost, a);
	n[0] = hw_numbers(s.machine, a, &ref[0]);
	n[1] = cost_numbers(s.cost, a, &ref[1]);
	if (n[0] + n[1] != f->n_constants)
		BUG("%zu constants, not %zu", n[0] + n[1], f->n_constants);
	for (size_t k = 0; k < f->n_constants; k++) {
		double x = f->constant[k].x + (t->constant == (int)k ? t->by : 0);
		if (x != 0)
			scale(k < n[0] ? ref[0][k].num : ref[1][k - n[0]].num, exp(bounded(x)));
	}
	if (run_scenario(&s, &o, a, &r, NULL, err))
		return -1;
	t->log_predicted = log(r.value[p->field] * p->scale);
	if (!isfinite(t->log_predicted))
		return err_set(err, ERR_INPUT, "a test gives no rate under constants that were tried");
	return 0;
}

static void *work(void *ctx)
{
	struct batch *b = ctx;
	struct arena a;
	size_t i;

	arena_init(&a, b->fit->arena->nomem, b->fit->arena->nomem_ctx);
	while ((i = atomic_fetch_add(&b->next, 1)) < b->n) {
		struct err err = {0};
		int rc = simulate(b->fit, &b->task[i], &a, &err);
		arena_reset(&a);
		if (rc == 0)
			continue;
		pthread_mutex_lock(&b->lock);
		if (!b->failed)
			*b->err = err;
		b->failed = true;
		pthread_mutex_unlock(&b->lock);
		atomic_store(&b->next, b->n);
	}
	arena_release(&a);
	return NULL;
}

static int simulate_all(const struct fit *f, struct task *task, size_t n, struct err *err)
{
	struct arena_mark mark = arena_mark(f->arena);
	pthread_t *thread = arena_array(f->arena, pthread_t, f->workers);
	struct batch b = {.fit = f, .task = task, .n = n, .err = err, .lock = PTHREAD_MUTEX_INITIALIZER};
	unsigned started = 0;

	while (started + 1 < f->workers && pthread_create(&thread[started], NULL, work, &b) == 0)
		started++;
	work(&b);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	arena_rewind(f->arena, mark);
	return b.failed ? -1 : 0;
}

int fit_predict(const struct fit *f, double *log_predicted, struct err *err)
{
	struct arena_mark mark = arena_mark(f->arena);
	struct task *task = arena_array(f->arena, struct task, f->n_points);

	for (size_t i = 0; i < f->n_points; i++)
		task[i] = (struct task){.point = i, .constant = -1};
	int rc = simulate_all(f, task, f->n_points, err);
	for (size_t i = 0; i < f->n_points; i++)
		log_predicted[i] = task[i].log_predicted;
	arena_rewind(f->arena, mark);
	return rc;
}

/* ---- the problem as GSL sees it ---- */

/* The constants that are free, and how much each point counts. Rows: the points, then one for each free constant. */
struct problem {
	struct fit *fit;
	size_t *free;
	size_t n_free;
	bool *depends;  /* [point * n_constants + constant] */
	double *weight; /* of each point's residual, with its sigma and the common noise in it */
	struct err *err;
};

static void take_x(const struct problem *p, const gsl_vector *x)
{
	for (size_t j = 0; j < p->n_free; j++)
		p->fit->constant[p->free[j]].x = bounded(gsl_vector_get(x, j));
}

static int residuals(const gsl_vector *x, void *ctx, gsl_vector *out)
{
	struct problem *p = ctx;
	struct fit *f = p->fit;
	struct arena_mark mark = arena_mark(f->arena);
	double *predicted = arena_array(f->arena, double, f->n_points);

	take_x(p, x);
	int rc = fit_predict(f, predicted, p->err);
	for (size_t i = 0; i < f->n_points; i++)
		gsl_vector_set(out, i, p->weight[i] * (predicted[i] - f->point[i].log_measured));
	for (size_t j = 0; j < p->n_free; j++)
		gsl_vector_set(out, f->n_points + j, gsl_vector_get(x, j) / f->constant[p->free[j]].spread);
	arena_rewind(f->arena, mark);
	return rc ? GSL_EFAILED : GSL_SUCCESS;
}

static double step_of(const struct fit_constant *c)
{
	return fmin(fmax(STEP_SHARE * c->spread, STEP_MIN), STEP_MAX);
}

static int jacobian(const gsl_vector *x, void *ctx, gsl_matrix *out)
{
	struct problem *p = ctx;
	struct fit *f = p->fit;
	struct arena_mark mark = arena_mark(f->arena);
	struct task *task = arena_array(f->arena, struct task, 2 * f->n_points * p->n_free);
	size_t n = 0;

	take_x(p, x);
	for (size_t i = 0; i < f->n_points; i++)
		for (size_t j = 0; j < p->n_free; j++)
			for (int up = 0; up < 2 && p->depends[i * f->n_constants + p->free[j]]; up++)
				task[n++] = (struct task){.point = i, .constant = (int)p->free[j],
					.by = (up ? 1 : -1) * step_of(&f->constant[p->free[j]])};
	int rc = simulate_all(f, task, n, p->err);
	gsl_matrix_set_zero(out);
	n = 0;
	for (size_t i = 0; i < f->n_points; i++) {
		for (size_t j = 0; j < p->n_free; j++) {
			if (!p->depends[i * f->n_constants + p->free[j]])
				continue;
			double slope = (task[n + 1].log_predicted - task[n].log_predicted) / (2 * task[n + 1].by);
			gsl_matrix_set(out, i, j, p->weight[i] * slope);
			n += 2;
		}
	}
	for (size_t j = 0; j < p->n_free; j++)
		gsl_matrix_set(out, f->n_points + j, j, 1 / f->constant[p->free[j]].spread);
	arena_rewind(f->arena, mark);
	return rc ? GSL_EFAILED : GSL_SUCCESS;
}

static double get(const gsl_matrix *m, size_t i, size_t j)
{
	return gsl_matrix_get(m, i, j);
}

/* From the Jacobian at the solution: the covariance of the free constants. */
static void keep_covariance(const struct problem *p, const gsl_matrix *jac, gsl_matrix *cov)
{
	gsl_multifit_nlinear_covar(jac, 0, cov);
	for (size_t j = 0; j < p->n_free; j++)
		p->fit->constant[p->free[j]].sd = sqrt(get(cov, j, j));
}

/* One fit from where x is. cov (n_free x n_free) gets the covariance. */
static int solve_free(struct problem *p, gsl_matrix *cov, struct err *err)
{
	struct fit *f = p->fit;
	size_t n = f->n_points + p->n_free;
	gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
	gsl_multifit_nlinear_fdf fdf = {.f = residuals, .df = jacobian, .n = n, .p = p->n_free, .params = p};
	gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n, p->n_free);
	gsl_vector *start = gsl_vector_alloc(p->n_free);
	int info, rc = GSL_ENOMEM;

	if (w && start) {
		for (size_t j = 0; j < p->n_free; j++)
			gsl_vector_set(start, j, f->constant[p->free[j]].x);
		rc = gsl_multifit_nlinear_init(start, &fdf, w);
		if (rc == GSL_SUCCESS)
			rc = gsl_multifit_nlinear_driver(MAX_ITERATIONS, 1e-4, 1e-6, 1e-6, NULL, NULL, &info, w);
		/* Many steps, or none that helps: where a kink is, that is the solution. */
		if (rc == GSL_EMAXITER || rc == GSL_ENOPROG)
			rc = GSL_SUCCESS;
		if (rc == GSL_SUCCESS) {
			take_x(p, gsl_multifit_nlinear_position(w));
			keep_covariance(p, gsl_multifit_nlinear_jac(w), cov);
		}
	}
	if (w)
		gsl_multifit_nlinear_free(w);
	if (start)
		gsl_vector_free(start);
	if (rc == GSL_ENOMEM)
		return err_set(err, ERR_NOMEM, "out of memory");
	if (rc != GSL_SUCCESS && err->code == ERR_NONE)
		return err_set(err, ERR_INPUT, "the fit fails: %s", gsl_strerror(rc));
	return rc == GSL_SUCCESS ? 0 : -1;
}

/* ---- what is free ---- */

/* Which points depend on which constants: each is moved by its spread, both ways. */
static int find_influence(struct problem *p, struct err *err)
{
	struct fit *f = p->fit;
	struct arena_mark mark = arena_mark(f->arena);
	struct task *task = arena_array(f->arena, struct task, 2 * f->n_points * f->n_constants);
	double *base = arena_array(f->arena, double, f->n_points);
	size_t n = 0;

	for (size_t i = 0; i < f->n_points; i++)
		for (size_t k = 0; k < f->n_constants; k++)
			for (int up = 0; up < 2 && f->constant[k].spread > 0; up++)
				task[n++] = (struct task){.point = i, .constant = (int)k,
					.by = (up ? 1 : -1) * fmax(f->constant[k].spread, STEP_MIN)};
	if (fit_predict(f, base, err) || simulate_all(f, task, n, err))
		return -1;
	for (size_t t = 0; t < n; t++) {
		bool *depends = &p->depends[task[t].point * f->n_constants + (size_t)task[t].constant];
		if (*depends || fabs(task[t].log_predicted - base[task[t].point]) < INFLUENCE)
			continue;
		*depends = true;
		f->constant[task[t].constant].n_points++;
	}
	arena_rewind(f->arena, mark);
	for (size_t k = 0; k < f->n_constants; k++)
		if (f->constant[k].n_points)
			p->free[p->n_free++] = k;
	return 0;
}

static void hold(struct problem *p, size_t j)
{
	p->fit->constant[p->free[j]].x = 0;
	memmove(&p->free[j], &p->free[j + 1], (p->n_free - j - 1) * sizeof(*p->free));
	p->n_free--;
}

/* Drops row and column j. */
static void drop(gsl_matrix *m, size_t n, size_t j)
{
	for (size_t r = 0; r < n; r++)
		for (size_t c = 0; c < n; c++)
			if (r > j || c > j)
				gsl_matrix_set(m, r - (r > j), c - (c > j), get(m, r, c));
}

/* The covariance of the others when one is held: that of a Gaussian, conditional on it. */
static void condition(gsl_matrix *cov, size_t n, size_t j)
{
	double own = get(cov, j, j);

	for (size_t r = 0; r < n; r++)
		for (size_t c = 0; c < n; c++)
			if (r != j && c != j)
				gsl_matrix_set(cov, r, c, get(cov, r, c) - get(cov, r, j) * get(cov, c, j) / own);
	drop(cov, n, j);
}

/* Holds one of the pair that is told apart worst; false when all are. */
static bool hold_alike(struct problem *p, gsl_matrix *cov)
{
	struct fit_constant *constant = p->fit->constant;
	double worst = SAME_CORRELATION;
	size_t at[2] = {0, 0};

	for (size_t i = 0; i < p->n_free; i++) {
		for (size_t j = 0; j < i; j++) {
			double r = get(cov, i, j) / sqrt(get(cov, i, i) * get(cov, j, j));
			if (fabs(r) <= worst)
				continue;
			worst = fabs(r);
			at[0] = j;
			at[1] = i;
		}
	}
	if (at[0] == at[1])
		return false;
	/* The more certain one stays. */
	int stays = constant[p->free[at[0]]].spread < constant[p->free[at[1]]].spread ? 0 : 1;
	struct fit_constant *c = &constant[p->free[at[stays]]];
	c->like = (int)p->free[at[!stays]];
	c->correlation = get(cov, at[0], at[1]) / sqrt(get(cov, at[0], at[0]) * get(cov, at[1], at[1]));
	condition(cov, p->n_free, at[stays]);
	hold(p, at[stays]);
	return true;
}

/* Holds the one of which the points say least; false when they say something of all. */
static bool hold_unknown(struct problem *p, gsl_matrix *cov)
{
	double most = SAME_SPREAD;
	size_t at = p->n_free;

	for (size_t j = 0; j < p->n_free; j++) {
		double left = sqrt(get(cov, j, j)) / p->fit->constant[p->free[j]].spread;
		if (left > most) {
			most = left;
			at = j;
		}
	}
	if (at == p->n_free)
		return false;
	condition(cov, p->n_free, at);
	hold(p, at);
	return true;
}

/* Huber's weights around the noise that the residuals show, but no less than the points' own sigma. */
static int weigh(struct problem *p, struct err *err)
{
	struct fit *f = p->fit;
	struct arena_mark mark = arena_mark(f->arena);
	double *r = arena_array(f->arena, double, f->n_points), *sorted = arena_array(f->arena, double, f->n_points);

	if (fit_predict(f, r, err))
		return -1;
	for (size_t i = 0; i < f->n_points; i++) {
		r[i] = fabs(r[i] - f->point[i].log_measured) / f->point[i].sigma;
		sorted[i] = r[i];
	}
	gsl_sort(sorted, 1, f->n_points);
	/* Of a normal distribution, half lies within 0.6745 deviations. */
	double noise = fmax(1, gsl_stats_median_from_sorted_data(sorted, 1, f->n_points) / 0.6745);
	for (size_t i = 0; i < f->n_points; i++) {
		double huber = r[i] <= HUBER * noise ? 1 : HUBER * noise / r[i];
		p->weight[i] = sqrt(huber) / (noise * f->point[i].sigma);
	}
	arena_rewind(f->arena, mark);
	return 0;
}

static int solve(struct problem *p, gsl_matrix *whole, struct err *err)
{
	struct fit *f = p->fit;

	for (size_t i = 0; i < f->n_points; i++)
		p->weight[i] = 1 / f->point[i].sigma;
	for (int round = 0, settled = 0; round < MAX_ROUNDS && p->n_free && !settled; round++) {
		gsl_matrix_view cov = gsl_matrix_submatrix(whole, 0, 0, p->n_free, p->n_free);
		size_t before = p->n_free;
		if (solve_free(p, &cov.matrix, err) || weigh(p, err))
			return -1;
		/* The first round has no weights yet, by which to judge what the points can tell. */
		while (round > 0 && p->n_free && (hold_alike(p, &cov.matrix) || hold_unknown(p, &cov.matrix)))
			continue;
		settled = round > 1 && before == p->n_free;
	}
	/* What is left, once more: held ones no longer explain a part of it. */
	gsl_matrix_view cov = gsl_matrix_submatrix(whole, 0, 0, p->n_free ? p->n_free : 1, p->n_free ? p->n_free : 1);
	if (p->n_free && solve_free(p, &cov.matrix, err))
		return -1;
	for (size_t j = 0; j < p->n_free; j++)
		f->constant[p->free[j]].fitted = true;
	return 0;
}

int fit_solve(struct fit *f, struct err *err)
{
	struct problem p = {.fit = f, .err = err};
	gsl_error_handler_t *handler = gsl_set_error_handler_off();
	int rc = -1;

	p.free = arena_array(f->arena, size_t, f->n_constants);
	p.depends = arena_array(f->arena, bool, f->n_points * f->n_constants);
	p.weight = arena_array(f->arena, double, f->n_points);
	*err = (struct err){0};
	for (size_t k = 0; k < f->n_constants; k++)
		f->constant[k].like = -1;
	if (find_influence(&p, err) == 0) {
		gsl_matrix *cov = gsl_matrix_alloc(p.n_free ? p.n_free : 1, p.n_free ? p.n_free : 1);
		rc = cov ? solve(&p, cov, err) : err_set(err, ERR_NOMEM, "out of memory");
		if (cov)
			gsl_matrix_free(cov);
	}
	gsl_set_error_handler(handler);
	return rc;
}
