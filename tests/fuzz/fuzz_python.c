/* The text of a Python call: whatever it is, a map or a message with its place. */
#include <stdint.h>
#include <string.h>

#include "sim/engine/python_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct yaml_node *node)
{
	if (node->pos.line < 1 || node->pos.col < 1 || (node->kind == YAML_SCALAR && !node->text))
		BUG("a node without place or text");
	for (const struct yaml_node *child = node->child; child; child = child->next) {
		if (node->kind == YAML_MAP && !child->key)
			BUG("an entry without a key");
		check(child);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const positional[] = {"", "max_memory", NULL};
	static const struct python_function functions[] = {{.name = "infer_auto_device_map", .positional = positional}};
	const struct err_pos begin = {"fuzz", 1, 1};
	const struct python_function *f;
	struct yaml_node *tree = NULL;
	struct arena a;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	char *text = arena_strndup(&a, (const char *)data, size);
	if (!python_call_parse(text, &begin, functions, 1, &a, &tree, &f, &err))
		check(tree);
	else if (!err.msg[0] || err.line < 1 || err.col < 1)
		BUG("a refusal without message or place");
	if (!python_value_parse(text, &begin, &a, &tree, &err) && tree)
		check(tree);
	arena_release(&a);
	return 0;
}
