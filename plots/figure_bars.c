#include <ctype.h>
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define BARS_MAX 200
#define GROUP_GAP 0.8        /* between the bars of two curves */
#define LABELS 45            /* more are not all written */
#define GROUP_COLUMNS 85     /* names of groups longer than their share are broken in lines, or explained */
#define GROUP_COLUMNS_TERMINAL 60
#define GROUP_LINES 3
#define SPAN 6.0             /* of the x axis at least: one run is no wall */
#define PANELS_MAX 4         /* memories shown */
#define PARTS_MAX 8          /* resources told apart in a stack, as many fills as style.gp has; the last: other */
#define LANES_MAX 10         /* resources shown busy */
#define NOTABLE 0.005        /* a share less than this is not seen */
#define CAPACITY_ROOM 5.0    /* a capacity this much above what is used would flatten it */
#define GIB 1073741824.0
#define MIB 1048576.0

struct bar {
	double at; /* on the x axis */
	const struct curves_point *point;
};

struct bars {
	struct bar *bar;
	size_t n;
	double left, right; /* of the x axis */
};

/* ---- places and labels ---- */

static int place_bars(struct figure *f, struct bars *b, struct err *err)
{
	double at = 0;

	if (f->c.n_points > BARS_MAX)
		return err_set(err, ERR_INPUT,
			"%zu runs in '%s' are too many bars (at most %d); draw a database with fewer runs",
			f->c.n_points, query_path(f->q), BARS_MAX);
	b->bar = arena_array(f->arena, struct bar, f->c.n_points);
	for (size_t k = 0; k < f->c.n; k++) {
		for (size_t i = 0; i < f->c.curve[k].n; i++)
			b->bar[b->n++] = (struct bar){at++, &f->c.curve[k].point[i]};
		at += GROUP_GAP;
	}
	double last = b->bar[b->n - 1].at, margin = fmax(0.7, (SPAN - last) / 2);
	b->left = -margin;
	b->right = last + margin;
	return 0;
}

/* Under the bars: x of every so many of them. Returns the length of the longest when they must be turned. */
static size_t add_bar_labels(struct figure *f, const struct bars *b)
{
	size_t longest = 0, every = (b->n + LABELS - 1) / LABELS;

	for (size_t i = 0; i < b->n; i++) {
		size_t len = strlen(b->bar[i].point->label);
		longest = len > longest ? len : longest;
	}
	while (f->characters && !f->c.name && every < b->n && !figure_has_room(f, b->n / every, longest))
		every++;
	for (size_t i = 0; i < b->n; i += every) {
		const struct curves_point *p = b->bar[i].point;
		data_number(&f->data, b->bar[i].at, " ");
		data_name(&f->data, f->c.name ? figure_name_of(f, (size_t)p->x, b->n / every) : p->label,
			"\n");
	}
	data_block(&f->data);
	return f->characters || figure_has_room(f, b->n / every, longest) ? 0 : longest;
}

enum group_names { GROUPS_WHOLE, GROUPS_IN_LINES, GROUPS_LETTERS };

/* How the names of groups find room over them. *lines is what the highest needs. */
static enum group_names choose_group_names(const struct figure *f, const struct bars *b, size_t *lines)
{
	size_t columns = f->characters ? GROUP_COLUMNS_TERMINAL : GROUP_COLUMNS;
	enum group_names how = GROUPS_WHOLE;

	*lines = 1;
	for (size_t k = 0; k < f->c.n; k++) {
		const char *name = f->c.curve[k].name;
		size_t room = columns * f->c.curve[k].n / b->n, n = 1;
		if (strlen(name) <= room)
			continue;
		how = GROUPS_IN_LINES;
		for (const char *end; (end = strstr(name, ", ")); name = end + 2, n++)
			if ((size_t)(end - name) + 1 > room)
				return GROUPS_LETTERS;
		if (strlen(name) > room || n > GROUP_LINES || f->characters)
			return GROUPS_LETTERS;
	}
	if (how == GROUPS_IN_LINES) {
		for (size_t k = 0; k < f->c.n; k++) {
			size_t n = 1;
			for (const char *p = f->c.curve[k].name; (p = strstr(p, ", ")); p += 2)
				n++;
			*lines = n > *lines ? n : *lines;
		}
	}
	return how;
}

static void add_group_names(struct figure *f, const struct bars *b, enum group_names how)
{
	const struct bar *bar = b->bar;

	for (size_t k = 0; k < f->c.n; k++) {
		const struct curve *c = &f->c.curve[k];
		const char *letter = arena_printf(f->arena, "%c", 'A' + (int)k);
		data_number(&f->data, (bar[0].at + bar[c->n - 1].at) / 2, " ");
		if (how == GROUPS_IN_LINES)
			data_lines(&f->data, c->name);
		else
			data_name(&f->data, how == GROUPS_LETTERS ? letter : c->name, "\n");
		if (how == GROUPS_LETTERS)
			figure_explain(f, arena_printf(f->arena, "%s: %s%s", letter, c->name,
						  k + 1 < f->c.n ? ";" : ""));
		bar += c->n;
	}
	data_block(&f->data);
}

/* The first two blocks: labels under the bars, names over the groups; begins the options. */
static void add_labels(struct figure *f, const struct bars *b)
{
	size_t lines;
	enum group_names how = choose_group_names(f, b, &lines);

	figure_label_x(f, f->c.x_unit, "");
	size_t turned = add_bar_labels(f, b);
	if (how == GROUPS_LETTERS)
		f->x_column = SIZE_MAX / 2; /* on a line of their own */
	add_group_names(f, b, how);
	f->options = arena_printf(f->arena, "%zu %g %g %zu %zu %zu %zu", b->n, b->left, b->right, turned,
		f->c.n > 1 ? f->c.n : 0, lines, f->more_rows);
}

/* ---- resources and memories by name ---- */

struct item {
	const char *name;
	double weight; /* the least go when there are too many */
	bool in_use;   /* of a memory: by the model */
};

struct items {
	VEC(struct item);
};

static struct item *item_of(struct items *list, const char *name, struct arena *a)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->at[i].name, name) == 0)
			return &list->at[i];
	VEC_PUSH(list, a, ((struct item){name, 0, false}));
	return &list->at[list->n - 1];
}

/* The heaviest first; equals as they came. */
static void sort_by_weight(struct items *list)
{
	for (size_t i = 1; i < list->n; i++) {
		struct item item = list->at[i];
		size_t at = i;
		for (; at > 0 && list->at[at - 1].weight < item.weight; at--)
			list->at[at] = list->at[at - 1];
		list->at[at] = item;
	}
}

static void sort_by_name(struct items *list)
{
	for (size_t i = 1; i < list->n; i++) {
		struct item item = list->at[i];
		size_t at = i;
		for (; at > 0 && strverscmp(list->at[at - 1].name, item.name) > 0; at--)
			list->at[at] = list->at[at - 1];
		list->at[at] = item;
	}
}

static const char *add_name(struct figure *f, const char *list, const char *name)
{
	return list ? arena_printf(f->arena, "%s, %s", list, name) : name;
}

/* Keeps the n heaviest of those above least; names of others above it are told in f->left_out. */
static void keep_heaviest(struct figure *f, struct items *list, size_t n, double least)
{
	sort_by_weight(list);
	while (list->n && !(list->at[list->n - 1].weight > least))
		list->n--;
	for (size_t i = n; i < list->n; i++)
		f->left_out = add_name(f, f->left_out, list->at[i].name);
	if (list->n > n)
		list->n = n;
}

/* As words of f->names, which a template puts into a command: hence plain characters alone. */
static void add_item_names(struct figure *f, const struct items *list)
{
	for (size_t i = 0; i < list->n; i++) {
		char *word = arena_strdup(f->arena, list->at[i].name);
		for (char *p = word; *p; p++)
			if (!isalnum((unsigned char)*p) && !strchr("._-+:/", *p))
				*p = '_';
		f->names = arena_printf(f->arena, "%s%s%s", f->names, *f->names ? " " : "", word);
	}
}

/* ---- memory ---- */

struct run_memory {
	const struct query_memory *at;
	size_t n;
};

static double used_bytes(const struct query_memory *m)
{
	double sum = 0;

	for (int i = 0; i < QUERY_USE_N; i++)
		sum += m->used[i];
	return sum;
}

static bool overflows(const struct query_memory *m)
{
	return used_bytes(m) > m->capacity;
}

/* NULL when the run's machine has none of that name. */
static const struct query_memory *memory_named(const struct run_memory *run, const char *name)
{
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->at[i].name, name) == 0)
			return &run->at[i];
	return NULL;
}

/* A run that does not fit is marked where it does not, or everywhere when that is not to be seen. */
static bool is_marked(const struct curves_point *p, const struct run_memory *run, const struct query_memory *m)
{
	if (p->fits || overflows(m))
		return !p->fits;
	for (size_t i = 0; i < run->n; i++)
		if (overflows(&run->at[i]))
			return false;
	return true;
}

struct memory_axis {
	double top;
	bool above;     /* some capacity is above the limit, */
	double limit;   /* and told by an arrow */
	double written; /* the capacity when it is above for all and the same; or 0 */
};

static struct memory_axis choose_memory_axis(const struct bars *b, const struct run_memory *run,
	const char *name, bool marks)
{
	double used = 0, least = INFINITY, most = 0, drawn = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct query_memory *m = memory_named(&run[i], name);
		if (m)
			used = fmax(used, used_bytes(m));
	}
	for (size_t i = 0; i < b->n; i++) {
		const struct query_memory *m = memory_named(&run[i], name);
		if (!m)
			continue;
		least = fmin(least, m->capacity);
		most = fmax(most, m->capacity);
		if (m->capacity <= CAPACITY_ROOM * used)
			drawn = fmax(drawn, m->capacity);
	}
	double limit = CAPACITY_ROOM * used, top = fmax(used, drawn);
	return (struct memory_axis){
		.top = top * (most > limit ? 1.3 : marks ? 1.16 : 1.08),
		.above = most > limit,
		.limit = limit,
		.written = least > limit && least == most ? most : 0,
	};
}

/* Rows of one memory: place, capacity, the tops of the four parts, and where its marks are. */
static void add_memory_panel(struct figure *f, const struct bars *b, const struct run_memory *run,
	const char *name, const struct memory_axis *axis, double unit)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct query_memory *m = memory_named(&run[i], name);
		double sum = 0;
		if (!m)
			continue;
		bool above = m->capacity > axis->limit;
		data_number(&f->data, b->bar[i].at, " ");
		data_number(&f->data, above ? (double)NAN : m->capacity / unit, " ");
		for (int u = 0; u < QUERY_USE_N; u++)
			data_number(&f->data, (sum += m->used[u]) / unit, " ");
		bool marked = is_marked(b->bar[i].point, &run[i], m);
		data_number(&f->data, marked ? sum / unit : (double)NAN, " ");
		data_number(&f->data, above ? 0.8 * axis->top / unit : (double)NAN, "\n");
	}
	data_block(&f->data);
	f->options = arena_printf(f->arena, "%s %.6g %s %.6g", f->options, axis->top / unit,
		unit == GIB ? "GiB" : "MiB", axis->written / unit);
}

/* Contexts and reserves of GPUs that compute nothing take a panel each and say nothing; unless there is no more. */
static void drop_idle(struct figure *f, struct items *memories)
{
	size_t n = 0;

	for (size_t i = 0; i < memories->n; i++)
		n += memories->at[i].in_use;
	if (!n)
		return;
	n = 0;
	sort_by_name(memories);
	for (size_t i = 0; i < memories->n; i++) {
		if (memories->at[i].in_use)
			memories->at[n++] = memories->at[i];
		else if (memories->at[i].weight > 0)
			f->idle = add_name(f, f->idle, memories->at[i].name);
	}
	memories->n = n;
}

int figure_memory(struct figure *f, struct err *err)
{
	struct items memories = {0};
	struct bars b = {0};

	if (place_bars(f, &b, err))
		return -1;
	struct run_memory *run = arena_array(f->arena, struct run_memory, b.n);
	for (size_t i = 0; i < b.n; i++) {
		if (query_read_memory(f->q, b.bar[i].point->run, &run[i].at, &run[i].n, err))
			return -1;
		for (size_t m = 0; m < run[i].n; m++) {
			struct item *item = item_of(&memories, run[i].at[m].name, f->arena);
			const struct query_memory *at = &run[i].at[m];
			item->weight = fmax(item->weight, used_bytes(at));
			item->in_use = item->in_use || used_bytes(at) > at->used[QUERY_OVERHEAD] || overflows(at);
		}
	}
	drop_idle(f, &memories);
	keep_heaviest(f, &memories, PANELS_MAX, 0);
	if (!memories.n)
		return err_set(err, ERR_INPUT, "no run in '%s' says what lies in its memories",
			query_path(f->q));
	sort_by_name(&memories);
	data_text(&f->data, "# place label; place group; then a block a memory: place capacity, tops of weights, "
			    "kv, activation, overhead, marks\n");
	add_labels(f, &b);
	f->panels = memories.n;
	bool marks = false;
	for (size_t i = 0; i < b.n; i++)
		marks = marks || !b.bar[i].point->fits;
	struct memory_axis axis[PANELS_MAX];
	bool above = false;
	double unit = MIB;
	for (size_t m = 0; m < memories.n; m++) {
		axis[m] = choose_memory_axis(&b, run, memories.at[m].name, marks);
		above = above || axis[m].above;
		unit = axis[m].top >= GIB ? GIB : unit;
	}
	f->options = arena_printf(f->arena, "%s %d %d %zu", f->options, marks, above, memories.n);
	for (size_t m = 0; m < memories.n; m++)
		add_memory_panel(f, &b, run, memories.at[m].name, &axis[m], unit);
	add_item_names(f, &memories);
	return 0;
}

/* ---- utilisation ---- */

struct run_resources {
	const struct query_resource *at;
	size_t n;
};

/* NULL when the run has none of that name. */
static const struct query_resource *resource_named(const struct run_resources *run, const char *name)
{
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->at[i].name, name) == 0)
			return &run->at[i];
	return NULL;
}

static double critical_of_all(const struct run_resources *run)
{
	double sum = 0;

	for (size_t i = 0; i < run->n; i++)
		sum += run->at[i].critical;
	return sum;
}

/* Rows of place and tops of the parts. What is no part of its own is in the last, "other". */
static void add_pace(struct figure *f, const struct bars *b, const struct run_resources *run,
	const struct items *parts, bool other)
{
	for (size_t i = 0; i < b->n; i++) {
		double sum = 0;
		data_number(&f->data, b->bar[i].at, "");
		for (size_t p = 0; p < parts->n; p++) {
			const struct query_resource *r = resource_named(&run[i], parts->at[p].name);
			data_text(&f->data, " ");
			data_number(&f->data, 100 * (sum += r ? r->critical : 0), "");
		}
		if (other) {
			data_text(&f->data, " ");
			data_number(&f->data, 100 * critical_of_all(&run[i]), "");
		}
		data_text(&f->data, "\n");
	}
	data_block(&f->data);
}

static void add_lane(struct figure *f, const struct bars *b, const struct run_resources *run, const char *name)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct query_resource *r = resource_named(&run[i], name);
		data_number(&f->data, b->bar[i].at, " ");
		data_number(&f->data, r ? r->busy : 0, " ");
		data_number(&f->data, r ? r->utilisation : 0, "\n");
	}
	data_block(&f->data);
}

/* Resources by the share of the time that they limited, and by that in which they were busy. */
static int read_resources(struct figure *f, const struct bars *b, struct run_resources *run,
	struct items *parts, struct items *lanes, struct err *err)
{
	for (size_t i = 0; i < b->n; i++) {
		if (query_read_resources(f->q, b->bar[i].point->run, &run[i].at, &run[i].n, err))
			return -1;
		for (size_t k = 0; k < run[i].n; k++) {
			const struct query_resource *r = &run[i].at[k];
			struct item *part = item_of(parts, r->name, f->arena);
			struct item *lane = item_of(lanes, r->name, f->arena);
			part->weight = fmax(part->weight, r->critical);
			lane->weight = fmax(lane->weight, r->busy);
		}
	}
	return 0;
}

int figure_utilisation(struct figure *f, struct err *err)
{
	struct items parts = {0}, lanes = {0}, all;
	struct bars b = {0};
	const struct query_span *span;
	size_t n_spans;

	/* One bar says less than when it was busy. */
	if (f->c.n_points == 1) {
		if (query_read_spans(f->q, f->c.curve[0].point[0].run, &span, &n_spans, err))
			return -1;
		if (n_spans)
			return figure_timeline(f, err);
	}
	if (place_bars(f, &b, err))
		return -1;
	struct run_resources *run = arena_array(f->arena, struct run_resources, b.n);
	if (read_resources(f, &b, run, &parts, &lanes, err))
		return -1;
	keep_heaviest(f, &lanes, LANES_MAX, NOTABLE);
	sort_by_name(&lanes);
	sort_by_weight(&parts);
	all = parts;
	while (parts.n && (parts.n >= PARTS_MAX || parts.at[parts.n - 1].weight < NOTABLE))
		parts.n--;
	bool other = false; /* is there something that is not shown by name? */
	for (size_t i = parts.n; i < all.n; i++)
		other = other || all.at[i].weight >= NOTABLE;
	if (!parts.n && !lanes.n)
		return err_set(err, ERR_INPUT, "no run in '%s' says how busy its resources are",
			query_path(f->q));
	data_text(&f->data, "# place label; place group; place and tops of the shares; then a block a resource: "
			    "place busy utilisation\n");
	add_labels(f, &b);
	f->panels = 2;
	f->options = arena_printf(f->arena, "%s %zu %zu", f->options, parts.n + other, lanes.n);
	add_pace(f, &b, run, &parts, other);
	for (size_t l = 0; l < lanes.n; l++)
		add_lane(f, &b, run, lanes.at[l].name);
	add_item_names(f, &parts);
	if (other)
		f->names = arena_printf(f->arena, "%s other", f->names);
	add_item_names(f, &lanes);
	return 0;
}
