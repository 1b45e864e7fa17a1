# `make setup` installs what is missing; every other target runs it first (it is quick when nothing
# is). Everything is built in release, so that what links MLIR is built once.

CARGO ?= cargo
BENCH_ARGUMENTS ?=
DEVICE ?= cuda
MINUTES ?= 1
SEED ?=
INSTANCES ?= 1000000

.PHONY: all setup build runner wheel demo test test-ray test-gpu bench bench-gpu gpu-kits fuzz fuzz-memory soak lint lint-workspace lint-runner deny docs help

all: build

help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## Installs LLVM 22 and the test tools where they are missing
	@tools/setup.sh

build: setup ## Builds batch-opt and batch-run into target/release
	$(CARGO) build --release --workspace --bins

runner: ## Builds batch-run without the compiler, a few MB that run artifacts, into target/runner/release
	$(CARGO) build --release --package cohort-tools --bin batch-run --no-default-features --target-dir target/runner

wheel: build ## Builds the wheels for Python into target/wheels: the runtime, and the compiler
	@python/wheels.sh all

demo: build ## Runs the TreeLSTM example, batched and unbatched
	examples/treelstm/demo.sh

test: setup ## Runs every test and prints how many passed
	@$(MAKE) --no-print-directory --jobs=2 build runner
	@test/run-all.sh

test-ray: build ## Tests the Python package under a local Ray, which it installs into an environment of its own
	@test/ray.sh

test-gpu: build runner ## Runs every model on the GPU, or on DEVICE=gpu-sim; says so where there is none
	test/device/make-kit.sh target/device-kit
	target/device-kit/run.sh $(DEVICE)

bench: build ## Compares with PyTorch, switches each technique off; BENCH_ARGUMENTS=--quick takes two minutes
	$(CARGO) build --release --workspace --examples
	bench/setup.sh
	.venv/bin/python bench/run.py $(BENCH_ARGUMENTS)

bench-gpu: ## Compares with PyTorch on the GPU, or tests that on DEVICE=gpu-sim; says so where there is none
	@bench/gpu.sh $(DEVICE) $(BENCH_ARGUMENTS)

gpu-kits: build runner ## Makes the folders that test and measure on a machine that has a GPU and no compiler
	test/device/make-kit.sh target/device-kit
	bench/gpu.sh kit

fuzz: build ## Changed inputs and random programs for MINUTES=1; SEED= repeats a run, each day has its own
	target/release/cohort-fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

fuzz-memory: build runner ## The same under valgrind, for the night: MINUTES=60 and more
	test/fuzz-memory.sh $(MINUTES) $(SEED)

soak: build ## A million instances, one in a hundred bad, and the memory that they take; INSTANCES=
	test/soak.sh $(INSTANCES)

lint: setup ## Formatting, lints and the pages of the code, without warnings
	$(CARGO) fmt --all --check
	@$(MAKE) --no-print-directory --jobs=2 lint-workspace lint-runner

lint-workspace:
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --no-deps --document-private-items

lint-runner:
	$(CARGO) clippy --release --package cohort-tools --no-default-features --target-dir target/runner -- -D warnings

deny: ## Licences, duplicates and sources of dependencies, and advisories where they can be reached
	tools/deny.sh

docs: build ## Renews the generated reference pages, and builds all as a site in target/site
	docs/generate.sh
	docs/site.sh
