#include "sim/trace/trace_format.h"

#include <string.h>

#include "base/suggest.h"

extern const struct trace_format trace_format_azure, trace_format_burstgpt, trace_format_mooncake,
	trace_format_qwen_bailian, trace_format_aiperf_sessions, trace_format_sharegpt, trace_format_vllm_requests,
	trace_format_vidur, trace_format_route, trace_format_moe_csv, trace_format_moe_cache, trace_format_vllm_routing,
	trace_format_sglang;

const struct trace_format *const trace_format_table[] = {
	&trace_format_azure,
	&trace_format_burstgpt,
	&trace_format_mooncake,
	&trace_format_qwen_bailian,
	&trace_format_aiperf_sessions,
	&trace_format_sharegpt,
	&trace_format_vllm_requests,
	&trace_format_vidur,
	&trace_format_route,
	&trace_format_moe_csv,
	&trace_format_moe_cache,
	&trace_format_vllm_routing,
	&trace_format_sglang,
};
const size_t trace_format_table_n = ARRAY_LEN(trace_format_table);

/* Files that are at hand where traces are, and are none. */
static const struct {
	const char *has, *message;
} no_traces[] = {
	{"\"expert_popularity\"", "counts how often each expert was used, not when: 'offsim trace gen --popularity' takes it"},
	{"\"ranked\"", "ranks experts by use, and is no trace"},
};

const struct trace_format *trace_format_find(const char *name, struct err *err)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, name);
	for (size_t i = 0; i < trace_format_table_n; i++) {
		if (strcmp(trace_format_table[i]->name, name) == 0)
			return trace_format_table[i];
		suggest_offer(&s, trace_format_table[i]->name);
	}
	err_set(err, ERR_USAGE, "unknown format '%s'%s", name, suggest_text(&s, near, sizeof(near)));
	return NULL;
}

const struct trace_format *trace_format_guess(const char *path, const struct trace_head *head, struct err *err)
{
	const struct trace_format *found = NULL;
	struct err_pos pos = {path, 1, 1};

	for (size_t i = 0; i < trace_format_table_n; i++) {
		if (!trace_format_table[i]->sniff(head))
			continue;
		if (found) {
			err_at(err, ERR_INPUT, &pos, "looks like %s and like %s: say which with --format", found->name,
				trace_format_table[i]->name);
			return NULL;
		}
		found = trace_format_table[i];
	}
	for (size_t i = 0; !found && i < ARRAY_LEN(no_traces); i++) {
		if (trace_head_has(head, no_traces[i].has)) {
			err_at(err, ERR_INPUT, &pos, "%s", no_traces[i].message);
			return NULL;
		}
	}
	if (!found)
		err_at(err, ERR_INPUT, &pos, "looks like no known format ('offsim trace import --help' lists them)");
	return found;
}

bool trace_head_line_has(const struct trace_head *head, const char *text)
{
	return memmem(head->text, head->first_len, text, strlen(text)) != NULL;
}

bool trace_head_has(const struct trace_head *head, const char *text)
{
	return memmem(head->text, head->len, text, strlen(text)) != NULL;
}

bool trace_head_begins(const struct trace_head *head, char c)
{
	size_t i = 0;

	while (i < head->len && strchr(" \t\r\n", head->text[i]) && head->text[i])
		i++;
	return i < head->len && head->text[i] == c;
}
