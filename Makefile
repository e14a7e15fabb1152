# The project's commands. `make` without a target lists them.
VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ARGS ?=
# Many tests wait for processes that they start, so more workers than processors help.
WORKERS ?= 4
# The programs of .venv come first: .ci/tools installs Go there if the machine has none or an old one.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Without compiled files the tests would take twice as long: they start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# If HOME is not writable, pip and Go keep their caches here.
ifeq ($(shell test -w "$$HOME" && echo yes),)
export XDG_CACHE_HOME ?= $(CURDIR)/.cache
export GOPATH ?= $(CURDIR)/.cache/go
endif

.DEFAULT_GOAL := help
# Tests to run in a loop: they start no process, use no client and wait for nothing.
CORE := tests/amqp tests/broker tests/settings tests/session tests/store $(wildcard tests/test_*.py)
# The packages of a wheel: their types must be right on each platform.
SHIPPED := amqp_broker pyspark_amqp amqp_minibroker.py
# A number that fixes the random order of the tests.
SEED ?=
# The number of a day, as in CI: the long tests of that day run.
DAY ?=
OF_DAY = $(if $(DAY),--day $(DAY))
COMPILED := .cache/compiled
EXECUTABLE := dist/amqp-broker
PYTEST = $(PY) -m pytest --numprocesses $(WORKERS) --dist loadscope $(if $(SEED),--shuffle $(SEED))

.PHONY: help install run test-core compiled test-compiled test test-rest verify live properties matrix system tools clients check lint types tidy coverage record executable bench compat fuzz mutants torture soak release clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer is needed; install it or pass PYTHON=/path/to/python" >&2; exit 69; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); .ci/apt python3-venv && $(PYTHON) -m venv $(VENV); }

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

# pip builds a wheel of 450 MB from pyspark's sources, unpacks it, and removes it: compressing it would take a quarter of
# a minute.
$(VENV)/.dev: export DIST_EXTRA_CONFIG = $(CURDIR)/.ci/stored_wheels.cfg
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.run

install: $(VENV)/.run ## Build .venv with the broker in it

run: $(VENV)/.run ## Start the broker on port 5672 (ARGS="--port 0" passes options on)
	@echo 'For the commands of the broker in another shell: export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"'
	@exec $(VENV)/bin/amqp-broker serve $(ARGS)

# These wait for nothing.
test-core: WORKERS = 2
test-core: $(VENV)/.dev ## Run the tests of the core, in half a minute (ARGS="-k name" passes options on)
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not verify" $(CORE) $(ARGS)

# A copy of the package with compiled modules, where Python looks only if PYTHONPATH says so: the checkout stays pure.
compiled: $(COMPILED)/.built ## Build the broker with its hot modules compiled, into .cache/compiled (see docs/development/compiled-build.md)

$(COMPILED)/.built: setup.py pyproject.toml $(shell find amqp_broker -name '*.py') | $(VENV)/.dev
	@.ci/tools compiler
	AMQP_BROKER_COMPILED=1 $(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
		--upgrade --target $(COMPILED) .
	@touch $@

test-compiled: WORKERS = 2
test-compiled: export AMQP_BROKER_OPTIMIZATION ?= 1
test-compiled: export AMQP_BROKER_COMPILED = 1
test-compiled: export HYPOTHESIS_PROFILE = quick
test-compiled: WITH_COMPILED = $(PYTEST) -o pythonpath="$(COMPILED) ." -m "not verify and not interpreted" -rs
test-compiled: $(COMPILED)/.built ## Run the tests of the core, the simulation, the server and the HTTP API with the compiled modules
	$(WITH_COMPILED) $(CORE) tests/simulation tests/server $(ARGS)
	$(WITH_COMPILED) tests/management $(OF_DAY) $(ARGS)

test: tools ## Run the tests that need neither root nor RabbitMQ (WORKERS=0: one process; SEED=1: random order)
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not verify" -rs --ignore=tests/tidy $(ARGS)

# In CI, other steps run the core and the properties.
test-rest: tools ## Run the tests that neither make test-core nor make verify runs (DAY=0: fewer of the long ones)
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not verify" -rs $(CORE:%=--ignore=%) --ignore=tests/tidy \
		--ignore=tests/properties $(OF_DAY) $(ARGS)

verify: live properties matrix ## Run all other tests: RabbitMQ itself, browser, every client, all of Spark, kill -9, soak (DAY=0: the part of a day)

live: system tools $(VENV)/.verify
	$(PYTEST) -m verify -rs $(OF_DAY) $(ARGS)
	@$(PY) -m compat.oracles >/dev/null

properties: WORKERS = 2
properties: tools
	$(PYTEST) tests/properties $(OF_DAY)

matrix: system tools
	$(PY) -m compat.matrix $(OF_DAY)

tools: $(VENV)/.dev
	@.ci/tools python

# Targets of their own: with -j, what `make verify` needs beside .venv is installed while tests run. The environment itself
# must not change meanwhile: a test that imports a half installed package fails.
clients: system tools
	$(PY) -m compat.matrix --install $(OF_DAY)

# It needs nothing of .venv.
system: | $(VENV)/bin/python
	@.ci/tools system
	@$(PY) -m compat.oracles || [ -z "$$CI" ] || exit 69

coverage: WORKERS = 2
coverage: $(VENV)/.dev ## Run the tests of the core, except further cases of long ones, and fail if branch coverage has fallen
	@$(PY) -m coverage erase
	@COVERAGE_PROCESS_START=pyproject.toml HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not verify and not uncovered" $(CORE)
	@$(PY) -m coverage combine --quiet
	@for name in broker session store; do printf '%-8s %s %%\n' $$name \
		$$($(PY) -m coverage report --format=total --fail-under=0 --include="amqp_broker/$$name/*"); done
	@$(PY) -m coverage report

record: $(VENV)/.dev ## Record the answers of live RabbitMQs (ORACLE=4.3 SUITE=wire)
	@.ci/tools system
	$(PY) -m compat.oracle record $(SUITE) --oracle $(or $(ORACLE),all) $(ARGS)

check: lint types tidy ## Lint, types and the conventions of tests/tidy

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

# A day of CI has one of the other platforms.
types: PLATFORMS = $(if $(DAY),$(word $(shell expr $(DAY) % 2 + 1),darwin win32),darwin win32)
types: $(VENV)/.dev
	$(VENV)/bin/mypy
	@set -e; for platform in $(PLATFORMS); do \
		(set -x; $(VENV)/bin/mypy --platform $$platform --cache-dir .mypy_cache/$$platform $(SHIPPED)); \
	done

tidy: $(VENV)/.dev
	$(PY) -m pytest -m "not verify" tests/tidy

# The library that draws the chart of `make bench`.
$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[bench]'
	@touch $@

# The fuzzer that is guided by coverage, where it has a wheel.
$(VENV)/.fuzz: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[fuzz]'
	@touch $@

# The tools of tests/package.
$(VENV)/.package: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[package]'
	@touch $@

# The three at once: pip takes as long for one.
$(VENV)/.verify: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[bench,fuzz,package]'
	@touch $(VENV)/.bench $(VENV)/.fuzz $(VENV)/.package $@

executable: $(VENV)/.package $(COMPILED)/.built ## Build one file that needs no Python, dist/amqp-broker (packages/executable)
	$(PY) packages/executable/build.py $(COMPILED) $(EXECUTABLE)

bench: $(VENV)/.bench ## Compare speed with RabbitMQ, side by side (ARGS="--quick" for a short run)
	@.ci/tools system
	$(PY) -m bench $(ARGS)

compat: tools ## Play the scenarios of compat/README.md with every client (CLIENT=go, BROKER=rabbitmq or both)
	@.ci/tools system
	$(PY) -m compat.matrix $(CLIENT)

fuzz: $(VENV)/.fuzz ## Feed mutated bytes to sessions (ARGS="--seconds 60"), or fuzz a target (ARGS="--target http --executions 10000")
	$(PY) -m tests.fuzzing $(ARGS)

mutants: $(VENV)/.dev ## Plant small bugs in the core and list those that no test finds (ARGS="--count 300 --seed 1")
	$(PY) -m tests.mutants $(ARGS)

torture: $(VENV)/.dev ## Kill the broker at random moments and look for losses (ARGS="--rounds 200 --seed 1")
	$(PY) -m tests.torture $(ARGS)

soak: $(VENV)/.dev ## Run applications for a long time and look for leaks (ARGS="--minutes 60")
	$(PY) -m tests.soak $(ARGS)

release: $(VENV)/.package ## Make a version of the unreleased changes: commit, tag, notes, sdist and wheel (VERSION=0.3.0)
	@git diff --quiet HEAD || { echo "make: commit your changes first" >&2; exit 65; }
	@rm -rf dist
	$(PY) -m docs.release $(VERSION)
	git commit --quiet --all --message "Release $(VERSION)"
	git tag -a v$(VERSION) --file dist/notes.md --cleanup=verbatim
	$(PY) -m build
	$(PY) -m twine check --strict dist/*.whl dist/*.tar.gz

clean: ## Remove all build products
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
