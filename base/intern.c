#include "base/intern.h"

#include <string.h>

#include "base/hash.h"

void intern_init(struct intern *t, struct arena *a)
{
	*t = (struct intern){.arena = a};
}

/* The slot that holds name or, when it is not there, the free one where it belongs. */
static uint32_t locate(const struct intern *t, const char *name, size_t len)
{
	uint32_t i = (uint32_t)hash_bytes(HASH_INIT, name, len) & (t->n_slots - 1);

	for (;; i = (i + 1) & (t->n_slots - 1)) {
		if (t->slot[i] == 0)
			return i;
		const char *have = t->name[t->slot[i] - 1];
		if (strncmp(have, name, len) == 0 && have[len] == '\0')
			return i;
	}
}

static void grow(struct intern *t)
{
	uint32_t n_slots = t->n_slots ? 2 * t->n_slots : 64;
	const char **name = arena_array(t->arena, const char *, n_slots / 2);

	if (t->n)
		memcpy(name, t->name, t->n * sizeof(*name));
	t->name = name;
	t->slot = arena_array(t->arena, uint32_t, n_slots);
	t->n_slots = n_slots;
	for (uint32_t k = 0; k < t->n; k++)
		t->slot[locate(t, name[k], strlen(name[k]))] = k + 1;
}

uint32_t intern_add(struct intern *t, const char *name, size_t len)
{
	len = strnlen(name, len);
	if (t->n >= t->n_slots / 2)
		grow(t);

	uint32_t i = locate(t, name, len);
	if (t->slot[i] == 0) {
		t->name[t->n] = arena_strndup(t->arena, name, len);
		t->slot[i] = ++t->n;
	}
	return t->slot[i] - 1;
}

uint32_t intern_find(const struct intern *t, const char *name, size_t len)
{
	if (t->n_slots == 0)
		return INTERN_NONE;

	uint32_t k = t->slot[locate(t, name, strnlen(name, len))];
	return k ? k - 1 : INTERN_NONE;
}
