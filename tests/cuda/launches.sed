# What of CUDA's C++ a plain compiler has no syntax for: launches, and the one instruction in assembler.
s/\([A-Za-z_][A-Za-z_0-9]*\(<[^<>]*>\)\{0,1\}\)<<<\(.*\)>>>(/cuda_launch(\1, \3)(/
s/asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(\([a-z]*\)));/\1 = stand_in_globaltimer();/
