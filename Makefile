PYTHON ?= python3
BIN := .venv/bin
# In order, so that what a file fits is fitted once, and whoever is done takes half of what the other
# has left: nobody waits for a long file at the end. About as many as there are cores, eight at the
# most, for each takes more than a gigabyte. What is compiled is kept, wherever else it would not
# be: rewriting the tests' assertions is half of collecting them.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal

.PHONY: demo demo-images picture quick test test-network explore load slow crash lint types contracts build docs coverage mutate clean

# Into a new folder each time, which is printed: runs/demo, runs/demo-2, ..
demo: .venv/installed
	$(BIN)/fedsynth run configs/demo.yaml

demo-images: .venv/installed
	$(BIN)/fedsynth run configs/digits.yaml

# Of a report, in the README: of the demo's own.
picture: .venv/installed-dev
	$(BIN)/python docs/picture.py

# What is fast and needs neither a browser nor shared data.
quick: .venv/installed-dev
	$(PYTEST) -m "not slow" --hypothesis-profile=quick

test: .venv/installed-dev
	$(PYTEST) --durations=15

# Between machines alone: wire, streams, secure sums, processes, faults. `python -m tests.network`
# prints what came of each fault.
test-network: .venv/installed-dev
	$(PYTEST) tests/network tests/federation/runtimes tests/federation/secure \
		tests/federation/test_wire.py tests/jobs/test_network.py

# Examples and noise that no run had before, and more of them: whenever there is an hour.
explore: .venv/installed-dev
	$(PYTEST) --hypothesis-profile=explore

# Twenty jobs side by side, fifty fits and a thousand samples in a process: nothing grows.
load: .venv/installed-dev
	FEDSYNTH_LOAD=1 $(PYTEST) tests/test_load.py

# Measures anew what `make quick` leaves out: on a quiet machine, now and then.
slow: .venv/installed-dev
	$(PYTEST) --list-slow

# Every method killed at everything that it does to files, and at random instants: an hour or two.
crash: .venv/installed-dev
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m tests.crash

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-dev
	$(BIN)/mypy

contracts: .venv/installed-dev
	$(BIN)/lint-imports

# What users get: a wheel, made from the source distribution, and the demo in an environment of its own.
build: .venv/installed-dev
	rm -rf dist build
	$(BIN)/python -m build --no-isolation
	$(PYTHON) -m venv build/fresh
	build/fresh/bin/python -m pip install --quiet dist/*.whl
	cd build && fresh/bin/fedsynth run demo --quiet --out demo && fresh/bin/fedsynth verify demo

# Lines and branches that the tests run; `make coverage TESTS=tests/privacy` of some.
coverage: .venv/installed-dev
	$(BIN)/python -m pip install --quiet 'pytest-cov>=6'
	$(PYTEST) --cov --cov-report=term --cov-report=html:build/coverage $(TESTS)

# Draws SAMPLE of the 20,000 changes that mutmut makes to privacy/ and federation/, and says what share
# of them the tests notice, room by room; a larger one goes on. What a change is: mutmut show NAME.
SAMPLE ?= 400
mutate: .venv/installed-dev
	$(BIN)/python -m pip install --quiet 'mutmut>=3.8,<4'
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants --sample $(SAMPLE)

# The site, in build/site: a link that leads nowhere is an error, and so is a notebook that fails.
# It works opened from a disk, search too: build/site/index.html.
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	FEDSYNTH_SITE=build/site $(PYTEST) tests/docs/test_site.py

clean:
	rm -rf .venv build dist mutants *.egg-info

# Editable, so that the tests and the demo run what stands in this folder.
.venv/installed: pyproject.toml | .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# pycanon demands NumPy 2.0.2 exactly, and runs with later ones.
# Packages are compiled on all cores, where pip has one do it, and without their own tests.
.venv/installed-dev: pyproject.toml | .venv
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-compile --no-deps 'pycanon>=1.3.6,<2'
	$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true
	touch $@ .venv/installed

.venv/installed-docs: .venv/installed-dev
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

.venv:
	$(PYTHON) -m venv .venv
