# make_raw.awk: awk -f make_raw.awk >synthetic.json
# Samples in the form of `offsim-cuda calibrate -o`, of no machine: made of the constants below (key "truth") and noise of 1 %,
# one repetition in twelve disturbed by as much again. The same everywhere: its random numbers are its own.
function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
function noise(    x, i) { x = 0; for (i = 0; i < 12; i++) x += uniform(); return 1 + 0.01 * (x - 6) + (uniform() < 1 / 12 ? uniform() : 0) }
function sample(head, seconds, count, n,    i, list) {
	for (i = 0; i < n; i++)
		list = list (i ? ", " : "") sprintf("%.9g", seconds * count * noise())
	samples = samples (samples == "" ? "" : ",\n") "  {" head ", \"device\": 0, \"count\": " count ", \"seconds\": [" list "]}"
}
function copies(part, rate, small_rate,    bytes) {
	for (bytes = 64; bytes <= 268435456; bytes *= 4)
		sample("\"part\": \"" part "\", \"bytes\": " sprintf("%.0f", bytes), latency + bytes / (bytes <= 16777216 ? small_rate : rate), 4, 12)
}
function is(name, value) { truth = truth (truth == "" ? "" : ",\n") sprintf("  \"%s\": %.9g", name, value) }
BEGIN {
	state = 2385
	latency = 2.43e-6; h2d = 54.7e9; d2h = 56.3e9; both = 81.9e9; up_small = 15.9e9; up_large = 11.7e9; down = 9.83e9
	bandwidth = 4.037e12; kernel = 1.37e-6; launch = 2.61e-6; sync = 8.9e-6; submit = 5.3e-6; alloc = 143e-6
	fp16 = 738e12; fp32 = 49.8e12; ram = 213e9; loaded = 31e9; share16 = 0.887
	is("gpu0.link.latency", latency); is("gpu0.link.h2d", h2d); is("gpu0.link.d2h", d2h); is("gpu0.link.both", both)
	is("gpu0.link.h2d_pageable", up_large); is("gpu0.link.d2h_pageable", down); is("gpu0.bandwidth", bandwidth)
	is("gpu0.launch", launch); is("gpu0.flops.fp16", fp16); is("gpu0.flops.fp32", fp32)
	is("kernels.llama.cpp.gpu.kernel", kernel); is("kernels.llama.cpp.gpu.sync", sync); is("kernels.llama.cpp.gpu.copy_submit", submit)
	is("kernels.llama.cpp.gpu.read.16bit", share16); is("kernels.accelerate.gpu.alloc", alloc); is("ram.bandwidth", ram)
	copies("h2d", h2d, h2d); copies("d2h", d2h, d2h)
	copies("h2d_pageable", up_large, up_small); copies("d2h_pageable", down, down)
	sample("\"part\": \"both\", \"bytes\": 67108864", 67108864 / both, 1, 8)
	sample("\"part\": \"h2d_loaded\", \"threads\": 15, \"bytes\": 67108864", 67108864 / loaded, 1, 10)
	sample("\"part\": \"load\", \"threads\": 15, \"bytes\": 1073741824", 1073741824 / (ram - loaded), 1, 8)
	sample("\"part\": \"submit\", \"bytes\": 64", submit, 256, 20)
	sample("\"part\": \"read\", \"bytes\": 2147483648", 2147483648 / bandwidth, 1, 12)
	sample("\"part\": \"copy\", \"bytes\": 1073741824", 1073741824 / 3.6e12, 1, 12)
	sample("\"part\": \"zero_copy\", \"bytes\": 268435456", 268435456 / 47e9, 1, 12)
	sample("\"part\": \"launch\", \"bytes\": 0", launch, 1000, 20)
	sample("\"part\": \"graph_launch\", \"bytes\": 0", kernel, 1000, 20)
	sample("\"part\": \"sync\", \"bytes\": 0", sync, 1, 200)
	sample("\"part\": \"alloc\", \"bytes\": 16777216", alloc, 1, 40)
	sample("\"part\": \"alloc\", \"bytes\": 268435456", 4 * alloc, 1, 40)
	sample("\"part\": \"gemv\", \"type\": \"plain fp16\", \"rows\": 1, \"bytes\": 1073758208, \"flops\": 1073741824", 1073758208 / bandwidth / 0.7, 1, 10)
	sample("\"part\": \"gemv\", \"type\": \"cublas fp16\", \"rows\": 1, \"bytes\": 1073758208, \"flops\": 1073741824", 1073758208 / bandwidth / share16, 1, 10)
	sample("\"part\": \"gemm\", \"type\": \"cublas fp16\", \"rows\": 4096, \"bytes\": 268435456, \"flops\": 549755813888", 549755813888 / fp16, 1, 10)
	sample("\"part\": \"gemm\", \"type\": \"cublas fp16\", \"rows\": 512, \"bytes\": 150994944, \"flops\": 68719476736", 68719476736 / fp16 / 0.8, 1, 10)
	sample("\"part\": \"gemm\", \"type\": \"cublas fp32\", \"rows\": 4096, \"bytes\": 536870912, \"flops\": 549755813888", 549755813888 / fp32, 1, 10)
	sample("\"part\": \"drive\", \"threads\": 8, \"bytes\": 1073741824", 1073741824 / 6.1e9, 1, 3)
	# What nobody should use: it disagreed with itself.
	sample("\"part\": \"read\", \"bytes\": 4294967296, \"fault\": \"1 us one way, 9 us the other\"", 1, 1, 2)
	print "{\n \"format\": \"offsim-cuda raw 1\",\n \"date\": \"2026-11-30T12:00:00Z\",\n \"host\": \"synthetic\",\n \"ram_bytes\": 137438953472,"
	print " \"version\": \"0\",\n \"driver\": 13000,\n \"driver_text\": \"NVRM version: none\",\n \"runtime\": 13000,\n \"quick\": false,\n \"devices\": ["
	print "  {\"index\": 0, \"name\": \"no GPU\", \"sm\": \"9.0\", \"multiprocessors\": 132, \"memory_bytes\": 150754820096, \"free_bytes\": 150000000000,"
	print "   \"copy_engines\": 3, \"integrated\": false, \"pageable_access\": false, \"pcie_gen\": 5, \"pcie_width\": 16}\n ],"
	print " \"samples\": [\n" samples "\n ],\n \"skipped\": [\n  {\"part\": \"peer\", \"why\": \"there is one GPU\"}\n ],"
	print " \"truth\": {\n" truth "\n }\n}"
}
