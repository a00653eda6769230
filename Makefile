# Everything a contributor runs. `make help` lists it; each target installs what it needs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON     ?= python3
UV_VERSION := 0.13.7
# Tools and built oracles are kept outside the checkout, by version, so a second checkout builds nothing.
CACHE      := $(or $(ASTRAGO_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/astrago-trainer)
UV         := $(CACHE)/uv-$(UV_VERSION)/bin/uv
BIN        := .venv/bin
READY      := .venv/.ready
PAGE       := src/astrago_trainer/page/index.html
WEB        := $(shell find web -type f -not -path '*/node_modules/*')
export ASTRAGO_CACHE := $(CACHE)

.PHONY: help setup demo serve check test test-page screenshots mockups fuzz-merge bench campaign soak campaign-cluster cluster fake-nodes server-image test-cluster clean-cluster lock schema manifests build clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) $(PAGE) ## make the environment .venv, with .venv/bin/astrago in it, and the page

$(READY): requirements.lock pyproject.toml $(UV)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
	@$(UV) pip sync --quiet --compile-bytecode --python .venv --require-hashes requirements.lock
	@$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	@touch $@

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is $$($(PYTHON) -V 2>&1); Python 3.11 or newer is needed. Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@rm -rf $(CACHE)/uv-$(UV_VERSION) && mkdir -p $(CACHE)
	@$(PYTHON) -m venv $(CACHE)/uv-$(UV_VERSION) || \
	  { echo "make: '$(PYTHON) -m venv' does not work here; on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(CACHE)/uv-$(UV_VERSION)/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# Node of the machine or of its wheel; the same sources are built once, outside the checkout.
$(PAGE): $(READY) $(WEB) scripts/page.py
	@$(BIN)/python -m scripts.page build
	@touch $@

demo: $(READY) ## train a sample on two nodes of this machine, through the real server; ends by itself
	@$(BIN)/python -m scripts.demo

serve: $(READY) $(PAGE) ## server and page on http://127.0.0.1:8000 with the local engine, until Ctrl-C
	@exec $(BIN)/astrago up

check: $(READY) ## lint, types and layers alone (seconds)
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo --no-cache > .venv/layers.log || { cat .venv/layers.log; exit 1; }

test-page: $(READY) ## types, lint and unit tests of the page in web/
	@$(BIN)/python -m scripts.page check

screenshots: $(READY) $(PAGE) ## pictures of every page in both languages, colours and widths into build/screenshots (VIEWS="jobs nodes")
	@$(BIN)/python -m scripts.screenshots $(VIEWS)

mockups: $(READY) $(PAGE) ## draw docs/ui-mockups from the form of a new job
	@$(BIN)/python -m scripts.mockups

test: $(READY) $(PAGE) ## everything: checks, the page, unit, property, golden, command line, and the merge against the controller's own code
	@$(BIN)/python -m scripts.test

N ?= 20000
fuzz-merge: $(READY) ## compare N generated pairs per Trainer version with the controller (N=20000)
	@$(BIN)/python -m tests.oracle.fuzz --pairs $(N) $(if $(SEED),--seed $(SEED))

bench: $(READY) ## the benchmarks, one JSON line each, ours beside the peer in one run
	@$(BIN)/python -m bench

KILLS ?= 200
ROUNDS ?= 25
STOPS ?= 10000
HISTORIES ?= 2000
# With servers that are killed and paused a history takes a quarter of a second.
PROCESS_HISTORIES ?= 1000
REQUESTS ?= 100000
QUEUED ?= 5000
NOISE_SECONDS ?= 60
# Requests for each route and kind: 400 are more than 20,000 in all.
EXAMPLES ?= 400
campaign: fuzz-merge ## the long versions of the tests, with seeds that replay a failure
	@$(BIN)/python -m tests.checkpoint.campaign --kills $(KILLS) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.service.campaign --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.service.histories --count $(HISTORIES) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.service.histories --count $(HISTORIES) --database postgresql $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.service.process_histories --count $(PROCESS_HISTORIES) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.service.process_histories --count $(PROCESS_HISTORIES) --database postgresql $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.server.requests_campaign --count $(REQUESTS) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.server.neighbours_campaign --seconds $(NOISE_SECONDS) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.engines.queue_campaign --count $(QUEUED) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.catalogue.signal_campaign --rounds $(STOPS) $(if $(SEED),--seed $(SEED))
	@ASTRAGO_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -q tests/server/test_schema.py
	@ASTRAGO_CAMPAIGN=1 $(BIN)/pytest -q tests/e2e/local/test_samples.py tests/catalogue/test_samples.py
	@ASTRAGO_LOCKED_SECONDS=30 $(BIN)/pytest -q tests/server/test_faults.py

HOURS ?= 4
soak: $(READY) ## two servers under steady work with a fault a minute, for HOURS=4 or MINUTES
	@$(BIN)/python -m tests.server.soak --minutes $(or $(MINUTES),$$(( $(HOURS) * 60 ))) $(if $(SEED),--seed $(SEED))

TRAINER ?= 2.1
cluster: $(READY) ## a real Kubernetes with Kubeflow Trainer on this machine, or the one that runs (TRAINER=2.1|2.2|2.3, LEGACY=1; root, Go)
	@$(BIN)/python -m cluster up --trainer $(TRAINER) $(if $(LEGACY),--legacy)

NODES ?= 4
fake-nodes: cluster ## make it NODES fake GPU nodes beside the real one, 0 to 1000 (NODES=4)
	@$(BIN)/python -m cluster nodes $(NODES)

server-image: cluster ## bring the image of this checkout's server into it, for astrago install
	@$(BIN)/python -m cluster server

# Most of these tests wait for the operator, so more of them run at once than there are cores. The pages of the guide and
# the documents in `seeds` use fixed names and follow one another; those in `install` share one installation; each of those
# in `lost` waits for a node of its own; those in `alone` change the cluster itself.
# All parts run, also after one has failed.
SEPARATE := install guide seeds lost alone
lost := -n 3
test-cluster: ## the tests on the cluster, with the release that TRAINER names; ends the cluster
	@$(MAKE) --no-print-directory cluster LEGACY=1
	@status=0; export TRAINER=$(TRAINER); \
	  $(BIN)/pytest -q -n 4 $(foreach part,$(SEPARATE),--ignore=tests/cluster/$(part)) tests/cluster || status=1; \
	  $(foreach part,$(SEPARATE),$(BIN)/pytest -q $($(part)) tests/cluster/$(part) || status=1;) \
	  exit $$status

# A round kills at 40 to 60 points of a submit and 20 of a deletion; ten of them take 20 to 30 minutes on two cores, and the
# minutes without parts of the cluster a quarter of an hour.
CRASHES ?= 10
campaign-cluster: cluster ## the long versions of the faults on the cluster: parts of it away for a minute, kills at every step
	@ASTRAGO_DOWN_SECONDS=60 TRAINER=$(TRAINER) $(BIN)/pytest -q --durations=0 -k "without or hangs or killed_control or away" tests/cluster/alone/test_service_faults.py tests/cluster/service/test_faults.py
	@$(BIN)/python -m tests.cluster.service.campaign --rounds $(CRASHES)
	@ASTRAGO_CAMPAIGN=1 TRAINER=$(TRAINER) $(BIN)/pytest -q tests/cluster/alone/test_start_and_stop.py

clean-cluster: $(READY) ## end the cluster and everything in it (ALL=1: with its keys and images)
	@$(BIN)/python -m cluster down $(if $(ALL),--all)

lock: $(UV) ## resolve the dependencies anew into requirements.lock
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  pyproject.toml --group dev --upgrade --output-file requirements.lock

manifests: $(READY) ## write the copies of scripts in manifests, the GPU samples and kubeflow-training-integration/ anew
	@$(BIN)/python tests/catalogue/inline.py && $(BIN)/python -m scripts.manifests

schema: $(READY) ## read the field tables of Trainer 2.1, 2.2 and 2.3 anew (needs Go)
	@$(BIN)/python -m tests.oracle.schema --write

DIST ?= dist
build: $(READY) $(PAGE) ## source archive, and the wheel made from it, into dist/
	@$(UV) build --quiet --no-build-isolation --python .venv --out-dir $(DIST)

clean: ## remove what the targets made inside the checkout
	@rm -rf .venv dist build web/node_modules src/astrago_trainer/page .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
