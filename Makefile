# Everything is set up inside this folder: .venv holds the packages, .cache what other tools download.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
export PYRIGHT_PYTHON_CACHE_DIR := $(CURDIR)/.cache/pyright
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Bytecode is kept: without it every process that a test starts compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=
# Modules are compiled when they are first imported: the unused ones would take 80 MB and half of the set-up time. What
# is installed once needs no cache.
PIP := $(BIN)/python -m pip install --quiet --no-compile --no-cache-dir

.PHONY: setup demo browser screenshots axe test test-all check fuzz mutate bench bench-real bench-peers lock clean

setup: $(VENV)/core.done

$(VENV)/core.done: requirements/core.lock requirements/build.lock requirements/slim.py pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit('steelyard needs Python 3.11 or later; this is ' + sys.version.split()[0] + '. Try: make PYTHON=python3.12 setup' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/core.lock -r requirements/build.lock
	$(BIN)/python requirements/slim.py $(VENV)
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# Readers of further formats and Dask (extras ros, data and cluster) are tested, so they come with the tools; without a
# wheel they are left out and their tests skipped.
$(VENV)/tools.done: $(VENV)/core.done requirements/tools.lock requirements/extras.lock
	$(PIP) -r requirements/tools.lock
	@$(PIP) --only-binary :all: -r requirements/extras.lock \
	  || echo "readers of ROS bags or HDF5, or Dask, have no wheel here: their tests will be skipped"
	@touch $@

# An oracle without a wheel for this machine is left out; its tests then say why they are skipped.
$(VENV)/oracles.done: $(VENV)/tools.done requirements/oracles.lock
	@for oracle in $$(grep -v '^#' requirements/oracles.in); do \
	  $(PIP) --only-binary :all: -c requirements/oracles.lock $$oracle \
	    || echo "oracle $$oracle has no wheel here: its tests will be skipped"; \
	done
	@touch $@

$(VENV)/large.done: $(VENV)/oracles.done requirements/large.lock
	$(PIP) --only-binary :all: -r requirements/large.lock
	@touch $@

# Other people's libraries that the benchmarks race against, beyond the oracles.
$(VENV)/peers.done: $(VENV)/oracles.done requirements/peers.lock
	$(PIP) --only-binary :all: -r requirements/peers.lock
	@touch $@

# Chromium for the tests of reports; without it they are skipped.
browser:
	@apt-get install --yes --no-install-recommends chromium chromium-driver \
	  || echo "chromium cannot be installed here: the tests in a browser will be skipped"

demo: setup
	$(BIN)/steelyard demo --out demo

test: $(VENV)/oracles.done
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not large"

test-all: $(VENV)/large.done
	$(BIN)/python -m pytest -n auto --dist loadfile

check: $(VENV)/oracles.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# Damaged inputs of every kind; what is found is kept in the folder fuzz-faults.
fuzz: $(VENV)/tools.done
	PYTHONPATH=tests $(BIN)/python -m fuzz --cases 100000 --regressions

# Small changes of the code that no test notices: make mutate ROOM=judge MUTANTS=5
ROOM ?= judge
MUTANTS ?= 5
mutate: $(VENV)/oracles.done
	$(BIN)/python tests/mutate.py $(ROOM) --mutants $(MUTANTS)

# Pictures of every kind of report, wide and narrow, light and dark, in the folder screenshots.
screenshots: $(VENV)/tools.done
	PYTHONPATH=tests $(BIN)/python tests/screenshots.py

# Accessibility of every kind of report by axe-core, from npm.
axe: $(VENV)/tools.done
	npm install --silent --no-audit --no-fund --prefix .cache/axe axe-core
	PYTHONPATH=tests $(BIN)/python tests/screenshots.py --axe .cache/axe/node_modules/axe-core/axe.min.js

bench: $(VENV)/oracles.done
	$(BIN)/python -m benchmarks

# Needs the real recordings: STEELYARD_DATA, or ../shared/data. Writes its section of the page of benchmarks.
bench-real: $(VENV)/oracles.done
	$(BIN)/python -m benchmarks.real --out docs/benchmarks.md

# The peers of identification get environments of their own, .cache/peers-*: they pin other versions than ours.
bench-peers: $(VENV)/peers.done
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.peers.real --out docs/benchmarks.md

# Renews the locks of exact versions (needs uv).
lock:
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header -q pyproject.toml -o requirements/core.lock
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header -q requirements/build.in -o requirements/build.lock
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header -q requirements/tools.in -c requirements/core.lock -o requirements/tools.lock
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header -q requirements/extras.in -c requirements/core.lock -o requirements/extras.lock
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header -q requirements/oracles.in -c requirements/core.lock -c requirements/tools.lock -o requirements/oracles.lock
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header -q requirements/large.in -c requirements/core.lock -c requirements/oracles.lock -o requirements/large.lock
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header -q requirements/peers.in -c requirements/core.lock -c requirements/oracles.lock -o requirements/peers.lock

clean:
	rm -rf $(VENV) .cache demo
