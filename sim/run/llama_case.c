#include "sim/run/llama_case.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "models/model.h"

/* Parameters are counted exactly, but for tables that a file may hold or not (rope factors); a table for people has
   three digits. */
#define PARAMS_TOLERANCE 0.003
#define PARAMS_TOLERANCE_ROUNDED 0.006
/* Bytes of the tensors against what a card takes at that quantization: mixes of the same name differ by less. */
#define SIZE_TOLERANCE 0.12

struct card {
	const char *name;
	const char *plain; /* its letters and digits */
	const char *architecture;
	double params;
};

/* What a card's tensors take at a quantization, or why they cannot have it. */
struct size {
	const char *model, *quant;
	double bytes;
	const char *fault;
};

struct llama_cards {
	struct card *at; /* those that were named come first */
	size_t n, n_named;
	struct {
		VEC(struct size);
	} sizes; /* as they were asked for */
};

/* Letters and digits, in lower case. */
static const char *plain(struct arena *a, const char *text)
{
	char *copy = arena_strdup(a, text), *to = copy;

	for (const char *p = text; *p; p++)
		if (isalnum((unsigned char)*p))
			*to++ = (char)tolower((unsigned char)*p);
	*to = '\0';
	return copy;
}

static int load_card(struct llama_cards *cards, const char *name, struct arena *a, struct err *err)
{
	struct arena_mark mark = arena_mark(a);
	struct model *m;

	if (model_load(name, NULL, a, &m, err))
		return -1;
	double params = (double)m->params_total;
	const char *architecture = m->architecture; /* a row of the table of architectures */
	arena_rewind(a, mark);
	cards->at[cards->n++] = (struct card){name, plain(a, name), architecture, params};
	return 0;
}

int llama_cards_load(const char *const *named, size_t n_named, struct arena *a, struct llama_cards **out, struct err *err)
{
	struct model_card_info *info;
	size_t n;

	*out = arena_new(a, struct llama_cards);
	if (model_list(a, &info, &n, err))
		return -1;
	(*out)->at = arena_array(a, struct card, n_named + n);
	(*out)->n_named = n_named;
	for (size_t i = 0; i < n_named + n; i++)
		if (load_card(*out, i < n_named ? llama_case_named(a, named[i]) : info[i - n_named].name, a, err))
			return -1;
	return 0;
}

const char *llama_case_quoted(struct arena *a, const char *text)
{
	char *out = arena_array(a, char, 2 * strlen(text) + 3), *to = out;

	*to++ = '"';
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	*to++ = '"';
	return out;
}

const char *llama_case_named(struct arena *a, const char *name_or_path)
{
	static const char *const suffixes[] = {".yaml", ".json", ".gguf", ".safetensors"};
	size_t len = strlen(name_or_path);
	bool path = strchr(name_or_path, '/') != NULL;

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		path |= len > strlen(suffixes[i]) && strcmp(name_or_path + len - strlen(suffixes[i]), suffixes[i]) == 0;
	char *real = path ? realpath(name_or_path, NULL) : NULL;
	const char *absolute = real ? arena_strdup(a, real) : name_or_path;
	free(real);
	return absolute;
}

/* ---- the model ---- */

static bool is_type_word(const char *word, size_t len)
{
	static const char *const whole[] = {"f16", "bf16", "f32", "mxfp4", "nvfp4"};
	const char *digits = word + strspn(word, "iqt");

	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (len == strlen(whole[i]) && strncmp(word, whole[i], len) == 0)
			return true;
	return (word[0] == 'q' || strncmp(word, "iq", 2) == 0 || strncmp(word, "tq", 2) == 0) && len > 2 &&
		isdigit((unsigned char)*digits) && memchr(word, '_', len);
}

/* "qwen2 7B Q4_K - Medium" -> "q4_k_m", "llama 7B mostly Q4_0" -> "q4_0", "… IQ3_S mix - 3.66 bpw" -> "iq3_m"; NULL: none. */
static const char *quant_of(const char *model_type, struct arena *a)
{
	char *text = arena_strdup(a, model_type), *type = NULL;
	size_t len = 0;

	for (char *p = text; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	for (char *word = text; *word; word += strcspn(word, " ") + (word[strcspn(word, " ")] != '\0')) {
		size_t n = strcspn(word, " ");
		if (is_type_word(word, n)) {
			type = word;
			len = n;
		}
	}
	if (!type)
		return NULL;
	const char *behind = type + len + strspn(type + len, " ");
	const char *size = strncmp(behind, "- small", 7) == 0 ? "_s" : strncmp(behind, "- medium", 8) == 0 ? "_m" :
		strncmp(behind, "- large", 7) == 0 ? "_l" : "";
	if (strncmp(type, "q2_k", 4) == 0 && *size == '_' && size[1] == 'm')
		size = "";
	if (strncmp(behind, "mix", 3) == 0 && strncmp(type, "iq3_s", 5) == 0)
		return "iq3_m";
	return arena_printf(a, "%.*s%s", (int)len, type, size);
}

/* Of the cards first .. last - 1 with so many parameters: the one whose name is in the file's, else of the same
   architecture, else the first. */
static const struct card *find_card(const struct bench_llama *row, const struct llama_cards *cards, size_t first,
	size_t last, struct arena *a)
{
	const char *file = plain(a, row->model_filename);
	size_t arch_len = strcspn(row->model_type, " "), best_score = 0;
	double tolerance = row->rounded ? PARAMS_TOLERANCE_ROUNDED : PARAMS_TOLERANCE;
	const struct card *best = NULL;

	for (size_t i = first; i < last; i++) {
		const struct card *c = &cards->at[i];
		if (!(fabs(row->model_n_params / c->params - 1) <= tolerance))
			continue;
		bool same_arch = strlen(c->architecture) == arch_len && strncmp(c->architecture, row->model_type, arch_len) == 0;
		size_t score = 1 + same_arch + (strstr(file, c->plain) ? 1 + strlen(c->plain) : 0);
		if (score > best_score) {
			best = c;
			best_score = score;
		}
	}
	return best;
}

static int skip(struct llama_case *c, struct arena *a, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int skip(struct llama_case *c, struct arena *a, const char *fmt, ...)
{
	char msg[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	c->reason = arena_strdup(a, msg);
	return -1;
}

static struct size find_size(struct llama_cards *cards, const char *model, const char *quant, struct arena *a)
{
	struct size s = {.model = model, .quant = quant};
	struct err err = {0};
	struct model *m;

	for (size_t i = 0; i < cards->sizes.n; i++)
		if (strcmp(cards->sizes.at[i].model, model) == 0 && strcmp(cards->sizes.at[i].quant, quant) == 0)
			return cards->sizes.at[i];
	struct arena_mark mark = arena_mark(a);
	if (model_load(model, quant, a, &m, &err) == 0)
		s.bytes = (double)m->weights_bytes;
	arena_rewind(a, mark);
	s.fault = s.bytes > 0 ? NULL : arena_strdup(a, err.msg);
	VEC_PUSH(&cards->sizes, a, s);
	return s;
}

/* Are the tensors as large as they should be? */
static int check_size(const struct bench_llama *row, const char *quant, struct llama_cards *cards, struct llama_case *c,
	struct arena *a)
{
	struct size s = find_size(cards, c->model, quant, a);

	if (s.fault)
		return skip(c, a, "%s", s.fault);
	if (row->model_size > 0 && fabs(row->model_size / s.bytes - 1) > SIZE_TOLERANCE)
		return skip(c, a, "its tensors take %.2f GiB, those of %s at %s %.2f GiB: say which model it is (--model)",
			row->model_size / 1073741824.0, c->model, quant, s.bytes / 1073741824.0);
	return 0;
}

static bool is_gguf(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && strcmp(name + len - 5, ".gguf") == 0;
}

/* Sets c->model and *quant (NULL: the model brings its own). */
static int find_model(const struct bench_llama *row, struct llama_cards *cards, struct llama_case *c, const char **quant,
	struct arena *a)
{
	size_t named = cards->n_named;
	const struct card *card = named == 1 ? &cards->at[0] : NULL;

	if (!card && !(row->model_n_params > 0))
		return skip(c, a, "it does not say how many parameters its model has (--model)");
	if (!card && !(card = find_card(row, cards, 0, named, a)) && !(card = find_card(row, cards, named, cards->n, a)))
		return skip(c, a, "no card of models/ has %.0f parameters ('%s'; --model NAME)", row->model_n_params,
			row->model_type);
	c->model = card->name;
	*quant = is_gguf(card->name) ? NULL : quant_of(row->model_type, a);
	if (!*quant && !is_gguf(card->name))
		return skip(c, a, "no quantization in its type '%s'", row->model_type);
	return card < cards->at + named ? 0 : check_size(row, *quant, cards, c, a);
}

/* ---- the scenario ---- */

struct flags {
	struct arena *a;
	const char *text;
};

static void flag(struct flags *f, const char *name, const char *value)
{
	f->text = arena_printf(f->a, "%s%s%s: %s", f->text, *f->text ? ", " : "", name, llama_case_quoted(f->a, value));
}

static void count_flag(struct flags *f, const char *name, int64_t value)
{
	if (value > 0)
		flag(f, name, arena_printf(f->a, "%" PRId64, value));
}

/* Patterns are joined by ';' in the output and by ',' on the command line. */
static const char *overrides(struct arena *a, const char *text)
{
	char *copy = arena_strdup(a, text);

	for (char *p = copy; *p; p++)
		if (*p == ';')
			*p = ',';
	return copy;
}

/* "ROCm", "Vulkan,BLAS": where a card may have several. */
static void backend_flag(struct flags *f, const char *backends)
{
	static const char *const said[][2] = {{"ROCm", "hip"}, {"Vulkan", "vulkan"}};

	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		if (strstr(backends, said[i][0])) {
			flag(f, "backend", said[i][1]);
			return;
		}
}

static const char *flags_text(const struct bench_llama *row, struct arena *a)
{
	struct flags f = {a, ""};

	flag(&f, "ngl", row->gpu ? arena_printf(a, "%" PRId64, row->n_gpu_layers) : "0");
	backend_flag(&f, row->backends);
	count_flag(&f, "t", row->n_threads);
	count_flag(&f, "b", row->n_batch);
	count_flag(&f, "ub", row->n_ubatch);
	count_flag(&f, "n-cpu-moe", row->n_cpu_moe);
	flag(&f, "fa", row->flash_attn < 0 ? "auto" : row->flash_attn ? "on" : "off");
	flag(&f, "ctk", row->type_k);
	flag(&f, "ctv", row->type_v);
	if (*row->tensor_buft_overrides)
		flag(&f, "ot", overrides(a, row->tensor_buft_overrides));
	if (row->no_kv_offload)
		flag(&f, "nkvo", "yes");
	if (row->no_op_offload || !row->gpu)
		flag(&f, "no-op-offload", "yes");
	if (row->no_mmap)
		flag(&f, "no-mmap", "yes");
	if (*row->split_mode)
		flag(&f, "sm", row->split_mode);
	if (*row->tensor_split) {
		char *split = arena_strdup(a, row->tensor_split);
		for (char *p = split; *p; p++)
			if (*p == '/')
				*p = ',';
		flag(&f, "ts", split);
	}
	return f.text;
}

/* A prompt test computes logits once, a generation test is decode steps alone; both in a row are one time. */
static const char *workload_text(const struct bench_llama *row, struct llama_case *c, struct arena *a)
{
	uint64_t prompt = (uint64_t)row->n_prompt, gen = (uint64_t)row->n_gen, depth = (uint64_t)row->n_depth;
	uint64_t generate = prompt ? gen + 1 : gen; /* the first comes from the prompt */

	c->scale = 1;
	c->field = gen == 0 ? RESULT_PREFILL_TOK_S : prompt == 0 ? RESULT_DECODE_TOK_S : RESULT_E2E_TOK_S;
	if (c->field == RESULT_E2E_TOK_S)
		c->scale = (double)(prompt + gen) / (double)generate;
	return arena_printf(a, "{batch: 1, prompt: %" PRIu64 ", generate: %" PRIu64 ", depth: %" PRIu64 "}", prompt, generate,
		depth);
}

void llama_case_make(const struct bench_llama *row, const char *machine, struct llama_cards *cards, struct arena *a,
	struct llama_case *out)
{
	const char *quant = NULL;

	*out = (struct llama_case){.reason = "", .assumed = "", .model = "", .field = RESULT_DECODE_TOK_S, .scale = 1};
	const char *workload = workload_text(row, out, a);
	if (row->ik) {
		skip(out, a, "engine 'ik_llama.cpp' is not modelled");
		return;
	}
	if (find_model(row, cards, out, &quant, a))
		return;
	if (cards->n_named != 1)
		out->assumed = arena_printf(a, "model %s", out->model);
	/* Its tokens are random words, which have no subject in common. */
	out->scenario = arena_printf(a, "model: %s\n%s%s%smachine: %s\nengine: llama.cpp\nflags: {%s}\nworkload: %s\nrouting: uniform\n",
		llama_case_quoted(a, out->model), quant ? "quant: " : "", quant ? quant : "", quant ? "\n" : "", machine,
		flags_text(row, a), workload);
}
