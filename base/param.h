/*
 * param.h - one row per thing a person can set.
 *
 * A table row is at once the YAML key, the name in --set, the default, the unit, the range, the help text
 * and the database column; so `offsim help keys`, the man page and the parser cannot drift apart.
 *
 *	static const struct param workload_params[] = {
 *		PARAM_COUNT(struct workload, batch, "batch", "1", 1, 1e6, "sequences that run together"),
 *		…
 *	};
 */
#ifndef BASE_PARAM_H
#define BASE_PARAM_H

#include "base/units.h"
#include "base/yaml.h"

enum param_kind {
	PARAM_KIND_TEXT,   /* const char *; NULL when unset and without default */
	PARAM_KIND_REAL,   /* double, SI base units of dim; NAN when unset and without default */
	PARAM_KIND_COUNT,  /* uint64_t; 0 without default */
	PARAM_KIND_FLAG,   /* bool: yes/no, true/false, on/off, 1/0; false without default */
	PARAM_KIND_CHOICE, /* int: index into choices; 0 without default */
	PARAM_KIND_NODE,   /* struct yaml_node *: kept as written, for the module that understands it */
};

struct param {
	const char *key;            /* YAML key */
	enum param_kind kind;
	enum unit_dim dim;          /* PARAM_KIND_REAL, _COUNT */
	size_t offset;              /* of the field in the caller's struct */
	const char *def;            /* default, written as a person would; NULL: none */
	bool required;              /* missing is an error */
	double min, max;            /* inclusive, base units; REAL and COUNT */
	const char *const *choices; /* NULL-terminated; CHOICE */
	const char *help;           /* one line */
};

#define PARAM_TEXT(S, field, key, def, help)                                                       \
	{ (key), PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(S, field), (def), false, 0, 0, NULL, (help) }
#define PARAM_REAL(S, field, key, dim, def, min, max, help)                                        \
	{ (key), PARAM_KIND_REAL, (dim), offsetof(S, field), (def), false, (min), (max), NULL, (help) }
#define PARAM_COUNT(S, field, key, def, min, max, help)                                            \
	{ (key), PARAM_KIND_COUNT, UNIT_COUNT, offsetof(S, field), (def), false, (min), (max), NULL, (help) }
#define PARAM_FLAG(S, field, key, def, help)                                                       \
	{ (key), PARAM_KIND_FLAG, UNIT_PLAIN, offsetof(S, field), (def), false, 0, 0, NULL, (help) }
#define PARAM_CHOICE(S, field, key, def, choices, help)                                            \
	{ (key), PARAM_KIND_CHOICE, UNIT_PLAIN, offsetof(S, field), (def), false, 0, 0, (choices), (help) }
#define PARAM_NODE(S, field, key, help)                                                            \
	{ (key), PARAM_KIND_NODE, UNIT_PLAIN, offsetof(S, field), NULL, false, 0, 0, NULL, (help) }

/* Writes every default into base. A default that does not parse is a BUG. */
void param_defaults(const struct param *table, size_t n, void *base, struct arena *a);

/* Sets one field from text; range and choice are checked, pos is put into the message. */
int param_set(const struct param *row, void *base, const char *text, const struct err_pos *pos,
	      struct arena *a, struct err *err);

/* Defaults, then every key of map; unknown keys are errors with the nearest valid one; then the required
   ones are checked. what names the thing for messages ("scenario", "machine 'x'"). */
int param_fill(const struct param *table, size_t n, const struct yaml_node *map, const char *what,
	       void *base, struct arena *a, struct err *err);

const struct param *param_find(const struct param *table, size_t n, const char *key);

/* `offsim help keys`: one block a row: prefix.key, help, default, unit, range, choices. */
void param_print(const struct param *table, size_t n, const char *prefix, FILE *to);

#endif
