#include "hw/probe_text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* "\033[4m": from the escape to the letter that ends it. */
static const char *skip_escape(const char *s)
{
	s++;
	if (*s == '[')
		s++;
	while (*s && *s != '\n' && !isalpha((unsigned char)*s))
		s++;
	return *s && *s != '\n' ? s + 1 : s;
}

char *probe_line(const char **at, struct arena *a)
{
	const char *s = *at;
	size_t n = 0;

	if (!*s)
		return NULL;
	char *line = arena_alloc(a, strcspn(s, "\n") + 1);
	while (*s && *s != '\n') {
		if (*s == '\033') {
			s = skip_escape(s);
			continue;
		}
		char c = *s++;
		if (c == '\r' || (n == 0 && (c == ' ' || c == '\t')))
			continue;
		line[n++] = c == '\t' || (c >= ' ' && c <= '~') ? c : '?';
	}
	while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
		n--;
	line[n] = '\0';
	*at = *s ? s + 1 : s;
	return line;
}

char *probe_value(char *line)
{
	char *colon = strchr(line, ':'), *value;

	if (!colon)
		return NULL;
	value = colon + 1 + strspn(colon + 1, " \t");
	*colon = '\0';
	while (colon > line && (colon[-1] == ' ' || colon[-1] == '\t'))
		*--colon = '\0';
	return value;
}

uint64_t probe_count(const char *text, uint64_t max)
{
	uint64_t n = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		unsigned digit = (unsigned)(*text - '0');
		if (n > (max - digit) / 10)
			return max;
		n = n * 10 + digit;
	}
	return n;
}

double probe_number(const char *text)
{
	/* Digits alone: strtod knows hexadecimal and names too. */
	double v =
		text[0] >= '0' && text[0] <= '9' && text[1] != 'x' && text[1] != 'X' ? strtod(text, NULL) : 0;

	return v > 0 && v < 1e15 ? v : 0;
}

uint64_t probe_size(const char *text)
{
	static const char letters[] = "BKMGT";
	const char *unit = text + strspn(text, "0123456789.");
	double v = probe_number(text);

	unit += strspn(unit, " ");
	const char *letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
	if (!letter)
		return 0;
	v = ldexp(v, 10 * (int)(letter - letters));
	return v >= 1 && v <= (double)PROBE_MAX_BYTES ? (uint64_t)v : 0;
}

unsigned probe_cpu_list(const char *text, bool *set, unsigned n)
{
	unsigned found = 0;

	while (*text >= '0' && *text <= '9') {
		uint64_t first = probe_count(text, n), last = first;
		text += strspn(text, "0123456789");
		if (*text == '-') {
			last = probe_count(text + 1, n);
			text += 1 + strspn(text + 1, "0123456789");
		}
		for (uint64_t i = first; i <= last && i < n; i++, found++)
			if (set)
				set[i] = true;
		if (*text == ',')
			text++;
	}
	return found;
}

const char *probe_note_name(enum probe_note_kind kind)
{
	static const char *const names[] = {"fault", "guess", "hint"};

	return names[kind];
}

void probe_note(struct probe *p, enum probe_note_kind kind, const char *about, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	struct probe_note note = {kind, about, arena_strdup(p->a, text)};
	VEC_PUSH(&p->notes, p->a, note);
}
