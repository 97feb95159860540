#!/bin/sh
# offsim validate: machines of a corpus from its columns; each spelling of a part is understood, each gap is said.
. tests/cli/tap.sh

row() { # ID GPUS LINK CPU SOCKETS DRAM DRAM_GBPS DISK [ENGINE]: of a small model, its measured value 10
	echo "$1,g,${9:-llama.cpp},2025-01,qwen2.5-3b,q4_0,$2,$3,$4,$5,$6,${7-},measured,64,${8-},,,,1,16,4,0,decode_tok_s,10,A,"
}

offloaded() { # ID ENGINE GPUS DISK FLAGS METRIC: the same, of 16 bits
	echo "$1,g,$2,2023-02,qwen2.5-3b,f16,$3,,epyc-7742,1,ddr4-3200x8,,,256,$4,,$5,,1,16,4,,$6,10,A,"
}

corpus() { # runs the rows of standard input
	{
		echo id,group,engine,when,model,quant,gpus,link,cpu,sockets,dram,dram_gbps,dram_gbps_kind,ram_gib,disk,threads,flags,kv_dtype,batch,prompt_len,gen_len,depth,metric,value,tier,unknown
		cat
	} >"$tmp/corpus.csv"
	"$OFFSIM" validate "$tmp/corpus.csv" --json >"$tmp/out.json"
}

field() { # ID NAME: of the row
	sed -n "/\"id\": \"$1\"/,/}/s/^ *\"$2\": \"\{0,1\}\(.*[^\",]\)\"\{0,1\},\{0,1\}\$/\1/p" "$tmp/out.json"
}

says() { # ID STATUS REASON
	[ "$(field "$1" status)" = "$2" ] && [ "$(field "$1" reason)" = "$3" ] || { field "$1" status; field "$1" reason; return 1; }
}

links() { # cards one by one, and numbers that are not known
	{
		row all '2*rtx-3090+gtx-1660-super' 'pcie-?x16/pcie-?x4/pcie-?x1' core-i7-10700 1 ddr4-3867x2
		row gen h100-sxm-80gb 'pcie-5x?' epyc-9355 1 ddr5-6400x12
		row both rtx-4090 pcie-4x16 epyc-9355 1 ddr5-6400x12
		row none rtx-4090 '' epyc-9355 1 ddr5-6400x12
	} | corpus
	says all ok 'link generation' && says gen ok 'link width' && says both ok '' && says none ok 'native link'
}

modules() { # without a word: those of the processor's platform, on all of its sockets
	{
		row stated none '' epyc-9355 1 ddr5-6000x12
		row platform none '' epyc-9355 1 ''
		row type none '' epyc-9355 1 ddr5
		row channels none '' epyc-9355 1 ddr5-6000
		row desktop none '' '' 1 ''
		row old none '' core-i7-8700 1 ''
		row ddr4 none '' core-i7-8700 1 ddr4-2666x2
	} | corpus
	says platform ok 'DRAM type; DRAM speed; DRAM channels' && says type ok 'DRAM speed; DRAM channels' &&
		says channels ok 'DRAM channels' && says desktop ok 'CPU; DRAM type; DRAM speed; DRAM channels' ||
		return 1
	for id in platform type channels; do
		[ "$(field $id predicted)" = "$(field stated predicted)" ] || { echo "$id"; return 1; }
	done
	[ "$(field old predicted)" = "$(field ddr4 predicted)" ]
}

module_of_both() { # a module of GPU and CPU names its processor; pages of two sockets lie as they fell, and what is measured is one's rate
	{
		row gpu gh200-96gb nvlink-c2c '' '' ''
		row two none nvlink-c2c grace-72 2 lpddr5x 348
		row one none nvlink-c2c grace-72 1 lpddr5x 348
		row chip radeon-8060s unified '' '' ''
		row laptop none '' ryzen-ai-max-395 1 lpddr5x-8000x4
	} | corpus
	for id in gpu two one chip laptop; do
		[ "$(field $id status)" = ok ] || { field $id reason; return 1; }
	done
	[ "$(field gpu reason)" = '' ] &&
		awk -v one="$(field one predicted)" -v two="$(field two predicted)" 'BEGIN { exit !(two > 0.8 * one && two < one) }'
}

memory_of_chip() { # what is soldered to a chip sold with no other needs no word; a card beside it does not change it
	{
		row link gb10 unified '' '' ''
		row none gb10 '' '' '' ''
		row type gb10 '' gb10 1 lpddr5x
		row chip none unified apple-m2-ultra 1 ''
		row cpu none '' apple-m2-ultra 1 ''
		row gpu apple-m2-ultra '' '' '' ''
		row beside rtx-4090 '' ryzen-ai-max-395 1 ''
		row same rtx-4090 '' ryzen-ai-max-395 1 lpddr5x-8000x4
	} | corpus
	for id in link none type chip cpu gpu beside same; do
		[ "$(field $id status)" = ok ] || { field $id reason; return 1; }
	done
	[ "$(field none predicted)" = "$(field link predicted)" ] && [ "$(field type predicted)" = "$(field link predicted)" ] &&
		[ "$(field cpu predicted)" = "$(field chip predicted)" ] && [ "$(field beside predicted)" = "$(field same predicted)" ]
}

backends() { # by what the remark behind the flags says; of others that are no GPU's nothing
	for mark in '' hip vulkan rocm vulkan-amdvlk amx; do
		echo "m$mark,g,llama.cpp,2026-03,llama-2-7b,q4_0,radeon-8060s,unified,ryzen-ai-max-395,1,lpddr5x-8000,215,measured,128,,,-ngl 99${mark:+ ; backend $mark},,1,512,,0,prefill_tok_s,100,A,"
	done | corpus
	for id in m mhip mvulkan mrocm mvulkan-amdvlk mamx; do
		[ "$(field $id status)" = ok ] || { field $id reason; return 1; }
	done
	[ "$(field mhip predicted)" = "$(field mrocm predicted)" ] && [ "$(field m predicted)" = "$(field mvulkan predicted)" ] &&
		[ "$(field m predicted)" = "$(field mamx predicted)" ] &&
		[ "$(printf '%s\n' "$(field mhip predicted)" "$(field mvulkan predicted)" "$(field mvulkan-amdvlk predicted)" | sort -u | wc -l)" -eq 3 ]
}

drives() { # by rate, by part, by words, or only that there is one
	{
		row rate none '' epyc-9355 1 ddr5-6400x12 '' nvme@7
		row part none '' epyc-9355 1 ddr5-6400x12 '' crucial-t700
		row hdd none '' epyc-9355 1 ddr5-6400x12 '' hdd
		row words none '' epyc-9355 1 ddr5-6400x12 '' '30TB NVMe (DGX-2)'
		row unknown none '' epyc-9355 1 ddr5-6400x12 '' lustre
	} | corpus
	for id in rate part hdd words; do
		says $id ok '' || return 1
	done
	says unknown ok 'drive'
}

system_of_notes() { # launches and waits cost more under Windows: of a small model with experts on the CPU
	for notes in 'nothing to say' 'Windows 11' 'WSL2; two drives'; do
		{
			echo id,group,engine,when,model,quant,gpus,link,cpu,sockets,dram,dram_gbps,dram_gbps_kind,ram_gib,disk,threads,flags,kv_dtype,batch,prompt_len,gen_len,depth,metric,value,tier,unknown,notes
			echo "a,g,llama.cpp,2025-06,qwen3-30b-a3b,q4_k_m,rtx-4090,pcie-4x16,ryzen-9-7950x,1,ddr5-6000x2,,,64,,,-ngl 99 --cpu-moe,,1,16,4,0,decode_tok_s,10,A,,$notes"
		} >"$tmp/notes.csv"
		"$OFFSIM" validate "$tmp/notes.csv" --json >"$tmp/out.json" && field a predicted
	done >"$tmp/rates"
	awk '$1 > 0 && (NR == 1 || $1 < 0.99 * last) { n++ } { last = $1 } END { exit n != 3 }' "$tmp/rates" || { cat "$tmp/rates"; return 1; }
}

implied() { # rates that are none of a drive's: of a disk by a fit, of files in memory by the whole time of a token
	{
		offloaded ram1 airllm rtx-3090 ramdisk@1.35 '' s_per_token
		offloaded ram9 airllm rtx-3090 ramdisk@9 '' s_per_token
		offloaded gcp1 zero-inference t4 gcp-ssd@0.508 --disk-offload e2e_tok_s
		offloaded gcp9 zero-inference t4 '1.5TB SSD (GCP)' --disk-offload e2e_tok_s
		offloaded own1 zero-inference t4 nvme@0.508 --disk-offload e2e_tok_s
	} | corpus
	[ "$(field ram1 predicted)" = "$(field ram9 predicted)" ] && [ "$(field gcp1 predicted)" = "$(field gcp9 predicted)" ] &&
		awk -v gcp="$(field gcp1 predicted)" -v own="$(field own1 predicted)" 'BEGIN { exit !(own > 0 && gcp > 2 * own) }'
}

streams() { # a model sharded over GPUs has a stream on each, and tokens of all are counted; seconds a token are of one
	{
		offloaded one zero-inference '4*a100-80gb' '' '--quant-bits 16' e2e_tok_s
		offloaded all zero-inference '4*a100-80gb' '' '--zero-stage 3 (sharded over 4 GPUs)' e2e_tok_s
		offloaded wait zero-inference '4*a100-80gb' '' '--zero-stage 3' s_per_token
	} | corpus
	awk -v one="$(field one predicted)" -v all="$(field all predicted)" -v wait="$(field wait predicted)" 'BEGIN {
		exit !(one > 0 && all / one > 3.999 && all / one < 4.001 && one * wait > 0.999 && one * wait < 1.001) }'
}

shares() { # of layers, as ollama ps prints them
	{
		echo 'none,g,ollama,2025-01,qwen2.5-3b,q4_0,rtx-4090,,epyc-9355,1,ddr5-6400x12,,,64,,,num_gpu=0,,1,16,4,0,decode_tok_s,10,A,'
		echo 'some,g,ollama,2025-01,qwen2.5-3b,q4_0,rtx-4090,,epyc-9355,1,ddr5-6400x12,,,64,,,num_gpu=auto (38%/62% GPU/CPU),,1,16,4,0,decode_tok_s,10,A,'
		echo 'turned,g,ollama,2025-01,qwen2.5-3b,q4_0,rtx-4090,,epyc-9355,1,ddr5-6400x12,,,64,,,num_gpu=auto (62%/38% CPU/GPU),,1,16,4,0,decode_tok_s,10,A,'
		echo 'same,g,ollama,2025-01,qwen2.5-3b,q4_0,rtx-4090,,epyc-9355,1,ddr5-6400x12,,,64,,,num_gpu=14,,1,16,4,0,decode_tok_s,10,A,'
	} | corpus # of 36 layers and the output
	[ "$(field some predicted)" = "$(field same predicted)" ] && [ "$(field turned predicted)" = "$(field same predicted)" ] &&
		[ "$(field some predicted)" != "$(field none predicted)" ]
}

registered() { # a server's DDR4 gives less of its peak than a desktop's
	{
		row desktop none '' ryzen-7-5800x 1 ddr4-3200x2
		row server none '' epyc-7742 1 ddr4-3200x2
	} | corpus
	awk "BEGIN { exit !($(field server predicted) < 0.9 * $(field desktop predicted)) }"
}

not_run() {
	{
		row many '24*t4' '' '' '' ''
		row blank '' '' epyc-9355 1 ddr5
		row other rtx-4090 '' '' '' '' '' '' petals
		row typo rtx-4900 '' '' '' ''
	} | corpus
	says many skipped 'a machine has 16 GPUs at most, not 24*t4' || return 1
	says blank skipped 'the GPUs are not stated' && says other skipped "engine 'petals' is not modelled" &&
		[ "$(field typo status)" = error ] && field typo reason | grep -q "unknown gpu part 'rtx-4900'; did you mean"
}

passes() { # a batch as large as the stated pass; what guides set where experts are in RAM and it is not known
	prompts() { # ID FLAGS UNKNOWN
		echo "$1,g,llama.cpp,2025-10,qwen3-30b-a3b,q4_0,rtx-4090,pcie-4x16,epyc-9355,1,ddr5-6400x12,,measured,64,,,$2,,1,4099,,0,prefill_tok_s,10,A,$3"
	}
	{
		prompts large '-ngl 99 -ot exps=CPU -ub 4096' ''
		prompts both '-ngl 99 -ot exps=CPU -ub 4096 -b 4096' ''
		prompts unknown '-ngl 99 -ot exps=CPU' 'link;~ub'
		prompts guides '-ngl 99 -ot exps=CPU -ub 2048' ''
		prompts known '-ngl 99 -ot exps=CPU' link
		prompts layers '-ngl 20' '~ub'
		prompts plain '-ngl 20' ''
	} | corpus
	for id in large:'batch size' unknown:micro-batch; do
		field "${id%%:*}" reason | grep -q "${id#*:}" || { echo "$id"; return 1; }
	done
	for id in both known layers; do
		field "$id" reason | grep batch && return 1
	done
	[ "$(field large predicted)" = "$(field both predicted)" ] && [ "$(field unknown predicted)" = "$(field guides predicted)" ] &&
		[ "$(field known predicted)" != "$(field guides predicted)" ] && [ "$(field layers predicted)" = "$(field plain predicted)" ]
}

random_words() { # prompts of llama.cpp's benchmark programs, whose tokens have nothing in common; a decode's depth is no such
	words() { # ID ENGINE PROMPT METRIC
		echo "$1,g,$2,2026-06,qwen3-30b-a3b,q4_0,rtx-4090,pcie-4x16,epyc-9355,1,ddr5-6400x12,,measured,64,,,-ngl 99 --cpu-moe,,1,$3,4,0,$4,10,A,"
	}
	{
		words bench llama.cpp 64 prefill_tok_s
		words text llama.cpp 63 prefill_tok_s
		words other ktransformers 64 prefill_tok_s
		words about ktransformers 63 prefill_tok_s
	} | sed 's/\(ktransformers.*\)-ngl 99 --cpu-moe/\1/' | corpus
	# Of 128 experts 64 random words want nearly all, and all of them cross the link; a text wants fewer.
	awk -v bench="$(field bench predicted)" -v text="$(field text predicted)" -v other="$(field other predicted)" \
		-v about="$(field about predicted)" \
		'BEGIN { exit !(bench > 0 && bench < 0.85 * text && other > 0.99 * about && other < 1.05 * about) }' ||
		{ field bench predicted; field text predicted; field other predicted; field about predicted; return 1; }
}

bench_words() { # llama-bench's own output: 64 random words want nearly the experts of 512, and nearly as long
	for n in 64 512; do
		sed -n '/"n_prompt": 512/{p;q;}' tests/data/bench/llama-2025.jsonl | sed -e "s/\"n_prompt\": 512/\"n_prompt\": $n/" \
			-e 's/"build_number": 5163/"build_number": 9163/; s/"n_cpu_moe": 0/"n_cpu_moe": 48/' \
			-e 's/"model_type": "[^"]*"/"model_type": "qwen3moe 30B.A3B Q4_0"/; s/"model_n_params": [0-9]*/"model_n_params": 30532122624/; s/"model_size": [0-9]*/"model_size": 17297980000/'
	done >"$tmp/bench.jsonl"
	"$OFFSIM" validate "$tmp/bench.jsonl" --machine desktop-rtx4090-ddr5 --json >"$tmp/out.json" || return 1
	awk -v few="$(field 1 predicted)" -v many="$(field 2 predicted)" \
		'BEGIN { exit !(few > 0 && 512 / many < 1.25 * 64 / few) }' || { field 1 predicted; field 2 predicted; return 1; }
}

ok 'links: of each card, with gaps' links
ok 'words of llama-bench are random' bench_words
ok 'prompts of benchmark programs are random words' random_words
ok 'modules: those of the platform' modules
ok 'chips and modules with their processors' module_of_both
ok 'the memory of a chip' memory_of_chip
ok 'drives' drives
ok 'the system that the notes name' system_of_notes
ok 'passes and batches' passes
ok 'rates that are no drive'"'"'s' implied
ok 'tokens of all streams of a sharded model' streams
ok 'shares of layers' shares
ok 'registered modules' registered
ok 'what is not run says why' not_run
ok 'backends of GPUs' backends
finish
