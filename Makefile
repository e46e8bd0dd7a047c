# Leeward: build, test and maintenance. `make` alone lists the targets.
#
# All targets share one build. Rust has a single profile, release, and a single target directory. The Python package in
# .venv is a link to its sources, and the extension module built from crates/bindings lies beside them. The stamp files in
# .venv and target record the last build of each part.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
BIN := .venv/bin
FUZZ_SECONDS ?= 60
BENCH_RUNS ?= 5
# Samples of telemetry in the benchmark of hotspots, and its limit of memory. A billion samples take about 9 GB of disk,
# and need 16GB.
BENCH_ROWS ?= 10000000
BENCH_MEMORY ?= 4GB
SOAK_SECONDS ?= 600

export PYTHON
# The build of the solver needs CMake. The one in .venv is used if the system has none.
export PATH := $(HOME)/.cargo/bin:$(PATH):$(CURDIR)/.venv/bin
export VIRTUAL_ENV := $(CURDIR)/.venv
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_QUIET := 1
# The stable ABI does not depend on the Python interpreter. With these settings, maturin, cargo and clippy share one
# build of pyo3; without them, each would rebuild pyo3 after the others.
export PYO3_BUILD_EXTENSION_MODULE := 1
export PYO3_CONFIG_FILE ?= $(CURDIR)/crates/bindings/pyo3.txt

# The bindings have no tests in Rust. `--workspace` includes them all the same: dependencies then have the features that
# they have in the wheel, and are not built again.
CARGO_TEST := cargo test --release --locked --no-fail-fast --workspace
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name Cargo.toml -o -path '*/src/*' -name '*.rs' -o -name build.rs)

# Ruff finds files in folders by their extension. The list names scripts without one.
PYTHON_SOURCES := python reproduce scripts/api_reference.py scripts/crates scripts/man scripts/packages scripts/progress scripts/tables

.PHONY: help
help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Sources of the dashboard. Systems without Node skip its build.
WEB_SOURCES := $(wildcard web/*.json web/*.ts web/*.js web/index.html) $(shell find web/src web/public -type f 2>/dev/null)

.PHONY: build
build: prerequisites .venv/.native kernel ## Build everything and leave the leeward command in .venv/bin

# Flag for the programs only. In RUSTFLAGS it would also apply to builds of C libraries, and the solver's build links a
# shared library, which fails with -static. Here, the programs share their dependencies with all other builds.
STATIC := -C target-feature=+crt-static

.PHONY: binaries
binaries: prerequisites .venv/.tools target/.dashboard ## Build static programs into dist/: leewardd, leeward-agent, leeward-enforce-net, leeward-nfs
	cargo rustc --release --locked -p leeward-controller --bin leewardd -- $(STATIC)
	cargo rustc --release --locked -p leeward-agent --bin leeward-agent -- $(STATIC)
	cargo rustc --release --locked -p leeward-enforce --bin leeward-enforce-net -- $(STATIC)
	cargo rustc --release --locked -p leeward-nfs --bin leeward-nfs -- $(STATIC)
	@mkdir -p dist
	install -s -m 755 $(addprefix target/release/,leewardd leeward-agent leeward-enforce-net leeward-nfs) dist/
	@scripts/static $(addprefix dist/,leewardd leeward-agent leeward-enforce-net leeward-nfs)

.PHONY: packages
packages: binaries ## Build packages into dist/: deb with dpkg-deb, rpm with rpmbuild
	@$(PYTHON) scripts/packages dist dist

# Parts of the lab in C. A part whose tools are missing is left out, and the lab says so.
.PHONY: kernel
kernel:
	@$(MAKE) --no-print-directory --silent -C kernel

.PHONY: wheel
wheel: build ## Build a wheel into dist/, for machines without Rust
	@rm -rf dist/leeward-*.whl leeward._native.data
	@# maturin packs this folder, named after the module, into the wheel, and pip installs its files into the environment.
	$(BIN)/python scripts/man leeward._native.data/data/share/man/man1
	$(BIN)/maturin build --release --out dist

.PHONY: man
man: build ## Write manual pages for the command into .venv/share/man
	@$(BIN)/python scripts/man .venv/share/man/man1

.PHONY: image
image: wheel ## Build a container image from the wheel, with podman or docker
	@scripts/image leeward

.PHONY: service-image
service-image: binaries ## Build a container image of leewardd alone, with podman or docker
	@scripts/image leewardd

GO := $(shell command -v go || echo /usr/local/go/bin/go)
GO_STATIC := CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w'

.PHONY: kubernetes-binaries
kubernetes-binaries: ## Build static programs for Kubernetes into dist/: scheduler, evictor and sync, kubectl plugin; needs Go 1.26
	@mkdir -p dist
	cd integrations/kubernetes && $(GO_STATIC) -o ../../dist/ ./cmd/...
	cd integrations/kubernetes/scheduler && $(GO_STATIC) -o ../../../dist/leeward-scheduler .

.PHONY: kubernetes-images
kubernetes-images: service-image kubernetes-binaries ## Build the container images of the Helm chart, with podman or docker
	@for image in leeward-agent leeward-scheduler leeward-kubernetes; do scripts/image $$image || exit; done

.PHONY: kubernetes-push
kubernetes-push: kubernetes-images ## Push the images of the Helm chart to IMAGE_REPOSITORY, such as registry.example.com/leeward
	@for image in leewardd leeward-agent leeward-scheduler leeward-kubernetes; do scripts/image --push $$image || exit; done

# The demo needs neither the service nor the solver, whose libraries take most of the time of a first build. If there is
# a complete build, the demo uses it.
.PHONY: demo
demo: $(if $(wildcard .venv/.native),build,prerequisites) ## Show what Leeward does on a simulated datacenter
	@[ -e .venv/.native ] || scripts/progress target/demo.log $(MAKE) .venv/.demo
	@$(BIN)/leeward demo

.PHONY: hdfs-demo
hdfs-demo: hdfs-parts build ## Write blocks to a real HDFS in a lab, placed by its policy and by Leeward's; as root, by sudo; OPTIONS=--help
	@# The user builds, and root runs.
	@$(if $(filter-out 0,$(shell id -u)),sudo env PATH="$$PATH" PYTHONDONTWRITEBYTECODE=1) $(BIN)/python -m leeward_reproduce.hdfs.demo $(OPTIONS)

.PHONY: hdfs-lab
hdfs-lab: hdfs-parts build ## Bring up a real HDFS with Leeward's policy in a lab, until Ctrl-C; as root, by sudo; OPTIONS=--help
	@$(if $(filter-out 0,$(shell id -u)),sudo env PATH="$$PATH" PYTHONDONTWRITEBYTECODE=1) $(BIN)/python -m leeward_reproduce.hdfs $(OPTIONS)

# The build takes minutes, so missing parts are named before it.
.PHONY: hdfs-parts
hdfs-parts:
	@$(PYTHON) reproduce/leeward_reproduce/hdfs/class_path.py

.PHONY: kubernetes-demo
kubernetes-demo: kubernetes-parts build ## Show hot racks under a real kube-scheduler, with Leeward's plugin and without it; needs Go 1.26
	@$(BIN)/python -m leeward_reproduce.hotspots.kubernetes.demo

# As above, also for the ten minutes of a first build of Kubernetes.
.PHONY: kubernetes-parts
kubernetes-parts:
	@$(PYTHON) reproduce/leeward_reproduce/hotspots/kubernetes/program.py

.PHONY: slo-demo
slo-demo: slo-parts build ## Show a promise on a real disk beside a noisy neighbour, without and with enforcement; as root, by sudo; OPTIONS=--help
	@$(if $(filter-out 0,$(shell id -u)),sudo env PATH="$$PATH" PYTHONDONTWRITEBYTECODE=1) $(BIN)/python -m leeward_reproduce.slo.real.demo $(OPTIONS)

.PHONY: slo-parts
slo-parts:
	@$(PYTHON) reproduce/leeward_reproduce/slo/real/parts.py

.PHONY: test
test: servers lint test-rust test-python test-hdfs test-kubernetes test-web test-wheel test-oldest ## Build, check the style, run all tests, and list the skipped ones
	@scripts/skipped target/test-*.log

.PHONY: test-whole
test-whole: servers build test-hdfs-whole test-kubernetes-whole test-images ## Run the tests on complete data sets and of many random inputs; other tests use a part of each
	$(BIN)/pytest -m whole
	PROPTEST_CASES=20000 $(CARGO_TEST) --test it -- vertices::
	LEEWARD_DECISIONS=900000 $(CARGO_TEST) --test processes -- many:: --nocapture

.PHONY: bench
bench: build ## Run the benchmarks BENCH_RUNS times; their figures go to docs/reference/speed.json
	$(BIN)/python python/benchmarks/collect.py --runs $(BENCH_RUNS) --rows $(BENCH_ROWS) --memory $(BENCH_MEMORY)

.PHONY: bench-quick
bench-quick: build ## Run a subset of the benchmarks once, in five minutes; figures go to target/bench-quick.json
	$(BIN)/python python/benchmarks/collect.py --quick

.PHONY: fuzz
fuzz: build ## Search for counterexamples longer than the tests do, FUZZ_SECONDS for each target
	PROPTEST_CASES=4096 $(CARGO_TEST)
	$(BIN)/pytest --quiet --hypothesis-profile=fuzz -m hypothesis
	@scripts/fuzz $(FUZZ_SECONDS)

.PHONY: soak
soak: ## Run a service with misbehaving clients for SOAK_SECONDS
	LEEWARD_SOAK=$(SOAK_SECONDS) $(CARGO_TEST) --test processes -- soak:: --nocapture

.PHONY: docs
docs: ## Build the book from docs/
	@command -v mdbook >/dev/null || { echo "error: missing mdbook"; echo "hint: cargo install mdbook"; exit 1; } >&2
	mdbook build docs

.PHONY: drawing
drawing: ## Draw the crates and their dependencies: docs/pictures/crates.svg
	@$(PYTHON) scripts/crates

.PHONY: tables
tables: build ## Write the generated tables in docs/: policies, options, former flags
	@$(BIN)/python scripts/tables

.PHONY: fmt
fmt: build ## Format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix $(PYTHON_SOURCES)
	$(BIN)/ruff format --quiet $(PYTHON_SOURCES)

.PHONY: lint
lint: build ## Check the style and types of Rust and Python
	@mkdir -p target && rm -f target/test-*.log
	cargo fmt --all --check
	@# Types of Python are checked beside Rust, because neither check uses both cores.
	$(BIN)/mypy & \
	cargo clippy --quiet --release --locked --workspace --all-targets -- -D warnings && wait $$!
	@# The build of the demo.
	cargo clippy --quiet --release --locked --package leeward-bindings --no-default-features -- -D warnings
	$(BIN)/ruff check --quiet $(PYTHON_SOURCES)
	$(BIN)/ruff format --quiet --check $(PYTHON_SOURCES)
	@if command -v cargo-deny >/dev/null; then cargo deny --locked check bans licenses sources; \
	else echo "skipped: licences of dependencies: cargo-deny is not installed" | tee target/test-licences.log; fi

.PHONY: clean
clean: ## Remove all that the other targets built or installed here
	rm -rf target dist leeward._native.data fuzz/target fuzz/corpus web/dist web/node_modules web/test-results .venv docs/book .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -rf python/leeward/_native*.so python/leeward/lab/kernel
	find python reproduce -name __pycache__ -exec rm -rf {} +

.PHONY: prerequisites
prerequisites:
	@scripts/prerequisites

# Before `build`: the parts of the lab in C need some of these packages.
.PHONY: servers
servers:
	@scripts/servers

.PHONY: test-rust
test-rust: build
	@mkdir -p target
	@# The seed gives the same cases each time, as in Python; `make fuzz` draws others.
	PROPTEST_RNG_SEED=1 $(CARGO_TEST) -- --show-output 2>&1 | tee target/test-rust.log

.PHONY: test-python
test-python: servers build
	@mkdir -p target
	@# The tests of a file run in one process, because they share servers that are slow to start.
	$(BIN)/pytest --numprocesses=2 --dist=loadfile 2>&1 | tee target/test-python.log

.PHONY: test-web
test-web: servers build
	@mkdir -p target
	@scripts/test-web 2>&1 | tee target/test-web.log

# The first run downloads two versions of Hadoop, about 300 MB.
.PHONY: test-hdfs
test-hdfs: servers build
	@mkdir -p target
	@scripts/test-hdfs 2>&1 | tee target/test-hdfs.log

.PHONY: test-hdfs-whole
test-hdfs-whole: servers build
	@mkdir -p target
	@scripts/test-hdfs -Pwhole 2>&1 | tee target/test-hdfs.log

# A part: 200 nodes instead of 1,000, and without the longest tests. The first build of Kubernetes takes ten minutes of processor
# time.
.PHONY: test-kubernetes
test-kubernetes: build
	@mkdir -p target
	@scripts/test-kubernetes -short 2>&1 | tee target/test-kubernetes.log

.PHONY: test-kubernetes-whole
test-kubernetes-whole: build
	@mkdir -p target
	@scripts/test-kubernetes -v 2>&1 | tee target/test-kubernetes.log

# A part of test-whole: builds the images of the Helm chart on machines with podman or docker.
.PHONY: test-images
test-images:
	@mkdir -p target && rm -f target/test-images.log
	@if podman info >/dev/null 2>&1 || docker info >/dev/null 2>&1; then $(MAKE) --no-print-directory kubernetes-images; \
	else echo "skipped: container images: neither podman nor docker runs here" | tee target/test-images.log; fi

.PHONY: test-wheel
test-wheel: wheel
	@scripts/smoke

.PHONY: test-oldest
test-oldest: wheel
	@mkdir -p target
	@scripts/oldest 2>&1 | tee target/test-oldest.log

.venv/.python: constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install pip maturin
	touch $@

.venv/.tools: .venv/.python
	$(BIN)/pip install cmake flit_core libclang
	ln -sfn "$$($(BIN)/python -c 'import clang.native; print(*clang.native.__path__)')" .venv/libclang
	touch $@

target/.dashboard: $(WEB_SOURCES)
	@mkdir -p target
	@scripts/dashboard
	@touch $@

# maturin first installs Python packages. Cargo compiles meanwhile, by maturin's command, so maturin takes the result.
EXTENSION := cargo rustc --release --locked --package leeward-bindings --lib

.venv/.demo: .venv/.python pyproject.toml $(RUST_SOURCES)
	$(EXTENSION) --no-default-features -- -C strip=symbols & \
	$(BIN)/maturin develop --release --no-default-features --extras plot && wait $$!
	touch $@

.venv/.native: .venv/.tools pyproject.toml reproduce/pyproject.toml $(RUST_SOURCES) target/.dashboard
	$(EXTENSION) -- -C strip=symbols & \
	$(BIN)/maturin develop --release --extras analysis,plot --group tests && wait $$!
	$(BIN)/pip install --no-deps --no-build-isolation --editable reproduce
	touch $@
