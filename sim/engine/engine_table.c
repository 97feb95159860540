#include "sim/engine/engine_table.h"

#include <ctype.h>
#include <string.h>

#include "base/suggest.h"

static const struct engine_ops *const engines[] = {
	&engine_ideal,
};

const struct engine_ops *engine_at(size_t i)
{
	return i < ARRAY_LEN(engines) ? engines[i] : NULL;
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
	return err_at(err, ERR_INPUT, pos, "unknown flag '%s' of %s%s", word, e->name,
		suggest_text(&s, near, sizeof(near)));
}

/* The words of a command line. */
static int text_to_map(const struct engine_ops *e, const struct yaml_node *written, struct arena *a,
	struct yaml_node *map, struct err *err)
{
	char *text = arena_strdup(a, written->text);
	struct yaml_node **link = &map->child;
	char *save;

	for (char *word = strtok_r(text, " \t\n", &save); word; word = strtok_r(NULL, " \t\n", &save)) {
		struct err_pos pos = written->pos;
		if (pos.col > 0)
			pos.col += (int)(word - text) + written->quoted;
		if (!is_flag(word))
			return err_at(err, ERR_INPUT, &pos, "'%s' is no flag of %s: a flag begins with '-'", word, e->name);

		struct yaml_node *n = new_node(a, YAML_SCALAR, pos);
		n->key = word + strspn(word, "-");
		char *equals = strchr(n->key, '=');
		const struct param *row;
		if (equals) {
			*equals = '\0';
			n->text = equals + 1;
		}
		row = param_find(e->flag, e->n_flags, n->key);
		if (!row)
			return unknown_flag(e, word, n->key, &pos, err);
		if (!n->text && row->kind != PARAM_KIND_FLAG) {
			n->text = strtok_r(NULL, " \t\n", &save);
			if (!n->text)
				return err_at(err, ERR_INPUT, &pos, "flag '%s' needs a value", word);
		} else if (!n->text) {
			n->text = "yes";
		}
		if (yaml_get(map, n->key))
			return err_at(err, ERR_INPUT, &pos, "flag '%s' is there twice", word);
		*link = n;
		link = &n->next;
	}
	return 0;
}

int engine_flags_map(const struct engine_ops *e, const struct yaml_node *written, struct arena *a,
	struct yaml_node **out, struct err *err)
{
	struct err_pos nowhere = {0};
	struct yaml_node *map = new_node(a, YAML_MAP, written ? written->pos : nowhere);

	*out = map;
	if (!written)
		return 0;
	if (written->kind == YAML_LIST)
		return err_at(err, ERR_INPUT, &written->pos, "'flags' must be a map or a text, not a list");
	if (written->kind == YAML_SCALAR)
		return text_to_map(e, written, a, map, err);
	*out = yaml_overlay(a, map, written);
	return 0;
}

int engine_flags_fill(const struct engine_ops *e, const struct yaml_node *map, struct arena *a, void **out,
	struct err *err)
{
	char what[64];

	*out = arena_alloc(a, e->flags_size);
	snprintf(what, sizeof(what), "the flags of %s", e->name);
	return param_fill(e->flag, e->n_flags, map, what, *out, a, err);
}
