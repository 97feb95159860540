#!/bin/sh
# offsim validate: machines of a corpus from its columns; each spelling of a part is understood, each gap is said.
. tests/cli/tap.sh

row() { # ID GPUS LINK CPU SOCKETS DRAM DRAM_GBPS DISK [ENGINE]: of a small model, its measured value 10
	echo "$1,g,${9:-llama.cpp},2025-01,qwen2.5-3b,q4_0,$2,$3,$4,$5,$6,${7-},measured,64,${8-},,,,1,16,4,0,decode_tok_s,10,A,"
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

module_of_both() { # a module of GPU and CPU names its processor; the rate of its memory is that of one socket
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
		awk -v one="$(field one predicted)" -v two="$(field two predicted)" 'BEGIN { exit !(two > one) }'
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

shares() { # of layers, as ollama ps prints them
	{
		echo 'none,g,ollama,2025-01,qwen2.5-3b,q4_0,rtx-4090,,epyc-9355,1,ddr5-6400x12,,,64,,,num_gpu=0,,1,16,4,0,decode_tok_s,10,A,'
		echo 'some,g,ollama,2025-01,qwen2.5-3b,q4_0,rtx-4090,,epyc-9355,1,ddr5-6400x12,,,64,,,num_gpu=auto (38%/62% GPU/CPU),,1,16,4,0,decode_tok_s,10,A,'
		echo 'same,g,ollama,2025-01,qwen2.5-3b,q4_0,rtx-4090,,epyc-9355,1,ddr5-6400x12,,,64,,,num_gpu=14,,1,16,4,0,decode_tok_s,10,A,'
	} | corpus # of 36 layers and the output
	[ "$(field some predicted)" = "$(field same predicted)" ] && [ "$(field some predicted)" != "$(field none predicted)" ]
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
	says many skipped 'a machine has 8 GPUs at most, not 24*t4' || return 1
	says blank skipped 'the GPUs are not stated' && says other skipped "engine 'petals' is not modelled" &&
		[ "$(field typo status)" = error ] && field typo reason | grep -q "unknown gpu part 'rtx-4900'; did you mean"
}

ok 'links: of each card, with gaps' links
ok 'modules: those of the platform' modules
ok 'chips and modules with their processors' module_of_both
ok 'drives' drives
ok 'the system that the notes name' system_of_notes
ok 'shares of layers' shares
ok 'registered modules' registered
ok 'what is not run says why' not_run
finish
