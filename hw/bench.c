#include "hw/bench.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "base/vec.h"

#define BENCH_MAX_BYTES ((size_t)256 << 20)
/* Of a file that is only looked into. */
#define LOOK_BYTES ((size_t)1 << 16)

/* The most particular first: what looks like the output of several is taken for the first of them. */
static const struct bench_format *const formats[] = {
	&bench_nvbandwidth, &bench_fio, &bench_mlc, &bench_stream, &bench_llama_bench, &bench_vllm,
};

const struct bench_format *bench_format_at(size_t i)
{
	return i < ARRAY_LEN(formats) ? formats[i] : NULL;
}

int bench_format_find(const char *name, const struct bench_format **out, struct err *err)
{
	struct suggest s;
	char near[96];

	suggest_init(&s, name);
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		*out = formats[i];
		if (strcmp(name, formats[i]->name) == 0)
			return 0;
		suggest_offer(&s, formats[i]->name);
	}
	if (suggest_best(&s))
		return err_set(err, ERR_USAGE, "unknown format '%s'%s", name, suggest_text(&s, near, sizeof(near)));
	return err_set(err, ERR_USAGE, "unknown format '%s'; one of nvbandwidth, fio, mlc, stream, llama-bench, vllm",
		name);
}

int bench_line_of(const struct bench_text *t, struct bench_cursor *c, const char *word)
{
	struct bench_cursor from_start = {0};

	c = c ? c : &from_start;
	const char *at = t->s + c->at, *found = memmem(at, t->len - c->at, word, strlen(word));
	if (!found)
		return c->lines + 1;
	for (; at < found; at++)
		c->lines += *at == '\n';
	c->at = (size_t)(found - t->s) + strlen(word);
	return c->lines + 1;
}

bool bench_has(const struct bench_text *t, const char *word)
{
	return memmem(t->s, t->len, word, strlen(word)) != NULL;
}

char *bench_line(char **at)
{
	char *line = *at, *end = strchrnul(line, '\n');

	if (*line == '\0')
		return NULL;
	*at = *end ? end + 1 : end;
	*end = '\0';
	if (end > line && end[-1] == '\r')
		end[-1] = '\0';
	return line;
}

bool bench_json_number(const json_t *v, double *out)
{
	if (json_is_string(v))
		return number_parse(json_string_value(v), json_string_length(v), out);
	*out = json_number_value(v);
	return json_is_number(v);
}

int bench_add(struct bench *b, struct bench_text *t, const struct bench_row *row, struct err *err)
{
	struct err_pos pos = {t->file, row->line, 0};
	struct bench_row shown = *row;

	if (!isfinite(row->value) || row->value <= 0 || row->value > 1e30)
		return err_at(err, ERR_INPUT, &pos, "%s is %g, and no measured value", row->what, row->value);
	shown.what = utf8_clean(arena_strdup(t->a, row->what));
	VEC_PUSH(b, t->a, shown);
	return 0;
}

static bool same(const struct bench_row *x, const struct bench_row *y)
{
	if (x->kind != y->kind || x->device != y->device || strcmp(x->what, y->what) != 0)
		return false;
	return !x->llama || (x->llama->n_threads == y->llama->n_threads && x->llama->n_gpu_layers == y->llama->n_gpu_layers &&
				    strcmp(x->llama->test_time, y->llama->test_time) == 0);
}

struct place {
	double value;
	size_t i;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->value != y->value ? (x->value > y->value) - (x->value < y->value) : (x->i > y->i) - (x->i < y->i);
}

void bench_find_copies(const struct bench_row *const *row, size_t n, struct arena *a, size_t *first)
{
	struct arena_mark mark = arena_mark(a);
	struct place *at = arena_array(a, struct place, n);

	for (size_t i = 0; i < n; i++)
		at[i] = (struct place){row[i]->value, i};
	qsort(at, n, sizeof(*at), compare_places);
	for (size_t i = 0, run = 0; i < n; i++) {
		if (at[i].value != at[run].value)
			run = i;
		size_t k = run;
		while (!same(row[at[k].i], row[at[i].i]))
			k++;
		first[at[i].i] = at[k].i;
	}
	arena_rewind(a, mark);
}

/* Only the encoding: what else a file may hold is its format's business. */
static int check_utf8(const struct bench_text *t, struct err *err)
{
	struct err_pos pos = {t->file, 1, 1};
	uint32_t cp;

	if (t->len >= 2 && (memcmp(t->s, "\xff\xfe", 2) == 0 || memcmp(t->s, "\xfe\xff", 2) == 0))
		return err_at(err, ERR_INPUT, &pos, "this is UTF-16, as PowerShell writes it; save it as UTF-8");
	for (size_t i = 0, n; i < t->len; i += n) {
		n = utf8_decode(t->s + i, t->len - i, &cp);
		if (n == 0 || cp == 0)
			return err_at(err, ERR_INPUT, &pos, n ? "control character U+0000" : "byte 0x%02x is not UTF-8",
				(unsigned char)t->s[i]);
		pos.col++;
		if (t->s[i] == '\n') {
			pos.line++;
			pos.col = 1;
		}
	}
	return 0;
}

static int unknown_content(const struct bench_text *t, struct err *err)
{
	struct err_pos pos = {t->file, 0, 0};

	return err_at(err, ERR_INPUT, &pos,
		"not the output of nvbandwidth, fio, mlc, stream, llama-bench or vllm; name it with --format");
}

static int read_text(struct bench_text *t, const struct bench_format *format, struct bench *out, struct err *err)
{
	struct err_pos pos = {t->file, 0, 0};

	if (check_utf8(t, err))
		return -1;
	if (t->len >= 3 && memcmp(t->s, "\xef\xbb\xbf", 3) == 0) {
		t->s += 3;
		t->len -= 3;
	}
	for (size_t i = 0; i < ARRAY_LEN(formats) && !format; i++)
		if (formats[i]->sniff(t))
			format = formats[i];
	if (!format)
		return unknown_content(t, err);
	*out = (struct bench){.file = t->file, .format = format};
	if (format->read(t, out, err))
		return -1;
	return out->n ? 0 : err_at(err, ERR_INPUT, &pos, "holds no measurement of %s", format->name);
}

int bench_read_file(const char *path, const struct bench_format *format, struct arena *a, struct bench *out,
	struct err *err)
{
	struct bench_text t = {.file = arena_strdup(a, path), .a = a};

	return file_read(path, BENCH_MAX_BYTES, a, &t.s, &t.len, err) || read_text(&t, format, out, err) ? -1 : 0;
}

int bench_read_text(const char *text, size_t len, const char *name, const struct bench_format *format,
	struct arena *a, struct bench *out, struct err *err)
{
	struct bench_text t = {arena_strdup(a, name), arena_array(a, char, len + 1), len, a};

	if (len)
		memcpy(t.s, text, len);
	return read_text(&t, format, out, err);
}

bool bench_is(const char *path, const struct bench_format *format, struct arena *a)
{
	struct bench_text t = {.file = path, .a = a};
	struct stat st;
	FILE *f;

	/* What was read of a pipe would be gone. */
	if (stat(path, &st) || !S_ISREG(st.st_mode) || !(f = fopen(path, "r")))
		return false;
	t.s = arena_array(a, char, LOOK_BYTES + 1);
	t.len = fread(t.s, 1, LOOK_BYTES, f);
	fclose(f);
	return format->sniff(&t);
}
