# offsim: make demo | make check | make | make install PREFIX=/usr DESTDIR=…        (make help lists all)
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := 0.1.0
PREFIX  ?= /usr/local
MODE    ?= release
BUILD   ?= build/$(MODE)
CC      ?= cc
ifeq ($(origin CC),default)
CC      := gcc
endif

CSTD     := -std=c11 -D_GNU_SOURCE -ffp-contract=off
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Wwrite-strings -Wvla -Wformat=2 -fno-common
OPT.release := -O2 -g
OPT.debug   := -O0 -g3
OPT.asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT.tsan    := -O1 -g -fsanitize=thread
OPT.cov     := -O0 -g --coverage
ifeq ($(OPT.$(MODE)),)
$(error MODE=$(MODE): must be one of release, debug, asan, tsan, cov)
endif
ifdef DEVELOPER
WARN += -Werror
endif

PKGS     := gsl sqlite3 jansson libfyaml
CPPFLAGS  = -I. -DOFFSIM_VERSION='"$(VERSION)"' -DOFFSIM_PREFIX='"$(PREFIX)"' -I$(BUILD)/gen $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
CFLAGS   ?=
ALL_CFLAGS = $(CSTD) $(WARN) $(OPT.$(MODE)) $(CPPFLAGS) $(CFLAGS)
LDLIBS    = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm -lpthread
CHECK_LIBS = $(shell pkg-config --libs check 2>/dev/null)

# The library is every layer below the command line; what a file may include is checked by tests/layers.sh.
LIB_SRC := $(sort $(wildcard base/*.c hw/*.c models/*.c plots/*.c) $(filter-out sim/cmd/%,$(wildcard sim/*/*.c)))
BIN_SRC := $(sort $(wildcard sim/cmd/*.c))
TST_SRC := $(sort $(wildcard tests/unit/test_*.c tests/physics/test_*.c))
HDRS    := $(sort $(wildcard base/*.h hw/*.h models/*.h plots/*.h sim/*.h sim/*/*.h tests/*.h))
obj      = $(1:%.c=$(BUILD)/%.o)

all: $(BUILD)/offsim $(BUILD)/liboffsim.a
-include $(patsubst %.o,%.d,$(call obj,$(LIB_SRC) $(BIN_SRC) $(TST_SRC)))

# Rebuild when the flags change.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' >$@
$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
# schema.sql, embedded
$(BUILD)/gen/schema_sql.h: sim/store/schema.sql
	@mkdir -p $(@D)
	{ echo 'static const char schema_sql[] ='; sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $<; echo ';'; } >$@
$(BUILD)/sim/store/store.o: $(BUILD)/gen/schema_sql.h
$(BUILD)/liboffsim.a: $(call obj,$(LIB_SRC))
	rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/offsim: $(call obj,$(BIN_SRC)) $(BUILD)/liboffsim.a
	$(CC) $(OPT.$(MODE)) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/liboffsim.a
	$(CC) $(OPT.$(MODE)) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(CHECK_LIBS)

check-unit: $(patsubst %.c,$(BUILD)/%,$(TST_SRC))
	@set -e; for t in $(patsubst %.c,$(BUILD)/%,$(TST_SRC)); do $$t; done

clean:
	rm -rf build
FORCE:
.SECONDARY:
.PHONY: all check-unit clean FORCE
