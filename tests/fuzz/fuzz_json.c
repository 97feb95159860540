/*
 * Any bytes as JSON: read, or refused with a message and a line; and every getter on what was read.
 */
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void get_everything(const json_t *root)
{
	struct arena a;
	struct err err;
	uint64_t n;
	bool flag;
	const char *text, *key;
	json_t *value;

	arena_init(&a, NULL, NULL);
	json_object_foreach((json_t *)root, key, value)
	{
		if (!json_get_count(root, "f", key, 3, UINT64_MAX - 3, &n, &err) && (n < 3 || n > UINT64_MAX - 3))
			BUG("'%s' is out of range", key);
		if (json_get_count_or(root, "f", key, 7, 0, 100, &n, &err) && !err.msg[0])
			BUG("no message");
		json_get_bool_or(root, "f", key, true, &flag, &err);
		json_get_text_or(root, "f", key, NULL, &a, &text, &err);
	}
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *root = NULL;
	struct err err = {0};

	if (json_read_text((const char *)data, size, "f", &root, &err)) {
		if (!err.msg[0] || err.code != ERR_INPUT || root)
			BUG("refused without a message");
		return 0;
	}
	get_everything(root);
	json_decref(root);
	return 0;
}
