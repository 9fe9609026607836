# Everything runs in a virtual environment of its own, made on first use. A second run needs no network.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# The tests start many interpreters: where a machine forbids bytecode, each would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

# What numba's kernels are compiled from, and how: they are kept beside the package until a line of it changes.
CODE   := $(shell grep --recursive --files-with-matches --extended-regexp --include='*.py' \
          'numba|@(compiled|inlined)' src/crowdveil) tests/compile_kernels.py

# What `make check` runs: tests of single modules that take seconds, for they need no compiled kernel.
UNIT   := tests/study tests/privacy/planning $(wildcard tests/privacy/test_*.py) tests/test_architecture.py \
          tests/ballots/test_ballots.py tests/test_decision.py tests/test_front_door.py tests/test_releases.py \
          --deselect tests/test_front_door.py::test_from_a_file_to_a_decision_in_six_lines \
          --deselect tests/test_front_door.py::test_deciding_loads_nothing_heavy

.PHONY: demo check unit test test-slow lint bench bench-service bench-page docs pictures clean

demo: $(VENV)/installed            ## simulate a crowd, release it under each paradigm, decide a dilemma
	$(BIN)/crowdveil demo

check: $(VENV)/installed-dev node_modules  ## lint, types, import direction, the fast unit tests: before a commit
	$(MAKE) --no-print-directory --jobs 2 lint unit

unit: $(VENV)/installed-dev
	$(BIN)/pytest -n auto $(UNIT)

test: lint $(VENV)/kernels         ## lint, types, import direction, all tests but the long sweeps
	$(BIN)/pytest -n auto

test-slow: $(VENV)/kernels         ## the long sweeps, and many more examples of every property
	$(BIN)/pytest -n auto -m "slow or hypothesis" --hypothesis-profile thorough

lint: $(VENV)/installed-dev node_modules $(VENV)/notebook.py
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src/crowdveil examples/*.py $(VENV)/notebook.py
	$(BIN)/lint-imports
	$(BIN)/node node_modules/typescript/bin/tsc --project .

bench: $(VENV)/installed-bench     ## side by side, as ratios
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/liars.py
	$(BIN)/python benchmarks/import.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/startup.py

bench-service: $(VENV)/installed-dev  ## durable reports a second, beside the same without a database; of a relay, too
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/relay.py

bench-page: $(VENV)/installed-dev  ## how long a voter waits for the page on slow 3G
	$(BIN)/python benchmarks/page.py

docs: $(VENV)/installed-dev        ## the documentation as a site, links checked
	$(BIN)/mkdocs build --strict --quiet

pictures: $(VENV)/installed-dev    ## the README's screenshots
	$(BIN)/python -m tests.web.pictures

clean:
	rm -rf $(VENV) demo node_modules site

node_modules: package-lock.json | $(VENV)/installed-dev
	$(BIN)/npm ci --ignore-scripts --prefer-offline --silent
	touch $@

# The code of the notebook, so that its types are checked like those of the other examples.
$(VENV)/notebook.py: examples/from-answers-to-decisions.ipynb | $(VENV)/installed-dev
	$(BIN)/python -c "import json, sys; cells = json.load(sys.stdin)['cells']; \
	print(*(''.join(c['source']) for c in cells if c['cell_type'] == 'code'), sep='\n')" < $< > $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .[dev]
	touch $@ $(VENV)/installed

$(VENV)/kernels: $(CODE) $(VENV)/installed-dev
	$(BIN)/python -m tests.compile_kernels
	touch $@

$(VENV)/installed-bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .[dev,bench]
	touch $@ $(VENV)/installed $(VENV)/installed-dev
