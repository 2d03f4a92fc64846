# SPDX-License-Identifier: BSD-3-Clause
# Thin on purpose: meson builds and tests, the scripts in .ci/ do the rest. Nothing here needs
# hugepages; only `make deps` may need root, and only when a package is missing.
BUILD ?= build
PREFIX ?= /usr/local

.PHONY: help deps deps-build build demo check bench format install clean
.NOTPARALLEL:

help:
	@echo 'make deps     install the Debian packages for building and testing that are missing'
	@echo 'make build    configure (once) and build into $(BUILD)/'
	@echo 'make demo     install what building needs, build, and show two HCAs talk'
	@echo 'make check    everything that can be tested here; closes with "N passed, N failed"'
	@echo 'make bench    the benchmarks, each as a share of the physical limit'
	@echo 'make format   clang-format all C sources in place'
	@echo 'make install  install under PREFIX ($(PREFIX)), fixed when $(BUILD)/ is configured'
	@echo 'make clean    remove $(BUILD)/'

deps:
	./.ci/deps build test

deps-build:
	./.ci/deps build

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD) --buildtype=release --prefix=$(PREFIX)

demo: deps-build build
	./app/demo.sh $(BUILD)

check: deps build
	./.ci/test $(BUILD)

bench: deps-build build
	meson test -C $(BUILD) --benchmark --verbose

format:
	git ls-files -z --cached --others --exclude-standard '*.c' '*.h' | \
		xargs -0 clang-format-14 -i

install: build
	meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD)
