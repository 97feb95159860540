/*
 * read_safetensors.c - config.json and the headers of a checkpoint -> model.
 *
 *	config.json ──> a model without files: heads, windows, experts of each layer
 *	headers ──> tensors under GGUF's names, experts put together, sorted ──> build
 */
#include "models/read_safetensors.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/vec.h"
#include "models/build.h"
#include "models/group.h"
#include "models/hf_names.h"
#include "models/read_hf.h"
#include "models/safetensors.h"

/* One tensor on its way into the model. */
struct item {
	const char *rest;
	int layer;
	enum model_group group;
	bool guess, aside;
	uint64_t shape[3];
	const struct quant_type *type;
	size_t order;
};

struct reader {
	struct arena *arena;
	const char *path;
	const struct model *ref; /* what config.json makes */
	bool quantized;		 /* in a way that config.json does not tell enough of */
	uint32_t n_draft;	 /* of its layers, the last ones */
	bool sandwich;
	struct {
		VEC(struct item);
	} items;
	struct intern merged; /* "LAYER REST" of experts that are put together -> number in `of` */
	struct {
		VEC(size_t);
	} of;
	struct group_facts *facts;
	uint64_t data_bytes, file_bytes;
	size_t n_tensors; /* in the files */
	size_t n_left;	  /* of a part that is not described */
};

/* The file of this name in the folder of path. */
static const char *beside(const char *path, const char *name, struct arena *a)
{
	const char *slash = strrchr(path, '/');

	return slash ? arena_printf(a, "%.*s/%s", (int)(slash - path), path, name) : arena_strdup(a, name);
}

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), ns = strlen(suffix);

	return n >= ns && !strcmp(s + n - ns, suffix);
}

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* ---- tensors ---- */

/* Row, rows, experts of a shape in C order. */
static void fold_shape(struct item *it, const struct safetensors_tensor *t, bool stacked)
{
	uint32_t n = t->n_dims;

	it->shape[0] = n ? t->dim[n - 1] : 1;
	it->shape[1] = it->shape[2] = 1;
	if (stacked && n >= 3)
		it->shape[2] = t->dim[0];
	for (uint32_t i = stacked && n >= 3 ? 1 : 0; i + 1 < n; i++)
		it->shape[1] *= t->dim[i];
}

/* Adds an expert to the others of its kind. false: there are none yet, or they have another shape. */
static bool merge(struct reader *r, struct item *it, int64_t expert)
{
	size_t len = strlen(it->rest);
	char *key = arena_alloc(r->arena, 4 + len + 1);
	struct item *all;
	uint32_t id;

	/* the layer in digits that are no NUL; not by printf, which would take half of the time */
	for (int i = 0; i < 4; i++)
		key[i] = (char)('0' + (it->layer >> 6 * i & 63));
	memcpy(key + 4, it->rest, len);
	id = intern_add(&r->merged, key, 4 + len);

	if (id == r->of.n) {
		VEC_PUSH(&r->of, r->arena, r->items.n);
		return false;
	}
	all = &r->items.at[r->of.at[id]];
	if (all->type == it->type && all->shape[0] == it->shape[0] && all->shape[1] == it->shape[1] &&
		it->shape[2] == 1) {
		all->shape[2]++;
		return true;
	}
	it->rest = arena_printf(r->arena, "%s.%" PRId64, it->rest, expert);
	return false;
}

static void add_tensor(struct reader *r, const struct safetensors_tensor *t)
{
	struct item it = {.order = r->items.n, .type = t->type};
	struct hf_name name;

	r->n_tensors++;
	r->data_bytes += t->end - t->begin;
	hf_name(t->name, r->sandwich, r->arena, &name);
	it.layer = name.draft ? (int)(r->ref->n_layer - r->n_draft) + name.layer : name.layer;
	if (name.other || it.layer >= (int)r->ref->n_layer) {
		r->n_left++;
		return;
	}
	it.rest = name.rest;
	it.guess = name.guess;
	it.group = name.group;
	it.aside = name.aside;
	fold_shape(&it, t, strstr(name.rest, "_exps") != NULL && name.expert < 0);
	if (name.expert >= 0 && merge(r, &it, name.expert))
		return;
	VEC_PUSH(&r->items, r->arena, it);
}

static int add_file(struct reader *r, const char *path, struct err *err)
{
	struct safetensors st;

	if (safetensors_open(path, r->arena, &st, err))
		return -1;
	for (size_t i = 0; i < st.n_tensors && !r->sandwich; i++)
		r->sandwich = strstr(st.tensors[i].name, ".pre_feedforward_layernorm.") != NULL;
	for (size_t i = 0; i < st.n_tensors; i++)
		add_tensor(r, &st.tensors[i]);
	r->file_bytes += st.size;
	return 0;
}

static int by_place(const void *x, const void *y)
{
	const struct item *a = x, *b = y;

	return group_compare((struct group_place){a->layer, a->group, a->order}, (struct group_place){b->layer, b->group, b->order});
}

static void sort_items(struct reader *r)
{
	for (size_t i = 0; i < r->items.n; i++) {
		const struct item *it = &r->items.at[i];

		if (it->layer != MODEL_NO_LAYER)
			group_learn(&r->facts[it->layer], it->rest, it->shape[1], it->shape[2]);
	}
	for (size_t i = 0; i < r->items.n; i++) {
		struct item *it = &r->items.at[i];

		if (it->layer == MODEL_NO_LAYER)
			it->group = group_outside(it->rest);
		else if (!it->guess)
			it->group = group_of(it->rest, &r->facts[it->layer]);
	}
	qsort(r->items.at, r->items.n, sizeof(*r->items.at), by_place);
}

/* ---- parameters ---- */

/* Values of less than a byte, several in an element. */
static bool is_packed(const struct item *it)
{
	static const char *const types[] = {"u8", "i32", "u32", "i16"};

	for (size_t i = 0; i < ARRAY_LEN(types) && !it->aside; i++) {
		if (!strcmp(it->type->name, types[i]))
			return true;
	}
	return false;
}

static struct model_group_sum *sum_of(struct model *m, const struct model_tensor *t)
{
	if (t->layer != MODEL_NO_LAYER)
		return &m->layers[t->layer].group[t->group];
	return t->group == MODEL_OUTPUT ? &m->output : &m->embed;
}

static uint64_t idle_params(const struct model_layer *l)
{
	uint64_t sum = 0;

	for (int g = 0; l->draft && g < MODEL_GROUP_N; g++)
		sum += l->group[g].params;
	if (l->draft)
		return sum;
	return l->n_expert ? l->group[MODEL_EXPERTS].params / l->n_expert * (l->n_expert - l->n_expert_used)
			   : 0;
}

static void set_params(struct model *m, struct model_tensor *t, uint64_t params)
{
	struct model_layer *l = t->layer == MODEL_NO_LAYER ? NULL : &m->layers[t->layer];
	struct model_group_sum *sum = sum_of(m, t);

	if (l)
		m->params_active += idle_params(l);
	sum->params = sum->params - t->params + params;
	m->params_total = m->params_total - t->params + params;
	m->params_active = m->params_active - t->params + params;
	if (l)
		m->params_active -= idle_params(l);
	t->params = params;
}

/* Scales and the like are no parameters; packed values are those that config.json makes for the same part of
   the model, as elements say nothing of them. items: one for each tensor, but for a tied output at the end.
 */
static void count_params(const struct reader *r, struct model *m)
{
	for (size_t i = 0; i < r->items.n; i++) {
		if (r->items.at[i].aside)
			set_params(m, &m->tensors[i], 0);
	}
	for (size_t i = 0, n; i < r->items.n; i += n) {
		const struct item *first = &r->items.at[i];
		uint64_t packed = 0, plain = 0, want;

		for (n = 0; i + n < r->items.n; n++) {
			const struct item *it = &r->items.at[i + n];

			if (it->layer != first->layer || it->group != first->group)
				break;
			if (is_packed(it))
				packed += m->tensors[i + n].params;
			else
				plain += m->tensors[i + n].params;
		}
		if (!packed || first->layer == MODEL_NO_LAYER)
			continue;
		want = r->ref->layers[first->layer].group[first->group].params;
		for (size_t j = i; j < i + n && want > plain; j++) {
			double share = (double)m->tensors[j].params / (double)packed;

			if (is_packed(&r->items.at[j]))
				set_params(
					m, &m->tensors[j], (uint64_t)(share * (double)(want - plain) + 0.5));
		}
	}
}

/* ---- model ---- */

static int read_ref(struct reader *r, const char *quant, struct model **ref, struct err *err)
{
	const char *config = beside(r->path, "config.json", r->arena);
	struct err_pos pos = {.file = r->path};

	if (access(config, F_OK))
		return err_at(err, ERR_INPUT, &pos,
			"has no config.json beside it, which says what its tensors are");
	return read_hf(config, quant, r->arena, ref, err);
}

static int start(struct reader *r, struct err *err)
{
	struct model *ref;
	struct err ignored = {0};

	/* what a quantized checkpoint stores need not be known: its files say it */
	r->quantized = read_ref(r, NULL, &ref, &ignored) != 0;
	if (r->quantized && read_ref(r, "bf16", &ref, err))
		return -1;
	r->ref = ref;
	while (r->n_draft < ref->n_layer && ref->layers[ref->n_layer - 1 - r->n_draft].draft)
		r->n_draft++;
	r->facts = arena_array(r->arena, struct group_facts, ref->n_layer);
	intern_init(&r->merged, r->arena);
	return 0;
}

static const struct item *find_item(const struct reader *r, const char *name)
{
	for (size_t i = 0; i < r->items.n; i++) {
		if (r->items.at[i].layer == MODEL_NO_LAYER && !strcmp(r->items.at[i].rest, name))
			return &r->items.at[i];
	}
	return NULL;
}

/* Are the names such as are known here? */
static bool understood(const struct reader *r)
{
	for (uint32_t i = 0; i < r->ref->n_layer; i++) {
		if (r->ref->layers[i].prefill_only)
			return false;
		if (!r->facts[i].n && r->ref->layers[i].n_tensors && !r->ref->layers[i].draft)
			return false;
	}
	return find_item(r, "token_embd.weight") != NULL;
}

static void add_items(const struct reader *r, struct build *b)
{
	const struct item *embed = find_item(r, "token_embd.weight");
	struct model_tensor *t;

	for (size_t i = 0; i < r->items.n; i++) {
		const struct item *it = &r->items.at[i];

		build_layer(b, it->layer);
		t = build_add(b, it->group, it->rest, it->shape[0], it->shape[1], it->shape[2]);
		t->type = it->type;
		/* stored although tied: whoever loads it drops one */
		t->shared_storage = r->ref->tied_embeddings && it->layer == MODEL_NO_LAYER &&
				    !strcmp(it->rest, "output.weight");
		b->m->tied_embeddings = b->m->tied_embeddings || t->shared_storage;
	}
	if (find_item(r, "output.weight"))
		return;
	build_layer(b, MODEL_NO_LAYER);
	t = build_add(b, MODEL_OUTPUT, "output.weight", embed->shape[0], embed->shape[1], 1);
	t->type = embed->type;
	t->shared_storage = b->m->tied_embeddings = true;
}

static void add_note(struct reader *r, struct model *m, const char *note)
{
	m->note = m->note && *m->note ? arena_printf(r->arena, "%s; %s", m->note, note) : note;
}

/* The model that config.json makes, and why that and not the file's tensors. */
static int from_config(
	struct reader *r, const char *quant, const char *note, struct model **out, struct err *err)
{
	if (read_ref(r, quant, out, err))
		return -1;
	(*out)->name = (*out)->file = r->path;
	if (note)
		add_note(r, *out, note);
	return 0;
}

static int build_model(struct reader *r, struct model **out, struct err *err)
{
	struct err_pos pos = {.file = r->path};
	struct build b;
	struct model *m;

	sort_items(r);
	if (!understood(r))
		return from_config(r, NULL,
			"names of tensors are not known: their sizes are those of config.json", out, err);
	build_init(&b, r->arena, r->ref->n_layer);
	m = b.m;
	for (uint32_t i = 0; i < m->n_layer; i++) {
		m->layers[i] = r->ref->layers[i];
		m->layers[i].first_tensor = m->layers[i].n_tensors = 0;
		memset(m->layers[i].group, 0, sizeof(m->layers[i].group));
	}
	m->name = m->file = r->path;
	m->architecture = r->ref->architecture;
	m->quant = r->ref->quant;
	m->note = r->ref->note ? r->ref->note : "";
	m->hidden = r->ref->hidden;
	m->vocab = r->ref->vocab;
	m->context_max = r->ref->context_max;
	m->file_bytes = r->file_bytes;
	add_items(r, &b);
	if (build_finish(&b, &m, err))
		return err ? err_at(err, err->code, &pos, "%s", err->msg) : -1;
	count_params(r, m);
	if (r->quantized)
		m->quant = group_main_type(m)->name;
	if (r->n_left)
		add_note(r, m,
			arena_printf(r->arena,
				"%zu tensors of other parts (vision, audio, drafting) are left out",
				r->n_left));
	*out = m;
	return 0;
}

static int read_single(struct reader *r, struct model **out, struct err *err)
{
	struct err_pos pos = {.file = r->path};

	if (start(r, err) || add_file(r, r->path, err))
		return -1;
	if (!r->n_tensors)
		return err_at(err, ERR_INPUT, &pos, "holds no tensors");
	return build_model(r, out, err);
}

/* ---- index ---- */

static size_t count_missing(struct reader *r, const struct safetensors_index *index)
{
	size_t missing = 0;

	for (size_t i = 0; i < index->n_files; i++)
		missing += access(beside(r->path, index->files[i], r->arena), F_OK) != 0;
	return missing;
}

static void check_total(struct reader *r, const struct safetensors_index *index, uint64_t bytes,
	const char *whose, struct model *m)
{
	if (index->total_size && index->total_size != bytes)
		add_note(r, m,
			arena_printf(r->arena,
				"the index says that all tensors take %" PRIu64 " bytes, %s %" PRIu64,
				index->total_size, whose, bytes));
}

static int read_index(struct reader *r, struct model **out, struct err *err)
{
	struct safetensors_index index;
	size_t missing;

	if (safetensors_index(r->path, r->arena, &index, err))
		return -1;
	missing = count_missing(r, &index);
	if (missing) {
		if (from_config(r, NULL,
			    missing == index.n_files
				    ? NULL
				    : arena_printf(r->arena,
					      "%zu of %zu files are missing: sizes are those of config.json",
					      missing, index.n_files),
			    out, err))
			return -1;
		check_total(r, &index, (*out)->weights_bytes, "those of config.json", *out);
		return 0;
	}
	if (start(r, err))
		return -1;
	for (size_t i = 0; i < index.n_files; i++) {
		if (add_file(r, beside(r->path, index.files[i], r->arena), err))
			return -1;
	}
	if (build_model(r, out, err))
		return -1;
	check_total(r, &index, r->data_bytes, "the files have", *out);
	if (r->n_tensors != index.n_tensors)
		add_note(r, *out,
			arena_printf(r->arena, "the index lists %zu tensors, the files have %zu",
				index.n_tensors, r->n_tensors));
	return 0;
}

/* NAME-00001-of-00003.safetensors -> NAME.safetensors.index.json; NULL: it is called otherwise. */
static const char *index_of_part(const char *path, struct arena *a)
{
	static const char tail[] = "-00000-of-00000.safetensors";
	size_t n = strlen(tail), len = strlen(path);
	const char *p = path + len - n;

	if (len <= n)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (tail[i] == '0' ? !(p[i] >= '0' && p[i] <= '9') : p[i] != tail[i])
			return NULL;
	}
	if (begins(p + 7, "of-00001."))
		return NULL;
	return arena_printf(a, "%.*s.safetensors.index.json", (int)(len - n), path);
}

int read_safetensors(
	const char *path, const char *quant, struct arena *a, struct model **out, struct err *err)
{
	struct reader r = {.arena = a, .path = arena_strdup(a, path)};
	const char *index = index_of_part(path, a);
	struct err_pos pos = {.file = path};

	if (index && access(index, F_OK))
		return err_at(err, ERR_INPUT, &pos,
			"is a part of several, and their index, '%s', is not there", index);
	if (index)
		r.path = index;
	if (quant)
		return from_config(&r, quant, NULL, out, err);
	return ends_with(r.path, ".json") ? read_index(&r, out, err) : read_single(&r, out, err);
}
