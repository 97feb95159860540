#include "hw/part_name.h"

#include <ctype.h>
#include <string.h>

static bool is_word(char c)
{
	return isalnum((unsigned char)c);
}

/* Where `word` stands in text, as a whole word at those of its ends that are letters or digits. */
static char *find_word(char *text, const char *word)
{
	size_t len = strlen(word);

	for (char *at = text; len && (at = strstr(at, word)); at++) {
		bool begins = at == text || !is_word(*word) || !is_word(at[-1]);
		if (begins && (!is_word(word[len - 1]) || !is_word(at[len])))
			return at;
	}
	return NULL;
}

/* Every one of them, in one pass: what was put in is not looked at again. */
static char *replace_words(struct arena *a, char *text, const char *word, const char *by)
{
	size_t len = strlen(word), by_len = strlen(by), n = 0;

	for (char *at = text; (at = find_word(at, word)); at += len)
		n++;
	if (!n)
		return text;
	char *out = arena_alloc(a, strlen(text) + n * by_len + 1), *to = out, *from = text;
	for (char *at; (at = find_word(from, word)); from = at + len) {
		memcpy(to, from, (size_t)(at - from));
		to += at - from;
		memcpy(to, by, by_len);
		to += by_len;
	}
	memcpy(to, from, strlen(from) + 1);
	return out;
}

static char *to_lower(struct arena *a, const char *text)
{
	char *copy = arena_strdup(a, text);

	for (char *c = copy; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

/* "96-core", "32-cores": how many is in the name already. */
static void drop_core_count(char *text)
{
	char *core = strstr(text, "-core"), *from = core;

	while (from && from > text && isdigit((unsigned char)from[-1]))
		from--;
	if (core && from < core)
		*from = '\0';
}

static const char *squeeze(struct arena *a, const char *text)
{
	char *out = arena_alloc(a, strlen(text) + 1), *to = out;

	for (; *text; text++)
		if (is_word(*text))
			*to++ = *text;
	*to = '\0';
	return out;
}

/* "NVIDIA GeForce RTX 4090" as the key of a part, squeezed: "rtx4090". */
static const char *part_name(struct arena *a, const struct yaml_node *names, const char *name)
{
	const struct yaml_node *rewrite = yaml_get(names, "rewrite"), *cut = yaml_get(names, "cut");
	char *text = to_lower(a, name), *at;

	drop_core_count(text);
	for (const struct yaml_node *c = cut ? cut->child : NULL; c; c = c->next)
		if (c->text && (at = find_word(text, c->text)))
			*at = '\0';
	for (const struct yaml_node *r = rewrite ? rewrite->child : NULL; r; r = r->next)
		if (r->text)
			text = replace_words(a, text, r->key, r->text);
	return squeeze(a, text);
}

static const char *find_squeezed(struct arena *a, const struct yaml_node *all, const char *name)
{
	for (const struct yaml_node *part = all->child; part; part = part->next)
		if (!strcmp(squeeze(a, part->key), name))
			return part->key;
	return NULL;
}

const char *part_name_find(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name,
	uint64_t bytes)
{
	const char *wanted = part_name(a, names, name), *key = NULL;

	if (bytes)
		key = find_squeezed(a, all, arena_printf(a, "%s%.0fgb", wanted, (double)bytes / (double)(1 << 30)));
	return key || !*wanted ? key : find_squeezed(a, all, wanted);
}

/* "9800x3d" of "ryzen-7-9800x3d": whole words at its end. */
static bool ends_so(const char *key, const char *wanted, struct arena *a)
{
	for (const char *at = strchr(key, '-'); at; at = strchr(at + 1, '-'))
		if (strcmp(squeeze(a, at), wanted) == 0)
			return true;
	return false;
}

const char *part_name_short(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name)
{
	const char *wanted = part_name(a, names, name), *meant = NULL, *found = NULL;

	if (!strpbrk(wanted, "0123456789") || strlen(wanted) < 2)
		return NULL;
	for (const struct yaml_node *part = all->child; part; part = part->next) {
		const char *means = part->kind == YAML_SCALAR ? part->text : part->key;
		if (!ends_so(part->key, wanted, a))
			continue;
		if (meant && strcmp(meant, means) != 0)
			return NULL;
		meant = means;
		found = part->key;
	}
	return found;
}

const char *part_name_near(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name)
{
	const char *wanted = part_name(a, names, name);

	for (const struct yaml_node *part = strlen(wanted) > 2 ? all->child : NULL; part; part = part->next)
		if (strstr(squeeze(a, part->key), wanted))
			return part->key;
	return NULL;
}

/* "12gb" */
static bool is_size(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && strcmp(text + digits, "gb") == 0;
}

const char *part_name_sizes(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name)
{
	const char *wanted = part_name(a, names, name), *list = "";
	int n = 0;

	for (const struct yaml_node *part = *wanted ? all->child : NULL; part; part = part->next) {
		const char *last = strrchr(part->key, '-');
		if (!last || !is_size(last + 1))
			continue;
		const char *bare = arena_strndup(a, part->key, (size_t)(last - part->key));
		if (strcmp(squeeze(a, bare), wanted) == 0 || ends_so(bare, wanted, a))
			list = arena_printf(a, "%s%s%s", list, n++ ? ", " : "", part->key);
	}
	return n > 1 ? list : "";
}
