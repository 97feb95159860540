/*
 * llamacpp_place.c - where llama.cpp and the programs made of it put tensors, cache and buffers.
 *
 *	-ngl 3, -ts 1,1      layer   0    1    2    3    output
 *	                             CPU  CPU  GPU0 GPU0 GPU1     the last ngl, dealt by -ts
 *	--n-cpu-moe, -ot     … but tensors whose names match, and experts, stay in RAM
 *
 * -ngl auto tries what fits: since 2025-12 all layers with experts of as few as possible in RAM, before as many whole
 * layers as fit. Without -ngl llama.cpp had no layer on the GPU, since 2025-09 all, since 2025-12 what fits. What RAM does not
 * hold of a mapped file stays in the file (struct llamacpp_paging, for the lowering).
 */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/llamacpp.h"

/* The cache is allocated in pieces of so many entries. */
#define KV_PAD 256
#define MAX_OVERRIDES 1024

/* A buffer of -ot that is a GPU, whichever. */
#define ANY_GPU (-2)

struct override {
	regex_t regex;
	int16_t memory;
};

struct plan {
	const struct engine_job *job;
	const struct llamacpp_fork *fork;
	const struct llamacpp_flags *flags;
	struct kvcache_types kv_types;
	int n_gpus, gpu[LLAMACPP_MAX_GPUS];
	double share[LLAMACPP_MAX_GPUS]; /* of the layers on GPUs, cumulated */
	uint64_t leave_bytes[LLAMACPP_MAX_GPUS]; /* of each GPU's memory, by -ngl auto */
	const double *below;  /* by layer: share of the GPUs' bytes that lie before its middle; NULL: layers count alike */
	int cpu, ram;
	uint32_t ngl;
	struct override *override;
	int n_overrides;
};

static struct place_spot on_device(const struct plan *plan, int device)
{
	return (struct place_spot){(int16_t)plan->job->machine->devices[device].memory, (int16_t)device, PLACE_RESIDENT};
}

/* The device of a layer; the output is layer n_layer. The last ngl are on GPUs, in order of the GPUs. */
static int layer_device(const struct plan *plan, uint32_t i)
{
	uint32_t n = plan->job->model->n_layer + 1;
	uint32_t start = n > plan->ngl ? n - plan->ngl : 0;

	if (plan->n_gpus == 0 || i < start)
		return plan->cpu;
	double where = plan->below ? plan->below[i] : ((double)(i - start) + 0.5) / (double)(n - start);
	for (int g = 0; g < plan->n_gpus - 1; g++)
		if (where < plan->share[g])
			return plan->gpu[g];
	return plan->gpu[plan->n_gpus - 1];
}

static const struct override *find_override(const struct plan *plan, const char *tensor)
{
	for (int i = 0; i < plan->n_overrides; i++)
		if (regexec(&plan->override[i].regex, tensor, 0, NULL, 0) == 0)
			return &plan->override[i];
	return NULL;
}

static bool experts_in_ram(const struct plan *plan, const struct model_tensor *t)
{
	return t->group == MODEL_EXPERTS &&
		(plan->flags->cpu_moe || (t->layer >= 0 && (uint64_t)t->layer < plan->flags->n_cpu_moe));
}

/* Split buffers hold what plain multiplications use: no experts, no tables, nothing of one dimension. */
static bool is_dense_matrix(const struct model_tensor *t)
{
	return t->group != MODEL_EMBED && t->group != MODEL_EXPERTS && t->shape[2] == 1 && model_tensor_is_matrix(t);
}

static struct place_spot tensor_spot(const struct plan *plan, const struct model_tensor *t)
{
	const struct hw_machine *hw = plan->job->machine;
	const struct override *o = find_override(plan, t->name);

	if (o && o->memory == ANY_GPU)
		return on_device(plan, plan->gpu[(t->layer < 0 ? 0 : t->layer) % plan->n_gpus]);
	if (o) {
		for (int g = 0; g < plan->n_gpus; g++)
			if (hw->devices[plan->gpu[g]].memory == o->memory)
				return on_device(plan, plan->gpu[g]);
		return on_device(plan, plan->cpu);
	}
	if (t->group == MODEL_EMBED || experts_in_ram(plan, t))
		return on_device(plan, plan->cpu);
	int device = layer_device(plan, t->layer < 0 ? plan->job->model->n_layer : (uint32_t)t->layer);
	struct place_spot spot = on_device(plan, device);
	if (plan->flags->sm == LLAMACPP_SPLIT_ROW && plan->n_gpus > 1 && device != plan->cpu && is_dense_matrix(t))
		spot.mode = PLACE_ROWS;
	return spot;
}

static uint64_t pad(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Graph intermediates for one pass, in f32; logits for all its rows. Each GPU that computes reserves them. */
static void book_compute_buffers(const struct plan *plan, struct placement *p)
{
	const struct trace_workload *w = &plan->job->trace->workload;
	uint64_t rows = w->batch * (w->prompt > 1 ? w->prompt : 1);

	if (rows > plan->flags->ub)
		rows = plan->flags->ub;
	uint64_t bytes = model_activation_bytes(plan->job->model, rows, rows, LLAMACPP_HIDDEN_BYTES);
	for (int g = 0; g < plan->n_gpus; g++)
		ledger_book(&p->ledger, plan->job->machine->devices[plan->gpu[g]].memory, LEDGER_ACTIVATION,
			"compute buffer", bytes);
	if (plan->n_gpus == 0)
		ledger_book(&p->ledger, plan->ram, LEDGER_ACTIVATION, "compute buffer", bytes);
}

/* Weights in RAM that many rows want are copied into the GPU's compute buffer, one tensor at a time. */
static void book_staging(const struct plan *plan, struct placement *p)
{
	const struct model *m = plan->job->model;
	uint64_t largest = 0;

	if (plan->n_gpus == 0 || plan->flags->no_op_offload || (plan->fork->no_layers_no_gpu && plan->ngl == 0))
		return;
	for (int i = 0; i < m->n_tensors; i++)
		if (p->tensor[i].device == plan->cpu && m->tensors[i].group != MODEL_EMBED && m->tensors[i].bytes > largest)
			largest = m->tensors[i].bytes;
	ledger_book(&p->ledger, plan->job->machine->devices[plan->gpu[0]].memory, LEDGER_OVERHEAD,
		"weights on their way", largest);
}

/* Weights, cache and compute buffer are one cudaMalloc each, in whole 2 MiB. */
static void book_rounding(const struct plan *plan, struct placement *p)
{
	const uint64_t round = 2 << 20;

	for (int g = 0; g < plan->n_gpus; g++) {
		int memory = plan->job->machine->devices[plan->gpu[g]].memory;
		uint64_t slack = 0;
		for (int c = 0; c < LEDGER_OVERHEAD; c++)
			slack += pad(p->ledger.row[memory].used_bytes[c], round) - p->ledger.row[memory].used_bytes[c];
		ledger_book(&p->ledger, memory, LEDGER_OVERHEAD, "allocator rounding", slack);
	}
}

static void book_again(struct placement *p, const struct place_spot *spot, uint64_t bytes)
{
	static const char what[] = "tied output, again";

	if (spot->mode != PLACE_ROWS)
		ledger_book(&p->ledger, spot->memory, LEDGER_WEIGHTS, what, bytes);
	for (int i = 0; i < p->rows.n && spot->mode == PLACE_ROWS; i++)
		ledger_book(&p->ledger, p->rows.spot[i].memory, LEDGER_WEIGHTS, what, place_rows_share(&p->rows, i, bytes));
}

/* Weights beyond the capacity of RAM stay in the file. Which pages the system keeps does not follow the model's order, so
   each use finds the same share of them there. */
static void page_out(const struct plan *plan, struct placement *p, struct arena *a)
{
	uint64_t missing = ledger_missing(&p->ledger, plan->ram), held = p->ledger.row[plan->ram].used_bytes[LEDGER_WEIGHTS];
	int drive = hw_first_memory(plan->job->machine, HW_MEMORY_DRIVE);

	if (!missing || drive < 0 || missing > held || !llamacpp_is_mapped(plan->flags))
		return;
	uint64_t experts = 0;
	for (int i = 0; i < p->model->n_tensors; i++)
		if (p->model->tensors[i].group == MODEL_EXPERTS && p->tensor[i].memory == plan->ram)
			experts += p->model->tensors[i].bytes;
	struct llamacpp_paging *paging = arena_new(a, struct llamacpp_paging);
	*paging = (struct llamacpp_paging){drive, experts >= missing, (double)missing / (double)(experts >= missing ? experts : held)};
	p->engine = paging;
	ledger_move(&p->ledger, plan->ram, drive, LEDGER_WEIGHTS, missing);
}

static void fill(const struct plan *plan, struct placement *p, struct arena *a)
{
	const struct model *m = plan->job->model;
	const struct trace_workload *w = &plan->job->trace->workload;
	uint64_t context = trace_max_context(plan->job->trace);

	place_init(p, m, plan->job->machine, a);
	if (plan->flags->c > context * w->batch)
		context = plan->flags->c / w->batch;
	p->kv_types = plan->kv_types;
	p->kv_context = pad(context, KV_PAD);
	p->kv_sequences = w->batch;
	p->rows.n = plan->n_gpus;
	for (int g = 0; g < plan->n_gpus; g++) {
		p->rows.spot[g] = on_device(plan, plan->gpu[g]);
		p->rows.spot[g].mode = PLACE_ROWS;
		p->rows.upto[g] = plan->share[g];
	}
	for (int i = 0; i < m->n_tensors; i++) {
		p->tensor[i] = tensor_spot(plan, &m->tensors[i]);
		/* A tied output is loaded once more where it is multiplied. */
		if (m->tensors[i].shared_storage && p->tensor[i].device != plan->cpu)
			book_again(p, &p->tensor[i], m->tensors[i].bytes);
	}
	for (uint32_t i = 0; i < m->n_layer; i++)
		p->kv[i] = on_device(plan, plan->flags->nkvo ? plan->cpu : layer_device(plan, i));
	place_finish(p);
	book_compute_buffers(plan, p);
	book_staging(plan, p);
	book_rounding(plan, p);
	page_out(plan, p, a);
}

static bool on_gpus(const struct plan *plan, const struct placement *p, int memory)
{
	return p->machine->memories[memory].kind == HW_MEMORY_GPU && plan->n_gpus > 0;
}

/* Deals the layers to the GPUs by what they have there instead of by number. Without -ts that is what --fit does, and who
   ran something that does not fit otherwise wrote a -ts. */
static void balance(struct plan *plan, const struct placement *p, struct arena *a)
{
	const struct model *m = plan->job->model;
	double *below = arena_array(a, double, m->n_layer + 1), *bytes = arena_array(a, double, m->n_layer + 1), sum = 0, at = 0;

	for (int i = 0; i < m->n_tensors; i++)
		if (on_gpus(plan, p, p->tensor[i].memory))
			bytes[m->tensors[i].layer < 0 ? (int)m->n_layer : m->tensors[i].layer] += (double)m->tensors[i].bytes;
	for (uint32_t i = 0; i < m->n_layer; i++)
		if (on_gpus(plan, p, p->kv[i].memory))
			bytes[i] += (double)(p->kv_sequences * kvcache_layer_bytes(&m->layers[i], p->kv_context, &p->kv_types));
	for (uint32_t i = 0; i <= m->n_layer; i++)
		sum += bytes[i];
	for (uint32_t i = 0; i <= m->n_layer; i++) {
		below[i] = (at + bytes[i] / 2) / sum;
		at += bytes[i];
	}
	plan->below = below;
}

/* Leaving what --fit-target says, or nothing. */
static bool gpus_fit(const struct plan *plan, uint32_t ngl, bool leave, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct plan tried = *plan;
	struct placement p;
	bool fits = true;

	tried.ngl = ngl;
	fill(&tried, &p, a);
	for (int g = 0; g < plan->n_gpus; g++) {
		int memory = plan->job->machine->devices[plan->gpu[g]].memory;
		fits &= ledger_missing(&p.ledger, memory) == 0 && (!leave || ledger_free(&p.ledger, memory) >= plan->leave_bytes[g]);
	}
	arena_rewind(a, mark);
	return fits;
}

static uint32_t most_layers(const struct plan *plan, bool leave, struct arena *a)
{
	uint32_t fits = 0, too_many = plan->job->model->n_layer + 2;

	while (too_many - fits > 1) {
		uint32_t middle = fits + (too_many - fits) / 2;
		if (gpus_fit(plan, middle, leave, a))
			fits = middle;
		else
			too_many = middle;
	}
	return fits;
}

/* -ngl auto with a mixture of experts: all layers on the GPUs, experts of as few as possible in RAM. False when that
   does not fit, or the program does not do it. */
static bool fit_experts(struct plan *plan, struct llamacpp_flags *fitted, struct arena *a)
{
	const struct model *m = plan->job->model;
	uint64_t too_few = 0;
	struct plan tried = *plan;
	bool experts = false;

	for (uint32_t i = 0; i < m->n_layer; i++)
		experts |= m->layers[i].n_expert > 0;
	if (!experts || !llamacpp_is_since(plan->flags, plan->fork->fit_from) || gpus_fit(plan, plan->ngl, true, a))
		return false;
	*fitted = *plan->flags;
	fitted->n_cpu_moe = m->n_layer;
	tried.flags = fitted;
	if (!gpus_fit(&tried, plan->ngl, true, a))
		return false;
	for (uint64_t fits = m->n_layer; fits - too_few > 1;) {
		fitted->n_cpu_moe = too_few + (fits - too_few) / 2;
		*(gpus_fit(&tried, plan->ngl, true, a) ? &fits : &too_few) = fitted->n_cpu_moe;
	}
	fitted->n_cpu_moe = too_few + 1;
	plan->flags = fitted;
	return true;
}

/* All layers are on the GPU: are experts in RAM that would fit there too? */
static const char *advise_experts(const struct plan *plan, struct arena *a)
{
	struct llamacpp_flags flags = *plan->flags;
	struct plan tried = *plan;
	uint64_t held = flags.cpu_moe ? plan->job->model->n_layer : flags.n_cpu_moe, fits = held, too_few = 0;

	if (held == 0)
		return plan->n_gpus > 1 ? "all layers are on the GPUs" : "all layers are on the GPU";
	flags.cpu_moe = false;
	flags.n_cpu_moe = 0;
	tried.flags = &flags;
	if (gpus_fit(&tried, tried.ngl, false, a))
		return "all experts would fit in GPU memory as well: leave out --cpu-moe and --n-cpu-moe";
	while (fits - too_few > 1) {
		flags.n_cpu_moe = too_few + (fits - too_few) / 2;
		if (gpus_fit(&tried, tried.ngl, false, a))
			fits = flags.n_cpu_moe;
		else
			too_few = flags.n_cpu_moe;
	}
	if (fits == held)
		return "no further layer's experts fit in GPU memory";
	return arena_printf(a, "experts of more layers would fit in GPU memory: --n-cpu-moe %llu", (unsigned long long)fits);
}

static const char *advise(const struct plan *plan, const struct placement *p, struct arena *a)
{
	uint32_t all = plan->job->model->n_layer + 1, most;

	if (plan->n_gpus == 0)
		return ledger_fits(&p->ledger) ? "" : "more RAM, a shorter context or a smaller type is needed";
	most = most_layers(plan, false, a);
	if (!ledger_fits(&p->ledger))
		return most < plan->ngl ? arena_printf(a, "-ngl %u would fit the GPU", most) :
					  "more RAM, a shorter context or a smaller type is needed";
	if (plan->ngl >= all)
		return advise_experts(plan, a);
	if (most > plan->ngl)
		return arena_printf(a, "-ngl %u would fit as well, %u layers more", most, most - plan->ngl);
	return arena_printf(a, "-ngl %u is the most that fits", plan->ngl);
}

/* POSIX has no \d, and no groups that do not capture. */
static const char *posix_regex(const char *text, struct arena *a)
{
	char *out = arena_alloc(a, 6 * strlen(text) + 1), *to = out;

	for (const char *p = text; *p; p++) {
		if (p[0] == '\\' && p[1] == 'd') {
			to = stpcpy(to, "[0-9]");
			p++;
		} else if (p[0] == '(' && p[1] == '?' && p[2] == ':') {
			*to++ = '(';
			p += 2;
		} else {
			*to++ = *p;
		}
	}
	return out;
}

/* What follows the name of a backend; NULL: it is none. */
static const char *gpu_number(const char *name)
{
	static const char *const backends[] = {"CUDA", "ROCm", "Vulkan", "SYCL", "HIP", "MTL"};

	for (size_t i = 0; i < ARRAY_LEN(backends); i++) {
		size_t len = strlen(backends[i]);
		if (strncmp(name, backends[i], len) == 0 && name[len] >= '0' && name[len] <= '9')
			return name + len;
	}
	return NULL;
}

static int override_memory(const struct plan *plan, const char *buffer, int16_t *memory, struct err *err)
{
	char *end;

	if (strcmp(buffer, "CPU") == 0 || strcmp(buffer, "CUDA_Host") == 0) {
		*memory = (int16_t)plan->ram;
		return 0;
	}
	if (strcmp(buffer, "CUDA?") == 0 && plan->n_gpus) {
		*memory = ANY_GPU;
		return 0;
	}
	const char *number = gpu_number(buffer);
	if (number) {
		long g = strtol(number, &end, 10);
		if (*end == '\0' && g >= 0 && g < plan->n_gpus) {
			*memory = (int16_t)plan->job->machine->devices[plan->gpu[g]].memory;
			return 0;
		}
	}
	return err_set(err, ERR_INPUT, "flag 'ot': no buffer '%s' on this machine; CPU or CUDA0 to CUDA%d", buffer,
		plan->n_gpus - 1);
}

static int parse_overrides(struct plan *plan, struct arena *a, struct err *err)
{
	char *text = arena_strdup(a, plan->flags->ot), *save;

	plan->override = arena_array(a, struct override, MAX_OVERRIDES);
	for (char *one = strtok_r(text, ",;", &save); one; one = strtok_r(NULL, ",;", &save)) {
		char *equals = strrchr(one, '=');
		struct override *o = &plan->override[plan->n_overrides];

		if (!equals || equals == one)
			return err_set(err, ERR_INPUT, "flag 'ot': '%s' is not REGEX=BUFFER", one);
		if (plan->n_overrides == MAX_OVERRIDES)
			return err_set(err, ERR_INPUT, "flag 'ot': more than %d overrides", MAX_OVERRIDES);
		*equals = '\0';
		if (override_memory(plan, equals + 1, &o->memory, err))
			return -1;
		int rc = regcomp(&o->regex, posix_regex(one, a), REG_EXTENDED | REG_NOSUB);
		if (rc) {
			char why[128];
			regerror(rc, &o->regex, why, sizeof(why));
			return err_set(err, ERR_INPUT, "flag 'ot': '%s': %s", one, why);
		}
		plan->n_overrides++;
	}
	return 0;
}

/* "CUDA1,CUDA0": those, in that order. */
static int parse_devices(struct plan *plan, struct arena *a, struct err *err)
{
	char *text = arena_strdup(a, plan->flags->dev), *save, *end;
	int all[LLAMACPP_MAX_GPUS], n_all = plan->n_gpus;
	bool none = strcmp(text, "none") == 0;

	if (!*text)
		return 0;
	memcpy(all, plan->gpu, sizeof(all));
	plan->n_gpus = 0;
	for (char *word = strtok_r(text, ",/", &save); word && !none; word = strtok_r(NULL, ",/", &save)) {
		const char *number = gpu_number(word);
		long g = number ? strtol(number, &end, 10) : -1;
		if (g < 0 || g >= n_all || *end)
			return err_set(err, ERR_INPUT, "flag 'dev': no device '%s' on this machine; %s", word,
				n_all ? arena_printf(a, "CUDA0 to CUDA%d, or none", n_all - 1) : "none");
		for (int i = 0; i < plan->n_gpus; i++)
			if (plan->gpu[i] == all[g])
				return err_set(err, ERR_INPUT, "flag 'dev': '%s' is there twice", word);
		plan->gpu[plan->n_gpus++] = all[g];
	}
	return 0;
}

static int parse_split(struct plan *plan, struct arena *a, struct err *err)
{
	const struct hw_machine *hw = plan->job->machine;
	char *text = arena_strdup(a, plan->flags->sm == LLAMACPP_SPLIT_NONE ? "" : plan->flags->ts), *save;
	double part[LLAMACPP_MAX_GPUS], sum = 0;
	int n = 0;

	for (char *word = strtok_r(text, ",/", &save); word; word = strtok_r(NULL, ",/", &save)) {
		if (n == plan->n_gpus)
			return err_set(err, ERR_INPUT, "flag 'ts': more shares than the machine's %d GPU%s", plan->n_gpus,
				plan->n_gpus == 1 ? "" : "s");
		if (units_parse(word, UNIT_PLAIN, &part[n], err) || part[n] < 0)
			return err_set(err, ERR_INPUT, "flag 'ts': '%s' is no share", word);
		sum += part[n++];
	}
	if (n == 0)
		for (; n < plan->n_gpus; n++)
			sum += part[n] = (double)hw->memories[hw->devices[plan->gpu[n]].memory].capacity_bytes;
	for (; n < plan->n_gpus; n++)
		part[n] = 0;
	if (plan->n_gpus && !(sum > 0))
		return err_set(err, ERR_INPUT, "flag 'ts': the shares sum to nothing");
	for (int g = 0; g < plan->n_gpus; g++)
		plan->share[g] = (g ? plan->share[g - 1] : 0) + part[g] / sum;
	return 0;
}

/* "512,1024": MiB, or with a unit, of each GPU; one is for all. */
static int parse_leave(struct plan *plan, struct arena *a, struct err *err)
{
	char *text = arena_strdup(a, plan->flags->fit_target), *save;
	double bytes = 0;
	int n = 0;

	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		bool plain = strspn(word, "0123456789") == strlen(word);
		if (units_parse(plain ? arena_printf(a, "%sMiB", word) : word, UNIT_BYTES, &bytes, err) || bytes < 0 || bytes > 1e15)
			return err_set(err, ERR_INPUT, "flag 'fit-target': '%s' is no number of MiB", word);
		if (n < LLAMACPP_MAX_GPUS)
			plan->leave_bytes[n++] = (uint64_t)bytes;
	}
	for (; n < LLAMACPP_MAX_GPUS; n++)
		plan->leave_bytes[n] = (uint64_t)bytes;
	return 0;
}

static int parse_ngl(const char *text, uint32_t all, bool *automatic, uint32_t *ngl, struct err *err)
{
	double n;

	*automatic = !*text || strcmp(text, "auto") == 0;
	*ngl = all;
	if (*automatic || strcmp(text, "all") == 0)
		return 0;
	if (units_parse(text, UNIT_COUNT, &n, err))
		return err_set(err, ERR_INPUT, "flag 'ngl' must be a whole number, all or auto, not '%s'", text);
	if (n >= 0 && n < all)
		*ngl = (uint32_t)n;
	return 0;
}

static bool fits_itself(const struct plan *plan)
{
	const struct llamacpp_fork *fork = plan->fork;
	const char *fit = plan->flags->fit;

	if (fit && (strcmp(fit, "off") == 0 || strcmp(fit, "0") == 0))
		return false;
	return *plan->flags->ngl || !fork->all_from || llamacpp_is_since(plan->flags, fork->fit_from);
}

static int cache_type(const char *flag, const char *name, const struct quant_type **type, struct err *err)
{
	if (quant_get(name, type, err))
		return err_prefix(err, "flag '%s'", flag);
	if (!(*type)->kv)
		return err_set(err, ERR_INPUT, "flag '%s': '%s' is no type of KV cache", flag, name);
	return 0;
}

bool llamacpp_is_flash(const struct llamacpp_fork *fork, const struct llamacpp_flags *f)
{
	static const char *const on[] = {"on", "1", "yes", "true"};

	for (size_t i = 0; i < ARRAY_LEN(on); i++)
		if (strcmp(f->fa, on[i]) == 0)
			return true;
	return strcmp(f->fa, "auto") == 0 && llamacpp_is_since(f, fork->flash_from);
}

static enum kvcache_form cache_form(const struct llamacpp_fork *fork, const struct llamacpp_flags *f)
{
	int mla = llamacpp_mla(fork, f);

	if (mla >= LLAMACPP_MLA_LATENT || llamacpp_is_since(f, fork->latent_from))
		return KVCACHE_LATENT;
	if (mla == LLAMACPP_MLA_HEADS)
		return KVCACHE_HEADS;
	/* Flash attention reads values from where the keys are. */
	return llamacpp_is_flash(fork, f) ? KVCACHE_LATENT : KVCACHE_LATENT_COPY;
}

static int plan_init(struct plan *plan, const struct llamacpp_fork *fork, const struct engine_job *job, struct arena *a,
	struct err *err)
{
	const struct llamacpp_flags *f = job->flags;
	const struct hw_machine *hw = job->machine;

	*plan = (struct plan){
		.job = job,
		.fork = fork,
		.flags = f,
		.cpu = hw_first_device(hw, HW_DEVICE_CPU),
		.ram = hw_first_memory(hw, HW_MEMORY_RAM),
	};
	for (int d = 0; d < hw->n_devices && plan->n_gpus < LLAMACPP_MAX_GPUS; d++)
		if (hw->devices[d].kind == HW_DEVICE_GPU)
			plan->gpu[plan->n_gpus++] = d;
	if (parse_devices(plan, a, err))
		return -1;
	if (plan->n_gpus && f->mg >= (uint64_t)plan->n_gpus)
		return err_set(err, ERR_INPUT, "flag 'mg': no GPU %d; this machine has %d, counted from 0", (int)f->mg,
			plan->n_gpus);
	if (plan->n_gpus && f->sm == LLAMACPP_SPLIT_NONE) {
		plan->gpu[0] = plan->gpu[f->mg];
		plan->n_gpus = 1;
	}
	if (cache_type("ctk", f->ctk, &plan->kv_types.k, err) || cache_type("ctv", f->ctv, &plan->kv_types.v, err))
		return -1;
	plan->kv_types.form = cache_form(fork, f);
	return parse_overrides(plan, a, err) || parse_split(plan, a, err) || parse_leave(plan, a, err) ? -1 : 0;
}

/* Types that only a fork knows, or that no GGUF holds. */
static int check_types(const struct llamacpp_fork *fork, const struct model *m, struct err *err)
{
	for (int i = 0; i < m->n_tensors && !fork->ik; i++)
		if (m->tensors[i].type->family == QUANT_IK)
			return err_set(err, ERR_INPUT, "llama.cpp does not know type '%s' of '%s': it is ik_llama.cpp's",
				m->tensors[i].type->name, m->tensors[i].name);
	return 0;
}

static int place(struct plan *plan, const struct llamacpp_fork *fork, const struct engine_job *job, struct placement *p,
	struct arena *a, struct err *err)
{
	struct llamacpp_flags fitted;
	bool automatic;

	if (check_types(fork, job->model, err) || plan_init(plan, fork, job, a, err) ||
		engine_check_build(plan->flags->build, err) ||
		parse_ngl(plan->flags->ngl, job->model->n_layer + 1, &automatic, &plan->ngl, err))
		return -1;
	if (plan->n_gpus == 0)
		plan->ngl = 0;
	else if (automatic && !fits_itself(plan))
		plan->ngl = llamacpp_is_since(plan->flags, fork->all_from) ? plan->ngl : 0;
	else if (automatic && !fit_experts(plan, &fitted, a))
		plan->ngl = most_layers(plan, true, a);
	fill(plan, p, a);
	if (!ledger_fits(&p->ledger) && plan->n_gpus > 1 && plan->flags->sm == LLAMACPP_SPLIT_LAYER && !*plan->flags->ts) {
		balance(plan, p, a);
		fill(plan, p, a);
	}
	p->advice = advise(plan, p, a);
	return 0;
}

int llamacpp_place(const struct llamacpp_fork *fork, const struct engine_job *job, struct placement *p, struct arena *a,
	struct err *err)
{
	struct plan plan = {0};
	int rc = place(&plan, fork, job, p, a, err);

	/* Expressions are not the arena's. */
	for (int i = 0; i < plan.n_overrides; i++)
		regfree(&plan.override[i].regex);
	return rc;
}

uint64_t llamacpp_prefill_rows(const void *flags, const struct hw_machine *machine)
{
	const struct llamacpp_flags *f = flags;

	(void)machine;
	return f->ub < f->b ? f->ub : f->b;
}
