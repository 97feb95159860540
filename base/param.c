#include "base/param.h"

#include <math.h>
#include <string.h>

#include "base/suggest.h"

/* How much of a bad text a message repeats. */
#define TEXT "'%.80s'"

static void *field_of(const struct param *row, void *base)
{
	return (char *)base + row->offset;
}

const struct param *param_find(const struct param *table, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(table[i].key, key))
			return &table[i];
	return NULL;
}

/* ---- ranges, in words ---- */

/* A limit as a person would write it: exact for pure numbers, rounded with a unit for the others. */
static const char *limit_text(char *buf, size_t size, double value, enum unit_dim dim)
{
	if (dim == UNIT_COUNT)
		snprintf(buf, size, "%.0f", value);
	else if (dim == UNIT_PLAIN || dim == UNIT_FRACTION || isinf(value))
		snprintf(buf, size, "%.10g", value);
	else
		units_format(buf, size, value, dim);
	return buf;
}

static int out_of_range(const struct param *row, const char *text, const struct err_pos *pos, struct err *err)
{
	char min[48], max[48];

	limit_text(min, sizeof(min), row->min, row->dim);
	limit_text(max, sizeof(max), row->max, row->dim);
	if (isinf(row->max))
		return err_at(err, ERR_INPUT, pos, "'%s' must be at least %s, not %.80s", row->key, min, text);
	if (isinf(row->min))
		return err_at(err, ERR_INPUT, pos, "'%s' must be at most %s, not %.80s", row->key, max, text);
	return err_at(err, ERR_INPUT, pos, "'%s' must be between %s and %s, not %.80s", row->key, min, max,
		text);
}

/* ---- one field from text ---- */

static int parse_number(const struct param *row, const char *text, const struct err_pos *pos, double *out,
			struct err *err)
{
	struct err inner;

	if (units_parse(text, row->dim, out, &inner))
		return err_at(err, inner.code, pos, "%s: %s", row->key, inner.msg);
	if (!(*out >= row->min && *out <= row->max))
		return out_of_range(row, text, pos, err);
	return 0;
}

static bool same_word(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if ((*a >= 'A' && *a <= 'Z' ? *a - 'A' + 'a' : *a) != *b)
			return false;
	return *a == *b;
}

static int parse_flag(const struct param *row, const char *text, const struct err_pos *pos, bool *out,
		      struct err *err)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (same_word(text, words[i])) {
			*out = i % 2;
			return 0;
		}
	}
	return err_at(err, ERR_INPUT, pos, "'%s' must be yes or no, not " TEXT, row->key, text);
}

/* "a, b, c" of as many words as there is room for, then "…". Returns the length. */
static size_t list_words(char *buf, size_t size, size_t used, const char *word)
{
	const char *comma = used ? ", " : "";
	size_t need = strlen(comma) + strlen(word);

	if (used + need + 8 > size) { /* 8: for ", …" and NUL */
		if (used && buf[used - 1] != '.')
			used += (size_t)snprintf(buf + used, size - used, ", ...");
		return used;
	}
	return used + (size_t)snprintf(buf + used, size - used, "%s%s", comma, word);
}

static int bad_choice(const struct param *row, const char *text, const struct err_pos *pos, struct err *err)
{
	struct suggest near;
	char list[300] = "";
	size_t used = 0;

	suggest_init(&near, text);
	for (const char *const *c = row->choices; *c; c++) {
		suggest_offer(&near, *c);
		used = list_words(list, sizeof(list), used, *c);
	}
	if (suggest_best(&near))
		return err_at(err, ERR_INPUT, pos, "'%s' cannot be " TEXT "; did you mean '%s'?", row->key, text,
			suggest_best(&near));
	return err_at(err, ERR_INPUT, pos, "'%s' cannot be " TEXT "; choose one of %s", row->key, text, list);
}

static int parse_choice(const struct param *row, const char *text, const struct err_pos *pos, int *out,
			struct err *err)
{
	for (int i = 0; row->choices[i]; i++) {
		if (!strcmp(row->choices[i], text)) {
			*out = i;
			return 0;
		}
	}
	return bad_choice(row, text, pos, err);
}

static int parse_node(const char *text, const struct err_pos *pos, struct arena *a, struct yaml_node **out,
		      struct err *err)
{
	struct yaml_node *root = arena_new(a, struct yaml_node);

	/* By way of a path, because that is what keeps pos for every node. */
	root->kind = YAML_MAP;
	if (yaml_set_path(a, root, "value", text, NULL, pos, err))
		return -1;
	*out = root->child;
	(*out)->key = NULL;
	return 0;
}

int param_set(const struct param *row, void *base, const char *text, const struct err_pos *pos,
	      struct arena *a, struct err *err)
{
	void *field = field_of(row, base);
	double number;

	switch (row->kind) {
	case PARAM_KIND_TEXT:
		*(const char **)field = arena_strdup(a, text);
		return 0;
	case PARAM_KIND_REAL:
		if (parse_number(row, text, pos, &number, err))
			return -1;
		*(double *)field = number;
		return 0;
	case PARAM_KIND_COUNT:
		if (parse_number(row, text, pos, &number, err))
			return -1;
		if (number < 0) /* whatever the row's range says */
			return out_of_range(row, text, pos, err);
		*(uint64_t *)field = (uint64_t)number;
		return 0;
	case PARAM_KIND_FLAG:
		return parse_flag(row, text, pos, field, err);
	case PARAM_KIND_CHOICE:
		return parse_choice(row, text, pos, field, err);
	case PARAM_KIND_NODE:
		return parse_node(text, pos, a, field, err);
	}
	BUG("param '%s' of kind %d", row->key, (int)row->kind);
}

/* ---- a whole table ---- */

static void clear(const struct param *row, void *field)
{
	switch (row->kind) {
	case PARAM_KIND_TEXT:
		*(const char **)field = NULL;
		break;
	case PARAM_KIND_REAL:
		*(double *)field = NAN;
		break;
	case PARAM_KIND_COUNT:
		*(uint64_t *)field = 0;
		break;
	case PARAM_KIND_FLAG:
		*(bool *)field = false;
		break;
	case PARAM_KIND_CHOICE:
		*(int *)field = 0;
		break;
	case PARAM_KIND_NODE:
		*(struct yaml_node **)field = NULL;
		break;
	}
}

void param_defaults(const struct param *table, size_t n, void *base, struct arena *a)
{
	for (size_t i = 0; i < n; i++) {
		struct err err;
		if (!table[i].def)
			clear(&table[i], field_of(&table[i], base));
		else if (param_set(&table[i], base, table[i].def, NULL, a, &err))
			BUG("default of '%s': %s", table[i].key, err.msg);
	}
}

static const char *wanted(const struct param *row)
{
	switch (row->kind) {
	case PARAM_KIND_REAL:
	case PARAM_KIND_COUNT:
		return "a number";
	case PARAM_KIND_FLAG:
		return "yes or no";
	case PARAM_KIND_CHOICE:
		return "one word";
	case PARAM_KIND_TEXT:
	case PARAM_KIND_NODE:
		break;
	}
	return "a text";
}

/* NODE rows keep what was written; the others are single values. */
static int set_from_node(const struct param *row, struct yaml_node *node, void *base, struct arena *a,
			 struct err *err)
{
	if (row->kind == PARAM_KIND_NODE) {
		*(struct yaml_node **)field_of(row, base) = node;
		return 0;
	}
	if (node->kind != YAML_SCALAR)
		return err_at(err, ERR_INPUT, &node->pos, "'%s' must be %s, not %s", row->key, wanted(row),
			node->kind == YAML_MAP ? "a map" : "a list");
	if (!*node->text && !node->quoted)
		return err_at(err, ERR_INPUT, &node->key_pos, "'%s' has no value", row->key);
	return param_set(row, base, node->text, &node->pos, a, err);
}

static int unknown_key(const struct param *table, size_t n, const struct yaml_node *node, const char *what,
		       struct err *err)
{
	struct suggest near;
	char list[400] = "", hint[160];
	size_t used = 0;

	suggest_init(&near, node->key);
	for (size_t i = 0; i < n; i++) {
		suggest_offer(&near, table[i].key);
		used = list_words(list, sizeof(list), used, table[i].key);
	}
	if (suggest_best(&near))
		return err_at(err, ERR_INPUT, &node->key_pos, "unknown key " TEXT " in %.100s%s", node->key, what,
			suggest_text(&near, hint, sizeof(hint)));
	return err_at(err, ERR_INPUT, &node->key_pos, "unknown key " TEXT " in %.100s; it may have %s", node->key,
		what, list);
}

static int check_required(const struct param *table, size_t n, const struct yaml_node *map, const char *what,
			  struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].required && !yaml_get(map, table[i].key))
			return err_at(err, ERR_INPUT, &map->pos, "%.100s has no '%s'", what, table[i].key);
	return 0;
}

int param_fill(const struct param *table, size_t n, const struct yaml_node *map, const char *what,
	       void *base, struct arena *a, struct err *err)
{
	param_defaults(table, n, base, a);
	if (map->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, &map->pos, "%.100s must be a map of keys and values, not %s", what,
			map->kind == YAML_LIST ? "a list" : "a single value");
	for (struct yaml_node *c = map->child; c; c = c->next) {
		const struct param *row = param_find(table, n, c->key);
		if (!row)
			return unknown_key(table, n, c, what, err);
		if (set_from_node(row, c, base, a, err))
			return -1;
	}
	return check_required(table, n, map, what, err);
}

/* ---- help ---- */

static void print_range(const struct param *row, FILE *to)
{
	char min[48], max[48];

	limit_text(min, sizeof(min), row->min, row->dim);
	limit_text(max, sizeof(max), row->max, row->dim);
	if (!isinf(row->min) && !isinf(row->max))
		fprintf(to, " from %s to %s", min, max);
	else if (!isinf(row->min))
		fprintf(to, ", at least %s", min);
	else if (!isinf(row->max))
		fprintf(to, ", at most %s", max);
}

static void print_kind(const struct param *row, FILE *to)
{
	switch (row->kind) {
	case PARAM_KIND_TEXT:
		fputs("a text", to);
		break;
	case PARAM_KIND_COUNT:
		fputs("a whole number", to);
		print_range(row, to);
		break;
	case PARAM_KIND_REAL:
		if (row->min == row->max) { /* its unit and limits are those of the value it is part of */
			fputs("a value with a unit", to);
			break;
		}
		fprintf(to, "a %s", units_describe(row->dim));
		print_range(row, to);
		break;
	case PARAM_KIND_FLAG:
		fputs("yes or no", to);
		break;
	case PARAM_KIND_CHOICE:
		fputs("one of ", to);
		for (size_t i = 0; row->choices[i]; i++)
			fprintf(to, "%s%s", i ? ", " : "", row->choices[i]);
		break;
	case PARAM_KIND_NODE:
		fputs("a value, list or map", to);
		break;
	}
}

void param_print(const struct param *table, size_t n, const char *prefix, FILE *to)
{
	for (size_t i = 0; i < n; i++) {
		const struct param *row = &table[i];
		int width = 18;
		if (prefix && *prefix)
			width -= fprintf(to, "  %s.", prefix) - 2;
		else
			fputs("  ", to);
		fprintf(to, "%-*s  %s\n%22s", width > 0 ? width : 1, row->key, row->help, "");
		if (row->required)
			fputs("required, ", to);
		else if (row->def)
			fprintf(to, "default %s, ", *row->def ? row->def : "\"\"");
		else
			fputs("no default, ", to);
		print_kind(row, to);
		fputc('\n', to);
	}
}
