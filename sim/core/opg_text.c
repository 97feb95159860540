#include "sim/core/opg_text.h"

static const char *const memory_kinds[] = {"gpu", "ram", "drive", NULL};
static const char *const device_kinds[] = {"gpu", "cpu", NULL};
static const char *const phases[] = {"prefill", "decode", NULL};
static const char *const flags[] = {"0", "1", NULL};

#define FIELD(S, member, key_, type_, ...) {.key = (key_), .type = (type_), .offset = offsetof(S, member), __VA_ARGS__}
#define NEEDED .def = NULL

static const struct opg_field steps_field[] = {
	FIELD(struct opg_steps, count, "count", OPG_COUNT, NEEDED),
	FIELD(struct opg_steps, first, "first", OPG_COUNT, NEEDED),
	FIELD(struct opg_steps, end, "end", OPG_COUNT, NEEDED),
	FIELD(struct opg_steps, ahead, "ahead", OPG_COUNT, NEEDED),
	FIELD(struct opg_steps, phase, "phase", OPG_CHOICE, .names = phases),
};
static const struct opg_field resource_field[] = {
	FIELD(struct opg_resource, name, "name", OPG_TEXT, NEEDED),
	FIELD(struct opg_resource, rate, "rate", OPG_REAL, NEEDED),
};
static const struct opg_field memory_field[] = {
	FIELD(struct opg_memory, name, "name", OPG_TEXT, NEEDED),
	FIELD(struct opg_memory, kind, "kind", OPG_CHOICE, .names = memory_kinds),
};
static const struct opg_field device_field[] = {
	FIELD(struct opg_device, name, "name", OPG_TEXT, NEEDED),
	FIELD(struct opg_device, kind, "kind", OPG_CHOICE, .names = device_kinds),
	FIELD(struct opg_device, memory, "memory", OPG_INDEX, .of = OPG_MEMORIES),
};
static const struct opg_field unit_field[] = {
	FIELD(struct opg_unit, name, "name", OPG_TEXT, NEEDED),
};
static const struct opg_field buffer_field[] = {
	FIELD(struct opg_buffer, memory, "memory", OPG_INDEX, .of = OPG_MEMORIES),
	FIELD(struct opg_buffer, bytes, "bytes", OPG_COUNT, NEEDED),
	FIELD(struct opg_buffer, role, "role", OPG_CHOICE, .names = opg_role_names),
	FIELD(struct opg_buffer, layer, "layer", OPG_LAYER, .def = "-1"),
	FIELD(struct opg_buffer, group, "group", OPG_TEXT, .def = "-"),
	FIELD(struct opg_buffer, type, "type", OPG_TEXT, .def = "-"),
};

#define OP_FIELD(member, type, ...) FIELD(struct opg_op, member, #member, type, __VA_ARGS__)
#define OP_AFTER OP_FIELD(after, OPG_AFTER, .def = "")
#define OP_LABEL                                                              \
	OP_FIELD(layer, OPG_LAYER, .def = "-1"), OP_FIELD(group, OPG_TEXT, .def = "-"), \
		OP_FIELD(of, OPG_CHOICE, .def = "weights", .names = opg_role_names)
#define OP_LATENCY OP_FIELD(latency, OPG_TIME, .def = "0")
/* amount stands behind bytes, which it is by default. */
#define OP_FLOW                                                                                                    \
	OP_FIELD(unit, OPG_INDEX, .def = "-1", .of = OPG_UNITS), OP_FIELD(stream, OPG_INDEX, .def = "-1", .of = OPG_UNITS), \
		OP_LATENCY, OP_FIELD(bytes, OPG_REAL, .def = "0"), OP_FIELD(amount, OPG_REAL, .def = "bytes"),      \
		FIELD(struct opg_op, hop, "path", OPG_PATH, .def = ""), OP_FIELD(cap, OPG_REAL, .def = "0"),        \
		OP_FIELD(charge, OPG_INDEX, .def = "-1", .of = OPG_RESOURCES), OP_FIELD(at, OPG_COUNT, .def = "0")

static const struct opg_field copy_field[] = {
	OP_AFTER, OP_LABEL, OP_FLOW,
	OP_FIELD(from, OPG_INDEX, .of = OPG_BUFFERS),
	OP_FIELD(to, OPG_INDEX, .of = OPG_BUFFERS),
	OP_FIELD(into, OPG_COUNT, .def = "0"),
	OP_FIELD(pinned, OPG_CHOICE, .def = "1", .names = flags),
	OP_FIELD(via, OPG_INDEX, .def = "-1", .of = OPG_MEMORIES),
};
static const struct opg_field kernel_field[] = {
	OP_AFTER, OP_LABEL, OP_FLOW,
	OP_FIELD(from, OPG_INDEX, .def = "-1", .of = OPG_BUFFERS),
	OP_FIELD(device, OPG_INDEX, .of = OPG_DEVICES),
	OP_FIELD(threads, OPG_COUNT, .def = "0"),
	OP_FIELD(flops, OPG_REAL, .def = "0"),
	OP_FIELD(dtype, OPG_TEXT, .def = "-"),
	OP_FIELD(type, OPG_TEXT, .def = "-"),
};
static const struct opg_field wait_field[] = {OP_AFTER, OP_LABEL, OP_LATENCY};
static const struct opg_field join_field[] = {OP_AFTER, OP_LABEL};
static const struct opg_field step_field[] = {OP_AFTER, OP_FIELD(tokens, OPG_REAL, NEEDED)};

#define LINE(word_, field_) {.word = (word_), .field = (field_), .n = ARRAY_LEN(field_)}

const struct opg_line opg_line[OPG_LINE_N] = {
	[OPG_LINE_STEPS] = LINE("steps", steps_field),
	[OPG_LINE_RESOURCE] = LINE("resource", resource_field),
	[OPG_LINE_MEMORY] = LINE("memory", memory_field),
	[OPG_LINE_DEVICE] = LINE("device", device_field),
	[OPG_LINE_UNIT] = LINE("unit", unit_field),
	[OPG_LINE_BUFFER] = LINE("buffer", buffer_field),
};
const struct opg_line opg_op_line[OPG_KIND_N] = {
	[OPG_COPY] = LINE("copy", copy_field),
	[OPG_KERNEL] = LINE("kernel", kernel_field),
	[OPG_WAIT] = LINE("wait", wait_field),
	[OPG_JOIN] = LINE("join", join_field),
	[OPG_STEP] = LINE("step", step_field),
};
