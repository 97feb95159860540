/*
 * cache_policies.h - the policies, one file each; to add one, add it here and to the array in cache_table.c.
 */
#ifndef SIM_CACHE_CACHE_POLICIES_H
#define SIM_CACHE_CACHE_POLICIES_H

#include "sim/cache/cache.h"

extern const struct cache_ops cache_lru, cache_lfu, cache_static, cache_belady;

#endif
