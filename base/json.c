#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"

/* Python's json module writes NaN, Infinity and -Infinity, and Hugging Face configs hold some
   ("time_step_limit": [0.0, Infinity]). JSON has no such numbers. Copies text to out, which has room for
   twice as much, with null in their place; returns the length. */
static size_t without_infinities(const char *text, size_t len, char *out)
{
	static const char *const words[] = {"NaN", "-Infinity", "Infinity"};
	bool in_string = false;
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		size_t skip = 0;
		for (size_t w = 0; w < ARRAY_LEN(words) && !in_string && !skip; w++)
			if (len - i >= strlen(words[w]) && !memcmp(text + i, words[w], strlen(words[w])))
				skip = strlen(words[w]);
		if (skip) {
			memcpy(out + n, "null", 4);
			n += 4;
			i += skip;
			continue;
		}
		if (text[i] == '"')
			in_string = !in_string;
		if (in_string && text[i] == '\\' && i + 1 < len)
			out[n++] = text[i++];
		out[n++] = text[i++];
	}
	return n;
}

/* jansson 2.14 skips NUL bytes between tokens. */
static int refuse_nul(const char *text, size_t len, const char *name, struct err *err)
{
	const char *nul = len ? memchr(text, '\0', len) : NULL;
	struct err_pos pos = {name, 1, 1};

	if (!nul)
		return 0;
	for (const char *p = text; p < nul; p++) {
		pos.col++;
		if (*p == '\n') {
			pos.line++;
			pos.col = 1;
		}
	}
	return err_at(err, ERR_INPUT, &pos, "control character U+0000");
}

static json_t *load(const char *text, size_t len, json_error_t *fault)
{
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, fault);

	if (root || (!memmem(text, len, "Infinity", 8) && !memmem(text, len, "NaN", 3)))
		return root;
	char *copy = len <= SIZE_MAX / 2 ? malloc(2 * len) : NULL;
	if (!copy)
		return NULL;
	root = json_loadb(copy, without_infinities(text, len, copy), JSON_REJECT_DUPLICATES, fault);
	free(copy);
	return root;
}

int json_read_any(const char *text, size_t len, const char *name, json_t **out, struct err *err)
{
	json_error_t fault;

	if (refuse_nul(text, len, name, err))
		return -1;
	json_t *root = load(text, len, &fault);
	if (!root) {
		if (json_error_code(&fault) == json_error_out_of_memory)
			return err_set(err, ERR_NOMEM, "out of memory");
		struct err_pos pos = {name, fault.line, fault.column};
		return err_at(err, ERR_INPUT, &pos, "%s", fault.text);
	}
	*out = root;
	return 0;
}

static int must_be_object(const char *name, json_t **out, struct err *err)
{
	struct err_pos pos = {name, 1, 1};

	if (json_is_object(*out))
		return 0;
	json_decref(*out);
	*out = NULL;
	return err_at(err, ERR_INPUT, &pos, "must be an object: { … }");
}

int json_read_text(const char *text, size_t len, const char *name, json_t **out, struct err *err)
{
	return json_read_any(text, len, name, out, err) || must_be_object(name, out, err) ? -1 : 0;
}

int json_read_any_file(const char *path, size_t max_bytes, json_t **out, struct err *err)
{
	char *text;
	size_t len;

	if (file_read_all(path, max_bytes, &text, &len, err))
		return -1;
	int rc = json_read_any(text, len, path, out, err);
	free(text);
	return rc;
}

int json_read_file(const char *path, size_t max_bytes, json_t **out, struct err *err)
{
	return json_read_any_file(path, max_bytes, out, err) || must_be_object(path, out, err) ? -1 : 0;
}

static const char *type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	case JSON_NULL:
		break;
	}
	return "null";
}

/* NULL when the key is missing or null. */
static const json_t *get(const json_t *obj, const char *key)
{
	const json_t *v = json_object_get(obj, key);

	return json_is_null(v) ? NULL : v;
}

static int bad_type(const char *file, const char *key, const char *want, const json_t *v, struct err *err)
{
	struct err_pos pos = {file, 0, 0};

	return err_at(err, ERR_INPUT, &pos, "'%s' must be %s, not %s", key, want, type_name(v));
}

/* A whole number that fits 64 bits; doubles hold every whole number up to 2^53 only, but larger ones that
   they do hold are exact too. */
static bool whole(const json_t *v, uint64_t *out)
{
	if (json_is_integer(v)) {
		*out = (uint64_t)json_integer_value(v);
		return json_integer_value(v) >= 0;
	}
	double real = json_real_value(v);
	if (!(real >= 0 && real < 0x1p64) || real != floor(real))
		return false;
	*out = (uint64_t)real;
	return true;
}

static int get_count(const json_t *v, const char *file, const char *key, uint64_t min, uint64_t max,
		     uint64_t *out, struct err *err)
{
	struct err_pos pos = {file, 0, 0};
	uint64_t n;

	if (!json_is_number(v))
		return bad_type(file, key, "a whole number", v, err);
	if (whole(v, &n) && n >= min && n <= max) {
		*out = n;
		return 0;
	}
	if (json_is_integer(v))
		return err_at(err, ERR_INPUT, &pos,
			"'%s' must be a whole number from %" PRIu64 " to %" PRIu64 ", not %" JSON_INTEGER_FORMAT,
			key, min, max, json_integer_value(v));
	return err_at(err, ERR_INPUT, &pos,
		"'%s' must be a whole number from %" PRIu64 " to %" PRIu64 ", not %.17g", key, min, max,
		json_real_value(v));
}

int json_get_count(const json_t *obj, const char *file, const char *key, uint64_t min, uint64_t max,
		   uint64_t *out, struct err *err)
{
	const json_t *v = get(obj, key);
	struct err_pos pos = {file, 0, 0};

	if (!v)
		return err_at(err, ERR_INPUT, &pos, "has no '%s'", key);
	return get_count(v, file, key, min, max, out, err);
}

int json_get_count_or(const json_t *obj, const char *file, const char *key, uint64_t def, uint64_t min,
		      uint64_t max, uint64_t *out, struct err *err)
{
	const json_t *v = get(obj, key);

	if (v)
		return get_count(v, file, key, min, max, out, err);
	*out = def;
	return 0;
}

int json_get_scaled(const json_t *obj, const char *file, const char *key, int digits, uint64_t *out,
		    struct err *err)
{
	const json_t *v = get(obj, key);
	struct err_pos pos = {file, 0, 0};
	char text[32];

	if (!v)
		return err_at(err, ERR_INPUT, &pos, "has no '%s'", key);
	if (!json_is_number(v))
		return bad_type(file, key, "a number", v, err);
	int n = json_is_integer(v) ? snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(v)) :
				     number_shortest(json_real_value(v), text);
	enum number_fault fault = number_scaled(text, (size_t)n, digits, out);
	if (fault == NUMBER_FINE || fault == NUMBER_INEXACT)
		return 0;
	return err_at(err, ERR_INPUT, &pos, "'%s' must not be %s, but is %s", key,
		fault == NUMBER_NEGATIVE ? "negative" : "so large", text);
}

int json_get_bool_or(const json_t *obj, const char *file, const char *key, bool def, bool *out,
		     struct err *err)
{
	const json_t *v = get(obj, key);

	if (v && !json_is_boolean(v))
		return bad_type(file, key, "true or false", v, err);
	*out = v ? json_is_true(v) : def;
	return 0;
}

int json_get_text_or(const json_t *obj, const char *file, const char *key, const char *def,
		     struct arena *a, const char **out, struct err *err)
{
	const json_t *v = get(obj, key);

	if (v && !json_is_string(v))
		return bad_type(file, key, "a string", v, err);
	*out = v ? arena_strdup(a, json_string_value(v)) : def;
	return 0;
}
