# Every way to build, try and check idmint. `make` alone lists them.
# Needs a Rust toolchain, a C compiler and make; a target that needs more says so in its line below.

CARGO ?= cargo
# Extra arguments for `make run`, such as ARGS="--listen 127.0.0.1:9000".
ARGS ?=
# No target may quietly change Cargo.lock: what is tested is what is written down.
LOCKED := --locked

.DEFAULT_GOAL := help
.PHONY: help run fleet quick test test-all tools bench compare instructions lint fmt-check clippy docs deny loom mutants mutants-fit mutants-sample torture fuzz attacks release release-aarch64

help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## Build, optimised, and serve on 127.0.0.1:8080 (more flags: ARGS="...").
	$(CARGO) run $(LOCKED) --profile quick -- serve $(ARGS)

fleet: ## Three members of etcd and three nodes on loopback, until Ctrl-C (Debian packages etcd-server, etcd-client, protobuf-compiler, libprotobuf-dev, curl).
	$(CARGO) build $(LOCKED) --profile quick --features etcd
	deploy/fleet/run

# A few unit tests take longer than all others together; a skip that matches nothing only makes this slower.
# Many tests of the service wait for a timeout, so more of them run at once than there are cores.
quick: SLOW := simulation no_flipped_bit_of_the_folder by_any_loss_of_power a_thousand_lone_ids
quick: export RUST_TEST_THREADS := 8
quick: fmt-check ## After an edit: formatting, unit tests of all crates, the walls between them and the service in process.
	$(CARGO) test $(LOCKED) --workspace --lib --test architecture --test it -- $(SLOW:%=--skip %)

# Many tests wait for a disk, a timeout or another process, so more of them run at once than there are cores. With etcd the
# tests of all stores start some, and are left to `make test-all`.
test: export RUST_TEST_THREADS ?= 4
test: ## Every test that needs nothing but the toolchain (FEATURES=etcd: of what `make test-all` builds, so that both build it once).
	$(CARGO) test $(LOCKED) --workspace --features '$(FEATURES)' $(if $(FEATURES),-- --skip conformance)

# Only the test programs that `make test` leaves out: running both runs everything once. Those of a fleet mostly wait, for leases
# and elections, so more of them run at once than there are cores, and what the others need is installed meanwhile; of the others
# one is busy with an image most of the time. Attacks are short here, and their times only printed, since no test depends on how
# fast a machine is. pip does not repeat a download that breaks off, so `make tools` is tried up to three times.
test-all: export ATTACK_SECONDS ?= 1
test-all: export ATTACK_WAYS ?= 1
test-all: ## What `make test` leaves out: long runs, and tests that need Debian packages (installed when root), PyPI or mounts (root).
	.ci/install-packages
	mkdir -p target/tools
	nice -n 3 sh -c 'for attempt in 1 2 3; do make tools >target/tools/log 2>&1 && exit; sleep 10; done; exit 1' & installing=$$!; \
	  $(CARGO) test $(LOCKED) --workspace --features etcd --test system -- --test-threads 6 fleet::; tested=$$?; \
	  wait $$installing || { cat target/tools/log >&2; exit 1; }; exit $$tested
	$(CARGO) test $(LOCKED) --workspace --features etcd --test system -- --test-threads 4 --skip fleet::
	$(CARGO) test $(LOCKED) --workspace --features etcd --lib conformance
	$(CARGO) test $(LOCKED) --workspace --features etcd --test attacks -- --test-threads 1

TOOLS := client-tools schemathesis ccsds-ndm duckdb oracles openapi-python-client openapi-generator kubernetes-validate kubectl playwright
tools: $(TOOLS:%=target/tools/%/installed) target/tools/bin/cargo-cyclonedx ## What `make test-all` needs beside Debian packages.

target/tools/client-tools/installed: .ci/install-client-tools .ci/client-tools.txt
	.ci/install-client-tools

target/tools/ccsds-ndm/installed: .ci/install-ccsds-ndm .ci/ccsds-ndm.txt
	.ci/install-ccsds-ndm

target/tools/duckdb/installed: .ci/install-duckdb .ci/duckdb.txt
	.ci/install-duckdb

target/tools/oracles/installed: .ci/install-oracles .ci/oracles.txt
	.ci/install-oracles

target/tools/openapi-python-client/installed: .ci/install-openapi-python-client .ci/openapi-python-client.txt
	.ci/install-openapi-python-client

target/tools/openapi-generator/installed: .ci/install-openapi-generator .ci/openapi-generator.txt
	.ci/install-openapi-generator

target/tools/kubernetes-validate/installed: .ci/install-kubernetes-validate .ci/kubernetes-validate.txt
	.ci/install-kubernetes-validate

target/tools/kubectl/installed: .ci/install-kubectl .ci/kubectl.txt
	.ci/install-kubectl

target/tools/playwright/installed: .ci/install-playwright .ci/playwright.txt
	.ci/install-playwright

target/tools/schemathesis/installed: .ci/install-schemathesis .ci/schemathesis.txt
	.ci/install-schemathesis

torture: ## All that is long, whole: 10^9 ids through kills, failing disks, set clocks and restores, 6 million appends, fuzzing, attacks, mutants; and a page of what it did.
	.ci/install-packages
	.ci/torture

# libFuzzer is compiled from source, by a C++ compiler.
fuzz: export FUZZ_SECONDS ?= 60
fuzz: ## Feed whatever reads bytes from outside with what libFuzzer makes of them (FUZZ_SECONDS each, SUBJECTS; a C++ compiler).
	tests/fuzz/run

# Optimised, and longer than in `make test-all`: here times count.
attacks: export CARGO_TARGET_DIR := target/torture
attacks: export CARGO_PROFILE_RELEASE_LTO := off
attacks: export ATTACK_SECONDS ?= 20
attacks: export ATTACK_ADDRESSES ?= 1 2 6
attacks: ## Attack the service from other addresses, beside an honest caller and a control (ATTACK_SECONDS, ATTACKS, ATTACK_ADDRESSES).
	$(CARGO) test $(LOCKED) --release --test attacks -- --nocapture --test-threads 1

bench: ## Run the benchmarks.
	$(CARGO) bench $(LOCKED)
	$(CARGO) bench $(LOCKED) -p idmint-client

# COMPARE_ROUNDS, COMPARE_SECONDS and COMPARE_OUTPUT say how often, how long, and where the results go.
# The binary is built on its own and put aside: for a benchmark, cargo builds one with the features that tests add.
compare: ## Measure the released binary beside other ways to get ids (Debian packages, installed when root): target/compare/.
	.ci/install-rivals
	$(CARGO) build $(LOCKED) --release
	mkdir -p target/compare && cp target/release/idmint target/compare/idmint
	COMPARE_BINARY=$(CURDIR)/target/compare/idmint $(CARGO) bench $(LOCKED) --bench compare

instructions: ## Count the instructions of an id (Debian package valgrind) against benches/instructions/counts.txt.
	$(CARGO) bench $(LOCKED) --bench instructions

lint: fmt-check clippy docs ## Formatting, clippy and documentation, every warning an error.

fmt-check:
	$(CARGO) fmt --check

# With etcd (Debian packages protobuf-compiler and libprotobuf-dev) and all tests, those that run only where they are named, too;
# and without features, where the library must still stand alone.
clippy:
	$(CARGO) clippy $(LOCKED) --workspace --all-targets --features etcd -- -D warnings
	$(CARGO) clippy $(LOCKED) --features etcd --test system --test attacks --bench instructions --bench compare -- -D warnings
	$(CARGO) clippy $(LOCKED) --no-default-features --features client -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(LOCKED) --workspace --lib --no-deps

deny: target/tools/bin/cargo-deny ## Licences, bans and sources of all dependencies (fetches cargo-deny once).
	target/tools/bin/cargo-deny $(LOCKED) --all-features check --hide-inclusion-graph bans licenses sources

target/tools/bin/cargo-deny: .ci/install-cargo-deny .ci/cargo-deny.txt
	.ci/install-cargo-deny

# The models need some optimisation. All that the shipped binary gets would only cost minutes.
# A filter that matches nothing passes in cargo; here it would mean that the models are gone, so it fails.
loom: export CARGO_TARGET_DIR := target/loom
loom: export CARGO_PROFILE_RELEASE_LTO := off
loom: export CARGO_PROFILE_RELEASE_OPT_LEVEL := 1
loom: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 16
loom: export RUSTFLAGS := --cfg idmint_loom
loom: LOOM := $(CARGO) test $(LOCKED) --release -p idmint-core --lib loom_
loom: ## Model-check the atomics: every interleaving of the loom_ tests.
	@tests=$$($(LOOM) -- --list) && case "$$tests" in (*loom_*': test'*) ;; (*) echo 'no loom_ test was built' >&2; exit 1;; esac
	$(LOOM) -- --nocapture

mutants-fit: ## Check that every deliberate mistake of `make mutants` still fits the code.
	tests/mutants/run --fit

mutants: export SHARE ?= 1
mutants: ## Break the code on purpose; every break must be caught by a test (SHARE=10: a tenth of them, by the commit).
	tests/mutants/run

# The same SEED draws the same breaks from the same code. SAMPLED says in which folders.
mutants-sample: export SEED ?= 1
mutants-sample: export COUNT ?= 250
mutants-sample: SAMPLED ?= crates/idmint-core/src/minting crates/idmint-storage/src
mutants-sample: target/tools/bin/cargo-mutants ## Break the code at random (SEED, COUNT, SAMPLED); nine of ten breaks must be caught.
	for folder in $(SAMPLED); do tests/mutants/sample $$folder || exit 1; done

target/tools/bin/cargo-mutants: .ci/install-cargo-mutants
	.ci/install-cargo-mutants

# Fetches first: what makes the release itself is kept from the network.
release: target/tools/client-tools/installed target/tools/bin/cargo-auditable target/tools/bin/cargo-cyclonedx ## Build twice, compare, and pack archive, image, SBOM and checksums: target/dist/ (cargo tools, built once; Debian packages protobuf-compiler, libprotobuf-dev, default-jdk-headless, npm, python3-venv).
	$(CARGO) fetch $(LOCKED) --target "$$(rustc -vV | sed -n 's/^host: //p')"
	.ci/release

release-aarch64: export MACHINE := aarch64
release-aarch64: export DIST := target/dist-aarch64
release-aarch64: target/tools/client-tools/installed target/tools/aarch64/installed target/tools/bin/cargo-auditable target/tools/bin/cargo-cyclonedx ## The same for aarch64, on x86-64, and try it under QEMU: target/dist-aarch64/ (also Debian packages default-jdk-headless, npm, python3-venv, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user, installed when root).
	$(CARGO) fetch $(LOCKED) --target "$$(rustc -vV | sed -n 's/^host: //p')" --target aarch64-unknown-linux-gnu
	.ci/release
	.ci/try-aarch64 $(DIST)

target/tools/aarch64/installed: .ci/install-aarch64
	.ci/install-aarch64

target/tools/bin/cargo-auditable target/tools/bin/cargo-cyclonedx &: .ci/install-release-tools
	.ci/install-release-tools
