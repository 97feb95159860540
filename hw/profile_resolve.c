#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/datadir.h"
#include "base/suggest.h"
#include "hw/profile.h"

/* A profile built from a profile built from …: longer is a mistake, or an attack on the stack. */
#define MAX_FROM 16

/* One profile on the way from the scenario to the one that starts from nothing. */
struct link {
	const char *name; /* as it was written */
	dev_t dev;	  /* the same file may have many names */
	ino_t ino;
	int depth;
	const struct link *user; /* who named it; NULL for the first */
};

struct yaml_node *profile_new_map(struct arena *a, const char *key, const struct err_pos *pos)
{
	struct yaml_node *node = arena_new(a, struct yaml_node);

	*node = (struct yaml_node){.kind = YAML_MAP, .pos = *pos, .key = key, .key_pos = *pos};
	return node;
}

struct yaml_node *profile_new_scalar(struct arena *a, const char *key, const char *text,
	const struct err_pos *pos)
{
	struct yaml_node *node = profile_new_map(a, key, pos);

	node->kind = YAML_SCALAR;
	node->text = text;
	return node;
}

static struct yaml_node *copy_tree(struct arena *a, const struct yaml_node *node)
{
	struct yaml_node *copy = arena_new(a, struct yaml_node);
	struct yaml_node **tail = &copy->child;

	*copy = *node;
	copy->next = NULL;
	copy->child = NULL;
	for (const struct yaml_node *c = node->child; c; c = c->next, tail = &(*tail)->next)
		*tail = copy_tree(a, c);
	return copy;
}

static void drop_key(struct yaml_node *map, const char *key)
{
	for (struct yaml_node **at = &map->child; *at; at = &(*at)->next)
		if (!strcmp((*at)->key, key)) {
			*at = (*at)->next;
			return;
		}
}

static void add_child(struct yaml_node *map, struct yaml_node *child)
{
	struct yaml_node **tail = &map->child;

	while (*tail)
		tail = &(*tail)->next;
	*tail = child;
}

bool profile_device_key(const char *key, enum hw_part_kind *kind, int *index)
{
	static const struct {
		const char *stem;
		enum hw_part_kind kind;
		int max;
	} devices[] = {{"gpu", HW_PART_GPU, PROFILE_MAX_GPUS}, {"cpu", HW_PART_CPU, 1},
		{"nvme", HW_PART_NVME, PROFILE_MAX_DRIVES}};

	*index = 0;
	*kind = HW_PART_DRAM;
	if (!strcmp(key, "ram"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		size_t len = strlen(devices[i].stem);
		int n = 0;
		if (strncmp(key, devices[i].stem, len) || !key[len] || (key[len] == '0' && key[len + 1]))
			continue;
		for (key += len; *key >= '0' && *key <= '9' && n < devices[i].max; key++)
			n = 10 * n + (*key - '0');
		if (*key || n >= devices[i].max)
			return false;
		*kind = devices[i].kind;
		*index = n;
		return true;
	}
	return false;
}

/* "gpu0: rtx-4090" becomes "gpu0: {part: rtx-4090}", so that what is laid over it extends it. */
static void expand_scalar(struct arena *a, struct yaml_node *node)
{
	if (node->kind != YAML_SCALAR)
		return;
	node->child = profile_new_scalar(a, "part", node->text, &node->pos);
	node->child->quoted = node->quoted;
	node->kind = YAML_MAP;
	node->text = NULL;
	node->quoted = false;
}

static void expand_scalars(struct arena *a, struct yaml_node *root)
{
	enum hw_part_kind kind;
	int index;

	for (struct yaml_node *node = root->child; node; node = node->next) {
		if (!profile_device_key(node->key, &kind, &index) && strcmp(node->key, "nvlink") != 0)
			continue;
		expand_scalar(a, node);
		struct yaml_node *link = kind == HW_PART_GPU ? yaml_get(node, "link") : NULL;
		if (link)
			expand_scalar(a, link);
	}
}

/* Maps below set: are more of the path, so that they extend what is there as maps do everywhere. */
static int apply_set(struct arena *a, struct yaml_node *root, const struct yaml_node *set, const char *path,
	struct err *err)
{
	for (const struct yaml_node *node = set->child; node; node = node->next) {
		const char *at = *path ? arena_printf(a, "%s.%s", path, node->key) : node->key;
		if (node->kind == YAML_MAP) {
			if (apply_set(a, root, node, at, err))
				return -1;
		} else if (yaml_set_path(
				   a, root, at, yaml_flow_text(a, node, false), "part", &node->pos, err)) {
			return -1;
		}
	}
	return 0;
}

static bool is_path(const char *text)
{
	size_t len = strlen(text);

	return strchr(text, '/') || (len > 5 && !strcmp(text + len - 5, ".yaml"));
}

/* A path is taken from the folder of the file it is written in. */
static const char *beside(struct arena *a, const char *text, const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	if (*text == '/' || !slash)
		return text;
	return arena_printf(a, "%.*s/%s", (int)(slash - file), file, text);
}

static int unknown_machine(struct profile *p, const struct yaml_node *node, struct err *err)
{
	const char **names;
	size_t n;
	struct suggest near;
	char hint[128];

	if (datadir_list(p->a, "hw/machines", ".yaml", &names, &n, err))
		return -1;
	suggest_init(&near, node->text);
	for (size_t i = 0; i < n; i++)
		suggest_offer(&near, names[i]);
	if (suggest_best(&near))
		suggest_text(&near, hint, sizeof(hint));
	else
		snprintf(hint, sizeof(hint), "; see offsim hw list");
	return err_at(err, ERR_INPUT, &node->pos, "unknown machine '%.100s'%s", node->text, hint);
}

/* The file that node names. Only plain files: a pipe or a device would be read for ever. */
static int find_file(struct profile *p, const struct yaml_node *node, const char **path, struct stat *st,
	struct err *err)
{
	bool named = !is_path(node->text);

	if (!*node->text)
		return err_at(err, ERR_INPUT, &node->pos, "no machine is named");
	if (strlen(node->text) >= PATH_MAX)
		return err_at(err, ERR_INPUT, &node->pos, "the machine's name is longer than a path may be");
	if (named && profile_datadir(p, err))
		return -1;
	*path = named ? arena_printf(p->a, "%s/hw/machines/%s.yaml", p->datadir, node->text)
		      : beside(p->a, node->text, node->pos.file);
	if (stat(*path, st))
		return named ? unknown_machine(p, node, err)
			     : err_at(err, ERR_INPUT, &node->pos, "there is no machine file '%.200s'", *path);
	if (!S_ISREG(st->st_mode))
		return err_at(err, ERR_INPUT, &node->pos, "machine '%.200s' is not a plain file", *path);
	return 0;
}

/* "a -> b -> a" for the message, oldest first. */
static const char *chain_text(struct arena *a, const struct link *last)
{
	const char *text = last->name;

	for (const struct link *l = last->user; l; l = l->user)
		text = arena_printf(a, "%.80s -> %s", l->name, text);
	return text;
}

static int check_chain(struct arena *a, const struct link *link, const struct err_pos *pos, struct err *err)
{
	for (const struct link *l = link->user; l; l = l->user)
		if (l->dev == link->dev && l->ino == link->ino)
			return err_at(err, ERR_INPUT, pos, "machine '%.80s' is built from itself: %.400s",
				link->name, chain_text(a, link));
	if (link->depth > MAX_FROM)
		return err_at(err, ERR_INPUT, pos, "more than %d machines are built from each other: %.400s",
			MAX_FROM, chain_text(a, link));
	return 0;
}

/* "hw/machines/x.yaml" -> "x" */
static const char *stem(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	return dot && dot > base ? arena_strndup(a, base, (size_t)(dot - base)) : base;
}

static int resolve_map(struct profile *p, const struct yaml_node *map, const struct link *user,
	struct yaml_node **out, struct err *err);

static int resolve_named(struct profile *p, const struct yaml_node *node, const struct link *user,
	struct yaml_node **out, const char **file, struct err *err)
{
	struct link link = {.name = node->text, .user = user, .depth = user ? user->depth + 1 : 1};
	struct yaml_node *root;
	struct stat st;

	if (find_file(p, node, file, &st, err))
		return -1;
	link.dev = st.st_dev;
	link.ino = st.st_ino;
	if (check_chain(p->a, &link, &node->pos, err) || yaml_read_file(*file, p->a, &root, err) ||
		resolve_map(p, root, &link, out, err))
		return -1;
	drop_key(*out, "name");
	add_child(*out, profile_new_scalar(p->a, "name", stem(p->a, *file), &root->pos));
	return 0;
}

static int resolve_from(struct profile *p, const struct yaml_node *from, const struct link *user,
	struct yaml_node **out, struct err *err)
{
	const char *file;

	if (from->kind != YAML_SCALAR)
		return err_at(err, ERR_INPUT, &from->pos, "'from' must be the name or the file of a machine");
	return resolve_named(p, from, user, out, &file, err);
}

/* What the base says of itself is not true of it as changed. */
static void describe_change(struct arena *a, struct yaml_node *map, const struct yaml_node *from)
{
	const struct yaml_node *was = yaml_get(map, "description");
	bool known = was && was->kind == YAML_SCALAR;
	const char *text = arena_printf(a, "changed from %s%s%s", from->text, known ? ": " : "", known ? was->text : "");

	drop_key(map, "description");
	add_child(map, profile_new_scalar(a, "description", text, &from->pos));
}

static int resolve_map(struct profile *p, const struct yaml_node *map, const struct link *user,
	struct yaml_node **out, struct err *err)
{
	const struct yaml_node *from = yaml_get(map, "from");
	const struct yaml_node *set = yaml_get(map, "set");
	struct yaml_node *base, *own = copy_tree(p->a, map);

	drop_key(own, "from");
	drop_key(own, "set");
	if (from && resolve_from(p, from, user, &base, err))
		return -1;
	/* Copied again: the overlay shares nodes with both, and set: changes them. */
	*out = from ? copy_tree(p->a, yaml_overlay(p->a, base, own)) : own;
	if (from && !yaml_get(own, "description"))
		describe_change(p->a, *out, from);
	expand_scalars(p->a, *out);
	if (set && set->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, &set->pos, "'set' must be a map such as {gpu0.link.gen: 3}");
	if (set && apply_set(p->a, *out, set, "", err))
		return -1;
	expand_scalars(p->a, *out);
	return 0;
}

int profile_resolve(struct profile *p, const struct yaml_node *node, struct yaml_node **out,
	const char **file, struct err *err)
{
	*file = NULL;
	switch (node->kind) {
	case YAML_SCALAR:
		return resolve_named(p, node, NULL, out, file, err);
	case YAML_MAP:
		return resolve_map(p, node, NULL, out, err);
	case YAML_LIST:
		break;
	}
	return err_at(err, ERR_INPUT, &node->pos,
		"a machine is a name, a file, or a map such as {gpu0: rtx-4090, …}; this is a list");
}

int hw_machine_resolve(const struct yaml_node *node, struct arena *a, struct yaml_node **out, struct err *err)
{
	struct profile p = {.a = a};
	const char *file;

	return profile_resolve(&p, node, out, &file, err);
}
