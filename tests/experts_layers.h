/*
 * experts_layers.h - a model of which only its routed experts count.
 */
#ifndef TESTS_EXPERTS_LAYERS_H
#define TESTS_EXPERTS_LAYERS_H

#include "base/arena.h"
#include "models/model.h"

/* Layers of n_expert, of which a token uses n_used. */
static inline struct model *experts_layers(struct arena *a, uint32_t n_layer, uint32_t n_expert, uint32_t n_used)
{
	struct model *m = arena_new(a, struct model);

	*m = (struct model){.name = "made", .n_layer = n_layer, .layers = arena_array(a, struct model_layer, n_layer)};
	for (uint32_t i = 0; i < n_layer; i++) {
		m->layers[i].n_expert = n_expert;
		m->layers[i].n_expert_used = n_used;
	}
	return m;
}

#endif
