# Everything a fresh machine needs is made here: python3 >= 3.11, git and make are enough.
# Not here: what the commands do (python -m bot COMMAND) and the settings of the checks (pyproject.toml).

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

# The first Python that is new enough; PYTHON=/path/to/python overrules.
PYTHON ?= $(firstword $(foreach each,python3 python3.13 python3.12 python3.11 python3.14,$(shell \
	$(each) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(each))))
BIN := .venv/bin
IN_VENV := UV_PYTHON_DOWNLOADS=never VIRTUAL_ENV=$(CURDIR)/.venv
PATHS := bot store tests
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
# Most tests wait more than they compute: twice as many workers as a small machine has processors, whole files each.
WORKERS ?= 4
LOCKS := requirements/tests.lock requirements/local.lock requirements/runtime.lock requirements/installer.lock

.PHONY: help setup demo test check lint fmt schema docs crash bench migrate lock clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: .venv/.tests ## Make .venv with everything: the bot, the local database, tests and checks

demo: .venv/.local ## Show the whole product in a browser, with nothing real behind it
	$(BIN)/python -m bot demo

test: .venv/.tests ## Run the tests (ARGS="tests/policy -x" for some of them, WORKERS=0 for one after the other)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

check: lint ## What must pass before a change lands: format, lint, types, import order, migrations
	$(BIN)/mypy $(PATHS)
	$(BIN)/python -m pytest -q tests/house

lint: .venv/.tests ## The fast half of check
	$(BIN)/ruff format --check $(PATHS)
	$(BIN)/ruff check $(PATHS)
	$(BIN)/squawk --config .squawk.toml sql/migrations/*.sql

fmt: .venv/.tests ## Format, and mend what ruff can mend
	$(BIN)/ruff check --fix-only --quiet $(PATHS)
	$(BIN)/ruff format $(PATHS)

schema: .venv/.tests ## Write sql/schema.sql from the migrations
	$(BIN)/python -m store.schema

docs: .venv/.tests ## Write docs/states.md from store/states.py
	$(BIN)/python -m store.chart

crash: .venv/.tests ## Die at every checkpoint and by chance, draw every hostile text; for long (STET_SEED=n repeats a run)
	STET_CAMPAIGN=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -o timeout=3600 tests/crash tests/race tests/cards/test_hostile.py $(ARGS)

bench: .venv/.tests ## Measure beside the limits of the specification
	$(BIN)/python -m tests.bench $(ARGS)

migrate: .venv/.local ## Bring the database of DATABASE_URL to the newest schema
	$(BIN)/python -m bot migrate

lock: .venv/.tests ## Renew the hash-locked requirements
	$(LOCK) --upgrade pyproject.toml requirements/build.in --extra local --extra tests -o requirements/tests.lock
	$(LOCK) pyproject.toml requirements/build.in --extra local -c requirements/tests.lock -o requirements/local.lock
	$(LOCK) pyproject.toml requirements/build.in -c requirements/tests.lock -o requirements/runtime.lock
	$(LOCK) requirements/installer.in -o requirements/installer.lock
	! grep -nE '://|^-|^ *--[^h]' $(LOCKS)

clean: ## Remove what was made, except the database under ./data
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .hypothesis

# A stamp makes the second run instant. uv where it can be had, else pip with the same lock.
.venv/.tests .venv/.local: .venv/.%: requirements/%.lock requirements/installer.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Stet needs Python 3.11 or newer: install python3, or name one with PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv \
		|| { rm -rf .venv; echo "Python cannot make a virtual environment: on Debian, apt-get install python3-venv"; exit 1; }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r requirements/installer.lock || echo "uv cannot be installed here; pip does the rest, a little slower"
	@if test -x $(BIN)/uv; then \
		$(IN_VENV) $(BIN)/uv pip install --quiet --require-hashes -r $< \
		&& $(IN_VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation -e .; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $< \
		&& $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi
	@touch $@
