/*
 * yaml_internal.h - what yaml.c (reading), yaml_gate.c (what is not let in) and yaml_tree.c (trees) share.
 */
#ifndef BASE_YAML_INTERNAL_H
#define BASE_YAML_INTERNAL_H

#include "base/vec.h"
#include "base/yaml.h"

#define YAML_MAX_DEPTH 64
#define YAML_MAX_KEY 200 /* bytes; so that any key, escaped, stays below the 1024 that YAML allows for one */

/* Bytes that grow. */
struct yaml_buf {
	VEC(char);
};

static inline void yaml_put(struct yaml_buf *b, struct arena *a, const char *s, size_t n)
{
	VEC_RESERVE(b, a, b->n + n);
	memcpy(b->at + b->n, s, n);
	b->n += n;
}

/* Which of two keys stands earlier in the file, as qsort wants it. */
static inline int yaml_compare_places(const struct yaml_node *a, const struct yaml_node *b)
{
	if (a->key_pos.line != b->key_pos.line)
		return a->key_pos.line < b->key_pos.line ? -1 : 1;
	return (a->key_pos.col > b->key_pos.col) - (a->key_pos.col < b->key_pos.col);
}

/* C0 but for tab and line feed, DEL, C1, and what YAML or a terminal takes for a line break or a mark. */
bool yaml_is_control(uint32_t cp);

/* Checks text and copies it to out, which has room for one byte more: CR LF as LF, no byte order mark, LF at the
   end. */
int yaml_gate(const char *text, size_t len, const char *file, char *out, size_t *out_len, struct err *err);

/* "a map", for messages. */
const char *yaml_kind_name(enum yaml_kind kind);

/* The yaml_count() children of node in an array; those of a map sorted by key if sorted. */
struct yaml_node **yaml_children(struct arena *a, const struct yaml_node *node, bool sorted);

#endif
