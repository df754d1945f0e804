# What there is to do with a checkout. `make help` lists it. Everything is made in the checkout, but for the roots
# with Slurm and the API server: those are in ${XDG_CACHE_HOME:-~/.cache}/hybridgpu, for other checkouts too.

.PHONY: help demo test test-fast soak fuzz bench lint format prepare roots clean
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
COVERAGE_FLOOR := 88
SHELL_SCRIPTS := .ci/run testbed/prepare testbed/driver/inside testbed/hooks/enter testbed/slurm/build-root \
	slurm/install slurm/hybridgpu-hook slurm/taskprolog slurm/enroot/50-hybridgpu.sh \
	$(wildcard slurm/*prolog.d/50-hybridgpu slurm/epilog.d/50-hybridgpu)

# The first Python on PATH that is new enough and can make a virtual environment; PYTHON=... overrides.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)

define PYTHON_OR_WHY
test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer with venv on PATH: install one (Debian: python3-venv), \
or say PYTHON=/path/to/python3" >&2; exit 1; }
endef

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 20

demo: .venv/.runs ## see it work, on example sites, in a minute
	@PATH="$(CURDIR)/$(BIN):$$PATH" demo/run

test: prepare .venv/.tests ## lint, then every test once, with fixed seeds; as root with real Slurm and Kubernetes
	@$(MAKE) lint roots
	$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

test-fast: .venv/.tests ## the tests that need neither root nor real daemons, with coverage
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -m "not slurm and not kubernetes" --numprocesses=auto --dist=worksteal
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered --fail-under=$(COVERAGE_FLOOR)

soak: prepare .venv/.tests roots ## the large counts, to the end; writes docs/measured.md
	HYBRIDGPU_SOAK=1 $(BIN)/python -m pytest -p tests.measured --numprocesses=auto --dist=worksteal

fuzz: prepare .venv/.tests roots ## 20,000 generated configurations a release before slurmd; HYBRIDGPU_SEED=... repeats
	@seed="$${HYBRIDGPU_SEED:-$$(date +%s)}"; echo "HYBRIDGPU_SEED=$$seed"; \
	HYBRIDGPU_FUZZ="$${HYBRIDGPU_FUZZ:-1}" HYBRIDGPU_SEED="$$seed" $(BIN)/python -m pytest \
		tests/slurm/test_agreement.py -k generated_pairs --numprocesses=auto --dist=worksteal

bench: prepare .venv/.tests roots ## the ratios that the design promises, side by side
	$(BIN)/python -m bench

lint: .venv/.tests ## style, format, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@if command -v shellcheck >/dev/null; then shellcheck $(SHELL_SCRIPTS); else echo "no shellcheck here"; fi

format: .venv/.tests ## put the code into the house's form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

prepare: ## install what tests need from the system (root on Debian), or say what is missing
	@testbed/prepare

roots: .venv/.tests ## build what is missing of the roots with Slurm and the API server
	@$(BIN)/python -m testbed

clean: ## remove what was made in the checkout; the roots stay
	rm -rf .venv build dist out .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.runs: pyproject.toml
	@$(PYTHON_OR_WHY)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.tests: pyproject.toml
	@$(PYTHON_OR_WHY)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch .venv/.runs $@
