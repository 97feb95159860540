#include "sim/run/leave_out.h"

#include <math.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>

#include "base/datadir.h"
#include "base/param.h"
#include "base/suggest.h"
#include "sim/run/validate_rows.h"

#define CONSTANTS_MAX 32
/* Moves of the logarithm of a constant from which slopes are taken. */
#define SLOPE_STEP 0.1
/* Rows further off than this (natural logarithm) count by their distance. */
#define FAR_OFF 0.2
/* What a row of a well modelled group is off: two machines of one kind differ by as much (8 %), and kernels by more. */
#define ROW_SIGMA 0.25
#define FIT_ROUNDS 40
/* Linearised at the file's values, then at what that gives. */
#define LINEARISED 2

struct written {
	const char *from, *to, *also;
};

/* The logarithms of all constants. */
struct point {
	double x[CONSTANTS_MAX];
};

struct fitting {
	const struct leave_out_options *o;
	struct leave_out *out;
	struct validate_row *row; /* as the file's values have them */
	size_t n_rows;
	double *weight;           /* of a row in the fit; 0: it is not scored, did not run, or is not moved */
	double *log_ratio;        /* predicted / measured at `at` */
	double (*slope)[CONSTANTS_MAX];
	struct point at;
	size_t n_passes;
	struct arena *arena;
};

/* ---- constants ---- */

static int check_kernels(const char *name, const struct err_pos *pos, struct arena *a, struct err *err)
{
	const char **names;
	struct suggest near;
	char text[128];
	size_t n;

	if (datadir_list(a, "hw/kernels", ".yaml", &names, &n, err))
		return -1;
	suggest_init(&near, name);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0)
			return 0;
		suggest_offer(&near, names[i]);
	}
	return err_at(err, ERR_INPUT, pos, "no kernels are called '%s'%s", name, suggest_text(&near, text, sizeof(text)));
}

/* Several, between spaces. */
static int check_also(const char *names, const struct err_pos *pos, struct arena *a, struct err *err)
{
	for (const char *p = names; *p; p += strcspn(p, " "), p += strspn(p, " "))
		if (*p != ' ' && check_kernels(arena_strndup(a, p, strcspn(p, " ")), pos, a, err))
			return -1;
	return 0;
}

static int read_constants(const char *path, struct leave_out *out, struct arena *a, struct err *err)
{
	static const struct param table[] = {
		PARAM_TEXT(struct written, from, "from", NULL, ""),
		PARAM_TEXT(struct written, to, "to", NULL, ""),
		PARAM_TEXT(struct written, also, "also", "", ""),
	};
	struct yaml_node *root;

	if (yaml_read_file(path, a, &root, err))
		return -1;
	out->constant = arena_array(a, struct leave_out_constant, CONSTANTS_MAX);
	for (const struct yaml_node *file = root->child; file; file = file->next) {
		if (file->kind != YAML_MAP)
			return err_at(err, ERR_INPUT, &file->pos, "constants of '%s' are a map by name", file->key);
		if (check_kernels(file->key, &file->key_pos, a, err))
			return -1;
		for (const struct yaml_node *node = file->child; node; node = node->next) {
			struct written w;
			if (out->n == CONSTANTS_MAX)
				return err_at(err, ERR_INPUT, &node->key_pos, "more than %d constants", CONSTANTS_MAX);
			if (param_fill(table, ARRAY_LEN(table), node, node->key, &w, a, err))
				return -1;
			if (!w.from || !w.to)
				return err_at(err, ERR_INPUT, &node->pos, "'%s' needs bounds: {from: 30%%, to: 100%%}", node->key);
			if (check_also(w.also, &node->pos, a, err))
				return -1;
			out->constant[out->n++] = (struct leave_out_constant){.kernels = file->key, .also = w.also, .name = node->key,
				.pos = node->key_pos, .from = w.from, .to = w.to, .dim = -1};
		}
	}
	return 0;
}

static bool is_word_of(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; *p; p += strcspn(p, " "), p += *p == ' ')
		if (strcspn(p, " ") == len && memcmp(p, word, len) == 0)
			return true;
	return false;
}

/* Is the constant one of an engine with these kernels? */
static bool concerns(const struct leave_out_constant *c, const char *kernels)
{
	return kernels && (strcmp(c->kernels, kernels) == 0 || is_word_of(c->also, kernels));
}

/* NULL: a cost for this machine has no such number. */
static const struct hw_num_ref *number_of(const struct leave_out_constant *c, const struct hw_num_ref *ref, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(ref[i].name + strlen("kernels."), c->name) == 0)
			return &ref[i];
	return NULL;
}

static void find_near(struct leave_out_constant *c, const struct hw_num_ref *ref, size_t n)
{
	struct suggest near;

	suggest_init(&near, c->name);
	for (size_t i = 0; i < n; i++)
		suggest_offer(&near, ref[i].name + strlen("kernels."));
	suggest_text(&near, c->near, sizeof(c->near));
}

/* ---- passes over the rows ---- */

struct pass {
	const struct leave_out *out;
	const struct point *x; /* NULL: the file's values */
};

static void set_constants(void *ctx, struct scenario *s, struct arena *a)
{
	const struct pass *pass = ctx;
	struct hw_num_ref *ref;
	size_t n = s->cost ? cost_numbers(s->cost, a, &ref) : 0;

	for (size_t k = 0; n && k < pass->out->n; k++) {
		const struct leave_out_constant *c = &pass->out->constant[k];
		const struct hw_num_ref *number = concerns(c, s->engine->kernels) ? number_of(c, ref, n) : NULL;
		if (number && number->num->measured > 0)
			number->num->measured = exp(pass->x->x[k]);
	}
}

/* Predicts rows anew into copies of them. only: those of this source, or with a weight; NULL: the latter. */
static int predict(struct fitting *f, const struct point *x, const char *only, struct validate_row *to, struct err *err)
{
	struct pass pass = {f->out, x};
	struct validate_how how = {.adjust = set_constants, .ctx = &pass};
	size_t n = 0;

	struct validate_row *some = arena_array(f->arena, struct validate_row, f->n_rows);
	size_t *place = arena_array(f->arena, size_t, f->n_rows);
	for (size_t i = 0; i < f->n_rows; i++) {
		if (f->weight[i] > 0 && (!only || strcmp(f->row[i].source, only) == 0)) {
			place[n] = i;
			some[n++] = f->row[i];
		}
	}
	if (validate_run_rows(some, n, f->o->validate, &how, f->arena, err))
		return -1;
	for (size_t i = 0; i < n; i++)
		to[place[i]] = some[i];
	return 0;
}

static void report(struct fitting *f)
{
	size_t all = LINEARISED * (1 + 2 * f->out->n) + 1;

	f->n_passes++;
	if (f->o->report)
		f->o->report(f->o->report_ctx, f->n_passes < all ? f->n_passes : all, all);
}

/* What of the constants is in the engines' files, and in what units. */
static int resolve(struct fitting *f, struct err *err)
{
	for (size_t i = 0; i < f->n_rows; i++) {
		struct arena_mark mark = arena_mark(f->arena);
		struct scenario *s;
		struct err ignored = {0};
		struct hw_num_ref *ref;
		size_t n;
		bool open = false;
		for (size_t k = 0; k < f->out->n; k++)
			open |= f->out->constant[k].dim < 0;
		if (!open)
			return 0;
		if (!f->row[i].scored || f->row[i].status != VALIDATE_OK ||
			scenario_load_text(f->row[i].scenario, f->row[i].where, f->arena, &s, &ignored) || !s->cost)
			continue;
		n = cost_numbers(s->cost, f->arena, &ref);
		for (size_t k = 0; k < f->out->n; k++) {
			struct leave_out_constant *c = &f->out->constant[k];
			const struct hw_num_ref *number = concerns(c, s->engine->kernels) ? number_of(c, ref, n) : NULL;
			struct err why = {0};
			if (concerns(c, s->engine->kernels) && !number && !*c->near)
				find_near(c, ref, n);
			if (c->dim >= 0 || !number || !(number->num->measured > 0))
				continue;
			if (units_parse(c->from, (enum unit_dim)number->dim, &c->low, &why) ||
				units_parse(c->to, (enum unit_dim)number->dim, &c->high, &why))
				return err_at(err, ERR_INPUT, &c->pos, "%s: %s", c->name, why.msg);
			if (!(c->low > 0 && c->high > c->low))
				return err_at(err, ERR_INPUT, &c->pos, "%s: bounds from %s to %s", c->name, c->from, c->to);
			c->dim = number->dim;
			c->now = c->all = number->num->measured;
		}
		arena_rewind(f->arena, mark);
	}
	return 0;
}

static double log_ratio(const struct validate_row *r)
{
	return r->status == VALIDATE_OK && r->predicted > 0 ? log(r->predicted / r->measured) : NAN;
}

/* How every row moves with every constant around f->at. The first time rows that none moves lose their weight. */
static int linearise(struct fitting *f, struct err *err)
{
	struct validate_row *to = arena_array(f->arena, struct validate_row, f->n_rows);

	if (predict(f, &f->at, NULL, to, err))
		return -1;
	for (size_t i = 0; i < f->n_rows; i++)
		f->log_ratio[i] = f->weight[i] > 0 ? log_ratio(&to[i]) : NAN;
	report(f);
	for (size_t k = 0; k < f->out->n; k++) {
		for (int up = 0; up < 2; up++) {
			struct point x = f->at;
			struct arena_mark mark = arena_mark(f->arena);
			x.x[k] += up ? SLOPE_STEP : -SLOPE_STEP;
			if (f->out->constant[k].dim >= 0 && predict(f, &x, NULL, to, err))
				return -1;
			for (size_t i = 0; i < f->n_rows && f->out->constant[k].dim >= 0; i++) {
				double moved = f->weight[i] > 0 ? log_ratio(&to[i]) / (2 * SLOPE_STEP) : 0;
				f->slope[i][k] = up ? f->slope[i][k] + moved : -moved;
			}
			arena_rewind(f->arena, mark);
			report(f);
		}
	}
	return 0;
}

static void drop_unmoved(struct fitting *f)
{
	for (size_t i = 0; i < f->n_rows; i++) {
		bool moved = false;
		for (size_t k = 0; k < f->out->n; k++)
			moved |= isfinite(f->slope[i][k]) && fabs(f->slope[i][k]) > 1e-9;
		if (!moved || !isfinite(f->log_ratio[i]))
			f->weight[i] = 0;
		f->out->n_moved += f->weight[i] > 0;
	}
}

/* ---- the fit ---- */

static double residual(const struct fitting *f, size_t i, const struct point *x)
{
	double r = f->log_ratio[i];

	for (size_t k = 0; k < f->out->n; k++)
		r += f->slope[i][k] * (x->x[k] - f->at.x[k]);
	return r;
}

/* Adds what the bounds say: a normal distribution around their middle, to either of which it is two deviations. */
static void add_prior(const struct fitting *f, gsl_matrix *lhs, gsl_vector *rhs)
{
	for (size_t k = 0; k < f->out->n; k++) {
		const struct leave_out_constant *c = &f->out->constant[k];
		double sd = c->dim < 0 ? 1 : log(c->high / c->low) / 4, middle = c->dim < 0 ? 0 : log(c->high * c->low) / 2;
		gsl_matrix_set(lhs, k, k, gsl_matrix_get(lhs, k, k) + 1 / (sd * sd));
		gsl_vector_set(rhs, k, gsl_vector_get(rhs, k) + (middle - f->at.x[k]) / (sd * sd));
	}
}

/* Huber's weights, then least squares, again and again; kept within the bounds. without: a source; NULL: all rows count. */
static int fit(const struct fitting *f, const char *without, struct point *x, struct err *err)
{
	size_t n = f->out->n;
	gsl_matrix *lhs = gsl_matrix_alloc(n, n);
	gsl_vector *rhs = gsl_vector_alloc(n), *step = gsl_vector_alloc(n);
	int rc = lhs && rhs && step ? 0 : GSL_ENOMEM;

	*x = f->at;
	for (int round = 0; rc == 0 && round < FIT_ROUNDS; round++) {
		gsl_matrix_set_zero(lhs);
		gsl_vector_set_zero(rhs);
		for (size_t i = 0; i < f->n_rows; i++) {
			if (!(f->weight[i] > 0) || (without && strcmp(f->row[i].source, without) == 0))
				continue;
			double off = fabs(residual(f, i, x));
			double w = f->weight[i] / (ROW_SIGMA * ROW_SIGMA) * (off > FAR_OFF ? FAR_OFF / off : 1);
			for (size_t k = 0; k < n; k++) {
				gsl_vector_set(rhs, k, gsl_vector_get(rhs, k) - w * f->slope[i][k] * f->log_ratio[i]);
				for (size_t j = 0; j < n; j++)
					gsl_matrix_set(lhs, k, j, gsl_matrix_get(lhs, k, j) + w * f->slope[i][k] * f->slope[i][j]);
			}
		}
		add_prior(f, lhs, rhs);
		rc = gsl_linalg_cholesky_decomp1(lhs);
		if (rc == 0)
			rc = gsl_linalg_cholesky_solve(lhs, rhs, step);
		for (size_t k = 0; rc == 0 && k < n; k++) {
			const struct leave_out_constant *c = &f->out->constant[k];
			double at = f->at.x[k] + gsl_vector_get(step, k);
			x->x[k] = c->dim < 0 ? 0 : fmin(fmax(at, log(c->low)), log(c->high));
		}
	}
	gsl_matrix_free(lhs);
	gsl_vector_free(rhs);
	gsl_vector_free(step);
	return rc ? err_set(err, ERR_INPUT, "the fit fails: %s", gsl_strerror(rc)) : 0;
}

/* ---- together ---- */

static void summarise(struct fitting *f, struct validate_row *row, struct validate_summary *s)
{
	struct validate v = {.row = row, .n = f->n_rows};

	for (int m = 0; m < VALIDATE_METRIC_N; m++)
		validate_summarise(&v, (enum validate_metric)m, &s[m], f->arena);
}

static int leave_each_out(struct fitting *f, struct validate_row *to, struct err *err)
{
	for (size_t i = 0; i < f->n_rows; i++) {
		bool first = f->weight[i] > 0;
		struct point x;
		for (size_t k = 0; k < i && first; k++)
			first = !(f->weight[k] > 0) || strcmp(f->row[k].source, f->row[i].source) != 0;
		if (!first)
			continue;
		if (fit(f, f->row[i].source, &x, err) || predict(f, &x, f->row[i].source, to, err))
			return -1;
		for (size_t k = 0; k < f->out->n; k++) {
			struct leave_out_constant *c = &f->out->constant[k];
			double value = c->dim < 0 ? 0 : exp(x.x[k]);
			c->least = f->out->n_sources == 0 || value < c->least ? value : c->least;
			c->most = f->out->n_sources == 0 || value > c->most ? value : c->most;
		}
		f->out->n_sources++;
	}
	report(f);
	return 0;
}

static int run(struct fitting *f, struct err *err)
{
	struct leave_out *out = f->out;
	struct validate_row *to = arena_array(f->arena, struct validate_row, f->n_rows);
	struct validate v = {.row = f->row, .n = f->n_rows};
	const struct validate_group *group;

	if (resolve(f, err))
		return -1;
	size_t n_groups = validate_groups(&v, &group, f->arena);
	for (size_t i = 0; i < f->n_rows; i++)
		for (size_t g = 0; g < n_groups && f->row[i].scored && f->row[i].status == VALIDATE_OK; g++)
			if (strcmp(group[g].name, f->row[i].group) == 0)
				f->weight[i] = 1.0 / (double)group[g].n;
	for (size_t k = 0; k < out->n; k++)
		f->at.x[k] = out->constant[k].dim < 0 ? 0 : log(out->constant[k].now);
	for (int round = 0; round < LINEARISED; round++) {
		struct point x;
		if (linearise(f, err))
			return -1;
		if (round == 0)
			drop_unmoved(f);
		if (fit(f, NULL, &x, err))
			return -1;
		if (round + 1 < LINEARISED)
			f->at = x;
		for (size_t k = 0; k < out->n; k++)
			out->constant[k].all = out->constant[k].dim < 0 ? 0 : exp(x.x[k]);
		if (round + 1 == LINEARISED) {
			memcpy(to, f->row, f->n_rows * sizeof(*to));
			summarise(f, to, out->now);
			if (predict(f, &x, NULL, to, err))
				return -1;
			summarise(f, to, out->all);
		}
	}
	memcpy(to, f->row, f->n_rows * sizeof(*to));
	if (leave_each_out(f, to, err))
		return -1;
	summarise(f, to, out->without);
	return 0;
}

static bool any_predicted(const struct validate_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->at[i].scored && rows->at[i].status == VALIDATE_OK)
			return true;
	return false;
}

int leave_out_run(const char *path, const struct leave_out_options *o, struct arena *a, struct leave_out *out, struct err *err)
{
	struct validate_how how = {0};
	struct validate_rows rows = {0};
	const char *data, *fitted = o->fitted;
	gsl_error_handler_t *before;

	*out = (struct leave_out){0};
	if (!fitted) {
		if (datadir_find(a, &data, err))
			return -1;
		fitted = arena_printf(a, "%s/hw/fitted.yaml", data);
	}
	if (read_constants(fitted, out, a, err) || validate_read_corpus(path, o->validate, a, &rows, err) ||
		validate_run_rows(rows.at, rows.n, o->validate, &how, a, err))
		return -1;
	if (!any_predicted(&rows))
		return err_set(err, ERR_INPUT, "'%s' has no row that is scored and can be predicted", path);
	struct fitting f = {.o = o, .out = out, .row = rows.at, .n_rows = rows.n, .arena = a,
		.weight = arena_array(a, double, rows.n), .log_ratio = arena_array(a, double, rows.n)};
	f.slope = arena_alloc_array(a, rows.n, sizeof(*f.slope));
	before = gsl_set_error_handler_off();
	int rc = out->n ? run(&f, err) : err_set(err, ERR_INPUT, "no constants in '%s'", fitted);
	gsl_set_error_handler(before);
	return rc;
}
