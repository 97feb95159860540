/*
 * yaml.h - what people write: YAML, through libfyaml, into a small tree of our own.
 *
 * Nothing outside yaml.c sees libfyaml. A gate before it refuses what its Debian 12 version (0.7.12) is
 * known to mishandle or what a scenario never needs: more than 1 MiB, bytes that are not UTF-8, NUL and
 * other control characters, a lone CR, '%' directives, anchors, aliases, tags, depth over 64, several
 * documents, more than 100 empty lines in a row, "|" or ">" with no text behind, keys over 200 bytes. Duplicate
 * keys are refused. Every scalar stays text: base/units.c gives it a meaning.
 *
 *	model: llama        map ── "model" scalar
 *	workload: {batch: 2}     └ "workload" map ── "batch" scalar
 *
 * Nodes are plain and live in the caller's arena, so trees can be overlaid (from: + set:) while every
 * node keeps the file, line and column it was written at.
 */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

enum yaml_kind { YAML_SCALAR, YAML_MAP, YAML_LIST };

struct yaml_node {
	enum yaml_kind kind;
	struct err_pos pos;      /* of the value */
	const char *key;         /* inside a map; else NULL */
	struct err_pos key_pos;  /* of the key */
	const char *text;        /* scalar: its text ("" for an empty value); else NULL */
	bool quoted;             /* scalar was written in quotes or as a block */
	struct yaml_node *child; /* map, list: first child in file order */
	struct yaml_node *next;  /* next sibling */
};

/* An empty file is an error; so is a root that is not a map. */
int yaml_read_file(const char *path, struct arena *a, struct yaml_node **root, struct err *err);
/* name stands for the file in messages. text needs no NUL behind it. Any kind of root is allowed. */
int yaml_read_text(const char *text, size_t len, const char *name, struct arena *a,
		   struct yaml_node **root, struct err *err);

/* NULL when map has no such key (or is no map). */
struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
size_t yaml_count(const struct yaml_node *node);

/* A scalar's text; a map or list is an error that names the key. */
int yaml_text(const struct yaml_node *node, const char **out, struct err *err);

/* Deep merge: keys of over replace or extend those of base, maps merge, all else is replaced. Neither
   argument is changed; the result shares nodes with both. */
struct yaml_node *yaml_overlay(struct arena *a, const struct yaml_node *base,
			       const struct yaml_node *over);

/* Sets a.b.c in root to value, parsed as YAML ("[3, 4]" is a list), making maps on the way; a scalar on the way
   becomes a map under `scalar_key` when that is not NULL (so that "gpu0: rtx-4090" + gpu0.link.gen works with
   scalar_key "part"), else is an error. pos is kept. Only root itself is changed: nodes below it, which other
   trees may share, are copied first. */
int yaml_set_path(struct arena *a, struct yaml_node *root, const char *path, const char *value,
		  const char *scalar_key, const struct err_pos *pos, struct err *err);

/* Canonical text: flow style on one line, keys in file order or, with sorted, by strcmp. */
char *yaml_flow_text(struct arena *a, const struct yaml_node *node, bool sorted);

#endif
