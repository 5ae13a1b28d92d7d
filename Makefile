# Builds, tests and measures idmint. `make` without a target lists the targets.
# Each target needs a Rust toolchain, a C compiler and make. The list names what a target needs in addition.

CARGO ?= cargo
# Extra arguments for `make run`, such as ARGS="--listen 127.0.0.1:9000".
ARGS ?=
# Every target fails if Cargo.lock does not match the manifests, so that the tested versions are the recorded ones.
LOCKED := --locked

.DEFAULT_GOAL := help
.PHONY: help run fleet quick test test-all tools bench compare instructions lint fmt-check clippy docs deny loom mutants mutants-fit mutants-sample torture fuzz attacks release release-aarch64

help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## Build an optimised program and serve on 127.0.0.1:8080 (more flags: ARGS="...").
	$(CARGO) run $(LOCKED) --profile quick -- serve $(ARGS)

fleet: ## Run three etcd members and three nodes on loopback until Ctrl-C (Debian packages etcd-server, etcd-client, protobuf-compiler, libprotobuf-dev, curl).
	$(CARGO) build $(LOCKED) --profile quick --features etcd
	deploy/fleet/run

# SLOW names the few unit tests that take longer than all others together. If a test is renamed, its name here has no effect.
# Many tests of the service wait for a timeout, so use more threads than the machine has cores.
quick: SLOW := simulation no_flipped_bit_of_the_folder by_any_loss_of_power a_thousand_lone_ids
quick: export RUST_TEST_THREADS := 8
quick: fmt-check ## Run the fast checks after an edit: formatting, unit tests, the rules between crates, and the service in process.
	$(CARGO) test $(LOCKED) --workspace --lib --test architecture --test it -- $(SLOW:%=--skip %)

# Many tests wait for a disk, a timeout or another process, so use more threads than the machine has cores. With FEATURES=etcd,
# skip the conformance tests, because they start etcd. `make test-all` runs them.
test: export RUST_TEST_THREADS ?= 4
test: ## Run every test that needs only the toolchain (FEATURES=etcd: share the build with `make test-all`).
	$(CARGO) test $(LOCKED) --workspace --features '$(FEATURES)' $(if $(FEATURES),-- --skip conformance)

# Runs only the tests that `make test` leaves out, so that both together run each test once. Fleet tests mostly wait for leases
# and elections, so use more threads than the machine has cores, and install the tools meanwhile. pip does not repeat a failed
# download, so run `make tools` up to three times. The attacks are short and only print their times, because no test depends on
# the speed of the machine.
test-all: export ATTACK_SECONDS ?= 1
test-all: export ATTACK_WAYS ?= 1
test-all: ## Run the tests that `make test` leaves out: long ones, and those that need Debian packages (installed if root), PyPI, or mounts (root).
	.ci/install-packages
	mkdir -p target/tools
	nice -n 3 sh -c 'for attempt in 1 2 3; do make tools >target/tools/log 2>&1 && exit; sleep 10; done; exit 1' & installing=$$!; \
	  $(CARGO) test $(LOCKED) --workspace --features etcd --test system -- --test-threads 6 fleet::; tested=$$?; \
	  wait $$installing || { cat target/tools/log >&2; exit 1; }; exit $$tested
	$(CARGO) test $(LOCKED) --workspace --features etcd --test system -- --test-threads 4 --skip fleet::
	$(CARGO) test $(LOCKED) --workspace --features etcd --lib conformance
	$(CARGO) test $(LOCKED) --workspace --features etcd --test attacks -- --test-threads 1

TOOLS := client-tools schemathesis ccsds-ndm duckdb oracles openapi-python-client openapi-generator kubernetes-validate kubectl playwright
tools: $(TOOLS:%=target/tools/%/installed) target/tools/bin/cargo-cyclonedx ## Install the tools that `make test-all` needs in addition to Debian packages.

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

torture: ## Run all long tests in full: 10^9 ids through kills, failing disks, clock steps and restores, 6 million appends, fuzzing, attacks and mutants. Writes a report.
	.ci/install-packages
	.ci/torture

# libFuzzer is built from source, which needs a C++ compiler.
fuzz: export FUZZ_SECONDS ?= 60
fuzz: ## Fuzz all parsers of external input with libFuzzer (FUZZ_SECONDS for each, SUBJECTS; needs a C++ compiler).
	tests/fuzz/run

# Attacks an optimised program, and for longer than `make test-all` does, because here the measured times matter.
attacks: export CARGO_TARGET_DIR := target/torture
attacks: export CARGO_PROFILE_RELEASE_LTO := off
attacks: export ATTACK_SECONDS ?= 20
attacks: export ATTACK_ADDRESSES ?= 1 2 6
attacks: ## Attack the service while an honest caller is measured, with a control for each attack (ATTACK_SECONDS, ATTACKS, ATTACK_ADDRESSES).
	$(CARGO) test $(LOCKED) --release --test attacks -- --nocapture --test-threads 1

bench: ## Run the benchmarks.
	$(CARGO) bench $(LOCKED)
	$(CARGO) bench $(LOCKED) -p idmint-client

# COMPARE_ROUNDS, COMPARE_SECONDS and COMPARE_OUTPUT set the number of rounds, their length, and the folder of the results.
# Build the binary separately and copy it, because `cargo bench` would build one with the extra features of the tests.
compare: ## Compare the released binary with other ways to get ids (Debian packages, installed if root). Results: target/compare/.
	.ci/install-rivals
	$(CARGO) build $(LOCKED) --release
	mkdir -p target/compare && cp target/release/idmint target/compare/idmint
	COMPARE_BINARY=$(CURDIR)/target/compare/idmint $(CARGO) bench $(LOCKED) --bench compare

instructions: ## Count the CPU instructions per id and compare them with benches/instructions/counts.txt (Debian package valgrind).
	$(CARGO) bench $(LOCKED) --bench instructions

lint: fmt-check clippy docs ## Check formatting, clippy and rustdoc. Every warning is an error.

fmt-check:
	$(CARGO) fmt --check

# First check everything with the feature etcd (Debian packages protobuf-compiler and libprotobuf-dev), then the test programs
# that run only if they are named, and then the library without default features.
clippy:
	$(CARGO) clippy $(LOCKED) --workspace --all-targets --features etcd -- -D warnings
	$(CARGO) clippy $(LOCKED) --features etcd --test system --test attacks --bench instructions --bench compare -- -D warnings
	$(CARGO) clippy $(LOCKED) --no-default-features --features client -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(LOCKED) --workspace --lib --no-deps

deny: target/tools/bin/cargo-deny ## Check licences, bans and sources of all dependencies (installs cargo-deny once).
	target/tools/bin/cargo-deny $(LOCKED) --all-features check --hide-inclusion-graph bans licenses sources

target/tools/bin/cargo-deny: .ci/install-cargo-deny .ci/cargo-deny.txt
	.ci/install-cargo-deny

# The models run faster with some optimisation, but the full optimisation of a release would add minutes to the build.
# Cargo succeeds if a filter matches no test. Fail instead, because then the models were renamed or removed.
loom: export CARGO_TARGET_DIR := target/loom
loom: export CARGO_PROFILE_RELEASE_LTO := off
loom: export CARGO_PROFILE_RELEASE_OPT_LEVEL := 1
loom: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 16
loom: export RUSTFLAGS := --cfg idmint_loom
loom: LOOM := $(CARGO) test $(LOCKED) --release -p idmint-core --lib loom_
loom: ## Model-check the atomics by running every interleaving of the loom_ tests.
	@tests=$$($(LOOM) -- --list) && case "$$tests" in (*loom_*': test'*) ;; (*) echo 'no loom_ test was built' >&2; exit 1;; esac
	$(LOOM) -- --nocapture

mutants-fit: ## Check that every mutation of `make mutants` still applies to the code.
	tests/mutants/run --fit

mutants: export SHARE ?= 1
mutants: ## Apply each prepared mutation to the code and check that a test fails (SHARE=10: a tenth of them, chosen by the commit).
	tests/mutants/run

# The same SEED draws the same mutations from the same code. SAMPLED lists the folders.
mutants-sample: export SEED ?= 1
mutants-sample: export COUNT ?= 250
mutants-sample: SAMPLED ?= crates/idmint-core/src/minting crates/idmint-storage/src
mutants-sample: target/tools/bin/cargo-mutants ## Mutate the code at random with cargo-mutants, and check that tests catch nine of ten mutations (SEED, COUNT, SAMPLED).
	for folder in $(SAMPLED); do tests/mutants/sample $$folder || exit 1; done

target/tools/bin/cargo-mutants: .ci/install-cargo-mutants
	.ci/install-cargo-mutants

# Fetch all crates first, because the release is built without network access.
release: target/tools/client-tools/installed target/tools/bin/cargo-auditable target/tools/bin/cargo-cyclonedx ## Build twice, compare the builds, and pack archive, image, SBOM and checksums in target/dist/ (builds cargo tools once; Debian packages protobuf-compiler, libprotobuf-dev, default-jdk-headless, npm, python3-venv).
	$(CARGO) fetch $(LOCKED) --target "$$(rustc -vV | sed -n 's/^host: //p')"
	.ci/release

release-aarch64: export MACHINE := aarch64
release-aarch64: export DIST := target/dist-aarch64
release-aarch64: target/tools/client-tools/installed target/tools/aarch64/installed target/tools/bin/cargo-auditable target/tools/bin/cargo-cyclonedx ## Cross-build the release for aarch64 on x86-64, and test it with QEMU: target/dist-aarch64/ (Debian packages default-jdk-headless, npm, python3-venv, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user, installed if root).
	$(CARGO) fetch $(LOCKED) --target "$$(rustc -vV | sed -n 's/^host: //p')" --target aarch64-unknown-linux-gnu
	.ci/release
	.ci/try-aarch64 $(DIST)

target/tools/aarch64/installed: .ci/install-aarch64
	.ci/install-aarch64

target/tools/bin/cargo-auditable target/tools/bin/cargo-cyclonedx &: .ci/install-release-tools
	.ci/install-release-tools
