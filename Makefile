# `make demo`, `make test` and the other targets install what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Commands that tests start reuse compiled bytecode, also if the user disables writing it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-certified test-long test-spark test-package coverage docs lint types layers size bench reproduce clean

demo: $(VENV)/.demo
	$(BIN)/limpet demo

# Types are checked in parallel with the tests, and printed after them.
test: lint layers
	@echo "$(BIN)/mypy &"; $(BIN)/mypy > $(VENV)/types.txt 2>&1 & types=$$!; \
	echo "$(BIN)/python -m pytest -n auto --dist worksteal"; $(BIN)/python -m pytest -n auto --dist worksteal; tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((tests | types))

test-long: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m long tests

# scikit-learn checks the array interface only if SciPy supports it, which an environment variable enables.
test-certified: $(VENV)/.dev
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -m certified tests/adapters/test_certified.py

test-spark: $(VENV)/.spark
	$(BIN)/python -m pytest -m spark tests lab/tests

test-package: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m package tests

# A report, without a threshold: in the terminal, and as pages in build/coverage. Compiled kernels cannot be traced and are
# left out; the tests against the reference implementations cover them.
coverage: $(VENV)/.dev
	mkdir -p build
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term:skip-covered --cov-report=html

# The site, in site/: built without a network, its links checked.
docs: $(VENV)/.dev
	$(BIN)/python docs/tools/make_site.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python docs/tools/check_words.py

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

# Files, lines and layers of the package against its limits, and the files that a point crosses.
size: $(VENV)/.dev
	$(BIN)/python docs/tools/package_size.py --walks

bench: $(VENV)/.dev
	$(BIN)/limpet bench

reproduce: $(VENV)/.dev
	$(BIN)/limpet reproduce

clean:
	rm -rf $(VENV) site build .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src lab tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "limpet needs Python 3.11 or newer, found: $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plots,server]'
	touch $@

$(VENV)/.dev: pyproject.toml lab/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -e './lab[all]'
	touch $@ $(VENV)/.demo

$(VENV)/.spark: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,spark]' -e './lab[all]'
	touch $@
