# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SINGLE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: env demo test lint bench docs docs-links examples getting-started package lock clean

env: $(STAMP)

$(STAMP): pyproject.toml requirements-dev.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --require-hashes -r requirements-dev.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $@

demo: env
	$(BIN)/resight demo --out demo
	@echo "resight is installed in $(VENV); to call it by name: . $(BIN)/activate"

test: env lint
	$(BIN)/python scripts/system_packages.py
	$(BIN)/resight doctor --warm-up
	$(SINGLE) $(BIN)/pytest -n 2 --dist loadfile

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@if $(BIN)/python -c "import sys; sys.exit(sys.version_info < (3, 11))"; then $(BIN)/mypy; \
	else echo "types are not checked: the last NumPy for Python 3.10 has older stubs"; fi

bench: env
	$(SINGLE) $(BIN)/python -m benchmarks

# What is written from the code, then the site in build/site; a warning stops it.
docs: env
	$(BIN)/python scripts/docs.py
	$(SINGLE) $(BIN)/python -m sphinx -q -d build/doctrees -W --keep-going -b html docs build/site

# Links to other sites; needs them to answer.
docs-links: env
	$(BIN)/python -m sphinx -q -d build/doctrees -b linkcheck docs build/links

examples: env
	$(SINGLE) $(BIN)/python scripts/run_examples.py

# docs/getting-started.md, followed in an empty folder and an empty environment.
getting-started:
	$(PYTHON) scripts/getting_started.py

# Wheel and sdist, installed in empty environments with and without extras.
package:
	$(PYTHON) scripts/check_package.py

# requirements.lock: what users install (every extra); requirements-dev.lock: that and the tools, the site's among them.
LOCK := build/lock/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.10 \
	--no-emit-index-url --generate-hashes --no-annotate --no-header --quiet

lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet uv
	$(LOCK) --group dev --group docs --output-file requirements-dev.lock
	$(LOCK) --constraint requirements-dev.lock --output-file requirements.lock

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/api docs/examples
