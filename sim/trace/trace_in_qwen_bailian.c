/*
 * trace_in_qwen_bailian.c - Alibaba's usage traces of Qwen: blocks of 16 tokens, and who answers whom.
 *
 * A turn names the one before it (parent_chat_id, -1: none). The session of a turn is the number of its first turn,
 * and 1, so that it is never 0; a parent that is not in the file stands for the beginning. One number is kept for each
 * turn of the file.
 */
#include <string.h>

#include "base/json.h"
#include "sim/trace/trace_format.h"

#define BLOCK_TOKENS 16

/* Turns to the first turn of theirs: open addressing, linear probing. */
struct roots {
	struct arena *arena;
	struct root {
		uint64_t turn, root; /* each and 1; 0: empty */
	} *slot;
	size_t n, n_slots; /* a power of two */
};

/* The slot of a turn, or the empty one where it belongs. */
static struct root *roots_slot(const struct roots *r, uint64_t turn)
{
	size_t i = (size_t)(turn * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (r->n_slots - 1);

	while (r->slot[i].turn && r->slot[i].turn != turn + 1)
		i = (i + 1) & (r->n_slots - 1);
	return &r->slot[i];
}

static void roots_add(struct roots *r, uint64_t turn, uint64_t root)
{
	if (r->n * 2 >= r->n_slots) {
		struct roots old = *r;
		r->n_slots = old.n_slots ? 2 * old.n_slots : 1024;
		r->slot = arena_array(r->arena, struct root, r->n_slots);
		for (size_t i = 0; i < old.n_slots; i++)
			if (old.slot[i].turn)
				*roots_slot(r, old.slot[i].turn - 1) = old.slot[i];
	}
	struct root *slot = roots_slot(r, turn);
	r->n += !slot->turn;
	*slot = (struct root){turn + 1, root + 1};
}

static bool sniff(const struct trace_head *head)
{
	return trace_head_begins(head, '{') && trace_head_line_has(head, "\"chat_id\"") &&
	       trace_head_line_has(head, "\"parent_chat_id\"");
}

static int read_session(struct trace_import *im, struct roots *roots, const json_t *o, uint64_t *session, struct err *err)
{
	uint64_t id, parent = 0;
	const json_t *before = json_object_get(o, "parent_chat_id");
	bool first = json_is_null(before) || (json_is_integer(before) && json_integer_value(before) == -1);

	if (json_get_count(o, im->path, "chat_id", 0, INT64_MAX, &id, err) ||
		(!first && json_get_count(o, im->path, "parent_chat_id", 0, INT64_MAX, &parent, err)))
		return -1;
	uint64_t root = first ? id : parent;
	const struct root *known = first || !roots->n ? NULL : roots_slot(roots, parent);
	if (known && known->turn)
		root = known->root - 1;
	else if (!first)
		trace_import_remark(im, "turns whose parent is not in the file", 1);
	roots_add(roots, id, root);
	*session = root + 1;
	return 0;
}

static int read_request(struct trace_import *im, struct roots *roots, const json_t *o, struct err *err)
{
	struct otr_request r = {0};

	if (read_session(im, roots, o, &r.session, err) ||
		json_get_scaled(o, im->path, "timestamp", 9, &r.arrival_ns, err) ||
		json_get_count(o, im->path, "input_length", 0, TRACE_MAX_TOKENS, &r.input_tokens, err) ||
		json_get_count(o, im->path, "output_length", 0, TRACE_MAX_TOKENS, &r.output_tokens, err) ||
		trace_import_blocks(im, o, "hash_ids", err))
		return trace_import_at_line(im, err);
	if (im->block.n != (r.input_tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS)
		trace_import_remark(im, "requests whose blocks are not as many as their prompt fills", 1);
	r.block = im->block.at;
	r.n_blocks = im->block.n;
	return trace_import_request(im, &r, err);
}

static int read_all(struct trace_import *im, struct err *err)
{
	struct roots roots = {.arena = im->arena};
	json_t *o;
	int more;

	im->block_tokens = BLOCK_TOKENS;
	while ((more = trace_import_json(im, &o, err)) > 0) {
		int rc = read_request(im, &roots, o, err);
		json_decref(o);
		if (rc)
			return -1;
	}
	return more;
}

const struct trace_format trace_format_qwen_bailian = {
	.name = "qwen-bailian",
	.help = "alibaba-edu/qwen-bailian-usagetraces-anon",
	.example = "{\"chat_id\": 159, \"parent_chat_id\": 55, \"timestamp\": 61.114, \"input_length\": 521, …, \"hash_ids\": […]}",
	.kind = OTR_REQUESTS,
	.sniff = sniff,
	.read = read_all,
};
