/*
 * card.c - look-up and reading of model cards; the YAML map of a config becomes a JSON object, so that
 * cards and config.json files go through the same reader.
 */
#include "models/card.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/datadir.h"
#include "base/file.h"
#include "base/suggest.h"
#include "base/yaml.h"
#include "models/read_hf.h"

#define CARDS "models/cards"
#define SUFFIX ".yaml"
#define MAX_CARD_BYTES (1 << 20)

static json_t *scalar_to_json(const struct yaml_node *node)
{
	const char *s = node->text;
	char *end;

	if (!node->quoted) {
		if (!*s || !strcmp(s, "null") || !strcmp(s, "~"))
			return json_null();
		if (!strcmp(s, "true") || !strcmp(s, "false"))
			return json_boolean(s[0] == 't');
		if (isdigit((unsigned char)*s) || *s == '-') {
			errno = 0;
			long long n = strtoll(s, &end, 10);

			if (!*end && !errno)
				return json_integer(n);
			double real = strtod(s, &end);

			if (!*end)
				return json_real(real);
		}
	}
	return json_string(s);
}

/* NULL when out of memory or a number is none that JSON has. The depth is yaml.h's, 64 at most. */
static json_t *node_to_json(const struct yaml_node *node)
{
	json_t *out;

	if (node->kind == YAML_SCALAR)
		return scalar_to_json(node);
	out = node->kind == YAML_MAP ? json_object() : json_array();
	for (const struct yaml_node *child = node->child; out && child; child = child->next) {
		json_t *value = node_to_json(child);
		int rc = node->kind == YAML_MAP ? json_object_set_new(out, child->key, value)
						: json_array_append_new(out, value);

		if (rc) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

int card_read(const char *path, const char *quant, struct arena *a, struct model **out, struct err *err)
{
	static const char *const keys[] = {"name", "aliases", "description", "source", "config"};
	struct yaml_node *root, *config;
	json_t *object;
	int rc;

	if (yaml_read_file(path, a, &root, err))
		return -1;
	for (const struct yaml_node *child = root->child; child; child = child->next) {
		struct suggest near;
		char text[64];
		bool known = false;

		suggest_init(&near, child->key);
		for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
			known = known || !strcmp(child->key, keys[i]);
			suggest_offer(&near, keys[i]);
		}
		if (!known)
			return err_at(err, ERR_INPUT, &child->key_pos, "unknown key '%s'%s", child->key,
				suggest_text(&near, text, sizeof(text)));
	}
	config = yaml_get(root, "config");
	if (!config || config->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, config ? &config->pos : &root->pos,
			"a model card needs 'config', a map of config.json's keys");
	object = node_to_json(config);
	if (!object)
		return err_at(err, ERR_INPUT, &config->pos, "'config' holds a value that JSON does not have");
	rc = read_hf_object(object, path, quant, a, out, err);
	json_decref(object);
	return rc;
}

/* Aliases of a card, in order; NULL when it has none. */
static const struct yaml_node *aliases_of(const struct yaml_node *root)
{
	const struct yaml_node *list = yaml_get(root, "aliases");

	return list && list->kind == YAML_LIST ? list->child : NULL;
}

static const char *text_of(const struct yaml_node *root, const char *key)
{
	const struct yaml_node *node = yaml_get(root, key);

	return node && node->kind == YAML_SCALAR ? node->text : "";
}

static const char *card_path(struct arena *a, const char *dir, const char *name)
{
	return arena_printf(a, "%s/" CARDS "/%s" SUFFIX, dir, name);
}

/* Of "meta-llama/Llama-3.1-8B" the part behind the owner will do: others keep copies. */
static bool is_alias(const char *alias, const char *name)
{
	const char *slash = strchr(alias, '/');

	return !strcasecmp(alias, name) || (slash && !strcasecmp(slash + 1, name));
}

/* The card with this alias; *path stays NULL when there is none. Only cards that have the word anywhere are
 * parsed. */
static int find_alias(const char *name, const char *dir, struct arena *a, const char **path, struct err *err)
{
	const char **names;
	size_t n;

	if (datadir_list(a, CARDS, SUFFIX, &names, &n, err))
		return -1;
	for (size_t i = 0; i < n && !*path; i++) {
		struct arena_mark mark = arena_mark(a);
		const char *card = card_path(a, dir, names[i]);
		struct yaml_node *root;
		char *text;
		size_t len;

		if (file_read(card, MAX_CARD_BYTES, a, &text, &len, err))
			return -1;
		if (!strcasestr(text, name)) {
			arena_rewind(a, mark);
			continue;
		}
		if (yaml_read_file(card, a, &root, err))
			return -1;
		for (const struct yaml_node *alias = aliases_of(root); alias; alias = alias->next) {
			if (alias->kind == YAML_SCALAR && is_alias(alias->text, name))
				*path = card;
		}
	}
	return 0;
}

/* Offers every name and alias. */
static int offer_all(const char *dir, struct arena *a, struct suggest *near, struct err *err)
{
	const char **names;
	size_t n;

	if (datadir_list(a, CARDS, SUFFIX, &names, &n, err))
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct yaml_node *root;

		suggest_offer(near, names[i]);
		if (yaml_read_file(card_path(a, dir, names[i]), a, &root, err))
			return -1;
		for (const struct yaml_node *alias = aliases_of(root); alias; alias = alias->next) {
			if (alias->kind == YAML_SCALAR)
				suggest_offer(near, alias->text);
		}
	}
	return 0;
}

/* The card of that name (in lower case), else that with the alias; *path stays NULL when there is none. */
static int find_one(const char *name, const char *dir, struct arena *a, const char **path, struct err *err)
{
	*path = NULL;
	if (!*name || name[0] == '.' || strlen(name) >= 200)
		return 0;
	if (!strchr(name, '/')) {
		const char *card = card_path(a, dir, name);
		if (!access(card, R_OK)) {
			*path = card;
			return 0;
		}
	}
	return find_alias(name, dir, a, path, err);
}

/* Other names that mean the same model on a hub of models: without its owner, without what only says in which files it
   is. NULL: none (any more). */
static char *shorter_name(char *name)
{
	static const char *const endings[] = {"-hf", "-gguf"};
	char *slash = strchr(name, '/');
	size_t len = strlen(name);

	if (slash && slash != name && !strchr(slash + 1, '/'))
		return slash + 1;
	for (size_t i = 0; !slash && i < ARRAY_LEN(endings); i++) {
		size_t n = strlen(endings[i]);
		if (len > n && strcmp(name + len - n, endings[i]) == 0) {
			name[len - n] = '\0';
			return name;
		}
	}
	return NULL;
}

int card_look_up(const char *name, struct arena *a, const char **path, struct err *err)
{
	char *as = arena_strdup(a, name);
	const char *dir;

	*path = NULL;
	if (datadir_find(a, &dir, err))
		return -1;
	for (char *p = as; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	for (; as && !*path; as = shorter_name(as)) {
		if (find_one(as, dir, a, path, err))
			return -1;
	}
	return 0;
}

int card_find(const char *name, struct arena *a, const char **path, struct err *err)
{
	struct suggest near;
	char text[128], *lower = arena_strdup(a, name);
	const char *dir;

	if (card_look_up(name, a, path, err) || datadir_find(a, &dir, err))
		return -1;
	if (*path)
		return 0;
	for (char *p = lower; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	suggest_init(&near, lower);
	if (offer_all(dir, a, &near, err))
		return -1;
	return err_set(err, ERR_INPUT, "unknown model '%s' and no such path%s", name,
		suggest_text(&near, text, sizeof(text)));
}

/* "a, b, c" */
static const char *join_aliases(const struct yaml_node *root, struct arena *a)
{
	const char *joined = "";

	for (const struct yaml_node *alias = aliases_of(root); alias; alias = alias->next) {
		if (alias->kind == YAML_SCALAR)
			joined = *joined ? arena_printf(a, "%s, %s", joined, alias->text) : alias->text;
	}
	return joined;
}

int model_list(struct arena *a, struct model_card_info **out, size_t *n, struct err *err)
{
	const char *dir, **names;

	if (datadir_find(a, &dir, err) || datadir_list(a, CARDS, SUFFIX, &names, n, err))
		return -1;
	*out = arena_array(a, struct model_card_info, *n);
	for (size_t i = 0; i < *n; i++) {
		struct yaml_node *root;

		if (yaml_read_file(card_path(a, dir, names[i]), a, &root, err))
			return -1;
		(*out)[i].name = names[i];
		(*out)[i].aliases = join_aliases(root, a);
		(*out)[i].description = text_of(root, "description");
	}
	return 0;
}
