# Everything is built from here; no file is named below: what lies in src/,
# shell/ and tests/ is found by its name.
#
#   src/programs/NAME_main.c, shell/NAME_main.c   the program bin/NAME
#   any other src/*/*.c, shell/*.c       a member of the library
#   results/blink*, tune/blink*          programs that are scripts
#   tests/unit/test_*.c, test_*.py       cmocka tests, unittest's
#   tests/bench/bench_*.c                benchmarks
#   tests/fuzz/fuzz_*.c                  libFuzzer targets
#   tests/programs/fault.c               build/fault.so, for LD_PRELOAD
#   any other tests/programs/*.c         programs that the check scripts use
#   */NAME.1                             a man page, beside its program
#
# A variant is one way to compile all that, in a folder of its own:
#
#   build/musl    static programs, what a user gets: they start in half the
#                 time, having nothing to link at run time; and the tests that
#                 tests/unit/musl/tests.txt names, by cmocka.h beside that
#   build/dyn     glibc: all tests, and programs that LD_PRELOAD can reach
#   build/asan    SAN=asan: AddressSanitizer and UBSan
#   build/tsan    SAN=tsan: ThreadSanitizer
#   build/clang*  CC=clang-14, alone or with SAN
#
# make help lists the targets and what may be set.  For another machine there
# are besides: ARCH, its compilers CC, MUSL_CC and AR, its STRIP, and SYSROOT.

ifeq ($(origin CC),default)
CC := gcc
endif
MUSL_CC ?= musl-gcc
FUZZ_CC ?= clang-14
STRIP ?= strip
BUILD ?= build
# Where systemd looks for the daemon's unit.
UNITS ?= $(PREFIX)/lib/systemd/system
# Where the scripts and what they read are.
OURS = $(PREFIX)/lib/blinksort
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20
ARCH := $(shell uname -m)
# What /usr/include and /usr/lib are below; empty: /
SYSROOT ?=
TRIPLET := $(ARCH)-linux-gnu

# --- which variants ----------------------------------------------------------

CLANG := $(if $(findstring clang,$(CC)),clang)
EMPTY :=
SPACE := $(EMPTY) $(EMPTY)
# Of the tests; of the programs too unless those are static.
VARIANT := $(or $(subst $(SPACE),-,$(strip $(CLANG) $(SAN))),dyn)

ifeq ($(VARIANT),dyn)
LIBC ?= $(if $(shell command -v $(MUSL_CC)),musl,glibc)
else
override LIBC := glibc
endif
PROGRAM_VARIANT := $(if $(filter musl,$(LIBC)),musl,$(VARIANT))
# Only the plain build is what bin/ holds.
BIN := $(if $(filter dyn,$(VARIANT)),bin,$(BUILD)/$(VARIANT)/bin)

# --- what there is -----------------------------------------------------------

# Suffixes of files for one instruction set, on x86-64 only.
X86_SUFFIXES := avx2 avx512 pclmul vpclmul
# Tests that run in the static build, too, since they meet the C library.
MUSL_TESTS := $(filter $(wildcard tests/unit/test_*.c),\
	$(patsubst %,tests/unit/test_%.c,$(shell sed 's/[\# ].*//' tests/unit/musl/tests.txt)))
X86_ONLY := $(if $(filter x86_64,$(ARCH)),,$(addprefix %_,$(X86_SUFFIXES:=.c)))

SOURCES := $(filter-out $(X86_ONLY),$(wildcard src/*/*.c shell/*.c))
MAINS := $(filter %_main.c,$(SOURCES))
MEMBERS := $(filter-out $(MAINS),$(SOURCES))
PROGRAMS := $(notdir $(MAINS:_main.c=))
TESTS := $(wildcard tests/unit/test_*.c)
BENCHES := $(wildcard tests/bench/bench_*.c)
FUZZERS := $(wildcard tests/fuzz/fuzz_*.c)
FAULT := $(wildcard tests/programs/fault.c)
HELPERS := $(filter-out $(FAULT),$(wildcard tests/programs/*.c))
SCRIPTS := $(wildcard .ci/run tests/run tests/cluster tests/*.sh \
	     tests/*/*.sh tune/blinktune tune/*/*.sh)
PYTHON := $(wildcard results/blinkreport results/blinktrial \
	    results/*/*.py results/*/*/*.py tests/*/*.py)
# Programs that are scripts: bin/ has links to them, which is how they find the
# others; what they read lies beside them.
SCRIPT_PROGRAMS := $(filter-out %.1,$(wildcard results/blink* tune/blink*))
SCRIPT_DATA := $(wildcard results/trials/*.py results/trials/*/*.py \
		 results/schema/*.json \
		 results/*.sweep tune/*/*.sh tune/profiles/*.profile)
PAGES := $(wildcard src/programs/*.1 shell/*.1 tune/*.1 results/*.1)

# --- flags -------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	    -Wvla -Wno-format-zero-length $(if $(WERROR),-Werror)
BASE_FLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -pthread -iquote src -iquote . \
	      $(WARNINGS)

AVX2 := -mavx2 -mbmi2
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512dq -mavx512vl
# No CPU has AVX2 and not SSE4.2, whose crc32 crc32c_pclmul.c takes.
PCLMUL := -mpclmul -msse4.2
# The flags of one file, by its suffix: $(call file_flags,FILE)
file_flags = $(if $(filter %_avx2.c,$1),$(AVX2)) \
	     $(if $(filter %_avx512.c,$1),$(AVX512)) \
	     $(if $(filter %_pclmul.c,$1),$(PCLMUL)) \
	     $(if $(filter %_vpclmul.c,$1),$(AVX512) $(PCLMUL) -mvpclmulqdq) \
	     $(if $(filter src/base/version.c,$1),-DBLINKSORT_COMMIT='"$(COMMIT)"')

# Functions that a test program calls by way of its own: WRAP_NAME.
WRAP_lying_rank := datagram_send rank_find
WRAP_fuzz_cluster := clock_gettime nanosleep ppoll topology_read

ASAN := -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
TSAN := -fsanitize=thread
SAN_FLAGS := $(if $(filter asan,$(SAN)),$(ASAN))$(if $(filter tsan,$(SAN)),$(TSAN))

# musl's own headers first; those of the kernel and of the libraries, which
# stand beside glibc's, only for what musl does not have.
MUSL_FLAGS := -fno-pie -Itests/unit/musl -idirafter $(SYSROOT)/usr/include \
	      -idirafter $(SYSROOT)/usr/include/$(TRIPLET)
# Code and what it reads share a segment: two less to map at each start.
STATIC_FLAGS := -static -no-pie -Wl,-z,noseparate-code

LIBRARIES := uring sodium
# Ours again, behind them: fortify.c has what they take from glibc.
STATIC_LIBRARIES := $(LIBRARIES:%=$(SYSROOT)/usr/lib/$(TRIPLET)/lib%.a) \
	$(BUILD)/musl/libblink.a
DYNAMIC_LIBRARIES := -Wl,--as-needed $(LIBRARIES:%=-l%)

COMMIT := $(or $(shell git describe --always --dirty 2>/dev/null),unknown)

# --- packages ----------------------------------------------------------------

# What the programs are built with, and all that make demo needs.
BUILD_PACKAGES := make gcc libc6-dev musl-tools liburing-dev libsodium-dev

# What the tests need besides.
CHECK_PACKAGES := $(BUILD_PACKAGES) libcmocka-dev xfsprogs util-linux \
	python3 python3-numpy python3-scipy python3-matplotlib \
	python3-jsonschema mandoc busybox \
	hdparm fio ethtool fdisk strace procps iproute2 nftables

LINT_PACKAGES := $(CHECK_PACKAGES) clang-14 clang-tidy-14 clang-format-14 \
	shellcheck flake8

FUZZ_PACKAGES := $(BUILD_PACKAGES) clang-14 libclang-rt-14-dev

# All of those, and the browser that check_report_page.sh looks at a page with.
PACKAGES := $(sort $(CHECK_PACKAGES) $(LINT_PACKAGES) $(FUZZ_PACKAGES) chromium)

# What bench_cluster.py compares with, if it is there.
BENCH_PACKAGES := mpich libmpich-dev openmpi-bin libopenmpi-dev

# What check-vm and check-vm-unit need besides; the kernel they fetch themselves.
VM_PACKAGES := $(CHECK_PACKAGES) qemu-system-x86 cpio kmod mdadm systemd

# What check-arm64 needs besides; the libraries it fetches itself.
ARM64_PACKAGES := $(BUILD_PACKAGES) gcc-aarch64-linux-gnu qemu-user

# Those without which nothing compiles, of the packages above.
MISSING = $(strip \
	$(if $(shell command -v $(CC)),,$(CC)) \
	$(if $(wildcard $(SYSROOT)/usr/include/stdio.h),,libc6-dev) \
	$(if $(wildcard $(SYSROOT)/usr/include/liburing.h),,liburing-dev) \
	$(if $(wildcard $(SYSROOT)/usr/include/sodium.h),,libsodium-dev))

# --- targets -----------------------------------------------------------------

ifneq ($(V),1)
Q := @
say = @printf '  %-7s %s\n' $(1) $(patsubst $(BUILD)/%,%,$(2));
endif

.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
# All CPUs are used unless the user gave -j.  Several goals are made one after
# the other: of "make check bench", the second would measure beside the first.
ifeq ($(filter -j%,$(MAKEFLAGS))$(filter-out 0,$(MAKELEVEL))$(word 2,$(MAKECMDGOALS)),)
MAKEFLAGS += -j$(shell nproc)
endif

.PHONY: all
all: $(PROGRAMS:%=$(BIN)/%) $(addprefix $(BIN)/,$(notdir $(SCRIPT_PROGRAMS))) ## the programs, in bin/
	@$(tell_python)

# What the programs that are scripts need at run time; their directories are
# looked up, not imported: that takes a second.
PYTHON_MODULES := numpy scipy matplotlib jsonschema
tell_python = /usr/bin/python3 -c 'import sys; from importlib.util import find_spec; \
	sys.exit(not all(map(find_spec, sys.argv[1:])))' $(PYTHON_MODULES) \
	2>/dev/null || echo "To run, blinktrial and blinkreport need" \
	"$(strip python3 $(PYTHON_MODULES:%=python3-%)); the other programs" \
	"do not."

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | \
		while IFS="$$(printf '\t')" read -r target what; do \
			printf '%-16s %s\n' "$$target" "$$what"; done
	@echo
	@echo 'What may be set, as in make SAN=asan check:'
	@sed -n 's/^# \([A-Z_]*=[^ ]*\)  *\(.*\)/\1\t\2/p' Makefile | \
		while IFS="$$(printf '\t')" read -r setting what; do \
			printf '%-16s %s\n' "$$setting" "$$what"; done

# What make help shows of settings:
#
# SAN=asan        build with AddressSanitizer and UBSan; tsan: ThreadSanitizer
# CC=clang-14     compile with that, not with gcc
# LIBC=glibc      link programs dynamically even if musl-gcc is there
# CFLAGS=FLAGS    add these to the compiler's, as LDFLAGS to the linker's
# WERROR=1        take a compiler's warning for an error
# V=1             show the whole commands
# BUILD=FOLDER    build there, not in build/
# CHECKS=NAMES    run these tests only: make check CHECKS=test_parse
# NODES=16        make demo: sort on as many nodes of this machine
# WAYS=user       make check-fresh: this way only, of tests/fresh.sh
# LABEL=TEXT      make bench: the name of the rows in results/
# FUZZ_SECONDS=20 make fuzz: how long each target runs
# PREFIX=/usr     make install: the folder of bin/, lib/ and share/
# DESTDIR=FOLDER  make install: put before PREFIX, for a package

# $(call install,PACKAGES) installs those that are missing.  On systems without
# dpkg nothing is known of packages: the compiler will say what it misses.
define install
@command -v dpkg-query >/dev/null || exit 0; \
there=" $$(dpkg-query -W -f '$${db:Status-Status}=$${Package} ' $(1) \
	2>/dev/null)"; \
missing=; for package in $(1); do \
	case $$there in *" installed=$$package "*) ;; \
	*) missing="$$missing $$package" ;; esac; \
done; \
[ -n "$$missing" ] || exit 0; \
as_root=; \
if [ "$$(id -u)" != 0 ]; then \
	as_root=sudo; \
	command -v sudo >/dev/null || { \
		echo "make: packages are missing, and only root can install" \
			"them: apt-get install --no-install-recommends$$missing" >&2; \
		exit 2; \
	}; \
fi; \
echo "installing:$$missing"; \
$$as_root apt-get -q update && \
$$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y install \
	--no-install-recommends $$missing
endef

.PHONY: deps
deps: ## install all Debian packages that any of these targets needs
	$(call install,$(PACKAGES))

.PHONY: bench-deps
bench-deps: ## install what the benchmarks compare with
	$(call install,$(BENCH_PACKAGES))

# For tests/fresh.sh
.PHONY: print-build-packages print-check-packages
print-build-packages:
	@echo $(BUILD_PACKAGES)

print-check-packages:
	@echo $(CHECK_PACKAGES)

# What is found at the start, such as the compilers, is looked for again when
# install has installed them: hence a second make.
.PHONY: check
check: ## build and run all tests
	$(call install,$(CHECK_PACKAGES) $(if $(CLANG),$(FUZZ_PACKAGES)))
	@$(MAKE) --no-print-directory all tests
	@VARIANT=$(VARIANT) BIN=$(BIN) BUILD=$(BUILD) tests/run $(CHECKS)

.PHONY: check-vm
check-vm: ## blinktune on real devices, in a machine of QEMU's
	$(call install,$(VM_PACKAGES))
	@tests/vm/check.sh devices $(BUILD)/vm

.PHONY: check-vm-unit
check-vm-unit: ## blinkd.service under systemd, in another such machine
	$(call install,$(VM_PACKAGES))
	@$(MAKE) --no-print-directory all
	@tests/vm/check.sh unit $(BUILD)/vm

.PHONY: check-fresh
check-fresh: ## make demo and make check on a fresh Debian 12, as root and not
	$(call install,debootstrap)
	@tests/fresh.sh $(BUILD)/fresh $(WAYS)

ARM64 := $(BUILD)/arm64
.PHONY: check-arm64
check-arm64: ## compile for arm64 and test that, by QEMU
	$(call install,$(ARM64_PACKAGES))
	@tests/arm64/sysroot.sh $(ARM64)
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory BUILD=$(ARM64) ARCH=aarch64 \
		SYSROOT=$(abspath $(ARM64)/sysroot) CC=$(ARM64)/cc \
		MUSL_CC=$(ARM64)/musl-cc AR=aarch64-linux-gnu-ar WERROR=1 objects
	@BIN=$(BIN) tests/arm64/check.sh $(ARM64)

.PHONY: demo
demo: ## sort a million records and show what happens
	$(call install,$(BUILD_PACKAGES))
	@$(MAKE) --no-print-directory demo-programs
	@BIN=$(BIN) BUILD=$(BUILD) \
		$(if $(NODES),tests/demo_cluster.sh $(NODES),tests/demo.sh)

.PHONY: demo-programs
demo-programs: all $(BUILD)/$(PROGRAM_VARIANT)/tests/bench/bench_spawn

.PHONY: bench
bench: all tests ## measure whole processes against cp and sort
	tests/bench/bench_files.py $(if $(LABEL),--label '$(LABEL)')

DYN_PROGRAMS := $(if $(filter dyn,$(VARIANT)),$(PROGRAMS:%=$(BUILD)/dyn/bin/%))
.PHONY: tests
tests: $(TESTS:%.c=$(BUILD)/$(VARIANT)/%) $(HELPERS:%.c=$(BUILD)/$(VARIANT)/%) \
	$(BENCHES:%.c=$(BUILD)/$(PROGRAM_VARIANT)/%) $(DYN_PROGRAMS) \
	$(if $(filter musl,$(LIBC)),$(MUSL_TESTS:%.c=$(BUILD)/musl/%)) \
	$(if $(FAULT),$(BUILD)/fault.so)

.PHONY: fuzzers
fuzzers: $(FUZZERS:%.c=$(BUILD)/fuzz/%)

.PHONY: fuzz
fuzz: ## run each fuzz target from its corpus
	$(call install,$(FUZZ_PACKAGES))
	@$(MAKE) --no-print-directory fuzzers
	@for name in $(FUZZERS:tests/fuzz/fuzz_%.c=%); do \
		found=$(BUILD)/fuzz/corpus/$$name; seeds=tests/fuzz/corpus/$$name; \
		mkdir -p $$found && [ -d $$seeds ] || seeds=; \
		echo "  FUZZ    $$name"; \
		$(BUILD)/fuzz/tests/fuzz/fuzz_$$name -max_total_time=$(FUZZ_SECONDS) \
			-artifact_prefix=$(BUILD)/fuzz/ $$found $$seeds \
			>$(BUILD)/fuzz/$$name.log 2>&1 || \
			{ tail -n 40 $(BUILD)/fuzz/$$name.log; exit 1; }; \
		tail -n 1 $(BUILD)/fuzz/$$name.log; \
	done

C_FILES := $(wildcard src/*/*.[ch] shell/*.[ch] tests/*/*.[ch] \
	     tests/unit/musl/*.h)
TIDY_FILES := $(SOURCES) $(TESTS) $(BENCHES) $(FUZZERS) $(HELPERS) $(FAULT)
# SC2317: code that cannot be reached; check NAME FUNCTION reaches it.
.PHONY: lint
lint: ## format, warnings, clang-tidy, shellcheck, flake8, mandoc
	$(call install,$(LINT_PACKAGES))
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/lint WERROR=1 objects

# All of lint but the compiler's warnings.
.PHONY: style
style: $(TIDY_FILES:%=tidy/%)
	clang-format-14 --dry-run -Werror $(C_FILES)
	shellcheck -x -P tests/programs -e SC2317 $(SCRIPTS)
	flake8 --max-line-length=80 $(PYTHON)
	$(if $(PAGES),mandoc -T lint -W warning $(PAGES))

.PHONY: $(TIDY_FILES:%=tidy/%)
$(TIDY_FILES:%=tidy/%): tidy/%: %
	$(call say,TIDY,$<)
	$(Q)clang-tidy-14 --quiet $< -- $(BASE_FLAGS) $(call file_flags,$<) \
		2>/dev/null

.PHONY: format
format: ## lay out all C files
	clang-format-14 -i $(C_FILES)

# Without debugging information, but with the names of functions for profilers.
.PHONY: install
install: all ## programs and man pages to DESTDIR and PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(PROGRAMS:%=$(BIN)/%) $(DESTDIR)$(PREFIX)/bin
	$(STRIP) --strip-debug $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/bin/%)
	$(if $(PAGES),install -m 644 $(PAGES) $(DESTDIR)$(PREFIX)/share/man/man1)
	for file in $(SCRIPT_DATA); do \
		install -D -m 644 $$file $(DESTDIR)$(OURS)/$$file || exit; \
	done
	for file in $(SCRIPT_PROGRAMS); do \
		install -D -m 755 $$file $(DESTDIR)$(OURS)/$$file && \
		ln -sfn ../lib/blinksort/$$file \
			$(DESTDIR)$(PREFIX)/bin/$${file##*/} || exit; \
	done
	install -d $(DESTDIR)$(UNITS)
	sed 's|@PREFIX@|$(PREFIX)|g' shell/blinkd.service \
		>$(DESTDIR)$(UNITS)/blinkd.service

.PHONY: uninstall
uninstall: ## take them away again
	rm -f $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/bin/%)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(notdir $(SCRIPT_PROGRAMS)))
	rm -rf $(DESTDIR)$(OURS)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/share/man/man1/,$(notdir $(PAGES)))
	rm -f $(DESTDIR)$(UNITS)/blinkd.service

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD) bin

# --- rules -------------------------------------------------------------------

.PHONY: FORCE require
FORCE:

require:
	$(if $(MISSING),$(error missing: $(MISSING); 'make deps' installs it))

# A file that is written anew only when its text changes, so that whatever
# depends on it is: $(call stamp,TEXT)
stamp = @mkdir -p $(@D); echo '$(subst ','\'',$(strip $(1)))' | \
	cmp -s - $@ || echo '$(subst ','\'',$(strip $(1)))' >$@

$(BUILD)/commit: FORCE
	$(call stamp,$(COMMIT))

# $(call variant,NAME,COMPILER,FLAGS,LINK FLAGS,LIBRARIES)
define variant
$(BUILD)/$(1)/flags: FORCE
	$$(call stamp,$(2) $(3) $(BASE_FLAGS) $(CFLAGS))

$(BUILD)/$(1)/members: FORCE
	$$(call stamp,$(MEMBERS))

$(BUILD)/$(1)/%.o: %.c $(BUILD)/$(1)/flags | require
	$$(call say,CC,$$@)
	$(Q)mkdir -p $$(@D)
	$(Q)$(2) $(BASE_FLAGS) $(3) $$(call file_flags,$$<) $(CFLAGS) \
		-MMD -MP -c -o $$@ $$<

$(BUILD)/$(1)/src/base/version.o: $(BUILD)/commit

$(BUILD)/$(1)/libblink.a: $(MEMBERS:%.c=$(BUILD)/$(1)/%.o) \
		$(BUILD)/$(1)/members
	$$(call say,AR,$$@)
	$(Q)rm -f $$@ && $(AR) rcs $$@ $$(filter %.o,$$^)

$(BUILD)/$(1)/bin/%: $(BUILD)/$(1)/src/programs/%_main.o $(BUILD)/$(1)/libblink.a
	$$(call say,LINK,$$@)
	$(Q)mkdir -p $$(@D)
	$(Q)$(2) -pthread $(3) $(4) $(LDFLAGS) -o $$@ $$^ $(5)

$(BUILD)/$(1)/bin/%: $(BUILD)/$(1)/shell/%_main.o $(BUILD)/$(1)/libblink.a
	$$(call say,LINK,$$@)
	$(Q)mkdir -p $$(@D)
	$(Q)$(2) -pthread $(3) $(4) $(LDFLAGS) -o $$@ $$^ $(5)

$(BUILD)/$(1)/tests/%: $(BUILD)/$(1)/tests/%.o $(BUILD)/$(1)/libblink.a
	$$(call say,LINK,$$@)
	$(Q)$(2) -pthread $(3) $(4) $(LDFLAGS) -o $$@ $$^ \
		$$(WRAP_$$(@F):%=-Wl,--wrap=%) \
		$$(if $$(filter test_%,$$(@F)),$(if $(filter musl,$(1)),,-lcmocka)) $(5)

-include $$(wildcard $(BUILD)/$(1)/*/*.d $(BUILD)/$(1)/*/*/*.d)
endef

$(eval $(call variant,$(VARIANT),$(CC),$(SAN_FLAGS),,$(DYNAMIC_LIBRARIES)))
ifeq ($(LIBC),musl)
$(eval $(call variant,musl,$(MUSL_CC),$(MUSL_FLAGS),$(STATIC_FLAGS),$(STATIC_LIBRARIES)))
endif
FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined \
	      -fno-sanitize-recover=all
$(eval $(call variant,fuzz,$(FUZZ_CC),$(FUZZ_FLAGS),-fsanitize=fuzzer,$(DYNAMIC_LIBRARIES)))

.PHONY: objects
objects: $(PROGRAMS:%=$(BUILD)/$(PROGRAM_VARIANT)/bin/%) tests

$(addprefix $(BIN)/,$(notdir $(SCRIPT_PROGRAMS))): $(BIN)/%: FORCE
	@mkdir -p $(@D)
	$(Q)ln -sfnr $(filter %/$*,$(SCRIPT_PROGRAMS)) $@

ifeq ($(BIN),bin)
$(BUILD)/bin.from: FORCE
	$(call stamp,$(BUILD)/$(PROGRAM_VARIANT))

# install(1), not cp: a program that is running keeps its old file.
bin/%: $(BUILD)/$(PROGRAM_VARIANT)/bin/% $(BUILD)/bin.from
	$(call say,INSTALL,$@)
	$(Q)install -D $< $@
endif

$(BUILD)/fault.so: tests/programs/fault.c | require
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_FLAGS) -fPIC -shared -o $@ $< -ldl
