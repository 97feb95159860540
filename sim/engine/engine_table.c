#include "sim/engine/engine_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"

static const struct engine_ops *const engines[] = {
	&engine_ideal,
	&engine_llamacpp,
	&engine_ik_llamacpp,
	&engine_ollama,
	&engine_ktransformers,
	&engine_accelerate,
	&engine_llamacpp_python,
	&engine_expertcache,
	&engine_vllm,
	&engine_sglang,
	&engine_transformers,
	&engine_deepspeed_tp,
	&engine_sequoia,
	&engine_fiddler,
	&engine_airllm,
	&engine_exllama,
	&engine_ds4,
	&engine_flexgen,
	&engine_zero_inference,
};

const struct engine_ops *engine_at(size_t i)
{
	return i < ARRAY_LEN(engines) ? engines[i] : NULL;
}

int engine_use_experts(struct model *m, uint64_t n, struct err *err)
{
	for (uint32_t i = 0; i < m->n_layer; i++) {
		struct model_layer *l = &m->layers[i];
		if (l->n_expert && n > l->n_expert)
			return err_set(err, ERR_INPUT, "a layer has %u experts, not %llu", l->n_expert, (unsigned long long)n);
		if (l->n_expert)
			l->n_expert_used = (uint32_t)n;
	}
	return 0;
}

int engine_check_build(const char *build, struct err *err)
{
	size_t n = strspn(build, "0123456789");
	const char *month = n == 4 && build[4] == '-' ? build + 5 : "01";

	if (n == 4 && (build[4] == '\0' || build[4] == '-') && strspn(month, "0123456789") == 2 && month[2] == '\0' &&
		strcmp(month, "01") >= 0 && strcmp(month, "12") <= 0)
		return 0;
	return err_set(err, ERR_INPUT, "flag 'build' must be a year and month such as 2025-04, not '%s'", build);
}

int engine_find(const char *name, const struct err_pos *pos, const struct engine_ops **out, struct err *err)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, name);
	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		if (strcmp(engines[i]->name, name) == 0) {
			*out = engines[i];
			return 0;
		}
		suggest_offer(&s, engines[i]->name);
	}
	if (suggest_best(&s))
		return err_at(err, ERR_INPUT, pos, "unknown engine '%s'%s", name,
			suggest_text(&s, near, sizeof(near)));

	char known[256] = "";
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "",
			engines[i]->name);
	return err_at(err, ERR_INPUT, pos, "unknown engine '%s'; known: %s", name, known);
}

static struct yaml_node *new_node(struct arena *a, enum yaml_kind kind, struct err_pos pos)
{
	struct yaml_node *n = arena_new(a, struct yaml_node);

	n->kind = kind;
	n->pos = n->key_pos = pos;
	return n;
}

/* The flag's own name: an alias stands for another. */
static const char *own_name(const struct engine_ops *e, const char *name)
{
	for (size_t i = 0; i < e->n_aliases; i++)
		if (strcmp(e->alias[i].name, name) == 0)
			return e->alias[i].key;
	return name;
}

static const struct engine_ignored *find_ignored(const struct engine_ops *e, const char *name)
{
	for (size_t i = 0; i < e->n_ignored; i++)
		if (strcmp(e->ignored[i].name, name) == 0)
			return &e->ignored[i];
	return NULL;
}

static bool knows(const struct engine_ops *e, const char *name)
{
	return find_ignored(e, name) || param_find(e->flag, e->n_flags, own_name(e, name));
}

/* "--top_p" for "--top-p", where the program takes it so. */
static void write_dashes(const struct engine_ops *e, char *name)
{
	if (!e->dashes || knows(e, name))
		return;
	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : *c;
}

static bool is_flag(const char *word)
{
	/* "-ngl" is one, "-1" is a value. */
	return word[0] == '-' && (isalpha((unsigned char)word[1]) || word[1] == '-');
}

static int unknown_flag(const struct engine_ops *e, const char *word, const char *key, const struct err_pos *pos,
	struct err *err)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, key);
	for (size_t i = 0; i < e->n_flags; i++)
		suggest_offer(&s, e->flag[i].key);
	for (size_t i = 0; i < e->n_aliases; i++)
		suggest_offer(&s, e->alias[i].name);
	return err_at(err, ERR_INPUT, pos, "unknown flag '%s' of %s%s", word, e->name,
		suggest_text(&s, near, sizeof(near)));
}

static void leave_out(struct engine_left_out *left, const struct engine_ignored *ignored, const char *name, struct arena *a)
{
	const char **names = ignored->kind & ENGINE_NOT_MODELLED ? &left->not_modelled : &left->ignored;

	*names = arena_printf(a, "%s%s%s", *names, **names ? ", " : "", name);
}

struct words {
	const struct yaml_node *written;
	char *text; /* the copy that is cut up */
	char *at;   /* what is left of it */
	struct engine_left_out *left;
};

/* The next word as a shell would cut it: quotes keep blanks and are taken off, a backslash outside of them is kept (it
   belongs to a regular expression). NULL at the end. */
static char *next_word(struct words *w)
{
	char *from = w->at + strspn(w->at, " \t\n"), *to = from, *word = from, quote = 0;

	if (!*from)
		return NULL;
	for (; *from && (quote || !strchr(" \t\n", *from)); from++) {
		if (quote ? *from == quote : *from == '"' || *from == '\'')
			quote = quote ? 0 : *from;
		else
			*to++ = *from;
	}
	w->at = from + (*from != '\0');
	*to = '\0';
	return word;
}

/* The next word if it is a value and no flag. */
static char *next_value(struct words *w)
{
	const char *ahead = w->at + strspn(w->at, " \t\n");

	return *ahead && !is_flag(ahead) ? next_word(w) : NULL;
}

static struct err_pos word_pos(const struct words *w, const char *word)
{
	struct err_pos pos = w->written->pos;

	if (pos.col > 0)
		pos.col += (int)(word - w->text) + w->written->quoted;
	return pos;
}

/* The next word, in lower case, if it switches a flag on or off: "-nkvo 1" of llama-bench, "--overlap False" of Python. */
static char *next_switch(struct words *w)
{
	static const char *const words[] = {"0", "1", "false", "true"};
	const char *ahead = w->at + strspn(w->at, " \t\n");
	size_t len = strcspn(ahead, " \t\n");

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (len != strlen(words[i]) || strncasecmp(ahead, words[i], len) != 0)
			continue;
		char *word = next_word(w);
		for (char *c = word; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		return word;
	}
	return NULL;
}

/* "25.6k" is 25600 and "32K" 32768; anything else stays as it is. */
static const char *whole_count(const char *text, struct arena *a)
{
	static const char letters[] = "kmgt";
	size_t digits = strspn(text, "0123456789."), len = strlen(text);
	const char *letter = len == digits + 1 && digits ? strchr(letters, tolower((unsigned char)text[digits])) : NULL;
	char *end;

	if (!letter)
		return text;
	bool binary = isupper((unsigned char)text[digits]);
	double n = strtod(text, &end);
	if (end != text + digits || (binary && memchr(text, '.', digits)))
		return text;
	for (const char *at = letters; at <= letter; at++)
		n *= binary ? 1024 : 1000;
	return arena_printf(a, "%.0f", n);
}

/* Enters one flag and its value into the map, taking the value from the words when it has none yet. */
static int add_flag(const struct engine_ops *e, struct words *w, char *word, struct yaml_node *map, struct arena *a,
	struct err *err)
{
	struct err_pos pos = word_pos(w, word);
	char *name = word + strspn(word, "-"), *equals = strchr(name, '=');
	const char *value = NULL;

	if (equals) {
		*equals = '\0';
		value = equals + 1;
	}
	write_dashes(e, name);
	const struct engine_ignored *ignored = find_ignored(e, name);
	const char *key = own_name(e, name);
	const struct param *row = param_find(e->flag, e->n_flags, key);
	if (!row && !ignored)
		return unknown_flag(e, word, name, &pos, err);
	if (!value && (ignored ? (ignored->kind & ENGINE_VALUE) != 0 : row->kind != PARAM_KIND_FLAG)) {
		value = next_value(w);
		if (!value && e->bare && strcmp(key, e->bare) == 0)
			value = "on";
		if (!value)
			return err_at(err, ERR_INPUT, &pos, "flag '%s' needs a value", word);
	}
	if (ignored) {
		if (!value && ignored->kind & ENGINE_MAY_VALUE)
			next_value(w);
		while ((ignored->kind & ENGINE_VALUES) == ENGINE_VALUES && next_value(w))
			;
		leave_out(w->left, ignored, name, a);
		return 0;
	}
	if (!value && row->kind == PARAM_KIND_FLAG)
		value = next_switch(w);
	for (const char *more; e->several && strcmp(key, e->several) == 0 && (more = next_value(w));)
		value = arena_printf(a, "%s %s", value, more);

	if (e->short_counts && row->kind == PARAM_KIND_COUNT)
		value = whole_count(value, a);
	if (e->minus_unset && row->kind == PARAM_KIND_COUNT && strcmp(value, "-1") == 0)
		return 0;
	struct yaml_node *n = yaml_get(map, key);
	if (n && e->repeats && strcmp(key, e->repeats) == 0) {
		n->text = arena_printf(a, "%s,%s", n->text, value);
		return 0;
	}
	if (n)
		return err_at(err, ERR_INPUT, &pos, "flag '%s' is there twice", word);
	n = new_node(a, YAML_SCALAR, pos);
	n->key = key;
	n->text = value ? arena_strdup(a, value) : "yes";
	struct yaml_node **link = &map->child;
	while (*link)
		link = &(*link)->next;
	*link = n;
	return 0;
}

/* The words of a command line. */
static int text_to_map(const struct engine_ops *e, const struct yaml_node *written, struct arena *a,
	struct yaml_node *map, struct engine_left_out *left, struct err *err)
{
	char *text = arena_strdup(a, written->text), *word;
	struct words w = {written, text, text, left};

	while ((word = next_word(&w))) {
		struct err_pos pos = word_pos(&w, word);
		if (!is_flag(word))
			return err_at(err, ERR_INPUT, &pos, "'%s' is no flag of %s: a flag begins with '-'", word, e->name);
		if (add_flag(e, &w, word, map, a, err))
			return -1;
	}
	return 0;
}

/* The same keys under their own names, without those that are ignored. */
static int own_keys(const struct engine_ops *e, const struct yaml_node *written, struct arena *a,
	struct yaml_node *map, struct engine_left_out *left, struct err *err)
{
	struct yaml_node **link = &map->child;

	for (const struct yaml_node *from = written->child; from; from = from->next) {
		const struct engine_ignored *ignored = find_ignored(e, from->key);
		if (ignored) {
			leave_out(left, ignored, from->key, a);
			continue;
		}
		struct yaml_node *n = arena_new(a, struct yaml_node);
		*n = *from;
		n->key = own_name(e, from->key);
		n->next = NULL;
		if (yaml_get(map, n->key))
			return err_at(err, ERR_INPUT, &from->key_pos, "flag '%s' is there twice, as '%s' too", from->key,
				n->key);
		*link = n;
		link = &n->next;
	}
	return 0;
}

/* The keywords of a Python call, and what the function itself implies. */
static int call_to_map(const struct engine_ops *e, const struct yaml_node *written, struct arena *a,
	struct yaml_node **map, struct err *err)
{
	struct err_pos pos = written->pos;
	const struct python_function *f;

	if (pos.col > 0)
		pos.col += written->quoted;
	if (python_call_parse(written->text, &pos, e->call, e->n_calls, a, map, &f, err))
		return -1;
	for (struct yaml_node **link = &(*map)->child; f->model_key && *link; link = &(*link)->next)
		if (strcmp((*link)->key, f->model_key) == 0) {
			*link = (*link)->next;
			break;
		}
	if (!f->implied_key || yaml_get(*map, f->implied_key))
		return 0;
	struct yaml_node *n = new_node(a, YAML_SCALAR, written->pos);
	n->key = f->implied_key;
	n->text = f->implied_value;
	n->next = (*map)->child;
	(*map)->child = n;
	return 0;
}

int engine_flags_map(const struct engine_ops *e, const struct yaml_node *written, struct arena *a,
	struct yaml_node **out, struct engine_left_out *left, struct err *err)
{
	struct err_pos nowhere = {0};
	struct yaml_node *map = new_node(a, YAML_MAP, written ? written->pos : nowhere);

	*out = map;
	*left = (struct engine_left_out){"", ""};
	if (!written)
		return 0;
	if (written->kind == YAML_LIST)
		return err_at(err, ERR_INPUT, &written->pos, "'flags' must be a map or a text, not a list");
	if (written->kind == YAML_SCALAR && e->n_calls && python_is_call(written->text)) {
		struct yaml_node *keywords;
		return call_to_map(e, written, a, &keywords, err) || own_keys(e, keywords, a, map, left, err) ? -1 : 0;
	}
	if (written->kind == YAML_SCALAR)
		return text_to_map(e, written, a, map, left, err);
	return own_keys(e, written, a, map, left, err);
}

const char *engine_flag_name(const struct engine_ops *e, const char *name)
{
	return own_name(e, name);
}

bool engine_knows_flag(const struct engine_ops *e, const char *name, struct arena *a)
{
	char *own = arena_strdup(a, name);

	write_dashes(e, own);
	return knows(e, own);
}

int engine_flags_fill(const struct engine_ops *e, const struct yaml_node *map, struct arena *a, void **out,
	struct err *err)
{
	char what[64];

	*out = arena_alloc(a, e->flags_size);
	snprintf(what, sizeof(what), "the flags of %s", e->name);
	return param_fill(e->flag, e->n_flags, map, what, *out, a, err);
}
