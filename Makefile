# This file builds everything.  It names no source file: the pattern of a path
# decides what is made of a file in src/, shell/ and tests/.
#
#   NAME_main.c                          the program bin/NAME
#   mpi*.c                               of blinksort-mpi only, compiled by mpicc
#   any other .c of src/ and shell/      a member of the library
#   results/blink*, tune/blink*          programs that are scripts
#   tests/unit/test_*.c, test_*.py       tests by cmocka and by unittest
#   tests/bench/bench_*.c                benchmarks
#   tests/fuzz/fuzz_*.c                  libFuzzer targets
#   tests/sim/search.c                   make sim: simulated networks, at random
#   tests/programs/fault.c, lying_note.c  build/NAME.so, for LD_PRELOAD
#   any other tests/programs/*.c         programs that the check scripts use
#   */NAME.1, .5, .7                     a man page, beside its program
#   packaging/                           what make install and make deb add
#
# A variant is one way to compile all that, in a folder of its own:
#
#   build/musl    the static programs that a user gets: a process starts and ends
#                 in 0.13 ms, by glibc's shared library in 0.52 ms (NOTES.md, last
#                 entry); and the tests that tests/unit/musl/tests.txt names, with
#                 the cmocka.h beside it
#   build/dyn     glibc: all tests, and programs that LD_PRELOAD can reach
#   build/asan    SAN=asan: AddressSanitizer and UBSan
#   build/tsan    SAN=tsan: ThreadSanitizer
#   build/clang*  CC=clang-14, alone or with SAN
#
#   build/mpi-NAME    what mpicc.NAME compiles: MPI_SOURCES.  The rest of
#                 blinksort-mpi is from build/dyn, or from the variant that CC and
#                 SAN choose; the folder is then build/VARIANT-mpi-NAME
#
# make help lists the targets and what may be set.  A build for another machine
# also sets ARCH, its compilers CC and MUSL_CC, its AR and STRIP, and SYSROOT.

ifeq ($(origin CC),default)
CC := gcc
endif
MUSL_CC ?= musl-gcc
FUZZ_CC ?= clang$(LLVM)
STRIP ?= strip
BUILD ?= build
PREFIX ?= /usr/local
# systemd looks here for the daemon's unit, and for the user that it runs as.
UNITS ?= $(PREFIX)/lib/systemd/system
SYSUSERS ?= $(PREFIX)/lib/sysusers.d
# The shells look here for completions.
BASH_COMPLETIONS ?= $(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS ?= $(PREFIX)/share/zsh/site-functions
DOC = $(PREFIX)/share/doc/blinksort
# The scripts are installed here, with the files that they read.
OURS = $(PREFIX)/lib/blinksort
FUZZ_SECONDS ?= 20
SEEDS ?= 2000
FIRST ?= 1
ARCH := $(shell uname -m)
# The folder that holds usr/include and usr/lib; an empty name means /.
SYSROOT ?=
TRIPLET := $(ARCH)-linux-gnu

# The suffix of clang and its tools: Debian 12 has -14, Debian 13 has -19.
FOLDERS := $(subst :, ,$(PATH))
LLVM ?= $(firstword $(foreach suffix,-14 -19,$(if $(wildcard \
	$(FOLDERS:%=%/clang$(suffix))),$(suffix))))

# --- which variants ----------------------------------------------------------

CLANG := $(if $(findstring clang,$(CC)),clang)
EMPTY :=
SPACE := $(EMPTY) $(EMPTY)
# VARIANT is how tests are built; programs are, too, unless they are static.
VARIANT := $(or $(subst $(SPACE),-,$(strip $(CLANG) $(SAN))),dyn)

ifeq ($(VARIANT),dyn)
ifeq ($(origin LIBC),undefined)
LIBC := $(if $(shell command -v $(MUSL_CC)),musl,glibc)
NO_MUSL := $(filter glibc,$(LIBC))
endif
else
override LIBC := glibc
endif
PROGRAM_VARIANT := $(if $(filter musl,$(LIBC)),musl,$(VARIANT))
# bin/ holds the programs of the plain build.  Other builds keep theirs apart, and
# with another BUILD nothing is written to the source.
BIN := $(if $(filter dyn,$(VARIANT)),$(if $(filter \
	build,$(BUILD)),bin,$(BUILD)/bin),$(BUILD)/$(VARIANT)/bin)

# --- source files -----------------------------------------------------------

# Files with these suffixes are compiled on x86-64 only.
X86_SUFFIXES := avx2 avx512 pclmul vpclmul
# These tests run in the static build, too, since they depend on the C library.
MUSL_TESTS := $(filter $(wildcard tests/unit/test_*.c),\
	$(patsubst %,tests/unit/test_%.c,$(shell sed 's/[\# ].*//' tests/unit/musl/tests.txt)))
X86_ONLY := $(if $(filter x86_64,$(ARCH)),,$(addprefix %_,$(X86_SUFFIXES:=.c)))

# These are compiled by mpicc, for blinksort-mpi.
MPI_SOURCES := $(wildcard src/*/*/mpi*.c)
SOURCES := $(filter-out $(X86_ONLY) $(MPI_SOURCES),\
	$(wildcard src/*/*.c src/*/*/*.c shell/*.c))
MAINS := $(filter %_main.c,$(SOURCES))
MEMBERS := $(filter-out $(MAINS),$(SOURCES))
PROGRAMS := $(notdir $(MAINS:_main.c=))
TESTS := $(wildcard tests/unit/test_*.c)
BENCHES := $(wildcard tests/bench/bench_*.c)
FUZZERS := $(wildcard tests/fuzz/fuzz_*.c)
PRELOADS := $(wildcard tests/programs/fault.c tests/programs/lying_note.c)
HELPERS := $(filter-out $(PRELOADS),$(wildcard tests/programs/*.c)) \
	$(wildcard tests/sim/*.c)
SCRIPTS := $(wildcard .ci/run tests/run tests/cluster tests/*.sh \
	     tests/*/*.sh tune/blinktune tune/*/*.sh packaging/*.sh \
	     packaging/completion/candidates packaging/completion/*.bash \
	     packaging/debian/*.p[or]*)
PYTHON := $(wildcard results/blinkreport results/blinktrial \
	    results/*/*.py results/*/*/*.py tests/*/*.py)
# Some programs are scripts.  bin/ has links to them: a script finds the other
# programs beside its link, and the files that it reads beside itself.
SCRIPT_PROGRAMS := $(filter-out %.1 %.7,$(wildcard results/blink* tune/blink*))
SCRIPT_DATA := $(wildcard results/trials/*.py results/trials/*/*.py \
		 results/schema/*.json results/published/*.json \
		 results/*.sweep results/*.csv tune/*/*.sh tune/profiles/*.profile)
PAGES := $(wildcard $(foreach folder,src/programs/* shell tune results,\
	$(folder)/*.[157]))

# --- MPI ---------------------------------------------------------------------

# Without MPICC, blinksort-mpi is for the first MPI that is there.
MPICC_NAMES := mpicc.mpich mpicc.openmpi mpicc
MPICCS := $(or $(MPICC),$(strip $(foreach name,$(MPICC_NAMES),$(firstword \
	$(wildcard $(FOLDERS:%=%/$(name)))))))
# mpi_name of .../mpicc.mpich is mpich, that of any other compiler its own name.
mpi_name = $(patsubst mpicc.%,%,$(notdir $1))
# make mpi-all leaves out plain mpicc where others are there: it is one of them.
MPI_ALL := $(if $(MPI_SOURCES),$(or $(filter-out %/mpicc,$(MPICCS)),$(MPICCS)))

# Where its mpi.h is: mpicc -show prints the command of the compiler below it.
mpi_includes = $(filter -I%,$(shell $1 -show))

# gcc takes MPICH's MPI_STATUSES_IGNORE, which is the address 1, for an array.
MPI_FLAGS = $(SAN_FLAGS) -Wno-stringop-overflow

# --- flags -------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	    -Wvla -Wno-format-zero-length $(if $(WERROR),-Werror)
BASE_FLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -pthread -iquote src -iquote . \
	      $(WARNINGS)

AVX2 := -mavx2 -mbmi2
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512dq -mavx512vl
# Each CPU that has AVX2 has SSE4.2, too, whose crc32 instruction CRC-32C uses.
PCLMUL := -mpclmul -msse4.2
# $(call file_flags,FILE) is the flags that the suffix of a file asks for.
file_flags = $(if $(filter %_avx2.c,$1),$(AVX2)) \
	     $(if $(filter %_avx512.c,$1),$(AVX512)) \
	     $(if $(filter %_pclmul.c,$1),$(PCLMUL)) \
	     $(if $(filter %_vpclmul.c,$1),$(AVX512) $(PCLMUL) -mvpclmulqdq) \
	     $(if $(filter src/base/version.c,$1),-DBLINKSORT_VERSION='"$(VERSION)+$(COMMIT)"')

# Hosts that are simulated call these functions of src/simulate/virtual_calls.c.
SIMULATED := clock_gettime nanosleep ppoll datagram_open datagram_close \
	datagram_payload_bytes datagram_send datagram_peek datagram_take \
	datagram_receive udp_waker_open udp_waker_wake udp_waker_clear \
	udp_waker_close udp_thread_start udp_thread_join udp_lock_take \
	udp_lock_give

# Whole ranks that are simulated, by tests/unit/cluster_world.h.
SIMULATED_RANKS := $(SIMULATED) cluster_runs_pause \
	external_rank_is_busy rank_find topology_read

# WRAP_NAME lists the functions that the program NAME replaces: its calls of
# FUNCTION go to its own __wrap_FUNCTION.
WRAP_blinkprobe := $(SIMULATED)
WRAP_bench_model := $(SIMULATED)
WRAP_lying_rank := datagram_send rank_find
WRAP_test_external_sort := aligned_alloc calloc fallocate \
	io_uring_queue_init io_uring_queue_init_params io_uring_submit malloc \
	mmap orderer_drop_duplicates orderer_run orderer_sort_oversized pread \
	pthread_create pwrite realloc scratch_take scratch_written \
	write_queue_reap write_queue_submit
WRAP_test_external_lanes := $(WRAP_test_external_sort)
WRAP_test_file_io := pread pwrite
WRAP_test_outfile := openat
WRAP_test_progress := clock_gettime
WRAP_test_udp := exchange_serve
WRAP_test_orderer := thread_pool_wait_while
WRAP_search := $(SIMULATED)
WRAP_test_simulation := $(SIMULATED)
WRAP_test_cluster_liar := $(SIMULATED_RANKS)
WRAP_test_cluster_paths := $(SIMULATED_RANKS)
WRAP_test_scratch := fallocate fstat fstatfs fstatvfs openat unlinkat
WRAP_fuzz_cluster := $(SIMULATED_RANKS)

ASAN := -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
TSAN := -fsanitize=thread
SAN_FLAGS := $(if $(filter asan,$(SAN)),$(ASAN))$(if $(filter tsan,$(SAN)),$(TSAN))

# The compiler searches musl's headers first.  The headers of the kernel and of
# the libraries lie beside glibc's, so they come last.
MUSL_FLAGS := -fno-pie -Itests/unit/musl -idirafter $(SYSROOT)/usr/include \
	      -idirafter $(SYSROOT)/usr/include/$(TRIPLET)
# noseparate-code puts code and constants into one segment, so that the kernel
# maps two segments less at each start.
STATIC_FLAGS := -static -no-pie -Wl,-z,noseparate-code

LIBRARIES := uring sodium lz4 zstd
# libblink.a comes once more behind the libraries: it defines the functions of
# glibc that they call and musl does not have.
STATIC_LIBRARIES := $(LIBRARIES:%=$(SYSROOT)/usr/lib/$(TRIPLET)/lib%.a) \
	$(BUILD)/musl/libblink.a
DYNAMIC_LIBRARIES := -Wl,--as-needed $(LIBRARIES:%=-l%)

# The version is the first of NEWS, so that a clone without tags has it, too; a
# commit that is tagged vVERSION is its release (packaging/deb.sh compares).
# The commit is told by a file where make deb has copied the source to, and else
# by git, also to root in the clone of a user.
VERSION := $(shell sed -n 's/^Version \([0-9.]*\).*/\1/p' NEWS | head -n 1)
COMMIT := $(or $(shell cat packaging/commit 2>/dev/null),$(shell \
	git -c safe.directory='*' describe --always --dirty --exclude='*' \
	2>/dev/null),unknown)

# --- packages ----------------------------------------------------------------

# The programs are built with these, and make demo needs no more.
BUILD_PACKAGES := make gcc libc6-dev musl-tools liburing-dev libsodium-dev \
	liblz4-dev libzstd-dev

# The tests need these.
CHECK_PACKAGES := $(BUILD_PACKAGES) libcmocka-dev xfsprogs util-linux \
	python3 python3-numpy python3-scipy python3-matplotlib \
	python3-jsonschema mandoc busybox \
	hdparm fio ethtool fdisk e2fsprogs util-linux-extra strace procps \
	iproute2 nftables zsh

LINT_PACKAGES := $(CHECK_PACKAGES) clang clang-tidy clang-format shellcheck flake8

FUZZ_PACKAGES := $(BUILD_PACKAGES) clang libclang-rt-dev

# make deps installs all these packages, the browser in which
# check_report_page.sh opens a report, and what makes another Debian.
PACKAGES := $(sort $(CHECK_PACKAGES) $(LINT_PACKAGES) $(FUZZ_PACKAGES) chromium \
	debootstrap)

# In tests/bench, cluster.sh compares with the first four if they are installed,
# external.sh with a program by g++ and libstxxl-dev, files.sh by libhwy-dev,
# timers.py with hyperfine; pv makes pipes slow.
BENCH_PACKAGES := mpich libmpich-dev openmpi-bin libopenmpi-dev \
	g++ libstxxl-dev slurmctld slurmd slurm-client munge libhwy-dev python3-venv \
	hyperfine pv qemu-system-common

# files.sh and external.sh compare with these, which pip installs
# into a folder of their own.
BENCH_PYTHON_PACKAGES := numpy==2.4.6 polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1

# check-vm and check-vm-unit need these; they fetch the kernel themselves.
VM_PACKAGES := $(CHECK_PACKAGES) qemu-system-x86 cpio kmod mdadm dosfstools \
	systemd

# make deb needs these: each MPI's compiler, and Debian's own tools.
DEB_PACKAGES := $(BUILD_PACKAGES) build-essential libmpich-dev libopenmpi-dev \
	debhelper dh-python lintian

# check-arm64 needs these; it fetches the libraries itself.
ARM64_PACKAGES := $(BUILD_PACKAGES) gcc-aarch64-linux-gnu qemu-user

# MISSING lists the packages without which nothing compiles.
MISSING = $(strip \
	$(if $(shell command -v $(CC)),,$(CC)) \
	$(if $(wildcard $(SYSROOT)/usr/include/stdio.h),,libc6-dev) \
	$(if $(wildcard $(SYSROOT)/usr/include/liburing.h),,liburing-dev) \
	$(if $(wildcard $(SYSROOT)/usr/include/sodium.h),,libsodium-dev) \
	$(if $(wildcard $(SYSROOT)/usr/include/lz4.h),,liblz4-dev) \
	$(if $(wildcard $(SYSROOT)/usr/include/zstd.h),,libzstd-dev))

# --- targets -----------------------------------------------------------------

ifneq ($(V),1)
Q := @
say = @printf '  %-7s %s\n' $(1) $(patsubst $(BUILD)/%,%,$(2));
endif

.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
# make uses all CPUs unless the user gave -j.  It makes several goals one after
# the other: "make check bench" must not measure while the tests run.
ifeq ($(filter -j%,$(MAKEFLAGS))$(filter-out 0,$(MAKELEVEL))$(word 2,$(MAKECMDGOALS)),)
MAKEFLAGS += -j$(shell nproc)
endif

.PHONY: all
all: $(PROGRAMS:%=$(BIN)/%) $(addprefix $(BIN)/,$(notdir $(SCRIPT_PROGRAMS))) ## build the programs, in bin/
	$(if $(NO_MUSL),@echo '$(DYNAMIC_TEXT)')
	$(if $(filter bin,$(BIN)),,@echo 'The programs are in $(BIN)/.')
	$(if $(filter unknown,$(COMMIT)),@echo '$(UNKNOWN_TEXT)')
	@$(tell_python)

DYNAMIC_TEXT := The programs are linked dynamically, since there is no $(MUSL_CC): \
	they start in 0.5 ms, not in 0.13 ms.
UNKNOWN_TEXT := --version names no commit: this source is in no repository of git.

# The scripts import these modules at run time.  tell_python looks for their
# folders only, since to import them takes a second.
PYTHON_MODULES := numpy scipy matplotlib jsonschema
tell_python = /usr/bin/python3 -c 'import sys; from importlib.util import find_spec; \
	sys.exit(not all(map(find_spec, sys.argv[1:])))' $(PYTHON_MODULES) \
	2>/dev/null || echo "To run, blinktrial and blinkreport need" \
	"$(strip python3 $(PYTHON_MODULES:%=python3-%)); the other programs" \
	"do not."

.PHONY: mpi
mpi: $(BIN)/blinksort-mpi ## build blinksort-mpi, which sorts over MPI

.PHONY: mpi-all
mpi-all: ## build one for each MPI, in build/mpi-NAME/bin/

.PHONY: mpi-bench
mpi-bench: ## build what compares its exchange with MPI_Alltoallv

.PHONY: help
help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | \
		while IFS="$$(printf '\t')" read -r target what; do \
			printf '%-22s %s\n' "$$target" "$$what"; done
	@echo
	@echo 'What may be set, as in make SAN=asan check:'
	@sed -n 's/^# \([A-Z_]*=[^ ]*\)  *\(.*\)/\1\t\2/p' Makefile | \
		while IFS="$$(printf '\t')" read -r setting what; do \
			printf '%-22s %s\n' "$$setting" "$$what"; done

# make help prints these lines:
#
# SAN=asan        build with AddressSanitizer, UBSan; tsan: ThreadSanitizer
# CC=clang-14     compile with clang-14 instead of gcc
# MPICC=COMPILER  make mpi: compile with it, not with the first mpicc
# LIBC=glibc      link programs dynamically even if musl-gcc is there
# CFLAGS=FLAGS    add these flags to the compiler's; LDFLAGS: the linker's
# WERROR=1        treat a compiler's warning as an error
# V=1             show the whole commands
# BUILD=FOLDER    build in FOLDER, which then has bin/, too
# CHECKS=NAMES    run these tests only: make check CHECKS=test_parse
# NODES=16        make demo: sort on this many nodes, all on this machine
# MEMORY=100M     make demo NODES=4: so much memory each, and more records
# RELEASE=trixie  make check-fresh: on Debian 13 instead of Debian 12
# WAYS=user       make check-fresh: run one way of tests/fresh.sh only
# ROWS=WORDS      make bench: only rows whose names have one of these words
# TRIALS=21       make bench: so many runs of each command
# RECORD=FOLDER   make bench: put the records there, for blinkreport
# FULL=1          make bench: the largest sizes, too
# FUZZ_SECONDS=20 make fuzz: run each target for this time
# SEEDS=2000      make sim: search so many networks
# FIRST=1         make sim: begin with this seed
# PREFIX=/usr     make install: install into bin/, lib/ and share/ of /usr
# DESTDIR=FOLDER  make install: put FOLDER before PREFIX, for a package

# $(call install,PACKAGES) installs the packages that are missing.  Without dpkg
# it does nothing: the compiler will then say what is missing.
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
deps: ## install all Debian packages that these targets need
	$(call install,$(PACKAGES))

.PHONY: bench-deps
bench-deps: ## install what is compared with, two MPIs, and Slurm
	$(call install,$(BENCH_PACKAGES))
	/usr/bin/python3 -m venv $(BUILD)/peers
	$(BUILD)/peers/bin/pip install --quiet $(BENCH_PYTHON_PACKAGES)

# tests/fresh.sh asks for these lists.
.PHONY: print-build-packages print-check-packages
print-build-packages:
	@echo $(BUILD_PACKAGES)

print-check-packages:
	@echo $(CHECK_PACKAGES)

# This make looked for compilers before they were installed: the second make
# finds them.
.PHONY: check
check: ## build and run all tests
	$(call install,$(CHECK_PACKAGES) $(if $(CLANG),$(FUZZ_PACKAGES)))
	@$(MAKE) --no-print-directory all $(CHECK_GOALS)
	@VARIANT=$(VARIANT) BIN=$(BIN) BUILD=$(BUILD) tests/run $(CHECKS)

.PHONY: check-long
check-long: ## make the records of two PennySorts, for their sums
	@$(MAKE) --no-print-directory all
	@LONG=1 CASES=published VARIANT=$(VARIANT) BIN=$(BIN) BUILD=$(BUILD) \
		tests/run check_gen

# Tests of modules alone need no other programs.
CHECK_NAMES := $(basename $(notdir $(CHECKS)))
CHECK_GOALS = $(if $(if $(CHECKS),$(filter-out test_%,$(CHECK_NAMES)),all),tests,\
	$(filter $(addprefix %/,$(CHECK_NAMES)),$(TEST_PROGRAMS)))

.PHONY: check-vm
check-vm: ## test blinktune's devices and FAT in QEMU machines
	$(call install,$(VM_PACKAGES))
	@$(MAKE) --no-print-directory all
	@BIN=$(BIN) tests/vm/check.sh devices $(BUILD)/vm
	@BIN=$(BIN) tests/vm/check.sh fat $(BUILD)/vm

.PHONY: check-vm-unit
check-vm-unit: ## test blinkd.service under systemd in a QEMU machine
	$(call install,$(VM_PACKAGES))
	@$(MAKE) --no-print-directory all
	@tests/vm/check.sh unit $(BUILD)/vm

.PHONY: check-vm-numa
check-vm-numa: ## test NUMA nodes, and 16 and 64 CPUs, in QEMU machines
	$(call install,$(VM_PACKAGES))
	@$(MAKE) --no-print-directory all $(BUILD)/dyn/tests/programs/page_nodes
	@HELPERS=$(BUILD)/dyn/tests/programs BIN=$(BIN) \
		tests/vm/check.sh numa $(BUILD)/vm
	@CPUS=16 BIN=$(BIN) tests/vm/check.sh cpus $(BUILD)/vm
	@CPUS=64 BIN=$(BIN) tests/vm/check.sh cpus $(BUILD)/vm

FRESH := $(BUILD)/fresh$(RELEASE:%=-%)
.PHONY: check-fresh
check-fresh: ## run make demo and make check on a fresh Debian
	$(call install,debootstrap)
	@CHECKS='$(CHECKS)' RELEASE=$(RELEASE) tests/fresh.sh $(FRESH) $(WAYS)

.PHONY: check-deb
check-deb: ## build, install, upgrade, purge packages; needs root
	$(call install,$(VM_PACKAGES) debootstrap)
	@RELEASE=$(RELEASE) tests/fresh.sh $(FRESH) deb
	@FRESH=$(FRESH) tests/vm/check.sh deb $(BUILD)/vm

ARM64 := $(BUILD)/arm64
.PHONY: check-arm64
check-arm64: ## compile for arm64 and test the programs by QEMU
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
		$(if $(NODES),tests/demo_cluster.sh $(NODES) $(MEMORY),tests/demo.sh)

.PHONY: demo-programs
demo-programs: all $(BUILD)/$(PROGRAM_VARIANT)/tests/bench/bench_spawn

# What these compare, and by which variables, is told by their --help.
.PHONY: bench bench-external bench-cluster
bench: all tests ## time whole processes beside cp, sort and others
	$(BENCH)/files.sh
bench-external: all tests ## time sorts larger than memory; needs root
	$(BENCH)/external.sh
bench-cluster: all tests ## time ranks on this machine
	$(BENCH)/cluster.sh

# An exchange takes up to LIMIT seconds of a CPU (300).
.PHONY: simulated
simulated: all ## simulate the exchanges of results/runs/simulated.jsonl
	/usr/bin/python3 -P tests/bench/simulated.py $(BIN)/blinkprobe \
		results/runs/exchanges.json >$(BUILD)/simulated.jsonl
	mv $(BUILD)/simulated.jsonl results/runs/simulated.jsonl

# make exports the variables of its own command line.
BENCH = BIN=$(BIN) BUILD=$(BUILD) tests/bench

RUNS := $(wildcard results/runs/*/environment.json)
.PHONY: reports
reports: $(RUNS:results/runs/%/environment.json=$(BUILD)/reports/%/report.html) ## make the pages of results/runs/, in build/reports/

$(BUILD)/reports/%/report.html: results/runs/% results/blinkreport $(SCRIPT_DATA)
	$(call say,REPORT,$@)
	@mkdir -p $(@D)
	$(Q)results/blinkreport --format=html -o $@ --svg=$(@D) $<

DYN_PROGRAMS := $(if $(filter dyn,$(VARIANT)),$(PROGRAMS:%=$(BUILD)/dyn/bin/%))
TEST_PROGRAMS := $(TESTS:%.c=$(BUILD)/$(VARIANT)/%) \
	$(if $(filter musl,$(LIBC)),$(MUSL_TESTS:%.c=$(BUILD)/musl/%))
.PHONY: tests
tests: ## build all tests, and the programs that they use
tests: $(TEST_PROGRAMS) $(HELPERS:%.c=$(BUILD)/$(VARIANT)/%) \
	$(BENCHES:%.c=$(BUILD)/$(PROGRAM_VARIANT)/%) $(DYN_PROGRAMS) \
	$(patsubst %.c,$(BUILD)/$(PROGRAM_VARIANT)/%,$(wildcard tests/programs/true_tiny.c)) \
	$(PRELOADS:tests/programs/%.c=$(BUILD)/%.so) \
	$(if $(filter dyn asan,$(VARIANT)),mpi-all)

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

.PHONY: sim
sim: ## search random simulated networks for wrong exchanges
sim: $(BUILD)/$(VARIANT)/tests/sim/search
	@$< $(SEEDS) $(FIRST)

C_FILES := $(wildcard src/*/*.[ch] src/*/*/*.[ch] shell/*.[ch] tests/*/*.[ch] \
	     tests/unit/musl/*.h)
TIDY_FILES := $(SOURCES) $(if $(MPI_ALL),$(MPI_SOURCES)) $(TESTS) $(BENCHES) $(FUZZERS) $(HELPERS) $(PRELOADS)
# shellcheck's SC2317 finds functions that nothing calls; the check scripts call
# theirs by name: check NAME FUNCTION.  SC2016 finds variables in single quotes,
# in which at_end gets its commands.
.PHONY: lint
lint: ## check format, warnings, tidy, shellcheck, flake8, mandoc
	$(call install,$(LINT_PACKAGES))
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/lint WERROR=1 objects

# The layout of C files is this program's; other versions lay out differently.
CLANG_FORMAT ?= clang-format-14
CLANG_FORMAT_HERE = $(shell command -v $(CLANG_FORMAT))
.PHONY: style
style: ## the same without the compiler's warnings
style: $(TIDY_FILES:%=tidy/%)
	$(if $(CLANG_FORMAT_HERE),$(CLANG_FORMAT) --dry-run -Werror $(C_FILES),@echo \
		'make: no $(CLANG_FORMAT) here: the layout of C files is not checked')
	shellcheck -x -P tests/programs -e SC2317,SC2016 $(SCRIPTS)
	flake8 --max-line-length=80 $(PYTHON)
	$(if $(PAGES),mandoc -T lint -W warning $(PAGES))

.PHONY: $(TIDY_FILES:%=tidy/%)
$(TIDY_FILES:%=tidy/%): tidy/%: %
	$(call say,TIDY,$<)
	$(Q)clang-tidy$(LLVM) --quiet $(TIDY_CHECKS) $< -- $(BASE_FLAGS) $(call file_flags,$<) \
		$(if $(filter $(MPI_SOURCES),$<),$(call mpi_includes,$(MPI_FIRST))) \
		2>/dev/null
# The analyser takes most of the time, up to 12 s a file.  Tests run under the
# sanitizers, which find the same kinds in them.
$(filter tidy/tests/%,$(TIDY_FILES:%=tidy/%)): TIDY_CHECKS := '--checks=-clang-analyzer-*'
# Requests are polled, where the analyser looks for MPI_Wait.
$(MPI_SOURCES:%=tidy/%): TIDY_CHECKS := --checks=-clang-analyzer-optin.mpi.MPI-Checker

.PHONY: format
format: ## lay out all C files by clang-format
	$(if $(CLANG_FORMAT_HERE),,$(error no $(CLANG_FORMAT) here: Debian 12 has it, \
		in its package clang-format, and other versions lay out differently))
	$(CLANG_FORMAT) -i $(C_FILES)

# Daemon and tuner lie in bin/, with pages of section 1: users without
# privileges run both, too.  strip removes debugging information and keeps the
# names of functions, which profilers need.
INSTALLED_PROGRAMS := $(PROGRAMS:%=$(BIN)/%) $(wildcard $(BIN)/blinksort-mpi)
INSTALLED_DOCS := README.md NEWS LICENSE
# bash looks for a file of the name of the command.
COMPLETED := $(sort blinksort blinksort-mpi $(PROGRAMS) $(notdir $(SCRIPT_PROGRAMS)))
fill_in = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@OURS@|$(OURS)|g' \
	-e 's|@PROGRAMS@|$(COMPLETED)|g'
# Pictures and files that the README leads to stay in the sources.
without_links = sed -e 's|^!\[\(.*\)\](.*)|(A picture, in the repository: \1.)|' \
	-e 's|\[\([^]]*\)\]([^)]*)|\1|g'
# The recipes do not quote these, nor could a unit of systemd: "make uninstall"
# would remove /opt/my of "/opt/my prog".
INSTALL_PATHS := DESTDIR PREFIX OURS DOC UNITS SYSUSERS BASH_COMPLETIONS \
	ZSH_COMPLETIONS
SHELL_SIGNS := ' " ` $$ \ & | ; < > ( ) * ? [ ] { } ! \#
refused_in = $(if $(filter-out 1,$(words x$(1)x)),a blank,$(firstword \
	$(foreach sign,$(SHELL_SIGNS),$(findstring $(sign),$(1)))))
check_path = $(if $(call refused_in,$($(1))),$(error $(1)=$($(1)): has \
	$(call refused_in,$($(1))) in it, which no path of an installation may))
# Before anything is compiled
ifneq ($(filter install uninstall,$(MAKECMDGOALS)),)
$(foreach path,$(INSTALL_PATHS),$(call check_path,$(path)))
$(if $(filter-out /%,$(PREFIX)),$(error PREFIX=$(PREFIX): does not begin with /))
endif
.PHONY: install
install: all ## install all below DESTDIR and PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(INSTALLED_PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	$(STRIP) --strip-debug $(addprefix \
		$(DESTDIR)$(PREFIX)/bin/,$(notdir $(INSTALLED_PROGRAMS)))
	for file in $(PAGES); do \
		install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${file##*.} \
			$$file || exit; \
	done
	for file in $(SCRIPT_DATA); do \
		install -D -m 644 $$file $(DESTDIR)$(OURS)/$$file || exit; \
	done
	for file in $(SCRIPT_PROGRAMS); do \
		install -D -m 755 $$file $(DESTDIR)$(OURS)/$$file && \
		ln -sfn ../lib/blinksort/$$file \
			$(DESTDIR)$(PREFIX)/bin/$${file##*/} || exit; \
	done
	install -D packaging/completion/candidates \
		$(DESTDIR)$(OURS)/completion/candidates
	install -d $(DESTDIR)$(BASH_COMPLETIONS) $(DESTDIR)$(ZSH_COMPLETIONS)
	$(fill_in) packaging/completion/blinksort.bash \
		>$(DESTDIR)$(BASH_COMPLETIONS)/blinksort
	for name in $(filter-out blinksort,$(COMPLETED)); do \
		ln -sf blinksort $(DESTDIR)$(BASH_COMPLETIONS)/$$name || exit; \
	done
	$(fill_in) packaging/completion/blinksort.zsh \
		>$(DESTDIR)$(ZSH_COMPLETIONS)/_blinksort
	install -d $(DESTDIR)$(UNITS) $(DESTDIR)$(SYSUSERS)
	$(fill_in) shell/blinkd.service >$(DESTDIR)$(UNITS)/blinkd.service
	install -m 644 shell/blinkd.sysusers $(DESTDIR)$(SYSUSERS)/blinkd.conf
	install -d $(DESTDIR)$(DOC)
	install -m 644 $(INSTALLED_DOCS) $(DESTDIR)$(DOC)
	$(without_links) README.md >$(DESTDIR)$(DOC)/README.md

.PHONY: uninstall
uninstall: ## remove what make install has installed
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(PROGRAMS) blinksort-mpi \
		$(notdir $(SCRIPT_PROGRAMS)))
	rm -rf $(DESTDIR)$(OURS) $(DESTDIR)$(DOC)
	rm -f $(foreach page,$(PAGES),$(DESTDIR)$(PREFIX)/share/man/man$(subst \
		.,,$(suffix $(page)))/$(notdir $(page)))
	rm -f $(addprefix $(DESTDIR)$(BASH_COMPLETIONS)/,$(COMPLETED)) \
		$(DESTDIR)$(ZSH_COMPLETIONS)/_blinksort
	rm -f $(DESTDIR)$(UNITS)/blinkd.service $(DESTDIR)$(SYSUSERS)/blinkd.conf

# What the user gave to this make is not for the one below dpkg-buildpackage.
.PHONY: deb
deb: ## build Debian packages, in build/deb/
	$(call install,$(DEB_PACKAGES))
	@env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u MAKELEVEL \
		packaging/deb.sh $(BUILD)/deb $(VERSION) $(COMMIT)

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD) $(if $(filter build,$(BUILD)),bin)

# --- rules -------------------------------------------------------------------

.PHONY: FORCE require
FORCE:

require:
	$(if $(MISSING),$(error missing: $(MISSING); as root: apt-get install \
		--no-install-recommends $(sort $(MISSING) $(BUILD_PACKAGES))))

# $(call stamp,TEXT) writes a target again only when its text has changed, so
# that only then its dependents are made again.
stamp = @mkdir -p $(@D); echo '$(subst ','\'',$(strip $(1)))' | \
	cmp -s - $@ || echo '$(subst ','\'',$(strip $(1)))' >$@

$(BUILD)/version: FORCE
	$(call stamp,$(VERSION)+$(COMMIT))

# $(call variant,NAME,COMPILER,FLAGS,LINK FLAGS,LIBRARIES) is the rules of one
# variant.
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

$(BUILD)/$(1)/src/base/version.o: $(BUILD)/version

$(BUILD)/$(1)/libblink.a: $(MEMBERS:%.c=$(BUILD)/$(1)/%.o) \
		$(BUILD)/$(1)/members
	$$(call say,AR,$$@)
	$(Q)rm -f $$@ && $(AR) rcs $$@ $$(filter %.o,$$^)

$(foreach main,$(MAINS:.c=),$(BUILD)/$(1)/bin/$(notdir $(main:_main=)): \
	$(BUILD)/$(1)/$(main).o
)
$(PROGRAMS:%=$(BUILD)/$(1)/bin/%): $(BUILD)/$(1)/libblink.a
	$$(call say,LINK,$$@)
	$(Q)mkdir -p $$(@D)
	$(Q)$(2) -pthread $(3) $(4) $(LDFLAGS) -o $$@ \
		$$(filter %.o,$$^) $$(filter %.a,$$^) \
		$$(WRAP_$$(@F):%=-Wl,--wrap=%) $(5)

$(BUILD)/$(1)/tests/%: $(BUILD)/$(1)/tests/%.o $(BUILD)/$(1)/libblink.a
	$$(call say,LINK,$$@)
	$(Q)$(2) -pthread $(3) $(4) $(LDFLAGS) -o $$@ $$^ \
		$$(WRAP_$$(@F):%=-Wl,--wrap=%) \
		$$(if $$(filter test_%,$$(@F)),$(if $(filter musl,$(1)),,-lcmocka)) $(5)

-include $$(wildcard $(patsubst %,$(BUILD)/$(1)/%.d,*/* */*/* */*/*/*))
endef

$(eval $(call variant,$(VARIANT),$(CC),$(SAN_FLAGS),,$(DYNAMIC_LIBRARIES)))
ifeq ($(LIBC),musl)
$(eval $(call variant,musl,$(MUSL_CC),$(MUSL_FLAGS),$(STATIC_FLAGS),$(STATIC_LIBRARIES)))
endif
FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined \
	      -fno-sanitize-recover=all
$(eval $(call variant,fuzz,$(FUZZ_CC),$(FUZZ_FLAGS),-fsanitize=fuzzer,$(DYNAMIC_LIBRARIES)))

# $(call mpi_program,FOLDER,NAME,COMPILER) is the rules of blinksort-mpi.NAME.
define mpi_program
mpi-all: $(1)/bin/blinksort-mpi.$(2)

$(1)/flags: FORCE
	$$(call stamp,$(3) $(BASE_FLAGS) $(MPI_FLAGS) $(CFLAGS))

$(1)/%.o: %.c $(1)/flags | require
	$$(call say,MPICC,$$@)
	$(Q)mkdir -p $$(@D)
	$(Q)$(3) $(BASE_FLAGS) $(MPI_FLAGS) $(CFLAGS) -MMD -MP -c -o $$@ $$<

$(1)/bin/blinksort-mpi.$(2): $(BUILD)/$(VARIANT)/src/programs/blinksort/blinksort_main.o \
		$(MPI_SOURCES:%.c=$(1)/%.o) $(BUILD)/$(VARIANT)/libblink.a
	$$(call say,LINK,$$@)
	$(Q)mkdir -p $$(@D)
	$(Q)$(3) -pthread $(SAN_FLAGS) $(LDFLAGS) -o $$@ $$^ $(DYNAMIC_LIBRARIES)

mpi-bench: $(1)/tests/bench/exchange_mpi

$(1)/tests/bench/exchange_mpi: $(1)/tests/bench/exchange_mpi.o \
		$(MPI_SOURCES:%.c=$(1)/%.o) $(BUILD)/$(VARIANT)/libblink.a
	$$(call say,LINK,$$@)
	$(Q)$(3) -pthread $(SAN_FLAGS) $(LDFLAGS) -o $$@ $$^ $(DYNAMIC_LIBRARIES)

-include $$(wildcard $(1)/*/*/*.d $(1)/*/*/*/*.d)
endef

mpi_folder = $(BUILD)/$(if $(filter-out dyn,$(VARIANT)),$(VARIANT)-)mpi-$(call mpi_name,$1)
$(foreach compiler,$(MPI_ALL),$(eval $(call mpi_program,$(call \
	mpi_folder,$(compiler)),$(call mpi_name,$(compiler)),$(compiler))))

MPI_FIRST := $(firstword $(MPI_ALL))
$(BIN)/blinksort-mpi: $(if $(MPI_FIRST),$(call \
		mpi_folder,$(MPI_FIRST))/bin/blinksort-mpi.$(call mpi_name,$(MPI_FIRST)))
	$(if $(MPI_FIRST),,$(error there is no mpicc: 'make bench-deps' installs two))
	$(call say,INSTALL,$@)
	$(Q)install -D $< $@

.PHONY: objects
objects: $(PROGRAMS:%=$(BUILD)/$(PROGRAM_VARIANT)/bin/%) tests

$(addprefix $(BIN)/,$(notdir $(SCRIPT_PROGRAMS))): $(BIN)/%: FORCE
	@mkdir -p $(@D)
	$(Q)ln -sfnr $(filter %/$*,$(SCRIPT_PROGRAMS)) $@

ifeq ($(VARIANT),dyn)
$(BUILD)/bin.from: FORCE
	$(call stamp,$(BUILD)/$(PROGRAM_VARIANT))

# install(1) replaces the file, while cp would overwrite it: a program that is
# running keeps its old file.
$(BIN)/%: $(BUILD)/$(PROGRAM_VARIANT)/bin/% $(BUILD)/bin.from
	$(call say,INSTALL,$@)
	$(Q)install -D $< $@
endif

$(PRELOADS:tests/programs/%.c=$(BUILD)/%.so): $(BUILD)/%.so: tests/programs/%.c | require
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_FLAGS) -fPIC -shared -o $@ $< -ldl
