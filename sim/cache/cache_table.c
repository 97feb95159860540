#include <string.h>

#include "base/suggest.h"
#include "sim/cache/cache_policies.h"

static const struct cache_ops *const policies[] = {
	&cache_lru,
	&cache_lfu,
	&cache_static,
	&cache_belady,
};

const struct cache_ops *cache_policy_at(size_t i)
{
	return i < ARRAY_LEN(policies) ? policies[i] : NULL;
}

int cache_policy_find(const char *name, const struct err_pos *pos, const struct cache_ops **out, struct err *err)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, name);
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		if (strcmp(policies[i]->name, name) == 0) {
			*out = policies[i];
			return 0;
		}
		suggest_offer(&s, policies[i]->name);
	}
	if (suggest_best(&s))
		return err_at(err, ERR_INPUT, pos, "unknown cache policy '%.60s'%s", name,
			suggest_text(&s, near, sizeof(near)));

	char known[128] = "";
	for (size_t i = 0; i < ARRAY_LEN(policies); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "",
			policies[i]->name);
	return err_at(err, ERR_INPUT, pos, "unknown cache policy '%.60s'; known: %s", name, known);
}
