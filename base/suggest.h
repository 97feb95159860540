/*
 * suggest.h - "did you mean …?": the nearest valid name by edit distance.
 */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include "base/base.h"

struct suggest {
	const char *word;  /* what was written */
	const char *best;  /* nearest candidate so far; NULL when none is near */
	size_t best_score; /* lower is nearer */
};

/* suggest_init, suggest_offer each candidate, then suggest_best: NULL when nothing is near enough (more
   than a third of the word, at least 2, would have to change). A candidate that begins with the word, or
   the word with it, counts as near. Ties go to the one offered first. */
void suggest_init(struct suggest *s, const char *word);
void suggest_offer(struct suggest *s, const char *candidate);
const char *suggest_best(const struct suggest *s);

/* "; did you mean 'NAME'?" or "", in buf. Returns buf. */
char *suggest_text(const struct suggest *s, char *buf, size_t size);

#endif
