#include "sim/run/calibrate_fit.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <gsl/gsl_blas.h>
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
/* Constants correlated by more are not told apart, by what the points say with the priors so many times as wide; one
   whose spread is more than this share of the prior's is not known better. */
#define SAME_CORRELATION 0.95
#define PRIOR_ASIDE 10.0
#define SAME_SPREAD 0.9
/* Huber's: residuals beyond so many deviations count by their size, not its square. */
#define HUBER 1.345
/* Of fewer points what is left is what the priors hold back, not noise: taken for noise it would leave more, and so on. */
#define FEWEST_FOR_NOISE 6
#define MAX_ITERATIONS 30
#define MAX_ROUNDS 4
/* Simulations between two reports. */
#define REPORT_EVERY 64

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

static int simulate_some(const struct fit *f, struct task *task, size_t n, struct err *err)
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

static int simulate_all(const struct fit *f, struct task *task, size_t n, struct err *err)
{
	for (size_t at = 0; at < n; at += REPORT_EVERY) {
		size_t some = n - at < REPORT_EVERY ? n - at : REPORT_EVERY;
		if (simulate_some(f, task + at, some, err))
			return -1;
		if (f->report)
			f->report(f->report_ctx, some);
	}
	return 0;
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

/* What the points say of the free constants, from the Jacobian at the solution: its first rows, times themselves. */
static void keep_information(const struct problem *p, const gsl_matrix *jac, gsl_matrix *information)
{
	gsl_matrix_const_view points = gsl_matrix_const_submatrix(jac, 0, 0, p->fit->n_points, p->n_free);
	gsl_matrix_view out = gsl_matrix_submatrix(information, 0, 0, p->n_free, p->n_free);

	gsl_blas_dgemm(CblasTrans, CblasNoTrans, 1, &points.matrix, &points.matrix, 0, &out.matrix);
}

/* One fit from where x is. */
static int solve_free(struct problem *p, gsl_matrix *information, struct err *err)
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
			keep_information(p, gsl_multifit_nlinear_jac(w), information);
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

static double spread_of(const struct problem *p, size_t j)
{
	return p->fit->constant[p->free[j]].spread;
}

/* Covariance of the free constants if their priors were so many times as wide. */
static int covariance(const struct problem *p, const gsl_matrix *information, double wider, gsl_matrix *cov)
{
	for (size_t i = 0; i < p->n_free; i++)
		for (size_t j = 0; j < p->n_free; j++)
			gsl_matrix_set(cov, i, j,
				get(information, i, j) + (i == j ? 1 / pow(wider * spread_of(p, i), 2) : 0));
	gsl_matrix_view free = gsl_matrix_submatrix(cov, 0, 0, p->n_free, p->n_free);
	int rc = gsl_linalg_cholesky_decomp1(&free.matrix);
	return rc ? rc : gsl_linalg_cholesky_invert(&free.matrix);
}

/* Puts one back to its prior and out of the fit. The others move as a Gaussian's mean does when one is known; their
   information is what it was, without a row and a column. */
static void hold(struct problem *p, gsl_matrix *information, gsl_matrix *cov, size_t j)
{
	struct fit_constant *constant = p->fit->constant;
	double back = -constant[p->free[j]].x;

	if (covariance(p, information, 1, cov) == 0)
		for (size_t i = 0; i < p->n_free; i++)
			constant[p->free[i]].x += back * get(cov, i, j) / get(cov, j, j);
	constant[p->free[j]].x = 0;
	for (size_t r = 0; r < p->n_free; r++)
		for (size_t c = 0; c < p->n_free; c++)
			if (r > j || c > j)
				gsl_matrix_set(information, r - (r > j), c - (c > j), get(information, r, c));
	memmove(&p->free[j], &p->free[j + 1], (p->n_free - j - 1) * sizeof(*p->free));
	p->n_free--;
}

/* How far a constant's spread moves the points, squared and in units of their noise. */
static double influence(const struct problem *p, const gsl_matrix *information, size_t j)
{
	return get(information, j, j) * pow(spread_of(p, j), 2);
}

static double moved(const struct problem *p, size_t j)
{
	return fabs(p->fit->constant[p->free[j]].x) / spread_of(p, j);
}

/* Holds one that would be no better known even if all others were known exactly; false when there is none. */
static bool hold_mute(struct problem *p, gsl_matrix *information, gsl_matrix *cov)
{
	for (size_t j = 0; j < p->n_free; j++) {
		if (sqrt(1 / (1 + influence(p, information, j))) <= SAME_SPREAD)
			continue;
		hold(p, information, cov, j);
		return true;
	}
	return false;
}

/* The other constant that j is correlated with most. */
static size_t most_alike(const struct problem *p, const gsl_matrix *cov, size_t j, double *correlation)
{
	size_t best = j;

	*correlation = 0;
	for (size_t i = 0; i < p->n_free; i++) {
		double r = get(cov, i, j) / sqrt(get(cov, i, i) * get(cov, j, j));
		if (i == j || fabs(r) <= fabs(*correlation))
			continue;
		*correlation = r;
		best = i;
	}
	return best;
}

/* Of those that the points alone cannot tell from others (by the multiple correlation, the priors made so wide that they
   hardly count), holds the one that the fit moved least, in its spreads; false when all can be told. */
static bool hold_alike(struct problem *p, gsl_matrix *information, gsl_matrix *cov)
{
	size_t at = p->n_free;

	if (covariance(p, information, PRIOR_ASIDE, cov))
		return false;
	for (size_t j = 0; j < p->n_free; j++) {
		double alone = get(information, j, j) + 1 / pow(PRIOR_ASIDE * spread_of(p, j), 2);
		bool alike = 1 - 1 / (alone * get(cov, j, j)) > SAME_CORRELATION * SAME_CORRELATION;
		if (alike && (at == p->n_free || moved(p, j) < moved(p, at)))
			at = j;
	}
	if (at == p->n_free)
		return false;
	struct fit_constant *c = &p->fit->constant[p->free[at]];
	c->like = (int)p->free[most_alike(p, cov, at, &c->correlation)];
	hold(p, information, cov, at);
	return true;
}

/* Holds the one of which the points say least, all taken together; false when they say something of each. */
static bool hold_unknown(struct problem *p, gsl_matrix *information, gsl_matrix *cov)
{
	double most = SAME_SPREAD;
	size_t at = p->n_free;

	if (covariance(p, information, 1, cov))
		return false;
	for (size_t j = 0; j < p->n_free; j++) {
		double left = sqrt(get(cov, j, j)) / spread_of(p, j);
		if (left <= most)
			continue;
		most = left;
		at = j;
	}
	if (at == p->n_free)
		return false;
	hold(p, information, cov, at);
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
	if (f->n_points < FEWEST_FOR_NOISE)
		noise = 1;
	for (size_t i = 0; i < f->n_points; i++) {
		double huber = r[i] <= HUBER * noise ? 1 : HUBER * noise / r[i];
		p->weight[i] = sqrt(huber) / (noise * f->point[i].sigma);
	}
	arena_rewind(f->arena, mark);
	return 0;
}

/* Rounds of fitting, weighing, and holding what cannot be known, until nothing more is held. The first has no weights
   yet, by which to judge that. */
static int solve(struct problem *p, gsl_matrix *information, gsl_matrix *cov, struct err *err)
{
	struct fit *f = p->fit;

	for (size_t i = 0; i < f->n_points; i++)
		p->weight[i] = 1 / f->point[i].sigma;
	for (int round = 0, held = 1; round < MAX_ROUNDS && p->n_free && (held || round < 3); round++) {
		held = 0;
		if (solve_free(p, information, err) || weigh(p, err))
			return -1;
		while (round > 0 && p->n_free &&
			(hold_mute(p, information, cov) || hold_alike(p, information, cov) || hold_unknown(p, information, cov)))
			held++;
	}
	if (p->n_free && solve_free(p, information, err))
		return -1;
	if (p->n_free && covariance(p, information, 1, cov))
		return err_set(err, ERR_INPUT, "the fit fails: no covariance");
	for (size_t j = 0; j < p->n_free; j++) {
		f->constant[p->free[j]].fitted = true;
		f->constant[p->free[j]].sd = sqrt(get(cov, j, j));
	}
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
		size_t n = p.n_free ? p.n_free : 1;
		gsl_matrix *information = gsl_matrix_alloc(n, n), *cov = gsl_matrix_alloc(n, n);
		rc = information && cov ? solve(&p, information, cov, err) : err_set(err, ERR_NOMEM, "out of memory");
		gsl_matrix_free(information);
		gsl_matrix_free(cov);
	}
	gsl_set_error_handler(handler);
	return rc;
}
