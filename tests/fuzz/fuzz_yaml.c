/*
 * Any bytes as YAML: refused with a message and a place inside the text, or read into a tree whose canonical
 * text is read again into the same tree.
 */
#include <string.h>

#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_lines(const uint8_t *data, size_t size)
{
	int n = 1;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

static void check_error(const struct err *err, const uint8_t *data, size_t size)
{
	if (!err->msg[0] || err->code != ERR_INPUT)
		BUG("refused without a message");
	if (size <= 1 << 20 && (err->line < 1 || err->line > count_lines(data, size) + 1 || err->col < 1))
		BUG("'%s' is at %d:%d", err->msg, err->line, err->col);
}

static void check_positions(const struct yaml_node *node, int lines)
{
	if (node->pos.line < 1 || node->pos.line > lines || node->pos.col < 1)
		BUG("a node is at %d:%d of %d lines", node->pos.line, node->pos.col, lines);
	for (const struct yaml_node *c = node->child; c; c = c->next) {
		if (node->kind == YAML_MAP ? !c->key || c->key_pos.line < 1 || c->key_pos.col < 1 : !!c->key)
			BUG("a key or its place is missing");
		check_positions(c, lines);
	}
}

static void check_flow_text(struct arena *a, const struct yaml_node *root, bool sorted)
{
	struct yaml_node *again;
	struct err err;
	const char *text = yaml_flow_text(a, root, sorted);

	if (strlen(text) > 1 << 20)
		return;
	if (yaml_read_text(text, strlen(text), "again", a, &again, &err))
		BUG("%s\nis refused: %s", text, err.msg);
	const char *second = yaml_flow_text(a, again, sorted);
	if (strcmp(text, second))
		BUG("%s\nis read as\n%s", text, second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct yaml_node *root = NULL;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	if (yaml_read_text((const char *)data, size, "f", &a, &root, &err)) {
		check_error(&err, data, size);
	} else {
		check_positions(root, count_lines(data, size) + 1);
		check_flow_text(&a, root, false);
		check_flow_text(&a, root, true);
		yaml_overlay(&a, root, root);
		yaml_set_path(&a, root, "a.b", "[1, x]", "c", NULL, &err);
		check_flow_text(&a, root, false);
	}
	arena_release(&a);
	return 0;
}
