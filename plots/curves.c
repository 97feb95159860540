#include "plots/curves.h"

#include <math.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"
#include "base/vec.h"

#define NO_KEY SIZE_MAX

/* The texts of a key read as numbers. */
struct axis {
	double *number; /* by text; NAN when it is none or not of this key */
	const char *unit;
	size_t n; /* different numbers: 0, 1, or 2 for more */
	bool words; /* some text is no number */
};

/* What is worked out on the way from the table to the curves. */
struct work {
	struct query *q;
	struct arena *a;
	struct query_table t;
	struct axis *axis; /* by key */
	size_t x;          /* the key of the x axis */
	const char **name; /* its names, when it does not take numbers; then axis[x] is the places of these */
	size_t n_names;
	size_t *row;       /* runs that will be points */
	size_t n_rows;
	uint32_t *group; /* of each of them */
	uint32_t n_groups;
	bool *in_series; /* by key */
};

static uint32_t cell(const struct work *w, size_t row, size_t key)
{
	return w->t.cell[row * w->t.n_keys + key];
}

/* NULL for NULL. */
static const char *text_of(const struct work *w, size_t row, size_t key)
{
	uint32_t id = cell(w, row, key);

	return id == INTERN_NONE ? NULL : w->t.texts.name[id];
}

/* NAN when it is none. */
static double number_of(const struct work *w, size_t row, size_t key)
{
	uint32_t id = cell(w, row, key);

	return id == INTERN_NONE ? (double)NAN : w->axis[key].number[id];
}

/* ---- keys by name ---- */

static const char *key_list(struct arena *a, const struct query_keys *keys)
{
	const char *list = "";

	for (size_t i = 0; i < keys->n; i++)
		if (!keys->at[i].metric)
			list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", keys->at[i].name);
	return list;
}

static int find_key(const struct work *w, const struct query_keys *keys, const char *name, size_t *out,
	struct err *err)
{
	struct suggest s;
	char near[192];

	suggest_init(&s, name);
	for (size_t i = 0; i < keys->n; i++) {
		if (strcmp(keys->at[i].name, name) == 0) {
			*out = i;
			return 0;
		}
		suggest_offer(&s, keys->at[i].name);
	}
	if (suggest_best(&s))
		return err_set(err, ERR_USAGE, "no key '%s' in '%s'%s", name, query_path(w->q),
			suggest_text(&s, near, sizeof(near)));
	return err_set(err, ERR_USAGE, "no key '%s' in '%s'; there are: %s", name, query_path(w->q),
		key_list(w->a, keys));
}

/* Splits "a,b" and marks each key. */
static int mark_series(const struct work *w, const struct query_keys *keys, const char *series, bool *wanted,
	struct err *err)
{
	while (*series) {
		size_t len = strcspn(series, ","), i;
		const char *name = arena_strndup(w->a, series, len);
		if (find_key(w, keys, name, &i, err))
			return -1;
		wanted[i] = true;
		series += len + (series[len] == ',');
	}
	return 0;
}

/* ---- the axis ---- */

/* Which texts does this key use? */
static bool *texts_of_key(const struct work *w, size_t key)
{
	bool *used = arena_array(w->a, bool, w->t.texts.n);

	for (size_t r = 0; r < w->t.n_runs; r++)
		if (cell(w, r, key) != INTERN_NONE)
			used[cell(w, r, key)] = true;
	return used;
}

static size_t count_distinct(const double *number, const bool *used, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		size_t j = 0;
		if (!used[i] || isnan(number[i]))
			continue;
		while (j < i && !(used[j] && number[j] == number[i]))
			j++;
		count += j == i;
		if (count > 1)
			break; /* more do not matter */
	}
	return count;
}

static const char *suffix_of(const char *text)
{
	const char *p = text + strspn(text, "+-0123456789.");

	if ((*p == 'e' || *p == 'E') && p[1 + strspn(p + 1, "+-")] >= '0' &&
		p[1 + strspn(p + 1, "+-")] <= '9')
		p += 1 + strspn(p + 1, "+-0123456789");
	return p + strspn(p, " ");
}

static struct axis read_in_dim(const struct work *w, const bool *used, enum unit_dim dim, double *number)
{
	size_t n = w->t.texts.n;
	const char *suffix = NULL;
	bool same_suffix = true;

	for (size_t i = 0; i < n; i++) {
		const char *text = w->t.texts.name[i];
		if (!used[i] || units_parse(text, dim, &number[i], NULL)) {
			number[i] = NAN;
			continue;
		}
		if (!suffix)
			suffix = suffix_of(text);
		same_suffix = same_suffix && strcmp(suffix, suffix_of(text)) == 0;
	}
	struct axis axis = {number, units_base(dim), count_distinct(number, used, n), false};
	for (size_t i = 0; i < n; i++)
		axis.words = axis.words || (used[i] && isnan(number[i]));
	/* 16GB/s, 32GB/s: the axis is in GB/s, as the values were written. */
	double one;
	if (suffix && *suffix && same_suffix &&
		!units_parse(arena_printf(w->a, "1%s", suffix), dim, &one, NULL)) {
		for (size_t i = 0; i < n; i++)
			number[i] /= one;
		axis.unit = suffix;
	}
	return axis;
}

/* Reads a key as plain numbers or, written with units, in the first dimension that has two values, or one. */
static struct axis read_axis(const struct work *w, size_t key)
{
	const bool *used = texts_of_key(w, key);
	double *number = arena_array(w->a, double, w->t.texts.n);
	enum unit_dim best = UNIT_PLAIN;
	size_t best_n = 0;

	for (int dim = 0; dim < UNIT_DIM_N; dim++) {
		struct axis axis = read_in_dim(w, used, dim, number);
		if (axis.n >= 2)
			return axis;
		if (axis.n > best_n) {
			best = dim;
			best_n = axis.n;
		}
	}
	return read_in_dim(w, used, best, number);
}

static bool may_be_default_x(const struct query_key *key, bool params)
{
	return !key->metric && key->param == params;
}

static bool takes_two_values(const struct work *w, size_t key)
{
	for (size_t r = 1; r < w->t.n_runs; r++)
		if (cell(w, r, key) != cell(w, 0, key))
			return true;
	return false;
}

/* Numbers make a better axis than names, and what was swept or set a better one than a column. */
static bool choose_x(struct work *w)
{
	for (int numbers = 1; numbers >= 0; numbers--) {
		for (int params = 1; params >= 0; params--) {
			for (size_t k = 0; k < w->t.n_keys; k++) {
				if (may_be_default_x(&w->t.key[k], params) &&
					(numbers ? w->axis[k].n >= 2 : takes_two_values(w, k))) {
					w->x = k;
					return true;
				}
			}
		}
	}
	return false;
}

static int use_x(struct work *w, const char *name, struct err *err)
{
	size_t k = 0;

	while (strcmp(w->t.key[k].name, name) != 0)
		k++;
	w->x = k;
	for (size_t r = 0; r < w->t.n_runs; r++)
		if (cell(w, r, k) != INTERN_NONE)
			return 0;
	return err_set(err, ERR_USAGE, "no run in '%s' has a value of '%s'", query_path(w->q), name);
}

static int find_x(struct work *w, const struct query_keys *keys, const struct curves_request *req,
	struct err *err)
{
	if (req->x)
		return use_x(w, req->x, err);
	if (choose_x(w))
		return 0;
	if (req->also_one)
		return use_x(w, "model", err);
	return err_set(err, ERR_INPUT,
		"no key takes two values in the %zu run%s of '%s' to make an x axis; use --x: %s",
		w->t.n_runs, w->t.n_runs == 1 ? "" : "s", query_path(w->q), key_list(w->a, keys));
}

/* ---- which runs ---- */

static int choose_rows(struct work *w, const struct curves_request *req, struct curves *out, struct err *err)
{
	w->row = arena_array(w->a, size_t, w->t.n_runs);
	for (size_t r = 0; r < w->t.n_runs; r++) {
		if (w->t.run[r].outcome == QUERY_NO_FIT && !req->also_no_fit)
			out->n_no_fit++;
		else if (w->t.run[r].outcome == QUERY_FAILED)
			out->n_failed++;
		else if (cell(w, r, w->x) == INTERN_NONE)
			out->n_no_x++;
		else
			w->row[w->n_rows++] = r;
	}
	out->n_points = w->n_rows;
	if (w->n_rows)
		return 0;
	return err_set(err, ERR_INPUT,
		"nothing to draw: of %zu run%s in '%s' %zu do not fit, %zu failed or lack that number, %zu have no '%s'",
		w->t.n_runs, w->t.n_runs == 1 ? "" : "s", query_path(w->q), out->n_no_fit, out->n_failed,
		out->n_no_x, w->t.key[w->x].name);
}

/* Does text a stand before b, which was seen later? Numbers do, by size. */
static bool name_before(const double *number, uint32_t a, uint32_t b)
{
	return !(number[b] < number[a]) && (isnan(number[b]) || !isnan(number[a]));
}

/* Makes names of the x of the chosen runs where they are not all numbers. */
static int name_x(struct work *w, struct err *err)
{
	struct axis *axis = &w->axis[w->x];
	uint32_t *order;

	if (!axis->words)
		return 0;
	order = arena_array(w->a, uint32_t, w->t.texts.n);
	bool *seen = arena_array(w->a, bool, w->t.texts.n);
	for (size_t i = 0; i < w->n_rows; i++) {
		uint32_t id = cell(w, w->row[i], w->x);
		size_t at = w->n_names;
		if (seen[id])
			continue;
		seen[id] = true;
		for (; at > 0 && !name_before(axis->number, order[at - 1], id); at--)
			order[at] = order[at - 1];
		order[at] = id;
		w->n_names++;
	}
	if (w->n_names > CURVES_NAMES_MAX)
		return err_set(err, ERR_USAGE,
			"'%s' takes %zu values that are not all numbers; an x axis has room for %d names; choose "
			"another with --x, or draw a database with fewer runs",
			w->t.key[w->x].name, w->n_names, CURVES_NAMES_MAX);
	w->name = arena_array(w->a, const char *, w->n_names);
	for (size_t i = 0; i < w->n_names; i++) {
		w->name[i] = w->t.texts.name[order[i]];
		axis->number[order[i]] = (double)i;
	}
	axis->unit = "";
	return 0;
}

/* ---- which curve ---- */

static bool varies(const struct work *w, size_t key)
{
	for (size_t i = 1; i < w->n_rows; i++)
		if (cell(w, w->row[i], key) != cell(w, w->row[0], key))
			return true;
	return false;
}

/* Is the key x under another name: the same text or number wherever it is set? */
static bool repeats_x(const struct work *w, size_t key)
{
	for (size_t i = 0; i < w->n_rows; i++)
		if (cell(w, w->row[i], key) != INTERN_NONE &&
			cell(w, w->row[i], key) != cell(w, w->row[i], w->x) &&
			!(number_of(w, w->row[i], key) == number_of(w, w->row[i], w->x)))
			return false;
	return true;
}

/* Does the key say more about a run than its group does already? */
static bool splits_groups(const struct work *w, size_t key)
{
	uint32_t *first = arena_array(w->a, uint32_t, w->n_groups); /* its text + 2; 0: not seen */

	for (size_t i = 0; i < w->n_rows; i++) {
		uint32_t id = cell(w, w->row[i], key) + 2; /* INTERN_NONE becomes 1 */
		uint32_t *of_group = &first[w->group[i]];
		if (*of_group && *of_group != id)
			return true;
		*of_group = id;
	}
	return false;
}

static void add_to_series(struct work *w, size_t key)
{
	struct intern pairs;
	char pair[32];

	intern_init(&pairs, w->a);
	for (size_t i = 0; i < w->n_rows; i++) {
		int len = snprintf(pair, sizeof(pair), "%u/%u", w->group[i], cell(w, w->row[i], key));
		w->group[i] = intern_add(&pairs, pair, (size_t)len);
	}
	w->n_groups = pairs.n;
	w->in_series[key] = true;
}

/* Names come before swept keys in a legend, and those before the other columns: 0, 1, 2. */
static int series_rank(const struct query_key *key)
{
	static const char *const names[] = {"model", "quant", "machine", "engine"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(key->name, names[i]) == 0)
			return 0;
	return key->param ? 1 : 2;
}

enum { N_RANKS = 3 };

static void choose_series(struct work *w)
{
	for (int rank = 0; rank < N_RANKS; rank++)
		for (size_t k = 0; k < w->t.n_keys; k++)
			if (k != w->x && !w->t.key[k].metric && series_rank(&w->t.key[k]) == rank &&
				varies(w, k) && !repeats_x(w, k) && splits_groups(w, k))
				add_to_series(w, k);
}

/* ---- names ---- */

static bool same_texts(const struct work *w, size_t a, size_t b)
{
	for (size_t i = 0; i < w->n_rows; i++)
		if (cell(w, w->row[i], a) != cell(w, w->row[i], b))
			return false;
	return true;
}

/* "machine.gpu0.link.gen" is "gen", unless another key that ends so says something else. */
static const char *short_name(const struct work *w, size_t key)
{
	const char *dot = strrchr(w->t.key[key].name, '.');
	const char *last = dot ? dot + 1 : w->t.key[key].name;

	for (size_t k = 0; k < w->t.n_keys && dot; k++) {
		const char *other = strrchr(w->t.key[k].name, '.');
		if (k != key && strcmp(other ? other + 1 : w->t.key[k].name, last) == 0 && varies(w, k) &&
			!same_texts(w, k, key))
			return w->t.key[key].name;
	}
	return last;
}

static const char *describe(const struct work *w, size_t row, size_t key)
{
	const char *text = text_of(w, row, key);

	if (series_rank(&w->t.key[key]) == 0 && text)
		return text;
	return arena_printf(w->a, "%s %s", short_name(w, key), text ? text : "not set");
}

static const char *join(struct arena *a, const char *list, const char *item)
{
	return arena_printf(a, "%s%s%s", list, *list ? ", " : "", item);
}

static const char *curve_name(const struct work *w, size_t row)
{
	const char *name = "";

	for (int rank = 0; rank < N_RANKS; rank++)
		for (size_t k = 0; k < w->t.n_keys; k++)
			if (w->in_series[k] && series_rank(&w->t.key[k]) == rank)
				name = join(w->a, name, describe(w, row, k));
	return *name ? name : "simulated";
}

/* What all points share: the names and the workload; version and a depth of 0 are not worth the room. */
static const char *common_text(const struct work *w)
{
	static const char *const shown[] = {
		"model", "quant", "machine", "engine", "batch", "prompt", "generate", "depth"};
	const char *list = "";

	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		for (size_t k = 0; k < w->t.n_keys; k++) {
			const char *text = text_of(w, w->row[0], k);
			if (k != w->x && !w->in_series[k] && strcmp(w->t.key[k].name, shown[i]) == 0 &&
				text && !varies(w, k) && strcmp(text, "0") != 0)
				list = join(w->a, list, describe(w, w->row[0], k));
		}
	}
	return list;
}

/* ---- order ---- */

static int compare_values(const struct work *w, size_t row_a, size_t row_b, size_t key)
{
	const char *a = text_of(w, row_a, key), *b = text_of(w, row_b, key);
	double x = number_of(w, row_a, key), y = number_of(w, row_b, key);

	if (!a || !b)
		return (a != NULL) - (b != NULL);
	if (x < y || x > y)
		return x < y ? -1 : 1;
	return strverscmp(a, b); /* llama-3.1-8b before llama-3.1-70b */
}

/* Curves by their keys, numbers by size. */
static int compare_rows(const struct work *w, size_t a, size_t b)
{
	for (int rank = 0; rank < N_RANKS; rank++) {
		for (size_t k = 0; k < w->t.n_keys; k++) {
			if (!w->in_series[k] || series_rank(&w->t.key[k]) != rank)
				continue;
			int c = compare_values(w, a, b, k);
			if (c)
				return c;
		}
	}
	return 0;
}

static int compare_points(const void *a, const void *b)
{
	const struct curves_point *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? -1 : 1;
	return (p->y[0].value > q->y[0].value) - (p->y[0].value < q->y[0].value);
}

/* Groups in the order of their curves. first is a row of each. */
static uint32_t *sort_groups(const struct work *w, const size_t *first)
{
	uint32_t *order = arena_array(w->a, uint32_t, w->n_groups);

	for (uint32_t g = 0; g < w->n_groups; g++) {
		uint32_t at = g;
		for (; at > 0 && compare_rows(w, first[g], first[order[at - 1]]) < 0; at--)
			order[at] = order[at - 1];
		order[at] = g;
	}
	return order;
}

/* ---- together ---- */

static int too_many(const struct work *w, size_t max, struct err *err)
{
	const char *list = "";

	for (size_t k = 0; k < w->t.n_keys; k++)
		if (w->in_series[k])
			list = join(w->a, list, w->t.key[k].name);
	return err_set(err, ERR_USAGE,
		"%u curves, but only %zu can be told apart; choose fewer keys with --series, out of: %s",
		w->n_groups, max, list);
}

/* Keys that differ between runs that fall on one point of one curve; NULL when no two do. */
static const char *mixed_keys(const struct work *w)
{
	struct intern places;
	uint32_t *place = arena_array(w->a, uint32_t, w->n_rows);
	const char *list = "";
	char at[64];

	intern_init(&places, w->a);
	for (size_t i = 0; i < w->n_rows; i++) {
		int len = snprintf(at, sizeof(at), "%u/%.17g", w->group[i], number_of(w, w->row[i], w->x));
		place[i] = intern_add(&places, at, (size_t)len);
	}
	if (places.n == w->n_rows)
		return NULL;
	struct work by_place = *w;
	by_place.group = place;
	by_place.n_groups = places.n;
	for (size_t k = 0; k < w->t.n_keys; k++)
		if (!w->t.key[k].metric && splits_groups(&by_place, k))
			list = join(w->a, list, w->t.key[k].name);
	return list;
}

static int build(struct work *w, size_t max, struct curves *out, struct err *err)
{
	if (w->n_groups > max)
		return too_many(w, max, err);
	size_t *first = arena_array(w->a, size_t, w->n_groups);
	size_t *size = arena_array(w->a, size_t, w->n_groups);
	for (size_t i = w->n_rows; i-- > 0;) {
		first[w->group[i]] = w->row[i];
		size[w->group[i]]++;
	}
	const uint32_t *order = sort_groups(w, first);
	out->n = w->n_groups;
	out->curve = arena_array(w->a, struct curve, out->n);
	for (size_t c = 0; c < out->n; c++) {
		struct curve *curve = &out->curve[c];
		curve->name = curve_name(w, first[order[c]]);
		curve->point = arena_array(w->a, struct curves_point, size[order[c]]);
		for (size_t i = 0; i < w->n_rows; i++) {
			const struct query_run *run = &w->t.run[w->row[i]];
			if (w->group[i] != order[c])
				continue;
			struct curves_point *p = &curve->point[curve->n++];
			*p = (struct curves_point){
				.x = number_of(w, w->row[i], w->x),
				.upper_bound = run->upper_bound,
				.label = text_of(w, w->row[i], w->x),
				.run = run->key,
				.fits = run->outcome == QUERY_RAN,
			};
			memcpy(p->y, run->of, sizeof(p->y));
		}
		qsort(curve->point, curve->n, sizeof(*curve->point), compare_points);
	}
	out->mixed = mixed_keys(w);
	out->common = common_text(w);
	out->x = w->t.key[w->x].name;
	out->x_unit = w->axis[w->x].unit;
	out->name = w->name;
	out->n_names = w->n_names;
	return 0;
}

/* The keys that say what was run, and the metrics that were asked for. */
static struct query_keys keep_keys(struct arena *a, const struct query_keys *all, const bool *wanted)
{
	struct query_key *at = arena_array(a, struct query_key, all->n);
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		if (!all->at[i].metric || wanted[i])
			at[n++] = all->at[i];
	return (struct query_keys){at, n};
}

static int apply_series(struct work *w, const char *series, struct err *err)
{
	const struct query_keys keys = {w->t.key, w->t.n_keys};
	bool *wanted = arena_array(w->a, bool, w->t.n_keys);

	if (mark_series(w, &keys, series, wanted, err))
		return -1;
	if (wanted[w->x])
		return err_set(err, ERR_USAGE, "'%s' is the x axis and cannot be in --series too",
			w->t.key[w->x].name);
	for (size_t k = 0; k < w->t.n_keys; k++)
		if (wanted[k])
			add_to_series(w, k);
	return 0;
}

int curves_read(struct query *q, const struct curves_request *req, struct arena *a, struct curves *out,
	struct err *err)
{
	struct work w = {.q = q, .a = a};
	struct query_keys all, keys;
	size_t x = NO_KEY;

	*out = (struct curves){0};
	if (query_read_keys(q, &all, err))
		return -1;
	bool *wanted = arena_array(a, bool, all.n);
	if (req->x && find_key(&w, &all, req->x, &x, err))
		return -1;
	if (req->series && mark_series(&w, &all, req->series, wanted, err))
		return -1;
	if (req->x)
		wanted[x] = true;
	keys = keep_keys(a, &all, wanted);
	if (query_read_runs(q, keys.at, keys.n, req->metric, req->n_metrics, &w.t, err))
		return -1;
	if (!w.t.n_runs)
		return err_set(err, ERR_INPUT,
			"'%s' holds no runs yet; 'offsim run' and 'offsim sweep' add them", query_path(q));
	w.axis = arena_array(a, struct axis, w.t.n_keys);
	for (size_t k = 0; k < w.t.n_keys; k++)
		w.axis[k] = read_axis(&w, k);
	if (find_x(&w, &keys, req, err) || choose_rows(&w, req, out, err) || name_x(&w, err))
		return -1;
	w.group = arena_array(a, uint32_t, w.n_rows);
	w.n_groups = 1;
	w.in_series = arena_array(a, bool, w.t.n_keys);
	if (!req->series)
		choose_series(&w);
	else if (apply_series(&w, req->series, err))
		return -1;
	return build(&w, req->max ? req->max : CURVES_MAX, out, err);
}
