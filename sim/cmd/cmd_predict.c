/*
 * cmd_predict.c - `offsim predict`: from a command line pasted as typed for the engine.
 */
#include "sim/cmd/cmd_pasted.h"
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/run.h"

static void usage(void)
{
	printf("usage: offsim predict --machine M [--model NAME] [--quant Q] [OPTION]... -- ENGINE COMMAND LINE\n"
	       "\n"
	       "Predicts what a command line of an engine, pasted as typed, would give: of\n"
	       "  llama.cpp          llama-server, llama-cli, llama-bench, llama-batched-bench, ..., and main and server of old\n"
	       "  ik_llama.cpp       the same, with a flag of its own (-fmoe, -rtr, ...) or from its folder; llama-sweep-bench\n"
	       "  Ollama             ollama run MODEL, with its variables\n"
	       "  vLLM               vllm serve, vllm bench latency, python -m vllm.entrypoints.openai.api_server\n"
	       "  SGLang             python3 -m sglang.launch_server, sglang serve, python -m sglang.bench_one_batch\n"
	       "  KTransformers      the same with --kt-... flags; python local_chat.py, python ktransformers/server/main.py\n"
	       "  FlexGen            python3 -m flexllmgen.flex_opt\n"
	       "  DeepSpeed          deepspeed ... run_model.py\n"
	       "  ExLlamaV3          python eval/perf.py, python examples/chat.py; TabbyAPI's python main.py\n"
	       "  ds4                ds4, ds4-server, ds4-bench\n"
	       "  accelerate         the text of the call that makes the device map: infer_auto_device_map(...),\n"
	       "                     from_pretrained(...), load_checkpoint_and_dispatch(...), cpu_offload(...)\n"
	       "  llama-cpp-python   that of Llama(...), or python3 -m llama_cpp.server\n"
	       "Words in front of the program may stay: VARIABLE=value, numactl, env, sudo, nice, uv run and the like. numactl binds,\n"
	       "CUDA_VISIBLE_DEVICES takes GPUs away, variables that the program reads are read. A command of several lines may be\n"
	       "one word between quotes.\n"
	       "\n"
	       "%s"
	       "      --exact          simulate every decode step, as in 'offsim run'\n"
	       "      --json           one JSON document on standard output, SI units\n"
	       "  -h, --help           this text\n"
	       "\n"
	       "exit status: 0 done, 1 failed while running, 2 bad input, 3 the placement does not fit\n"
	       "\n"
	       "example: offsim predict --machine server-8xh100 -- vllm serve llama-3.1-70b --tensor-parallel-size 4\n"
	       "         offsim predict --machine desktop-rtx4090-ddr5 --model llama-3.1-70b --quant q4_0 -- llama-server -ngl 40\n"
	       "         offsim predict --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant f16 -- \\\n"
	       "             'infer_auto_device_map(model, max_memory={0: \"22GiB\", \"cpu\": \"64GiB\"})'\n"
	       "         offsim predict --machine desktop-rtx4090-ddr5 --set machine.gpu0.link.gen=3 -- \\\n"
	       "             CUDA_VISIBLE_DEVICES=0 numactl -i all llama-server -hf unsloth/GLM-4.5-Air-GGUF:Q4_K_M --cpu-moe\n"
	       "         offsim predict --machine strix-halo -- llama-bench -m gpt-oss-120b-mxfp4.gguf --backend vulkan\n"
	       "         offsim predict --machine gcp-t4-208gb -- python3 -m flexllmgen.flex_opt --model facebook/opt-30b \\\n"
	       "             --percent 20 80 0 100 0 100 --gpu-batch-size 48 --num-gpu-batches 3 --cpu-cache-compute\n"
	       "         offsim predict --machine desktop-rtx3090-ddr4 --model qwen3-30b-a3b --quant exl3-4bpw -- \\\n"
	       "             python eval/perf.py -m ~/Qwen3-30B-A3B-exl3 -mcl 24 -cq 8\n",
		pasted_usage);
}

static int predict(struct pasted *p)
{
	struct run_options options = {.exact = p->exact, .interval = true, .interrupted = &cmd_interrupted};
	struct result r;
	struct run_why why;
	struct err err = {0};
	int status = pasted_load(p);

	if (status >= 0)
		return status;
	if (run_scenario(p->scenario, &options, &p->arena, &r, p->json ? NULL : &why, &err))
		return cmd_fail(&err);
	if (p->json)
		result_print_json(&r, stdout);
	else
		cmd_print_run(p->scenario, &r, &why);
	return r.fits ? EXIT_DONE : EXIT_NO_FIT;
}

int cmd_predict(int argc, char **argv)
{
	struct pasted p;
	int status = pasted_parse(&p, argc, argv, usage);

	if (status >= 0)
		return status;
	status = predict(&p);
	pasted_release(&p);
	return cmd_finish_stdout(status);
}
