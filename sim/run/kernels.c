#include "sim/run/kernels.h"

#include <string.h>

#include "base/param.h"
#include "base/suggest.h"
#include "sim/engine/engine_table.h"

#define PREFIX "kernels."

struct written {
	double value, spread;
	const char *source;
};

static int read_number(const struct yaml_node *node, const struct hw_num_ref *ref, struct arena *a, struct err *err)
{
	bool time = ref->dim == UNIT_TIME;
	const struct param table[] = {
		{"value", PARAM_KIND_REAL, (enum unit_dim)ref->dim, offsetof(struct written, value), NULL, true, 0,
			time ? 3600 : ref->dim == UNIT_FRACTION ? 1e3 : 1e21, NULL, ""},
		PARAM_REAL(struct written, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
		PARAM_TEXT(struct written, source, "source", NULL, ""),
	};
	struct written w;

	if (param_fill(table, ARRAY_LEN(table), node, node->key, &w, a, err))
		return -1;
	*ref->num = (struct hw_num){.measured = w.value, .spread = w.spread,
		.source = w.source ? w.source : arena_printf(a, "%s:%d", node->pos.file, node->pos.line)};
	return 0;
}

static int apply_one(const struct yaml_node *node, const struct hw_num_ref *ref, size_t n, struct arena *a, struct err *err)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, node->key);
	for (size_t i = 0; i < n; i++) {
		const char *name = ref[i].name + strlen(PREFIX);
		if (strcmp(name, node->key) == 0)
			return read_number(node, &ref[i], a, err);
		suggest_offer(&s, name);
	}
	return err_at(err, ERR_INPUT, &node->key_pos, "unknown key '%s' in kernels%s", node->key,
		suggest_text(&s, near, sizeof(near)));
}

/* An engine whose kernels have no file is a mistake, whichever engine runs. */
static int check_engine(const struct yaml_node *node, struct err *err)
{
	const struct engine_ops *e;
	struct suggest s;
	char near[128];

	suggest_init(&s, node->key);
	for (size_t i = 0; (e = engine_at(i)); i++) {
		if (!e->kernels)
			continue;
		if (strcmp(e->kernels, node->key) == 0)
			return node->kind == YAML_MAP ? 0 :
				err_at(err, ERR_INPUT, &node->pos, "kernels of an engine are a map: {cpu.read: {value: 72%%}}");
		suggest_offer(&s, e->kernels);
	}
	return err_at(err, ERR_INPUT, &node->key_pos, "no engine has kernels of the name '%s'%s", node->key,
		suggest_text(&s, near, sizeof(near)));
}

int kernels_apply(const struct hw_machine *m, const char *name, struct cost *c, struct arena *a, struct err *err)
{
	struct hw_num_ref *ref;
	size_t n = cost_numbers(c, a, &ref);

	if (!m->kernels)
		return 0;
	for (const struct yaml_node *engine = m->kernels->child; engine; engine = engine->next) {
		if (check_engine(engine, err))
			return -1;
		if (strcmp(engine->key, name) != 0)
			continue;
		for (const struct yaml_node *node = engine->child; node; node = node->next)
			if (apply_one(node, ref, n, a, err))
				return -1;
	}
	return 0;
}
