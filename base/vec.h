/*
 * vec.h - a growable array in an arena.
 *
 *	struct { VEC(int); } v = {0};
 *	VEC_PUSH(&v, arena, 7);
 *	for (size_t i = 0; i < v.n; i++) use(v.at[i]);
 *
 * Growing copies into fresh arena memory and leaves the old piece to the arena.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <string.h>

#include "base/arena.h"

#define VEC(type)                                                                                  \
	type *at;   /* the elements */                                                             \
	size_t n;   /* how many are in use */                                                      \
	size_t cap  /* how many there is room for */

#define VEC_RESERVE(v, arena, want)                                                                \
	do {                                                                                       \
		if ((want) > (v)->cap) {                                                           \
			size_t vec_cap_ = (v)->cap ? (v)->cap * 2 : 8;                             \
			if (vec_cap_ < (want))                                                     \
				vec_cap_ = (want);                                                 \
			void *vec_new_ =                                                           \
				arena_alloc_array((arena), vec_cap_, sizeof(*(v)->at));            \
			if ((v)->n)                                                                \
				memcpy(vec_new_, (v)->at, (v)->n * sizeof(*(v)->at));              \
			(v)->at = vec_new_;                                                        \
			(v)->cap = vec_cap_;                                                       \
		}                                                                                  \
	} while (0)

#define VEC_PUSH(v, arena, value)                                                                  \
	do {                                                                                       \
		VEC_RESERVE(v, arena, (v)->n + 1);                                                 \
		(v)->at[(v)->n++] = (value);                                                       \
	} while (0)

#endif
