#include "sim/trace/trace_import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/number.h"
#include "sim/trace/otr_code.h"
#include "sim/trace/trace_format.h"

#define HEAD_BYTES ((size_t)64 << 10)

/* ---- remarks and errors ---- */

void trace_import_remark(struct trace_import *im, const char *text, uint64_t n)
{
	for (size_t i = 0; i < im->remark.n; i++) {
		if (strcmp(im->remark.at[i].text, text) == 0) {
			im->remark.at[i].n += n;
			return;
		}
	}
	VEC_PUSH(&im->remark, im->arena, ((struct trace_remark){text, n}));
}

int trace_import_error(const struct trace_import *im, int col, struct err *err, const char *fmt, ...)
{
	struct err_pos pos = {im->path, im->lines.line, col};
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s", msg);
}

int trace_import_at_line(const struct trace_import *im, struct err *err)
{
	if (err)
		err->line = im->lines.line;
	return -1;
}

/* ---- fields ---- */

/* What a person should be told of a number that could not be taken. */
static int bad_number(const struct csv *csv, const struct csv_field *f, const char *what, enum number_fault fault,
	struct err *err)
{
	static const char *const wrong[] = {[NUMBER_NONE] = "is not a number", [NUMBER_NEGATIVE] = "is negative",
		[NUMBER_TOO_LARGE] = "is too large", [NUMBER_INEXACT] = "is not a whole number"};

	return csv_error(csv, f, err, "%s '%.*s' %s", what, (int)(f->len < 64 ? f->len : 64), f->text, wrong[fault]);
}

int trace_import_field(const struct csv *csv, const struct csv_field *f, const char *what, uint64_t max, uint64_t *out,
	struct err *err)
{
	enum number_fault fault = number_scaled(f->text, f->len, 0, out);

	if (fault == NUMBER_FINE && *out > max)
		fault = NUMBER_TOO_LARGE;
	return fault == NUMBER_FINE ? 0 : bad_number(csv, f, what, fault, err);
}

int trace_import_time(const struct csv *csv, const struct csv_field *f, const char *what, int digits, uint64_t *ns,
	struct err *err)
{
	enum number_fault fault = number_scaled(f->text, f->len, digits, ns);

	return fault == NUMBER_FINE || fault == NUMBER_INEXACT ? 0 : bad_number(csv, f, what, fault, err);
}

int trace_import_json(struct trace_import *im, json_t **object, struct err *err)
{
	char *text;
	size_t len;
	int more;

	do {
		if ((more = lines_next(&im->lines, &text, &len, err)) <= 0)
			return more;
	} while (len == strspn(text, " \t\r"));
	return json_read_text(text, len, im->path, object, err) ? trace_import_at_line(im, err) : 1;
}

int trace_import_blocks(struct trace_import *im, const json_t *object, const char *key, struct err *err)
{
	const json_t *list = json_object_get(object, key), *item;
	size_t i;

	im->block.n = 0;
	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list))
		return trace_import_error(im, 0, err, "'%s' must be an array", key);
	json_array_foreach(list, i, item) {
		if (!json_is_integer(item) || json_integer_value(item) < 0)
			return trace_import_error(im, 0, err, "'%s' must hold whole numbers, and number %zu is none", key, i + 1);
		VEC_PUSH(&im->block, im->arena, (uint64_t)json_integer_value(item));
	}
	return 0;
}

int trace_import_int(const struct trace_import *im, const char *line, const char **at, int64_t *out, struct err *err)
{
	const char *p = *at + strspn(*at, " \t"), *begin = p;
	bool negative = *p == '-';
	int64_t n = 0;

	for (p += negative; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
			return trace_import_error(im, (int)(begin - line) + 1, err, "a number is too large");
	if (p == begin + negative || !strchr(", \t", *p))
		return trace_import_error(im, (int)(begin - line) + 1, err, "'%.*s' is not a whole number",
			(int)strcspn(begin, ", \t"), begin);
	*out = negative ? -n : n;
	*at = p;
	return 0;
}

uint64_t trace_import_estimate(const char *utf8, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)utf8[i] & 0xc0) != 0x80;
	return (n + 3) / 4;
}

/* ---- records ---- */

/* A record came: says how far it is, and whether to go on. */
static int tick(struct trace_import *im, struct err *err)
{
	const struct trace_import_options *o = im->options;

	if (o->report && im->lines.n_bytes - im->reported_bytes > im->source_bytes / 100) {
		im->reported_bytes = im->lines.n_bytes;
		o->report(((im->sink ? 1 : 0) + (double)im->lines.n_bytes / (double)im->source_bytes) / 2);
	}
	return o->interrupted && *o->interrupted ? err_set(err, ERR_INTERRUPTED, "interrupted") : 0;
}

int trace_import_request(struct trace_import *im, const struct otr_request *r, struct err *err)
{
	struct trace_totals *t = &im->totals;
	struct otr_request out = *r;

	if (tick(im, err))
		return -1;
	/* An earlier first arrival is only possible if the file changed between the readings. */
	out.arrival_ns = r->arrival_ns > im->origin_ns ? r->arrival_ns - im->origin_ns : 0;
	if (t->n_records > 0 && r->arrival_ns < t->last_ns)
		trace_import_remark(im, "requests that come in the file after a later one, kept in its order", 1);
	if (r->input_tokens == 0)
		trace_import_remark(im, "requests with no prompt", 1);
	if (r->output_tokens == 0)
		trace_import_remark(im, "requests with no output", 1);
	if (t->n_records == 0 || r->arrival_ns < t->first_ns)
		t->first_ns = r->arrival_ns;
	if (r->arrival_ns > t->last_ns)
		t->last_ns = r->arrival_ns;
	t->input_tokens += r->input_tokens;
	t->output_tokens += r->output_tokens;
	t->n_records++;
	return im->sink ? im->sink->request(im->sink->ctx, &out, err) : 0;
}

/* Makes the layer known. */
static int check_layer(struct trace_import *im, uint64_t layer, struct err *err)
{
	uint32_t limit = im->options->n_layer ? im->options->n_layer : TRACE_MAX_LAYERS;

	if (layer >= limit)
		return trace_import_error(im, 0, err, "layer %" PRIu64 ": they go from 0 to %" PRIu32, layer, limit - 1);
	while (im->layer.n <= layer)
		VEC_PUSH(&im->layer, im->arena, ((struct trace_layer){0}));
	return 0;
}

int trace_import_layer(struct trace_import *im, uint64_t layer, const struct otr_layer *l, struct err *err)
{
	if (l->n_expert > TRACE_MAX_EXPERTS)
		return trace_import_error(im, 0, err, "%" PRIu32 " experts: more than %d", l->n_expert, TRACE_MAX_EXPERTS);
	if (check_layer(im, layer, err))
		return -1;
	im->layer.at[layer].declared = *l;
	return 0;
}

int trace_import_use(struct trace_import *im, uint64_t layer, uint64_t expert, uint64_t rows, struct err *err)
{
	uint32_t limit = im->options->n_expert ? im->options->n_expert : TRACE_MAX_EXPERTS;

	if (check_layer(im, layer, err))
		return -1;
	if (expert >= limit)
		return trace_import_error(im, 0, err, "expert %" PRIu64 ": they go from 0 to %" PRIu32, expert, limit - 1);
	struct trace_layer *l = &im->layer.at[layer];
	if (l->declared.n_expert && expert >= l->declared.n_expert)
		return trace_import_error(im, 0, err, "expert %" PRIu64 " of layer %" PRIu64 ", which has %" PRIu32, expert, layer,
			l->declared.n_expert);
	if (expert >= l->n_seen)
		l->n_seen = (uint32_t)expert + 1;
	if (im->use.n == OTR_ACCESS_MAX)
		return trace_import_error(im, 0, err, "a step that uses experts more than %d times", OTR_ACCESS_MAX);
	if (im->use.n == 0) {
		im->in_order = true;
		im->max_layer = 0;
	} else if ((int16_t)layer < im->use.at[im->use.n - 1].layer) {
		im->in_order = false;
	}
	if (layer > im->max_layer)
		im->max_layer = (uint32_t)layer;
	VEC_PUSH(&im->use, im->arena, ((struct trace_access){.layer = (int16_t)layer, .kind = TRACE_EXPERT,
		.group = MODEL_EXPERTS, .expert = (uint32_t)expert, .tokens = rows}));
	return 0;
}

/* Brings the uses of each layer together, in the order in which they came. */
static const struct trace_access *by_layer(struct trace_import *im)
{
	size_t first[TRACE_MAX_LAYERS + 1] = {0};

	if (im->in_order)
		return im->use.at;
	im->sorted.n = 0;
	VEC_RESERVE(&im->sorted, im->arena, im->use.n);
	for (size_t i = 0; i < im->use.n; i++)
		first[im->use.at[i].layer + 1]++;
	for (size_t l = 1; l <= im->max_layer; l++)
		first[l] += first[l - 1];
	for (size_t i = 0; i < im->use.n; i++)
		im->sorted.at[first[im->use.at[i].layer]++] = im->use.at[i];
	return im->sorted.at;
}

int trace_import_step(struct trace_import *im, enum trace_phase phase, uint64_t n_sequences, uint64_t n_tokens,
	struct err *err)
{
	struct trace_totals *t = &im->totals;
	struct trace_step step = {
		.phase = phase,
		.index = phase == TRACE_PREFILL ? t->n_prefill++ : t->n_decode++,
		.n_sequences = n_sequences,
		.n_tokens = n_tokens,
		.n_sampled = n_sequences,
		.context = im->format->one_sequence && n_sequences == 1 ? im->context : 0,
		.n_access = im->use.n,
	};

	if (tick(im, err))
		return -1;
	if (im->use.n)
		step.access = by_layer(im);
	im->many |= n_sequences != 1 || (phase == TRACE_PREFILL && t->n_decode > 0);
	if (phase == TRACE_PREFILL)
		im->prompt_tokens += n_tokens;
	im->context += n_tokens;
	t->n_records++;
	t->n_uses += im->use.n;
	im->use.n = 0;
	return im->sink ? im->sink->step(im->sink->ctx, &step, err) : 0;
}

uint64_t trace_import_decode_rows(const struct trace_import *im)
{
	return im->options->decode_rows ? im->options->decode_rows : 1;
}

void trace_import_discard(struct trace_import *im)
{
	im->use.n = 0;
}

void trace_import_new_sequence(struct trace_import *im)
{
	im->many |= im->totals.n_records > 0;
	im->context = 0;
}

/* ---- a file ---- */

static void make_layers(struct trace_import *im, struct otr_info *info, struct arena *a)
{
	const struct trace_import_options *o = im->options;
	uint32_t most = 0;
	bool assumed = false, bytes = false;

	info->n_layer = o->n_layer ? o->n_layer : (uint32_t)im->layer.n;
	info->layer = arena_array(a, struct otr_layer, info->n_layer);
	for (size_t i = 0; i < im->layer.n; i++)
		if (im->layer.at[i].n_seen > most)
			most = im->layer.at[i].n_seen;
	for (size_t i = 0; i < im->layer.n; i++) {
		struct otr_layer *l = &info->layer[i];
		*l = im->layer.at[i].declared;
		/* Layers alike, but for those that no expert was seen in: they are dense. */
		if (!l->n_expert && im->layer.at[i].n_seen) {
			l->n_expert = o->n_expert ? o->n_expert : most;
			assumed |= !o->n_expert;
		}
		if (!l->n_expert)
			continue;
		if (!l->n_expert_used)
			l->n_expert_used = im->n_expert_used;
		if (!l->expert_bytes)
			l->expert_bytes = o->expert_bytes;
		bytes |= l->expert_bytes > 0;
	}
	if (assumed)
		trace_import_remark(im, "experts of a layer, taken from the highest number seen (--experts)", most);
	if (!bytes)
		trace_import_remark(im, "the bytes of an expert are not known (--expert-bytes)", 0);
}

static void make_workload(const struct trace_import *im, struct otr_info *info)
{
	if (!im->format->one_sequence || im->many)
		return;
	info->workload.batch = 1;
	info->workload.prompt = im->prompt_tokens;
	/* The prompt gives the first token. */
	info->workload.generate = im->totals.n_decode + (im->prompt_tokens > 0);
}

static void make_info(struct trace_import *im, struct otr_info *info, struct arena *a)
{
	*info = (struct otr_info){
		.kind = im->format->kind,
		.model = arena_strdup(a, im->model),
		.source = im->options->source ? im->options->source : im->path,
		.licence = im->options->licence ? im->options->licence : "",
		.block_tokens = im->block_tokens,
		.experts_only = im->format->kind == OTR_STEPS,
	};
	if (im->format->kind == OTR_STEPS) {
		make_layers(im, info, a);
		make_workload(im, info);
	}
	if (im->lines.unended)
		trace_import_remark(im, "the last line does not end in a line break, as where a file was cut", 0);
	char *note = arena_printf(a, "imported from the format '%s'", im->format->name);
	for (size_t i = 0; i < im->remark.n; i++) {
		const struct trace_remark *r = &im->remark.at[i];
		note = r->n ? arena_printf(a, "%s; %s: %" PRIu64, note, r->text, r->n) : arena_printf(a, "%s; %s", note, r->text);
	}
	info->note = note;
}

/* What readers keep is forgotten from one reading to the next. */
static void begin_reading(struct trace_import *im)
{
	struct arena *a = im->arena;

	arena_reset(a);
	*im = (struct trace_import){.options = im->options, .format = im->format, .path = im->path, .lines = im->lines,
		.arena = a, .sink = im->sink, .origin_ns = im->origin_ns, .source_bytes = im->source_bytes, .model = ""};
}

/* An option that would do nothing was not meant so. */
static int check_options(const struct trace_import_options *o, const struct trace_format *f, struct err *err)
{
	const char *what = NULL;

	if ((o->n_layer || o->n_expert || o->expert_bytes) && f->kind != OTR_STEPS)
		what = "hold requests, and no layers or experts";
	else if (o->decode_rows && !f->guesses_phases)
		what = f->kind == OTR_STEPS ? "say themselves what a decode step is" : "hold requests, and no decode steps";
	else if (o->drop_warmup && !f->has_warmup)
		what = "have no warm-up that could be left out";
	return what ? err_set(err, ERR_USAGE, "files of the format '%s' %s", f->name, what) : 0;
}

/* Nor one that the file decides itself. */
static int check_declared(const struct trace_import *im, struct err *err)
{
	const struct trace_import_options *o = im->options;

	for (size_t i = 0; i < im->layer.n; i++) {
		const struct otr_layer *l = &im->layer.at[i].declared;
		if ((o->n_expert && l->n_expert) || (o->expert_bytes && l->expert_bytes) ||
			(o->n_layer && (l->n_expert || l->expert_bytes)))
			return err_set(err, ERR_USAGE, "'%s' says its layers and experts itself", im->path);
	}
	return 0;
}

static int choose_format(struct trace_import *im, struct trace_import_result *out, struct err *err)
{
	struct trace_head head;

	if (lines_head(&im->lines, HEAD_BYTES, &head.text, &head.len, err))
		return -1;
	const char *end = head.len ? memchr(head.text, '\n', head.len) : NULL;
	head.first_len = end ? (size_t)(end - head.text) : head.len;
	out->guessed = !im->options->format;
	im->format = out->guessed ? trace_format_guess(im->path, &head, err) : im->options->format;
	out->format = im->format;
	return im->format ? check_options(im->options, im->format, err) : -1;
}

/* Checks and measures; what the head says goes to out. */
static int first_reading(struct trace_import *im, struct arena *a, struct trace_import_result *out, struct err *err)
{
	if (choose_format(im, out, err))
		return -1;
	begin_reading(im);
	if (im->format->read(im, err) || check_declared(im, err))
		return -1;
	if (im->totals.n_records == 0) {
		struct err_pos pos = {im->path, 0, 0};
		return err_at(err, ERR_INPUT, &pos, "holds no %s", im->format->kind == OTR_STEPS ? "step" : "request");
	}
	if (im->wall_clock) {
		im->origin_ns = im->totals.first_ns;
		trace_import_remark(im,
			arena_printf(a, "arrivals count from %" PRIu64 ".%09" PRIu64 " s of the epoch",
				im->origin_ns / 1000000000, im->origin_ns % 1000000000), 0);
	}
	make_info(im, &out->info, a);
	out->totals = im->totals;
	return 0;
}

static int second_reading(struct trace_import *im, const struct trace_sink *sink, const struct trace_import_result *out,
	struct err *err)
{
	im->sink = sink;
	if (lines_rewind(&im->lines, err) || sink->begin(sink->ctx, &out->info, err))
		return -1;
	begin_reading(im);
	if (im->format->read(im, err))
		return -1;
	if (memcmp(&im->totals, &out->totals, sizeof(out->totals)) != 0)
		return err_set(err, ERR_IO, "'%s' changed while it was read", im->path);
	return 0;
}

int trace_import(const char *path, const struct trace_import_options *o, const struct trace_sink *sink, struct arena *a,
	struct trace_import_result *out, struct err *err)
{
	struct arena reading;
	struct trace_import im = {.options = o, .path = path, .arena = &reading};
	struct stat st;

	*out = (struct trace_import_result){0};
	if (lines_open(&im.lines, path, TRACE_MAX_LINE, err))
		return -1;
	if (fstat(im.lines.fd, &st) == 0)
		out->source_bytes = im.source_bytes = (uint64_t)st.st_size;
	arena_init(&reading, a->nomem, a->nomem_ctx);
	int rc = lines_rewind(&im.lines, err) || first_reading(&im, a, out, err) || second_reading(&im, sink, out, err) ? -1 : 0;
	arena_release(&reading);
	lines_close(&im.lines);
	return rc;
}
