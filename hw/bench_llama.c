/*
 * bench_llama.c - llama-bench: tokens a second of a model, in any of its outputs (-o json, jsonl, csv, sql, md).
 *
 *	JSON   [{"model_type": …, "n_prompt": 512, "avg_ts": 7100.0, …}, …]     ─┐
 *	JSONL  one such object a line                                            │   name and text of each field
 *	CSV    names in the first line, every value in quotes                    ├─> struct record ─> bench_row
 *	SQL    INSERT INTO test|llama_bench (names) VALUES (values);             │
 *	MD     | model | size | params | backend | ngl | test | t/s |           ─┘
 *
 * The list of fields has changed from year to year and differs in ik_llama.cpp, so fields are found by name in all of
 * them. A row with more or fewer values than names is an error at its line: its values cannot be told apart.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/csv.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "hw/bench.h"

#define GIB 1073741824.0
#define MAX_COLUMNS 256
/* What any whole number of llama-bench is below; larger ones are no counts. */
#define MAX_COUNT 1e15

struct record {
	const char *model_filename, *model_type, *cpu_info, *gpu_info, *backends, *type_k, *type_v, *split_mode,
		*tensor_split, *overrides, *load_mode, *test_time, *test, *size, *params, *rate;
	double model_size, model_n_params, n_batch, n_ubatch, n_threads, n_gpu_layers, n_cpu_moe, no_kv_offload,
		flash_attn, use_mmap, no_op_offload, n_prompt, n_gen, n_depth, avg_ts, stddev_ts, f16_kv, gpu, ik;
};

#define TEXT(name, field) {name, true, offsetof(struct record, field)}
#define NUMBER(name, field) {name, false, offsetof(struct record, field)}
/* Names of all generations, then those of the table for people. avg_ts must stay the first. */
static const struct field {
	const char *name;
	bool text;
	size_t offset;
} fields[] = {
	NUMBER("avg_ts", avg_ts), NUMBER("stddev_ts", stddev_ts),
	TEXT("model_filename", model_filename), TEXT("model_type", model_type), NUMBER("model_size", model_size),
	NUMBER("model_n_params", model_n_params), TEXT("cpu_info", cpu_info), TEXT("gpu_info", gpu_info),
	TEXT("backends", backends), NUMBER("n_batch", n_batch), NUMBER("n_ubatch", n_ubatch),
	NUMBER("n_threads", n_threads), TEXT("type_k", type_k), TEXT("type_v", type_v),
	NUMBER("n_gpu_layers", n_gpu_layers), NUMBER("n_cpu_moe", n_cpu_moe), TEXT("split_mode", split_mode),
	NUMBER("no_kv_offload", no_kv_offload), NUMBER("flash_attn", flash_attn), TEXT("tensor_split", tensor_split),
	TEXT("tensor_buft_overrides", overrides), TEXT("override_tensor", overrides), NUMBER("use_mmap", use_mmap),
	TEXT("load_mode", load_mode), NUMBER("no_op_offload", no_op_offload), NUMBER("n_prompt", n_prompt),
	NUMBER("n_gen", n_gen), NUMBER("n_depth", n_depth), TEXT("test_time", test_time), TEXT("test", test),
	/* 2023, and in part ik_llama.cpp */
	NUMBER("f16_kv", f16_kv), NUMBER("cuda", gpu), NUMBER("metal", gpu), NUMBER("vulkan", gpu), NUMBER("sycl", gpu),
	NUMBER("opencl", gpu), NUMBER("gpu_blas", gpu),
	/* ik_llama.cpp alone */
	NUMBER("mla_attn", ik), NUMBER("fused_moe", ik), NUMBER("repack", ik), NUMBER("grouped_er", ik),
	/* the table */
	TEXT("model", model_type), TEXT("size", size), TEXT("params", params), TEXT("backend", backends),
	NUMBER("ngl", n_gpu_layers), NUMBER("threads", n_threads), NUMBER("ncmoe", n_cpu_moe), TEXT("sm", split_mode),
	NUMBER("nkvo", no_kv_offload), NUMBER("fa", flash_attn), TEXT("ts", tensor_split), TEXT("ot", overrides),
	NUMBER("mmap", use_mmap), TEXT("lm", load_mode), NUMBER("nopo", no_op_offload), TEXT("t/s", rate),
	NUMBER("mla", ik), NUMBER("fmoe", ik), NUMBER("rtr", ik), NUMBER("amb", ik),
};

static int fault(const struct bench_text *t, int line, struct err *err, const char *fmt, ...) PRINTF_LIKE(4, 5);
static int fault(const struct bench_text *t, int line, struct err *err, const char *fmt, ...)
{
	struct err_pos pos = {t->file, line, 0};
	char msg[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s", msg);
}

/* ---- one record ---- */

static void record_init(struct record *r)
{
	*r = (struct record){.n_gpu_layers = NAN, .flash_attn = -1, .use_mmap = 1, .n_prompt = NAN, .n_gen = NAN,
		.avg_ts = NAN, .f16_kv = 1, .gpu = NAN};
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (fields[i].text)
			*(const char **)((char *)r + fields[i].offset) = "";
}

static const struct field *find_field(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

/* true, false, on, off, auto beside numbers. */
static bool parse_number(const char *text, double *out)
{
	static const struct {
		const char *word;
		double value;
	} words[] = {{"true", 1}, {"false", 0}, {"on", 1}, {"off", 0}, {"auto", -1}};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].word, text) == 0) {
			*out = words[i].value;
			return true;
		}
	return number_parse(text, strlen(text), out);
}

/* A field of a name that is not in the table is passed over. */
static int set_field(const struct bench_text *t, struct record *r, int line, const char *name, const char *text,
	struct err *err)
{
	const struct field *f = find_field(name);
	double value;

	if (!f)
		return 0;
	if (f->text) {
		*(const char **)((char *)r + f->offset) = utf8_clean(arena_strdup(t->a, text));
		return 0;
	}
	double *number = (double *)((char *)r + f->offset);
	if (f->offset == offsetof(struct record, ik)) { /* that it is there says enough */
		r->ik = 1;
		return 0;
	}
	if (!parse_number(text, &value) || fabs(value) > MAX_COUNT)
		return fault(t, line, err, "%s '%.60s' is no number that llama-bench writes", name, text);
	/* One of several flags. */
	*number = f->offset == offsetof(struct record, gpu) && *number > value ? *number : value;
	return 0;
}

static bool is_gpu(const struct record *r)
{
	static const char *const cpus[] = {"CPU", "BLAS", "RPC", "CPU_REPACK", "AMX"};
	const char *at = r->backends;

	if (!*at)
		return !isnan(r->gpu) ? r->gpu > 0 : *r->gpu_info || r->n_gpu_layers > 0;
	while (*at) {
		size_t len = strcspn(at, ",+ ");
		bool cpu = len == 0;
		for (size_t i = 0; i < ARRAY_LEN(cpus); i++)
			cpu |= len == strlen(cpus[i]) && strncmp(at, cpus[i], len) == 0;
		if (!cpu)
			return true;
		at += len + (at[len] != '\0');
	}
	return false;
}

/* "pp512", "tg128 @ d4096", "pp512+tg128" */
static bool parse_test(struct record *r)
{
	const char *at = r->test;
	char *end;

	r->n_prompt = r->n_gen = 0;
	while (*at) {
		double *into = strncmp(at, "pp", 2) == 0 ? &r->n_prompt : strncmp(at, "tg", 2) == 0 ? &r->n_gen :
			strncmp(at, "@ d", 3) == 0 ? &r->n_depth : NULL;
		if (!into)
			return false;
		at += into == &r->n_depth ? 3 : 2;
		at += strspn(at, " "); /* "pp 512" before 2024 */
		*into = (double)strtoul(at, &end, 10);
		if (end == at || *into > MAX_COUNT)
			return false;
		at = end + strspn(end, " +");
	}
	return true;
}

/* "3.56 GiB", "6.74 B", "494.03 M" */
static double parse_amount(const char *text)
{
	static const struct {
		const char *unit;
		double times;
	} units[] = {{"MiB", GIB / 1024}, {"GiB", GIB}, {"TiB", GIB * 1024}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};
	size_t len = strcspn(text, " ");
	double value;

	if (!number_parse(text, len, &value))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(text + len + strspn(text + len, " "), units[i].unit) == 0)
			return value * units[i].times;
	return 0;
}

/* "2413.34 ± 8.31" */
static bool parse_rate(struct record *r)
{
	size_t len = strcspn(r->rate, " ");
	const char *sd = strstr(r->rate, "± ");

	if (!number_parse(r->rate, len, &r->avg_ts))
		return false;
	if (sd && !number_parse(sd + strlen("± "), strlen(sd + strlen("± ")), &r->stddev_ts))
		return false;
	return true;
}

/* "0.00": not split. */
static const char *split_or_none(const char *text)
{
	return text[strspn(text, "0./,")] == '\0' ? "" : text;
}

static const char *unless(const char *text, const char *def)
{
	return strcmp(text, def) == 0 ? "" : text;
}

static int add_record(struct bench_text *t, struct bench *out, struct record *r, int line, struct err *err)
{
	bool from_table = *r->rate;
	struct bench_llama *l = arena_new(t->a, struct bench_llama);

	if (from_table && !parse_rate(r))
		return fault(t, line, err, "t/s '%.60s' is not MEAN ± DEVIATION", r->rate);
	if (*r->test && (isnan(r->n_prompt) || isnan(r->n_gen)) && !parse_test(r))
		return fault(t, line, err, "the test '%.60s' is not of the form pp512, tg128, pp512+tg128 @ d4096", r->test);
	if (isnan(r->n_prompt) || isnan(r->n_gen) || isnan(r->avg_ts))
		return fault(t, line, err, "has no '%s'", isnan(r->avg_ts) ? "avg_ts" : isnan(r->n_gen) ? "n_gen" : "n_prompt");
	if (from_table) {
		r->model_size = parse_amount(r->size);
		r->model_n_params = parse_amount(r->params);
	}
	const char *kv = r->f16_kv > 0 ? "f16" : "f32";
	*l = (struct bench_llama){
		.ik = r->ik > 0,
		.model_filename = r->model_filename, .model_type = r->model_type, .model_size = r->model_size,
		.model_n_params = r->model_n_params, .rounded = from_table,
		.cpu_info = r->cpu_info, .gpu_info = r->gpu_info, .backends = r->backends, .gpu = is_gpu(r),
		.n_batch = (int64_t)r->n_batch, .n_ubatch = (int64_t)r->n_ubatch, .n_threads = (int64_t)r->n_threads,
		.type_k = *r->type_k ? r->type_k : kv, .type_v = *r->type_v ? r->type_v : kv,
		.n_gpu_layers = isnan(r->n_gpu_layers) ? -1 : (int64_t)r->n_gpu_layers,
		.n_cpu_moe = (int64_t)r->n_cpu_moe,
		.split_mode = unless(r->split_mode, "layer"), .tensor_split = split_or_none(r->tensor_split),
		.tensor_buft_overrides = unless(r->overrides, "none"),
		.no_kv_offload = r->no_kv_offload > 0, .no_op_offload = r->no_op_offload > 0,
		.no_mmap = r->use_mmap == 0 || strcmp(r->load_mode, "none") == 0 || strcmp(r->load_mode, "dio") == 0,
		.flash_attn = (int64_t)r->flash_attn,
		.n_prompt = (int64_t)r->n_prompt, .n_gen = (int64_t)r->n_gen, .n_depth = (int64_t)r->n_depth,
		.test_time = r->test_time,
	};
	if (l->n_prompt < 0 || l->n_gen < 0 || l->n_depth < 0 || l->n_prompt + l->n_gen == 0)
		return fault(t, line, err, "a test of %lld tokens read and %lld generated at depth %lld",
			(long long)l->n_prompt, (long long)l->n_gen, (long long)l->n_depth);

	const char *what = l->n_gen == 0 ? arena_printf(t->a, "pp%lld", (long long)l->n_prompt) :
		l->n_prompt == 0 ? arena_printf(t->a, "tg%lld", (long long)l->n_gen) :
		arena_printf(t->a, "pp%lld+tg%lld", (long long)l->n_prompt, (long long)l->n_gen);
	if (l->n_depth)
		what = arena_printf(t->a, "%s @ d%lld", what, (long long)l->n_depth);
	struct bench_row row = {.kind = BENCH_TOKENS, .line = line, .value = r->avg_ts, .dim = UNIT_TOKEN_RATE,
		.spread = r->stddev_ts > 0 && r->avg_ts > 0 ? r->stddev_ts / r->avg_ts : 0,
		.what = arena_printf(t->a, "%s, %s", what, *l->model_type ? l->model_type : "a model"), .llama = l};
	return bench_add(out, t, &row, err);
}

/* ---- JSON and JSON lines ---- */

static const char *json_text(const json_t *v, struct arena *a)
{
	if (json_is_string(v))
		return arena_strdup(a, json_string_value(v));
	if (json_is_integer(v))
		return arena_printf(a, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	if (json_is_real(v))
		return arena_printf(a, "%.17g", json_real_value(v));
	return json_is_true(v) ? "true" : json_is_false(v) ? "false" : NULL;
}

static int read_object(struct bench_text *t, struct bench *out, const json_t *object, int line, struct err *err)
{
	struct record r;
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return fault(t, line, err, "a test is no object { … }");
	record_init(&r);
	json_object_foreach((json_t *)object, key, value)
	{
		const char *text = json_text(value, t->a); /* NULL: null, or a list such as the samples */
		if (text && set_field(t, &r, line, key, text, err))
			return -1;
	}
	return add_record(t, out, &r, line, err);
}

static int read_array(struct bench_text *t, struct bench *out, struct err *err)
{
	json_t *root, *object;
	struct bench_cursor cursor = {0};
	size_t i;
	int rc = 0;

	if (json_read_any(t->s, t->len, t->file, &root, err))
		return -1;
	json_array_foreach(root, i, object)
	{
		if ((rc = read_object(t, out, object, bench_line_of(t, &cursor, "\"avg_ts\""), err)))
			break;
	}
	json_decref(root);
	return rc;
}

static int read_lines(struct bench_text *t, struct bench *out, struct err *err)
{
	char *at = t->s;
	const char *line;

	for (int n = 1; (line = bench_line(&at)); n++) {
		json_t *object;
		if (line[strspn(line, " \t")] == '\0')
			continue;
		if (json_read_any(line, strlen(line), t->file, &object, err)) {
			err->line = n;
			return -1;
		}
		int rc = read_object(t, out, object, n, err);
		json_decref(object);
		if (rc)
			return -1;
	}
	return 0;
}

/* ---- CSV ---- */

static int read_csv(struct bench_text *t, struct bench *out, struct err *err)
{
	const char *names[ARRAY_LEN(fields)];
	struct csv_field f[ARRAY_LEN(fields)];
	struct csv csv;
	int more;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		names[i] = fields[i].name;
	if (csv_begin(&csv, t->file, t->s, t->len, names, ARRAY_LEN(fields), 1, t->a, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0) {
		struct record r;
		record_init(&r);
		for (size_t i = 0; i < ARRAY_LEN(fields); i++)
			if (f[i].text && set_field(t, &r, csv.line, names[i], arena_strndup(t->a, f[i].text, f[i].len), err))
				return -1;
		if (add_record(t, out, &r, csv.line, err))
			return -1;
	}
	return more;
}

/* ---- SQL ---- */

struct sql {
	const struct bench_text *t;
	char *at;
	int line;
	const char *token; /* a word or number, the inside of a string, or one character of punctuation */
	bool quoted;
};

static void skip_blank(struct sql *q)
{
	for (;; q->at++) {
		if (q->at[0] == '-' && q->at[1] == '-')
			while (*q->at && *q->at != '\n')
				q->at++;
		if (!isspace((unsigned char)*q->at))
			return;
		q->line += *q->at == '\n';
	}
}

/* false at the end of the text. */
static bool next_token(struct sql *q)
{
	skip_blank(q);
	char *begin = q->at, quote = *begin;
	if (*begin == '\0')
		return false;
	q->quoted = quote == '\'' || quote == '"';
	if (q->quoted) {
		char *to = ++begin;
		/* A doubled quote stands for itself. */
		for (q->at = begin; *q->at && (*q->at != quote || q->at[1] == quote); q->at++) {
			q->line += *q->at == '\n';
			q->at += *q->at == quote;
			*to++ = *q->at;
		}
		q->token = arena_strndup(q->t->a, begin, (size_t)(to - begin));
		q->at += *q->at == quote;
		return true;
	}
	size_t len = strcspn(begin, " \t\r\n,();'\"");
	len = len ? len : 1;
	q->token = arena_strndup(q->t->a, begin, len);
	q->at = begin + len;
	return true;
}

static bool is_mark(const struct sql *q, const char *mark)
{
	return !q->quoted && strcasecmp(q->token, mark) == 0;
}

struct texts {
	VEC(const char *);
};

/* The list behind the token "(". */
static int read_list(struct sql *q, struct texts *list, struct err *err)
{
	int line = q->line;

	list->n = 0;
	while (next_token(q) && !is_mark(q, ")") && !is_mark(q, ";")) {
		if (is_mark(q, ","))
			continue;
		if (list->n == MAX_COLUMNS)
			return fault(q->t, line, err, "more than %d values", MAX_COLUMNS);
		VEC_PUSH(list, q->t->a, q->token);
	}
	return *q->at || is_mark(q, ")") ? 0 : fault(q->t, line, err, "a list in brackets does not end");
}

static int read_values(struct bench_text *t, struct bench *out, struct sql *q, const struct texts *names,
	struct texts *values, struct err *err)
{
	int line = q->line;
	struct record r;

	if (read_list(q, values, err))
		return -1;
	if (values->n != names->n)
		return fault(t, line, err, "%zu values for %zu columns", values->n, names->n);
	record_init(&r);
	for (size_t i = 0; i < names->n; i++)
		if (set_field(t, &r, line, names->at[i], values->at[i], err))
			return -1;
	return add_record(t, out, &r, line, err);
}

/* Behind INSERT: INTO name (names) VALUES (values), (values)… */
static int read_insert(struct bench_text *t, struct bench *out, struct sql *q, struct err *err)
{
	struct texts names = {0}, values = {0};
	int line = q->line;

	if (!next_token(q) || !is_mark(q, "INTO") || !next_token(q) || !next_token(q) || !is_mark(q, "("))
		return fault(t, line, err, "not INSERT INTO table (names) VALUES (values)");
	if (read_list(q, &names, err))
		return -1;
	if (!next_token(q) || !is_mark(q, "VALUES"))
		return fault(t, line, err, "not INSERT INTO table (names) VALUES (values)");
	while (next_token(q) && !is_mark(q, ";"))
		if (is_mark(q, "(") && read_values(t, out, q, &names, &values, err))
			return -1;
	return 0;
}

static int read_sql(struct bench_text *t, struct bench *out, struct err *err)
{
	struct sql q = {.t = t, .at = t->s, .line = 1};
	bool begins = true; /* a statement */

	while (next_token(&q)) {
		if (begins && is_mark(&q, "INSERT") && read_insert(t, out, &q, err))
			return -1;
		begins = is_mark(&q, ";");
	}
	return 0;
}

/* ---- the table ---- */

/* "| a | b |" into cells without blanks around them; 0 when it is no row of a table. */
static size_t split_cells(char *line, const char *cell[MAX_COLUMNS])
{
	size_t n = 0;

	line += strspn(line, " \t");
	if (*line != '|')
		return 0;
	for (char *at = line + 1, *bar; n < MAX_COLUMNS && (bar = strchr(at, '|')); at = bar + 1) {
		char *end = bar;
		at += strspn(at, " \t");
		while (end > at && strchr(" \t", end[-1]))
			end--;
		*end = '\0';
		cell[n++] = at;
	}
	return n;
}

static int read_table(struct bench_text *t, struct bench *out, struct err *err)
{
	const char *head[MAX_COLUMNS], *cell[MAX_COLUMNS];
	size_t n_head = 0, n;
	char *at = t->s, *line;

	for (int i = 1; (line = bench_line(&at)); i++) {
		n = split_cells(line, cell);
		if (n && strcmp(cell[0], "model") == 0) {
			memcpy(head, cell, n * sizeof(*cell));
			n_head = n;
		}
		if (!n || !n_head || strcmp(cell[0], "model") == 0 || strspn(cell[0], "-:") == strlen(cell[0]))
			continue;
		struct record r;
		if (n != n_head)
			return fault(t, i, err, "%zu cells where the table has %zu columns", n, n_head);
		record_init(&r);
		for (size_t c = 0; c < n; c++)
			if (set_field(t, &r, i, head[c], cell[c], err))
				return -1;
		if (add_record(t, out, &r, i, err))
			return -1;
	}
	return 0;
}

/* ---- which of them ---- */

static bool begins_with(const struct bench_text *t, const char *word)
{
	const char *at = t->s + strspn(t->s, " \t\r\n");

	return strncasecmp(at, word, strlen(word)) == 0;
}

static bool is_table(const struct bench_text *t)
{
	return bench_has(t, "| model ") && bench_has(t, " t/s |");
}

static bool is_sql(const struct bench_text *t)
{
	return begins_with(t, "create table") || begins_with(t, "insert into");
}

/* Another table may quote the name in its cells: in a CSV it must stand in the first line. */
static bool sniff(const struct bench_text *t)
{
	const char *name = memmem(t->s, t->len, "avg_ts", 6);

	if (!name)
		return is_table(t);
	return begins_with(t, "[") || begins_with(t, "{") || is_sql(t) || !memchr(t->s, '\n', (size_t)(name - t->s));
}

static int read_llama_bench(struct bench_text *t, struct bench *out, struct err *err)
{
	if (begins_with(t, "["))
		return read_array(t, out, err);
	if (begins_with(t, "{"))
		return read_lines(t, out, err);
	if (is_sql(t))
		return read_sql(t, out, err);
	return is_table(t) ? read_table(t, out, err) : read_csv(t, out, err);
}

const struct bench_format bench_llama_bench = {
	.name = "llama-bench",
	.help = "llama-bench, any -o: tokens a second of a model",
	.sniff = sniff,
	.read = read_llama_bench,
};
