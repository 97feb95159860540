#include "sim/engine/divide.h"

#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

int divide_init(struct placement *p, const struct engine_job *job, uint64_t n, const char *flag, struct arena *a,
	struct err *err)
{
	const struct hw_machine *hw = job->machine;
	int first = hw_first_device(hw, HW_DEVICE_GPU), gpus = 0;

	for (int d = 0; d < hw->n_devices; d++)
		gpus += hw->devices[d].kind == HW_DEVICE_GPU;
	if (gpus == 0)
		return err_set(err, ERR_INPUT, "the machine has no GPU, without which this engine does not run");
	if (n > (uint64_t)gpus)
		return err_set(err, ERR_INPUT, "flag '%s': the machine has %d GPU%s", flag, gpus, gpus == 1 ? "" : "s");
	for (uint32_t i = 0; i < job->model->n_layer; i++)
		if (job->model->layers[i].n_head % n)
			return err_set(err, ERR_INPUT, "flag '%s': the %u heads of a layer cannot be divided over %llu GPUs", flag,
				job->model->layers[i].n_head, (unsigned long long)n);
	place_init(p, job->model, hw, a);
	p->rows.n = (int)n;
	/* GPUs are neighbours in the list of devices. */
	for (int i = 0; i < p->rows.n; i++) {
		p->rows.spot[i] = (struct place_spot){(int16_t)hw->devices[first + i].memory, (int16_t)(first + i), PLACE_ROWS};
		p->rows.upto[i] = (i + 1.0) / p->rows.n;
	}
	return 0;
}

struct place_spot divide_here(const struct placement *p)
{
	struct place_spot spot = p->rows.spot[0];

	spot.mode = p->rows.n > 1 ? PLACE_ROWS : PLACE_RESIDENT;
	return spot;
}

struct place_spot divide_away(struct placement *p, int memory, enum place_mode away)
{
	struct place_spot spot = p->rows.spot[0];

	/* One memory for both: it is there already. */
	if (memory == spot.memory)
		return divide_here(p);
	p->rows.away = away;
	spot.memory = (int16_t)memory;
	spot.mode = p->rows.n > 1 ? PLACE_ROWS : away;
	return spot;
}

void divide_resident(struct placement *p)
{
	for (int t = 0; t < p->model->n_tensors; t++) {
		int layer = p->model->tensors[t].layer;
		p->tensor[t] = divide_here(p);
		if (layer >= 0 && p->model->layers[layer].draft)
			p->tensor[t].memory = PLACE_LEFT_OUT;
	}
	for (uint32_t i = 0; i < p->model->n_layer; i++)
		p->kv[i] = divide_here(p);
}

int divide_bind(struct placement *p, const char *sockets, const char *flag, struct err *err)
{
	const struct hw_machine *hw = p->machine;
	const char *at = sockets;

	if (!*sockets)
		return 0;
	for (int i = 0; i < p->rows.n; i++) {
		char *end;
		const struct hw_link *link = hw_host_link(hw, p->rows.spot[i].memory);
		at += strspn(at, " ,");
		unsigned long node = strtoul(at, &end, 10);
		if (end == at || node >= hw_sockets(hw))
			return err_set(err, ERR_INPUT, "flag '%s' names a socket below %u for each of %d GPUs, not '%.60s'", flag,
				hw_sockets(hw), p->rows.n, sockets);
		at = end;
		bool far = node != hw_socket_of(hw, p->rows.spot[i].device);
		if (far && link && !(hw_num_value(&link->remote_bytes_s) > 0))
			return err_set(err, ERR_INPUT, "flag '%s': how fast '%s' reaches memory of another socket is not known (its key "
				"'remote')", flag, link->name);
		p->remote_share[p->rows.spot[i].memory] = far;
	}
	at += strspn(at, " ,");
	return *at ? err_set(err, ERR_INPUT, "flag '%s': '%.60s' is left behind the sockets of %d GPUs", flag, at, p->rows.n) : 0;
}

void divide_book(struct placement *p, enum ledger_category c, const char *what, uint64_t bytes)
{
	for (int i = 0; i < p->rows.n; i++)
		ledger_book(&p->ledger, p->rows.spot[i].memory, c, what, bytes);
}

bool divide_fits(const struct placement *p)
{
	for (int i = 0; i < p->rows.n; i++)
		if (ledger_missing(&p->ledger, p->rows.spot[i].memory))
			return false;
	return true;
}

double divide_least_gib(double most, divide_fits_fn *fits, const void *ctx, struct arena *a)
{
	double too_few = -1, enough = (double)(uint64_t)most;

	while (enough - too_few > 1) {
		double middle = (double)(int64_t)((too_few + enough) / 2);
		struct arena_mark mark = arena_mark(a);
		*(fits(ctx, middle, a) ? &enough : &too_few) = middle;
		arena_rewind(a, mark);
	}
	return enough;
}

double divide_streamed_bytes(const struct placement *p, int layer, int i)
{
	double bytes = 0;

	for (int g = 0; g < MODEL_GROUP_N; g++) {
		const struct place_group *group = &p->group[layer][g];
		for (int k = 0; k < group->n; k++) {
			const struct place_part *part = &group->part[k];
			if (part->spot.mode == PLACE_STREAMED && part->spot.device == p->rows.spot[i].device)
				bytes += (double)part->bytes;
		}
	}
	return bytes;
}

int divide_kv_types(const char *name, struct kvcache_types *types, struct err *err)
{
	static const char *const known[][2] = {{"auto", "f16"}, {"bfloat16", "bf16"}, {"bf16", "bf16"}, {"float16", "f16"},
		{"f16", "f16"}, {"fp8", "f8_e4m3"}, {"fp8_e4m3", "f8_e4m3"}, {"fp8_e5m2", "f8_e4m3"}};
	struct suggest s;
	char near[128];

	suggest_init(&s, name);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(known[i][0], name) == 0) {
			*types = *KVCACHE_SAME(quant_find(known[i][1]));
			return 0;
		}
		suggest_offer(&s, known[i][0]);
	}
	return err_set(err, ERR_INPUT, "flag 'kv-cache-dtype': '%s' is not known%s", name, suggest_text(&s, near, sizeof(near)));
}
