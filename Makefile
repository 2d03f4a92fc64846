# SPDX-License-Identifier: BSD-3-Clause
# Thin on purpose: meson builds and tests, the scripts in .ci/ do the rest. Nothing here needs
# hugepages; only `make deps` may need root, and only when a package is missing.
BUILD ?= build
PREFIX ?= /usr/local

PROFILED ?= build-profiled
CHECKED ?= build-checked
MUTATED ?= build-mutation
STRESSED ?= build-stress
FUZZED ?= build-fuzz
ARM64 ?= build-arm64
PACKAGED ?= build-deb
# Warnings are errors in CI, and where one develops (CONTRIBUTING.md); who only builds may have another compiler.
WERROR := $(if $(CI),-Dwerror=true)

.PHONY: help deps deps-build build profiled demo check conformance soak network-sim stress fuzz model prove mutation arm64 interop bench bench-check compare doc deb deb-check format install clean
.NOTPARALLEL:

help:
	@echo 'make deps     install the Debian packages for building and testing that are missing'
	@echo 'make build    configure (once) and build into $(BUILD)/'
	@echo 'make profiled  the fastest build, in $(PROFILED)/: gcc builds twice, the second time for what the first one'
	@echo '              has found to be frequent'
	@echo 'make demo     install what building needs, build what it runs, and show two HCAs talk (V=1: with'
	@echo '              what the daemon says and counts)'
	@echo 'make check    everything that can be tested here; closes with "N passed, N failed, N skipped"'
	@echo 'make conformance  the transport against the rules of the standard: a matrix of rules and tests,'
	@echo '              and of the state machines'"'"' transitions (a build of its own in $(CHECKED)/)'
	@echo 'make soak     a million random schedules of loss, at low priority on all cores (SOAK=n: so many;'
	@echo '              SEED=n: from this seed on)'
	@echo 'make network-sim  HCAs that compete in networks of switches, in virtual time: a table of what they reach'
	@echo '              beside what is wanted, and $(BUILD)/network.svg (SEED=n: five seeds from this one on)'
	@echo 'make stress   everything at random by two clients, ten minutes under ASan and ten under TSan, then'
	@echo '              attacks under ASan (STRESS=n: so many seconds each)'
	@echo 'make fuzz     libFuzzer at each target of tests/fuzz, under ASan and UBSan or MSan (FUZZ=n: so many seconds in all)'
	@echo 'make model    Spin looks at all that can happen in the models of tests/model, for minutes'
	@echo 'make prove    Frama-C proves the contracts of tests/prove, for minutes'
	@echo 'make mutation  breaks each checked condition in turn and tells which test notices (FILES="a.c b.c":'
	@echo '              of these alone)'
	@echo 'make arm64    builds for arm64 and runs the conformance programs and most unit tests under emulation'
	@echo 'make interop  programs between a daemon and Linux'"'"'s soft-RoCE in an emulated guest, for half an hour'
	@echo 'make bench    the benchmarks, each as a share of the physical limit'
	@echo 'make bench-check  the shares alone, and what fell against bench/path/baseline.json'
	@echo 'make compare  softhca, perftest, MPI, UCX, rsockets, TCP and UDP beside each other: a table, and'
	@echo '              $(PROFILED)/compare.svg (PUBLISH=yes: into README.md and bench/compare/compare.svg)'
	@echo 'make doc      HTML and man pages in $(BUILD)/doc'
	@echo 'make deb      Debian packages of the last commit, in $(PACKAGED)'
	@echo 'make deb-check  the same, then lintian; installs, runs, upgrades and purges them in a view of this'
	@echo '              machine that is thrown away'
	@echo 'make format   clang-format all C sources in place'
	@echo 'make install  install under PREFIX ($(PREFIX)), fixed when $(BUILD)/ is configured; man pages, too,'
	@echo '              if make doc has built them (after make profiled: BUILD=$(PROFILED))'
	@echo 'make clean    remove $(BUILD)/, $(PROFILED)/, $(CHECKED)/, $(MUTATED)/, $(FUZZED)*/, $(ARM64)/, $(PACKAGED)/ and $(STRESSED)-*/'

deps:
	./.ci/deps build test verbs

deps-build:
	./.ci/deps build

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

# A package installed since $(BUILD)/ was configured may be one that was missing: check again.
INSTALLED ?= $(wildcard /var/lib/dpkg/status)
$(PROFILED)/build.ninja: NO_TESTS := -Dtests=false
$(BUILD)/build.ninja $(PROFILED)/build.ninja: $(INSTALLED)
	meson setup $(@D) $(WERROR) $(if $(wildcard $@),--reconfigure,--buildtype=release --prefix=$(PREFIX) $(NO_TESTS))

# What a profile of older sources says of them may be wrong.
TRAINED := $(shell find lib pmd-glue bench -name '*.[ch]' -o -name '*.def' -o -name meson.build -o -name train)
$(PROFILED)/profile: $(TRAINED) meson.build | $(PROFILED)/build.ninja
	./bench/stage/train $(PROFILED)
	touch $@

profiled: deps-build $(PROFILED)/build.ninja $(PROFILED)/profile
	ninja -C $(PROFILED)

demo: deps-build $(BUILD)/build.ninja
	ninja -C $(BUILD) demo
	./app/demo.sh $(if $(V),-v) $(BUILD)

check: deps build
	./.ci/test $(BUILD)

# With assertions and the record of transitions on.
conformance: deps $(CHECKED)/build.ninja
	ninja -C $(CHECKED)
	meson test -C $(CHECKED) --no-rebuild --print-errorlogs --suite unit --suite conformance
	./tests/conformance/matrix transitions $(CHECKED)/tests/conformance/results
	./tests/conformance/matrix rules $(CHECKED)/tests/conformance/results

SOAK ?= 1000000
SEED ?= 1
soak: deps $(CHECKED)/build.ninja
	ninja -C $(CHECKED)
	./tests/conformance/soak $(CHECKED) $(SOAK) $(SEED)

network-sim: deps-build $(BUILD)/build.ninja
	ninja -C $(BUILD) tests/conformance/test_conformance_network
	SOFTHCA_SEEDS=$(SEED),5 $(BUILD)/tests/conformance/test_conformance_network long $(BUILD)/network.csv
	./tests/conformance/network.py $(BUILD)/network.csv $(BUILD)/network.svg

TAKES := ./tests/progress.py seconds
STRESS ?= 600
stress: deps $(STRESSED)-address/build.ninja $(STRESSED)-thread/build.ninja
	ninja -C $(STRESSED)-address
	ninja -C $(STRESSED)-thread
	SOFTHCA_BUILD=$(STRESSED)-address SOFTHCA_STRESS_SECONDS=$(STRESS) $(TAKES) $(STRESS) ./tests/system/stress.sh
	SOFTHCA_BUILD=$(STRESSED)-thread SOFTHCA_STRESS_SECONDS=$(STRESS) $(TAKES) $(STRESS) ./tests/system/stress.sh
	SOFTHCA_BUILD=$(STRESSED)-address SOFTHCA_HOSTILE_SECONDS=$(STRESS) $(TAKES) $(STRESS) ./tests/system/hostile.sh

FUZZ ?= 600
fuzz: deps $(FUZZED)/build.ninja $(FUZZED)-memory/build.ninja
	ninja -C $(FUZZED) fuzz
	ninja -C $(FUZZED)-memory fuzz
	$(TAKES) $(FUZZ) ./tests/fuzz/run $(FUZZED) $(FUZZ)

$(FUZZED)/build.ninja: FUZZED_UNDER := address,undefined
$(FUZZED)-memory/build.ninja: FUZZED_UNDER := memory
$(FUZZED)/build.ninja $(FUZZED)-memory/build.ninja:
	CC=clang-14 meson setup $(@D) $(WERROR) --buildtype=debugoptimized -Db_lundef=false -Db_lto=false \
		-Db_sanitize=$(FUZZED_UNDER) -Dfuzz=true

model: deps
	./tests/model/check tables
	./tests/model/check spin -DPSNS=12

SANITISE_address := address,undefined
SANITISE_thread := thread
$(STRESSED)-%/build.ninja:
	CC=clang-14 meson setup $(@D) $(WERROR) --buildtype=debugoptimized -Db_lundef=false -Db_lto=false \
		-Db_sanitize=$(SANITISE_$*)

prove:
	./.ci/deps prove
	./tests/prove/prove

mutation: deps
	./tests/mutation/mutate --folder $(MUTATED) $(FILES)

arm64: deps
	./tests/arm64/run $(ARM64)

interop: build
	./.ci/deps build test verbs interop
	SOFTHCA_BUILD=$(BUILD) ./tests/system/interop.sh

$(CHECKED)/build.ninja:
	meson setup $(CHECKED) $(WERROR) --buildtype=debugoptimized -Db_lto=false

bench: deps-build build profiled
	ninja -C $(PROFILED) meson-benchmark-prereq
	meson test -C $(PROFILED) --no-rebuild --benchmark --verbose
	meson test -C $(BUILD) --no-rebuild --benchmark --verbose memory v2p registration

bench-check: profiled
	./bench/path/bench.sh $(PROFILED) --baseline bench/path/baseline.json

compare: profiled
	./.ci/deps compare
	./bench/compare/compare.sh $(if $(PUBLISH),--publish) $(PROFILED)

doc: build
	./.ci/deps doc
	./doc/generate $(BUILD) $(BUILD)/doc

# From a clone, so that nothing but what is committed gets in, and nothing into this folder.
deb:
	./.ci/deps build doc deb
	rm -rf $(PACKAGED)
	git clone -q . $(PACKAGED)/softhca
	cd $(PACKAGED)/softhca && DEB_BUILD_OPTIONS="nocheck parallel=$$(nproc) $$DEB_BUILD_OPTIONS" dpkg-buildpackage -us -uc -b

deb-check: deb
	./.ci/deps verbs
	./tests/packages/check $(PACKAGED)

format:
	git ls-files -z --cached --others --exclude-standard '*.c' '*.h' | \
		xargs -0 clang-format-14 -i

install: build
	meson install -C $(BUILD) --no-rebuild
	[ ! -d $(BUILD)/doc/man ] || \
		{ mkdir -p $(DESTDIR)$(PREFIX)/share/man && cp -r $(BUILD)/doc/man/. $(DESTDIR)$(PREFIX)/share/man; }

clean:
	rm -rf $(BUILD) $(PROFILED) $(CHECKED) $(MUTATED) $(FUZZED) $(FUZZED)-memory $(ARM64) $(PACKAGED) $(STRESSED)-address $(STRESSED)-thread
