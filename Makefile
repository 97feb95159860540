# offsim: make demo | make check | make | make install PREFIX=/usr DESTDIR=…        (make help lists all)
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := 0.1.0
PREFIX  ?= /usr/local
DESTDIR ?=
MODE    ?= release
BUILD   ?= build/$(MODE)$(if $(STATIC),-static)
FUZZ_SECONDS ?= 600
ifeq ($(origin CC),default)
CC      := gcc
endif
ifeq ($(origin CXX),default)
CXX     := g++
endif

CSTD     := -std=c11 -D_GNU_SOURCE -ffp-contract=off
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Wwrite-strings -Wvla -Wformat=2 -fno-common \
            -Werror=implicit-function-declaration -Werror=incompatible-pointer-types -Werror=int-conversion
OPT.release := -O2 -g
OPT.debug   := -O0 -g3
OPT.asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT.tsan    := -O1 -g -fsanitize=thread
OPT.cov     := -O0 -g --coverage
OPT.fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
               -fno-omit-frame-pointer
ifeq ($(OPT.$(MODE)),)
$(error MODE=$(MODE): must be one of release, debug, asan, tsan, cov)
endif
ifdef DEVELOPER
WARN += -Werror
endif

# pkg-config and the libraries may not be there yet when this file is read (see deps): asked at first use, once.
once        = $(or $($(1)_),$(eval $(1)_ := $(shell $(2)) )$($(1)_))
PKGS       := gsl sqlite3 jansson libfyaml libzstd
PKG_CFLAGS  = $(call once,PKG_CFLAGS,pkg-config --cflags $(PKGS))
PKG_LIBS    = $(call once,PKG_LIBS,pkg-config $(if $(STATIC),--static) --libs $(PKGS))
# A program that needs nothing of the machine it runs on, not even its C library. The linker warns of SQLite's dlopen, which
# only loading extensions would call.
ifdef STATIC
LDFLAGS    += -static
endif
CHECK_LIBS  = $(call once,CHECK_LIBS,pkg-config --libs check)
CPPFLAGS    = -I. -DOFFSIM_VERSION='"$(VERSION)"' -I$(BUILD)/gen $(PKG_CFLAGS)
CFLAGS     ?=
DEFINES     =
ALL_CFLAGS  = $(CSTD) $(WARN) $(OPT.$(MODE)) $(CPPFLAGS) $(CFLAGS)
LDLIBS      = $(PKG_LIBS) -lm -lpthread

# The library is every layer below the command line; what a file may include is checked by tests/layers.sh.
LIB_SRC := $(sort $(wildcard base/*.c hw/*.c models/*.c plots/*.c) $(filter-out sim/cmd/%,$(wildcard sim/*/*.c)))
BIN_SRC := $(sort $(wildcard sim/cmd/*.c))
TST_SRC := $(sort $(wildcard tests/unit/test_*.c tests/physics/test_*.c))
FUZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
BEN_SRC := $(sort $(wildcard tests/bench/*.c))
HDRS    := $(sort $(wildcard base/*.h hw/*.h models/*.h plots/*.h sim/*.h sim/*/*.h tests/*.h))
obj      = $(1:%.c=$(BUILD)/%.o)
TESTS   := $(TST_SRC:%.c=$(BUILD)/%)
BENCHES := $(BEN_SRC:%.c=$(BUILD)/%)

# V=1 shows whole commands.
Q        = $(if $(V),,@)
say      = $(if $(V),,@printf '  %-5s %s\n' $(1) '$(or $(2),$@)')
# Sub-makes of demo and check use every processor unless -j says otherwise.
NPROC    = $(shell nproc 2>/dev/null || echo 2)
JOBS     = --output-sync $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(NPROC))
SUBMAKE  = $(MAKE) --no-print-directory $(JOBS)
ifneq ($(filter demo docs check bench fuzz gpu-check,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

all: $(BUILD)/offsim $(BUILD)/liboffsim.a ## build the program and the library (MODE=release|debug|asan|tsan|cov, V=1, DEVELOPER=1, STATIC=1)
-include $(patsubst %.o,%.d,$(call obj,$(LIB_SRC) $(BIN_SRC) $(TST_SRC) $(FUZ_SRC) $(BEN_SRC)))
-include $(HDRS:%.h=$(BUILD)/%.h.ok.d)

# Rebuild when the flags change; the prefix is known to datadir.c alone.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' >$@
$(BUILD)/prefix: FORCE
	@mkdir -p $(@D); echo '$(PREFIX)' | cmp -s - $@ || echo '$(PREFIX)' >$@
$(BUILD)/base/datadir.o: $(BUILD)/prefix
$(BUILD)/base/datadir.o: DEFINES = -DOFFSIM_PREFIX='"$(PREFIX)"'
$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(DEFINES) -MMD -MP -c -o $@ $<
$(BUILD)/liboffsim.a: $(call obj,$(LIB_SRC))
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/offsim: $(call obj,$(BIN_SRC)) $(BUILD)/liboffsim.a
	$(call say,LINK)
	$(Q)$(CC) $(OPT.$(MODE)) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(TESTS) $(BENCHES): %: %.o $(BUILD)/liboffsim.a
	$(call say,LINK)
	$(Q)$(CC) $(OPT.$(MODE)) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(CHECK_LIBS)

# schema.sql, embedded
$(BUILD)/gen/schema_sql.h: sim/store/schema.sql
	@mkdir -p $(@D)
	@{ echo 'static const char schema_sql[] ='; sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $<; echo ';'; } >$@
$(BUILD)/sim/store/store.o: $(BUILD)/gen/schema_sql.h
# schema.sql, embedded: end

deps: ## install what is missing to build and run (nothing when all is there)
	@tests/deps.sh
deps-check: ## the same, and what is missing to test
	@tests/deps.sh check

demo: deps ## install what is missing, build, simulate the headline scenario, store it, draw it
	@$(SUBMAKE) all
	@scenarios/demo.sh $(BUILD)/offsim build/demo

docs: demo ## draw the figures of docs/ anew
	cp build/demo/throughput.svg docs/headline.svg
docs-lessons: all ## run the lessons and draw the figures of docs/lessons.md anew
	scenarios/lessons.sh $(BUILD)/offsim docs/lessons
CORPUS ?= ../shared/validation/open.csv
docs-accuracy: all ## predict every row of CORPUS=open.csv, write docs/accuracy.md and draw its figure
	docs/accuracy.sh $(BUILD)/offsim '$(CORPUS)' docs
leave-one-out: all ## fit what was fitted on CORPUS again without each source in turn, into docs/leave-one-out.md (some minutes)
	docs/leave_one_out.sh $(BUILD)/offsim '$(CORPUS)' docs
replay-check: all ## run graphs for real beside the simulation, on this machine, which should be quiet (some minutes, 4 GiB)
	scenarios/replay.sh $(BUILD)/offsim build/replay
golden-update: all ## write what the golden scenarios give now; review the difference like code
	tests/golden/update.sh $(BUILD)/offsim

check: deps-check ## install what is missing, build and run every test
	@$(SUBMAKE) --keep-going check-all
check-all: check-unit check-cli check-headers check-layers

# A sanitizer's complaint must not look like one of the program's own exit statuses; too large an allocation is
# for the program to handle.
SANITIZER = exitcode=99:allocator_may_return_null=1
TEST_ENV = env -u OFFSIM_DATA NO_COLOR=1 OFFSIM='$(abspath $(BUILD)/offsim)' BUILD='$(BUILD)' MODE='$(MODE)' CC='$(CC)' \
	PREFIX='$(PREFIX)' ASAN_OPTIONS=$(SANITIZER) TSAN_OPTIONS=$(SANITIZER) LSAN_OPTIONS=exitcode=99 \
	UBSAN_OPTIONS=exitcode=99:print_stacktrace=1 CK_TIMEOUT_MULTIPLIER=$(if $(filter asan tsan cov,$(MODE)),5,1)
check-unit: $(TESTS:%=%.run) ## the unit and physics tests
$(TESTS:%=%.run): %.run: % FORCE
	@$(TEST_ENV) $<
check-cli: all $(BENCHES) $(BUILD)/offsim-hostexec stand-in clang-build ## the tests of the command line
	@$(TEST_ENV) prove -j$(NPROC) tests/cli
check-headers: $(HDRS:%.h=$(BUILD)/%.h.ok) ## every header compiles alone
$(BUILD)/%.h.ok: %.h $(BUILD)/flags
	@mkdir -p $(@D); echo '#include "$<"' | \
		$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -MT $@ -x c -fsyntax-only - && touch $@
check-layers: ## who includes whom, and a few more rules about the tree
	@tests/layers.sh

# A second compiler's program, whose results must be the same to the byte, and the readers under libFuzzer.
# Locked, for checks of two modes may run in one tree at a time.
clang-build: | all
	@if tests/fuzz/run.sh have; then \
		flock build $(MAKE) --no-print-directory CC=clang MODE=release BUILD=build/clang all && \
		$(MAKE) --no-print-directory fuzz-build; \
	else echo '  (no clang with libFuzzer: tests that need it are skipped)'; fi
fuzz-build:
	@mkdir -p build
	@flock build $(MAKE) --no-print-directory CC=clang MODE=fuzz BUILD=build/fuzz fuzz-programs
fuzz-programs: $(FUZ_SRC:%.c=$(BUILD)/%)
$(FUZ_SRC:%.c=$(BUILD)/%): %: %.o $(BUILD)/liboffsim.a
	$(call say,LINK)
	$(Q)$(CC) $(OPT.fuzz) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LDLIBS)
fuzz: ## every reader under libFuzzer, FUZZ_SECONDS=600 each
	@tests/fuzz/run.sh have || { echo 'make fuzz needs clang with libFuzzer; make deps-check installs it' >&2; exit 1; }
	@$(SUBMAKE) fuzz-build
	@tests/fuzz/run.sh fuzz $(FUZZ_SECONDS)
fuzz-merge: fuzz-build ## keep what fuzzing found: the fewest inputs that add coverage go to tests/fuzz/corpus
	@tests/fuzz/run.sh merge

bench: ## speed: events per second, against SimGrid, what storing costs
	@$(SUBMAKE) all $(BENCHES)
	@OFFSIM=$(BUILD)/offsim BUILD=$(BUILD) tests/bench/bench.sh

# After `make MODE=cov check`: lines that ran, per file, the least covered first.
coverage: ## the table that MODE=cov check ends with
	@cd $(BUILD) && find base hw models plots sim -name '*.gcda' | xargs gcov -n -s $(CURDIR) -r | awk '\
		/^File /  { gsub("\047", "", $$2); file = $$2 } \
		/^Lines executed/ && file ~ /\.c$$/ { split($$2, p, /[:%]/); n = $$4; hit += p[2] * n / 100; all += n; \
			printf "%6.1f%% of %5d  %s\n", p[2], n, file | "sort -n"; file = "" } \
		/^No executable/ { file = "" } \
		END { close("sort -n"); if (all) printf "%6.1f%% of %5d lines\n", 100 * hit / all, all }'
ifeq ($(MODE),cov)
check-all: ; @$(MAKE) --no-print-directory coverage
$(TESTS:%=%.run) check-cli: | forget-coverage
forget-coverage: ; @mkdir -p $(BUILD) && find $(BUILD) -name '*.gcda' -delete
endif

# offsim-cuda, a program of its own: offsim itself never links CUDA. hostexec is its executor on threads in place of a GPU.
NVCC       ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCHS ?= 75 80 86 89 90 100 120
CXX_SRC    := $(sort $(wildcard hw/cuda/*.cc))
CUDA_SRC   := $(sort $(wildcard hw/cuda/*.cu))
CXX_OBJ    := $(CXX_SRC:%=$(BUILD)/%.o)
CUDA_OBJ   := $(CUDA_SRC:%=$(BUILD)/%.o)
CXX_WARN   := -Wall -Wextra -Wshadow
CXX_FLAGS   = -std=c++20 $(OPT.$(MODE)) -I. -DOFFSIM_VERSION='"$(VERSION)"'
# Those that this nvcc can make; the newest of them as PTX for what comes after, the oldest for what is between.
cuda_archs  = $(filter $(patsubst sm_%,%,$(call once,known_archs,$(NVCC) --list-gpu-code)),$(CUDA_ARCHS))
NVCC_FLAGS  = -std=c++20 -O2 -lineinfo -I. -DOFFSIM_VERSION='"$(VERSION)"' $(if $(DEVELOPER),--Werror all-warnings) \
              -Wno-deprecated-gpu-targets -Xcompiler -Wall,-Wextra,-Wshadow \
              $(foreach a,$(cuda_archs),-gencode arch=compute_$a,code=sm_$a) \
              $(foreach a,$(firstword $(cuda_archs)) $(lastword $(cuda_archs)),-gencode arch=compute_$a,code=compute_$a)
-include $(CXX_OBJ:%.o=%.d) $(CUDA_OBJ:%.o=%.d)
cuda: ## build offsim-cuda, where nvcc is (CUDA_ARCHS="90" for one kind of GPU)
	@test -n '$(NVCC)' || { echo 'make cuda needs nvcc of the CUDA toolkit, 12 or later; in the PATH, or NVCC=/path/to/nvcc' >&2; exit 1; }
	+@$(SUBMAKE) $(BUILD)/offsim-cuda
gpu-check: ## first contact with a GPU: build, calibrate, replay five scenarios, predicted against measured
	@tests/gpu_check.sh have '$(NVCC)'
	+@$(SUBMAKE) all cuda
	@tests/gpu_check.sh run $(BUILD)/offsim build/gpu-check
$(BUILD)/offsim-cuda: $(CUDA_OBJ) $(filter-out %/host_execute.cc.o,$(CXX_OBJ))
	$(call say,LINK)
	$(Q)$(NVCC) -cudart static -Xcompiler -static-libstdc++,-static-libgcc -o $@ $^ -ldl -lpthread
$(BUILD)/offsim-hostexec: $(CXX_OBJ)
	$(call say,LINK)
	$(Q)$(CXX) $(OPT.$(MODE)) -o $@ $^ -lpthread
# The same program on tests/cuda in place of CUDA's runtime, for machines without nvcc and without a GPU, and a cuBLAS for it.
STAND_IN     := $(BUILD)/stand-in
STAND_IN_OBJ := $(patsubst hw/cuda/%.cu,$(STAND_IN)/%.o,$(CUDA_SRC)) \
                $(patsubst %.cc,$(BUILD)/%.cc.o,$(filter-out tests/cuda/libcublas.cc,$(wildcard tests/cuda/*.cc)))
STAND_IN_CXX  = $(CXX) $(CXX_WARN) $(if $(DEVELOPER),-Werror) -Itests/cuda $(CXX_FLAGS)
-include $(STAND_IN_OBJ:%.o=%.d) $(STAND_IN)/libcublas.d
stand-in: $(STAND_IN)/offsim-cuda $(STAND_IN)/libcublas.so.13
stand-in-check: all stand-in $(BUILD)/offsim-hostexec ## what offsim-cuda measures of GPUs whose speeds are known (threads; a quiet machine)
	@$(TEST_ENV) TIMED=1 prove -v tests/cli/34-stand-in.t
$(STAND_IN)/offsim-cuda: $(STAND_IN_OBJ) $(filter-out %/host_execute.cc.o %/host_backend.cc.o,$(CXX_OBJ))
	$(call say,LINK)
	$(Q)$(CXX) $(OPT.$(MODE)) -rdynamic -o $@ $^ -ldl -lpthread
$(BUILD)/tests/cuda/%.cc.o: CXX_FLAGS += -Itests/cuda
# Vectors of whatever kind they are are read as others.
$(STAND_IN)/%.o: hw/cuda/%.cu tests/cuda/launches.sed $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q){ echo '#line 1 "$<"'; sed -f tests/cuda/launches.sed $<; } >$(@:.o=.cc)
	$(Q)$(STAND_IN_CXX) -Wno-unknown-pragmas -fno-strict-aliasing -MMD -MP -c -o $@ $(@:.o=.cc)
# Sums are of whole numbers, exact in any order.
$(STAND_IN)/libcublas.so.13: tests/cuda/libcublas.cc $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(STAND_IN_CXX) -O3 -ffast-math -fPIC -shared -MMD -MP -MF $(STAND_IN)/libcublas.d -o $@ $<
$(BUILD)/cuda-flags: FORCE
	@mkdir -p $(@D); echo '$(NVCC) $(NVCC_FLAGS)' | cmp -s - $@ || echo '$(NVCC) $(NVCC_FLAGS)' >$@
$(BUILD)/%.cc.o: %.cc $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CXX_WARN) $(if $(DEVELOPER),-Werror) $(CXX_FLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/%.cu.o: %.cu $(BUILD)/cuda-flags
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# What programs read at run time. uninstall removes what install installs, and the folders of ours that are empty then.
D        = $(DESTDIR)$(PREFIX)
SHARE    = share/offsim
DATA     = $(shell find hw models/cards models/routing.yaml scenarios plots -type f \( -name '*.yaml' -o -name '*.json' -o -name '*.csv' -o -name '*.otr' -o \
             -name '*.gp' \))
HEADER  := $(wildcard sim/offsim.h)
install: all $(BUILD)/install/liboffsim.a ## PREFIX=/usr/local, DESTDIR=
	install -D -m755 $(BUILD)/offsim '$D/bin/offsim'
	$(if $(wildcard $(BUILD)/offsim-cuda),install -D -m755 $(BUILD)/offsim-cuda '$D/bin/offsim-cuda')
	install -D -m644 $(BUILD)/install/liboffsim.a '$D/lib/liboffsim.a'
	$(if $(HEADER),install -D -m644 $(HEADER) '$D/include/offsim.h')
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@REQUIRES@|$(PKGS)|' offsim.pc.in >$(BUILD)/install/offsim.pc
	install -D -m644 $(BUILD)/install/offsim.pc '$D/lib/pkgconfig/offsim.pc'
	@set -e; for f in $(DATA); do install -D -m644 $$f '$D/$(SHARE)'/$$f; done; \
	echo "$(words $(DATA)) data files -> $D/$(SHARE)"
uninstall: ## with the PREFIX and DESTDIR of install
	rm -f '$D/bin/offsim' '$D/bin/offsim-cuda' '$D/lib/liboffsim.a' '$D/include/offsim.h' '$D/lib/pkgconfig/offsim.pc'
	@if [ -d '$D/$(SHARE)' ]; then \
		(cd '$D/$(SHARE)' && rm -f $(DATA)); find '$D/$(SHARE)' -depth -type d -empty -delete; \
	fi; echo "$(words $(DATA)) data files out of $D/$(SHARE)"
# The library exports nothing but the functions of offsim.h.
$(BUILD)/install/liboffsim.a: $(BUILD)/liboffsim.a
	@mkdir -p $(@D)
	$(call say,AR)
	$(Q)$(LD) -r -o $(@D)/offsim.o --whole-archive $<
	$(Q)objcopy --wildcard --keep-global-symbol='offsim_*' $(@D)/offsim.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(@D)/offsim.o

clean: ## remove build/
	rm -rf build
help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | awk -F'\t' '{ printf "  make %-14s %s\n", $$1, $$2 }'
FORCE:
.SECONDARY:
.PHONY: all cuda stand-in stand-in-check gpu-check deps deps-check demo docs docs-lessons docs-accuracy leave-one-out replay-check golden-update check check-all check-unit check-cli check-headers check-layers clang-build \
	fuzz fuzz-build fuzz-programs fuzz-merge bench coverage forget-coverage install uninstall clean help FORCE
