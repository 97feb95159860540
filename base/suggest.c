#include "base/suggest.h"

#include <string.h>

/* Longer words are compared for a common beginning only. */
#define MAX_LEN 63

/* Scores: 0 the same, 1 the same but for case, '-' and '_', then a name of which the word is the beginning; an edit is
   better than a name that the word goes beyond, and two are worse. */
#define BEGINNING_SCORE 2
#define BEYOND_SCORE 4
#define EDIT_SCORE(n) (2 * (n) + 1)

void suggest_init(struct suggest *s, const char *word)
{
	*s = (struct suggest){word, NULL, SIZE_MAX};
}

static char fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '_' ? '-' : c;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][MAX_LEN + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= nb; j++)
		last[j] = j;
	for (size_t i = 1; i <= na; i++) {
		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t d = last[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));
			d = least(d, least(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
			    fold(a[i - 2]) == fold(b[j - 1]))
				d = least(d, before[j - 2] + 1);
			row[j] = d;
		}
		size_t *spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[nb];
}

static size_t score(const char *word, const char *candidate)
{
	size_t nw = strlen(word), nc = strlen(candidate);
	size_t common = least(nw, nc);
	size_t best = SIZE_MAX;

	if (!strcmp(word, candidate))
		return 0;
	if (common && !strncmp(word, candidate, common))
		best = nw < nc ? BEGINNING_SCORE : BEYOND_SCORE;
	if (nw > MAX_LEN || nc > MAX_LEN)
		return best;
	size_t d = distance(word, nw, candidate, nc);
	size_t allowed = nw / 3 > 2 ? nw / 3 : 2;
	if (d <= allowed && d < nw)
		best = least(best, d ? EDIT_SCORE(d) : 1);
	return best;
}

void suggest_offer(struct suggest *s, const char *candidate)
{
	size_t sc = score(s->word, candidate);

	if (sc < s->best_score) {
		s->best_score = sc;
		s->best = candidate;
	}
}

const char *suggest_best(const struct suggest *s)
{
	return s->best;
}

char *suggest_text(const struct suggest *s, char *buf, size_t size)
{
	if (!size)
		return buf;
	buf[0] = '\0';
	if (s->best)
		snprintf(buf, size, "; did you mean '%s'?", s->best);
	return buf;
}
