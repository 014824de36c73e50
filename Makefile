# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
#
# Everything one does with this repository. A target installs what it needs from Debian or Ubuntu and says so; with nothing missing it is quiet.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
# Debian keeps nginx and haproxy where only root looks.
export PATH := $(PATH):/usr/sbin:/sbin

PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
SECONDS ?= 60
MINUTES ?= 30
SEED ?= 1
COUNT ?= 100000
FILTER ?= .

STATIC = .build/static
# Relative relocations packed, which glibc reads since 2.36: the installed doord is a megabyte smaller for it, in the file and in memory.
PACKED = $(if $(shell getconf GNU_LIBC_VERSION | awk '{ split($$2, v, "."); if (v[1] > 2 || v[2] >= 36) print 1 }'),\
  -Xswiftc -use-ld=lld -Xlinker -z -Xlinker pack-relative-relocs)
SIMULATION = .build/simulation/release/Simulation
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system

.DEFAULT_GOAL := help
.PHONY: help run test lint bench fuzz tsan simulate soak docs static install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## doord on 127.0.0.1:8757 and [::1]:8757 (ARGS="--port 80 …")
	@scripts/setup build
	swift build -c release --product doord
	exec .build/release/doord $(ARGS)

# One test after another: side by side they share one process's descriptors, and one in fifteen runs then stood still.
test: ## every test: unit, black box, simulation, a package that depends on this one
	@scripts/setup build test
	swift build --build-tests
	timeout 900 swift test --skip-build --no-parallel 2>&1 | tee .build/test.log | grep -v '^◇\|^✔ Test ' # all of it: .build/test.log
	swift build -c release
	DOORD="$(CURDIR)/.build/release/doord" /usr/bin/python3 -m pytest -q -p no:cacheprovider Tests/BlackBox
	$(MAKE) --no-print-directory simulate COUNT=100000
	$(SIMULATION) --faults
	Tests/Dependent/run

lint: ## format of every Swift file, licence lines of every file
	@scripts/setup lint
	scripts/lint

bench: ## the table of figures (TARGET=url, COMPARE=revision, ARGS="--only cpu,memory --json FILE")
	@scripts/setup build bench
	Benchmarks/bench $(if $(TARGET),--target "$(TARGET)") $(if $(COMPARE),--compare "$(COMPARE)") $(ARGS)

fuzz: ## each fuzz target for SECONDS (60)
	@scripts/setup build
	Tests/Fuzz/run $(SECONDS)

tsan: ## unit tests under ThreadSanitizer (FILTER=LoopTests)
	@scripts/setup build
	swift test --scratch-path .build/tsan --sanitize=thread --filter '$(FILTER)'

simulate: ## COUNT simulated connections from SEED
	@scripts/setup build
	DOOR_SIMULATION=1 swift build -c release -Xswiftc -enable-testing --scratch-path .build/simulation --product Simulation
	$(SIMULATION) --seed $(SEED) --count $(COUNT)

soak: ## doord under mixed load for MINUTES (30)
	@scripts/setup build test
	swift build -c release --product doord
	DOORD="$(CURDIR)/.build/release/doord" /usr/bin/python3 Tests/BlackBox/soak/soak.py MINUTES=$(MINUTES)

docs: ## the libraries' reference, in .build/docs
	@scripts/setup build
	scripts/docs

static: ## doord as it is installed: static Swift runtime, stripped, in .build/static
	@scripts/setup build install
	swift build -c release --static-swift-stdlib $(PACKED) --scratch-path $(STATIC) --product doord
	strip -o $(STATIC)/doord $(STATIC)/release/doord

install: static ## doord and its systemd units, under DESTDIR and PREFIX (/usr/local)
	install -D -m 755 $(STATIC)/doord "$(DESTDIR)$(PREFIX)/bin/doord"
	install -d "$(UNITS)"
	sed 's|@PREFIX@|$(PREFIX)|g' Packaging/doord.service > "$(UNITS)/doord.service"
	install -m 644 Packaging/doord.socket "$(UNITS)/doord.socket"
	chmod 644 "$(UNITS)/doord.service"

clean: ## what was built
	rm -rf .build Examples/.build Benchmarks/.build Benchmarks/Instructions/.build
