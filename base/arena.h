/*
 * arena.h - memory that lives and dies together.
 *
 * A bump allocator over a chain of blocks. Everything of one run is cut from one arena and goes with one
 * arena_reset, error or not; so nothing above the arena frees, and nothing above it checks for NULL:
 *
 *	block ──> block ──> block
 *	[used|free]  an allocation that does not fit opens a new block (at least twice the last)
 *
 * Out of memory calls the handler given to arena_init, which must not return (print and exit, or
 * longjmp); without one the arena aborts.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/base.h"

typedef void arena_nomem_fn(void *ctx);

struct arena_block;

struct arena {
	struct arena_block *head; /* newest block; NULL before the first allocation */
	struct arena_block *spare; /* the largest that was taken back, for the next that is needed; NULL: none */
	arena_nomem_fn *nomem;    /* called when the system has no more; must not return */
	void *nomem_ctx;
	size_t total_bytes; /* obtained from the system and not given back */
};

/* A point to which an arena can be rewound. */
struct arena_mark {
	struct arena_block *block;
	size_t used;
};

void arena_init(struct arena *a, arena_nomem_fn *nomem, void *ctx);
void arena_release(struct arena *a); /* gives everything back; a may be used again */
void arena_reset(struct arena *a);   /* forgets everything, keeps the largest block for reuse */

struct arena_mark arena_mark(const struct arena *a);
/* Takes back what came after mark; the largest block of that is kept for what comes next, unless nothing came before. */
void arena_rewind(struct arena *a, struct arena_mark mark);

/* Zeroed, aligned to 16 bytes. size 0 gives a valid, unusable pointer. */
void *arena_alloc(struct arena *a, size_t size);
/* n elements of size bytes each; an overflowing product counts as out of memory. */
void *arena_alloc_array(struct arena *a, size_t n, size_t size);
#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_alloc_array((a), (n), sizeof(type)))

char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
