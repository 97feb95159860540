#include "sim/trace/otr_code.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/hash.h"
#include "base/utf8.h"

#define MAX_VARINT 10 /* bytes */

enum { STEP_DECODE = 1, STEP_INDEX = 2, STEP_SEQUENCES = 4, STEP_TOKENS = 8, STEP_SAMPLED = 16, STEP_CONTEXT = 32, STEP_ITEMS = 64 };
enum {
	ITEM_LAYER = 1,
	ITEM_WHAT = 2,
	ITEM_SHAPE = 4,
	ITEM_NUMBER = 8,
	ITEM_TOKENS = 16,
	ITEM_KV_TOKENS = 32,
	ITEM_KV_WHOLE = 64,
	ITEM_KV_DOUBLE = 128,
};

static int fault(char *text, const char *fmt, ...) PRINTF_LIKE(2, 3);

static int fault(char *text, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(((struct otr_coder *)0)->fault), fmt, ap);
	va_end(ap);
	return -1;
}

/* ---- numbers ---- */

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)-(difference >> 63);
}

static uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ (uint64_t)-(v & 1);
}

static void put_varint(struct otr_bytes *to, struct arena *a, uint64_t v)
{
	VEC_RESERVE(to, a, to->n + MAX_VARINT);
	while (v >= 0x80) {
		to->at[to->n++] = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	to->at[to->n++] = (unsigned char)v;
}

static void put_difference(struct otr_bytes *to, struct arena *a, uint64_t value, uint64_t guess)
{
	put_varint(to, a, zigzag(value - guess));
}

static void put_byte(struct otr_bytes *to, struct arena *a, unsigned v)
{
	VEC_PUSH(to, a, (unsigned char)v);
}

static void put_bytes(struct otr_bytes *to, struct arena *a, const void *from, size_t n)
{
	VEC_RESERVE(to, a, to->n + n);
	if (n)
		memcpy(to->at + to->n, from, n);
	to->n += n;
}

/* Little-endian whatever the machine. */
static void put_fixed(struct otr_bytes *to, struct arena *a, uint64_t v, int n)
{
	VEC_RESERVE(to, a, to->n + 8);
	for (int i = 0; i < n; i++)
		to->at[to->n++] = (unsigned char)(v >> 8 * i);
}

void otr_put_u32(struct otr_bytes *to, struct arena *a, uint32_t v)
{
	put_fixed(to, a, v, 4);
}

void otr_put_u64(struct otr_bytes *to, struct arena *a, uint64_t v)
{
	put_fixed(to, a, v, 8);
}

static uint64_t get_varint(struct otr_input *in)
{
	uint64_t v = 0;

	for (int shift = 0; in->at < in->end && shift < 7 * MAX_VARINT; shift += 7) {
		unsigned char byte = *in->at++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	in->bad = true;
	return 0;
}

static uint64_t get_difference(struct otr_input *in, uint64_t guess)
{
	return guess + unzigzag(get_varint(in));
}

static uint64_t get_fixed(struct otr_input *in, int n)
{
	uint64_t v = 0;

	if (in->end - in->at < n) {
		in->bad = true;
		return 0;
	}
	for (int i = 0; i < n; i++)
		v |= (uint64_t)*in->at++ << 8 * i;
	return v;
}

static unsigned get_byte(struct otr_input *in)
{
	return (unsigned)get_fixed(in, 1);
}

uint32_t otr_get_u32(struct otr_input *from)
{
	return (uint32_t)get_fixed(from, 4);
}

uint64_t otr_get_u64(struct otr_input *from)
{
	return get_fixed(from, 8);
}

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* A whole number that a double holds exactly, and no negative zero. */
static bool is_whole(double v, uint64_t *whole)
{
	if (!(v > -0x1p53 && v < 0x1p53))
		return false;
	int64_t i = (int64_t)v;
	*whole = (uint64_t)i;
	return bits_of((double)i) == bits_of(v);
}

/* ---- guesses ---- */

#define KV_KEPT 4

/* The steps, and the last KV reads that were not as guessed: what they held a step ago, and now. */
struct guesses {
	const struct trace_step *was, *is;
	struct {
		uint64_t was_tokens, is_tokens;
		double was_pairs, is_pairs;
	} kv[KV_KEPT];
	uint32_t n_kv; /* so far */
};

static uint64_t guess_tokens(const struct guesses *g, uint64_t tokens)
{
	return tokens == g->was->n_tokens ? g->is->n_tokens : tokens == g->was->n_sampled ? g->is->n_sampled : tokens;
}

static void guess_kv(const struct guesses *g, struct trace_access *a)
{
	uint32_t n = g->n_kv < KV_KEPT ? g->n_kv : KV_KEPT;

	for (uint32_t back = 1; back <= n; back++) {
		uint32_t i = (g->n_kv - back) % KV_KEPT;
		if (g->kv[i].was_tokens == a->kv_tokens && bits_of(g->kv[i].was_pairs) == bits_of(a->kv_pairs)) {
			a->kv_tokens = g->kv[i].is_tokens;
			a->kv_pairs = g->kv[i].is_pairs;
			return;
		}
	}
	if (n) {
		uint32_t last = (g->n_kv - 1) % KV_KEPT;
		uint64_t was, is, now;
		a->kv_tokens += g->kv[last].is_tokens - g->kv[last].was_tokens;
		if (is_whole(g->kv[last].was_pairs, &was) && is_whole(g->kv[last].is_pairs, &is) && is_whole(a->kv_pairs, &now))
			a->kv_pairs = (double)(int64_t)(now + is - was);
	}
}

static struct otr_item guess_item(const struct guesses *g, const struct otr_item *was)
{
	struct otr_item item = *was;

	item.a.tokens = guess_tokens(g, was->a.tokens);
	if (was->a.kind == TRACE_KV_READ)
		guess_kv(g, &item.a);
	return item;
}

/* A KV read was not as guessed. */
static void learn_kv(struct guesses *g, const struct trace_access *was, const struct trace_access *is)
{
	uint32_t i = g->n_kv++ % KV_KEPT;

	g->kv[i].was_tokens = was->kv_tokens;
	g->kv[i].was_pairs = was->kv_pairs;
	g->kv[i].is_tokens = is->kv_tokens;
	g->kv[i].is_pairs = is->kv_pairs;
}

static struct trace_step guess_step(const struct trace_step *was, uint64_t index)
{
	struct trace_step step = *was;

	step.index = index;
	if (was->n_sequences)
		step.context += was->n_tokens / was->n_sequences;
	return step;
}

void otr_coder_init(struct otr_coder *c, const struct otr_info *info, struct arena *a)
{
	*c = (struct otr_coder){.arena = a, .info = info};
	otr_coder_reset(c);
}

void otr_coder_reset(struct otr_coder *c)
{
	for (int p = 0; p < 2; p++) {
		c->before[p].step = (struct trace_step){0};
		c->before[p].items.n = 0;
	}
	c->next_index = 0;
	c->request_before = (struct otr_request){0};
	c->first_block = 0;
}

/* ---- what may be said ---- */

static uint32_t experts_of(const struct otr_coder *c, int layer)
{
	return layer >= 0 && (uint32_t)layer < c->info->n_layer ? c->info->layer[layer].n_expert : 0;
}

static int check_access(struct otr_coder *c, const struct trace_access *a)
{
	uint32_t n_expert = experts_of(c, a->layer);

	if (a->kind > TRACE_KV_READ)
		return fault(c->fault, "an access of kind %u", a->kind);
	if (a->group >= MODEL_GROUP_N)
		return fault(c->fault, "a tensor group %u", a->group);
	if (a->layer < MODEL_NO_LAYER || (c->info->n_layer && a->layer >= (int)c->info->n_layer))
		return fault(c->fault, "layer %d of %u", a->layer, c->info->n_layer);
	if (a->kind == TRACE_EXPERT && n_expert && a->expert >= n_expert)
		return fault(c->fault, "expert %u of %u in layer %d", a->expert, n_expert, a->layer);
	if (c->info->experts_only && a->kind != TRACE_EXPERT)
		return fault(c->fault, "an access of kind %u in a trace of experts only", a->kind);
	return 0;
}

static int check_phase(struct otr_coder *c, const struct trace_step *s)
{
	return s->phase == TRACE_PREFILL || s->phase == TRACE_DECODE ? 0 : fault(c->fault, "a phase %d", (int)s->phase);
}

static int truncated(struct otr_coder *c)
{
	return fault(c->fault, "a record that goes beyond its chunk");
}

/* ---- steps: writing ---- */

/* A use of an expert that says no more than its number and tokens: such may be in a run. */
static bool is_use(const struct trace_access *a)
{
	return a->kind == TRACE_EXPERT && a->kv_tokens == 0 && bits_of(a->kv_pairs) == 0;
}

/* How many accesses from a on (there are n) make one run; 0: a stands alone. */
static size_t run_length(const struct trace_access *a, size_t n)
{
	size_t i = 0;

	while (i < n && is_use(&a[i]) && a[i].layer == a[0].layer && a[i].group == a[0].group)
		i++;
	return i;
}

static unsigned width_of(const struct trace_access *a, size_t n)
{
	uint32_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= a[i].expert;
	return any <= UINT8_MAX ? 0 : any <= UINT16_MAX ? 1 : 2;
}

static bool has_varied(const struct trace_access *a, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (a[i].tokens != a[0].tokens)
			return true;
	return false;
}

/* The item that begins at a; as much like its guess as it can be. */
static struct otr_item item_at(const struct trace_access *a, size_t n, const struct otr_item *guess)
{
	struct otr_item item = {.a = *a, .n = (uint32_t)run_length(a, n)};

	if (item.n == 0)
		return item;
	item.a.expert = 0;
	item.width = (uint8_t)width_of(a, item.n);
	item.varied = has_varied(a, item.n);
	if (guess->n) {
		if (item.width < guess->width)
			item.width = guess->width;
		item.varied |= guess->varied;
	}
	if (item.varied)
		item.a.tokens = guess->a.tokens;
	return item;
}

static unsigned shape_of(const struct otr_item *i)
{
	return i->n ? 1u | (unsigned)i->width << 1 | (unsigned)i->varied << 3 : 0;
}

static unsigned what_of(const struct otr_item *i)
{
	return i->a.kind | (unsigned)i->a.group << 3;
}

static uint32_t number_of(const struct otr_item *i, bool run)
{
	return run ? i->n : i->a.expert;
}

static unsigned item_flags(const struct otr_item *is, const struct otr_item *guess)
{
	bool run = is->n > 0;
	uint64_t whole;

	return (is->a.layer != guess->a.layer ? ITEM_LAYER : 0) | (what_of(is) != what_of(guess) ? ITEM_WHAT : 0) |
		(shape_of(is) != shape_of(guess) ? ITEM_SHAPE : 0) |
		(number_of(is, run) != number_of(guess, run) ? ITEM_NUMBER : 0) |
		(is->a.tokens != guess->a.tokens ? ITEM_TOKENS : 0) |
		(is->a.kv_tokens != guess->a.kv_tokens ? ITEM_KV_TOKENS : 0) |
		(bits_of(is->a.kv_pairs) == bits_of(guess->a.kv_pairs) ? 0 :
			is_whole(is->a.kv_pairs, &whole)	       ? ITEM_KV_WHOLE :
									 ITEM_KV_DOUBLE);
}

static uint64_t whole_or_0(double v)
{
	uint64_t whole;

	return is_whole(v, &whole) ? whole : 0;
}

static void put_exception(struct otr_coder *c, size_t gap, unsigned flags, const struct otr_item *is,
	const struct otr_item *guess)
{
	struct otr_bytes *to = &c->exceptions;
	bool run = is->n > 0;

	put_varint(to, c->arena, gap);
	put_byte(to, c->arena, flags);
	if (flags & ITEM_LAYER)
		put_difference(to, c->arena, (uint64_t)is->a.layer, (uint64_t)guess->a.layer);
	if (flags & ITEM_WHAT)
		put_byte(to, c->arena, what_of(is));
	if (flags & ITEM_SHAPE)
		put_byte(to, c->arena, shape_of(is));
	if (flags & ITEM_NUMBER)
		put_difference(to, c->arena, number_of(is, run), number_of(guess, run));
	if (flags & ITEM_TOKENS)
		put_difference(to, c->arena, is->a.tokens, guess->a.tokens);
	if (flags & ITEM_KV_TOKENS)
		put_difference(to, c->arena, is->a.kv_tokens, guess->a.kv_tokens);
	if (flags & ITEM_KV_WHOLE)
		put_difference(to, c->arena, whole_or_0(is->a.kv_pairs), whole_or_0(guess->a.kv_pairs));
	if (flags & ITEM_KV_DOUBLE)
		otr_put_u64(to, c->arena, bits_of(is->a.kv_pairs));
}

static int put_uses(struct otr_coder *c, const struct otr_item *run, const struct trace_access *a)
{
	struct otr_bytes *to = &c->uses;
	int width = 1 << run->width;

	VEC_RESERVE(to, c->arena, to->n + run->n * (size_t)width);
	for (uint32_t i = 0; i < run->n; i++) {
		if (check_access(c, &a[i]))
			return -1;
		if (width == 1)
			to->at[to->n++] = (unsigned char)a[i].expert;
		else
			put_fixed(to, c->arena, a[i].expert, width);
	}
	for (uint32_t i = 0; run->varied && i < run->n; i++)
		put_varint(to, c->arena, a[i].tokens);
	return 0;
}

/* Fills c->exceptions and c->uses, and replaces the items of the step before; returns how many there are, or -1. */
static int64_t encode_items(struct otr_coder *c, const struct trace_step *step)
{
	struct guesses g = {.was = &c->before[step->phase].step, .is = step};
	size_t n_before = c->before[step->phase].items.n, k = 0, gap = 0;

	c->exceptions.n = c->uses.n = 0;
	for (size_t i = 0; i < step->n_access; k++) {
		const struct trace_access *a = &step->access[i];
		bool fresh = k >= n_before;
		if (fresh)
			VEC_PUSH(&c->before[step->phase].items, c->arena, (struct otr_item){0});
		struct otr_item *place = &c->before[step->phase].items.at[k];
		struct otr_item was = *place;
		struct otr_item guess = !fresh ? guess_item(&g, &was) : k ? place[-1] : was;
		struct otr_item is = item_at(a, step->n_access - i, &guess);
		unsigned flags = item_flags(&is, &guess);

		if (is.n ? put_uses(c, &is, a) : check_access(c, a))
			return -1;
		if (flags || fresh) {
			put_exception(c, gap, flags, &is, &guess);
			gap = 0;
		} else {
			gap++;
		}
		if (!fresh && was.a.kind == TRACE_KV_READ && flags & (ITEM_KV_TOKENS | ITEM_KV_WHOLE | ITEM_KV_DOUBLE))
			learn_kv(&g, &was.a, &is.a);
		*place = is;
		i += is.n ? is.n : 1;
	}
	if (k > OTR_ITEM_MAX)
		return fault(c->fault, "a step of %zu items, more than %d", k, OTR_ITEM_MAX);
	c->before[step->phase].items.n = k;
	return (int64_t)k;
}

int otr_encode_step(struct otr_coder *c, const struct trace_step *step, struct otr_bytes *to)
{
	if (check_phase(c, step))
		return -1;
	if (step->n_access > OTR_ACCESS_MAX)
		return fault(c->fault, "a step of %zu accesses, more than %d", step->n_access, OTR_ACCESS_MAX);

	struct trace_step *was = &c->before[step->phase].step;
	struct trace_step guess = guess_step(was, c->next_index);
	size_t n_before = c->before[step->phase].items.n;
	int64_t n_items = encode_items(c, step);
	if (n_items < 0)
		return -1;

	const uint64_t is[] = {step->index, step->n_sequences, step->n_tokens, step->n_sampled, step->context,
		(uint64_t)n_items};
	const uint64_t guessed[] = {guess.index, guess.n_sequences, guess.n_tokens, guess.n_sampled, guess.context,
		n_before};
	unsigned flags = step->phase == TRACE_DECODE ? STEP_DECODE : 0;
	for (size_t i = 0; i < ARRAY_LEN(is); i++)
		flags |= is[i] != guessed[i] ? (unsigned)STEP_INDEX << i : 0;
	put_byte(to, c->arena, flags);
	for (size_t i = 0; i < ARRAY_LEN(is); i++)
		if (is[i] != guessed[i])
			put_difference(to, c->arena, is[i], guessed[i]);
	put_varint(to, c->arena, c->exceptions.n);
	put_bytes(to, c->arena, c->exceptions.at, c->exceptions.n);
	put_bytes(to, c->arena, c->uses.at, c->uses.n);
	*was = *step;
	c->next_index = step->index + 1;
	return 0;
}

/* ---- steps: reading ---- */

static int get_exception(struct otr_coder *c, struct otr_input *in, struct otr_item *item)
{
	const struct otr_item guess = *item;
	unsigned flags = get_byte(in), what = what_of(item), shape = shape_of(item);
	uint64_t number;

	if (flags & ITEM_LAYER) {
		uint64_t layer = get_difference(in, (uint64_t)guess.a.layer);
		item->a.layer = (int16_t)layer;
		if ((uint64_t)item->a.layer != layer)
			return fault(c->fault, "layer %" PRId64 " of %u", (int64_t)layer, c->info->n_layer);
	}
	if (flags & ITEM_WHAT)
		what = get_byte(in);
	item->a.kind = what & 7;
	item->a.group = (uint8_t)(what >> 3);
	if (flags & ITEM_SHAPE)
		shape = get_byte(in);
	item->width = shape >> 1 & 3;
	item->varied = shape >> 3 & 1;
	if (shape > 13 || item->width > 2 || (!(shape & 1) && shape))
		return fault(c->fault, "an item of shape %u", shape);
	number = number_of(&guess, shape & 1);
	if (flags & ITEM_NUMBER)
		number = get_difference(in, number);
	item->n = shape & 1 ? (uint32_t)number : 0;
	item->a.expert = shape & 1 ? 0 : (uint32_t)number;
	if (number > UINT32_MAX || (shape & 1 && (number == 0 || item->a.kind != TRACE_EXPERT)))
		return fault(c->fault, "%s %" PRIu64, shape & 1 ? "a run of uses of" : "an expert", number);
	if (flags & ITEM_TOKENS)
		item->a.tokens = get_difference(in, guess.a.tokens);
	if (flags & ITEM_KV_TOKENS)
		item->a.kv_tokens = get_difference(in, guess.a.kv_tokens);
	if (flags & ITEM_KV_WHOLE)
		item->a.kv_pairs = (double)(int64_t)get_difference(in, whole_or_0(guess.a.kv_pairs));
	if (flags & ITEM_KV_DOUBLE) {
		uint64_t bits = otr_get_u64(in);
		memcpy(&item->a.kv_pairs, &bits, sizeof(bits));
	}
	return check_access(c, &item->a);
}

/* Makes the items of the step out of those of the step before; *n_access is what they come to. */
static int decode_items(struct otr_coder *c, const struct trace_step *step, size_t n_before, size_t n,
	struct otr_input *in, size_t *n_access)
{
	struct guesses g = {.was = &c->before[step->phase].step, .is = step};
	struct otr_item *item = c->before[step->phase].items.at;
	bool more = in->at < in->end;
	uint64_t exception = more ? get_varint(in) : UINT64_MAX;

	*n_access = 0;
	for (size_t k = 0; k < n; k++) {
		bool fresh = k >= n_before;
		struct otr_item was = item[k];
		item[k] = !fresh ? guess_item(&g, &was) : k ? item[k - 1] : (struct otr_item){0};
		if (exception == k) {
			struct otr_item guess = item[k];
			if (get_exception(c, in, &item[k]))
				return in->bad ? truncated(c) : -1;
			if (!fresh && was.a.kind == TRACE_KV_READ &&
				(item[k].a.kv_tokens != guess.a.kv_tokens ||
					bits_of(item[k].a.kv_pairs) != bits_of(guess.a.kv_pairs)))
				learn_kv(&g, &was.a, &item[k].a);
			more = in->at < in->end;
			exception = more ? get_varint(in) + k + 1 : UINT64_MAX;
		} else if (fresh) {
			return fault(c->fault, "an item that is new and not there");
		}
		*n_access += item[k].n ? item[k].n : 1;
	}
	if (more || in->bad)
		return fault(c->fault, "exceptions of items that are not there");
	if (*n_access > OTR_ACCESS_MAX)
		return fault(c->fault, "a step of %zu accesses, more than %d", *n_access, OTR_ACCESS_MAX);
	return 0;
}

static int decode_run(struct otr_coder *c, const struct otr_item *run, struct otr_input *in, struct trace_access *a)
{
	size_t n = run->n, bytes = n << run->width;
	uint32_t n_expert = experts_of(c, run->a.layer), last = 0;
	const unsigned char *p = in->at;

	if ((size_t)(in->end - in->at) < bytes)
		return truncated(c);
	in->at += bytes;
	for (size_t i = 0; i < n; i++) {
		uint32_t e = p[0];
		if (run->width) {
			e |= (uint32_t)p[1] << 8;
			if (run->width == 2)
				e |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		}
		p += (size_t)1 << run->width;
		a[i] = run->a;
		a[i].expert = e;
		last = e > last ? e : last;
	}
	if (n_expert && last >= n_expert)
		return fault(c->fault, "expert %u of %u in layer %d", last, n_expert, run->a.layer);
	for (size_t i = 0; run->varied && i < n; i++)
		a[i].tokens = get_varint(in);
	return in->bad ? truncated(c) : 0;
}

static int decode_accesses(struct otr_coder *c, enum trace_phase phase, size_t n_access, struct otr_input *in)
{
	const struct otr_item *item = c->before[phase].items.at;
	size_t n = c->before[phase].items.n;

	VEC_RESERVE(&c->access, c->arena, n_access);
	struct trace_access *a = c->access.at;
	for (size_t k = 0; k < n; k++) {
		if (item[k].n == 0) {
			*a++ = item[k].a;
		} else {
			if (decode_run(c, &item[k], in, a))
				return -1;
			a += item[k].n;
		}
	}
	c->access.n = n_access;
	return 0;
}

int otr_decode_step(struct otr_coder *c, struct otr_input *in, struct trace_step *step)
{
	unsigned flags = get_byte(in);
	enum trace_phase phase = flags & STEP_DECODE ? TRACE_DECODE : TRACE_PREFILL;
	size_t n_before = c->before[phase].items.n, n_access;
	uint64_t n_items = n_before;

	*step = guess_step(&c->before[phase].step, c->next_index);
	step->phase = phase;
	uint64_t *field[] = {&step->index, &step->n_sequences, &step->n_tokens, &step->n_sampled, &step->context,
		&n_items};
	for (size_t i = 0; i < ARRAY_LEN(field); i++)
		if (flags & (unsigned)STEP_INDEX << i)
			*field[i] = get_difference(in, *field[i]);
	uint64_t bytes = get_varint(in);
	if (flags > 127)
		return fault(c->fault, "a step of unknown flags %u", flags);
	if (in->bad || bytes > (uint64_t)(in->end - in->at))
		return truncated(c);
	/* An item that is new takes two bytes at least. */
	if (n_items > OTR_ITEM_MAX || (n_items > n_before && n_items - n_before > bytes / 2))
		return fault(c->fault, "a step of %" PRIu64 " items", n_items);

	struct otr_input exceptions = {in->at, in->at + bytes, false};
	in->at += bytes;
	VEC_RESERVE(&c->before[phase].items, c->arena, n_items);
	c->before[phase].items.n = n_items;
	if (decode_items(c, step, n_before, n_items, &exceptions, &n_access) ||
		decode_accesses(c, phase, n_access, in))
		return -1;
	step->access = c->access.at;
	step->n_access = n_access;
	c->before[phase].step = *step;
	c->next_index = step->index + 1;
	return 0;
}

/* ---- requests ---- */

int otr_encode_request(struct otr_coder *c, const struct otr_request *r, struct otr_bytes *to)
{
	const struct otr_request *was = &c->request_before;

	put_difference(to, c->arena, r->arrival_ns, was->arrival_ns);
	put_varint(to, c->arena, r->input_tokens);
	put_varint(to, c->arena, r->output_tokens);
	put_difference(to, c->arena, r->session, was->session);
	put_varint(to, c->arena, r->n_blocks);
	for (size_t i = 0; i < r->n_blocks; i++)
		put_difference(to, c->arena, r->block[i], i ? r->block[i - 1] + 1 : c->first_block);
	if (r->n_blocks)
		c->first_block = r->block[0];
	c->request_before = *r;
	return 0;
}

int otr_decode_request(struct otr_coder *c, struct otr_input *in, struct otr_request *r)
{
	const struct otr_request *was = &c->request_before;

	*r = (struct otr_request){.arrival_ns = get_difference(in, was->arrival_ns)};
	r->input_tokens = get_varint(in);
	r->output_tokens = get_varint(in);
	r->session = get_difference(in, was->session);
	r->n_blocks = get_varint(in);
	if (in->bad || r->n_blocks > (size_t)(in->end - in->at))
		return truncated(c);
	VEC_RESERVE(&c->block, c->arena, r->n_blocks);
	for (size_t i = 0; i < r->n_blocks; i++)
		c->block.at[i] = get_difference(in, i ? c->block.at[i - 1] + 1 : c->first_block);
	if (in->bad)
		return truncated(c);
	r->block = c->block.at;
	if (r->n_blocks)
		c->first_block = c->block.at[0];
	c->request_before = *r;
	return 0;
}

/* ---- the head ---- */

static int check_text(const char *what, const char *text, size_t len, char *why)
{
	uint32_t cp;

	if (len > OTR_TEXT_MAX)
		return fault(why, "a text '%s' of %zu bytes, more than %d", what, len, OTR_TEXT_MAX);
	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_decode(text + i, len - i, &cp);
		if (n == 0 || cp == 0)
			return fault(why, "a text '%s' that is not UTF-8", what);
	}
	return 0;
}

static int check_info(const struct otr_info *info, char *why)
{
	if (info->kind != OTR_STEPS && info->kind != OTR_REQUESTS)
		return fault(why, "records of kind %d", (int)info->kind);
	if (info->n_layer > INT16_MAX)
		return fault(why, "%u layers, more than %d", info->n_layer, INT16_MAX);
	return 0;
}

static const char *const text_names[] = {"model", "source", "licence", "note"};

int otr_encode_info(const struct otr_info *info, struct arena *a, struct otr_bytes *to, char *why)
{
	const uint64_t number[] = {info->kind, info->experts_only, info->block_tokens, info->workload.batch,
		info->workload.prompt, info->workload.generate, info->workload.depth};
	const char *const text[] = {info->model, info->source, info->licence, info->note};

	if (check_info(info, why))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(number); i++)
		put_varint(to, a, number[i]);
	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		size_t len = strlen(text[i]);
		if (check_text(text_names[i], text[i], len, why))
			return -1;
		put_varint(to, a, len);
		put_bytes(to, a, text[i], len);
	}
	put_varint(to, a, info->n_layer);
	for (uint32_t i = 0; i < info->n_layer; i++) {
		put_varint(to, a, info->layer[i].n_expert);
		put_varint(to, a, info->layer[i].n_expert_used);
		put_varint(to, a, info->layer[i].expert_bytes);
		put_varint(to, a, info->layer[i].dense_bytes);
	}
	return 0;
}

static int decode_texts(struct otr_input *in, struct arena *a, struct otr_info *info, char *why)
{
	const char **text[] = {&info->model, &info->source, &info->licence, &info->note};

	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		uint64_t len = get_varint(in);
		if (len > (uint64_t)(in->end - in->at))
			return fault(why, "a text '%s' that goes beyond the head", text_names[i]);
		if (check_text(text_names[i], (const char *)in->at, len, why))
			return -1;
		*text[i] = arena_strndup(a, (const char *)in->at, len);
		in->at += len;
	}
	return 0;
}

/* A count of 32 bits; more is damage. */
static uint32_t get_count(struct otr_input *in)
{
	uint64_t v = get_varint(in);

	in->bad |= v > UINT32_MAX;
	return (uint32_t)v;
}

int otr_decode_info(struct otr_input *in, struct arena *a, struct otr_info *info, char *why)
{
	*info = (struct otr_info){.kind = (enum otr_kind)get_count(in)};
	info->experts_only = get_count(in) != 0;
	info->block_tokens = get_count(in);
	info->workload.batch = get_varint(in);
	info->workload.prompt = get_varint(in);
	info->workload.generate = get_varint(in);
	info->workload.depth = get_varint(in);
	if (decode_texts(in, a, info, why))
		return -1;
	info->n_layer = get_count(in);
	if (check_info(info, why))
		return -1;
	info->layer = arena_array(a, struct otr_layer, info->n_layer);
	for (uint32_t i = 0; i < info->n_layer; i++) {
		info->layer[i].n_expert = get_count(in);
		info->layer[i].n_expert_used = get_count(in);
		info->layer[i].expert_bytes = get_varint(in);
		info->layer[i].dense_bytes = get_varint(in);
	}
	if (in->bad || in->at != in->end)
		return fault(why, "a head of the wrong length");
	return 0;
}

/* ---- the hash ---- */

/* FNV-1a takes a byte at a time, which is too slow for every access; this takes 8, turned so that high bits matter too. */
static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

uint64_t otr_hash_info(const struct otr_bytes *head)
{
	return hash_bytes(HASH_INIT, head->at, head->n);
}

uint64_t otr_hash_step(uint64_t h, const struct trace_step *s)
{
	h = mix(h, s->phase);
	h = mix(h, s->index);
	h = mix(h, s->n_sequences);
	h = mix(h, s->n_tokens);
	h = mix(h, s->n_sampled);
	h = mix(h, s->context);
	h = mix(h, s->n_access);
	for (size_t i = 0; i < s->n_access; i++) {
		const struct trace_access *a = &s->access[i];
		bool kv = a->kv_tokens || bits_of(a->kv_pairs);
		h = mix(h, (uint64_t)(uint16_t)a->layer << 48 | (uint64_t)kv << 47 | (uint64_t)a->kind << 40 |
				(uint64_t)a->group << 32 | a->expert);
		h = mix(h, a->tokens);
		if (kv) {
			h = mix(h, a->kv_tokens);
			h = mix(h, bits_of(a->kv_pairs));
		}
	}
	return h;
}

uint64_t otr_hash_request(uint64_t h, const struct otr_request *r)
{
	h = mix(h, r->arrival_ns);
	h = mix(h, r->input_tokens);
	h = mix(h, r->output_tokens);
	h = mix(h, r->session);
	h = mix(h, r->n_blocks);
	for (size_t i = 0; i < r->n_blocks; i++)
		h = mix(h, r->block[i]);
	return h;
}
