# What people and CI run. Needs python3 (3.11 or newer), make and git; the rest goes into .venv.

PYTHON  ?= python3
# One more than a small machine has cores: many tests wait, for a child that starts or for a time to pass.
WORKERS ?= 3
ARGS    ?=

# Containers often set this variable. Then every Python that the tests and the demo start (thousands) compiles all
# of its modules again, which takes three times as long as the start itself.
unexport PYTHONDONTWRITEBYTECODE

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
BENCH := $(VENV)/.ready-bench
DOCS := $(VENV)/.ready-docs

# One virtual environment for each list of agents that can live together; see tests/agents.
AGENTS := $(patsubst tests/agents/requirements/%.txt,.venvs/%/.ready,$(wildcard tests/agents/requirements/*.txt)) \
  .venvs/npm/.ready

# What runs inside an agent's process, and so on Python 3.10: see CONTRIBUTING.md.
NOT_GUESTS := __main__ analytics cli exporters library pytest_plugin remote story testing views
GUESTS      = $(filter-out $(NOT_GUESTS:%=src/playhead/%.py),$(wildcard src/playhead/*.py)) \
  $(filter-out $(NOT_GUESTS:%=src/playhead/%/),$(filter-out %__pycache__/,$(wildcard src/playhead/*/)))

# uv where it can be had, for speed; pip where it cannot, or where only pip knows the index.
define install
if $(BIN)/uv --version >/dev/null 2>&1 \
  && $(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[$(1)]' 2>$(VENV)/uv.log; then :; \
else $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(1)]'; fi
endef

.DEFAULT_GOAL := help
.PHONY: help setup demo browser database test test-order test-agents test-attack test-native test-engines check lint types types-all types-guests layers format bench docs pictures docs-check clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv and install Playhead into it
	@:

demo: $(READY) ## record a small agent, watch it, replay it, without a key or a network
	@$(BIN)/playhead demo $(ARGS)

# Each worker begins with tests that follow each other, so they share fixtures; one that is done takes over tests of the
# other, so no core is idle at the end.
test: $(READY) browser database ## every test except those of real agent frameworks; ARGS="-k torn" for some
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -rs $(ARGS)

# The viewer's tests drive a real browser, and fail, never skip, where there is none.
browser: ## Chromium for the tests of the viewer, from Debian where we may install it
	@test -x "$${PLAYHEAD_CHROMIUM:-/usr/bin/chromium}" || { \
	  if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium for the tests of the viewer"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	        --no-install-recommends chromium fonts-liberation; } >$(VENV)/chromium.log 2>&1 \
	      || tail -n 5 $(VENV)/chromium.log >&2; \
	  else echo "tests/browser needs Chromium: apt-get install chromium, or PLAYHEAD_CHROMIUM=/path/to/it" >&2; fi; }

# Without them the tests of the library on PostgreSQL and of connections to Redis are skipped; in CI that is a failure.
database: ## PostgreSQL and Redis for the tests that need them, from Debian where we may install them
	@{ command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 \
	  && command -v redis-server >/dev/null || { \
	  if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
	    echo "Installing PostgreSQL and Redis for the tests"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	        --no-install-recommends postgresql redis-server; } >$(VENV)/servers.log 2>&1 \
	      || tail -n 5 $(VENV)/servers.log >&2; \
	  else echo "no PostgreSQL or Redis here: apt-get install postgresql redis-server, for the tests that need them" >&2; fi; }

test-agents: $(READY) $(AGENTS) ## real agent frameworks, each in a virtual environment of its own
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m agents tests/agents tests/roundtrip/fence $(ARGS)

# Each program is recorded ten times and replayed four times, half of them on a saturated machine.
test-order: $(READY) ## replays of concurrent programs keep the order of the tape; ARGS="gather_httpx -r 2" for some, ARGS="--seed 7" for other generated ones
	@$(BIN)/python -m tests.order.shapes $(ARGS)

# Hostile tapes, secrets, ports, kills and disk faults, on this machine alone; prints the counts. At most 30 minutes.
test-attack: $(READY) ## attack Playhead with hostile tapes, secrets and requests; ARGS="--only matrix" for one part
	@$(BIN)/python -m tests.attack $(ARGS)

# 200,000 texts and values and 20,000 HTTP exchanges, also in a build with AddressSanitizer and UndefinedBehaviorSanitizer; then a million events for leaks.
test-native: $(READY) ## compare the native core with Python; ARGS="--count 5000 --checked 5000 --seed 3" for less
	@$(BIN)/python -m tests.native $(ARGS)

# Kill -9 at many moments and loads of many runs. About ten minutes.
test-engines: $(READY) database ## shared stores, PostgreSQL, Dask and Ray under kills and load
	@test -x "$$(command -v nginx || echo /usr/sbin/nginx)" || { test "$$(id -u)" = 0 && apt-get install -y -qq \
	    --no-install-recommends nginx-light >$(VENV)/nginx.log 2>&1; } || echo "no nginx: its tests fail" >&2
	@$(BIN)/python -c 'import distributed, ray' 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dask,ray]'
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m engines --timeout 1200 tests/engines $(ARGS)

# mypy beside the tests, most of which start a process and wait for it. `test` includes the layers.
check: lint ## everything that must pass before a commit is shared: lint, types, layers, tests
	@$(MAKE) --no-print-directory -j 3 types-all types-guests test

lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .

types: types-all types-guests ## mypy: all as 3.11, and the guests as 3.10 as well

types-all: $(READY)
	@$(BIN)/mypy --no-error-summary

types-guests: $(READY)
	@$(BIN)/mypy --no-error-summary --python-version 3.10 $(GUESTS)

layers: $(READY) ## imports go down only, and guests import the standard library only
	@$(BIN)/python -m pytest -q -n 0 tests/unit/test_layers.py

format: $(READY) ## format the code with ruff
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

bench: $(BENCH) ## measure the cost of recording, and of comparable tools
	@$(BIN)/python -m bench $(ARGS)

docs: $(DOCS) ## rewrite docs/cli.md from the commands, and build the site into build/site
	@$(BIN)/python scripts/cli_docs.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "build/site/index.html"

pictures: $(READY) browser ## take the pictures of the viewer again, for docs/images
	@$(BIN)/python -m pytest -q -n 0 tests/browser/test_pictures.py -k fits
	@cp build/screenshots/docs/*.png docs/images/

docs-check: $(READY) ## docs/cli.md is up to date, and no link leads nowhere
	@$(BIN)/python -m pytest -q -n 0 tests/unit/test_docs.py

clean: ## remove .venv and everything that was built
	@rm -rf $(VENV) .venvs build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Playhead needs Python 3.11 or newer; $(PYTHON) is not. Name one: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Playhead into $(VENV)"
	@$(BIN)/uv --version >/dev/null 2>&1 \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv 2>$(VENV)/uv.log \
	  || echo "uv cannot be had here; pip will do, more slowly"
	@$(call install,dev)
	@touch $@

.venvs/%/.ready: tests/agents/requirements/%.txt | $(READY)
	@echo "Installing agents into .venvs/$*"
	@rm -rf .venvs/$*
	@if $(BIN)/uv --version >/dev/null 2>&1; then \
	  $(BIN)/uv venv --quiet --python $(BIN)/python .venvs/$* \
	  && $(BIN)/uv pip install --quiet --python .venvs/$*/bin/python -r $<; \
	else $(BIN)/python -m venv .venvs/$* \
	  && .venvs/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<; fi
	@touch $@

# Claude Code, Codex, Gemini CLI, Qwen Code and OpenCode; without npm their tests are skipped.
.venvs/npm/.ready: tests/agents/npm/package.json
	@mkdir -p .venvs/npm
	@cp $< .venvs/npm/
	@if command -v npm >/dev/null; then echo "Installing agents into .venvs/npm" \
	  && npm install --prefix .venvs/npm --no-audit --no-fund --loglevel=error; \
	else echo "npm cannot be had here; agents that are not Python are not tested"; fi
	@touch $@

$(BENCH): $(READY)
	@echo "Installing the peers that the benchmark compares with"
	@$(call install,bench)
	@touch $@

$(DOCS): $(READY)
	@echo "Installing what builds the documentation"
	@$(call install,docs)
	@touch $@
