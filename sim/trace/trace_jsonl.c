#include "sim/trace/trace_jsonl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#include "base/json.h"
#include "base/suggest.h"

#define MAX_LINE (256 << 20) /* bytes */

static const char *const kind_names[] = {
	[TRACE_WEIGHTS] = "weights", [TRACE_EXPERT] = "expert", [TRACE_KV_WRITE] = "kv_write", [TRACE_KV_READ] = "kv_read"};
static const char *const phase_names[] = {[TRACE_PREFILL] = "prefill", [TRACE_DECODE] = "decode"};
static const char *const file_kinds[] = {[OTR_STEPS] = "steps", [OTR_REQUESTS] = "requests"};

/* ---- writing ---- */

static void put_text(FILE *to, const char *key, const char *text)
{
	json_t *value = json_string(text);

	fprintf(to, "\"%s\":", key);
	json_dumpf(value, to, JSON_ENCODE_ANY);
	putc(',', to);
	json_decref(value);
}

/* A whole number; beyond what readers take for one, a text. */
static void put_whole(FILE *to, uint64_t v)
{
	fprintf(to, v > INT64_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, v);
}

static void put_number(FILE *to, const char *key, uint64_t v)
{
	fprintf(to, "\"%s\":", key);
	put_whole(to, v);
}

static void put_real(FILE *to, const char *key, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	if (isfinite(v) && (v != 0 || bits == 0))
		fprintf(to, "\"%s\":%.17g", key, v);
	else
		fprintf(to, "\"%s\":\"0x%016" PRIx64 "\"", key, bits);
}

void trace_jsonl_put_head(FILE *to, const struct otr_info *info)
{
	fprintf(to, "{\"otr\":1,\"kind\":\"%s\",", file_kinds[info->kind]);
	put_text(to, "model", info->model);
	put_text(to, "source", info->source);
	put_text(to, "licence", info->licence);
	put_text(to, "note", info->note);
	fprintf(to, "\"experts_only\":%s,\"block_tokens\":%" PRIu32 ",", info->experts_only ? "true" : "false",
		info->block_tokens);
	put_number(to, "batch", info->workload.batch);
	putc(',', to);
	put_number(to, "prompt", info->workload.prompt);
	putc(',', to);
	put_number(to, "generate", info->workload.generate);
	putc(',', to);
	put_number(to, "depth", info->workload.depth);
	fputs(",\"layers\":[", to);
	for (uint32_t i = 0; i < info->n_layer; i++) {
		const struct otr_layer *l = &info->layer[i];
		fprintf(to, "%s{\"n_expert\":%" PRIu32 ",\"n_expert_used\":%" PRIu32 ",", i ? "," : "", l->n_expert,
			l->n_expert_used);
		put_number(to, "expert_bytes", l->expert_bytes);
		putc(',', to);
		put_number(to, "dense_bytes", l->dense_bytes);
		putc('}', to);
	}
	fputs("]}\n", to);
}

static bool has_kv(const struct trace_access *a)
{
	static const double zero = 0;

	return a->kv_tokens || memcmp(&a->kv_pairs, &zero, sizeof(zero));
}

static void put_access(FILE *to, const struct trace_access *a)
{
	fprintf(to, "{\"%s\":", kind_names[a->kind]);
	if (a->kind == TRACE_EXPERT)
		fprintf(to, "%" PRIu32 ",\"group\":", a->expert);
	fprintf(to, "\"%s\",", model_group_name(a->group));
	put_number(to, "tokens", a->tokens);
	if (a->kind != TRACE_EXPERT && a->expert)
		fprintf(to, ",\"expert\":%" PRIu32, a->expert);
	if (has_kv(a)) {
		putc(',', to);
		put_number(to, "kv_tokens", a->kv_tokens);
		putc(',', to);
		put_real(to, "kv_pairs", a->kv_pairs);
	}
	putc('}', to);
}

/* Uses of experts that one list can hold: how many from a on. */
static size_t run_length(const struct trace_access *a, const struct trace_access *end)
{
	const struct trace_access *p = a;

	while (p < end && p->kind == TRACE_EXPERT && p->layer == a->layer && p->group == a->group && !has_kv(p))
		p++;
	return (size_t)(p - a);
}

static void put_run(FILE *to, const struct trace_access *a, size_t n)
{
	bool varied = false;

	fputs("{\"experts\":[", to);
	for (size_t i = 0; i < n; i++) {
		fprintf(to, "%s%" PRIu32, i ? "," : "", a[i].expert);
		varied |= a[i].tokens != a[0].tokens;
	}
	fputs("],", to);
	if (a->group != MODEL_EXPERTS)
		fprintf(to, "\"group\":\"%s\",", model_group_name(a->group));
	if (varied) {
		fputs("\"tokens\":[", to);
		for (size_t i = 0; i < n; i++) {
			fputs(i ? "," : "", to);
			put_whole(to, a[i].tokens);
		}
		fputs("]}", to);
	} else {
		put_number(to, "tokens", a->tokens);
		putc('}', to);
	}
}

static const struct trace_access *put_layer(FILE *to, const struct trace_access *a, const struct trace_access *end)
{
	int layer = a->layer;

	if (layer == MODEL_NO_LAYER)
		fputs("{\"layer\":null,\"uses\":[", to);
	else
		fprintf(to, "{\"layer\":%d,\"uses\":[", layer);
	for (const char *comma = ""; a < end && a->layer == layer; comma = ",") {
		size_t n = run_length(a, end);
		fputs(comma, to);
		if (n)
			put_run(to, a, n);
		else
			put_access(to, a);
		a += n ? n : 1;
	}
	fputs("]}", to);
	return a;
}

void trace_jsonl_put_step(FILE *to, const struct trace_step *s)
{
	const struct trace_access *a = s->access, *end = a + s->n_access;

	fprintf(to, "{\"phase\":\"%s\",", phase_names[s->phase]);
	put_number(to, "index", s->index);
	putc(',', to);
	put_number(to, "n_sequences", s->n_sequences);
	putc(',', to);
	put_number(to, "n_tokens", s->n_tokens);
	putc(',', to);
	put_number(to, "n_sampled", s->n_sampled);
	putc(',', to);
	put_number(to, "context", s->context);
	fputs(",\"layers\":[", to);
	for (const char *comma = ""; a < end; comma = ",") {
		fputs(comma, to);
		a = put_layer(to, a, end);
	}
	fputs("]}\n", to);
}

void trace_jsonl_put_request(FILE *to, const struct otr_request *r)
{
	putc('{', to);
	put_number(to, "arrival_ns", r->arrival_ns);
	putc(',', to);
	put_number(to, "input_tokens", r->input_tokens);
	putc(',', to);
	put_number(to, "output_tokens", r->output_tokens);
	putc(',', to);
	put_number(to, "session", r->session);
	fputs(",\"blocks\":[", to);
	for (size_t i = 0; i < r->n_blocks; i++) {
		fputs(i ? "," : "", to);
		put_whole(to, r->block[i]);
	}
	fputs("]}\n", to);
}

/* ---- reading ---- */

struct trace_jsonl {
	const char *path;
	struct arena *arena;
	FILE *from;
	int line;
	struct otr_info info;
	struct {
		VEC(char);
	} text; /* the line */
	struct {
		VEC(struct trace_access);
	} access;
	struct {
		VEC(uint64_t);
	} block;
};

static int wrong(const struct trace_jsonl *t, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int wrong(const struct trace_jsonl *t, struct err *err, const char *fmt, ...)
{
	const struct err_pos pos = {t->path, t->line, 0};
	char msg[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s", msg);
}

/* Reads a line into text: 1, 0 at the end, -1. */
static int next_line(struct trace_jsonl *t, struct err *err)
{
	char piece[4096];

	t->text.n = 0;
	t->line++;
	while (fgets(piece, sizeof(piece), t->from)) {
		/* A NUL byte would look like the end of the piece: json.h refuses it, if it gets to see it. */
		size_t n = strlen(piece);
		if (n == 0)
			return wrong(t, err, "control character U+0000");
		if (t->text.n + n > MAX_LINE)
			return wrong(t, err, "a line of more than %d MiB", MAX_LINE >> 20);
		VEC_RESERVE(&t->text, t->arena, t->text.n + n);
		memcpy(t->text.at + t->text.n, piece, n);
		t->text.n += n;
		if (piece[n - 1] == '\n')
			return 1;
		if (n < sizeof(piece) - 1 && !feof(t->from))
			return wrong(t, err, "control character U+0000");
	}
	if (ferror(t->from)) {
		const struct err_pos pos = {t->path, 0, 0};
		return err_at(err, ERR_IO, &pos, "cannot be read: %s", strerror(errno));
	}
	return t->text.n > 0;
}

static int next_object(struct trace_jsonl *t, json_t **out, struct err *err)
{
	int more = next_line(t, err);

	if (more <= 0)
		return more;
	if (json_read_text(t->text.at, t->text.n, t->path, out, err)) {
		err->line = t->line;
		return -1;
	}
	return 1;
}

/* Every key of object must be one of these. */
static int check_keys(const struct trace_jsonl *t, json_t *object, const char *what, const char *const *keys, size_t n,
	struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		struct suggest s;
		char near[128];
		bool known = false;
		suggest_init(&s, key);
		for (size_t i = 0; i < n; i++) {
			known |= strcmp(keys[i], key) == 0;
			suggest_offer(&s, keys[i]);
		}
		if (!known)
			return wrong(t, err, "unknown key '%.100s' in %s%s", key, what, suggest_text(&s, near, sizeof(near)));
	}
	return 0;
}

#define CHECK_KEYS(t, object, what, err, ...)                                                      \
	check_keys(t, object, what, (const char *const[]){__VA_ARGS__},                            \
		ARRAY_LEN(((const char *const[]){__VA_ARGS__})), err)

static int to_whole(const struct trace_jsonl *t, const json_t *v, const char *key, uint64_t max, uint64_t *out, struct err *err)
{
	const char *text = json_string_value(v);
	char *end = NULL;

	errno = 0;
	if (json_is_integer(v) && json_integer_value(v) >= 0)
		*out = (uint64_t)json_integer_value(v);
	else if (text && *text >= '0' && *text <= '9')
		*out = strtoull(text, &end, 10);
	else
		return wrong(t, err, "'%s' is not there, or no whole number", key);
	if ((end && *end) || errno || *out > max)
		return wrong(t, err, "'%s' must be a whole number up to %" PRIu64, key, max);
	return 0;
}

static int get_whole(const struct trace_jsonl *t, const json_t *object, const char *key, uint64_t *out, struct err *err)
{
	return to_whole(t, json_object_get(object, key), key, UINT64_MAX, out, err);
}

static int get_u32(const struct trace_jsonl *t, const json_t *object, const char *key, uint32_t *out, struct err *err)
{
	uint64_t v = 0;
	int rc = to_whole(t, json_object_get(object, key), key, UINT32_MAX, &v, err);

	*out = (uint32_t)v;
	return rc;
}

static int get_text(const struct trace_jsonl *t, const json_t *object, const char *key, const char **out, struct err *err)
{
	const json_t *v = json_object_get(object, key);

	if (!json_is_string(v))
		return wrong(t, err, "'%s' is not there, or no text", key);
	*out = arena_strdup(t->arena, json_string_value(v));
	return 0;
}

/* One of names, by its index. */
static int get_name(const struct trace_jsonl *t, const json_t *object, const char *key, const char *const *names, size_t n,
	size_t *out, struct err *err)
{
	const char *text = json_string_value(json_object_get(object, key));
	struct suggest s;
	char near[128];

	if (!text)
		return wrong(t, err, "'%s' is not there, or no text", key);
	suggest_init(&s, text);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i], text) == 0) {
			*out = i;
			return 0;
		}
		suggest_offer(&s, names[i]);
	}
	return wrong(t, err, "'%s' is '%.100s'%s", key, text, suggest_text(&s, near, sizeof(near)));
}

static int get_group(const struct trace_jsonl *t, const json_t *object, const char *key, uint8_t *out, struct err *err)
{
	const char *names[MODEL_GROUP_N];
	size_t group = 0;

	for (size_t i = 0; i < MODEL_GROUP_N; i++)
		names[i] = model_group_name((enum model_group)i);
	int rc = get_name(t, object, key, names, MODEL_GROUP_N, &group, err);
	*out = (uint8_t)group;
	return rc;
}

static int get_real(const struct trace_jsonl *t, const json_t *object, const char *key, double *out, struct err *err)
{
	const json_t *v = json_object_get(object, key);
	const char *text = json_string_value(v);
	char *end = NULL;

	if (json_is_number(v)) {
		*out = json_number_value(v);
		return 0;
	}
	uint64_t bits = text && strncmp(text, "0x", 2) == 0 ? strtoull(text, &end, 16) : 0;
	if (!end || *end || end == text + 2)
		return wrong(t, err, "'%s' is not there, or no number", key);
	memcpy(out, &bits, sizeof(bits));
	return 0;
}

static int read_layers(struct trace_jsonl *t, const json_t *list, struct err *err)
{
	if (!json_is_array(list) || json_array_size(list) > INT16_MAX)
		return wrong(t, err, "'layers' is not there, or no list of at most %d", INT16_MAX);
	t->info.n_layer = (uint32_t)json_array_size(list);
	t->info.layer = arena_array(t->arena, struct otr_layer, t->info.n_layer);
	for (uint32_t i = 0; i < t->info.n_layer; i++) {
		json_t *o = json_array_get(list, i);
		struct otr_layer *l = &t->info.layer[i];
		if (CHECK_KEYS(t, o, "a layer", err, "n_expert", "n_expert_used", "expert_bytes", "dense_bytes") ||
			get_u32(t, o, "n_expert", &l->n_expert, err) ||
			get_u32(t, o, "n_expert_used", &l->n_expert_used, err) ||
			get_whole(t, o, "expert_bytes", &l->expert_bytes, err) ||
			get_whole(t, o, "dense_bytes", &l->dense_bytes, err))
			return -1;
	}
	return 0;
}

static int read_head(struct trace_jsonl *t, json_t *o, struct err *err)
{
	struct otr_info *info = &t->info;
	uint64_t version;
	size_t kind = 0;

	if (to_whole(t, json_object_get(o, "otr"), "otr", 1, &version, err) ||
		CHECK_KEYS(t, o, "the head", err, "otr", "kind", "model", "source", "licence", "note", "experts_only",
			"block_tokens", "batch", "prompt", "generate", "depth", "layers") ||
		get_name(t, o, "kind", file_kinds, ARRAY_LEN(file_kinds), &kind, err) ||
		get_text(t, o, "model", &info->model, err) || get_text(t, o, "source", &info->source, err) ||
		get_text(t, o, "licence", &info->licence, err) || get_text(t, o, "note", &info->note, err) ||
		get_u32(t, o, "block_tokens", &info->block_tokens, err) ||
		get_whole(t, o, "batch", &info->workload.batch, err) ||
		get_whole(t, o, "prompt", &info->workload.prompt, err) ||
		get_whole(t, o, "generate", &info->workload.generate, err) ||
		get_whole(t, o, "depth", &info->workload.depth, err))
		return -1;
	info->kind = (enum otr_kind)kind;
	if (!json_is_boolean(json_object_get(o, "experts_only")))
		return wrong(t, err, "'experts_only' is not there, or neither true nor false");
	info->experts_only = json_is_true(json_object_get(o, "experts_only"));
	return read_layers(t, json_object_get(o, "layers"), err);
}

int trace_jsonl_open(const char *path, struct arena *a, struct trace_jsonl **out, struct err *err)
{
	struct trace_jsonl *t = arena_new(a, struct trace_jsonl);
	json_t *head = NULL;

	*t = (struct trace_jsonl){.path = arena_strdup(a, path), .arena = a, .from = fopen(path, "r")};
	if (!t->from) {
		const struct err_pos pos = {t->path, 0, 0};
		return err_at(err, ERR_INPUT, &pos, "cannot be opened: %s", strerror(errno));
	}
	int more = next_object(t, &head, err);
	if (more == 0)
		wrong(t, err, "an empty file");
	int rc = more == 1 ? read_head(t, head, err) : -1;
	json_decref(head);
	if (rc) {
		trace_jsonl_close(t);
		return -1;
	}
	*out = t;
	return 0;
}

void trace_jsonl_close(struct trace_jsonl *t)
{
	if (t && t->from)
		fclose(t->from);
	if (t)
		t->from = NULL;
}

const struct otr_info *trace_jsonl_info(const struct trace_jsonl *t)
{
	return &t->info;
}

static int read_run(struct trace_jsonl *t, const json_t *o, struct trace_access a, struct err *err)
{
	const json_t *list = json_object_get(o, "experts"), *tokens = json_object_get(o, "tokens");
	size_t n = json_array_size(list);

	a.kind = TRACE_EXPERT;
	a.group = MODEL_EXPERTS;
	if (n == 0)
		return wrong(t, err, "'experts' is no list of numbers, or empty");
	if (json_is_array(tokens) && json_array_size(tokens) != n)
		return wrong(t, err, "'tokens' is a list of %zu, but 'experts' of %zu", json_array_size(tokens), n);
	if (json_object_get(o, "group") && get_group(t, o, "group", &a.group, err))
		return -1;
	for (size_t i = 0; i < n; i++) {
		uint64_t expert = 0;
		const json_t *of = json_is_array(tokens) ? json_array_get(tokens, i) : tokens;
		if (to_whole(t, json_array_get(list, i), "experts", UINT32_MAX, &expert, err) ||
			to_whole(t, of, "tokens", UINT64_MAX, &a.tokens, err))
			return -1;
		a.expert = (uint32_t)expert;
		VEC_PUSH(&t->access, t->arena, a);
	}
	return 0;
}

static int read_use(struct trace_jsonl *t, json_t *o, struct trace_access a, struct err *err)
{
	if (CHECK_KEYS(t, o, "a use", err, "weights", "kv_write", "kv_read", "expert", "experts", "group", "tokens", "kv_tokens",
		    "kv_pairs"))
		return -1;
	if (json_object_get(o, "experts"))
		return read_run(t, o, a, err);

	size_t kind = TRACE_WEIGHTS;
	while (kind < ARRAY_LEN(kind_names) && (kind == TRACE_EXPERT || !json_object_get(o, kind_names[kind])))
		kind++;
	if (kind == ARRAY_LEN(kind_names))
		kind = TRACE_EXPERT;
	a.kind = (uint8_t)kind;
	if (get_group(t, o, kind == TRACE_EXPERT ? "group" : kind_names[kind], &a.group, err) ||
		get_whole(t, o, "tokens", &a.tokens, err) ||
		((kind == TRACE_EXPERT || json_object_get(o, "expert")) && get_u32(t, o, "expert", &a.expert, err)) ||
		(json_object_get(o, "kv_tokens") && get_whole(t, o, "kv_tokens", &a.kv_tokens, err)) ||
		(json_object_get(o, "kv_pairs") && get_real(t, o, "kv_pairs", &a.kv_pairs, err)))
		return -1;
	VEC_PUSH(&t->access, t->arena, a);
	return 0;
}

static int read_uses(struct trace_jsonl *t, json_t *o, struct err *err)
{
	const json_t *layer = json_object_get(o, "layer"), *uses = json_object_get(o, "uses");
	struct trace_access a = {.layer = MODEL_NO_LAYER};
	uint64_t number = 0;

	if (CHECK_KEYS(t, o, "a layer", err, "layer", "uses"))
		return -1;
	if (!json_is_array(uses))
		return wrong(t, err, "'uses' is not there, or no list");
	if (!json_is_null(layer)) {
		if (to_whole(t, layer, "layer", INT16_MAX, &number, err))
			return -1;
		a.layer = (int16_t)number;
	}
	for (size_t i = 0; i < json_array_size(uses); i++)
		if (read_use(t, json_array_get(uses, i), a, err))
			return -1;
	return 0;
}

static int read_step(struct trace_jsonl *t, json_t *o, struct trace_step *s, struct err *err)
{
	const json_t *layers = json_object_get(o, "layers");
	size_t phase = 0;

	*s = (struct trace_step){0};
	if (CHECK_KEYS(t, o, "a step", err, "phase", "index", "n_sequences", "n_tokens", "n_sampled", "context", "layers") ||
		get_name(t, o, "phase", phase_names, ARRAY_LEN(phase_names), &phase, err) ||
		get_whole(t, o, "index", &s->index, err) || get_whole(t, o, "n_sequences", &s->n_sequences, err) ||
		get_whole(t, o, "n_tokens", &s->n_tokens, err) || get_whole(t, o, "n_sampled", &s->n_sampled, err) ||
		get_whole(t, o, "context", &s->context, err))
		return -1;
	if (!json_is_array(layers))
		return wrong(t, err, "'layers' is not there, or no list");
	s->phase = (enum trace_phase)phase;
	t->access.n = 0;
	for (size_t i = 0; i < json_array_size(layers); i++)
		if (read_uses(t, json_array_get(layers, i), err))
			return -1;
	s->access = t->access.at;
	s->n_access = t->access.n;
	return 0;
}

static int read_request(struct trace_jsonl *t, json_t *o, struct otr_request *r, struct err *err)
{
	const json_t *blocks = json_object_get(o, "blocks");

	*r = (struct otr_request){0};
	if (CHECK_KEYS(t, o, "a request", err, "arrival_ns", "input_tokens", "output_tokens", "session", "blocks") ||
		get_whole(t, o, "arrival_ns", &r->arrival_ns, err) ||
		get_whole(t, o, "input_tokens", &r->input_tokens, err) ||
		get_whole(t, o, "output_tokens", &r->output_tokens, err) || get_whole(t, o, "session", &r->session, err))
		return -1;
	if (!json_is_array(blocks))
		return wrong(t, err, "'blocks' is not there, or no list");
	r->n_blocks = json_array_size(blocks);
	VEC_RESERVE(&t->block, t->arena, r->n_blocks);
	for (size_t i = 0; i < r->n_blocks; i++)
		if (to_whole(t, json_array_get(blocks, i), "blocks", UINT64_MAX, &t->block.at[i], err))
			return -1;
	r->block = t->block.at;
	return 0;
}

int trace_jsonl_next_step(struct trace_jsonl *t, struct trace_step *step, struct err *err)
{
	json_t *o;
	int more = next_object(t, &o, err);

	if (more <= 0)
		return more;
	int rc = read_step(t, o, step, err);
	json_decref(o);
	return rc ? -1 : 1;
}

int trace_jsonl_next_request(struct trace_jsonl *t, struct otr_request *request, struct err *err)
{
	json_t *o;
	int more = next_object(t, &o, err);

	if (more <= 0)
		return more;
	int rc = read_request(t, o, request, err);
	json_decref(o);
	return rc ? -1 : 1;
}
