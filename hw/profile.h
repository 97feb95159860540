/*
 * profile.h - inside hw/: what the files that turn YAML into a machine share.
 *
 *	profile_resolve.c   names, paths, from: and set:   ->  one tree
 *	parts.c             hw/parts: a part's map by name
 *	profile_family.c        one that is a row, with its family
 *	profile_load.c      tree + parts                   ->  struct hw_machine
 *	profile_link.c          its links
 *	profile_number.c        its numbers
 *	profile_keys.{h,c}      the keys they may have
 */
#ifndef HW_PROFILE_H
#define HW_PROFILE_H

#include "base/param.h"
#include "hw/hw.h"

/* What one load needs again and again. */
struct profile {
	struct arena *a;
	const char *datadir;                 /* NULL until it is needed */
	char *text[HW_PART_N];               /* each file of parts; NULL until it is needed */
	struct yaml_node known[HW_PART_N];   /* maps: those of its parts that were parsed alone */
	struct yaml_node *called[HW_PART_N]; /* map: what its parts are called; NULL until it is needed */
	struct yaml_node *parts[HW_PART_N];  /* its root, which takes longer; NULL until it is needed */
	struct yaml_node *families[HW_PART_N], *names; /* families of parts, hw/probe.yaml; NULL until needed */
};

int profile_datadir(struct profile *p, struct err *err);

/* The part called name->text, or that people call so ("9800X3D"); unknown ones are errors at name's place with the nearest.
   Only that part is parsed. A part that is a single word is another name of the part it names; *key is the name it was
   found under. A part that names its family is written out. */
int profile_part(struct profile *p, enum hw_part_kind kind, const struct yaml_node *name, const char **key,
		 const struct yaml_node **out, struct err *err);
/* hw/probe.yaml: how systems call the parts. */
int profile_names(struct profile *p, const struct yaml_node **out, struct err *err);
/* The usual memory of a processor whose family says it: {type: ddr5, channels: 2, rate: 5600MT/s}; NULL when not. */
int profile_modules(struct profile *p, const char *cpu, const struct yaml_node **out, struct err *err);
/* What of it the files above need: *part written out when it names a family; and what its family says of memory. */
int profile_family_expand(struct profile *p, enum hw_part_kind kind, const struct yaml_node **part, struct err *err);
int profile_family_modules(struct profile *p, const struct yaml_node *part, const struct yaml_node **out, struct err *err);
/* What all parts of a kind are called, as the children of a map: one that is another's name has that one's as its text,
   others have nothing. Parsing them takes a hundred times as long. */
int profile_part_keys(struct profile *p, enum hw_part_kind kind, const struct yaml_node **out, struct err *err);
/* All parts of a kind, as the children of a map. */
int profile_parts(struct profile *p, enum hw_part_kind kind, const struct yaml_node **out, struct err *err);

#define PROFILE_MAX_BYTES 1e18

/* As hw_machine_resolve. *file is the file that node named, NULL when it is a map. */
int profile_resolve(struct profile *p, const struct yaml_node *node, struct yaml_node **out,
		    const char **file, struct err *err);

/* Which device a top-level key of a machine stands for; false when it is none ("gpu8", "from"). */
bool profile_device_key(const char *key, enum hw_part_kind *kind, int *index);
#define PROFILE_MAX_GPUS 16
#define PROFILE_MAX_DRIVES 8

/* A map node in the arena, and a scalar node, both written at pos. */
struct yaml_node *profile_new_map(struct arena *a, const char *key, const struct err_pos *pos);
struct yaml_node *profile_new_scalar(struct arena *a, const char *key, const char *text,
				     const struct err_pos *pos);

/*
 * A number is read in layers: what the part says, then what the machine says of it. A map extends (its
 * `measured` goes with the part's `peak`), a single value replaces all:
 *
 *	links.yaml pcie.generations.4   h2d: {measured: 25GB/s, …}     scaled to the width
 *	links.yaml pcie                 latency: {…}
 *	gpus.yaml  rtx-4090.link        {part: pcie, gen: 4, width: 16}
 *	machine    gpu0.link            {h2d: 21GB/s}
 */
struct profile_layers {
	const char *name; /* "gpu0" */
	const struct yaml_node *part, *own, *merged; /* maps; own is the machine's, merged is own over part */
};

/* Finds the part that own names; default_part may be NULL: then the machine has to state everything. */
int profile_layers_find(struct profile *p, enum hw_part_kind kind, const struct yaml_node *own,
			const char *default_part, struct profile_layers *l, struct err *err);

/* Lays one number as written (NULL: not written) over what is there. what is its dotted name. */
int profile_rate(struct profile *p, const struct yaml_node *node, enum unit_dim dim, const char *what,
		 struct hw_rate *rate, struct err *err);
int profile_num(struct profile *p, const struct yaml_node *node, enum unit_dim dim, const char *what,
		struct hw_num *num, struct err *err);
/* Both layers of l.key. */
int profile_layered_rate(struct profile *p, const struct profile_layers *l, const char *key,
			 struct hw_rate *rate, struct err *err);
int profile_layered_num(struct profile *p, const struct profile_layers *l, const char *key,
			enum unit_dim dim, struct hw_num *num, struct err *err);
/* The flops of a part are multiplied by scale; those that the machine states are of all cores. */
int profile_flops(struct profile *p, const struct profile_layers *l, double scale, struct hw_num *flops,
		  struct err *err);
void profile_scale(struct hw_num *num, double by);

/* Errors at the machine's own place. */
int profile_must_be_map(const struct yaml_node *node, const char *what, struct err *err);
int profile_missing(const struct profile_layers *l, const char *key, const char *example, struct err *err);
int profile_need_num(const struct profile_layers *l, const struct hw_num *num, const char *key,
		     const char *example, struct err *err);

/* What stands under `link` of a GPU's part and of the machine, as one map. */
int profile_merge_native(struct profile *p, const struct profile_layers *gpu, const struct yaml_node **out,
			 struct err *err);
int profile_load_link(struct profile *p, const struct yaml_node *own, const char *name, struct hw_link *link,
		      struct err *err);
/* The CPU copies into the driver's buffer for its pageable copies, unless the machine says how fast those are. */
void profile_link_copied_by(struct profile *p, const struct hw_device *cpu, struct hw_link *link);

/* One part alone as a device (links and memories without their ends), for `hw list --parts`. */
struct profile_part_values {
	struct hw_memory memory;
	struct hw_link link;
	struct hw_device device;
	const char *description;
	const char *native_link; /* GPU: "pcie-4x16", or the link part's name */
};
int profile_part_values(struct profile *p, enum hw_part_kind kind, const struct yaml_node *part,
			struct profile_part_values *out, struct err *err);

#endif
