# The project's commands. `make` alone lists them.
VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ARGS ?=
# Many tests wait for processes of their own, so there may be more workers than processors.
WORKERS ?= 3
# What .venv has comes before what the machine has: .ci/tools puts a Go there where there is none, or an old one.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install run test check bench compat fuzz torture clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer is needed; install it or pass PYTHON=/path/to/python" >&2; exit 69; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); .ci/apt python3-venv && $(PYTHON) -m venv $(VENV); }

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.run

install: $(VENV)/.run ## Build .venv with the broker in it

run: $(VENV)/.run ## Start the broker on port 5672 (ARGS="--port 0" passes options on)
	@exec $(VENV)/bin/amqp-broker serve $(ARGS)

test: $(VENV)/.dev ## Install what the tests need and run them (ARGS="-k name" passes options on, WORKERS=0 has one process)
	@.ci/tools
	$(PY) -m pytest --numprocesses $(WORKERS) --dist loadscope $(ARGS)

check: $(VENV)/.dev ## Lint, types, layers and mirror
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(PY) -m pytest tests/tidy

bench: $(VENV)/.dev ## Compare speed with RabbitMQ, side by side (ARGS="--quick" for a short run)
	@.ci/tools
	$(PY) -m bench $(ARGS)

compat: $(VENV)/.dev ## Play the scenarios of compat/README.md with every client (CLIENT=go, BROKER=rabbitmq or both)
	@.ci/tools
	$(PY) -m compat.matrix $(CLIENT)

fuzz: $(VENV)/.dev ## Throw mutated bytes at sessions for a bounded time (ARGS="--seconds 60")
	$(PY) -m tests.fuzz $(ARGS)

torture: $(VENV)/.dev ## Kill the broker at random moments and look for what is lost (ARGS="--rounds 200 --seed 1")
	$(PY) -m tests.torture $(ARGS)

clean: ## Remove everything that was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
