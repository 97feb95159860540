/*
 * zero_inference.c - ZeRO-Inference: DeepSpeed (edaa72212) under transformers' generate(), as DeepSpeedExamples'
 * run_model.py (45b4b715) sets it up. Weights live in RAM or on NVMe and are fetched for each use.
 *
 *	host        [fetch q?][wait for all copies][prefetch k][launch q][drop q] [wait …][prefetch v][launch k] …
 *	copy stream            ══q══                ══k══                          ══v══
 *	GPU                                                     [q        ]                      [k …
 *	NVMe                   [read of the next parameters, while there are buffers]
 *
 * A parameter is the unit, a linear layer the occasion. The wait comes before the prefetch, and is for all of the copy stream.
 * The prefetch goes on while what it has begun is less than its bucket and than what may still live beside what is there;
 * the last parameter may overshoot. In a step's first pass nothing is known of the order, and no prefetch crosses its end.
 * What is still on NVMe stops it; reads are begun for what comes next, until twice what is on its way is looked at, and
 * a parameter that is being read is waited for with all other reads. Reads go around the page cache (O_DIRECT, csrc/aio).
 *
 * With several GPUs each keeps one part of every parameter: all parts cross their links at once, are gathered from the
 * neighbours, and concatenated, which reads and writes them once more on the GPU (AllGatherCoalescedHandle). The copy of a part
 * is .to() without non_blocking: the host waits for it, so nothing that it submits later runs beside it. Each GPU runs the
 * workload's batch, so rates are those of one. Vectors stay on the GPU (persistence).
 *
 *	--build   before   one GPU does not gather from itself (0.9.0: pull request 2953)   2023-04
 */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "models/kvcache.h"
#include "sim/engine/engine_table.h"
#include "sim/exec/eager.h"
#include "sim/exec/lower.h"

#define HIDDEN_ELEMENT_BYTES 2
#define MAX_RANKS PLACE_MAX_ROWS
/* A 4-bit or 8-bit weight becomes 16 bits in one kernel, which writes them. */
#define EXPANDED_BYTES 2.0
/* transformers' cache is concatenated: what is held is read and written before it is read again. */
#define CACHE_PASSES 3
/* --kv-offload: the CPU expands the cache to 32 bits, then reads it. */
#define EXPAND_BYTES 6.0
#define CPU_CACHE_BYTES 4.0
/* Elements of a swap buffer have 16 bits. */
#define SWAP_ELEMENT_BYTES 2

/* Operations of a group beside its linear layers (as in accelerate.c), and for one linear layer. */
static const int group_operations[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1, [MODEL_ATTN] = 18, [MODEL_FFN] = 9, [MODEL_ROUTER] = 11, [MODEL_SHARED] = 2, [MODEL_OUTPUT] = 7,
};
#define LINEAR_OPERATIONS 2
#define CACHE_OPERATIONS 4
/* What the host does to gather one module: buffers, the collective, the concatenation; and a slice for each rank
   (partition_parameters.py, all_gather_coalesced). */
#define GATHER_OPERATIONS 8
#define BUILD_NO_GATHER "2023-04"

struct zero_flags {
	bool cpu_offload, disk_offload, kv_offload, pin_memory, use_gds, prefetch;
	uint64_t quant_bits, num_gpus, buffer_count;
	double resident_params, buffer_size;
	const char *bucket, *live, *build;
};

static const struct param zero_flag[] = {
	PARAM_FLAG(struct zero_flags, cpu_offload, "cpu-offload", "no", "weights live in RAM"),
	PARAM_FLAG(struct zero_flags, disk_offload, "disk-offload", "no", "weights live on the drive"),
	PARAM_FLAG(struct zero_flags, kv_offload, "kv-offload", "no", "the cache lives in RAM and the CPU attends to it"),
	PARAM_COUNT(struct zero_flags, quant_bits, "quant-bits", "16", 4, 16,
		"bits of weights; 4 goes with the scenario's quant: zero-int4-g64"),
	PARAM_COUNT(struct zero_flags, num_gpus, "num_gpus", "0", 0, MAX_RANKS, "GPUs that work together; 0: all"),
	PARAM_FLAG(struct zero_flags, pin_memory, "pin-memory", "no", "weights in RAM are pinned"),
	PARAM_FLAG(struct zero_flags, use_gds, "use_gds", "no", "the drive writes to GPU memory itself"),
	PARAM_FLAG(struct zero_flags, prefetch, "prefetch", "yes", "parameters are fetched ahead, within the window"),
	PARAM_REAL(struct zero_flags, resident_params, "gpu_resident_params", UNIT_PLAIN, "0", 0, 1e13,
		"parameters that stay on the GPU, the first of the model"),
	PARAM_TEXT(struct zero_flags, bucket, "prefetch_bucket_size", "auto",
		"elements prefetched at most, or auto: twice the square of the width, as run_model.py"),
	PARAM_TEXT(struct zero_flags, live, "max_live_parameters", "auto", "elements on the GPU at most; auto: the same"),
	PARAM_COUNT(struct zero_flags, buffer_count, "buffer_count", "5", 1, 1000, "pinned buffers for parameters from the drive"),
	PARAM_REAL(struct zero_flags, buffer_size, "buffer_size", UNIT_PLAIN, "2147483648", 1, 1e12, "elements of one"),
	PARAM_TEXT(struct zero_flags, build, "build", "2026-06",
		"year and month of the version, not DeepSpeed's own: before " BUILD_NO_GATHER
		" one GPU gathers, too, and its host waits for each copy"),
};

static const struct engine_alias zero_alias[] = {
	{"cpu_offload", "cpu-offload"}, {"disk_offload", "disk-offload"}, {"kv_offload", "kv-offload"},
	{"quant_bits", "quant-bits"}, {"quant_bit", "quant-bits"}, /* as argparse completes it */ {"pin_memory", "pin-memory"}, {"use-gds", "use_gds"},
};

static const struct engine_ignored zero_ignored[] = {
	{"model", true}, {"dummy", false}, {"loops", true}, {"batch-size", true}, {"batch_size", true}, {"prompt-len", true}, {"gen-len", true},
	{"local_rank", true}, {"offload-dir", true}, {"log-file", true}, {"verbose", true}, {"quant_group_size", true},
	{"quant-group-size", true}, {"pin_kv_cache", true}, {"async_kv_offload", true}, {"num_nodes", true},
	{"cut-gen-len", true}, {"deepspeed", false}, {"zero-stage", true},
};

struct plan {
	const struct zero_flags *flags;
	int n_ranks, rank[MAX_RANKS]; /* devices */
	int gpu_memory, cpu, ram, drive;
	double bucket, live;
	bool gathers; /* several GPUs, or one long ago */
};

/* ---- placement ---- */

static int parse_window(const char *key, const char *text, double otherwise, double *out, struct err *err)
{
	if (strcmp(text, "auto") == 0)
		*out = otherwise;
	else if (!number_parse(text, strlen(text), out) || *out < 0)
		return err_set(err, ERR_INPUT, "flag '%s' is a number of elements or auto, not '%.60s'", key, text);
	return 0;
}

static int check_quant(const struct plan *plan, const struct model *m, struct err *err)
{
	uint64_t bits = plan->flags->quant_bits;
	bool int4 = strcmp(m->quant, "zero-int4-g64") == 0;

	if (bits != 4 && bits != 16)
		return err_set(err, ERR_INPUT, "flag 'quant-bits' is 16 or 4 here, not %llu", (unsigned long long)bits);
	if ((bits == 4) != int4)
		return err_set(err, ERR_INPUT, "flag 'quant-bits' of 4 and quant: zero-int4-g64 go together");
	if (!int4 && strcmp(m->quant, "f16") && strcmp(m->quant, "bf16"))
		return err_set(err, ERR_INPUT, "zero-inference has weights of 16 bits, or zero-int4-g64, not %s", m->quant);
	return 0;
}

static int plan_init(struct plan *plan, const struct engine_job *job, struct err *err)
{
	const struct hw_machine *hw = job->machine;
	const struct zero_flags *f = job->flags;
	double window = 2.0 * job->model->hidden * job->model->hidden;

	*plan = (struct plan){.flags = f, .cpu = hw_first_device(hw, HW_DEVICE_CPU),
		.ram = hw_first_memory(hw, HW_MEMORY_RAM), .drive = hw_first_memory(hw, HW_MEMORY_DRIVE)};
	for (int d = 0; d < hw->n_devices; d++)
		if (hw->devices[d].kind == HW_DEVICE_GPU && hw->memories[hw->devices[d].memory].kind == HW_MEMORY_GPU &&
			(uint64_t)plan->n_ranks < (f->num_gpus ? f->num_gpus : MAX_RANKS))
			plan->rank[plan->n_ranks++] = d;
	if (plan->n_ranks == 0)
		return err_set(err, ERR_INPUT, "zero-inference needs a GPU with memory of its own");
	plan->gpu_memory = hw->devices[plan->rank[0]].memory;
	plan->gathers = plan->n_ranks > 1 || strcmp(f->build, BUILD_NO_GATHER) < 0;
	if (engine_check_build(f->build, err))
		return -1;
	if (f->cpu_offload && f->disk_offload)
		return err_set(err, ERR_INPUT, "flags 'cpu-offload' and 'disk-offload' exclude each other");
	if (f->disk_offload && plan->drive < 0)
		return err_set(err, ERR_INPUT, "flag 'disk-offload': the machine has no drive");
	if (f->use_gds && !f->disk_offload)
		return err_set(err, ERR_INPUT, "flag 'use_gds' goes with 'disk-offload'");
	return check_quant(plan, job->model, err) ||
			parse_window("prefetch_bucket_size", f->bucket, window, &plan->bucket, err) ||
			parse_window("max_live_parameters", f->live, window, &plan->live, err) ?
		-1 :
		0;
}

static bool is_matrix(const struct model_tensor *t)
{
	return t->shape[1] > 1;
}

static struct place_spot home_of(const struct plan *plan)
{
	const struct zero_flags *f = plan->flags;
	struct place_spot spot = {(int16_t)plan->gpu_memory, (int16_t)plan->rank[0], PLACE_RESIDENT};

	if (f->cpu_offload || f->disk_offload) {
		spot.memory = (int16_t)(f->cpu_offload ? plan->ram : plan->drive);
		spot.mode = PLACE_STREAMED;
	} else if (plan->n_ranks > 1) {
		spot.mode = PLACE_ROWS;
	}
	return spot;
}

static void place_weights(const struct plan *plan, const struct hw_machine *hw, struct placement *p)
{
	struct place_spot here = {(int16_t)plan->gpu_memory, (int16_t)plan->rank[0], PLACE_RESIDENT}, home = home_of(plan);
	double kept = 0;

	p->rows.n = plan->n_ranks;
	for (int r = 0; r < plan->n_ranks; r++) {
		p->rows.spot[r] = (struct place_spot){
			(int16_t)hw->devices[plan->rank[r]].memory, (int16_t)plan->rank[r], PLACE_RESIDENT};
		p->rows.upto[r] = (r + 1.0) / plan->n_ranks;
	}
	for (int i = 0; i < p->model->n_tensors; i++) {
		const struct model_tensor *t = &p->model->tensors[i];
		bool keep = kept + (double)t->params <= plan->flags->resident_params;
		if (keep && is_matrix(t))
			kept += (double)t->params;
		p->tensor[i] = keep || !is_matrix(t) ? here : home;
	}
}

/* Bytes of the largest parameter, as it is stored and in 16 bits; experts one by one. */
static double largest_param(const struct model *m, bool wide)
{
	double largest = 0;

	for (int i = 0; i < m->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[i];
		double each = (wide ? HIDDEN_ELEMENT_BYTES * (double)t->params : (double)t->bytes) / (double)t->shape[2];
		largest = fmax(largest, is_matrix(t) ? each : 0);
	}
	return largest;
}

static void book_work(const struct plan *plan, const struct hw_machine *hw, const struct trace_workload *w,
	struct placement *p)
{
	const struct zero_flags *f = plan->flags;
	const struct model *m = p->model;
	uint64_t rows = w->batch * (w->prompt ? w->prompt : 1);
	uint64_t kv = w->batch * kvcache_bytes(m, p->kv_context, 1, &p->kv_types);
	bool away = f->cpu_offload || f->disk_offload || plan->n_ranks > 1;

	for (int r = 0; r < plan->n_ranks; r++) {
		int memory = hw->devices[plan->rank[r]].memory;
		ledger_book(&p->ledger, memory, LEDGER_ACTIVATION, "activations",
			model_activation_bytes(m, rows, w->batch, HIDDEN_ELEMENT_BYTES));
		if (away) /* the window overshoots by the last */
			ledger_book(&p->ledger, memory, LEDGER_OVERHEAD, "parameters fetched",
				(uint64_t)(largest_param(m, false) + fmin(plan->live, 1e15) *
						(double)m->weights_bytes / (double)m->params_total));
		if (f->quant_bits < 16)
			ledger_book(&p->ledger, memory, LEDGER_OVERHEAD, "expanded weights", (uint64_t)largest_param(m, true));
		if (r > 0)
			ledger_book(&p->ledger, f->kv_offload ? plan->ram : memory, LEDGER_KV, "KV cache and state", kv);
	}
	if (f->disk_offload)
		ledger_book(&p->ledger, f->use_gds ? plan->gpu_memory : plan->ram, LEDGER_OVERHEAD, "swap buffers",
			(uint64_t)fmin((double)f->buffer_count * f->buffer_size * SWAP_ELEMENT_BYTES,
				(double)f->buffer_count * largest_param(m, false)));
}

static const char *advise(const struct plan *plan, const struct placement *p, struct arena *a)
{
	const struct zero_flags *f = plan->flags;
	uint64_t room = ledger_free(&p->ledger, plan->gpu_memory);
	double each = (double)p->model->weights_bytes / (double)p->model->params_total;

	if (ledger_missing(&p->ledger, plan->ram))
		return f->cpu_offload && plan->drive >= 0 ? "disk-offload would free RAM" : "RAM is short: a smaller batch or type is needed";
	if (!ledger_fits(&p->ledger))
		return f->cpu_offload || f->disk_offload ? f->kv_offload ? "a smaller batch is needed" :
								"kv-offload, or a smaller batch, would free GPU memory" :
							   "cpu-offload would free GPU memory";
	if (!f->cpu_offload && !f->disk_offload)
		return "nothing is offloaded";
	return arena_printf(a, "%.1f GiB of GPU memory are free: gpu_resident_params=%.2ge9 would stay there",
		(double)room / 1073741824.0,
		fmin(f->resident_params + (double)room / each, (double)p->model->params_total) / 1e9);
}

static int zero_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	struct plan *plan = arena_new(a, struct plan);
	const struct trace_workload *w = &job->trace->workload;

	if (plan_init(plan, job, err))
		return -1;
	struct place_spot kv = {(int16_t)plan->gpu_memory, (int16_t)plan->rank[0], PLACE_RESIDENT};
	if (plan->flags->kv_offload)
		kv = (struct place_spot){(int16_t)plan->ram, (int16_t)plan->cpu, PLACE_RESIDENT};
	place_init(p, job->model, job->machine, a);
	p->kv_types = *KVCACHE_SAME(quant_find("f16"));
	p->kv_context = trace_max_context(job->trace);
	p->kv_sequences = w->batch;
	place_weights(plan, job->machine, p);
	for (uint32_t i = 0; i < job->model->n_layer; i++)
		p->kv[i] = kv;
	place_finish(p);
	book_work(plan, job->machine, w, p);
	p->engine = plan;
	p->advice = advise(plan, p, a);
	return 0;
}

/* ---- execution ---- */

enum status { AWAY, READING, READ, ISSUED };

/* A linear layer or an embedding; of experts one each. */
struct module {
	int layer;
	enum model_group group;
	double bytes, params;
	bool resident;
	enum status status; /* in this step */
	op_ref read, copied;
};

struct zero {
	const struct plan *plan;
	struct eager e;
	struct module *module;
	size_t n_modules;
	int (*first)[MODEL_GROUP_N], (*count)[MODEL_GROUP_N]; /* modules of a group, by layer; [n_layer]: of none */
	bool known;       /* the order of modules, since a pass was made */
	double available; /* elements fetched and not dropped */
	op_ref copies;    /* the end of the copy stream */
	op_ref reads;     /* of all reads under way */
	double attn_rows; /* of the projections of the layer at hand */
};

static void add_modules(struct zero *s, const struct placement *p, int layer, enum model_group group)
{
	const struct model *m = p->model;
	int row = layer == MODEL_NO_LAYER ? (int)m->n_layer : layer;

	s->first[row][group] = (int)s->n_modules;
	for (int i = 0; i < m->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[i];
		if (t->layer != layer || t->group != group || !is_matrix(t))
			continue;
		for (uint64_t k = 0; k < t->shape[2]; k++)
			s->module[s->n_modules++] = (struct module){
				.layer = layer,
				.group = group,
				.bytes = (double)t->bytes / (double)t->shape[2],
				.params = (double)t->params / (double)t->shape[2],
				.resident = p->tensor[i].mode == PLACE_RESIDENT,
			};
	}
	s->count[row][group] = (int)s->n_modules - s->first[row][group];
}

static void *zero_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	const struct model *m = p->model;
	struct zero *s = arena_new(a, struct zero);
	size_t n = 0;

	s->plan = p->engine;
	eager_init(&s->e, job->cost, job->machine, false);
	for (int i = 0; i < m->n_tensors; i++)
		n += m->tensors[i].shape[2];
	s->module = arena_array(a, struct module, n);
	s->first = arena_alloc_array(a, (size_t)m->n_layer + 1, sizeof(*s->first));
	s->count = arena_alloc_array(a, (size_t)m->n_layer + 1, sizeof(*s->count));
	add_modules(s, p, MODEL_NO_LAYER, MODEL_EMBED);
	for (uint32_t i = 0; i < m->n_layer; i++)
		for (int g = MODEL_ATTN; g < MODEL_OUTPUT; g++)
			if (!m->layers[i].draft)
				add_modules(s, p, (int)i, (enum model_group)g);
	add_modules(s, p, MODEL_NO_LAYER, MODEL_OUTPUT);
	return s;
}

static void begin_read(struct zero *s, struct module *m)
{
	struct eager *e = &s->e;

	exec_label(e->x, m->layer, m->group);
	eager_busy(e, hw_num_value(&e->cost->copy_submit_s));
	m->read = exec_copy_aside(e->x, s->plan->drive, s->plan->flags->use_gds ? e->gpu_memory : e->ram, m->bytes, true,
		e->host, 0);
	s->reads = exec_join(e->x, s->reads, m->read);
	m->status = READING;
}

/* All reads under way are waited for. */
static void end_reads(struct zero *s)
{
	eager_wait(&s->e, s->reads);
	s->reads = 0;
	for (size_t i = 0; i < s->n_modules; i++)
		if (s->module[i].status == READING)
			s->module[i].status = READ;
}

/* A part to each GPU over its own link, for which the host waits; then the others' parts from the neighbour; then they are put
   together. */
static op_ref gather(struct zero *s, double bytes)
{
	struct eager *e = &s->e;
	const struct plan *plan = s->plan;
	const struct hw_machine *hw = e->x->placement->machine;
	bool away = plan->flags->cpu_offload || plan->flags->disk_offload;
	op_ref parts = s->copies, whole;
	int n = plan->n_ranks;

	eager_busy(e, (GATHER_OPERATIONS + n) * hw_num_value(&e->cost->host_op_s));
	for (int r = 0; r < n && away; r++)
		parts = exec_join(e->x, parts, exec_copy_aside(e->x, e->ram, hw->devices[plan->rank[r]].memory, bytes / n,
			plan->flags->pin_memory || plan->flags->disk_offload, s->copies, e->host));
	if (away)
		eager_wait(e, parts);
	whole = parts;
	for (int r = 0; r < n && n > 1; r++)
		whole = exec_join(e->x, whole, exec_copy_aside(e->x, hw->devices[plan->rank[(r + 1) % n]].memory,
			hw->devices[plan->rank[r]].memory, bytes * (n - 1) / n, true, parts, e->host));
	struct platform_work build = {.bytes = 2 * bytes, .latency_s = hw_num_value(&e->cost->gpu_kernel_s)};
	return exec_kernel(e->x, e->gpu, &build, whole, 0);
}

static void issue(struct zero *s, struct module *m)
{
	struct eager *e = &s->e;
	const struct zero_flags *f = s->plan->flags;

	if (f->disk_offload && m->status == AWAY)
		begin_read(s, m);
	if (m->status == READING)
		end_reads(s);
	exec_label(e->x, m->layer, m->group);
	eager_busy(e, hw_num_value(&e->cost->gpu_alloc_s));
	if (s->plan->gathers)
		s->copies = gather(s, m->bytes);
	else if (!f->use_gds)
		s->copies = eager_copy_aside(e, e->ram, e->gpu_memory, m->bytes, f->pin_memory || f->disk_offload, 1, s->copies);
	m->copied = s->copies;
	m->status = ISSUED;
	s->available += m->params;
}

/* What comes next is fetched while the window allows; gives back the elements under way. */
static double prefetch(struct zero *s, size_t next)
{
	const struct plan *plan = s->plan;
	double limit = fmin(plan->live - s->available, plan->bucket), begun = 0;

	for (size_t i = next; i < s->n_modules && begun < limit; i++) {
		struct module *m = &s->module[i];
		if (m->resident || m->status == ISSUED)
			continue;
		if (plan->flags->disk_offload && m->status == AWAY)
			break;
		issue(s, m);
		begun += m->params;
	}
	return begun;
}

static void prefetch_reads(struct zero *s, size_t next, double under_way)
{
	uint64_t buffers = s->plan->flags->buffer_count, held = 0;
	double considered = 0;

	for (size_t i = next; i < s->n_modules; i++)
		held += s->module[i].status == READING || s->module[i].status == READ;
	for (size_t i = next; i < s->n_modules && considered <= 2 * under_way && held < buffers; i++) {
		struct module *m = &s->module[i];
		if (m->resident || m->status == ISSUED)
			continue;
		if (m->status == AWAY) {
			begin_read(s, m);
			held++;
		}
		considered += m->params;
	}
}

/* Before a module runs: it is there, what comes next is on its way. */
static void enter(struct zero *s, size_t i)
{
	struct module *m = &s->module[i];

	if (m->resident)
		return;
	if (m->status != ISSUED)
		issue(s, m);
	eager_wait(&s->e, s->copies);
	if (!s->known || !s->plan->flags->prefetch)
		return;
	double begun = prefetch(s, i + 1);
	if (s->plan->flags->disk_offload)
		prefetch_reads(s, i + 1, begun);
}

static void leave(struct zero *s, size_t i)
{
	if (!s->module[i].resident)
		s->available -= s->module[i].params;
}

/* A linear layer of so many rows, of which `share` is used (an expert that some tokens hit). */
static void run_module(struct zero *s, size_t i, double rows, double share, double operations)
{
	const struct module *m = &s->module[i];

	enter(s, i);
	exec_label(s->e.x, m->layer, m->group);
	if (s->plan->flags->quant_bits < 16)
		eager_elementwise(&s->e, share * (m->bytes + m->params * EXPANDED_BYTES), 1);
	eager_multiply(&s->e, share * m->params * HIDDEN_ELEMENT_BYTES, 2 * rows * m->params, operations);
	leave(s, i);
}

static void run_group(struct zero *s, int row, enum model_group group, double rows, double share, int from, int to)
{
	for (int k = from; k < to; k++)
		run_module(s, (size_t)(s->first[row][group] + k), rows, share,
			(share < 1 ? share : 1) * LINEAR_OPERATIONS + (k == 0 ? group_operations[group] : 0));
}

static void run_embedding(struct zero *s, double rows)
{
	const struct model *m = s->e.x->placement->model;
	int first = s->first[m->n_layer][MODEL_EMBED], n = s->count[m->n_layer][MODEL_EMBED];

	for (int i = first; i < first + n; i++) {
		enter(s, (size_t)i);
		exec_label(s->e.x, MODEL_NO_LAYER, MODEL_EMBED);
		eager_elementwise(&s->e, 3 * rows * m->hidden * HIDDEN_ELEMENT_BYTES, group_operations[MODEL_EMBED]);
		leave(s, (size_t)i);
	}
}

static void attend_on_cpu(struct zero *s, const struct trace_access *read, double fresh, bool decode)
{
	struct eager *e = &s->e;
	const struct placement *p = e->x->placement;
	const struct model_layer *l = &p->model->layers[read->layer];
	double entry = (double)kvcache_token_bytes(l, &p->kv_types), elements = (double)(l->kv_k_elements + l->kv_v_elements);
	double vectors = fresh * l->n_head * l->head_dim_k * HIDDEN_ELEMENT_BYTES;

	if (!decode) {
		/* Keys and values go while the GPU attends. */
		eager_beside(e, eager_copy_aside(e, e->gpu_memory, e->ram, fresh * entry, true, 2, e->stream));
		eager_attention(e, (double)read->kv_tokens * entry, model_attention_flops(l, 1, read->kv_pairs), CACHE_OPERATIONS);
		return;
	}
	struct platform_work work = {
		.bytes = (double)read->kv_tokens * elements * CPU_CACHE_BYTES,
		.flops = model_attention_flops(l, 1, read->kv_pairs),
		.dtype = HW_FP32,
		.read_share = hw_num_value(&e->cost->host_attention),
	};
	eager_copy(e, e->gpu_memory, e->ram, fresh * entry + vectors, false, 3);
	eager_move(e, (double)read->kv_tokens * elements * EXPAND_BYTES);
	e->host = exec_kernel(e->x, e->cpu, &work, e->host, 0);
	eager_copy(e, e->ram, e->gpu_memory, 2 * vectors, false, 1);
}

/* Attention, then the projection of what it gives: the last of its linear layers. */
static void run_attention(struct zero *s, const struct trace_access *read, double fresh, bool decode)
{
	const struct placement *p = s->e.x->placement;
	const struct model_layer *l = &p->model->layers[read->layer];
	int n = s->count[read->layer][MODEL_ATTN];

	exec_moves(s->e.x, EXEC_CACHE);
	if (s->plan->flags->kv_offload)
		attend_on_cpu(s, read, fresh, decode);
	else
		eager_attention(&s->e,
			CACHE_PASSES * (double)kvcache_token_bytes(l, &p->kv_types) * (double)read->kv_tokens,
			model_attention_flops(l, 1, read->kv_pairs), CACHE_OPERATIONS);
	if (n > 0)
		run_group(s, read->layer, MODEL_ATTN, s->attn_rows, 1, n - 1, n);
}

static void run_step(struct zero *s, const struct trace_step *step)
{
	const struct model *m = s->e.x->placement->model;
	const struct trace_access *a = step->access, *end = a + step->n_access;
	double fresh = 0;

	while (a < end) {
		int row = a->layer == MODEL_NO_LAYER ? (int)m->n_layer : a->layer;
		enum model_group group = (enum model_group)a->group;
		double n_hit, rows = (double)a->tokens;

		exec_label(s->e.x, a->layer, group);
		switch ((enum trace_kind)a->kind) {
		case TRACE_WEIGHTS:
			if (group == MODEL_EMBED) {
				run_embedding(s, rows);
			} else if (group == MODEL_ATTN && m->layers[row].n_head) {
				s->attn_rows = rows;
				run_group(s, row, group, rows, 1, 0, s->count[row][group] - 1);
			} else {
				run_group(s, row, group, rows, 1, 0, s->count[row][group]);
			}
			a++;
			break;
		case TRACE_EXPERT:
			/* Every expert is fetched, hit or not. */
			a = lower_sum_experts(a, end, &n_hit, &rows);
			run_group(s, row, group, rows / m->layers[row].n_expert, n_hit / m->layers[row].n_expert, 0,
				s->count[row][group]);
			break;
		case TRACE_KV_WRITE:
			fresh = rows;
			a++;
			break;
		case TRACE_KV_READ:
			run_attention(s, a++, fresh, step->phase == TRACE_DECODE);
			break;
		}
	}
}

static int zero_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct zero *s = state;

	(void)err;
	eager_begin(&s->e, x);
	for (size_t i = 0; i < s->n_modules; i++)
		s->module[i].status = AWAY;
	s->known = step->index > 0;
	s->available = 0;
	s->copies = s->reads = 0;
	run_step(s, step);
	/* generate() picks the token on the host. */
	eager_sync(&s->e);
	eager_busy(&s->e, hw_num_value(&s->e.cost->step_s));
	*last = s->e.host;
	return 0;
}

const struct engine_ops engine_zero_inference = {
	.name = "zero-inference",
	.version = "1",
	.help = "DeepSpeed ZeRO-Inference: parameters are fetched from RAM or NVMe for each use, some ahead",
	.flag = zero_flag,
	.n_flags = ARRAY_LEN(zero_flag),
	.flags_size = sizeof(struct zero_flags),
	.alias = zero_alias,
	.n_aliases = ARRAY_LEN(zero_alias),
	.ignored = zero_ignored,
	.n_ignored = ARRAY_LEN(zero_ignored),
	.kernels = "zero-inference",
	.overheads = true,
	.place = zero_place,
	.state_new = zero_state_new,
	.lower = zero_lower,
};
