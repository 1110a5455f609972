# Everything starts from Python 3.11, pip and make: each target sets up .venv by itself.
# Variables: ARGS (passed on), TABLE and FAST=1 (for reproduce),
# DATA (for drifters), FAULT (for faults), PYTHON (for setup).

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PY := $(VENV)/bin/python
PHYSS := $(VENV)/bin/physs
STAMP := $(VENV)/.installed
UV_VERSION := 0.13.7
ARGS ?=
TABLE ?=
FAST ?=
DATA ?=
FAULT ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow lint types format ui sweep bench faults audit reproduce drifters clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Rebuilt only when the requirements change; the project itself is installed editable.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once)"
	@$(PY) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION) \
		|| echo "uv is not to be had; installing with pip"
	@if $(PY) -m uv --version >/dev/null 2>&1 && $(PY) -m uv pip install --quiet --compile-bytecode \
			--python $(PY) -c constraints.txt -b constraints.txt -e ".[dev]"; then :; \
	else PIP_CONSTRAINT=constraints.txt $(PY) -m pip install --quiet \
			--disable-pip-version-check -e ".[dev]"; fi
	@touch $(STAMP)

setup: $(STAMP) ## create .venv and install the pinned project

run: $(STAMP) ## run the default experiment (ARGS="experiment=... key=value")
	@$(PHYSS) run $(ARGS)

test: $(STAMP) ## run the tests
	@$(PY) -m pytest -q -n 2 $(ARGS)

test-slow: $(STAMP) ## run every test, slow ones and the paper's numbers too
	@$(PY) -m pytest -q -n 2 -m "" $(ARGS)

lint: $(STAMP) ## check style and formatting with ruff
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(STAMP) ## check types with pyright
	@$(PY) -m pyright --pythonpath $(PY)

format: $(STAMP) ## rewrite files in the house style
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

ui: $(STAMP) ## open the MLflow page on the embedded store
	@$(PHYSS) ui $(ARGS)

sweep: $(STAMP) ## a small sweep: two collocation counts, two seeds
	@$(PHYSS) sweep experiment=pendulum physics.collocation.count=20,100 seed=0,1 \
		training.iterations=200 $(ARGS)

bench: $(STAMP) ## measure speed
	@$(PY) -m benchmarks $(ARGS)

faults: $(STAMP) ## kill runs, spoil configs and data, stress numerics (an hour; FAULT=kills for one)
	@mkdir -p outputs/faults
	@for name in $(if $(FAULT),$(FAULT),kills configs data_files numerics machines soak); do \
		$(PY) -m tests.faults.$$name --out outputs/faults/$$name.jsonl || exit 1; done

audit: $(STAMP) ## look up the pinned dependencies among known vulnerabilities (needs the network)
	@$(PY) -m uv tool run pip-audit --disable-pip --no-deps -r constraints.txt $(ARGS)

reproduce: $(STAMP) ## reproduce the paper's tables (TABLE=pendulum, FAST=1 for a short form)
	@$(PY) -m physs_runner.reproduce $(if $(TABLE),--table $(TABLE)) $(if $(FAST),--fast) $(ARGS)

drifters: $(STAMP) ## compare on real drifters (DATA=folder of the snapshots; resumable)
	@$(PY) -m physs_runner.reproduce.drifters $(if $(DATA),--data $(DATA)) $(ARGS)

clean: ## remove .venv, caches and build products (outputs/ stays)
	@rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .benchmarks
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
