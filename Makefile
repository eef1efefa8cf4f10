# Every target needs only Python 3.11+ and make: the first call sets up an environment in .venv, with uv if it is there.
#   make PYTHON=python3.12 test      choose the interpreter of a new environment
#   make ARGS="-k gap" test          pass options on to pytest, the demo, the reproduction or the benchmarks
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOWEST ?= .venv-lowest
RELEASE ?= .venv-release
DOCS ?= .venv-docs
# The demo uses the environment of the tests where it is there, otherwise one that is much smaller.
DEMO_READY := $(if $(wildcard $(READY)),$(READY),.venv-demo/.ready)
# An environment depends on these files: a change of the core updates it, which compiles the core.
SOURCES := pyproject.toml CMakeLists.txt $(wildcard src/rbrl/_loops/core/*) tools/build_backend.py tools/environment.sh

# Python keeps what it compiled, also where the environment says otherwise: the targets start many processes.
export PYTHONDONTWRITEBYTECODE :=

# The tests run one process per core, so each keeps to one thread of linear algebra.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -q -n auto --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help demo reproduce docs test soak coverage kernels lowest pythons lint bench asv dist smoke clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): $(SOURCES)
	@tools/environment.sh $(VENV) $(PYTHON)

.venv-demo/.ready: $(SOURCES)
	@tools/environment.sh .venv-demo $(PYTHON) newest demo

demo: $(DEMO_READY)  ## compare seven methods on yeast (real data, no download): table, ranks and a page
	@OPENBLAS_NUM_THREADS=1 $(dir $(DEMO_READY))bin/rbrl compare examples/demo.toml --store runs/demo --jobs 2 $(ARGS)

reproduce: $(READY)  ## compare the paper's tables with ours: make ARGS="table3" reproduce
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m studies.reproduction $(or $(ARGS),--help)

$(DOCS)/.ready: $(SOURCES)
	@tools/environment.sh $(DOCS) $(PYTHON) newest docs

docs: $(DOCS)/.ready  ## build the site with its gallery in docs/_build/html; a warning is an error
	@$(ONE_THREAD) $(DOCS)/bin/python -m sphinx -W --keep-going -b html $(ARGS) docs docs/_build/html

test: $(READY)  ## run the tests
	@$(PYTEST) $(ARGS)

soak: $(READY)  ## run the tests with the long ones
	@$(PYTEST) --soak $(ARGS)

coverage: $(READY)  ## run the tests and list the lines and branches of the source that no test runs; a page in htmlcov/
	@$(PYTEST) --cov --cov-report=term --cov-report=html $(ARGS)

kernels: $(READY)  ## run the numerical tests as several processors would compute them
	@$(ONE_THREAD) tools/kernels.sh $(BIN)/python $(ARGS)

$(LOWEST)/.ready: $(SOURCES) tools/lowest_versions.py
	@tools/environment.sh $(LOWEST) $(PYTHON) lowest

lowest: $(LOWEST)/.ready  ## run the tests with the lowest versions that pyproject.toml allows
	@$(ONE_THREAD) $(LOWEST)/bin/python -m pytest -q -n auto --dist loadfile $(ARGS)

pythons:  ## run the tests with every Python from 3.11 on that this machine has
	@MAKE="$(MAKE)" tools/pythons.sh ARGS="$(ARGS)"

lint: $(READY)  ## ruff, mypy (the package, and a user's script under --strict), import-linter, words
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	@$(BIN)/python tools/check_words.py
	@MYPYPATH=src $(BIN)/mypy --config-file= --strict --follow-imports=silent tests/typed/user_script.py

bench: $(READY)  ## run the benchmarks
	@$(ONE_THREAD) $(BIN)/python -m studies.benchmarks $(ARGS)

# Work on rbrl needs none of these tools for a release.
$(RELEASE)/.ready: $(SOURCES)
	@$(PYTHON) -m venv $(RELEASE) && $(RELEASE)/bin/python -m pip install -qq --disable-pip-version-check '.[release]' && touch $@

asv: $(RELEASE)/.ready  ## measure ten figures of speed and memory, and compare them with the recorded ones
	@$(ONE_THREAD) $(RELEASE)/bin/python -m studies.benchmarks asv $(ARGS)

dist: $(RELEASE)/.ready  ## build the source archive and a wheel, check their contents, and print their sizes
	@$(RELEASE)/bin/python tools/distributions.py

smoke:  ## install the wheels of dist/ into empty environments of every Python of this machine, and use them
	@$(ONE_THREAD) tools/smoke.sh dist $(ARGS)

clean:  ## remove the environment, the caches and built files
	rm -rf $(VENV) .venv-* src/rbrl/_loops/_core.* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .mutants .coverage* htmlcov build dist docs/_build docs/api docs/auto_examples docs/repository docs/sg_execution_times.rst
	find src tests examples studies -name __pycache__ -type d -prune -exec rm -rf {} +
