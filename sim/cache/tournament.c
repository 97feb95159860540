#include "sim/cache/tournament.h"

/* Of who does not take part. */
static const struct tournament_key out_of_it = {UINT64_MAX, UINT64_MAX};

void tournament_init(struct tournament *t, uint32_t n, struct arena *a)
{
	size_t width = 1;

	while (width < n)
		width *= 2;
	t->width = (uint32_t)width;
	t->key = arena_array(a, struct tournament_key, width);
	t->winner = arena_array(a, uint32_t, 2 * width);
	for (size_t i = 0; i < width; i++) {
		t->key[i] = out_of_it;
		t->winner[width + i] = (uint32_t)i;
	}
	for (size_t node = width; node-- > 1;)
		t->winner[node] = t->winner[2 * node];
}

static inline uint32_t lesser(const struct tournament *t, uint32_t a, uint32_t b)
{
	const struct tournament_key *x = &t->key[a], *y = &t->key[b];

	return y->major < x->major || (y->major == x->major && y->minor < x->minor) ? b : a;
}

static void set(struct tournament *t, uint32_t item, struct tournament_key key)
{
	t->key[item] = key;
	for (size_t node = ((size_t)t->width + item) / 2; node; node /= 2) {
		uint32_t w = lesser(t, t->winner[2 * node], t->winner[2 * node + 1]);
		if (w == t->winner[node] && w != item)
			break;
		t->winner[node] = w;
	}
}

void tournament_set(struct tournament *t, uint32_t item, uint64_t major, uint64_t minor)
{
	set(t, item, (struct tournament_key){major, minor});
}

void tournament_remove(struct tournament *t, uint32_t item)
{
	set(t, item, out_of_it);
}

uint32_t tournament_first(const struct tournament *t)
{
	uint32_t first = t->winner[1];

	return t->key[first].major == UINT64_MAX ? TOURNAMENT_NONE : first;
}
