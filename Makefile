# A thin face on meson: every target says in one line what it does, the work is in tools/ and in the meson files.
# A clean clone needs nothing but `make`: what is missing is installed by tools/setup (as root).

BUILD ?= build
ARGS ?=
FUZZ_SECONDS ?= 60
MESON_FLAGS ?=

.PHONY: build run test test-unit test-e2e test-sanitize test-faults test-vm soak fuzz bench fmt lint install clean setup

build: ## The four programs, runnable as build/tombolo
	@tools/setup build
	@tools/build $(BUILD) $(MESON_FLAGS)

run: build ## A server on 127.0.0.1:8787; ARGS="--listen 127.0.0.1:9000" and the like
	@tools/setup run
	exec $(BUILD)/tombolo serve $(ARGS)

test: ## Everything, closed by one line "N passed, N failed, N skipped"
	@tools/setup build run test
	@tools/test-all

test-unit: build
	@tools/setup test
	@tools/test-all unit

test-e2e: build ## FILES="http exec" picks suites
	@tools/setup run test
	@tools/test-all e2e $(FILES)

test-sanitize: ## Unit tests and a part of the e2e suites under ASan and UBSan
	@tools/setup build run test
	@tools/test-all sanitize

test-faults: build ## Each system call of each program fails once: a sample, or all with TOMBOLO_FULL=1; SEED=, ONLY="keeper: openat"
	@tools/setup run test
	@tools/test-all faults

soak: export SOAK_CYCLES ?= 10000
soak: build ## Create, use, delete, kill: SOAK_CYCLES times; then nothing may have grown
	@tools/setup run test
	@tools/test-all soak

test-vm: build ## Debian's kernel 6.1 with cgroup v2 in QEMU: contain tests and the whole server
	@tools/setup run test
	@tools/test-all vm

fuzz: ## All fuzz targets, FUZZ_SECONDS together
	@tools/setup build test
	@tools/fuzz $(FUZZ_SECONDS)

bench: ## Measures itself and its floors in one run and prints a table
	@tools/setup build run test bench
	@tools/build build-release --buildtype=release
	@build-release/tests/bench/tombolo-bench --tombolo build-release/tombolo $(ARGS)

fmt:
	@tools/setup test
	@git ls-files 'src/*.c' 'src/*.h' 'tests/*.c' 'tests/*.h' | xargs clang-format -i

lint: build
	@tools/setup test
	@tools/lint $(BUILD)

install: build
	@meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf build build-*

setup:
	@tools/setup
