/*
 * part_name.h - parts by the names that systems and people give them; names is hw/probe.yaml, all are a kind's parts.
 *
 *	"NVIDIA GeForce RTX 4070 Laptop GPU"	rtx-4070-laptop		part_name_find
 *	"9800X3D"				ryzen-7-9800x3d		part_name_short
 */
#ifndef HW_PART_NAME_H
#define HW_PART_NAME_H

#include "base/yaml.h"

/* Its key; NULL when there is none. bytes, when not 0, is the size of its memory, which may be part of the key. */
const char *part_name_find(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name,
			   uint64_t bytes);
/* The one part one of whose names ends so, by that name; NULL when there is none or more than one. */
const char *part_name_short(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name);
/* The first part whose name has all of it; NULL when there is none. */
const char *part_name_near(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name);
/* "rtx-3060-12gb, rtx-3060-8gb": the parts of that name with a size of memory behind it; "" when there are fewer than two. */
const char *part_name_sizes(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name);

#endif
