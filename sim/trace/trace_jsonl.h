/*
 * trace_jsonl.h - native traces as lines of JSON, for people and for jq. Nothing is lost either way.
 *
 *	{"otr":1,"kind":"steps","model":"…","source":"…", … ,"layers":[{"n_expert":8,"n_expert_used":2, …}, …]}
 *	{"phase":"decode","index":1,"n_sequences":1,"n_tokens":1,"n_sampled":1,"context":512,"layers":[
 *	  {"layer":null,"uses":[{"weights":"embed","tokens":1}]},
 *	  {"layer":0,"uses":[{"weights":"attn","tokens":1},{"kv_write":"attn","tokens":1},
 *	    {"kv_read":"attn","tokens":1,"kv_tokens":513,"kv_pairs":513},{"experts":[6,2],"tokens":1}]}, …]}
 *	{"arrival_ns":0,"input_tokens":6758,"output_tokens":500,"session":0,"blocks":[0,1,2]}
 *
 * The first line is the head; each other one (of one line in the file) a step or a request. "layer" null: the whole model.
 * "experts" is a run of uses, "tokens" a number or, where they differ, a list. What an access has beyond what its kind
 * needs is there by name: "expert", "kv_tokens", "kv_pairs", and "group" where experts are not in "experts". Numbers of
 * 2^63 and more, and kv_pairs that JSON cannot hold (as their bits: "0x7ff0000000000000"), are texts.
 */
#ifndef SIM_TRACE_TRACE_JSONL_H
#define SIM_TRACE_TRACE_JSONL_H

#include "sim/trace/otr.h"

/* One line. Whether all could be written, the caller asks of the file. */
void trace_jsonl_put_head(FILE *to, const struct otr_info *info);
void trace_jsonl_put_step(FILE *to, const struct trace_step *step);
void trace_jsonl_put_request(FILE *to, const struct otr_request *r);

struct trace_jsonl;

/* Reads the head. */
int trace_jsonl_open(const char *path, struct arena *a, struct trace_jsonl **out, struct err *err);
void trace_jsonl_close(struct trace_jsonl *t);
const struct otr_info *trace_jsonl_info(const struct trace_jsonl *t);
/* As otr_next_step and otr_next_request: 1, 0 behind the last, -1. */
int trace_jsonl_next_step(struct trace_jsonl *t, struct trace_step *step, struct err *err);
int trace_jsonl_next_request(struct trace_jsonl *t, struct otr_request *request, struct err *err);

#endif
